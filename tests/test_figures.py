"""Figures: every mark lies where its value says, and what is undefined is never drawn as 0."""

import dataclasses
import re
from statistics import fmean
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qabias.errors import QabiasError
from qabias.scores.score import Score
from qabias.tables import figures
from qabias.tables.drawing import ticks
from qabias.tables.model import FIGURES, Analysis

from .kit.pages import figure_of, parts, places, svg_of, table_of, texts


def dots(svg, column):
    """Places of the dots of one column, in drawing units."""
    return places(svg, f"dots-{column}")


def widths(svg, mark):
    """Widths of bars or parts, in drawing units."""
    return [float(rect.get("width")) for rect in parts(svg, mark)]


@pytest.mark.parametrize("kind", FIGURES)
def test_names_show_as_text_in_figures(kind):
    name = "<b>$x_1$ & {{ 7 }}</b>"
    assert name in texts(svg_of(figure_of(kind, name)))


def test_dots_and_intervals_lie_where_their_scores_say():
    rows = [("A", -0.5, 1), ("B", 0.0, 1), ("C", 0.25, 1), ("All", 0.1, 1)]
    svg = svg_of(table_of("intervals", [("x", "X", "signed"), ("n", "N", "count")], rows, ["x"]))
    (a, b, c, overall) = dots(svg, "x")
    # x is linear in the score: 0.5 units from A to B, 0.25 from B to C, 0.1 from B to all.
    assert (b[0] - a[0]) / (c[0] - b[0]) == pytest.approx(2, rel=1e-3)
    assert (c[0] - b[0]) / (overall[0] - b[0]) == pytest.approx(2.5, rel=2e-3)
    assert a[0] < b[0] < c[0]
    # Rows run downwards in the order given, the overall row set apart.
    assert a[1] < b[1] < c[1] < overall[1]
    assert overall[1] - c[1] > 1.2 * (c[1] - b[1])
    assert {"−50 %", "0 %", "+50 %", "A", "All"} <= set(texts(svg))


@pytest.mark.parametrize(
    ("kind", "value", "ends"),
    [
        ("signed", 0.04, ("−10 %", "+10 %")),
        ("signed", -0.2, ("−25 %", "+25 %")),
        ("signed", 1.3, ("−200 %", "+200 %")),
        ("signed", -3.9, ("−400 %", "+400 %")),
        ("share", 0.04, ("0 %", "100 %")),
        ("number", 0.6, ("0", "0.6")),
    ],
)
def test_the_axis_holds_the_scores(kind, value, ends):
    svg = svg_of(table_of("intervals", [("x", "X", kind)], [("A", Score(value, value, value))], ["x"]))
    assert set(ends) <= set(texts(svg))


@pytest.mark.parametrize("n_series", range(1, 7))
def test_every_dot_is_nearest_to_its_own_row(n_series):
    names = [f"x{number}" for number in range(n_series)]
    rows = [(label, *[0.5] * n_series) for label in ("A", "B", "C", "All")]
    svg = svg_of(table_of("intervals", [(name, name, "share") for name in names], rows, names))
    heights = [[y for _, y in dots(svg, name)] for name in names]
    # The series lie symmetrically about the middle of their row.
    middles = [fmean(of_row) for of_row in zip(*heights, strict=True)]
    for of_series in heights:
        for row, y in enumerate(of_series):
            assert min(range(len(rows)), key=lambda other: abs(middles[other] - y)) == row
    assert len({y for of_series in heights for y in of_series}) == n_series * len(rows)


@given(st.lists(st.one_of(st.none(), st.floats(-1, 1)), min_size=1, max_size=8))
@settings(max_examples=10, deadline=None)
def test_every_defined_score_has_a_dot_and_every_other_a_word(values):
    svg = svg_of(table_of("intervals", [("x", "X", "signed")], [(f"r{n}", x) for n, x in enumerate(values)], ["x"]))
    places = dots(svg, "x")
    defined = [x for x in values if x is not None]
    assert len(places) == len(defined)
    assert texts(svg).count("— undefined") == len(values) - len(defined)
    width = float(svg.get("width"))
    assert all(0 < x < width for x, _ in places)
    for (x1, _), one in zip(places, defined, strict=True):
        for (x2, _), other in zip(places, defined, strict=True):
            assert x1 <= x2 + 0.02 or one > other


