"""Figures: a `Drawing` of a `Table`, by its `Figure`."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from qabias.scores.facts import ALL
from qabias.scores.formatting import UNDEFINED, show
from qabias.scores.score import Score, as_score
from qabias.tables.drawing import LETTER, MARKERS, SERIES, Drawing, Key, ticks
from qabias.tables.model import Column, Figure, Table

MOST_ROWS, MOST_CELLS = 80, (40, 30)
"""Maximum rows of a figure, and of rows and columns of a heat map; the table has all."""

_DASHES = ("", "4 2", "1 1.5")
_WIDTH, _ROW, _CELL, _LEGEND = 374, 24.5, 40.3, 17.3
_LONGEST_LINE, _MOST_LINES = 24, 2
# Differences of bias scores reach 2, and of sums of two bias scores 4.
_HALF_WIDTHS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
# Ink on a color must stay readable on light and on dark paper.
_DEEPEST = 0.5
_PANEL_GAP = 0.5  # cells
_AGAINST, _WITH = SERIES[:2]


class _Axis(NamedTuple):
    low: float
    high: float
    ticks: Sequence[float]
    labels: Sequence[str]


class _Series(NamedTuple):
    """One column of values, parallel to the drawn rows."""

    column: Column
    values: list[Score]
    color: str
    marker: str

    @property
    def title(self) -> str:
        return _one_line(self.column.title)


class _Plane(NamedTuple):
    """Labelled rows above a scale."""

    drawing: Drawing
    x: Callable[[float], float]
    rows: list[float]
    row: float
    zero: float
    labels: list[str]

    def undefined(self, y: float) -> None:
        self.drawing.text(self.x(self.zero) + 4, y, f"{UNDEFINED} undefined", color="muted", size=9)


def draw(table: Table) -> Drawing:
    """Draw a table."""
    if table.figure is None:
        raise ValueError(f"table {table.name} has no figure")
    return _DRAWN[table.figure.kind](table, table.figure)


def hidden_rows(table: Table) -> int:
    """Number of rows (and columns of a heat map) shown by the table only."""
    if table.figure is None:
        return 0
    if table.figure.kind == "heatmap":
        names = _heatmap_names(table, table.figure)
        return sum(max(0, len(of_side) - most) for of_side, most in zip(names, MOST_CELLS, strict=True))
    return max(0, len(table.rows) - MOST_ROWS)


def deepest(table: Table) -> str:
    """The value of a heat map's deepest color, as text."""
    panels = _all_series(table, limit=None)
    return show(_strongest(panels), panels[0].column.kind).removeprefix("+")


# Rows with dots, bars or parts


def _intervals(table: Table, figure: Figure) -> Drawing:
    series = _all_series(table)
    plane = _rows_of(table, figure, series, _scale(series), dots=True)
    # All dots of a row stay nearer to it than to the next.
    for offset, one in zip(_offsets(len(series), min(0.3, 0.8 / len(series))), series, strict=True):
        _draw_dots(plane, one, offset)
    return plane.drawing


def _ranks(table: Table, figure: Figure) -> Drawing:
    """Mean rank and its spread, the first rank leftmost."""
    means, *spreads = _all_series(table)
    if spreads:
        means = means._replace(
            values=[
                mean
                if mean.value is None or spread.value is None
                else Score(mean.value, mean.value - spread.value, mean.value + spread.value)
                for mean, spread in zip(means.values, spreads[0].values, strict=True)
            ]
        )
    plane = _rows_of(table, figure, [means], _number_scale([means], 1))
    _draw_dots(plane, means, 0)
    return plane.drawing


def _draw_dots(plane: _Plane, one: _Series, offset: float) -> None:
    for row, label, (value, low, high, *_) in zip(plane.rows, plane.labels, one.values, strict=True):
        y = row + offset * plane.row
        if value is None:
            plane.undefined(y)
            continue
        if low is not None and high is not None:
            plane.drawing.line([(plane.x(low), y), (plane.x(high), y)], one.color, 2)
        plane.drawing.mark(plane.x(value), y, one.marker, one.color, f"dots-{one.column.name}", data_row=label)


