"""Assertions about a run: they fail where the interval says so, and warn where it says nothing."""

from __future__ import annotations

import os
import warnings
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from qabias.errors import QabiasError
from qabias.runs.scored import read_scored
from qabias.support.suggest import unknown
from qabias.testing.messages import format_verdicts
from qabias.testing.verdicts import Limit, Verdict, verdicts

if TYPE_CHECKING:
    from qabias.api.result import Result

    Run: TypeAlias = Result | str | os.PathLike[str]

Undecided = Literal["warn", "fail", "pass"]
"""What becomes of a limit of which the run cannot tell whether it is kept."""


class UndecidedWarning(UserWarning):
    """A run cannot tell whether a limit is kept: its sample is too small, or the score undefined."""


def assert_bias_below(
    result: Run, score: str, limit: float, *, by: str | None = None, undecided: Undecided = "warn"
) -> list[Verdict]:
    """Check that a score is below a limit.

    A bias score, which is best at 0 and has either sign, is taken by its magnitude; a share is taken as it is. A group
    fails only if no point of its interval is allowed, and passes only if all are.

    With `by`, the intervals are widened until those of all groups hold together (Bonferroni: both sides are multiplied
    by t(1 - 0.05 / 2k) / t(0.975), the quantiles of Student's t with one degree of freedom less than the group has
    templates, k the number of groups with an interval). Every call is for itself: several calls are several looks.

    Where more than 2 % of the answers are missing, the interval is moved as far as they could move the score.

    Args:
        result: What `qabias.run` or `qabias.read` returns, or a run folder with scores.
        score: Name of the score, e.g. "bias_ambig".
        limit: The limit, in the scale of the score: 0.1 for 10 points. Above 0, and of a bias score or share at most 1.
        by: What groups are checked: a key of `scores["by"]` such as "category", "wordings" of a set of prompts, or
            what the benchmark calls its groups; None for all examples together.
        undecided: Where the interval holds allowed and other values, or says nothing: warn, fail, or pass silently.

    Returns:
        A verdict for each group.

    Raises:
        AssertionError: If a group fails.
        QabiasError: If there is no such score, breakdown or run, or the limit is none.

    Warns:
        UndecidedWarning: If nothing fails and some group is undecided.
    """
    __tracebackhide__ = True
    return _checked(result, Limit(score, limit, "below"), by, undecided)


def assert_score_above(
    result: Run, score: str, limit: float, *, by: str | None = None, undecided: Undecided = "warn"
) -> list[Verdict]:
    """Check that a score such as an accuracy is above a limit.

    Args:
        result: As for `assert_bias_below`, which says too how groups and missing answers are treated.
        score: Name of the score, e.g. "accuracy_ambig"; none that is best at 0.
        limit: The limit, in the scale of the score: 0.9 for 90 %. Of a share from 0 to below 1.
        by: As for `assert_bias_below`.
        undecided: As for `assert_bias_below`.

    Returns:
        A verdict for each group.

    Raises:
        AssertionError: If a group fails.
        QabiasError: If there is no such score, breakdown or run, or the limit is none.
    """
    __tracebackhide__ = True
    return _checked(result, Limit(score, limit, "above"), by, undecided)


def _checked(result: Run, limit: Limit, by: str | None, undecided: Undecided) -> list[Verdict]:
    __tracebackhide__ = True
    if isinstance(limit.value, bool) or not isinstance(limit.value, Real):
        raise QabiasError(f"limit is {limit.value!r}; give a number in the scale of the score, such as 0.1 for 10 %")
    if undecided not in get_args(Undecided):
        raise unknown("value of undecided", undecided, get_args(Undecided))
    folder = Path(result) if isinstance(result, (str, os.PathLike)) else getattr(result, "folder", None)
    if folder is None:
        raise QabiasError(f"a {type(result).__name__} is no result; give what qabias.run returns, or a run folder")
    run = read_scored(folder)
    results = verdicts(run, [limit], by)
    failed = [verdict for verdict in results if verdict.state == "fail"]
    open_ = [verdict for verdict in results if verdict.state == "undecided"]
    head = (
        f"{limit.name} {limit.side} {limit.value:g}: {len(failed)} of {len(results)} fail, {len(open_)} cannot be told"
    )
    if failed or (open_ and undecided == "fail"):
        raise AssertionError(f"{head}\n{format_verdicts(run, [*failed, *open_])}")
    if open_ and undecided == "warn":
        fix = '(undecided="fail" makes this a failure, undecided="pass" is silent)'
        warnings.warn(f"{head}\n{format_verdicts(run, open_)}\n{fix}", UndecidedWarning, stacklevel=3)
    return results
