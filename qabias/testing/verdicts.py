"""Verdicts on thresholds, for every score and group: pass, fail or inconclusive, and in words."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from qabias.benchmarks import ALL
from qabias.benchmarks.base import Benchmark
from qabias.benchmarks.headline import FAILED, failure
from qabias.benchmarks.scoring import breakdowns_of
from qabias.comparison.sample_size import planned_measure
from qabias.errors import QabiasError, arg
from qabias.runs.opened import Run
from qabias.scores.facts import Measure, Scores
from qabias.scores.formatting import show, show_interval
from qabias.scores.judge import Condition, State, Verdict, check_condition, judge
from qabias.scores.score import read_score
from qabias.support.suggest import unknown
from qabias.tables.model import Column, Table
from qabias.tables.terminal import MIN_WIDTH, Console, print_table


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
            f"Add {arg('by')} {next(iter(there))}, for a verdict on every {next(iter(there))}.",
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


WORDS: dict[State, str] = {"pass": "pass", "fail": "FAIL", "undecided": "inconclusive"}

_COLUMNS = (
    Column("name", "score", "text"),
    Column("group", "group", "text"),
    Column("state", "verdict", "text"),
    Column("value", "value, [interval]", "text"),
    Column("limit", "wanted", "text"),
    Column("n", "examples", "count"),
)


def value_in_words(verdict: Verdict) -> str:
    """Format a score with the verdict's interval, such as "+3.1 % [+1.0, +5.2]"."""
    kind = verdict.measure.kind
    interval = "" if verdict.score.reason else show_interval(verdict.shown, kind)
    return f"{show(verdict.score, kind)} {interval}".rstrip()


def limit_in_words(verdict: Verdict) -> str:
    """Format the allowed values, such as "within ±10.0 %" or "above 90.0 %"."""
    kind, side = verdict.measure.kind, "within ±" if verdict.is_magnitude else f"{verdict.condition.side} "
    return f"{side}{show(verdict.condition.value, 'share' if kind == 'signed' else kind)}"


def explain_verdict(verdict: Verdict) -> str:
    """Explain a verdict in one or more clauses; "" if it needs none."""
    if verdict.score.reason:
        return reason(verdict)
    clauses = []
    if verdict.score.possible is not None:
        low, high = (show(end, verdict.measure.kind) for end in verdict.score.possible)
        clauses.append(f"missing answers could move the score from {low} to {high}, which the interval includes")
    if verdict.state == "undecided":
        clauses += [text for text in (_size_clause(verdict), _number_clause(verdict)) if text]
    return "; ".join(clauses)


def _size_clause(verdict: Verdict) -> str:
    """Compare the minimum detectable effect with the limit."""
    size, is_bias = verdict.mde, verdict.measure.kind == "signed"
    if size is None:
        return ""
    if size >= (1.0 if is_bias else math.inf):
        return "the sample is too small to detect any bias"
    text = f"{100 * size:.1f} points" if is_bias else show(size, verdict.measure.kind)
    if size > verdict.condition.value:
        return f"the sample is too small for this threshold: it can only detect {text} or more"
    return f"it could detect {text} or more, but the score is too close to the threshold"


def _number_clause(verdict: Verdict) -> str:
    """Name the number of examples that would decide."""
    if verdict.needed is not None:
        return f"about {verdict.needed:,} examples would decide if the score stays the same"
    return f"more examples would not decide{'' if verdict.score.possible is None else ', fewer missing answers might'}"


def _sentence(verdict: Verdict) -> str:
    """Format a verdict and its explanation as one line."""
    behind, score = explain_verdict(verdict), verdict.score
    group = "all examples" if score.group == ALL else score.group
    return (
        f"{WORDS[verdict.state]}: {verdict.condition.name} of {group} is {value_in_words(verdict)}, from {score.n:,} "
        f"examples; wanted {limit_in_words(verdict)}{f'; {behind}' if behind else ''}"
    )


def format_verdicts(run: Run, verdicts: Sequence[Verdict]) -> str:
    """Format verdicts as lines, with remarks and signature below."""
    lines = [*map(_sentence, verdicts), *remarks(run, verdicts), run.signature]
    return "\n".join(lines).replace("\u00a0", " ")  # people search logs with plain spaces


def remarks(run: Run, verdicts: Sequence[Verdict]) -> list[str]:
    """Return the common remarks: the adjustment, and what to do if nothing can be decided."""
    texts = []
    n_comparisons = verdicts[0].n_comparisons
    if n_comparisons > 1:
        texts.append(f"Intervals are Bonferroni-adjusted for {n_comparisons} comparisons (95% together).")
    arguments, facts = run.arguments, run.benchmark.facts
    fails = "" if run.is_question_only else failure(facts, run.scores, arguments.model or "the model")
    if fails and task_condition(run.benchmark) not in [verdict.condition for verdict in verdicts]:
        texts.append(f"Warning: {fails}. A low bias then shows little: `qabias check --require-task` fails such a run.")
    undecided = [verdict for verdict in verdicts if verdict.state == "undecided"]
    if any(verdict.needed is not None for verdict in undecided):
        texts.append(
            f"More examples need more {facts.clusters[0]}. If there are none, use a wider threshold, or check all "
            "groups together."
        )
    if arguments.limit is not None and any(verdict.state != "pass" for verdict in verdicts):
        texts.append(
            f"The run is a sample of at most {arguments.limit:,} examples. For more, run with a larger --limit."
        )
    known = (one.condition for one in undecided if one.condition.name in facts.tiles and one.measure.sides)
    plan = next((condition for condition in known if condition.value < 1), None)
    if plan is not None and planned_measure(run.benchmark).name == plan.name:
        words = ["qabias", "plan", run.benchmark.name, "--config", arguments.config, "--source", arguments.source]
        texts.append(
            f"`{shlex.join([*words, '--detect', f'{plan.value:g}'])}` estimates the sample size for such a bias."
        )
    return texts


def print_verdicts(run: Run, verdicts: Sequence[Verdict]) -> None:
    """Print a line per verdict, then the explanations and the counts."""
    console = Console()
    console.width = max(console.width, MIN_WIDTH)
    rows = tuple(
        (one.condition.name, one.score.group, WORDS[one.state], value_in_words(one), limit_in_words(one), one.score.n)
        for one in verdicts
    )
    print_table(Table("verdicts", run.folder.name, "", "", _COLUMNS, rows), console)
    behind = [
        f"{one.condition.name} of {one.score.group}: {text}" for one in verdicts if (text := explain_verdict(one))
    ]
    counts = Counter(one.state for one in verdicts)
    total = ", ".join(f"{counts[state]} {word}" for state, word in WORDS.items() if counts[state])
    for text in (*behind, *remarks(run, verdicts), run.signature, total):
        console.print(text, markup=False, highlight=False, soft_wrap=True)
