"""Verdicts on thresholds: pass, fail or inconclusive, for every score and group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qabias.benchmarks import ALL
from qabias.benchmarks.base import Benchmark
from qabias.benchmarks.headline import FAILED
from qabias.benchmarks.scoring import breakdowns_of
from qabias.errors import QabiasError, arg
from qabias.runs.opened import Run
from qabias.scores.facts import Measure, Scores
from qabias.scores.judge import Condition, Verdict, check_condition, judge
from qabias.scores.score import read_score
from qabias.support.suggest import unknown


def task_condition(benchmark: Benchmark) -> Condition:
    """The threshold of a model that does the task: accuracy above guessing."""
    rules = benchmark.facts.headline
    if rules is None or not rules.task:
        raise QabiasError(f"{benchmark.name} has no accuracy of its task.", f"Remove {arg('require_task')}.")
    return Condition(rules.task[0], FAILED, "above")


def verdicts(run: Run, conditions: Sequence[Condition], by: str | None = None) -> list[Verdict]:
    """Check a run against thresholds: a verdict for every threshold and group with its score.

    Args:
        run: The run.
        conditions: The thresholds; intervals are adjusted for all scores and groups together.
        by: A breakdown, see `breakdowns`; None: all examples together.

    Raises:
        QabiasError: If a score or breakdown does not exist, the run lacks the score, or a threshold is invalid.
    """
    groups = _groups(run, by)
    facts = run.benchmark.facts
    read = []
    for condition in conditions:
        measure = _measure(run, condition.name, groups, by)
        check_condition(condition, measure)
        scored = {group: scores for group, scores in groups.items() if measure.name in scores}
        read += [(read_score(facts, scores, measure, group), condition) for group, scores in scored.items()]
    n_comparisons = sum(not score.reason for score, _ in read)
    return [judge(score, condition, n_comparisons) for score, condition in read]


def record(verdict: Verdict) -> dict[str, Any]:
    """A verdict as `qabias check --output` writes it."""
    score, condition = verdict.score, verdict.condition
    return {
        "name": condition.name,
        "group": score.group,
        "value": score.value,
        "low": None if score.reason else verdict.low,
        "high": None if score.reason else verdict.high,
        "limit": condition.value,
        "side": condition.side,
        "magnitude": verdict.is_magnitude,
        "state": verdict.state,
        "kind": score.kind,
        "n": score.n,
        "looks": verdict.n_comparisons,
        "reason": reason(verdict),
        "possible": score.possible,
        "detectable": verdict.mde,
        "needed": verdict.needed,
    }


def reason(verdict: Verdict) -> str:
    """Why a score decides nothing, or ""."""
    return f"undefined: {verdict.score.reason}" if verdict.score.value is None else verdict.score.reason


def breakdowns(run: Run) -> dict[str, Mapping[str, Scores]]:
    """The breakdowns of a run, with the scores of every group, see `breakdowns_of`."""
    return breakdowns_of(run.benchmark, run.scores)


def _groups(run: Run, by: str | None) -> Mapping[str, Scores]:
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


def _measure(run: Run, name: str, groups: Mapping[str, Scores], by: str | None) -> Measure:
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
