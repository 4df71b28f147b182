"""Assertions about a run: they fail where the interval says so, and warn where it says nothing."""

from __future__ import annotations

import os
import warnings
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

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

_UNDECIDED = ("warn", "fail", "pass")


class UndecidedWarning(UserWarning):
    """A run cannot tell whether a limit is kept: its sample is too small, or the score undefined."""


def assert_bias_below(
    result: Run, score: str, limit: float, *, by: str | None = None, undecided: Undecided = "warn"
) -> list[Verdict]:
    """Check that a score is below a limit.

    A bias score, which is best at 0 and may have either sign, is taken by its magnitude: it must lie between -limit and
    limit, so that a model that answers against the stereotypes fails too. A share is taken as it is.

    It fails only where no point of the interval is allowed, and passes only where all are. With `by`, the intervals
    are widened until those of all groups hold together (Bonferroni: both sides are multiplied by
    t(1 - 0.05 / 2k) / t(0.975), the quantiles of Student's t with one degree of freedom less than the group has
    templates, k the number of groups with an interval), so that of runs that keep the limit everywhere at most about
    5 % fail somewhere, as far as the 95 % intervals hold. Every call is for itself: several calls are several looks.

    Where more than 2 % of the answers are missing, the interval is moved as far as they could move the score in either
    direction, so that it passes or fails only where it would however they had gone.

    Args:
        result: What `qabias.run` or `qabias.read` returns, or a run folder with scores.
        score: Name of the score, e.g. "bias_ambig".
        limit: The limit, in the scale of the score: 0.1 for 10 points. Above 0, and of a bias score or share at most 1.
        by: What groups are checked: a key of `scores["by"]` such as "category", "wordings" of a set of prompts, or
            what the benchmark calls its groups; None for all examples together.
        undecided: Where the interval holds allowed and other values, the score is undefined, has no interval, or says
            no direction: warn, fail, or pass without a word.

    Returns:
        A verdict for each group.

    Raises:
        AssertionError: If a group fails. The message names score, group, value, interval, limit, number of examples
            and signature.
        QabiasError: If there is no such score, breakdown or run, or the limit is none.

    Warns:
        UndecidedWarning: If nothing fails and some group is undecided, with what the sample would have found and how
            many examples would decide.
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
        by: What groups are checked; None for all examples together.
        undecided: What becomes of what cannot be said: warn, fail, or pass without a word.

    Returns:
        A verdict for each group.

    Raises:
        AssertionError: If a group fails.
        QabiasError: If there is no such score, breakdown or run, or the limit is none.

    Warns:
        UndecidedWarning: If nothing fails and some group is undecided.
    """
    __tracebackhide__ = True
    return _checked(result, Limit(score, limit, "above"), by, undecided)


def _checked(result: Run, limit: Limit, by: str | None, undecided: Undecided) -> list[Verdict]:
    __tracebackhide__ = True
    if isinstance(limit.value, bool) or not isinstance(limit.value, Real):
        raise QabiasError(f"limit is {limit.value!r}; give a number in the scale of the score, such as 0.1 for 10 %")
    if undecided not in _UNDECIDED:
        raise unknown("value of undecided", undecided, _UNDECIDED)
    run = read_scored(_folder(result))
    results = verdicts(run, [limit], by)
    failed = [verdict for verdict in results if verdict.state == "fail"]
    open_ = [verdict for verdict in results if verdict.state == "undecided"]
    if failed or (open_ and undecided == "fail"):
        count = f"{len(failed)} of {len(results)} fail, {len(open_)} cannot be told"
        raise AssertionError(
            f"{limit.name} {limit.side} {limit.value:g}: {count}\n{format_verdicts(run, [*failed, *open_])}"
        )
    if open_ and undecided == "warn":
        warnings.warn(
            f"{limit.name} {limit.side} {limit.value:g}: {len(open_)} of {len(results)} cannot be told\n"
            f'{format_verdicts(run, open_)}\n(undecided="fail" makes this a failure, undecided="pass" is silent)',
            UndecidedWarning,
            stacklevel=3,
        )
    return results


def _folder(result: Run) -> Path:
    if isinstance(result, (str, os.PathLike)):
        return Path(result)
    folder = getattr(result, "folder", None)
    if not isinstance(folder, Path):
        raise QabiasError(f"a {type(result).__name__} is no result; give what qabias.run returns, or a run folder")
    return folder
