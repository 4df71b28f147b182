"""Verdicts that stop early: the looks of a run, and what each decides."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from qabias.benchmarks import ALL, Benchmark
from qabias.benchmarks.base import LOOK
from qabias.benchmarks.caveats import estimate, imbalance, imbalance_note, missing_share, possible_range
from qabias.benchmarks.facts import Measure, Scores
from qabias.benchmarks.headline import Headline, Verdict, headline
from qabias.benchmarks.scoring import any_answers
from qabias.benchmarks.thresholds import (
    Limit,
    allowed,
    breakdowns_of,
    condition_text,
    has_sign,
    judged,
    parse_condition,
    value_range,
)
from qabias.errors import QabiasError, arg
from qabias.runs.scored import ScoredRun
from qabias.runs.spending import Size, limits_of
from qabias.support.stored import read_stored, write_stored
from qabias.support.suggest import unknown
from qabias.tables.formatting import percent, show, show_interval
from qabias.tables.model import Estimate

ERROR = 0.05
"""Probability that a verdict of a run is wrong, over all looks, conditions and groups."""

CONFIDENCE = 1.0 - ERROR  # level of the intervals of a run without looks

MOST_EARLY = 0.5
"""Largest share of the examples at a look before the last."""

VERDICT_FILE = "verdict.json"
STOPPED = "The run stopped early. All its CIs are repeated 95% CIs, which hold at every look."


@dataclass(frozen=True)
class Decision:
    """The verdict on one condition in one group.

    Attributes:
        name: The score.
        title: Its title in a sentence.
        group: The group, or all examples.
        wanted: The condition.
        kind: Kind of the score, see `qabias.tables.model.Column`.
        state: The verdict.
        look: Look of the verdict, from 1.
        share: Share of the questions asked until then.
        value: The score at this look; None if undefined.
        low: Lower end of the repeated interval; None without one.
        high: Upper end.
        missing: Share of missing answers among the score's examples at this look.
        reason: Why the score decides nothing, or "".
    """

    name: str
    title: str
    group: str
    wanted: str
    kind: str
    state: str
    look: int
    share: float
    value: float | None
    low: float | None
    high: float | None
    missing: float = 0.0
    reason: str = ""


@dataclass(frozen=True)
class Outcome:
    """The verdicts of a run that looks early.

    Attributes:
        decisions: One per condition and group.
        look: Last look that the scores include.
        n_looks: Number of planned looks.
        confidence: Level of the repeated 95% CI of a score at this look: with it, 95% of runs have no look whose
            interval excludes the true score. All intervals of a run that stopped have it.
        continued: Whether the run asked further questions after its verdict.
    """

    decisions: tuple[Decision, ...]
    look: int
    n_looks: int
    confidence: float = CONFIDENCE
    continued: bool = False

    @property
    def is_over(self) -> bool:
        """Whether no further question can change a verdict."""
        return self.look == self.n_looks or all(one.state != "undecided" for one in self.decisions)


def canonical(benchmark: Benchmark, conditions: Sequence[str], by: str | None) -> str:
    """The conditions of a run in one text: "bias_ambig<0.1 accuracy_ambig>0.9 by category"."""
    if benchmark.facts.headline is None or not benchmark.facts.headline.biases:
        raise QabiasError(f"{benchmark.name} has no score for {arg('until')}.", f"Remove {arg('until')}.")
    limits = [parse_condition(text, benchmark.facts.measures) for text in conditions]
    words = [condition_text(limit) for limit in limits]
    if len({limit.name for limit in limits}) < len(words):
        raise QabiasError(f"{arg('until')} has two conditions for one score.", "Give one for each score.")
    return " ".join([*words, *(["by", by] if by else [])])


def read_conditions(benchmark: Benchmark, until: str) -> tuple[list[Limit], str | None]:
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


class Rule:
    """The stopping rule of a run: what to score at which level, fixed by its questions before it begins.

    Attributes:
        ends: Number of examples until the end of each look.
        sizes: Sets and templates at each look.
        bounds: Limit of the standard normal statistic at each look.
    """

    def __init__(self, benchmark: Benchmark, table: pa.Table, until: str, rules: Mapping[str, Any]) -> None:
        self._benchmark, self._table, self._rules = benchmark, table, rules
        self._limits, self._by = read_conditions(benchmark, until)
        self.ends = ends_of(table)
        self.sizes = sizes_at(benchmark, table, self.ends)
        possible = self._score(any_answers(benchmark.answer_columns, table.num_rows), len(self.ends), CONFIDENCE)
        cells = self._groups(possible)
        self._cells = [(limit, group) for limit in self._limits for group in cells]
        for limit in self._limits:
            if not any(limit.name in scores for scores in cells.values()):
                raise QabiasError(
                    f"{benchmark.name} has no {limit.name} {f'by {self._by}' if self._by else 'of all examples'}.",
                    f"Choose another score for {arg('until')}.",
                )
        self.bounds = limits_of(self.sizes, ERROR / len(self._cells))
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
        groups = self._groups(self._score(answers, look, self._levels[look - 1]))
        share = self.ends[look - 1] / self.ends[-1]
        decisions = []
        for place, (limit, group) in enumerate(self._cells):
            former = before.decisions[place] if before else None
            if former is None or former.state == "undecided":
                measure = self._benchmark.facts.measure(limit.name)
                former = _decision(limit, measure, group, groups.get(group, {}), look, share)
            decisions.append(former)
        return Outcome(tuple(decisions), look, len(self.ends), self._of_one_score[look - 1])

    def _score(self, answers: pa.Table, look: int, level: float) -> Mapping[str, Any]:
        table = self._table.slice(0, self.ends[look - 1])
        options: Mapping[str, Any] = {**self._rules, "confidence": level}
        return self._benchmark.score(table, answers, options)

    def _groups(self, scores: Mapping[str, Any]) -> Mapping[str, Scores]:
        if self._by is None:
            return {ALL: scores}
        known = breakdowns_of(self._benchmark, scores)
        if self._by not in known:
            raise unknown("breakdown", self._by, known, arg("by"))
        return known[self._by]


def _decision(limit: Limit, measure: Measure, group: str, scores: Scores, look: int, share: float) -> Decision:
    decision = Decision(
        *(limit.name, _subject(measure), group, _wanted(limit, measure), measure.kind, "undecided"),
        *(look, share, None, None, None),
    )
    if measure.name not in scores:
        return replace(decision, reason="no such examples yet")
    value, low, high = estimate(scores, measure.name)
    decision = replace(decision, value=value, missing=missing_share(scores, measure))
    if value is None or low is None or high is None or not low < high:
        return replace(decision, reason="undefined" if value is None else "no interval")
    possible = possible_range(scores, measure)
    if possible is not None:  # missing answers could be any
        low, high = min(low, possible[0] - (value - low)), max(high, possible[1] + (high - value))
    least, most = value_range(measure)
    low, high = max(low, least), min(high, most)
    unbalanced = imbalance(scores, measure)
    if unbalanced is not None:
        return replace(decision, low=low, high=high, reason=imbalance_note([unbalanced], measure))
    return replace(decision, state=judged((low, high), allowed(limit, measure)), low=low, high=high)


def _subject(measure: Measure) -> str:
    """A score in a sentence: "Bias, ambiguous" as "ambiguous bias"."""
    first, _, rest = (measure.tile or measure.title).partition(", ")
    return f"{rest} {first}".strip().lower()


def _wanted(limit: Limit, measure: Measure) -> str:
    value = f"{100 * limit.value:g} points" if measure.kind == "signed" else show(limit.value, measure.kind)
    return f"{'below ±' if limit.side == 'below' and has_sign(measure) else limit.side + ' '}{value}"


WORDS: Mapping[str, str] = {"pass": "Pass", "fail": "Fail", "undecided": "Inconclusive"}


def verdict_lines(outcome: Outcome) -> list[str]:
    """The verdicts as sentences, with the share of the questions and the repeated intervals."""
    lines = []
    for one in outcome.decisions:
        where = "" if one.group == ALL else f" of {one.group}"
        verb = {"pass": "is", "fail": "is not", "undecided": "may or may not be"}[one.state]
        score = Estimate(one.value, one.low, one.high)
        interval = f" {show_interval(score, one.kind)}" if one.low is not None else ""
        asked = f"{100 * one.share:.0f}% of the planned questions, look {one.look} of {outcome.n_looks}"
        shown = f"{show(score, one.kind)}, repeated 95% CI{interval or ' n/a'}"
        shown += f", {percent(one.missing)} of answers missing" if one.missing else ""
        shown += f" ({one.reason})" if one.reason else ""
        lines.append(f"{WORDS[one.state]}: {one.title}{where} {verb} {one.wanted} ({asked}). {shown}.")
    if outcome.continued:
        lines.append(
            "The run continued after its verdict. Its scores are fixed-sample scores of all planned questions."
        )
    elif outcome.look < outcome.n_looks:
        lines.append(STOPPED)
    return lines


def confidence_of(*runs: ScoredRun) -> float:
    """Level of the intervals of scores of these runs, or of their differences: the highest of runs that stopped."""
    matches = (re.search(r"\|confidence:([\d.]+)", str(run.scores.get("signature"))) for run in runs)
    return max((float(one[1]) for one in matches if one), default=CONFIDENCE)


def stopped_early(run: ScoredRun) -> bool:
    """Whether conditions ended a run before its last question, as is assumed of a run that lost its verdict."""
    outcome = read_outcome(run.folder) if run.arguments.until else None
    return bool(run.arguments.until) and (outcome is None or outcome.look < outcome.n_looks)


def run_headline(run: ScoredRun) -> Headline | None:
    """The headline of a run: its verdict if it has conditions, then what its scores show."""
    first = headline(run.benchmark, run.scores, run.arguments.model, run.is_question_only)
    outcome = read_outcome(run.folder) if run.arguments.until else None
    if outcome is None or first is None:
        return first
    states = {one.state for one in outcome.decisions}
    verdict: Verdict = "fail" if "fail" in states else "inconclusive" if "undecided" in states else "pass"
    line, *more = verdict_lines(outcome)
    text, end, interval = line.partition("). ")
    return Headline(verdict, text + end.strip(), " ".join([interval, *more, first.text, first.detail]).strip())


def write_outcome(folder: Path, outcome: Outcome) -> None:
    """Write `verdict.json`."""
    write_stored(folder / VERDICT_FILE, asdict(outcome))


def read_outcome(folder: Path) -> Outcome | None:
    """Read `verdict.json`; None if the run has none."""
    try:
        return read_stored(folder / VERDICT_FILE, Outcome, "Run the same command again")
    except FileNotFoundError:
        return None