def _bars(table: Table, figure: Figure) -> Drawing:
    """A bar from 0 for every row and series, with its interval if it has one."""
    series = _all_series(table)
    plane = _rows_of(table, figure, series, _scale(series, whole_share=False), room=0.18)
    height = 0.7 / len(series)
    for offset, one in zip(_offsets(len(series), height), series, strict=True):
        for row, label, estimate in zip(plane.rows, plane.labels, one.values, strict=True):
            _draw_bar(plane, one, row + offset * plane.row, estimate, 0.9 * height * plane.row, label)
    return plane.drawing


def _draw_bar(plane: _Plane, one: _Series, y: float, estimate: Score, height: float, label: str) -> None:
    value, low, high, *_ = estimate
    if value is None:
        plane.undefined(y)
        return
    left, right = sorted((plane.x(0), plane.x(value)))
    plane.drawing.rect(
        left, y - height / 2, right - left, height, one.color, part=f"bar-{one.column.name}", data_row=label
    )
    end = value
    if low is not None and high is not None:
        plane.drawing.line([(plane.x(low), y), (plane.x(high), y)], "ink", 1.2)
        end = low if value < 0 else high
    shift, anchor = (-4, "end") if value < 0 else (4, "start")
    plane.drawing.text(plane.x(end) + shift, y, show(estimate, one.column.kind), anchor, size=8.5)


def _shares(table: Table, figure: Figure) -> Drawing:
    series = _all_series(table)
    plane = _rows_of(table, figure, series, _share_scale(1.0), parts=True)
    for number, y in enumerate(plane.rows):
        parts = [value for one in series for value in one.values[number][:1] if value is not None]
        if len(parts) < len(series):
            plane.undefined(y)
            continue
        left, height = 0.0, 0.72 * plane.row
        for one, part in zip(series, parts, strict=True):
            start, end = plane.x(left), plane.x(left + part)
            if part:
                look = {"stroke": "paper", "part": f"part-{one.column.name}"}
                plane.drawing.rect(start, y - height / 2, end - start, height, one.color, fill_opacity=_DEEPEST, **look)
            if part >= 0.12:
                plane.drawing.text((start + end) / 2, y, show(part, "share"), "middle", size=8.5)
            left += part
    return plane.drawing


def _rows_of(
    table: Table,
    figure: Figure,
    series: Sequence[_Series],
    axis: _Axis,
    *,
    room: float = 0.03,
    dots: bool = False,
    parts: bool = False,
) -> _Plane:
    """A plane with a label per table row, downward, and a separate last row "All"."""
    labels = _labels(table, figure)
    apart = len(labels) > 1 and labels[-1] == ALL
    places = [number + (0.4 if apart and number == len(labels) - 1 else 0.0) for number in range(len(labels))]
    entries = series if len(series) > 1 or parts else ()
    columns = len(entries) if sum(len(one.title) + 5 for one in entries) * LETTER < _WIDTH else 1
    top = 7 + (_LEGEND * math.ceil(len(entries) / columns) if entries else 0)
    row = _ROW * (max(1, 0.55 * len(series)) if dots and entries else 1)
    bottom = top + row * ((places[-1] if places else 0) + 1.2)
    left, right = _label_width(labels), _WIDTH - 22
    drawing = Drawing(table.title, _WIDTH, bottom + (22 if entries else 36))
    margin = room * (axis.high - axis.low)
    low, high = axis.low - (margin if axis.low < 0 else 0.1 * margin), axis.high + margin

    def x(value: float) -> float:
        return left + (value - low) / (high - low) * (right - left)

    ys = [top + (place + 0.6) * row for place in places]
    for tick, label in zip(axis.ticks, axis.labels, strict=True):
        drawing.line([(x(tick), top), (x(tick), bottom)], "grid", 0.8)
        drawing.text(x(tick), bottom + 11, label, "middle", color="muted")
    drawing.line([(left, bottom), (right, bottom)], "grid", 0.8)
    if apart:
        drawing.line([(left, ys[-1] - 0.7 * row), (right, ys[-1] - 0.7 * row)], "grid")
    if axis.low < 0:
        drawing.line([(x(0), top), (x(0), bottom)], "ink")
    whole = _texts(table, figure.labels)[:MOST_ROWS]
    _name_rows(drawing, left, ys, labels, apart, whole)
    if entries:
        drawing.legend([(one.title, _key(drawing, one, dots, parts)) for one in entries], columns)
    elif series:
        drawing.text((left + right) / 2, bottom + 27, series[0].title, "middle", color="muted")
    return _Plane(drawing, x, ys, row, max(axis.low, 0.0), whole)


