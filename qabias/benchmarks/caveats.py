"""A score with its interval, and what limits it: missing answers, imbalance, the minimum detectable effect."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from qabias.benchmarks.facts import Facts, Measure, Scores, Tile
from qabias.tables.formatting import percent, show
from qabias.tables.model import Column, Estimate, Table, Value

NOT_DETECTABLE = "n/a"
"""Result of `format_mde` if even the largest value is too small to detect."""

MOST_IMBALANCE = 0.01
"""Relative difference of the counts of a `Balance` above which a score shows no bias by its sign."""

MOST_MISSING = 0.02
"""Share of missing answers above which a score is shown with its possible range."""


def estimate(scores: Mapping[str, Any], name: str) -> Estimate:
    """A score of a metric's result with its interval; NaN becomes None."""
    low, high = scores.get("ci", {}).get(name, (None, None))
    return Estimate(*(None if value is None or value != value else float(value) for value in (scores[name], low, high)))


def values(scores: Mapping[str, Any], columns: Sequence[Column]) -> list[Value]:
    """The scores (with intervals) and counts of a metric's result that the columns name."""
    return [int(scores[column.name]) if column.kind == "count" else estimate(scores, column.name) for column in columns]


def missing_share(scores: Scores, measure: Measure) -> float:
    """The share of missing answers among a score's examples; of two kinds the larger."""
    if not measure.missing:
        return float(scores.get("unparsed_share") or 0)
    return max(scores[missing] / scores[total] if scores[total] else 0.0 for missing, total in measure.missing)


def possible_range(scores: Scores, measure: Measure) -> tuple[float, float] | None:
    """Worst-case bounds of a score given its missing answers, or None if at most `MOST_MISSING` are missing."""
    low, high = (scores.get("range") or {}).get(measure.name, (None, None))
    if low is None or high is None or low != low or missing_share(scores, measure) <= MOST_MISSING:
        return None
    return float(low), float(high)


def imbalance(scores: Scores, measure: Measure) -> float | None:
    """The share of the first kind of `Measure.balance`; None up to a difference of `MOST_IMBALANCE`."""
    if measure.balance is None:
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


def detectable(scores: Scores, measure: Measure) -> float | None:
    """The minimum detectable effect: the smallest true size whose interval excludes 0 with 80% power.

    Returns:
        The size in the scale of the score, NaN if even the largest is not detectable. None without an interval, with
        missing answers, or if 0 does not mean "no bias" (`imbalance`).
    """
    sizes = scores.get("detectable") or {}
    if measure.name not in sizes or possible_range(scores, measure) is not None:
        return None
    low, _ = scores.get("ci", {}).get(measure.name, (None, None))
    if _is_undefined(low) or imbalance(scores, measure) is not None:
        return None
    size = sizes[measure.name]
    return math.nan if size is None else float(size)


def format_mde(scores: Scores, measure: Measure) -> str:
    """The minimum detectable effect, "3.1 points"; `NOT_DETECTABLE` without one, "" if unknown."""
    size = detectable(scores, measure)
    if size is None:
        return ""
    if math.isnan(size):
        return NOT_DETECTABLE
    return show(size, measure.kind) if measure.kind == "number" else f"{100.0 * size:.1f} points"


def tiles(measures: Sequence[Measure], scores: Scores) -> list[Tile]:
    """Headline scores with their notes."""
    return [_tile(scores, measure, estimate(scores, measure.name)) for measure in measures if measure.tile]


def _tile(scores: Scores, measure: Measure, value: Estimate) -> Tile:
    note = _tile_note(scores, measure, value)
    return Tile(
        measure.tile, value, measure.kind, note, missing_share(scores, measure), possible_range(scores, measure)
    )


def _tile_note(scores: Scores, measure: Measure, value: Estimate) -> str:
    """A note of a few words: the possible range, the imbalance, or the MDE."""
    if callable(measure.tile_note):
        return measure.tile_note(scores, measure)
    possible = range_in_words(scores, measure)
    if possible:
        return f"{percent(missing_share(scores, measure))} missing, possible {possible}"
    if imbalance(scores, measure) is not None:
        return "unbalanced sample: read the accuracy cost"
    size, bound = format_mde(scores, measure), bound_of(scores, measure)
    notes = [measure.tile_note or (f"MDE {size}" if size else _leaning(value))]
    if bound is not None and value.value is not None:
        notes.append(f"maximum {show(bound, 'share')}")
    return ", ".join(filter(None, notes))


def bound_of(scores: Scores, measure: Measure) -> float | None:
    """The largest possible absolute value of a score, or None if there is none."""
    return estimate(scores, measure.bound).value if measure.bound in scores else None


def _leaning(estimated: Estimate) -> str:
    """Whether a score has an interval, and whether that includes 0."""
    value, low, high = estimated
    if value is None:
        return "undefined: no such answers"
    return "no CI" if low is None or high is None else "CI includes 0" if low <= 0 <= high else ""


RANGE = "range_"
"""Prefix of the columns of ranges; the name of the score follows."""

READ_RANGES = "A score that lacks over 2% of its answers has no CI but its possible range."

_PERCENT = "\u00a0%"


def shown_estimate(scores: Scores, measure: Measure) -> Estimate:
    """A score with its interval, without it if many answers are missing."""
    value = estimate(scores, measure.name)
    return value if possible_range(scores, measure) is None else Estimate(value.value)


def range_in_words(scores: Scores, measure: Measure) -> str:
    """The possible range of a score, such as "12.5 to 87.5 %", or ""."""
    ends = possible_range(scores, measure)
    return "" if ends is None else ends_in_words(ends, measure.kind)


