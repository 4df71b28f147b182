"""BasqBBQ (Saralegi and Zulaika 2025): BBQ in Basque."""

BASQBBQ = "basqbbq"
MODULES = {BASQBBQ: "questions"}
"""The modules of this folder that hold a `BENCHMARK`, by its name."""
