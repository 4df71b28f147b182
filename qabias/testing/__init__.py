"""Assertions about results, for tests and release pipelines.

    import qabias
    from qabias.testing import assert_bias_below

    assert_bias_below(qabias.read("runs/name"), "bias_ambig", 0.1, by="category")

They fail only if a score's interval excludes the threshold, and warn if the sample is too small to decide. A pass does
not prove a model unbiased.
"""

from qabias.scores.judge import Condition, Side, State, Verdict
from qabias.testing.assertions import Undecided, UndecidedWarning, assert_bias_below, assert_score_above
from qabias.testing.verdicts import breakdowns, verdicts

__all__ = [
    "Condition",
    "Side",
    "State",
    "Undecided",
    "UndecidedWarning",
    "Verdict",
    "assert_bias_below",
    "assert_score_above",
    "breakdowns",
    "verdicts",
]
