"""Verdicts that stop early: the looks of a run, the error that each may spend, and what each decides.

The error is spent as by O'Brien and Fleming, with the function of Lan and DeMets (1983). A look's level follows from
the recursion of Armitage, McPherson and Rowe (1969) for a Brownian motion that is watched at the looks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from qabias.benchmarks import ALL, Benchmark, load_benchmark
from qabias.benchmarks.base import LOOK
from qabias.benchmarks.scoring import any_answers, breakdowns_of, scores_of
from qabias.errors import QabiasError, arg
from qabias.runs.folder import RunFile
from qabias.scores.facts import Scores
from qabias.scores.judge import (
    ERROR,
    Condition,
    Verdict,
    in_sentence,
    judge,
    parse_condition,
    sentence,
    wanted,
)
from qabias.scores.score import Score, read_score
from qabias.support.stored import read_fields
from qabias.support.suggest import unknown

CORRELATION = 0.25
"""Assumed correlation of the sets of a template, which sets how much information a look has."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(160)
_HALVINGS = 40
_NORMAL = NormalDist()


class Size(NamedTuple):
    """What a look has: its number of sets, and its effective number of templates (Kish 1965)."""

    sets: int
    templates: float

    @property
    def variance(self) -> float:
        """The variance of a mean over the sets, relative to one set: r / templates + (1 - r) / sets."""
        return CORRELATION / self.templates + (1.0 - CORRELATION) / self.sets


def information(sizes: Sequence[Size]) -> list[float]:
    """Share of the final information at each look."""
    return [sizes[-1].variance / size.variance for size in sizes]


def spent(time: float, error: float) -> float:
    """The error spent until a share of the information: 4 - 4 Phi(z / sqrt(time)), with Phi(z) = 1 - error / 4.

    Each of the two sides spends half as a one-sided test of O'Brien and Fleming does.
    """
    return 2.0 * math.erfc(-_NORMAL.inv_cdf(error / 4.0) / math.sqrt(2.0 * time))


class _Survivors:
    """The statistics that have exceeded no limit yet: their density, of Brownian motion at the last look."""

    def __init__(self) -> None:
        self._positions, self._mass, self._time = np.zeros(1), np.ones(1), 0.0

    def crossing_probability(self, limit: float, time: float) -> float:
        """Probability to exceed a limit in magnitude at a time, for the first time."""
        edge, scale = limit * math.sqrt(time), math.sqrt(2.0 * (time - self._time))
        outside = [math.erfc((edge - x) / scale) + math.erfc((edge + x) / scale) for x in self._positions]
        return float(self._mass @ np.array(outside)) / 2.0

    def advance(self, limit: float, time: float) -> None:
        """Continue with those within a limit at a time."""
        edge, step = limit * math.sqrt(time), math.sqrt(time - self._time)
        to = _NODES * edge
        kernel = np.exp(-(((to[:, None] - self._positions) / step) ** 2) / 2.0) / (step * math.sqrt(2.0 * math.pi))
        self._positions, self._mass, self._time = to, _WEIGHTS * edge * (kernel @ self._mass), time


def crossing(limits: Sequence[float], times: Sequence[float]) -> list[float]:
    """Probability that a standard normal statistic first exceeds its limit in magnitude, at each look.

    Args:
        limits: One limit per look, above 0.
        times: Increasing; statistics of two looks have the correlation sqrt(earlier / later).
    """
    survivors, result = _Survivors(), []
    for limit, time in zip(limits, times, strict=True):
        result.append(survivors.crossing_probability(limit, time))
        survivors.advance(limit, time)
    return result


def boundaries(spends: Sequence[float], times: Sequence[float]) -> list[float]:
    """The limits whose first crossings have these probabilities, one per look."""
    survivors, limits = _Survivors(), []
    for spend, time in zip(spends, times, strict=True):
        low, high = 0.0, 9.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2.0
            low, high = (middle, high) if survivors.crossing_probability(middle, time) > spend else (low, middle)
        limits.append(high)
        survivors.advance(high, time)
    return limits


def limits_of(sizes: Sequence[Size], error: float) -> list[float]:
    """The limit of each look's statistic; with the probability 1 - error none is exceeded.

    Statistics of two looks are taken to be as loosely tied as their numbers of questions. Templates tie them more
    closely, which only makes the intervals wider than needed.
    """
    totals = [spent(time, error) for time in information(sizes)]
    spends = np.diff(totals, prepend=0.0).tolist()
    return boundaries(spends, [size.sets / sizes[-1].sets for size in sizes])


CONFIDENCE = 1.0 - ERROR  # level of the intervals of a run without looks

