"""Figures: a `Table` in, a Matplotlib figure out, drawn as the table's `Figure` says.

The report puts them into its page (`qabias.report.svg`), `qabias export` saves them. The same table always gives the
same figure, whatever the user's own Matplotlib settings are. The figures are SVG drawn by Matplotlib because they then
need no network and no script, print, and have the same bytes for the same table, where the bundles of Vega or Plotly
are 1 to 4 MB of script in every page.
"""

from __future__ import annotations

import contextlib
import math
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator

from qabias.tables.formatting import UNDEFINED, as_estimate, show
from qabias.tables.model import ALL, Column, Estimate, Table

# The colours of the light scheme, after Okabe and Ito: distinct for all kinds of colour vision. `svg` replaces each by
# the page's variable of the same role.
INK, MUTED, GRID, PAPER = "#1c2024", "#5d666f", "#d5dade", "#fefefe"
SERIES = ("#0072b2", "#c45100", "#007a5e", "#a3528a", "#7a6a00", "#46525e")
AGAINST, WITH = SERIES[:2]

MOST_ROWS, MOST_CELLS = 80, (40, 30)
"""A figure shows so many rows at most, a heat map so many rows and columns; the table has all."""

_MARKERS = ("o", "s", "^", "D", "v", "P")
_LINES = ("-", (0, (4, 2)), (0, (1, 1.5)))
_WIDTH, _ROW, _CELL = 5.2, 0.34, 0.56  # inches
_LETTER = 0.088  # inches, of an average letter at the size of the labels
_LONGEST_LINE, _MOST_LINES = 24, 2
# Differences of bias scores reach 2, those of sums of two bias scores 4.
_HALF_WIDTHS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
# Ink on a colour must stay readable on light and on dark paper.
_DEEPEST = 0.5
_PANEL_GAP = 0.5  # cells

_STYLE = {
    "axes.edgecolor": GRID,
    "axes.facecolor": "none",
    "axes.labelcolor": MUTED,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.facecolor": "none",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 10.5,
    "hatch.linewidth": 0.6,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "qabias",
    "text.color": INK,
    # Names come from data: a `$` in them is a dollar sign.
    "text.parse_math": False,
    "xtick.color": MUTED,
    "ytick.color": INK,
    "ytick.major.size": 0,
}


class _Axis(NamedTuple):
    """The scale of the values."""

    low: float
    high: float
    ticks: Sequence[float]
    labels: Sequence[str]


class _Series(NamedTuple):
    """One column of values, parallel to the rows that are drawn."""

    column: Column
    values: list[Estimate]
    colour: str
    marker: str


@contextlib.contextmanager
def style() -> Iterator[None]:
    """Draw and save in our style alone: a user's own matplotlibrc must not change a figure."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def draw(table: Table) -> Figure:
    """Draw a table."""
    if table.figure is None:
        raise ValueError(f"table {table.name} has no figure")
    with style():
        return _DRAWN[table.figure.kind](table)


def save(table: Table, path: Path, kind: str) -> None:
    """Save the figure of a table on white ground; the same table gives the same bytes."""
    metadata = {"svg": {"Date": None, "Creator": None}, "pdf": {"CreationDate": None, "Creator": None}}
    figure = draw(table)
    with style():
        figure.savefig(
            path, format=kind, facecolor="white", dpi=200, bbox_inches="tight", metadata=metadata.get(kind, {})
        )


def printable(text: str) -> str:
    """The text without what XML cannot hold or what would reorder the line."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def hidden_rows(table: Table) -> int:
    """Rows (and columns of a heat map) that the figure leaves to the table."""
    if table.figure is None:
        return 0
    if table.figure.kind == "heatmap":
        return sum(max(0, len(names) - most) for names, most in zip(_heatmap_names(table), MOST_CELLS, strict=True))
    return max(0, len(table.rows) - MOST_ROWS)


def deepest(table: Table) -> str:
    """What the deepest colour of a heat map stands for, as text."""
    panels = _all_series(table, limit=None)
    return show(_strongest(panels), panels[0].column.kind).removeprefix("+")


# Rows with dots, bars or parts


