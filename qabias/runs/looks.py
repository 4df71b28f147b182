"""Verdicts that stop early: the looks of a run, the error that each may spend, and what each decides.

About these questions: sets are drawn without replacement from the benchmark, group by group. Each look has an interval
for the mean over all sets, and after the last set the score is known (Cochran 1977).
About questions like these: each look is a sample of all templates, with the metric's interval over templates.
Every look spends the same part of the error (Lan and DeMets 1983). Its limit follows from the recursion of Armitage,
McPherson and Rowe (1969) for a Brownian motion that is watched at the looks.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from qabias.benchmarks import ALL, Benchmark, load_benchmark
from qabias.benchmarks.base import LOOK, LOOK_COLUMNS, LOOK_GROUP, LOOK_SET
from qabias.benchmarks.scoring import scores_of
from qabias.errors import QabiasError, arg
from qabias.runs.conditions import Until, read_until
from qabias.runs.folder import RunFile
from qabias.runs.sampling import blocks, draw
from qabias.scores.facts import Measure, Scores
from qabias.scores.judge import (
    ERROR,
    QUESTIONS,
    TEMPLATES,
    WORDS,
    Verdict,
    allowed,
    in_sentence,
    judge,
    sentence,
    t_quantile,
    value_range,
    wanted,
)
from qabias.scores.score import Score, read_score
from qabias.support.stored import read_fields

CORRELATION = 0.05
"""Assumed correlation of the sets of a template, which sets how much information a look has.

Larger ones make verdicts err less often than promised; without any correlation up to 5.8% err instead of 5%.
"""

FIRST = {QUESTIONS: 34, TEMPLATES: 32}
"""Sets of the first look."""

_GROWTH = {QUESTIONS: 1.5, TEMPLATES: 2.0}
_LATEST = {QUESTIONS: 0.9, TEMPLATES: 0.5}  # largest share of the sets at a look before the last
_LEAST_CHANCE = 0.1  # to decide by the last look; below it a run about questions like these stops

_HALVINGS = 40
_NORMAL = NormalDist()
_STEP = 1e-4  # weight of a set that is added to all sets to see how it moves a score


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


def ends_of_looks(n_sets: int, subject: str) -> list[int]:
    """Number of sets at each look but the last, which has all."""
    ends, end = [], float(FIRST[subject])
    while end <= _LATEST[subject] * n_sets:
        ends.append(int(end))
        end *= _GROWTH[subject]
    return ends


@cache
def _quadrature() -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of Gauss and Legendre."""
    nodes, weights = np.polynomial.legendre.leggauss(160)
    return nodes, weights


class Survivors:
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
        nodes, weights = _quadrature()
        to = nodes * edge
        kernel = np.exp(-(((to[:, None] - self._positions) / step) ** 2) / 2.0) / (step * math.sqrt(2.0 * math.pi))
        self._positions, self._mass, self._time = to, weights * edge * (kernel @ self._mass), time


@cache
def boundaries(spends: tuple[float, ...], times: tuple[float, ...]) -> list[float]:
    """The limits whose first crossings have these probabilities, one per look."""
    survivors, limits = Survivors(), []
    for spend, time in zip(spends, times, strict=True):
        low, high = 0.0, 9.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2.0
            low, high = (middle, high) if survivors.crossing_probability(middle, time) > spend else (low, middle)
        limits.append(high)
        survivors.advance(high, time)
    return limits


def limits_of(times: Sequence[float], error: float) -> list[float]:
    """The limit of each look's statistic; with the probability 1 - error none is exceeded.

    Every look spends the same. A later look adds sets to those of the former, so the means have independent increments.
    """
    return boundaries((error / len(times),) * len(times), tuple(times))


def finite_information(ends: Sequence[int], n_sets: int) -> list[float]:
    """Information of the means of growing parts of a list of sets, as shares of that of the last part."""
    times = [end / (n_sets - end) for end in ends]
    return [time / times[-1] for time in times]


CONFIDENCE = 1.0 - ERROR  # level of the intervals of a run without looks

