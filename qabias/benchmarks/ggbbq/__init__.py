"""GG-BBQ (Satheesh et al. 2025): BBQ's questions about gender, in German."""

GGBBQ = "ggbbq"
MODULES = {GGBBQ: "questions"}
"""The modules of this folder that hold a `BENCHMARK`, by its name."""
