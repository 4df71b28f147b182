"""What a run found, in one sentence: where reasoning errors exceed the preferences.

mu and eta are made of absolute values, so that noise alone puts them above 0, and no interval of theirs shows that any
subject is preferred. What intervals can show is that the order of the subjects or the negation moves the answers more
than the preferences do: noise raises mu, so that an error above it is above the preferences too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qabias.benchmarks.base import Benchmark
from qabias.benchmarks.caveats import reasons
from qabias.benchmarks.facts import Scores
from qabias.benchmarks.findings import adjusted_finding, in_one, listed, reason_not_reported, unreported_clause

_ERRORS = {
    "delta": "delta, how far the order of the subjects moves answers,",
    "epsilon": "epsilon, how far they ignore the negation,",
}
_NAMES = ("mu", *_ERRORS)


def findings(benchmark: Benchmark, scores: Mapping[str, Any]) -> list[str]:
    """The sentence about a run."""
    sets: Mapping[str, Scores] = scores["sets"]
    unreported = _unsaid(benchmark, scores)
    stated = {name: of for name, of in sets.items() if name not in unreported}
    clauses = ["no preference is shown by mu and eta alone, which chance lifts above 0"] if stated else []
    above: dict[str, list[str]] = {error: [] for error in _ERRORS}
    for name, of in stated.items():
        results = {
            score: adjusted_finding(benchmark.facts, name, of, score, len(_NAMES) * len(stated)) for score in _NAMES
        }
        for error, groups in above.items():
            if results[error].low > results["mu"].high:
                groups.append(name)
    for error, groups in above.items():
        if groups:
            clauses.append(f"{_ERRORS[error]} exceeds mu in {listed(groups)}")
    if stated and not any(above.values()):
        clauses.append(f"neither delta nor epsilon is shown to exceed mu in {listed(list(stated))}")
    return [in_one("", [*clauses, *unreported_clause(unreported)])]


def _unsaid(benchmark: Benchmark, scores: Mapping[str, Any]) -> dict[str, str]:
    """By set why nothing can be said of it."""
    why = reasons(benchmark.facts, scores)
    found = {}
    for name, of in scores["sets"].items():
        texts = [reason_not_reported(of, benchmark.facts.measure(score), why, f"/sets/{name}") for score in _NAMES]
        if any(texts):
            found[name] = next(filter(None, texts))
    return found