VERDICT_FILE = "verdict.json"
_KEPT = ("share", "confidence", "error", "continued")  # fields of an outcome in that file
STOPPED = "The run stopped early. The CIs of its scores are repeated 95% CIs, which hold at every look."
_FUTILE = f"the chance to decide by the end is below {_LEAST_CHANCE:.0%}"


@dataclass(frozen=True)
class Outcome:
    """The verdicts of a run that looks early.

    Attributes:
        verdicts: One per condition and group.
        share: Share of the planned questions that were asked.
        confidence: Level of the repeated 95% CI of a score: with it, 95% of runs have no look whose interval excludes
            the true score. All intervals of a run that stopped have it.
        error: Probability that any of the verdicts is wrong, at most.
        continued: Whether the run asked further questions after its verdict.
    """

    verdicts: tuple[Verdict, ...]
    share: float
    confidence: float = CONFIDENCE
    error: float = ERROR
    continued: bool = False

    @property
    def stopped_early(self) -> bool:
        """Whether the scores include a part of the planned questions only."""
        return self.share < 1.0

    def asked(self, table: pa.Table) -> np.ndarray:
        """The planned examples that were asked, as a mask."""
        if self.continued:
            return np.ones(table.num_rows, dtype=bool)
        return _until(table, _looks_of(self.verdicts))


def _looks_of(verdicts: Sequence[Verdict]) -> dict[str, int]:
    """The last look of every group."""
    looks: dict[str, int] = {}
    for verdict in verdicts:
        looks[verdict.score.group] = max(verdict.look, looks.get(verdict.score.group, 0))
    return looks


def _until(table: pa.Table, looks: Mapping[str, int]) -> np.ndarray:
    """The rows until a look of their group, as a mask."""
    column = table[LOOK_GROUP].combine_chunks().dictionary_encode()
    last = np.array([looks.get(group, 0) for group in column.dictionary.to_pylist()])
    mask: np.ndarray = table[LOOK].to_numpy() <= last[column.indices.to_numpy()]
    return mask


def levels_of(bounds: Sequence[float]) -> list[float]:
    """Levels of the intervals with these limits of the standard normal statistic."""
    return [math.erf(bound / math.sqrt(2.0)) for bound in bounds]


def ends_of(table: pa.Table) -> list[int]:
    """Number of examples at the end of each look."""
    looks = table[LOOK].to_numpy()
    return np.searchsorted(looks, np.unique(looks), side="right").tolist()


def sizes_at(benchmark: Benchmark, table: pa.Table) -> list[Size]:
    """Sets and templates at the end of each look of a table in the order of looks."""
    looks, (units, strata) = table[LOOK].to_numpy(), benchmark.units(table)
    sizes = []
    for look in np.unique(looks):
        here = looks <= look
        sets = np.bincount(strata[here][np.unique(units[here], return_index=True)[1]])
        sizes.append(Size(int(sets.sum()), float(sets.sum() ** 2 / (sets**2).sum())))
    return sizes


class _Group(NamedTuple):
    """The planned examples of a group, by look: their numbers until each look, and the set of every example."""

    ends: list[int]
    sets: np.ndarray
    times: list[float]
    limits: list[float]
    limits_of_one_score: list[float]

    @property
    def n_sets(self) -> int:
        return int(self.sets.max()) + 1


