"""What an interval says of a limit: pass, fail, or neither, for every score and group."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from qabias.benchmarks import ALL
from qabias.benchmarks.base import Benchmark
from qabias.benchmarks.caveats import detectable, imbalance, imbalance_note, possible_range, reasons
from qabias.benchmarks.facts import WORDINGS, Measure, Scores
from qabias.benchmarks.findings import adjusted_finding
from qabias.benchmarks.headline import FAILED
from qabias.errors import QabiasError
from qabias.runs.scored import ScoredRun
from qabias.support.suggest import unknown
from qabias.tables.model import estimate

State = Literal["pass", "fail", "undecided"]
Side = Literal["below", "above"]


@dataclass(frozen=True)
class Limit:
    """A limit of a score."""

    name: str
    value: float
    side: Side


@dataclass(frozen=True)
class Verdict:
    """What a run says of a limit in one group of examples.

    Attributes:
        name: Name of the score.
        group: Name of the group.
        value: The score; None where it is undefined.
        low: Lower end of the interval, widened for the number of looks and moved by missing answers; None without one.
        high: Upper end.
        limit: The limit.
        side: On which side of it the score must lie.
        magnitude: Whether the score is taken by its magnitude, as one is that is best at 0.
        state: Whether it does, as far as can be said.
        kind: Kind of the score, see `qabias.tables.model.Column`.
        n: Number of examples that the score is of.
        looks: Number of intervals that were looked at together.
        reason: Why nothing can be said; "" where the ends are known.
        possible: What the score could be with the answers that are missing; None where hardly any is.
        detectable: The smallest true size that would have been found with a probability of about 80 %; infinite where
            even the largest could have been missed, None where not known.
        needed: About how many examples would decide if the score stayed what it is; None where none would.
    """

    name: str
    group: str
    value: float | None
    low: float | None
    high: float | None
    limit: float
    side: Side
    magnitude: bool
    state: State
    kind: str
    n: int
    looks: int
    reason: str = ""
    possible: tuple[float, float] | None = None
    detectable: float | None = None
    needed: int | None = None


_RANGES: Mapping[str, tuple[float, float]] = {"share": (0.0, 1.0), "signed": (-1.0, 1.0)}
"""The least and the largest value of a kind of score, where they are known."""

_MOST = 1e9
"""Examples beyond which none are named: the score is at the limit."""


def task_limit(benchmark: Benchmark) -> Limit:
    """The limit of a model that does the task: its accuracy is above what guessing gives."""
    rules = benchmark.facts.headline
    if rules is None or not rules.task:
        raise QabiasError(f"{benchmark.name} has no accuracy of its task.", "Remove --require-task.")
    return Limit(rules.task[0], FAILED, "above")


def has_sign(measure: Measure) -> bool:
    """Whether a score is on both sides of its best value 0, so that being below a limit is about its magnitude."""
    return measure.kind == "signed" or measure.best == 0.0


def check_limit(limit: Limit, measure: Measure) -> None:
    """Refuse a limit that every score meets, or none."""
    least, largest = _range(measure)
    if limit.side == "above":
        if has_sign(measure):
            raise QabiasError(
                f"{limit.name} is best at 0, so that it has no least value; give the largest that is allowed, of "
                "either sign (--max, assert_bias_below)"
            )
        if not least <= limit.value < largest:
            raise _no_threshold(limit, measure)
    elif not 0.0 < limit.value <= largest or math.isinf(limit.value):
        raise _no_threshold(limit, measure)


def _no_threshold(limit: Limit, measure: Measure) -> QabiasError:
    problem = f"{limit.value:g} is no threshold of {limit.name}."
    if measure.kind not in _RANGES:
        return QabiasError(problem, "Give a number above 0.")
    points = limit.value if 1 < limit.value < 100 else 10
    return QabiasError(f"{problem} It is at most 1.", f"For {points:g} points give {points / 100:g}.")


def allowed(limit: Limit, measure: Measure) -> tuple[float, float]:
    """The ends of what is allowed, which do not belong to it."""
    if limit.side == "above":
        return limit.value, math.inf
    return (-limit.value if has_sign(measure) else -math.inf), limit.value


def judged(ends: tuple[float, float], between: tuple[float, float]) -> State:
    """What an interval says."""
    (low, high), (bottom, top) = ends, between
    if bottom < low and high < top:
        return "pass"
    return "fail" if high <= bottom or top <= low else "undecided"


def _range(measure: Measure) -> tuple[float, float]:
    return _RANGES.get(measure.kind, (-math.inf, math.inf))


def examples_needed(
    n: int, inner: tuple[float, float], ends: tuple[float, float], between: tuple[float, float]
) -> int | None:
    """About how many examples would decide."""
    (low, high), (bottom, top) = ends, between
    below, above = inner[0] - low, high - inner[1]
    if bottom < inner[0] and inner[1] < top:
        times = max(below / (inner[0] - bottom), above / (top - inner[1]))
    elif inner[0] > top:
        times = below / (inner[0] - top)
    elif inner[1] < bottom:
        times = above / (bottom - inner[1])
    else:
        return None
    number = n * times**2
    if not number < _MOST:
        return None
    unit = 10 ** max(0, math.ceil(math.log10(max(number, 1.0))) - 2)
    return max(n + 1, unit * math.ceil(number / unit))


def verdicts(run: ScoredRun, limits: Sequence[Limit], by: str | None = None) -> list[Verdict]:
    """Hold the scores of a run against limits: a verdict for every limit and every group that has its score.

    Args:
        run: The run.
        limits: The limits; intervals are widened for all scores and groups together.
        by: A breakdown, see `breakdowns`; None for all examples together.

    Raises:
        QabiasError: If there is no such score or breakdown, the run cannot have the score, or a limit is none.
    """
    groups = _groups(run, by)
    cells = []
    for limit in limits:
        measure = _measure(run, limit.name, groups, by)
        check_limit(limit, measure)
        cells += [(limit, measure, group, scores) for group, scores in groups.items() if measure.name in scores]
    reasons_not = [_reason_not_reported(run, measure, scores) for _, measure, _, scores in cells]
    looks = reasons_not.count("")
    return [_verdict(run.benchmark, *cell, looks, why) for cell, why in zip(cells, reasons_not, strict=True)]


def breakdowns(run: ScoredRun) -> dict[str, Mapping[str, Scores]]:
    """What the scores of a run are broken down by, with the scores of every group.

    These are the groups of `scores["by"]`, the wordings of a set of prompts, and the benchmark's own groups.
    """
    benchmark, scores = run.benchmark, run.scores
    own = {name: group for name, group in benchmark.groups(scores).items() if name != ALL}
    known = {benchmark.facts.row: own, **scores.get("by", {})}
    if WORDINGS in scores:
        known[WORDINGS] = scores[WORDINGS]
    return {name: groups for name, groups in known.items() if groups}


def _groups(run: ScoredRun, by: str | None) -> Mapping[str, Scores]:
    there = breakdowns(run)
    if by is not None:
        if by not in there:
            raise unknown("breakdown", by, there)
        return there[by]
    whole = run.benchmark.groups(run.scores).get(ALL)
    if whole is None:
        raise QabiasError(
            f"{run.benchmark.name} has no scores of all examples together; choose what they are checked by: "
            f"{', '.join(there)} (by=..., --by ...)"
        )
    return {ALL: whole}


def _measure(run: ScoredRun, name: str, groups: Mapping[str, Scores], by: str | None) -> Measure:
    """The score of that name, which one of the groups has at least."""
    facts = run.benchmark.facts
    known = list(dict.fromkeys(measure.name for measure in facts.measures))
    if name not in known:
        raise unknown("score", name, known)
    measure = facts.measure(name)
    question_only = facts.question_only if run.is_question_only else None
    if question_only is not None and name not in question_only.measures:
        raise QabiasError(
            f"{name} means nothing where the model saw no context; choose one of {', '.join(question_only.measures)}"
        )
    elsewhere = by is not None and measure.breakdowns and by not in measure.breakdowns
    if elsewhere or not any(name in scores for scores in groups.values()):
        there = {other: any(name in scores for scores in cells.values()) for other, cells in breakdowns(run).items()}
        where = measure.breakdowns or [other for other, has_score in there.items() if has_score]
        instead = f"; there is one by {', '.join(where)}" if where else f": {measure.lacks}" if measure.lacks else ""
        what = "of all examples together" if by is None else f"by {by}"
        raise QabiasError(f"the run has no {name} {what}{instead} ({run.benchmark.name})")
    return measure


def _reason_not_reported(run: ScoredRun, measure: Measure, scores: Scores) -> str:
    """Return why a score is not reported, or ""."""
    value, low, high = estimate(scores, measure.name)
    why = reasons(run.benchmark.facts, scores)
    if value is None:
        return f"undefined: {why[f'/{measure.name}']}"
    if low is None or high is None:
        return why.get(f"/ci/{measure.name}") or "it has no interval"
    if not low < high:
        return "an interval of no width"
    share = imbalance(scores, measure)
    return "" if share is None else imbalance_note([share], measure)


def _verdict(
    benchmark: Benchmark, limit: Limit, measure: Measure, group: str, scores: Scores, looks: int, why: str
) -> Verdict:
    value, possible = estimate(scores, measure.name).value, possible_range(scores, measure)
    n = sum(scores[count] for count in measure.counts or ("n",)) // scores.get("n_runs", 1)
    wanted = (limit.value, limit.side, limit.side == "below" and has_sign(measure))
    undecided = Verdict(
        limit.name, group, value, None, None, *wanted, "undecided", measure.kind, n, looks, why, possible
    )
    if why or value is None:
        return undecided
    seen = adjusted_finding(benchmark.facts, group, scores, measure.name, looks)
    inner = (value, value) if possible is None else (min(value, possible[0]), max(value, possible[1]))
    # Whichever way the missing answers had gone, the interval would be about as wide as it is now.
    reach = inner[0] - (value - seen.low), inner[1] + (seen.high - value)
    (least, largest), between = _range(measure), allowed(limit, measure)
    low, high = max(reach[0], least), min(reach[1], largest)
    state = judged((low, high), between)
    return replace(
        undecided,
        low=low,
        high=high,
        state=state,
        detectable=None if detectable(scores, measure) is None else seen.detectable,
        needed=examples_needed(n, inner, reach, between) if state == "undecided" else None,
    )