def test_bars_start_at_zero_and_say_their_numbers():
    rows = [("A", 0.1, -0.2), ("B", 0.05, None), ("C", 0.0, 0.2)]
    svg = svg_of(table_of("bars", [("x", "X", "share"), ("y", "Y", "signed")], rows, ["x", "y"]))
    x, y = widths(svg, "bar-x"), widths(svg, "bar-y")
    assert x[0] / x[1] == pytest.approx(2, rel=1e-2)
    assert x[2] == 0
    assert y == pytest.approx([2 * x[0]] * 2, rel=1e-2)
    printed = texts(svg)
    for text in ("10.0\u00a0%", "5.0\u00a0%", "0.0\u00a0%", "−20.0\u00a0%", "+20.0\u00a0%", "— undefined"):
        assert printed.count(text) == 1


def test_parts_fill_the_bar_in_their_shares():
    columns = [("x", "X", "share"), ("y", "Y", "share"), ("z", "Z", "share")]
    rows = [("A", 0.5, 0.3, 0.2), ("B", None, None, None), ("C", 0.0, 0.05, 0.95)]
    svg = svg_of(table_of("shares", columns, rows, ["x", "y", "z"]))
    x, y, z = (widths(svg, f"part-{name}") for name in "xyz")
    whole = x[0] + y[0] + z[0]
    assert [x[0] / whole, y[0] / whole, z[0] / whole] == pytest.approx([0.5, 0.3, 0.2], abs=1e-3)
    assert len(x) == 1  # nothing is drawn for 0
    assert z[1] / whole == pytest.approx(0.95, abs=1e-3)
    assert {"50.0\u00a0%", "30.0\u00a0%", "20.0\u00a0%", "95.0\u00a0%", "— undefined"} <= set(texts(svg))


def test_a_heat_map_prints_values_hatches_the_undefined_and_leaves_out_what_is_not_there():
    rows = [("A", "a", 0.5), ("A", "b", None), ("B", "a", Score(-0.25, -0.5, 0.0)), ("C", "c", 0.0)]
    svg = svg_of(table_of("heatmap", [("x", "X", "signed")], rows, ["x"], across="column"))
    (undefined,) = parts(svg, "cell-undefined")
    assert undefined.get("fill") == "url(#f-hatch)"
    assert svg.find("defs/pattern").get("id") == "f-hatch"
    cells = parts(svg, "cell")
    # Color and depth: with the stereotype at the deepest, against it at half of that, nothing at 0.
    assert [cell.get("fill") for cell in cells[:2]] == ["var(--series-1)", "var(--series-0)"]
    assert [float(cell.get("fill-opacity")) for cell in cells] == pytest.approx([0.5, 0.25, 0])
    assert sorted(text for text in texts(svg) if text[0] in "+−0") == ["+50.0", "0.0", "−25.0"]
    assert set("ABCabc") <= set(texts(svg))


def depths(table):
    return [float(cell.get("fill-opacity")) for cell in parts(svg_of(table), "cell")]


@pytest.mark.parametrize("kind", ["signed", "share"])
def test_weak_fractions_look_weak_even_if_they_are_the_strongest_of_their_table(kind):
    def shown(*values):
        rows = [("A", f"c{number}", value) for number, value in enumerate(values)]
        return depths(table_of("heatmap", [("x", "X", kind)], rows, ["x"], across="column"))

    assert shown(0.001) == pytest.approx([0.005])
    assert shown(1.0, 0.001) == pytest.approx([0.5, 0.0005])
    assert shown(0.4, 0.2) == pytest.approx([0.4, 0.2])


def test_a_heat_map_has_a_panel_for_each_of_its_values():
    columns = [("x", "s_AMB", "signed"), ("y", "s_DIS", "signed")]
    rows = [("A", "a", 0.5, -0.25), ("A", "b", 0.1, None), ("B", "a", 0.2, 0.3)]
    svg = svg_of(table_of("heatmap", columns, rows, ["x", "y"], across="column"))
    assert len(parts(svg, "cell")) == 5
    assert len(parts(svg, "cell-undefined")) == 1
    printed = texts(svg)
    assert {"s_AMB", "s_DIS", "+50.0", "−25.0", "+10.0", "+20.0", "+30.0"} <= set(printed)
    assert (printed.count("a"), printed.count("b"), printed.count("A"), printed.count("B")) == (2, 2, 1, 1)
    # One scale for both: half as strong is half as deep, whichever the panel.
    both = depths(table_of("heatmap", columns, rows[:1], ["x", "y"], across="column"))
    assert both == pytest.approx([0.5, 0.25])
    lefts = [float(cell.get("x")) for cell in parts(svg, "cell")]
    assert min(lefts[3:]) > max(lefts[:3])


