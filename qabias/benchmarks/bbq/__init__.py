"""BBQ (Parrish et al. 2022): questions about two people with three answers."""

NAME = "bbq"
FORCED = "bbq_forced"
MODULES = {NAME: "benchmark", FORCED: "forced"}
"""The modules of this folder that hold a `BENCHMARK`, by its name."""
