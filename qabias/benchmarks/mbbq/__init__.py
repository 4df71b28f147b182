"""MBBQ (Neplenbroek et al. 2024): the same questions in English, Dutch, Spanish and Turkish, with a control set."""

NAME = "mbbq"
MODULES = {NAME: "questions"}
"""The modules of this folder that hold a `BENCHMARK`, by its name."""