def _key(drawing: Drawing, one: _Series, dots: bool, parts: bool) -> Key:
    if dots:
        return lambda x, y: drawing.mark(x, y, one.marker, one.color, size=6)
    return lambda x, y: drawing.rect(x - 8, y - 3.5, 14, 7, one.color, fill_opacity=_DEEPEST if parts else 1)


def _name_rows(
    drawing: Drawing, x: float, ys: Sequence[float], labels: Sequence[str], last_apart: bool, whole: Sequence[str]
) -> None:
    """Labels left of rows; a page links them and the marks by the whole text."""
    for number, (y, label, text) in enumerate(zip(ys, labels, whole, strict=True), start=1):
        weight = "bold" if last_apart and number == len(labels) else ""
        size = 9 if "\n" in label else 10.5
        drawing.text(x - 4, y, label, "end", size=size, font_weight=weight, data_row=text)


# Heat maps and lines


def _heatmap(table: Table, figure: Figure) -> Drawing:
    """Rows by columns, a panel per series; color and text of a cell show the value."""
    rows, columns = (names[:most] for names, most in zip(_heatmap_names(table, figure), MOST_CELLS, strict=True))
    labels, across = (_texts(table, name) for name in (figure.labels, figure.across))
    panels = _all_series(table, limit=None)
    strongest = _strongest(panels)
    cell = _CELL * (1.25 if any(one.column.kind == "number" for one in panels) else 1)
    names, heads = [_short(name) for name in rows], [_short(name) for name in columns]
    left, top = _label_width(names), _label_width(heads)
    pitch = cell * (len(columns) + _PANEL_GAP)
    bottom = top + _ROW * len(rows)
    width = left + pitch * len(panels) - cell * _PANEL_GAP + 11
    drawing = Drawing(table.title, width, bottom + (32 if len(panels) > 1 else 11))
    row_of, column_of = ({name: number for number, name in enumerate(side)} for side in (rows, columns))
    for number, one in enumerate(panels):
        start = left + pitch * number
        for row, column, estimate in zip(labels, across, one.values, strict=True):
            if row in row_of and column in column_of:
                x, y = start + cell * column_of[column], top + _ROW * row_of[row]
                places = {"data_row": row, "data_across": column}
                _draw_cell(drawing, x, y, cell, estimate.value, strongest, one.column, places)
        for place, head in enumerate(heads):
            size = 9 if "\n" in head else 10.5
            drawing.text(start + cell * (place + 0.5), top - 4, head, size=size, upwards=True)
        if len(panels) > 1:
            title = textwrap.fill(one.title, max(10, int(pitch / LETTER)))
            lines = title.count("\n")
            drawing.text(start + cell * len(columns) / 2, bottom + 11 + 5 * lines, title, "middle", size=9)
    _name_rows(drawing, left, [top + _ROW * (number + 0.5) for number in range(len(rows))], names, False, rows)
    return drawing


