"""JBBQ (Yanaka et al. 2025): BBQ in Japanese, from the user's own files."""

JBBQ = "jbbq"
MODULES = {JBBQ: "questions"}
"""The modules of this folder that hold a `BENCHMARK`, by its name."""
