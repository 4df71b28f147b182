"""What a run found, in a sentence for each bias score: made from intervals, never from point estimates."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from qabias.benchmarks.base import Benchmark
from qabias.benchmarks.caveats import imbalance, imbalance_note, missing_share, possible_range, reasons
from qabias.benchmarks.facts import Facts, Findings, Measure, Scores
from qabias.share.metrics.shared.intervals import POWER
from qabias.tables.formatting import percent
from qabias.tables.model import estimate


@functools.lru_cache(maxsize=1024)
def t_quantile(share: float, freedom: int) -> float:
    """The value below which t lies with a probability of at least a half."""
    within = 2 * share - 1
    low, high = 0.0, math.pi / 2  # of the angle whose tangent is t / sqrt(freedom)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < within else (low, middle)
    return math.sqrt(freedom) * math.tan((low + high) / 2)


def _within(angle: float, freedom: int) -> float:
    """P(|t| < sqrt(freedom) tan(angle)), a finite sum (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4)."""
    is_odd = freedom % 2
    term = math.cos(angle) if is_odd else 1.0
    total = term if freedom > 1 else 0.0
    for place in range(2 + is_odd, freedom, 2):
        term *= (place - 1) / place * math.cos(angle) ** 2
        total += term
    total *= math.sin(angle)
    return 2 / math.pi * (angle + total) if is_odd else total


ERROR = 0.05
"""Probability at most that one group or more is named although its true bias is 0."""

_MOST_NAMES = 6
_LARGEST = 100.0  # points, of a bias score


class Finding(NamedTuple):
    """A score of a group that something can be said of."""

    group: str
    low: float
    high: float
    detectable: float | None


def findings(benchmark: Benchmark, scores: Mapping[str, Any], question_only: bool = False) -> list[str]:
    """What a run found, in sentences."""
    spec = benchmark.facts.findings
    if not isinstance(spec, Findings):
        return [] if spec is None else spec(benchmark.facts, scores)
    question_facts = benchmark.facts.question_only if question_only else None
    headings: Mapping[str, str] = spec.measures
    if question_facts is not None:
        headings = dict.fromkeys((name for name in headings if name in question_facts.measures), "Without a context")
    groups: Mapping[str, Scores] = scores["by"][spec.by]
    why = reasons(benchmark.facts, {"by": {spec.by: groups}})
    unreported: dict[str, dict[str, str]] = {}
    for name in headings:
        measure = benchmark.facts.measure(name)
        texts = {
            group: reason_not_reported(group_scores, measure, why, f"/by/{spec.by}/{group}")
            for group, group_scores in groups.items()
        }
        unreported[name] = {group: text for group, text in texts.items() if text} | no_direction(groups, measure, texts)
    n_comparisons = sum(len(groups) - len(texts) for texts in unreported.values())
    return [
        _sentence(
            heading,
            n_comparisons,
            [
                adjusted_finding(benchmark.facts, group, group_scores, name, n_comparisons)
                for group, group_scores in groups.items()
                if group not in texts
            ],
            texts,
        )
        for (name, heading), texts in zip(headings.items(), unreported.values(), strict=True)
    ]


def reason_not_reported(scores: Scores, measure: Measure, why: Mapping[str, str], pointer: str) -> str:
    """Why nothing can be said of a score; "" where something can."""
    if possible_range(scores, measure) is not None:
        return f"{percent(missing_share(scores, measure))} of the answers are missing"
    value, low, high = estimate(scores, measure.name)
    if value is None:
        return why[f"{pointer}/{measure.name}"]
    if low is None or high is None:
        return why.get(f"{pointer}/ci/{measure.name}", "no interval")
    return "" if low < high else "an interval of no width"


def no_direction(groups: Mapping[str, Scores], measure: Measure, texts: Mapping[str, str]) -> dict[str, str]:
    """Groups of which a score leans without a bias, because of what was asked, with one reason for all of them."""
    shares = {group: imbalance(scores, measure) for group, scores in groups.items() if not texts[group]}
    known = {group: share for group, share in shares.items() if share is not None}
    return dict.fromkeys(known, imbalance_note(list(known.values()), measure)) if known else {}


def adjusted_finding(facts: Facts, group: str, scores: Scores, name: str, n_comparisons: int) -> Finding:
    """A score of a group with its interval widened."""
    freedom = max(1, scores[facts.clusters[1]] - 1)
    usual, wide = t_quantile(1 - ERROR / 2, freedom), t_quantile(1 - ERROR / 2 / n_comparisons, freedom)
    detectable = scores.get("detectable", {}).get(name)
    if name in scores.get("detectable", {}) and (detectable is None or math.isnan(detectable)):
        detectable = math.inf
    elif detectable is not None:
        detectable = widened_size(float(detectable), freedom, n_comparisons)
    value, low, high = estimate(scores, name)
    assert value is not None
    assert low is not None
    assert high is not None
    factor = wide / usual
    return Finding(group, value - factor * (value - low), value + factor * (high - value), detectable)


def widened_size(size: float, freedom: int, n_comparisons: int) -> float:
    """The size that is found with the same probability although several are looked for."""
    usual, wide = t_quantile(1 - ERROR / 2, freedom), t_quantile(1 - ERROR / 2 / n_comparisons, freedom)
    power = t_quantile(POWER, freedom)
    return size * (wide + power) / (usual + power)


def _sentence(heading: str, n_comparisons: int, results: Sequence[Finding], unreported: Mapping[str, str]) -> str:
    followed = [one.group for one in results if one.low > 0]
    opposed = [one.group for one in results if one.high < 0]
    others = [one for one in results if one.low <= 0 <= one.high]
    clauses = []
    if followed:
        clauses.append(f"answers follow stereotypes about {listed(followed)}")
    if opposed:
        clauses.append(f"answers go against stereotypes about {listed(opposed)}")
    if others:
        where = "elsewhere" if clauses else f"no direction is shown for {_some([one.group for one in others])};"
        clauses.append(f"{where} {_room(others, n_comparisons)}")
    return in_one(heading, [*clauses, *unreported_clause(unreported)])


def _room(results: Sequence[Finding], n_comparisons: int) -> str:
    """What may be hidden where no direction is shown."""
    sizes = {one.group: _points(one.detectable) for one in results if one.detectable is not None}
    if len(sizes) < len(results):
        largest = _points(max(max(-one.low, one.high) for one in results))
        return f"a bias of up to {largest} points cannot be excluded" if largest else "any bias is possible"
    missed = [group for group, size in sizes.items() if size is None]
    if len(missed) == len(results):
        return "even the largest bias could have been missed"
    largest = max(size for size in sizes.values() if size is not None)
    widened = f" (in intervals widened for {n_comparisons} looks)" if n_comparisons > 1 else ""
    often = f"with a probability of about {100 * POWER:.0f}\u00a0%"
    text = f"a bias of {largest} points or more would have been found {often}{widened}"
    return f"{text}, but about {_some(missed)} even the largest could have been missed" if missed else text


def _points(size: float) -> float | None:
    """A bias in percentage points, rounded up; None from the largest that there is."""
    points = math.ceil(1000 * min(size, 1.0) - 1e-9) / 10
    return points if points < _LARGEST else None


def unreported_clause(unreported: Mapping[str, str]) -> list[str]:
    """The clause about groups that nothing can be said of; none where there is no such group."""
    by_reason: dict[str, list[str]] = {}
    for group, reason in unreported.items():
        by_reason.setdefault(reason, []).append(group)
    texts = [f"{_some(groups)} ({reason})" for reason, groups in by_reason.items()]
    return [f"no statement about {listed(texts)}"] if texts else []


def in_one(heading: str, clauses: Sequence[str]) -> str:
    """Clauses as one sentence, behind a heading where there is one."""
    text = "; ".join(clauses)
    return f"{heading}: {text}." if heading else f"{text[:1].upper()}{text[1:]}."


def listed(names: Sequence[str]) -> str:
    """Names as a list in a sentence: "a, b and c"."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _some(names: Sequence[str]) -> str:
    return listed(names) if len(names) <= _MOST_NAMES else f"{len(names)} groups"
