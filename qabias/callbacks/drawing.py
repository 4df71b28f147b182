"""A score over the steps of a training, drawn in the style of the reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

from qabias.benchmarks.facts import Measure
from qabias.tables.figures import GRID, INK, SERIES, style
from qabias.tables.formatting import show

if TYPE_CHECKING:
    import pandas

_SIZE = (5.6, 3.2)  # inches
_MOST_TICKS = 8


def draw_curve(curve: pandas.DataFrame, name: str, measure: Measure, clusters: str) -> Figure:
    """Draw a column of a curve over its index, with the interval as a band and 0 marked.

    Args:
        curve: Rows by step, as `BiasCallback.curve` gives them. Where a score is undefined the line breaks.
        name: Name of the column.
        measure: The score, for its title and kind.
        clusters: What its interval is over.
    """
    steps = curve.index.tolist()
    value, low, high = (curve[column].to_numpy() for column in (name, f"{name}_low", f"{name}_high"))
    with style():
        figure = Figure(figsize=_SIZE, layout="constrained")
        axes = figure.add_subplot()
        axes.fill_between(steps, low, high, color=SERIES[0], alpha=0.2, linewidth=0, gid=f"band-{name}")
        axes.plot(steps, value, color=SERIES[0], marker="o", markersize=5, gid=f"line-{name}")
        axes.axhline(0, color=INK, linewidth=1, zorder=1)
        axes.yaxis.grid(True, color=GRID, linewidth=0.8)
        axes.set_axisbelow(True)
        few = len(steps) <= _MOST_TICKS
        axes.xaxis.set_major_locator(FixedLocator(steps) if few else MaxNLocator(_MOST_TICKS, integer=True))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda tick, _: show(float(tick), measure.kind)))
        axes.set_xlabel(f"Step of the training; band: 95 % interval over {clusters}")
        selection = name.removesuffix(measure.name).removesuffix("_")
        axes.set_title(": ".join(filter(None, (selection, measure.title))), loc="left", fontsize=10.5)
    return figure
