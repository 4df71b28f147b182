"""The figure of a training: every measured step is in it, and what a score lacks is seen."""

import math

import numpy as np
import pandas
import pytest

from qabias.benchmarks.bbq.facts import FACTS
from qabias.callbacks.drawing import draw_curve

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


def drawn(curve, failed=()):
    figure = draw_curve(curve, NAME, FACTS.measure(NAME), "templates", failed)
    (axes,) = figure.axes
    parts = {artist.get_gid(): artist for artist in (*axes.lines, *axes.collections) if artist.get_gid()}
    labels = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    return axes, {gid.removesuffix(f"-{NAME}"): artist for gid, artist in parts.items()}, labels


@pytest.fixture(scope="module")
def all_kinds():
    return drawn(curve_of(POINTS), failed={800})


def ends_of(lines):
    segments = [segment for segment in lines.get_segments() if len(segment)]  # empty where an end is undefined
    return {int(x): (low, high) for (x, low), (_, high) in segments}


def test_every_kind_of_point_looks_different_and_has_its_entry(all_kinds):
    _, parts, labels = all_kinds
    places = {name: parts[name].get_xdata().tolist() for name in ("dots", "hollow", "bare", "undefined", "failed")}
    assert places == {
        "dots": [100, 200, 700],
        "hollow": [300, 400],
        "bare": [600],
        "undefined": [0, 500],
        "failed": [800],
    }
    for name in ("dots", "hollow", "bare"):
        assert parts[name].get_ydata().tolist() == [POINTS[step][0] for step in places[name]]
    fills = {name: parts[name].get_markerfacecolor() for name in ("dots", "hollow", "bare")}
    assert fills["dots"] == parts["dots"].get_color()
    assert fills["hollow"] != fills["dots"] != fills["bare"]
    looks = [(parts[name].get_marker(), fills.get(name), parts[name].get_color()) for name in places]
    assert len(set(looks)) == len(places)
    assert labels == [
        "95 % interval over templates",
        "possible with the missing answers",
        "score without the missing answers",
        "score without an interval",
        "undefined",
        "failed",
    ]


def test_intervals_and_what_is_possible_are_two_bands_with_lines_at_the_steps(all_kinds):
    _, parts, _ = all_kinds
    assert ends_of(parts["ends"]) == {step: POINTS[step][1:3] for step in (100, 200, 700)}
    assert ends_of(parts["range"]) == {step: POINTS[step][3:] for step in (300, 400, 500)}
    for name, steps in (("band", (100, 200, 700)), ("possible", (300, 400, 500))):
        inside = np.concatenate([path.vertices[:, 0] for path in parts[name].get_paths()])
        assert set(inside) <= set(steps)
    assert parts["possible"].get_hatch()
    assert not parts["band"].get_hatch()


def test_all_measured_steps_are_on_the_axis_and_marks_are_below_the_curve(all_kinds):
    axes, parts, _ = all_kinds
    low, high = axes.get_xlim()
    assert low < 0
    assert high > 800
    bottom, top = axes.get_ylim()
    assert bottom + parts["undefined"].get_ydata()[0] * (top - bottom) < -1.0  # the lowest that is drawn
    assert 0 < parts["failed"].get_ydata()[0] < 0.1


def test_where_nothing_is_missing_the_legend_names_the_interval_alone():
    _, parts, labels = drawn(curve_of({step: POINTS[step] for step in (100, 200)}, ENDS[:3]))
    assert set(parts) == {"line", "band", "ends", "dots"}
    assert labels == ["95 % interval over templates"]


def test_a_curve_without_any_score_says_that_it_is_undefined():
    axes, parts, labels = drawn(curve_of({step: POINTS[0] for step in (10, 20)}, ENDS[:3]))
    assert labels == ["undefined"]
    assert parts["undefined"].get_xdata().tolist() == [10, 20]
    assert axes.get_xlim()[0] < 10 < 20 < axes.get_xlim()[1]