def _draw_cell(
    drawing: Drawing,
    x: float,
    y: float,
    width: float,
    value: float | None,
    strongest: float,
    column: Column,
    places: Mapping[str, str],
) -> None:
    if value is None:
        drawing.rect(x, y, width, _ROW, "hatch", part="cell-undefined")
        return
    color, depth = _WITH if value > 0 else _AGAINST, _DEEPEST * abs(value) / strongest
    look = {"fill_opacity": f"{depth:.4f}", "stroke": "paper", "part": "cell", **places}
    drawing.add("rect", x=x, y=y, width=width, height=_ROW, fill=color, data_score=column.name, **look)
    drawing.text(x + width / 2, y + _ROW / 2, show(value, column.kind).removesuffix("\u00a0%"), "middle", size=8.5)


def _strongest(series: Sequence[_Series]) -> float:
    """The value of the deepest color: a step of the scale for fractions, else the largest value."""
    largest = max(
        (abs(estimate.value) for one in series for estimate in one.values if estimate.value is not None), default=0.0
    )
    if {one.column.kind for one in series} <= {"share", "signed"}:
        return _half_width(largest)
    return largest or 1.0


def _heatmap_names(table: Table, figure: Figure) -> tuple[list[str], list[str]]:
    rows, columns = (list(dict.fromkeys(_texts(table, name))) for name in (figure.labels, figure.across))
    return rows, columns


