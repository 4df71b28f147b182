"""A figure of a score over the steps of a training, in the style of the reports."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from qabias.scores.facts import Measure
from qabias.scores.formatting import show
from qabias.tables.drawing import SERIES, Drawing, Key, ticks

if TYPE_CHECKING:
    import pandas

_WIDTH, _LEFT, _RIGHT, _TOP, _HEIGHT = 440, 62, 425, 30, 190
_MOST_TICKS = 8
_ROOM = 0.05  # margin before the first and after the last step, as a share of their distance
_FREE_BELOW = 0.15  # space below the curve for marks at the bottom, as a share of its height
_MARKS = {
    "dots": "",
    "hollow": "score without the missing answers",
    "bare": "score without an interval",
    "undefined": "undefined",
    "failed": "failed",
}
_Point = tuple[float, ...]


def draw_curve(
    curve: pandas.DataFrame, name: str, measure: Measure, clusters: str, failed: Collection[int] = ()
) -> Drawing:
    """Draw a column of a curve over its index, with intervals and 0 marked."""
    steps = [int(step) for step in curve.index]
    ends = [f"{name}{end}" for end in ("", "_low", "_high", "_possible_low", "_possible_high")]
    points = list(zip(steps, *(curve.get(end, curve[name] * math.nan).tolist() for end in ends), strict=True))
    kinds = [_kind(point, failed) for point in points]
    is_complete = not {"undefined", "failed"} & set(kinds)
    drawn = [0.0, *(end for point in points for end in point[1:] if not math.isnan(end))]
    axis = ticks(min(drawn), max(*drawn, min(drawn) + 0.001))
    lowest = axis[0] - (0 if is_complete else _FREE_BELOW * (axis[-1] - axis[0]))
    room = _ROOM * (steps[-1] - steps[0]) or 1
    bottom = _TOP + _HEIGHT

    def x(step: float) -> float:
        return _LEFT + (step - steps[0] + room) / (steps[-1] - steps[0] + 2 * room) * (_RIGHT - _LEFT)

    def y(value: float) -> float:
        return bottom - (value - lowest) / (axis[-1] - lowest) * _HEIGHT

    bands = {
        f"95% CI, clustered by {clusters}": ("band", [(x(step), y(low), y(high)) for step, _, low, high, *_ in points]),
        "possible range": ("possible", [(x(p[0]), y(p[4]), y(p[5])) for p in points]),
    }
    shown = {title: band for title, band in bands.items() if not all(math.isnan(end) for _, end, _ in band[1])}
    marks = [kind for kind in _MARKS if kind in kinds]
    n_entries = len(shown) + sum(kind != "dots" for kind in marks)
    drawing = Drawing(measure.title, _WIDTH, bottom + 45 + 17 * math.ceil(n_entries / 2))
    selection = name.removesuffix(measure.name).removesuffix("_")
    drawing.text(_LEFT, 14, ": ".join(filter(None, (selection, measure.title))))
    for tick in axis:
        drawing.line([(_LEFT, y(tick)), (_RIGHT, y(tick))], "ink" if tick == 0 else "grid", 0.8)
        drawing.text(_LEFT - 4, y(tick), show(float(tick), measure.kind), "end")
    for step in steps if len(steps) <= _MOST_TICKS else ticks(steps[0], steps[-1], whole=True):
        if steps[0] <= step <= steps[-1]:
            drawing.text(x(step), bottom + 11, f"{step:g}", "middle", color="muted")
    drawing.line([(_LEFT, bottom), (_RIGHT, bottom)], "grid", 0.8)
    drawing.text((_LEFT + _RIGHT) / 2, bottom + 27, "Step of the training", "middle", color="muted")
    entries: list[tuple[str, Key]] = []
    for title, (part, band) in shown.items():
        _band(drawing, part, band)
        entries.append((title, _band_key(drawing, part)))
    for run in _defined([(x(point[0]), y(point[1])) for point in points]):
        drawing.line([(place, height) for place, height in run], SERIES[0], 1.5, part="line")
    for kind in marks:
        for point in (point for point, own in zip(points, kinds, strict=True) if own == kind):
            _mark(drawing, kind, x(point[0]), y(point[1]) if kind in ("dots", "hollow", "bare") else bottom - 8, kind)
        if _MARKS[kind]:
            entries.append((_MARKS[kind], _mark_key(drawing, kind)))
    drawing.legend(entries, 2, top=bottom + 45)
    return drawing


def _kind(point: _Point, failed: Collection[int]) -> str:
    step, value, low, _, possible_low, _ = point
    if math.isnan(value):
        return "failed" if step in failed else "undefined"
    return "dots" if not math.isnan(low) else "bare" if math.isnan(possible_low) else "hollow"


def _defined(points: Sequence[_Point]) -> Iterator[list[_Point]]:
    """The stretches of points without NaN."""
    for is_defined, group in groupby(points, lambda point: not any(map(math.isnan, point))):
        if is_defined:
            yield list(group)


def _band(drawing: Drawing, part: str, points: Sequence[_Point]) -> None:
    """A band between two ends; a vertical line at a step between two steps without ends."""
    is_interval = part == "band"
    color, dashes = (SERIES[0], "") if is_interval else ("muted", "4 2")
    for run in _defined(points):
        corners = [(x, low) for x, low, _ in run] + [(x, high) for x, _, high in reversed(run)]
        path = "L".join(f"{x:.2f} {y:.2f}" for x, y in corners)
        fill = {"fill": color, "fill_opacity": "0.2"} if is_interval else {"fill": "hatch"}
        drawing.add("path", d=f"M{path}Z", part=part, **fill)
        for x, low, high in run:
            drawing.line([(x, low), (x, high)], color, stroke_dasharray=dashes, part=f"{part}-ends", stroke_opacity=0.6)


def _band_key(drawing: Drawing, part: str) -> Key:
    return lambda x, y: _band(drawing, part, [(x - 8, y - 4, y + 4), (x + 8, y - 4, y + 4)])


def _mark(drawing: Drawing, kind: str, x: float, y: float, part: str = "") -> None:
    if kind in ("undefined", "failed"):
        color, width = (SERIES[1], 1.0) if kind == "failed" else ("muted", 0.4)
        drawing.mark(x, y, "cross", color, part, stroke_width=width)
    elif kind == "dots":
        drawing.mark(x, y, "circle", SERIES[0], part)
    else:
        shape = "circle" if kind == "hollow" else "square"
        drawing.mark(x, y, shape, SERIES[0], part, size=6, fill="paper", stroke=SERIES[0], stroke_width=0.5)


def _mark_key(drawing: Drawing, kind: str) -> Key:
    return lambda x, y: _mark(drawing, kind, x, y)
