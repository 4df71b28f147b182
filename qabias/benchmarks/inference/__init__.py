"""BBNLI, and BBQ as inference and in the prompts of BBNLI's questions (Akyurek et al. 2022)."""

BBNLI = "bbnli"
BBQ_NLI = "bbq_nli"
BBQ_QA = "bbq_qa"
MODULES = {BBNLI: "benchmark", BBQ_NLI: "benchmark:STATEMENTS", BBQ_QA: "benchmark:QUESTIONS"}
"""The modules of this folder that hold a benchmark, by its name."""
