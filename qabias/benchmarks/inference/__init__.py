"""BBNLI and BBQ as inference (Akyurek et al. 2022): premises and hypotheses, with prompts and labels in common."""

BBNLI = "bbnli"
BBQ_NLI = "bbq_nli"
MODULES = {BBNLI: "bbnli", BBQ_NLI: "bbq_nli"}
"""The modules of this folder that hold a `BENCHMARK`, by its name."""
