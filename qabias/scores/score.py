"""A score with its interval, and what limits it: missing answers, imbalance, the minimum detectable effect."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from qabias.scores.facts import ALL, Facts, Measure, Scores
from qabias.scores.formatting import percent, show, show_interval, show_p, without_percent

NOT_DETECTABLE = "n/a"
"""The minimum detectable effect in words if even the largest value is too small to detect."""

NOISE = "not distinguishable from 0"
"""What a table adds to a signed score whose interval includes 0."""

MOST_IMBALANCE = 0.01
"""Relative difference of the counts of a `Balance` above which a score shows no bias by its sign."""

MOST_MISSING = 0.02
"""Share of missing answers above which a score is shown with its possible range."""

MOST_OPEN = 0.5
"""Share of missing answers above which a score has no value."""

_NO_MEASURE = Measure("", "", "number")


class Score(NamedTuple):
    """A score with its 95% CI, or a difference of scores, and what limits it.

    Attributes:
        value: None if undefined.
        low: Lower end of the interval; None without one.
        high: Upper end.
        p: p-value, of a difference or of a test against chance.
        mde: Minimum detectable effect (80% power) in the scale of the score, infinite if not even the largest is
            detectable. None if unknown: without an interval, with missing answers, or if the sample is unbalanced.
        possible: Worst-case bounds given the missing answers; None if at most `MOST_MISSING` are missing.
        missing: Share of missing answers among its examples; of two kinds the larger.
        n: Number of its examples.
        n_clusters: Number of clusters of its interval.
        bound: Its largest possible absolute value; None without one.
        group: Its group.
        reason: Why nothing follows from it, or "": undefined, without an interval, or from an unbalanced sample.
        measure: Its facts; without a name for a number that no metric computed.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    mde: float | None = None
    possible: tuple[float, float] | None = None
    missing: float = 0.0
    n: int = 0
    n_clusters: int = 0
    bound: float | None = None
    group: str = ALL
    reason: str = ""
    measure: Measure = _NO_MEASURE

    @staticmethod
    def stored() -> tuple[str, ...]:
        """Names of the fields that files hold."""
        return "value", "low", "high"

    @property
    def kind(self) -> str:
        """Kind of its column, see `qabias.tables.model.Column`."""
        return self.measure.kind

    @property
    def shown(self) -> Score:
        """The value with its interval, without it if many answers are missing."""
        return Score(self.value, self.low, self.high) if self.possible is None else Score(self.value)

    @property
    def not_reported(self) -> str:
        """Why a finding cannot rest on the score, or ""."""
        return f"{percent(self.missing)} of the answers are missing" if self.possible is not None else self.reason

    @property
    def is_noise(self) -> bool:
        """Whether the interval of a signed score includes 0."""
        return self.kind == "signed" and self.low is not None and self.high is not None and self.low <= 0 <= self.high

    @property
    def size(self) -> str:
        """The minimum detectable effect, "3.1 points"; `NOT_DETECTABLE` if infinite, "" if unknown."""
        if self.mde is None:
            return ""
        if known_mde(self.mde, self.kind) is None:
            return NOT_DETECTABLE
        return show(self.mde, self.kind) if self.kind == "number" else f"{100.0 * self.mde:.1f} points"

    @property
    def possible_in_words(self) -> str:
        """The possible range, such as "12.5 to 87.5 %", or ""."""
        return "" if self.possible is None else ends_in_words(self.possible, self.kind)

    @property
    def interval(self) -> str:
        """The interval in words, or the p-value of a test against chance; "" without one."""
        return show_interval(self, self.kind) or ("" if self.p is None else show_p(self.p))

    @property
    def in_words(self) -> str:
        """The value in words, with its interval, or with its possible range if many answers are missing."""
        if self.value is None:
            return f"n/a ({self.reason})"
        if self.possible is not None:
            low, high = (show(end, self.kind) for end in self.possible)
            return f"{show(self, self.kind)} (possible with the missing answers: {low} to {high})"
        return f"{show(self, self.kind)} {self.interval or '(no CI)'}"


def known_mde(mde: float | None, kind: str) -> float | None:
    """A minimum detectable effect; None if even the largest effect could be missed."""
    return None if mde is None or math.isinf(mde) or (kind != "number" and mde > 1.0) else mde


def as_score(value: Any) -> Score:
    """A cell of a table as a score; a number has no interval, a text no value."""
    if isinstance(value, Score):
        return value
    return Score(None if value is None or isinstance(value, str) else value)


def estimate(scores: Mapping[str, Any], name: str) -> Score:
    """A score of a metric's result with its interval only; NaN becomes None."""
    low, high = scores.get("ci", {}).get(name, (None, None))
    return Score(_defined(scores.get(name)), _defined(low), _defined(high))


def with_possible(scores: Scores, measure: Measure) -> Score:
    """A score of a metric's result as a table holds it: with its interval, possible range and missing share."""
    possible, missing = possible_range(scores, measure), missing_share(scores, measure)
    is_open = possible is not None and missing > MOST_OPEN
    score = Score(None) if is_open else estimate(scores, measure.name)
    return score._replace(possible=possible, missing=missing)


def limited(scores: Scores, measure: Measure) -> Score:
    """A score of a metric's result with what limits it, without its group and reason."""
    score, sizes, size = with_possible(scores, measure), scores.get("detectable") or {}, None
    if (
        measure.name in sizes
        and score.possible is None
        and score.low is not None
        and imbalance(scores, measure) is None
    ):
        size = math.inf if _is_undefined(sizes[measure.name]) else float(sizes[measure.name])
    counts = [int(scores[count]) for count in measure.counts if count in scores] or [int(scores.get("n", 0))]
    return score._replace(
        p=scores.get("p_values", {}).get(measure.name),
        mde=size,
        n=sum(counts) // scores.get("n_runs", 1),
        bound=estimate(scores, measure.bound).value if measure.bound in scores else None,
        measure=measure,
    )


