"""Figures of the report: scores in, one inline SVG string out.

Matplotlib draws; `_inline` then makes the SVG fit to stand inside a page: colours become the page's CSS variables (so
that the dark scheme applies), texts stay texts in the page's font, and every id carries the figure's name. The same
scores always give the same bytes.
"""

from __future__ import annotations

import contextlib
import io
import math
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from xml.etree import ElementTree

import matplotlib
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

Scores = Mapping[str, Any]
"""The metric's result for one category or for all rows: fractions or None, counts, and `ci`."""

UNDEFINED = "—"
CHANCE = 1 / 3
"""Accuracy of guessing among BBQ's three answers."""

_SVG = "http://www.w3.org/2000/svg"
_XLINK = "{http://www.w3.org/1999/xlink}"
_WIDTH_INCHES = 5.0
_ROW_INCHES = 0.34
_LONGEST_LABEL = 26
_HALF_WIDTHS = (0.1, 0.25, 0.5, 1.0)

# The colours of the light scheme (blue and vermilion after Okabe and Ito, told apart by all kinds of colour vision);
# `_inline` replaces each by the page's variable of the same role.
_INK, _MUTED, _GRID, _FIRST, _SECOND, _PAPER = "#1c2024", "#5d666f", "#d5dade", "#0072b2", "#c45100", "#fefefe"
_VARIABLES = {
    _INK: "var(--ink)",
    _MUTED: "var(--muted)",
    _GRID: "var(--grid)",
    _FIRST: "var(--first)",
    _SECOND: "var(--second)",
    _PAPER: "var(--paper)",
}
_STYLE = {
    "axes.edgecolor": _GRID,
    "axes.labelcolor": _MUTED,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 10.5,
    "svg.fonttype": "none",
    "svg.hashsalt": "qabias",
    "text.color": _INK,
    # Names come from data: a `$` in them is a dollar sign.
    "text.parse_math": False,
    "xtick.color": _MUTED,
    "ytick.color": _INK,
    "ytick.major.size": 0,
}


class _Series(NamedTuple):
    """One kind of dot: the score it shows and how it looks."""

    key: str
    label: str
    colour: str
    marker: str
    signed: bool