class StoppingRule:
    """The stopping rule of a run: what to score at which level, fixed by its questions before it begins.

    Attributes:
        until: What it decides.
        groups: The planned examples of every group.
        scored: The scores of the last look of a run without groups, with warnings, by the level of their intervals.
    """

    def __init__(
        self, benchmark: Benchmark, table: pa.Table, until: str, rules: Mapping[str, Any], limit: int | None = None
    ) -> None:
        self._benchmark, self._table, self._rules = benchmark, table, rules
        self.until, self.scored = read_until(benchmark, until), dict[float, tuple[dict[str, Any], tuple[str, ...]]]()
        self._most = limit if limit is not None and self.until.is_finite else table.num_rows
        names = _names(table)
        parts = {str(name): table.filter(pa.array(names == name)) for name in np.unique(names)}
        self._cells = [
            (condition, name)
            for condition, measure in zip(self.until.conditions, self.until.measures(benchmark), strict=True)
            for name, part in parts.items()
            if benchmark.rows_for([measure], part).any()
        ]
        if not self._cells:
            raise QabiasError(
                f"{benchmark.name} has no question for {' or '.join(map(str, self.until.conditions))} here.",
                f"Choose another {arg('config')}, or another score for {arg('until')}.",
            )
        self.groups = {name: self._planned(part) for name, part in parts.items()}

    def _planned(self, part: pa.Table) -> _Group:
        ends, sets = ends_of(part), part[LOOK_SET].to_numpy()
        sizes = sizes_at(self._benchmark, part)
        # A verdict errs on the one side where the truth is not.
        errors = 2.0 * self.until.error / len(self._cells), ERROR
        times = information(sizes)
        if self.until.is_finite:
            counts = [len(np.unique(sets[:end])) for end in ends]
            times = finite_information(counts[:-1], counts[-1])
        return _Group(ends, sets, times, *(limits_of(times, error) for error in errors))

    def rows_at(self, outcome: Outcome | None) -> np.ndarray | None:
        """The examples that are asked until the next look, as a mask; None if no further question can change a verdict.

        Decided groups are not asked again. Of the others, those with the fewest new questions come first, as far as the
        limit of the run reaches.
        """
        looks = _looks_of(outcome.verdicts) if outcome else dict.fromkeys(self.groups, 0)
        is_open = {one.score.group for one in outcome.verdicts if one.is_open} if outcome else set(self.groups)
        ends = {name: [0, *group.ends] for name, group in self.groups.items()}
        new = {name: ends[name][looks[name] + 1] - ends[name][looks[name]] for name in is_open}
        n_asked, then = sum(ends[name][look] for name, look in looks.items()), dict(looks)
        for name in sorted(new, key=lambda name: (new[name], name)):
            if n_asked + new[name] <= self._most or not n_asked:
                n_asked += new[name]
                then[name] += 1
        return None if then == looks else _until(self._table, then)

    def follow(
        self, answers: Callable[[np.ndarray], pa.Table | None], outcome: Outcome | None = None
    ) -> tuple[Outcome | None, bool]:
        """Decide look after look; the last outcome, and whether answers are missing.

        Args:
            answers: From a mask of the examples to their answers; None if some are missing.
            outcome: The outcome of the looks so far, which are not taken again.
        """
        while (rows := self.rows_at(outcome)) is not None:
            there = answers(rows)
            if there is None:
                return outcome, True
            outcome = self._decide(there, rows, outcome)
        return outcome, False

    def _decide(self, answers: pa.Table, rows: np.ndarray, before: Outcome | None) -> Outcome:
        table = self._table.filter(pa.array(rows))
        names, former = _names(table), before.verdicts if before else (None,) * len(self._cells)
        looks, n_rows = _looks_of(before.verdicts) if before else {}, Counter(names.tolist())
        verdicts = list(former)
        for name, group in self.groups.items():
            look = group.ends.index(n_rows[name]) + 1 if name in n_rows else 0
            here = pa.array(names == name)
            if before is None or look > looks[name]:
                judged = self._judge(name, look, table.filter(here), answers.filter(here))
                for place, ((condition, cell), verdict) in enumerate(zip(self._cells, former, strict=True)):
                    if cell == name and (verdict is None or verdict.is_open):
                        verdicts[place] = judged[condition.name]
            looks[name] = look
        level = max(map(self._level, looks.items()))
        share = table.num_rows / self._table.num_rows
        return Outcome(tuple(filter(None, verdicts)), share, level, self.until.error)

    def level_at(self, answered: np.ndarray) -> float:
        """Level of the repeated intervals, from the planned examples that have answers, as a mask."""
        names = _names(self._table)
        looks = {
            name: sum(answered[names == name][:end].all() for end in group.ends) for name, group in self.groups.items()
        }
        return max(map(self._level, looks.items()))

    def _level(self, reached: tuple[str, int]) -> float:
        """Level of the repeated interval of one score."""
        name, look = reached
        limits = self.groups[name].limits_of_one_score[: max(look, 1)]
        return levels_of(limits[-1:])[0] if limits and look <= len(limits) else CONFIDENCE

    def _judge(self, name: str, look: int, part: pa.Table, answers: pa.Table) -> dict[str, Verdict]:
        """The verdicts on a group at a look; its examples until then."""
        group, verdicts, is_finite = self.groups[name], {}, self.until.is_finite
        at: dict[str, Any] = {"look": look, "n_looks": len(group.ends), "subject": self.until.kind}
        at["share"] = part.num_rows / group.ends[-1]
        scores: Scores = {}
        if look:
            level = self._level((name, look)) if is_finite else levels_of(group.limits)[look - 1]
            scores, warned = scores_of(self._benchmark, part, answers, {**self._rules, "confidence": level})
            self.scored = {level: (dict(scores), warned)} if len(self.groups) == 1 else {}
        for condition, measure in zip(self.until.conditions, self.until.measures(self._benchmark), strict=True):
            if (condition, name) not in self._cells:
                continue
            score = Score(None, group=name, reason="not asked", measure=measure)
            if measure.name in scores:
                score = read_score(self._benchmark.facts, scores, measure, name)
            if is_finite and score.value is not None:
                low, high = self._interval(group, look, part, answers, measure)
                score = score._replace(low=low, high=high, reason="")
            verdict = replace(judge(score, condition), **at)
            if not is_finite and verdict.state == "undecided" and look < len(group.ends):
                verdict = replace(verdict, ended=_FUTILE if self._chance(group, look, verdict) < _LEAST_CHANCE else "")
            verdicts[condition.name] = verdict
        return verdicts

    def _interval(
        self, group: _Group, look: int, part: pa.Table, answers: pa.Table, measure: Measure
    ) -> tuple[float, float]:
        """The interval of a score of all planned sets, from a random part of them; all of them have one without width.

        A set counts as far as it moves the score, so its values average to it. Two values at the ends of the scale are
        added, so that equal sets have an interval too (Agresti and Coull 1998).
        """
        names, sets = np.unique(group.sets[: part.num_rows], return_inverse=True)
        counts = self._benchmark.count(part, answers, sets, self._rules).astype(float)
        total, n = counts.sum(axis=0, keepdims=True), len(names)
        moved = np.concatenate([total, total + _STEP * counts])
        value, *others = self._benchmark.scores_from_counts(moved, self._rules)[measure.name].tolist()
        if look == len(group.ends):
            return value, value
        values = value + n * (np.array(others) - value) / _STEP
        ends = [
            end if math.isfinite(end) else pick(values)
            for end, pick in zip(value_range(measure), (min, max), strict=True)
        ]
        values = np.append(values, ends)
        freedom, level = n + 1, levels_of(group.limits)[look - 1]
        error = values.std(ddof=1) * math.sqrt((1.0 - n / group.n_sets) / len(values))
        half = t_quantile(0.5 + level / 2.0, freedom) * error
        return values.mean() - half, values.mean() + half

    def _chance(self, group: _Group, look: int, verdict: Verdict) -> float:
        """The chance that the last look decides, if the score of this look is the true one."""
        value, low, high = verdict.score[:3]
        if value is None or low is None or high is None:
            return 1.0
        time, last = group.times[look - 1], group.limits[-1]
        error = (high - low) / 2.0 / group.limits[look - 1]  # the standard error at this look
        half, spread = last * error * math.sqrt(time), max(error * math.sqrt(1.0 - time), 1e-12)
        bottom, top = allowed(verdict.condition, verdict.measure)
        inside = _NORMAL.cdf((top - half - value) / spread) - _NORMAL.cdf((bottom + half - value) / spread)
        outside = _NORMAL.cdf((bottom - half - value) / spread) + 1.0 - _NORMAL.cdf((top + half - value) / spread)
        return max(0.0, inside) + outside


