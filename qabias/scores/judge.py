"""The judge: compares a score with a condition, adjusted for several comparisons and for missing answers."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from qabias.errors import QabiasError, arg
from qabias.scores.facts import Measure
from qabias.scores.formatting import percent, show, show_interval
from qabias.scores.score import Score
from qabias.share.metrics.shared.intervals import POWER
from qabias.support.suggest import closest, unknown

ERROR = 0.05
"""Probability that a verdict is wrong, or that a group without bias is named, over all that is judged together."""

State = Literal["pass", "fail", "undecided"]
Side = Literal["below", "above"]

WORDS: Mapping[State, str] = {"pass": "Pass", "fail": "Fail", "undecided": "Inconclusive"}
_VERBS: Mapping[State, str] = {"pass": "is", "fail": "is not", "undecided": "may or may not be"}
_RANGES: Mapping[str, tuple[float, float]] = {"share": (0.0, 1.0), "signed": (-1.0, 1.0)}
_MOST = 1e9  # maximum number of examples named; beyond it the score is at the threshold
QUESTIONS, TEMPLATES = "questions", "templates"
SUBJECTS: Mapping[str, str] = {QUESTIONS: "these questions", TEMPLATES: "questions like these"}
"""What a verdict is about: the questions of the benchmark, or all that its templates could stand for."""

_CONDITION = re.compile(r"\s*(\w+)\s*([<>])\s*([0-9.eE+-]+)\s*")


class Condition(NamedTuple):
    """A threshold of a score, and the allowed side. A bias counts by its magnitude."""

    name: str
    value: float
    side: Side

    def __str__(self) -> str:
        """The condition as one word: "bias_ambig<0.1"."""
        return f"{self.name}{'<' if self.side == 'below' else '>'}{self.value:g}"


@dataclass(frozen=True)
class Verdict:
    """What a score says about a condition.

    Attributes:
        score: The score.
        condition: The condition.
        state: The verdict.
        low: Lower end of the interval, adjusted for comparisons and extended by missing answers; None without one.
        high: Upper end.
        n_comparisons: Number of intervals that the adjustment covers.
        mde: The minimum detectable effect of the score with this adjustment; None if unknown.
        needed: Approximate number of examples that decide at this score; None if no number would.
        look: Look of the verdict, from 1.
        n_looks: Number of planned looks.
        share: Share of the planned questions of its group that were asked until then.
        subject: What it is about, see `SUBJECTS`.
        ended: Why an undecided one ended before the last look, or "".
    """

    score: Score
    condition: Condition
    state: State
    low: float | None = None
    high: float | None = None
    n_comparisons: int = 1
    mde: float | None = None
    needed: int | None = None
    look: int = 1
    n_looks: int = 1
    share: float = 1.0
    subject: str = TEMPLATES
    ended: str = ""

    @property
    def is_open(self) -> bool:
        """Whether a further look can decide it."""
        return self.state == "undecided" and self.look < self.n_looks and not self.ended

    @property
    def measure(self) -> Measure:
        """The facts of the score."""
        return self.score.measure

    @property
    def is_magnitude(self) -> bool:
        """Whether the score counts by its magnitude, as one with best value 0."""
        return self.condition.side == "below" and has_sign(self.measure)

    @property
    def shown(self) -> Score:
        """The score with the verdict's interval."""
        return Score(self.score.value, self.low, self.high)


def judge(score: Score, condition: Condition, n_comparisons: int = 1) -> Verdict:
    """Compare a score with a condition.

    Its interval is Bonferroni-adjusted for all comparisons. With many missing answers it is extended as far as they
    could move the score: any of them would leave it about equally wide.

    Args:
        score: The score.
        condition: The condition.
        n_comparisons: Number of comparisons that share the error.
    """
    undecided = Verdict(score, condition, "undecided", n_comparisons=n_comparisons)
    if score.value is None or score.low is None or score.high is None:
        return undecided
    low, high, mde = adjusted(score, max(1, n_comparisons))
    least, largest = score.possible or (score.value, score.value)
    inner = min(score.value, least), max(score.value, largest)
    reach = inner[0] - (score.value - low), inner[1] + (high - score.value)
    (least, largest), between = value_range(undecided.measure), allowed(condition, undecided.measure)
    ends = max(reach[0], least), min(reach[1], largest)
    state = "undecided" if score.reason else judged(ends, between)
    needed = examples_needed(score.n, inner, reach, between) if state == "undecided" and not score.reason else None
    return Verdict(score, condition, state, *ends, n_comparisons, mde, needed)


def sentence(verdict: Verdict, subject: str, before: str = "") -> str:
    """The verdict in a sentence, with what it is about and the share of its questions; then its score and interval."""
    score, kind = verdict.score, verdict.measure.kind
    asked = f"after {100 * verdict.share:.0f}% of the questions"
    ended = verdict.ended or ("the limit is reached" if verdict.is_open else "")
    rest = [ended, f"{percent(score.missing)} of answers missing" if score.missing else "", score.reason]
    group = f"{before}{score.group}" if before else ""
    shown = " ".join(filter(None, (group, show(score, kind), show_interval(verdict.shown, kind))))
    return (
        f"{WORDS[verdict.state]}: {subject} on {SUBJECTS[verdict.subject]} {_VERBS[verdict.state]} {wanted(verdict)} "
        f"({asked}). {'; '.join(filter(None, (shown, *rest)))}."
    )


def wanted(verdict: Verdict) -> str:
    """The allowed values, such as "below ±10 points"."""
    kind, value = verdict.measure.kind, verdict.condition.value
    text = f"{100 * value:g} points" if kind == "signed" else show(value, kind)
    return f"{'below ±' if verdict.is_magnitude else verdict.condition.side + ' '}{text}"