def test_ranks_show_mean_and_spread_however_it_is_given():
    columns = [("mean", "Mean", "number"), ("spread", "Spread", "number")]
    rows = [("A", 1.5, 0.5), ("B", 4.0, 1.0), ("C", None, None)]
    apart = svg_of(table_of("ranks", columns, rows, ["mean", "spread"]))
    joint = [("A", Score(1.5, 1.0, 2.0)), ("B", Score(4.0, 3.0, 5.0)), ("C", None)]
    together = svg_of(table_of("ranks", columns[:1], joint, ["mean"]))
    assert ElementTree.tostring(apart) == ElementTree.tostring(together)
    assert len(dots(apart, "mean")) == 2
    assert texts(apart).count("— undefined") == 1


def test_lines_break_where_a_value_is_undefined():
    columns = [("x", "short", "signed"), ("y", "medium", "signed"), ("z", "long", "signed")]
    rows = [("A", 0.1, 0.2, 0.4), ("B", 0.1, None, 0.3)]
    svg = svg_of(table_of("lines", columns, rows, ["x", "y", "z"]))
    heights = [y for _, y in dots(svg, "0")]
    assert (heights[1] - heights[2]) / (heights[0] - heights[1]) == pytest.approx(2, rel=1e-2)
    assert len(dots(svg, "1")) == 2
    (line,) = parts(svg, "line-0")
    assert [float(y) for y in re.findall(r" ([\d.]+)", line.get("d"))] == heights
    assert parts(svg, "line-1") == []
    assert {"short", "medium", "long", "A", "B"} <= set(texts(svg))


@pytest.mark.parametrize("kind", FIGURES)
def test_figures_take_their_colours_from_the_page(kind):
    svg = svg_of(figure_of(kind, "a"))
    assert not re.search("#[0-9a-f]{6}", ElementTree.tostring(svg, encoding="unicode"))
    # Texts without a color of their own would stay black on the dark page.
    assert all(text.get("fill").startswith("var(--") for text in svg.iter("text"))


def test_a_figure_of_too_many_rows_says_what_it_leaves_out(page):
    rows = [(f"row {n}", 0.5) for n in range(figures.MOST_ROWS + 7)]
    page = page(analysis=Analysis((table_of("bars", [("x", "X", "share")], rows, ["x"]),)))
    assert "Not drawn: 7 rows or columns." in page.text
    assert page.row(f"row {figures.MOST_ROWS + 6}")


@pytest.mark.parametrize(("kind", "start"), [("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG")])
def test_figures_are_saved_the_same_twice(tmp_path, kind, start):
    path = tmp_path / f"figure.{kind.upper()}"
    figures.draw(figure_of("heatmap", "x")).save(path)
    assert path.read_bytes().startswith(start)
    assert path.read_bytes() == figures.draw(figure_of("heatmap", "x")).file(kind)


def test_a_file_of_a_figure_has_its_own_colors_and_a_known_ending(tmp_path):
    drawing = figures.draw(figure_of("bars", "$x_1$ & <b>"))
    svg = ElementTree.fromstring(drawing.svg())
    assert {text.get("fill") for text in svg.iter("{http://www.w3.org/2000/svg}text")} <= {"#1c2024", "#5d666f"}
    assert "var(" not in drawing.svg()
    with pytest.raises(QabiasError, match="gif"):
        drawing.save(tmp_path / "figure.gif")


def test_a_table_without_a_figure_cannot_be_drawn():
    with pytest.raises(ValueError, match="t has no figure"):
        figures.draw(dataclasses.replace(figure_of("bars", "x"), figure=None))


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.booleans())
def test_ticks_are_few_round_and_hold_the_range(low, length, whole):
    places = ticks(low, low + length, whole)
    slack = 1e-6 * (abs(low) + length)
    assert places[0] <= low + slack
    assert low + length <= places[-1] + slack
    assert 2 <= len(places) <= 7
    assert not whole or all(place == int(place) for place in places)
