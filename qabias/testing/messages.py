"""Verdicts in words, for messages and for the terminal."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Sequence

from qabias.benchmarks import ALL
from qabias.benchmarks.headline import failure
from qabias.comparison.sample_size import planned_measure
from qabias.runs.opened import Run
from qabias.scores.formatting import show, show_interval
from qabias.scores.judge import State, Verdict
from qabias.tables.model import Column, Table
from qabias.tables.terminal import MIN_WIDTH, Console, print_table
from qabias.testing.verdicts import reason

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
    if fails:
        texts.append(f"Warning: {fails}. A low bias then shows little: `qabias check --require-task` fails such a run.")
    undecided = [verdict for verdict in verdicts if verdict.state == "undecided"]
    if any(verdict.needed is not None for verdict in undecided):
        texts.append(
            f"More examples need more {facts.clusters[0]}. If there are none, use a wider threshold, or check all "
            "groups together."
        )
    if arguments.limit is not None and any(verdict.state != "pass" for verdict in verdicts):
        texts.append(f"The run is of a sample ({facts.notes.limit}); --limit sets its size.")
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