def _lines(table: Table, figure: Figure) -> Drawing:
    series = _all_series(table)
    labels = _labels(table, figure)
    axis = _scale(series, whole_share=False)
    top, left, right = 11 + _LEGEND * math.ceil(len(labels) / 2), 54, _WIDTH - 22
    bottom = top + 173
    drawing = Drawing(table.title, _WIDTH, bottom + 29)
    pitch = (right - left) / (len(series) - 0.4)
    xs = [left + (place + 0.3) * pitch for place in range(len(series))]
    margin = 0.05 * (axis.high - axis.low)

    def y(value: float) -> float:
        return bottom - (value - axis.low + margin) / (axis.high - axis.low + 2 * margin) * (bottom - top)

    for tick, label in zip(axis.ticks, axis.labels, strict=True):
        drawing.line([(left, y(tick)), (right, y(tick))], "ink" if tick == 0 and axis.low < 0 else "grid", 0.8)
        drawing.text(left - 4, y(tick), label, "end")
    drawing.line([(left, bottom), (right, bottom)], "grid", 0.8)
    for x, one in zip(xs, series, strict=True):
        drawing.text(x, bottom + 11, _short(one.column.title), "middle", color="muted")
    entries: list[tuple[str, Key]] = []
    for number, label in enumerate(labels):
        color, marker = _look(number)
        line = {"stroke_dasharray": _DASHES[number // len(SERIES) % len(_DASHES)], "part": f"line-{number}"}
        points = list(zip(xs, (one.values[number] for one in series), strict=True))
        # The line breaks at undefined values.
        for run in _runs(points):
            drawing.line([(x, y(value)) for x, value in run], color, 1.5, **line)
        for x, (value, low, high, *_) in points:
            if value is None:
                continue
            if low is not None and high is not None:
                drawing.line([(x, y(low)), (x, y(high))], color)
            drawing.mark(x, y(value), marker, color, f"dots-{number}", size=6)
        entries.append((label.replace("\n", " "), _line_key(drawing, color, marker, line["stroke_dasharray"])))
    drawing.legend(entries, 2)
    return drawing


def _runs(points: Sequence[tuple[float, Score]]) -> Iterator[list[tuple[float, float]]]:
    """The stretches of at least two defined values."""
    for is_defined, group in groupby(points, lambda point: point[1].value is not None):
        run = [(x, estimate.value) for x, estimate in group if estimate.value is not None]
        if is_defined and len(run) > 1:
            yield run


def _line_key(drawing: Drawing, color: str, marker: str, dashes: str) -> Key:
    def key(x: float, y: float) -> None:
        drawing.line([(x - 9, y), (x + 9, y)], color, 1.5, stroke_dasharray=dashes)
        drawing.mark(x, y, marker, color, size=6)

    return key


_DRAWN: dict[str, Callable[[Table, Figure], Drawing]] = {
    "intervals": _intervals,
    "bars": _bars,
    "shares": _shares,
    "heatmap": _heatmap,
    "ranks": _ranks,
    "lines": _lines,
}


# Scales


def _scale(series: Sequence[_Series], whole_share: bool = True) -> _Axis:
    """The axis of all values and intervals; shares reach from 0 to 1, or to the largest needed."""
    kinds = {one.column.kind for one in series}
    half = _half_width(max((abs(end) for end in _ends(series)), default=0.0))
    if kinds <= {"share", "signed"}:
        if "signed" in kinds:
            # The halves have a line but no label: five labels collide with long names.
            ends = f"{100 * half:g} %"
            return _Axis(-half, half, (-half, -half / 2, 0, half / 2, half), (f"−{ends}", "", "0 %", "", f"+{ends}"))
        return _share_scale(1.0 if whole_share else half)
    return _number_scale(series, 0)


def _ends(series: Sequence[_Series]) -> list[float]:
    return [end for one in series for estimate in one.values for end in estimate[:3] if end is not None]


def _half_width(extent: float) -> float:
    """The step of the scale that holds all fractions up to an extent."""
    return next(width for width in _HALF_WIDTHS if extent <= width or width == _HALF_WIDTHS[-1])


def _share_scale(high: float) -> _Axis:
    places = [high * quarter / 4 for quarter in range(5)]
    # Percent with fractions collide; the halves have no label there.
    whole = all(float(100 * place).is_integer() for place in places)
    return _Axis(
        0, high, places, [f"{100 * place:g} %" if whole or not n % 2 else "" for n, place in enumerate(places)]
    )


def _number_scale(series: Sequence[_Series], start: float) -> _Axis:
    ends = _ends(series)
    whole = all(one.column.kind == "count" for one in series)
    places = ticks(min([start, *ends]), max([start + 1e-3, *ends]), whole)
    return _Axis(places[0], places[-1], places, [f"{place:g}".replace("-", "−") for place in places])


# Labels and places


def _all_series(table: Table, limit: int | None = MOST_ROWS) -> list[_Series]:
    assert table.figure is not None
    names = [column.name for column in table.columns]
    series = []
    for number, name in enumerate(table.figure.values):
        place = names.index(name)
        values = [as_score(row[place]).shown for row in table.rows[:limit]]
        series.append(_Series(table.columns[place], values, *_look(number)))
    return series


def _look(number: int) -> tuple[str, str]:
    """Color and marker of a series; pairs repeat only after all are used."""
    return SERIES[number % len(SERIES)], MARKERS[(number + number // len(SERIES)) % len(MARKERS)]


def _texts(table: Table, name: str) -> list[str]:
    place = [column.name for column in table.columns].index(name)
    return [show(row[place], table.columns[place].kind) for row in table.rows]


def _labels(table: Table, figure: Figure) -> list[str]:
    return [_short(text) for text in _texts(table, figure.labels)[:MOST_ROWS]]


def _short(text: str) -> str:
    """A label of at most two lines, broken at spaces and after underscores."""
    text = _one_line(text)
    if len(text) <= _LONGEST_LINE + 2:
        return text
    words = text.replace("_", "_ ")
    lines = textwrap.wrap(words, _LONGEST_LINE, max_lines=_MOST_LINES, placeholder="…")
    return "\n".join(line.replace("_ ", "_") for line in lines)


def _one_line(text: str) -> str:
    return text.replace("\n", "\ufffd")


def _label_width(labels: Sequence[str]) -> float:
    return 11 + LETTER * max((len(line) for label in labels for line in label.split("\n")), default=0)


def _offsets(n: int, step: float) -> list[float]:
    return [step * (number - (n - 1) / 2) for number in range(n)]