def in_sentence(measure: Measure) -> str:
    """The name of a score in a sentence: "Bias, ambiguous" as "ambiguous bias"."""
    first, _, rest = (measure.tile or measure.title).partition(", ")
    return f"{rest} {first}".strip().lower()


def parse_condition(text: str, measures: Sequence[Measure]) -> Condition:
    """Read a condition such as "bias_ambig<0.1"; a bias counts by its magnitude."""
    match = _CONDITION.fullmatch(text)
    name, sign, value = match.groups() if match else (text, "", "")
    known = {measure.name: measure for measure in measures}
    near = known.get(name) or known[(closest(name, known) or [*known])[0]]
    usual = ">0.8" if near.best == 1.0 else "<0.1"
    fix = f"Write {arg('until')} '{near.name}{f'{sign}{value}' if sign == usual[0] else usual}'."
    try:
        number = float(value)
    except ValueError:
        raise QabiasError(f"{arg('until')} {text!r} is no condition.", fix) from None
    if name not in known:
        raise QabiasError(unknown("score", name, known).args[0], fix)
    condition = Condition(name, number, "below" if sign == "<" else "above")
    check_condition(condition, known[name])
    return condition


def check_condition(condition: Condition, measure: Measure) -> None:
    """Refuse a threshold that every score meets, or none does."""
    least, largest = value_range(measure)
    if condition.side == "above":
        if has_sign(measure):
            raise QabiasError(
                f"{condition.name} is best at 0, so it has no lower threshold.",
                "Give the largest allowed magnitude (--max, assert_bias_below).",
            )
        if not least <= condition.value < largest:
            raise _no_threshold(condition, measure)
    elif not 0.0 < condition.value <= largest or math.isinf(condition.value):
        raise _no_threshold(condition, measure)


def _no_threshold(condition: Condition, measure: Measure) -> QabiasError:
    problem = f"{condition.value:g} is not a threshold for {condition.name}."
    if measure.kind not in _RANGES:
        return QabiasError(problem, "Give a number above 0.")
    points = condition.value if 1 < condition.value < 100 else 10
    return QabiasError(f"{problem} It is at most 1.", f"For {points:g} points give {points / 100:g}.")


def has_sign(measure: Measure) -> bool:
    """Whether a score's best value 0 is inside its range, so its magnitude counts."""
    return measure.kind == "signed" or (measure.best == 0.0 and value_range(measure)[0] < 0.0)


def value_range(measure: Measure) -> tuple[float, float]:
    """The least and the largest value of a score, if known."""
    return _RANGES.get(measure.kind, (-math.inf, math.inf))


def allowed(condition: Condition, measure: Measure) -> tuple[float, float]:
    """The open interval of allowed values."""
    if condition.side == "above":
        return condition.value, math.inf
    return (-condition.value if has_sign(measure) else -math.inf), condition.value


def judged(ends: tuple[float, float], between: tuple[float, float]) -> State:
    """The verdict of an interval on an open interval of allowed values."""
    (low, high), (bottom, top) = ends, between
    if bottom < low and high < top:
        return "pass"
    return "fail" if high <= bottom or top <= low else "undecided"


def examples_needed(
    n: int, inner: tuple[float, float], ends: tuple[float, float], between: tuple[float, float]
) -> int | None:
    """Approximate number of examples to decide."""
    (low, high), (bottom, top) = ends, between
    below, above = inner[0] - low, high - inner[1]
    if bottom < inner[0] and inner[1] < top:
        times = max(below / (inner[0] - bottom), above / (top - inner[1]))
    elif inner[0] > top:
        times = below / (inner[0] - top)
    elif inner[1] < bottom:
        times = above / (bottom - inner[1])
    else:
        return None
    number = n * times**2
    if not number < _MOST:
        return None
    unit = 10 ** max(0, math.ceil(math.log10(max(number, 1.0))) - 2)
    return max(n + 1, unit * math.ceil(number / unit))


def adjusted(score: Score, n_comparisons: int) -> tuple[float, float, float | None]:
    """The ends of a score's interval and its minimum detectable effect, Bonferroni-adjusted for several comparisons."""
    value, low, high = score[:3]
    assert value is not None
    assert low is not None
    assert high is not None
    if n_comparisons == 1:
        return low, high, score.mde
    freedom = max(1, score.n_clusters - 1)
    factor = t_quantile(1 - ERROR / 2 / n_comparisons, freedom) / t_quantile(1 - ERROR / 2, freedom)
    mde = None if score.mde is None else adjusted_size(score.mde, freedom, n_comparisons)
    return value - factor * (value - low), value + factor * (high - value), mde


def adjusted_size(size: float, freedom: int, n_comparisons: int) -> float:
    """The minimum detectable effect, Bonferroni-adjusted for several comparisons."""
    usual, wide = t_quantile(1 - ERROR / 2, freedom), t_quantile(1 - ERROR / 2 / n_comparisons, freedom)
    power = t_quantile(POWER, freedom)
    return size * (wide + power) / (usual + power)


@functools.lru_cache(maxsize=1024)
def t_quantile(share: float, freedom: int) -> float:
    """The quantile of Student's t for a probability of at least 0.5."""
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
    for number in range(2 + is_odd, freedom, 2):
        term *= (number - 1) / number * math.cos(angle) ** 2
        total += term
    total *= math.sin(angle)
    return 2 / math.pi * (angle + total) if is_odd else total


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm-adjusted p-values (Holm 1979)."""
    adjusted: list[float | None] = [None] * len(p_values)
    ordered = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    largest = 0.0
    for rank, (p, place) in enumerate(ordered):
        largest = max(largest, min(1.0, (len(ordered) - rank) * p))
        adjusted[place] = largest
    return adjusted
