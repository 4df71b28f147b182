"""Why a score of a run is undefined: the text beside every null of `scores.json`.

The metrics give NaN where a denominator is 0, and `write_json` makes null of it. Which denominator it was stands in the
counts beside the score; the rules are those of each `qabias.benchmarks.facts.Measure`.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from qabias.benchmarks.base import Benchmark
from qabias.benchmarks.facts import Measure


def reasons(benchmark: Benchmark, scores: Mapping[str, Any]) -> dict[str, str]:
    """Why scores are undefined."""
    measures = {measure.name: measure for measure in benchmark.facts.measures}
    return dict(_reasons(_Known(measures, benchmark.facts.clusters), scores, ""))


class _Known(NamedTuple):
    """What reasons are found in: the scores by name, and what intervals are over with the count of them."""

    measures: Mapping[str, Measure]
    clusters: tuple[str, str]


def _reasons(known: _Known, scores: Mapping[str, Any], at: str) -> Iterator[tuple[str, str]]:
    for name, value in scores.items():
        path = f"{at}/{name.replace('~', '~0').replace('/', '~1')}"
        if _is_undefined(value):
            yield path, _reason(known, scores, name)
        elif name == "ci":
            for score, (low, _) in value.items():
                if _is_undefined(low):
                    yield f"{path}/{score}", _reason_of_interval(known, scores, score)
        elif name == "detectable":
            for score, size in value.items():
                if _is_undefined(size):
                    yield f"{path}/{score}", _reason_of_size(known, scores, score)
        elif name == "spread":
            for score, spread in value.items():
                if _is_undefined(spread):
                    yield f"{path}/{score}", _reason(known, scores, score)
        elif isinstance(value, Mapping):
            yield from _reasons(known, value, path)


def _reason(known: _Known, scores: Mapping[str, Any], name: str) -> str:
    for counts, text in known.measures[name].undefined if name in known.measures else ():
        if sum(scores[count] for count in counts) == 0:
            return text
    return "undefined in one of the runs" if "n_runs" in scores else "a ratio of nothing"


def _reason_of_interval(known: _Known, scores: Mapping[str, Any], name: str) -> str:
    if _is_undefined(scores.get(name)):
        return f"the score is undefined: {_reason(known, scores, name)}"
    what, count = known.clusters
    fewest = known.measures[name].fewest_clusters if name in known.measures else 2
    if scores.get(count, fewest) < fewest:
        return f"an interval needs {fewest} {what}, and there {'is' if scores[count] == 1 else 'are'} {scores[count]}"
    return f"the score is undefined without one of the {what}"


def _reason_of_size(known: _Known, scores: Mapping[str, Any], name: str) -> str:
    # What an older version or another hand wrote may be without it.
    if any(map(_is_undefined, scores.get("ci", {}).get(name, (None,)))):
        return f"no interval: {_reason_of_interval(known, scores, name)}"
    return "even the largest value could have been missed"


def _is_undefined(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))