MOST_EARLY = 0.5
"""Largest share of the examples at a look before the last."""

VERDICT_FILE = "verdict.json"
_KEPT = ("look", "n_looks", "confidence", "continued")  # fields of an outcome in that file
STOPPED = "The run stopped early. All its CIs are repeated 95% CIs, which hold at every look."


@dataclass(frozen=True)
class Outcome:
    """The verdicts of a run that looks early.

    Attributes:
        verdicts: One per condition and group.
        look: Last look that the scores include.
        n_looks: Number of planned looks.
        confidence: Level of the repeated 95% CI of a score at this look: with it, 95% of runs have no look whose
            interval excludes the true score. All intervals of a run that stopped have it.
        continued: Whether the run asked further questions after its verdict.
    """

    verdicts: tuple[Verdict, ...]
    look: int
    n_looks: int
    confidence: float = CONFIDENCE
    continued: bool = False

    @property
    def is_over(self) -> bool:
        """Whether no further question can change a verdict."""
        return self.look == self.n_looks or all(one.state != "undecided" for one in self.verdicts)


def canonical(benchmark: Benchmark, conditions: Sequence[str], by: str | None) -> str:
    """The conditions of a run in one text: "bias_ambig<0.1 accuracy_ambig>0.9 by category"."""
    if benchmark.facts.headline is None or not benchmark.facts.headline.biases:
        raise QabiasError(f"{benchmark.name} has no score for {arg('until')}.", f"Remove {arg('until')}.")
    parsed = [parse_condition(text, benchmark.facts.measures) for text in conditions]
    words = list(map(str, parsed))
    if len({condition.name for condition in parsed}) < len(words):
        raise QabiasError(f"{arg('until')} has two conditions for one score.", "Give one for each score.")
    return " ".join([*words, *(["by", by] if by else [])])


def read_conditions(benchmark: Benchmark, until: str) -> tuple[list[Condition], str | None]:
    """The conditions and the breakdown of a text of `canonical`."""
    words, _, by = until.partition(" by ")
    return [parse_condition(word, benchmark.facts.measures) for word in words.split()], by or None


def ends_of(table: pa.Table) -> list[int]:
    """Number of examples at the end of each look."""
    looks = table[LOOK].to_numpy()
    return np.searchsorted(looks, np.unique(looks), side="right").tolist()


def sizes_at(benchmark: Benchmark, table: pa.Table, ends: Sequence[int]) -> list[Size]:
    """Sets and templates at the end of each look."""
    units, strata = benchmark.units(table)
    sizes = []
    for end in ends:
        sets = np.bincount(strata[:end][np.unique(units[:end], return_index=True)[1]])
        sizes.append(Size(int(sets.sum()), float(sets.sum() ** 2 / (sets**2).sum())))
    return sizes


def levels_of(bounds: Sequence[float]) -> list[float]:
    """Levels of the intervals with these limits of the standard normal statistic."""
    return [math.erf(bound / math.sqrt(2.0)) for bound in bounds]