@contextlib.contextmanager
def _style() -> Iterator[None]:
    """Draw in our style alone: a user's own matplotlibrc must not change the report."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def percent(value: float | None, signed: bool = False) -> str:
    """Return a fraction as percent with one decimal and an unbreakable blank; an em-dash for None.

    Args:
        value: a fraction, for example 0.123.
        signed: whether a positive value gets a plus sign, as bias scores do.
    """
    if value is None:
        return UNDEFINED
    rounded = round(100 * value, 1)
    if rounded == 0:
        return "0.0\u00a0%"  # neither +0.0 nor -0.0
    text = f"{rounded:+.1f}" if signed else f"{rounded:.1f}"
    return text.replace("-", "−") + "\u00a0%"


@_style()
def bias_by_category(by_category: Mapping[str, Scores], overall: Scores, context: str) -> str:
    """Return a dot plot of one bias score with its intervals.

    Args:
        by_category: category name -> scores, in the order of the rows.
        overall: the scores of all rows.
        context: "ambig" for s_AMB or "disambig" for s_DIS. Both figures of a report share one scale.
    """
    rows = [*by_category.values(), overall]
    title, colour, marker = {
        "ambig": ("Bias in ambiguous contexts, s_AMB", _FIRST, "o"),
        "disambig": ("Bias in disambiguated contexts, s_DIS", _SECOND, "s"),
    }[context]
    limit = bias_axis_limit(rows)
    figure, axes = _dot_plot(by_category, overall, [_Series(f"bias_{context}", title, colour, marker, True)])
    axes.axvline(0, color=_INK, linewidth=1, zorder=1)
    axes.set_xlim(-1.03 * limit, 1.03 * limit)
    # The halves have a line but no label: five labels collide beside long names.
    ends = f"{100 * limit:g} %"
    axes.set_xticks([-limit, -limit / 2, 0, limit / 2, limit], [f"−{ends}", "", "0 %", "", f"+{ends}"])
    axes.set_xlabel("← against the stereotype   |   with it →")
    return _inline(figure, f"bias-{context}", title, _describe(by_category, overall, f"bias_{context}", signed=True))


def bias_axis_limit(rows: Iterable[Scores]) -> float:
    """Return the smallest of the usual half widths that shows all bias scores and their intervals."""
    extent = max(
        (
            abs(x)
            for scores in rows
            for key in ("bias_ambig", "bias_disambig")
            for x in (scores[key], *_interval(scores, key))
            if x is not None
        ),
        default=0.0,
    )
    return next(width for width in _HALF_WIDTHS if extent <= width or width == _HALF_WIDTHS[-1])


@_style()
def accuracy_by_category(by_category: Mapping[str, Scores], overall: Scores) -> str:
    """Return a dot plot of the accuracy in both contexts with its intervals.

    Args:
        by_category: category name -> scores, in the order of the rows.
        overall: the scores of all rows.
    """
    series = [
        _Series("accuracy_ambig", "ambiguous", _FIRST, "o", False),
        _Series("accuracy_disambig", "disambiguated", _SECOND, "s", False),
    ]
    title = "Accuracy by context"
    figure, axes = _dot_plot(by_category, overall, series)
    axes.axvline(CHANCE, color=_MUTED, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    axes.set_xlim(-0.02, 1.02)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    axes.set_xlabel("share of right answers; dashed: guessing")
    handles = [
        Line2D([], [], color=one.colour, marker=one.marker, linestyle="none", markersize=6, label=one.label)
        for one in series
    ]
    figure.legend(handles=handles, loc="outside upper left", ncols=2, frameon=False, fontsize=10, handletextpad=0.2)
    texts = [f"{one.label}: {_describe(by_category, overall, one.key, signed=False)}" for one in series]
    return _inline(figure, "accuracy", title, " ".join(texts))


def _dot_plot(by_category: Mapping[str, Scores], overall: Scores, series: Sequence[_Series]) -> tuple[Figure, Any]:
    """Draw the dots and intervals, one row a category and the overall row set apart below."""
    places = [*range(len(by_category)), len(by_category) + 0.4]
    figure = Figure(figsize=(_WIDTH_INCHES, 1.3 + _ROW_INCHES * (places[-1] + 1)), layout="constrained")
    axes = figure.add_subplot()
    axes.set_ylim(places[-1] + 0.6, -0.6)
    axes.set_yticks(places, [*map(_figure_label, by_category), "All"])
    axes.get_yticklabels()[-1].set_fontweight("bold")
    axes.xaxis.grid(True, color=_GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.axhline(places[-1] - 0.7, color=_GRID, linewidth=1, zorder=1)
    for number, one in enumerate(series):
        offset = 0.3 * (number - (len(series) - 1) / 2)
        _draw_series(axes, one, [place + offset for place in places], [*by_category.values(), overall])
    return figure, axes


def _draw_series(axes: Any, series: _Series, places: Sequence[float], rows: Sequence[Scores]) -> None:
    dots = []
    for place, scores in zip(places, rows, strict=True):
        value = scores[series.key]
        low, high = _interval(scores, series.key)
        if value is None:
            axes.text(0.01, place, f"{UNDEFINED} undefined", color=_MUTED, fontsize=9, va="center", zorder=4)
            continue
        dots.append((value, place))
        if low is not None and high is not None:
            axes.plot([low, high], [place, place], color=series.colour, linewidth=2, solid_capstyle="butt", zorder=2)
    # The gid lets a test find the dots again and compare their places with the scores.
    axes.plot(
        [x for x, _ in dots],
        [y for _, y in dots],
        linestyle="none",
        marker=series.marker,
        markersize=7,
        color=series.colour,
        markeredgecolor=_PAPER,
        markeredgewidth=1,
        zorder=3,
        gid=f"dots-{series.key}",
    )


def _interval(scores: Scores, key: str) -> tuple[float | None, float | None]:
    low, high = scores.get("ci", {}).get(key, (None, None))
    return low, high


def _describe(by_category: Mapping[str, Scores], overall: Scores, key: str, signed: bool) -> str:
    """Say the plotted numbers, for readers who cannot see the plot."""
    parts = [
        f"{_printable(name)} {percent(scores[key], signed) if scores[key] is not None else 'undefined'}"
        for name, scores in [*by_category.items(), ("All", overall)]
    ]
    return "; ".join(parts) + "."


def _printable(text: str) -> str:
    """Replace what XML cannot hold or what would reorder the line."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def _figure_label(name: str) -> str:
    text = _printable(name)
    return text if len(text) <= _LONGEST_LABEL else text[: _LONGEST_LABEL - 1] + "…"


def _inline(figure: Figure, name: str, title: str, description: str) -> str:
    """Return the figure as an SVG element that can stand in an HTML page beside others."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # The reader's browser draws the texts, so a glyph that Matplotlib's font lacks does no harm.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    svg = ElementTree.fromstring(buffer.getvalue())

    for parent in list(svg.iter()):
        for child in list(parent):
            # A <style> element would rule the whole page.
            if child.tag in {f"{{{_SVG}}}metadata", f"{{{_SVG}}}style"}:
                parent.remove(child)
    for element in svg.iter():
        element.tag = element.tag.removeprefix(f"{{{_SVG}}}")
        element.attrib = {key: _page_value(key, value, name) for key, value in element.attrib.items()}
        if f"{_XLINK}href" in element.attrib:
            element.attrib["href"] = element.attrib.pop(f"{_XLINK}href")

    view_box = svg.attrib["viewBox"]
    width, height = (math.ceil(float(number)) for number in view_box.split()[2:])
    svg.attrib = {
        "viewBox": view_box,
        "width": str(width),
        "height": str(height),
        "role": "img",
        "aria-labelledby": f"{name}-title",
        "aria-describedby": f"{name}-desc",
    }
    for position, (tag, text) in enumerate((("title", title), ("desc", description))):
        element = ElementTree.Element(tag, {"id": f"{name}-{tag}"})
        element.text = text
        svg.insert(position, element)
    return ElementTree.tostring(svg, encoding="unicode")


def _page_value(key: str, value: str, name: str) -> str:
    """Return an attribute's value with the page's colours and with ids that are unique in the page."""
    if key == "id":
        return f"{name}-{value}"
    if key == f"{_XLINK}href":
        return value.replace("#", f"#{name}-", 1)
    if key == "clip-path":
        return value.replace("url(#", f"url(#{name}-", 1)
    if key == "style":
        return re.sub("#[0-9a-f]{6}", lambda match: _VARIABLES.get(match[0], match[0]), value)
    return value
