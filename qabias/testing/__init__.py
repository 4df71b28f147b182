"""Assertions about results, for tests and release pipelines.

    import qabias
    from qabias.testing import assert_bias_below

    assert_bias_below(qabias.read("runs/name"), "bias_ambig", 0.1, by="category")

They fail only if a score's interval excludes the threshold, and warn if the sample is too small to decide. A pass does
not prove a model unbiased.
"""

from __future__ import annotations

import os
import warnings
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from qabias.errors import QabiasError
from qabias.runs import opened
from qabias.scores.judge import Condition, Side, State, Verdict
from qabias.support.suggest import unknown
from qabias.testing.verdicts import breakdowns, format_verdicts, verdicts

if TYPE_CHECKING:
    from qabias.api.result import Result

    Run: TypeAlias = Result | str | os.PathLike[str]

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

Undecided = Literal["warn", "fail", "pass"]  # how to treat an inconclusive check


class UndecidedWarning(UserWarning):
    """A check is inconclusive: its sample is too small, or the score is undefined."""


def assert_bias_below(
    result: Run, score: str, limit: float, *, by: str | None = None, undecided: Undecided = "warn"
) -> list[Verdict]:
    """Check that a score is below a threshold.

    A bias score (best at 0, either sign) counts by its magnitude, a share unchanged. A group fails only if its whole
    interval violates the threshold, and passes only if none of it does.

    With `by`, intervals are Bonferroni-adjusted for k groups: both sides are multiplied by t(1 - 0.05 / 2k) / t(0.975).
    These are quantiles of Student's t with one degree of freedom less than the group has templates. Several calls are
    not adjusted for each other.

    If more than 2% of the answers are missing, the interval is extended as far as they could move the score.

    Args:
        result: A result of `qabias.run` or `qabias.read`, or a run folder with scores.
        score: Name of the score, e.g. "bias_ambig".
        limit: The threshold on the score's scale: 0.1 for 10 points. Above 0; at most 1 for a bias score or share.
        by: Groups to check: a key of `scores["by"]` such as "category", "wordings" (prompt variants), or the
            benchmark's name of its groups. None: all examples together.
        undecided: Treatment of an inconclusive check: warn, fail, or pass silently.

    Returns:
        A verdict for each group.

    Raises:
        AssertionError: If a group fails.
        QabiasError: If score, breakdown or run does not exist, or the threshold is invalid.

    Warns:
        UndecidedWarning: If nothing fails and a group is inconclusive.
    """
    __tracebackhide__ = True
    return _checked(result, Condition(score, limit, "below"), by, undecided)


def assert_score_above(
    result: Run, score: str, limit: float, *, by: str | None = None, undecided: Undecided = "warn"
) -> list[Verdict]:
    """Check that a score such as an accuracy is above a threshold.

    Args:
        result: As for `assert_bias_below`, which also explains groups and missing answers.
        score: Name of the score, e.g. "accuracy_ambig"; not a bias score.
        limit: The threshold on the score's scale: 0.9 for 90%. For a share from 0 to below 1.
        by: All else is as for `assert_bias_below`, with the same result and errors.
        undecided: As for `assert_bias_below`.
    """
    __tracebackhide__ = True
    return _checked(result, Condition(score, limit, "above"), by, undecided)


def _checked(result: Run, condition: Condition, by: str | None, undecided: Undecided) -> list[Verdict]:
    __tracebackhide__ = True
    if isinstance(condition.value, bool) or not isinstance(condition.value, Real):
        raise QabiasError(f"limit is {condition.value!r}.", "Give a number on the score's scale, such as 0.1 for 10%.")
    if undecided not in get_args(Undecided):
        raise unknown("value of undecided", undecided, get_args(Undecided))
    folder = Path(result) if isinstance(result, (str, os.PathLike)) else getattr(result, "folder", None)
    if folder is None:
        raise QabiasError(
            f"a {type(result).__name__} is not a result.", "Give a result of qabias.run, or a run folder."
        )
    run = opened.Run.scored(folder)
    results = verdicts(run, [condition], by)
    failed = [verdict for verdict in results if verdict.state == "fail"]
    open_ = [verdict for verdict in results if verdict.state == "undecided"]
    counts = f"{len(failed)} of {len(results)} fail, {len(open_)} inconclusive"
    head = f"{condition.name} {condition.side} {condition.value:g}: {counts}"
    if failed or (open_ and undecided == "fail"):
        raise AssertionError(f"{head}\n{format_verdicts(run, [*failed, *open_])}")
    if open_ and undecided == "warn":
        fix = '(undecided="fail" makes this a failure, undecided="pass" is silent)'
        warnings.warn(f"{head}\n{format_verdicts(run, open_)}\n{fix}", UndecidedWarning, stacklevel=3)
    return results
