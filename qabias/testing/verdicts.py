"""Verdicts of intervals on thresholds: pass, fail or inconclusive, for every score and group."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from qabias.benchmarks import ALL
from qabias.benchmarks.base import Benchmark
from qabias.benchmarks.caveats import detectable, estimate, imbalance, imbalance_note, possible_range, reasons
from qabias.benchmarks.facts import Measure, Scores
from qabias.benchmarks.findings import adjusted_finding
from qabias.benchmarks.headline import FAILED
from qabias.benchmarks.thresholds import (
    Limit,
    Side,
    State,
    allowed,
    breakdowns_of,
    check_limit,
    has_sign,
    judged,
    value_range,
)
from qabias.errors import QabiasError, arg
from qabias.runs.scored import ScoredRun
from qabias.support.suggest import unknown


@dataclass(frozen=True)
class Verdict:
    """A run's verdict for a threshold in one group.

    Attributes:
        value: The score; None if undefined.
        low: Lower end of the interval, adjusted for comparisons and missing answers; None without one.
        high: Upper end.
        limit: The threshold.
        side: The allowed side.
        magnitude: Whether the score counts by its magnitude, as one with best value 0.
        state: The verdict.
        kind: Kind of the score, see `qabias.tables.model.Column`.
        n: Number of examples of the score.
        looks: Number of intervals in the adjustment.
        reason: Why the score is not reported, or "".
        possible: The score's possible range with missing answers; None if hardly any are missing.
        detectable: Minimum detectable effect (80% power); infinite if no effect is detectable, None if unknown.
        needed: Approximate number of examples to decide at this score; None if no number would.
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


_MOST = 1e9  # maximum number of examples named; beyond it the score is at the threshold


def task_limit(benchmark: Benchmark) -> Limit:
    """The threshold of a model that does the task: accuracy above guessing."""
    rules = benchmark.facts.headline
    if rules is None or not rules.task:
        raise QabiasError(f"{benchmark.name} has no accuracy of its task.", f"Remove {arg('require_task')}.")
    return Limit(rules.task[0], FAILED, "above")


def examples_needed(
    n: int, inner: tuple[float, float], ends: tuple[float, float], between: tuple[float, float]
) -> int | None:
    """Approximate number of examples to decide."""
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
    """Check a run against thresholds: a verdict for every threshold and group with its score.

    Args:
        run: The run.
        limits: The thresholds; intervals are adjusted for all scores and groups together.
        by: A breakdown, see `breakdowns`; None: all examples together.

    Raises:
        QabiasError: If a score or breakdown does not exist, the run lacks the score, or a threshold is invalid.
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
    """The breakdowns of a run, with the scores of every group, see `breakdowns_of`."""
    return breakdowns_of(run.benchmark, run.scores)


def _groups(run: ScoredRun, by: str | None) -> Mapping[str, Scores]:
    there = breakdowns(run)
    if by is not None:
        if by not in there:
            raise unknown("breakdown", by, there)
        return there[by]
    whole = run.benchmark.groups(run.scores).get(ALL)
    if whole is None:
        raise QabiasError(
            f"{run.benchmark.name} has no scores of all examples together.",
            f"Add by=... or --by with one of: {', '.join(there)}.",
        )
    return {ALL: whole}


def _measure(run: ScoredRun, name: str, groups: Mapping[str, Scores], by: str | None) -> Measure:
    facts = run.benchmark.facts
    known = list(dict.fromkeys(measure.name for measure in facts.measures))
    if name not in known:
        raise unknown("score", name, known)
    measure = facts.measure(name)
    question_only = facts.question_only if run.is_question_only else None
    if question_only is not None and name not in question_only.measures:
        raise QabiasError(
            f"{name} needs contexts, but the model saw questions only.",
            f"Choose one of {', '.join(question_only.measures)}.",
        )
    elsewhere = by is not None and measure.breakdowns and by not in measure.breakdowns
    if elsewhere or not any(name in scores for scores in groups.values()):
        there = {other: any(name in scores for scores in cells.values()) for other, cells in breakdowns(run).items()}
        where = measure.breakdowns or [other for other, has_score in there.items() if has_score]
        why = f": {measure.lacks}" if measure.lacks and not where else ""
        what = "of all examples together" if by is None else f"by {by}"
        fix = f"Use the score by {', '.join(where)}." if where else "Choose another score."
        raise QabiasError(f"The run of {run.benchmark.name} has no {name} {what}{why}.", fix)
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
    # Any missing answers would leave the interval about equally wide.
    reach = inner[0] - (value - seen.low), inner[1] + (seen.high - value)
    (least, largest), between = value_range(measure), allowed(limit, measure)
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
