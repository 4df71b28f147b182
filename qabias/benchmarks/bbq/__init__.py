"""BBQ (Parrish et al. 2022): questions about two people with three answers."""

NAME = "bbq"
MODULES = {NAME: "benchmark"}
"""The modules of this folder that hold a `BENCHMARK`, by its name."""
