"""Expected number of questions of a run that may stop early, at several true values."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from qabias.benchmarks import load_benchmark
from qabias.comparison.sample_size import CORRELATION, ERRING
from qabias.errors import QabiasError, arg
from qabias.runs.arguments import RunArguments
from qabias.runs.looks import StoppingRule, read_conditions
from qabias.runs.question import load_examples
from qabias.runs.spending import information
from qabias.scores.facts import Measure
from qabias.scores.judge import Condition, allowed, has_sign

_PATHS = 20_000
_TIMES = (0.0, 0.5, 0.75, 1.0, 1.5, 2.0)


class Expected(NamedTuple):
    """What a run takes at a true value of its score: mean questions, their share, and shares of the verdicts."""

    truth: float
    questions: float
    share: float
    passed: float
    failed: float


def expected_questions(arguments: RunArguments, seed: int = 0) -> list[Expected]:
    """Simulate the stopping rule of a run with one condition, at true values of 0 to 2 times the threshold.

    Answers err and correlate as `qabias.comparison.sample_size` assumes. A score is taken to be normal.

    Raises:
        QabiasError: If there are several conditions, or a breakdown.
    """
    benchmark = load_benchmark(arguments.benchmark)
    conditions, by = read_conditions(benchmark, arguments.until)
    if len(conditions) > 1 or by:
        raise QabiasError("plan takes one condition for all examples.", f"Give one {arg('until')}.")
    condition, measure = conditions[0], benchmark.facts.measure(conditions[0].name)
    rule = StoppingRule(benchmark, load_examples(arguments).table, arguments.until, {})
    times, bounds = np.array(information(rule.sizes)), np.array(rule.bounds)
    # Half of a set of four counts for a score of one context.
    size = rule.sizes[-1]
    deviation = np.sqrt(ERRING * (CORRELATION / size.templates + (1.0 - CORRELATION) / (2.0 * size.sets)))
    steps = np.random.default_rng(seed).normal(size=(_PATHS, len(times))) * np.sqrt(np.diff(times, prepend=0.0))
    noise, half = deviation * np.cumsum(steps, axis=1) / times, deviation * bounds / np.sqrt(times)
    ends = np.array(rule.ends)
    result = []
    for truth in _truths(condition, measure):
        low, high = truth + noise - half, truth + noise + half
        bottom, top = allowed(condition, measure)
        passed, failed = (low > bottom) & (high < top), (high <= bottom) | (low >= top)
        decided = passed | failed
        first = np.where(decided.any(axis=1), decided.argmax(axis=1), len(times) - 1)
        here = np.arange(_PATHS), first
        mean = float(ends[first].mean())
        result.append(Expected(truth, mean, mean / ends[-1], float(passed[here].mean()), float(failed[here].mean())))
    return result


def _truths(condition: Condition, measure: Measure) -> list[float]:
    """True values around a threshold, within the range of the score."""
    if has_sign(measure):
        return [times * condition.value for times in _TIMES if times * condition.value <= 1.0]
    values = (condition.value + step for step in (-0.1, -0.05, 0.0, 0.05, 0.1))
    return [value for value in values if 0.0 <= value <= 1.0]
