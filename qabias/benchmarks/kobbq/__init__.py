"""KoBBQ (Jin et al. 2024): BBQ for South Korea, in Korean."""

NAME = "kobbq"
MODULES = {NAME: "questions"}
"""The modules of this folder that hold a `BENCHMARK`, by its name."""