def order_by_look(benchmark: Benchmark, table: pa.Table, until: Until, seed: int) -> pa.Table:
    """The examples that the conditions need in the order of the looks, with the columns `LOOK_COLUMNS`.

    About these questions, the sets of a group have a random order. About questions like these, the order is that of
    `qabias.runs.sampling.sample`, so that every look is a sample of all templates.
    """
    measures = until.measures(benchmark)
    table = table.filter(pa.array(benchmark.rows_for(measures, table)))
    names = until.groups(benchmark, table)
    looks, sets = np.zeros(table.num_rows, np.int16), np.zeros(table.num_rows, np.int64)
    for number, name in enumerate(np.unique(names)):
        rows = np.flatnonzero(names == name)
        part = table.take(pa.array(rows))
        if not until.is_finite:
            turn = draw(benchmark, part, seed)
        else:
            is_paired = any(measure.balance for measure in measures)
            _, turn = np.unique(
                blocks(benchmark, part, seed) if is_paired else benchmark.units(part)[0], return_inverse=True
            )
            turn = np.random.default_rng((seed, number)).permutation(int(turn.max()) + 1)[turn]
        ends = ends_of_looks(int(turn.max()) + 1, until.kind)
        looks[rows], sets[rows] = np.searchsorted(np.array(ends), turn, side="right") + 1, turn
    order = np.lexsort((names, looks))
    columns = zip(LOOK_COLUMNS, (pa.array(looks), pa.array(names).dictionary_encode(), pa.array(sets)), strict=True)
    for name, column in columns:
        table = table.append_column(name, column)
    return table.take(pa.array(order))


