"""EsBBQ and CaBBQ (Ruiz-Fernández et al. 2025): BBQ for Spain, in Spanish and in Catalan."""

ESBBQ, CABBQ = "esbbq", "cabbq"
MODULES = {ESBBQ: "spanish", CABBQ: "catalan"}
"""The modules of this folder that hold a `BENCHMARK`, by its name."""