def _intervals(table: Table) -> Figure:
    """A dot with its interval for every row and series."""
    series = _all_series(table)
    axis = _scale(series)
    figure, axes, places = _rows_of(table, series, axis, _legend(series, dots=True))
    # All dots of a row stay nearer to it than to the next.
    for offset, one in zip(_offsets(len(series), min(0.3, 0.8 / len(series))), series, strict=True):
        _draw_dots(axes, one, [place + offset for place in places], axis)
    return figure


def _ranks(table: Table) -> Figure:
    """Mean rank and its spread, the first rank leftmost."""
    means, *spreads = _all_series(table)
    if spreads:
        means = means._replace(
            values=[
                mean
                if mean.value is None or spread.value is None
                else Estimate(mean.value, mean.value - spread.value, mean.value + spread.value)
                for mean, spread in zip(means.values, spreads[0].values, strict=True)
            ]
        )
    series = [means]
    axis = _number_scale(series, 1)
    figure, axes, places = _rows_of(table, series, axis, [])
    _draw_dots(axes, means, places, axis)
    return figure


def _bars(table: Table) -> Figure:
    """A bar from 0 with its value for every row and series, and its interval where there is one."""
    series = _all_series(table)
    axis = _scale(series, whole_share=False)
    figure, axes, places = _rows_of(table, series, axis, _legend(series), room=0.18)
    height = 0.7 / len(series)
    for offset, one in zip(_offsets(len(series), height), series, strict=True):
        for place, value in zip(places, one.values, strict=True):
            _draw_bar(axes, one, place + offset, value, height, axis)
    return figure


def _draw_bar(axes: Any, one: _Series, place: float, of: Estimate, height: float, axis: _Axis) -> None:
    if of.value is None:
        _draw_undefined(axes, place, axis)
        return
    axes.barh(place, of.value, height=0.9 * height, color=one.colour, gid=f"bar-{one.column.name}")
    end = of.value
    if of.low is not None and of.high is not None:
        axes.plot([of.low, of.high], [place, place], color=INK, linewidth=1.2)
        end = of.low if of.value < 0 else of.high
    axes.annotate(
        show(of, one.column.kind),
        (end, place),
        (-4 if of.value < 0 else 4, 0),
        textcoords="offset points",
        ha="right" if of.value < 0 else "left",
        va="center",
        fontsize=8.5,
    )


def _shares(table: Table) -> Figure:
    """Bars of parts that sum to one."""
    series = _all_series(table)
    axis = _share_scale(1.0)
    legend = [Patch(facecolor=one.colour, alpha=_DEEPEST, label=_entry(one.column.title)) for one in series]
    figure, axes, places = _rows_of(table, series, axis, legend)
    for number, place in enumerate(places):
        parts = [value for one in series for value in one.values[number][:1] if value is not None]
        if len(parts) < len(series):
            _draw_undefined(axes, place, axis)
            continue
        left = 0.0
        for one, part in zip(series, parts, strict=True):
            if part:
                axes.barh(
                    place,
                    part,
                    left=left,
                    height=0.72,
                    facecolor=(one.colour, _DEEPEST),
                    edgecolor=PAPER,
                    gid=f"part-{one.column.name}",
                )
            if part >= 0.12:
                axes.text(left + part / 2, place, show(part, "share"), ha="center", va="center", fontsize=8.5)
            left += part
    return figure


def _draw_dots(axes: Any, one: _Series, places: Sequence[float], axis: _Axis) -> None:
    dots = []
    for place, (value, low, high) in zip(places, one.values, strict=True):
        if value is None:
            _draw_undefined(axes, place, axis)
            continue
        dots.append((value, place))
        if low is not None and high is not None:
            axes.plot([low, high], [place, place], color=one.colour, linewidth=2, solid_capstyle="butt", zorder=2)
    # The gid lets a test find the dots again and compare their places with the values.
    axes.plot(
        [value for value, _ in dots],
        [place for _, place in dots],
        linestyle="none",
        marker=one.marker,
        markersize=7,
        color=one.colour,
        markeredgecolor=PAPER,
        markeredgewidth=1,
        zorder=3,
        clip_on=False,  # a dot at the end of the scale is a whole dot
        gid=f"dots-{one.column.name}",
    )


def _draw_undefined(axes: Any, place: float, axis: _Axis) -> None:
    start = max(axis.low, 0.0)
    axes.annotate(
        f"{UNDEFINED} undefined",
        (start, place),
        (4, 0),
        textcoords="offset points",
        color=MUTED,
        fontsize=9,
        va="center",
    )


