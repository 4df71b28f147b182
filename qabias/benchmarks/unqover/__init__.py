"""UnQover (Li et al. 2020): underspecified questions about pairs of subjects."""

NAME = "unqover"
MODULES = {NAME: "benchmark"}
"""The modules of this folder that hold a `BENCHMARK`, by its name."""