def read_score(facts: Facts, scores: Scores, measure: Measure, group: str = ALL) -> Score:
    """A score of a metric's result, with what limits it, or the reason why nothing follows from it."""
    score, unbalanced = limited(scores, measure), imbalance(scores, measure)
    reason = _reason(facts, scores, measure, score)
    if not reason and unbalanced is not None:
        reason = imbalance_note([unbalanced], measure)
    return score._replace(n_clusters=int(scores.get(facts.clusters[1], 0)), group=group, reason=reason)


def _reason(facts: Facts, scores: Scores, measure: Measure, score: Score) -> str:
    """Why a score has no value or no interval, or ""."""
    if score.possible is not None and score.missing > MOST_OPEN:
        return f"{percent(score.missing)} of the answers are missing"
    if score.value is None:
        return why_undefined(facts, scores, measure.name)
    if score.p is not None:
        return ""
    if score.low is None or score.high is None:
        return why_no_interval(facts, scores, measure.name) if measure.name in scores.get("ci", {}) else "no interval"
    return "" if score.low < score.high else "an interval of no width"


def missing_share(scores: Scores, measure: Measure) -> float:
    """The share of missing answers among a score's examples; of two kinds the larger."""
    if not measure.missing:
        return float(scores.get("unparsed_share") or 0)
    return max(scores[missing] / scores[total] if scores.get(total) else 0.0 for missing, total in measure.missing)


def possible_range(scores: Scores, measure: Measure) -> tuple[float, float] | None:
    """Worst-case bounds of a score given its missing answers, or None if at most `MOST_MISSING` are missing."""
    low, high = (scores.get("range") or {}).get(measure.name, (None, None))
    if low is None or high is None or low != low or missing_share(scores, measure) <= MOST_MISSING:
        return None
    return float(low), float(high)


def imbalance(scores: Scores, measure: Measure) -> float | None:
    """The share of the first kind of `Measure.balance`; None up to a difference of `MOST_IMBALANCE`."""
    if measure.balance is None or not set(measure.balance.counts) <= set(scores):
        return None
    first, second = (scores[count] for count in measure.balance.counts)
    total = first + second
    return float(first / total) if abs(first - second) > MOST_IMBALANCE * total else None


def imbalance_note(shares: Sequence[float], measure: Measure) -> str:
    """Why the sign of a score shows no bias, in a clause."""
    assert measure.balance is not None
    ends = list(dict.fromkeys(percent(share) for share in (min(shares), max(shares))))
    span = " to ".join(ends)
    return f"{span} {measure.balance.first}, which shifts this score; {measure.balance.instead}"


def ends_in_words(ends: tuple[float, float], kind: str) -> str:
    """The ends of a range, such as "12.5 to 87.5 %"."""
    low, high = (show(end, kind) for end in ends)
    return f"{without_percent(low)} to {high}"


def read_ends(text: str) -> tuple[float, float]:
    """The ends of a range in words, as rounded as there."""
    scale = 1.0 if without_percent(text) == text else 0.01
    low, high = (scale * float(end.replace("−", "-")) for end in without_percent(text).split(" to "))
    return low, high


def why_undefined(facts: Facts, scores: Mapping[str, Any], name: str) -> str:
    """Why a score of a selection is undefined."""
    measure = next((one for one in facts.measures if one.name == name), None)
    if measure and measure.lacks and name not in scores:
        return measure.lacks
    for counts, text in measure.undefined if measure else ():
        if sum(scores[count] for count in counts) == 0:
            return text
    return "undefined in one of the runs" if "n_runs" in scores else "a ratio of nothing"


def why_no_interval(facts: Facts, scores: Mapping[str, Any], name: str) -> str:
    """Why a score of a selection has no interval."""
    if _is_undefined(scores.get(name)):
        return f"the score is undefined: {why_undefined(facts, scores, name)}"
    what, count = facts.clusters
    fewest = next((one.fewest_clusters for one in facts.measures if one.name == name), 2)
    n = scores.get(count, fewest)
    if n < fewest:
        return f"an interval needs {fewest} {what}, this has {n}"
    return f"the score is undefined without one of the {what}"


def reasons(facts: Facts, scores: Mapping[str, Any]) -> dict[str, str]:
    """Why scores, intervals and detectable effects of a result are undefined, by JSON pointer."""
    return dict(_reasons(facts, scores, ""))


def _reasons(facts: Facts, scores: Mapping[str, Any], at: str) -> Iterator[tuple[str, str]]:
    def why_no_size(facts: Facts, scores: Mapping[str, Any], name: str) -> str:
        if any(map(_is_undefined, scores.get("ci", {}).get(name, (None,)))):
            return f"no interval: {why_no_interval(facts, scores, name)}"
        return f"too few {facts.clusters[0]} to detect any bias"

    explain = {"ci": why_no_interval, "detectable": why_no_size, "spread": why_undefined}
    for name, value in scores.items():
        path = f"{at}/{name.replace('~', '~0').replace('/', '~1')}"
        if _is_undefined(value):
            yield path, why_undefined(facts, scores, name)
        elif name in explain:
            for score, one in value.items():
                if _is_undefined(one[0] if name == "ci" else one):
                    yield f"{path}/{score}", explain[name](facts, scores, score)
        elif isinstance(value, Mapping):
            yield from _reasons(facts, value, path)


def _defined(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else float(value)


def _is_undefined(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))