def _names(table: pa.Table) -> np.ndarray:
    return np.array(table[LOOK_GROUP].to_pylist(), dtype=str)


MOST_LINES = 3  # verdicts of one kind that have a line each


def verdict_lines(outcome: Outcome) -> list[str]:
    """The verdicts as sentences with their intervals, and the error that they promise."""
    lines = []
    kinds = dict.fromkeys((one.condition, one.state) for one in outcome.verdicts)
    order = [state for state in WORDS if state != "pass"] + ["pass"]
    for condition, state in sorted(kinds, key=lambda kind: order.index(kind[1])):
        own = [one for one in outcome.verdicts if (one.condition, one.state) == (condition, state)]
        title = in_sentence(own[0].measure)
        if len(own) > MOST_LINES:
            n = sum(one.condition == condition for one in outcome.verdicts)
            largest = max(own, key=lambda one: abs(one.score.value or 0.0))
            share = float(np.mean([one.share for one in own]))
            lines.append(sentence(replace(largest, share=share), f"{title} of {len(own)} of {n} groups", "largest: "))
        else:
            groups = [("" if one.score.group == ALL else f" of {one.score.group}") for one in own]
            lines += [sentence(one, f"{title}{group}") for one, group in zip(own, groups, strict=True)]
    lines.append(f"In at most {100 * outcome.error:.2g}% of such runs is any verdict wrong.")
    if outcome.continued:
        lines.append(
            "The run continued after its verdict. Its scores are fixed-sample scores of all planned questions."
        )
    elif outcome.stopped_early:
        lines.append(STOPPED)
        if len({one.share for one in outcome.verdicts}) > 1:
            lines.append("Different shares of the groups were asked, so the overall scores weight them unequally.")
    return lines


def outcome_content(outcome: Outcome) -> dict[str, Any]:
    """Content of `verdict.json`."""
    verdicts = [
        {
            "name": one.condition.name,
            "title": in_sentence(one.measure),
            "group": one.score.group,
            "about": one.subject,
            "wanted": wanted(one),
            "kind": one.measure.kind,
            "state": one.state,
            "look": one.look,
            "n_looks": one.n_looks,
            "share": one.share,
            "value": one.score.value,
            "low": one.low,
            "high": one.high,
            "missing": one.score.missing,
            "reason": one.score.reason,
            "ended": one.ended,
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
    conditions = {one.name: one for one in read_until(benchmark, run.arguments.until).conditions}
    verdicts = []
    try:
        for one in stored["decisions"]:
            condition, ends = conditions[one["name"]], (one["low"], one["high"])
            score = Score(one["value"], *ends, missing=one["missing"], group=one["group"])
            score = score._replace(measure=benchmark.facts.measure(condition.name), reason=one["reason"])
            at = {name: one[name] for name in ("look", "n_looks", "share", "ended")} | {"subject": one["about"]}
            verdicts.append(replace(Verdict(score, condition, one["state"], *ends), **at))
        return Outcome(tuple(verdicts), *(stored[name] for name in _KEPT))
    except (KeyError, TypeError) as error:
        raise QabiasError(f"{path} is not a verdict file of this version: {error}.", f"{remedy}.") from error
