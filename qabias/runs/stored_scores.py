"""Scores as `scores.json` holds them: checked when they are read, so that no command meets a text for a number."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from qabias.benchmarks.facts import Facts
from qabias.support.stored import Stored

_SIGNATURE = "signature"
_PAIRS = ("ci", "range")
"""What holds the two ends of something by the name of a score."""

_OBJECTS = ("detectable", "label_share", "sets")
"""What holds further scores by their names."""


def check_scores(scores: Stored, facts: Facts) -> None:
    """Refuse scores that are not of the shape that a benchmark's metric gives."""
    numbers = {measure.name for measure in facts.measures}
    counts = {name for measure in facts.measures for name in measure.counts} | {facts.clusters[1], *facts.counts}
    _check(scores, {**dict.fromkeys(numbers, Stored.number_or_none), **dict.fromkeys(counts, Stored.count)})


def _check(scores: Stored, known: Mapping[str, Callable[[Stored], object]]) -> None:
    for name, value in scores.fields():
        if name == _SIGNATURE:
            value.text()
        elif name in _PAIRS:
            for _, pair in value.fields():
                _check_pair(pair)
        elif name == "by":
            for _, groups in value.fields():
                for _, group in groups.fields():
                    _check(group, known)
        elif name in known:
            known[name](value)
        elif name in _OBJECTS or isinstance(value.value, dict):
            _check(value, known)
        elif not isinstance(value.value, list):
            _check_unknown(name, value)


def _check_unknown(name: str, value: Stored) -> None:
    """Refuse what is neither a count nor a score, where the benchmark says of neither what it is."""
    if name == "n" or name.startswith("n_"):
        value.count()
    else:
        value.number_or_none()


def _check_pair(pair: Stored) -> None:
    ends = pair.items()
    if len(ends) != 2:
        pair.refuse("a pair")
    for end in ends:
        end.number_or_none()