def ends_in_words(ends: tuple[float, float], kind: str) -> str:
    """The ends of a range, such as "12.5 to 87.5 %"."""
    low, high = (show(end, kind) for end in ends)
    return f"{low.removesuffix(_PERCENT)} to {high}"


def range_column(column: Column, title: str) -> Column:
    """The column of the ranges of a score."""
    return Column(f"{RANGE}{column.name}", title, "text")


def with_ranges(table: Table, groups: Sequence[Scores | None], measures: Sequence[Measure]) -> Table:
    """Add the possible ranges of scores with many missing answers."""
    by_name = {measure.name: measure for measure in measures}
    named = [column.name for column in table.columns if column.name in by_name]
    return with_ranges_of_cells(
        table, {name: [None if group is None else (group, by_name[name]) for group in groups] for name in named}
    )


def with_ranges_of_cells(table: Table, cells: Mapping[str, Sequence[tuple[Scores, Measure] | None]]) -> Table:
    """Add a column after every score that has ranges, and the worst missing share to the note."""
    ranges = {name: [range_in_words(*cell) if cell else "" for cell in column] for name, column in cells.items()}
    ranges = {name: texts for name, texts in ranges.items() if any(texts)}
    if not ranges:
        return table
    columns: list[Column] = []
    rows: list[list[Value]] = [[] for _ in table.rows]
    for place, column in enumerate(table.columns):
        texts = ranges.get(column.name, [""] * len(rows))
        columns.append(column)
        for row, old, text in zip(rows, table.rows, texts, strict=True):
            value = old[place]
            row.append(Estimate(value.value) if text and isinstance(value, Estimate) else value)
        if column.name in ranges:
            columns.append(range_column(column, f"Possible, {column.title}"))
            for row, text in zip(rows, texts, strict=True):
                row.append(text or None)
    note = " ".join(filter(None, (table.note, READ_RANGES, _worst(table, {name: cells[name] for name in ranges}))))
    return replace(table, note=note, columns=tuple(columns), rows=tuple(map(tuple, rows)))


def _worst(table: Table, cells: Mapping[str, Sequence[tuple[Scores, Measure] | None]]) -> str:
    """The row and score with the largest share of missing answers."""
    titles = {column.name: column.title for column in table.columns}
    share, title, row = max(
        (
            (missing_share(*cell), titles[name], str(row[0]))
            for name, column in cells.items()
            for cell, row in zip(column, table.rows, strict=True)
            if cell is not None and possible_range(*cell) is not None
        ),
        key=lambda worst: worst[0],
    )
    return f"At worst {percent(share)} lack one ({row}: {title})."


MDE_COLUMN = "mde_"
"""Prefix of the columns of minimum detectable effects; the name of the score follows."""

READ_MDE = "MDE: smallest bias that this run detects with 80% power."


def with_detectable(table: Table, groups: Sequence[Scores], measures: Sequence[Measure]) -> Table:
    """Add a column with the minimum detectable effect of every score."""
    by_name = {measure.name: measure for measure in measures}
    sizes = {
        column: [_finite(detectable(group, by_name[column.name])) for group in groups]
        for column in table.columns
        if column.name in by_name
    }
    shown = {column: numbers for column, numbers in sizes.items() if any(numbers)}
    if not shown:
        return table
    kinds = {"signed": "share"}  # a size has no sign
    columns = [
        Column(f"{MDE_COLUMN}{column.name}", f"MDE, {column.title}", kinds.get(column.kind, column.kind))
        for column in shown
    ]
    rows = tuple((*row, *numbers) for row, *numbers in zip(table.rows, *shown.values(), strict=True))
    return replace(table, note=f"{table.note} {READ_MDE}", columns=(*table.columns, *columns), rows=rows)


def _finite(size: float | None) -> float | None:
    return size if size is not None and math.isfinite(size) else None


def reasons(facts: Facts, scores: Mapping[str, Any]) -> dict[str, str]:
    """Why scores are undefined."""
    return dict(_reasons(facts, {measure.name: measure for measure in facts.measures}, scores, ""))


def _reasons(
    facts: Facts, measures: Mapping[str, Measure], scores: Mapping[str, Any], at: str
) -> Iterator[tuple[str, str]]:
    def of_score(name: str) -> str:
        for counts, text in measures[name].undefined if name in measures else ():
            if sum(scores[count] for count in counts) == 0:
                return text
        return "undefined in one of the runs" if "n_runs" in scores else "a ratio of nothing"

    def of_interval(name: str) -> str:
        if _is_undefined(scores.get(name)):
            return f"the score is undefined: {of_score(name)}"
        what, count = facts.clusters
        fewest = measures[name].fewest_clusters if name in measures else 2
        n = scores.get(count, fewest)
        if n < fewest:
            return f"an interval needs {fewest} {what}, this has {n}"
        return f"the score is undefined without one of the {what}"

    def of_size(name: str) -> str:
        if any(map(_is_undefined, scores.get("ci", {}).get(name, (None,)))):
            return f"no interval: {of_interval(name)}"
        return f"too few {facts.clusters[0]} to detect any bias"

    explain = {"ci": of_interval, "detectable": of_size, "spread": of_score}
    for name, value in scores.items():
        path = f"{at}/{name.replace('~', '~0').replace('/', '~1')}"
        if _is_undefined(value):
            yield path, of_score(name)
        elif name in explain:
            for score, one in value.items():
                if _is_undefined(one[0] if name == "ci" else one):
                    yield f"{path}/{score}", explain[name](score)
        elif isinstance(value, Mapping):
            yield from _reasons(facts, measures, value, path)


def _is_undefined(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))