def _rows_of(
    table: Table, series: Sequence[_Series], axis: _Axis, legend: Sequence[Any], room: float = 0.03
) -> tuple[Figure, Any, list[float]]:
    """Axes with one labelled row for each row of the table, downwards; a last row "All" is set apart."""
    labels = _labels(table)
    apart = len(labels) > 1 and labels[-1] == ALL
    places = [float(number) for number in range(len(labels))]
    if apart:
        places[-1] += 0.4
    height = _ROW * max(1, 0.55 * len(series) if legend and isinstance(legend[0], Line2D) else 1)
    columns = len(legend) if sum(len(part.get_label()) + 5 for part in legend) * _LETTER < _WIDTH else 1
    top = 0.1 + 0.24 * math.ceil(len(legend) / columns) if legend else 0.1
    bottom = 0.3 if legend else 0.5
    rows = height * ((places[-1] if places else 0) + 1.2)
    left = _label_width(labels)
    figure = Figure(figsize=(_WIDTH, top + rows + bottom))
    width = _WIDTH - left - 0.3
    axes = figure.add_axes(_box(left, bottom, width, rows, figure))
    axes.set_ylim((places[-1] if places else 0) + 0.6, -0.6)
    _name_rows(axes, places, labels)
    if apart:
        axes.get_yticklabels()[-1].set_fontweight("bold")
        axes.axhline(places[-1] - 0.7, color=GRID, linewidth=1, zorder=1)
    margin = room * (axis.high - axis.low)
    axes.set_xlim(axis.low - (margin if axis.low < 0 else 0.1 * margin), axis.high + margin)
    axes.set_xticks(axis.ticks, axis.labels)
    axes.xaxis.grid(True, color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    if axis.low < 0:
        axes.axvline(0, color=INK, linewidth=1, zorder=1)
    if legend:
        figure.legend(
            handles=legend,
            loc="upper left",
            bbox_to_anchor=(0.0, 1.0),
            ncols=columns,
            fontsize=10,
            handletextpad=0.4,
            columnspacing=1.2,
            borderaxespad=0.1,
        )
    elif len(series) == 1:
        axes.set_xlabel(printable(series[0].column.title))
    return figure, axes, places


# Heat maps and lines


def _heatmap(table: Table) -> Figure:
    """Rows by columns, a panel for each series; the colour is the value, which also stands in the cell."""
    assert table.figure is not None
    rows, columns = (names[:most] for names, most in zip(_heatmap_names(table), MOST_CELLS, strict=True))
    labels, across = (_texts(table, name) for name in (table.figure.labels, table.figure.across))
    panels = _all_series(table, limit=None)
    strongest = _strongest(panels)
    cell = _CELL * (1.25 if any(one.column.kind == "number" for one in panels) else 1)
    left, top = _label_width([_short(name) for name in rows]), _label_width([_short(name) for name in columns])
    bottom = 0.45 if len(panels) > 1 else 0.15
    pitch = len(columns) + _PANEL_GAP
    width = pitch * len(panels) - _PANEL_GAP
    size = (cell * width, _ROW * len(rows))
    figure = Figure(figsize=(left + size[0] + 0.15, top + size[1] + bottom))
    axes = figure.add_axes(_box(left, bottom, *size, figure))
    row_of, column_of = ({name: number for number, name in enumerate(names)} for names in (rows, columns))
    starts = [pitch * number for number in range(len(panels))]
    for start, one in zip(starts, panels, strict=True):
        for row, column, of in zip(labels, across, one.values, strict=True):
            if row in row_of and column in column_of:
                _draw_cell(axes, start + column_of[column], row_of[row], of.value, strongest, one.column.kind)
        if len(panels) > 1:
            title = textwrap.fill(printable(one.column.title), max(10, int(cell * pitch / _LETTER)))
            axes.text(start + len(columns) / 2, len(rows) + 0.2, title, ha="center", va="top", fontsize=9)
    axes.set_xlim(0, width)
    axes.set_ylim(len(rows), 0)
    _name_rows(axes, [number + 0.5 for number in range(len(rows))], [_short(name) for name in rows])
    places = [start + number + 0.5 for start in starts for number in range(len(columns))]
    axes.set_xticks(places, [_short(name) for name in columns] * len(panels), rotation=90)
    axes.xaxis.tick_top()
    axes.tick_params(length=0, colors=INK)
    axes.spines["bottom"].set_visible(False)
    return figure


def _draw_cell(axes: Any, x: float, y: float, value: float | None, strongest: float, kind: str) -> None:
    if value is None:
        axes.add_patch(
            Rectangle(
                (x, y),
                1,
                1,
                facecolor="none",
                edgecolor=MUTED,
                hatch="////",
                linewidth=0,
                gid="cell-undefined",
                clip_on=False,
            )
        )
        return
    colour = WITH if value > 0 else AGAINST
    shade = (colour, _DEEPEST * abs(value) / strongest)
    axes.add_patch(Rectangle((x, y), 1, 1, facecolor=shade, edgecolor=PAPER, linewidth=1, gid="cell", clip_on=False))
    text = show(value, kind).removesuffix("\u00a0%")
    axes.text(x + 0.5, y + 0.5, text, ha="center", va="center", fontsize=8.5)


def _strongest(series: Sequence[_Series]) -> float:
    """The value of the deepest colour: a step of the scale for fractions, the largest value for other numbers."""
    largest = max((abs(of.value) for one in series for of in one.values if of.value is not None), default=0.0)
    if {one.column.kind for one in series} <= {"share", "signed"}:
        return _half_width(largest)
    return largest or 1.0


def _heatmap_names(table: Table) -> tuple[list[str], list[str]]:
    assert table.figure is not None
    rows, columns = (list(dict.fromkeys(_texts(table, name))) for name in (table.figure.labels, table.figure.across))
    return rows, columns


def _lines(table: Table) -> Figure:
    """A line for every row over the value columns."""
    series = _all_series(table)
    labels = _labels(table)
    axis = _scale(series, whole_share=False)
    legend_rows = math.ceil(len(labels) / 2)
    top, bottom, left, rows = 0.15 + 0.24 * legend_rows, 0.4, 0.75, 2.4
    figure = Figure(figsize=(_WIDTH, top + rows + bottom))
    axes = figure.add_axes(_box(left, bottom, _WIDTH - left - 0.3, rows, figure))
    places = range(len(series))
    handles = []
    for number, label in enumerate(labels):
        values = [one.values[number] for one in series]
        colour, marker = _look(number)
        looks: dict[str, Any] = {
            "color": colour,
            "marker": marker,
            "linestyle": _LINES[number // len(SERIES) % len(_LINES)],
        }
        # NaN breaks the line where a value is undefined.
        heights = [math.nan if of.value is None else of.value for of in values]
        axes.plot(places, heights, gid=f"line-{number}", markersize=6, **looks)
        for place, of in zip(places, values, strict=True):
            if of.value is not None and of.low is not None and of.high is not None:
                axes.plot([place, place], [of.low, of.high], color=looks["color"], linewidth=1)
        handles.append(Line2D([], [], label=_entry(label), markersize=6, **looks))
    axes.set_xlim(-0.3, len(series) - 0.7)
    axes.set_xticks(list(places), [_short(one.column.title) for one in series])
    margin = 0.05 * (axis.high - axis.low)
    axes.set_ylim(axis.low - margin, axis.high + margin)
    axes.set_yticks(axis.ticks, axis.labels)
    axes.yaxis.grid(True, color=GRID, linewidth=0.8)
    if axis.low < 0:
        axes.axhline(0, color=INK, linewidth=1, zorder=1)
    figure.legend(handles=handles, loc="upper left", bbox_to_anchor=(0, 1), ncols=2, fontsize=10, borderaxespad=0.1)
    return figure


_DRAWN: dict[str, Callable[[Table], Figure]] = {
    "intervals": _intervals,
    "bars": _bars,
    "shares": _shares,
    "heatmap": _heatmap,
    "ranks": _ranks,
    "lines": _lines,
}


# Scales


def _scale(series: Sequence[_Series], whole_share: bool = True) -> _Axis:
    """The axis that holds all values and intervals; shares reach from 0 to 1, or only as far as they must."""
    kinds = {one.column.kind for one in series}
    extent = max((abs(end) for one in series for of in one.values for end in of if end is not None), default=0.0)
    half = _half_width(extent)
    if kinds <= {"share", "signed"}:
        if "signed" in kinds:
            # The halves have a line but no label: five labels collide beside long names.
            ends = f"{100 * half:g} %"
            return _Axis(-half, half, (-half, -half / 2, 0, half / 2, half), (f"−{ends}", "", "0 %", "", f"+{ends}"))
        return _share_scale(1.0 if whole_share else half)
    return _number_scale(series, 0)


def _half_width(extent: float) -> float:
    """The step of the scale that holds all fractions up to an extent."""
    return next(width for width in _HALF_WIDTHS if extent <= width or width == _HALF_WIDTHS[-1])


def _share_scale(high: float) -> _Axis:
    ticks = [high * quarter / 4 for quarter in range(5)]
    # Percent with fractions collide; the halves have no label there.
    whole = all(float(100 * tick).is_integer() for tick in ticks)
    return _Axis(0, high, ticks, [f"{100 * tick:g} %" if whole or not n % 2 else "" for n, tick in enumerate(ticks)])


def _number_scale(series: Sequence[_Series], start: float) -> _Axis:
    ends = [end for one in series for of in one.values for end in of if end is not None]
    whole = all(one.column.kind == "count" for one in series)
    locator = MaxNLocator(5, integer=whole)
    ticks = [float(tick) for tick in locator.tick_values(min([start, *ends]), max([start + 1e-3, *ends]))]
    return _Axis(ticks[0], ticks[-1], ticks, [f"{tick:g}".replace("-", "−") for tick in ticks])


# Labels and places


def _all_series(table: Table, limit: int | None = MOST_ROWS) -> list[_Series]:
    assert table.figure is not None
    names = [column.name for column in table.columns]
    series = []
    for number, name in enumerate(table.figure.values):
        place = names.index(name)
        values = [as_estimate(row[place]) for row in table.rows[:limit]]
        series.append(_Series(table.columns[place], values, *_look(number)))
    return series


def _look(number: int) -> tuple[str, str]:
    """Colour and marker of a series; both together come again only after all pairs of them."""
    return SERIES[number % len(SERIES)], _MARKERS[(number + number // len(SERIES)) % len(_MARKERS)]


def _texts(table: Table, name: str) -> list[str]:
    place = [column.name for column in table.columns].index(name)
    return [show(row[place], table.columns[place].kind) for row in table.rows]


def _labels(table: Table) -> list[str]:
    assert table.figure is not None
    return [_short(text) for text in _texts(table, table.figure.labels)[:MOST_ROWS]]


def _short(text: str) -> str:
    """A label of two lines at most, which break at spaces and after underscores."""
    text = printable(text)
    if len(text) <= _LONGEST_LINE + 2:
        return text
    words = text.replace("_", "_ ")
    lines = textwrap.wrap(words, _LONGEST_LINE, max_lines=_MOST_LINES, placeholder="…")
    return "\n".join(line.replace("_ ", "_") for line in lines)


def _name_rows(axes: Any, places: Sequence[float], labels: Sequence[str]) -> None:
    axes.set_yticks(places, labels)
    for label in axes.get_yticklabels():
        if "\n" in label.get_text():
            label.set(fontsize=9, linespacing=1.0)


def _label_width(labels: Sequence[str]) -> float:
    longest = max((len(line) for label in labels for line in label.split("\n")), default=0)
    return 0.15 + _LETTER * longest


def _legend(series: Sequence[_Series], dots: bool = False) -> list[Any]:
    """Handles that name the series; one series is named by the axis."""
    if len(series) == 1:
        return []
    if dots:
        looks: dict[str, Any] = {"linestyle": "none", "markersize": 6}
        return [
            Line2D([], [], color=one.colour, marker=one.marker, label=_entry(one.column.title), **looks)
            for one in series
        ]
    return [Patch(facecolor=one.colour, label=_entry(one.column.title)) for one in series]


def _entry(text: str) -> str:
    """A text for a legend, which leaves out what begins with an underscore."""
    return printable(f" {text}" if text.startswith("_") else text)


def _offsets(n: int, step: float) -> list[float]:
    return [step * (number - (n - 1) / 2) for number in range(n)]


def _box(left: float, bottom: float, width: float, height: float, figure: Figure) -> tuple[float, float, float, float]:
    """Inches as the shares of the figure that Matplotlib asks for."""
    full_width, full_height = figure.get_size_inches()
    return left / full_width, bottom / full_height, width / full_width, height / full_height
