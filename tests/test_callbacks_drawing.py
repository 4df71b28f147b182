"""The figure of a training: every measured step is in it, and what a score lacks is seen."""

import math
import re
from xml.etree import ElementTree

import pandas
import pytest

from qabias.benchmarks.bbq.facts import FACTS
from qabias.callbacks.drawing import draw_curve

from .kit.pages import parts, places, texts

NAME = "bias_ambig"
NAN = math.nan
ENDS = ("", "_low", "_high", "_possible_low", "_possible_high")
POINTS = {
    0: (NAN, NAN, NAN, NAN, NAN),  # undefined
    100: (0.02, -0.10, 0.14, NAN, NAN),
    200: (0.08, -0.02, 0.18, NAN, NAN),
    300: (0.30, NAN, NAN, -0.50, 0.62),  # many answers are missing
    400: (0.20, NAN, NAN, -0.30, 0.50),
    500: (NAN, NAN, NAN, -1.0, 1.0),  # all are
    600: (0.25, NAN, NAN, NAN, NAN),  # too few templates for an interval
    700: (0.10, 0.05, 0.15, NAN, NAN),
    800: (NAN, NAN, NAN, NAN, NAN),  # failed
}


def curve_of(points, ends=ENDS):
    columns = [f"{NAME}{end}" for end in ENDS]
    curve = pandas.DataFrame(points.values(), index=pandas.Index(points, name="step"), columns=columns)
    return curve[[f"{NAME}{end}" for end in ends]]


LEGEND = [
    "95% CI, clustered by templates",
    "possible range",
    "score without the missing answers",
    "score without an interval",
    "undefined",
    "failed",
]


def drawn(curve, failed=()):
    drawing = draw_curve(curve, NAME, FACTS.measure(NAME), "templates", failed)
    return ElementTree.fromstring(drawing.inline("f", "numbers"))


@pytest.fixture(scope="module")
def all_kinds():
    return drawn(curve_of(POINTS), failed={800})


@pytest.fixture(scope="module")
def scale(all_kinds):
    """Steps and values by their places, from two dots."""
    (x1, y1), _, (x2, _) = places(all_kinds, "dots")
    (_, top), (_, bottom) = (places(all_kinds, "hollow")[0], (x1, y1))
    per_value = (top - bottom) / (POINTS[300][0] - POINTS[100][0])
    return lambda x, y: (round(100 + 600 * (x - x1) / (x2 - x1)), round(0.02 + (y - y1) / per_value, 2))


def corners(path):
    return [tuple(map(float, pair)) for pair in re.findall(r"([\d.]+) ([\d.]+)", path.get("d"))]


def test_every_kind_of_point_is_at_its_place_looks_different_and_has_its_entry(all_kinds, scale):
    found = {name: [scale(*place) for place in places(all_kinds, name)] for name in ("dots", "hollow", "bare")}
    steps = {"dots": (100, 200, 700), "hollow": (300, 400), "bare": (600,)}
    assert found == {name: [(step, POINTS[step][0]) for step in own] for name, own in steps.items()}
    assert [scale(*place)[0] for place in places(all_kinds, "undefined")] == [0, 500]
    assert [scale(*place)[0] for place in places(all_kinds, "failed")] == [800]
    marks = [parts(all_kinds, name)[0] for name in (*steps, "undefined", "failed")]
    assert len({tuple(mark.get(key) for key in ("d", "fill", "stroke")) for mark in marks}) == len(marks)
    assert [text for text in texts(all_kinds) if text in LEGEND] == LEGEND


def test_intervals_and_what_is_possible_are_two_bands_with_lines_at_the_steps(all_kinds, scale):
    for name, steps, ends in (("band", (100, 200, 700), (1, 2)), ("possible", (300, 400, 500), (3, 4))):
        lines = [[scale(*corner) for corner in corners(path)] for path in parts(all_kinds, f"{name}-ends")]
        expected = [[(step, POINTS[step][end]) for end in ends] for step in steps]
        assert [line for line in lines if line in expected] == expected
        inside = {scale(*corner)[0] for path in parts(all_kinds, name) for corner in corners(path)}
        assert set(steps) <= inside
    assert {path.get("fill") for path in parts(all_kinds, "possible")} == {"url(#f-hatch)"}
    assert {path.get("fill") for path in parts(all_kinds, "band")} == {"var(--series-0)"}


def test_where_nothing_is_missing_the_legend_names_the_interval_alone():
    svg = drawn(curve_of({step: POINTS[step] for step in (100, 200)}, ENDS[:3]))
    assert {path.get("data-part") for path in svg.iter("path")} == {None, "line", "band", "band-ends", "dots"}
    assert [text for text in texts(svg) if text in LEGEND] == LEGEND[:1]


def test_a_curve_without_any_score_says_that_it_is_undefined():
    svg = drawn(curve_of({step: POINTS[0] for step in (10, 20)}, ENDS[:3]))
    assert [text for text in texts(svg) if text in LEGEND] == ["undefined"]
    assert len(parts(svg, "undefined")) == 2
    assert {"10", "20"} <= set(texts(svg))