class StoppingRule:
    """The stopping rule of a run: what to score at which level, fixed by its questions before it begins.

    Attributes:
        ends: Number of examples until the end of each look.
        sizes: Sets and templates at each look.
        bounds: Limit of the standard normal statistic at each look.
        scored: The scores of the last look, with warnings, by the level of their intervals.
    """

    def __init__(self, benchmark: Benchmark, table: pa.Table, until: str, rules: Mapping[str, Any]) -> None:
        self._benchmark, self._table, self._rules = benchmark, table, rules
        self._conditions, self._by = read_conditions(benchmark, until)
        self.ends = ends_of(table)
        self.sizes = sizes_at(benchmark, table, self.ends)
        possible, _ = self._score(any_answers(benchmark.answer_columns, table.num_rows), len(self.ends), None)
        cells = self._groups(possible)
        self._cells = [(condition, group) for condition in self._conditions for group in cells]
        for condition in self._conditions:
            if not any(condition.name in scores for scores in cells.values()):
                raise QabiasError(
                    f"{benchmark.name} has no {condition.name} {f'by {self._by}' if self._by else 'of all examples'}.",
                    f"Choose another score for {arg('until')}.",
                )
        self.bounds = limits_of(self.sizes, ERROR / len(self._cells))
        self.scored: dict[float, tuple[dict[str, Any], tuple[str, ...]]] = {}
        self._levels, self._of_one_score = levels_of(self.bounds), levels_of(limits_of(self.sizes, ERROR))

    def follow(
        self, answers: Callable[[int], pa.Table | None], outcome: Outcome | None = None
    ) -> tuple[Outcome | None, bool]:
        """Decide look after look; the last outcome, and whether answers are missing.

        Args:
            answers: From a look to the answers until its end; None if some are missing.
            outcome: The outcome of the looks so far, which are not taken again.
        """
        while outcome is None or not outcome.is_over:
            look = outcome.look + 1 if outcome else 1
            there = answers(look)
            if there is None:
                return outcome, True
            outcome = self._decide(there, look, outcome)
        return outcome, False

    def _decide(self, answers: pa.Table, look: int, before: Outcome | None) -> Outcome:
        level = self._levels[look - 1]
        self.scored = {level: self._score(answers, look, level)}
        groups = self._groups(self.scored[level][0])
        at: dict[str, Any] = {"look": look, "n_looks": len(self.ends), "share": self.ends[look - 1] / self.ends[-1]}
        former = before.verdicts if before else (None,) * len(self._cells)
        verdicts = tuple(
            replace(judge(self._read(groups.get(group, {}), condition.name, group), condition), **at)
            if verdict is None or verdict.state == "undecided"
            else verdict
            for (condition, group), verdict in zip(self._cells, former, strict=True)
        )
        return Outcome(verdicts, look, len(self.ends), self._of_one_score[look - 1])

    def _read(self, scores: Scores, name: str, group: str) -> Score:
        measure = self._benchmark.facts.measure(name)
        if name not in scores:
            return Score(None, group=group, reason="no such examples yet", measure=measure)
        return read_score(self._benchmark.facts, scores, measure, group)

    def _score(self, answers: pa.Table, look: int, level: float | None) -> tuple[dict[str, Any], tuple[str, ...]]:
        table = self._table.slice(0, self.ends[look - 1])
        options: Mapping[str, Any] = {**self._rules, "confidence": level}
        return scores_of(self._benchmark, table, answers, options)

    def _groups(self, scores: Mapping[str, Any]) -> Mapping[str, Scores]:
        if self._by is None:
            return {ALL: scores}
        known = breakdowns_of(self._benchmark, scores)
        if self._by not in known:
            raise unknown("breakdown", self._by, known, arg("by"))
        return known[self._by]


def verdict_lines(outcome: Outcome) -> list[str]:
    """The verdicts as sentences, with the share of the questions and the repeated intervals."""
    lines = []
    for verdict in outcome.verdicts:
        group = verdict.score.group
        lines.append(sentence(verdict, in_sentence(verdict.measure) + ("" if group == ALL else f" of {group}")))
    if outcome.continued:
        lines.append(
            "The run continued after its verdict. Its scores are fixed-sample scores of all planned questions."
        )
    elif outcome.look < outcome.n_looks:
        lines.append(STOPPED)
    return lines


def outcome_content(outcome: Outcome) -> dict[str, Any]:
    """Content of `verdict.json`."""
    verdicts = [
        {
            "name": one.condition.name,
            "title": in_sentence(one.measure),
            "group": one.score.group,
            "wanted": wanted(one),
            "kind": one.measure.kind,
            "state": one.state,
            "look": one.look,
            "share": one.share,
            "value": one.score.value,
            "low": one.low,
            "high": one.high,
            "missing": one.score.missing,
            "reason": one.score.reason,
        }
        for one in outcome.verdicts
    ]
    return {"decisions": verdicts, **{name: getattr(outcome, name) for name in _KEPT}}


def read_outcome(run: RunFile) -> Outcome | None:
    """Read `verdict.json`; None if the run has none."""
    if not run.arguments.until:
        return None
    path, remedy = run.folder / VERDICT_FILE, "Run the same command again"
    try:
        stored = read_fields(path, remedy)
    except FileNotFoundError:
        return None
    benchmark = load_benchmark(run.arguments.benchmark)
    conditions = {one.name: one for one in read_conditions(benchmark, run.arguments.until)[0]}
    verdicts = []
    try:
        for one in stored["decisions"]:
            condition, ends = conditions[one["name"]], (one["low"], one["high"])
            score = Score(one["value"], *ends, missing=one["missing"], group=one["group"])
            score = score._replace(measure=benchmark.facts.measure(condition.name), reason=one["reason"])
            verdict = Verdict(score, condition, one["state"], *ends)
            verdicts.append(replace(verdict, look=one["look"], n_looks=stored["n_looks"], share=one["share"]))
        return Outcome(tuple(verdicts), *(stored[name] for name in _KEPT))
    except (KeyError, TypeError) as error:
        raise QabiasError(f"{path} is not a verdict file of this version: {error}.", f"{remedy}.") from error
