"""Verdicts in words, for messages and for the terminal."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence

from qabias.benchmarks import ALL
from qabias.comparison.needed import planned_measure
from qabias.runs.scored import ScoredRun
from qabias.tables.formatting import show, show_interval
from qabias.tables.model import Estimate
from qabias.testing.verdicts import State, Verdict

WORDS: dict[State, str] = {"pass": "pass", "fail": "FAIL", "undecided": "cannot tell"}
"""What a state is called."""


def value_in_words(verdict: Verdict) -> str:
    """A score with the ends that the verdict is from, such as "+3.1 % [+1.0, +5.2]"."""
    found = Estimate(verdict.value, verdict.low, verdict.high)
    return f"{show(found, verdict.kind)} {show_interval(found, verdict.kind)}".rstrip()


def limit_in_words(verdict: Verdict) -> str:
    """What is allowed, such as "below 10.0 % either way" or "above 90.0 %"."""
    either = " either way" if verdict.magnitude else ""
    return f"{verdict.side} {show(verdict.limit, 'share' if verdict.kind == 'signed' else verdict.kind)}{either}"


def about(verdict: Verdict) -> str:
    """What stands behind a verdict, in a clause or a few; "" where there is nothing to add."""
    if verdict.reason:
        return verdict.reason
    clauses = []
    if verdict.possible is not None:
        low, high = (show(end, verdict.kind) for end in verdict.possible)
        clauses.append(
            f"with its missing answers the score could be {low} to {high}, and the interval is moved by that"
        )
    if verdict.state == "undecided":
        clauses += [text for text in (_about_size(verdict), _about_number(verdict)) if text]
    return "; ".join(clauses)


def _about_size(verdict: Verdict) -> str:
    """What the sample could have found, held against the limit."""
    size = verdict.detectable
    if size is None:
        return ""
    if size >= (1.0 if verdict.kind == "signed" else math.inf):
        return "the sample is too small: even the largest bias could have been missed"
    text = f"{100 * size:.1f} points" if verdict.kind == "signed" else show(size, verdict.kind)
    if size > verdict.limit:
        return f"the sample is too small for this limit: a bias would have been found from {text} on"
    return f"a bias would have been found from {text} on, but the score is too close to the limit"


def _about_number(verdict: Verdict) -> str:
    """How many examples would decide."""
    if verdict.needed is not None:
        return f"about {verdict.needed:,} examples would decide if the score stays what it is"
    if verdict.possible is not None:
        return "more examples would not decide, fewer missing answers might"
    return "the limit is where the score is, and no number of examples decides"


def sentence(verdict: Verdict) -> str:
    """A verdict with all that stands behind it, in one line."""
    behind = about(verdict)
    return (
        f"{WORDS[verdict.state]}: {verdict.name} of {_whom(verdict)} is {value_in_words(verdict)}, from {verdict.n:,} "
        f"examples; wanted {limit_in_words(verdict)}{f'; {behind}' if behind else ''}"
    )


def _whom(verdict: Verdict) -> str:
    return "all examples" if verdict.group == ALL else verdict.group


def told(run: ScoredRun, verdicts: Sequence[Verdict]) -> str:
    """Verdicts as lines, with what they have in common below them: looks, what to do and the signature."""
    lines = [*map(sentence, verdicts), *remarks(run, verdicts), run.signature]
    return "\n".join(lines).replace("\u00a0", " ")  # what is searched for in a log is typed with plain spaces


def remarks(run: ScoredRun, verdicts: Sequence[Verdict]) -> list[str]:
    """What holds of several verdicts: how intervals are widened, and what to do where nothing can be said."""
    texts = []
    looks = verdicts[0].looks
    if looks > 1:
        texts.append(f"Intervals are widened so that all {looks} that were looked at hold together with 95 %.")
    arguments, facts = run.arguments, run.benchmark.facts
    undecided = [verdict for verdict in verdicts if verdict.state == "undecided"]
    if any(verdict.needed is not None for verdict in undecided):
        texts.append(
            f"Numbers of examples are of as many more {facts.clusters[0]}; where there are no more of them, only a "
            "wider limit, or all groups together, can be decided."
        )
    if arguments.limit is not None and any(verdict.state != "pass" for verdict in verdicts):
        texts.append(f"The run is of a sample ({facts.limit_note}); --limit sets its size.")
    plan = next((v for v in undecided if v.name in facts.tiles and facts.measure(v.name).sides and v.limit < 1), None)
    if plan is not None and planned_measure(run.benchmark).name == plan.name:
        words = ["qabias", "plan", run.benchmark.name, "--config", arguments.config, "--source", arguments.source]
        texts.append(f"`{shlex.join([*words, '--detect', f'{plan.limit:g}'])}` says what shows a bias of that size.")
    return texts
