"""A score over the steps of a training, drawn in the style of the reports."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

from qabias.benchmarks.facts import Measure
from qabias.tables.figures import GRID, INK, MUTED, PAPER, SERIES, style
from qabias.tables.formatting import show

if TYPE_CHECKING:
    import pandas

_SIZE = (5.6, 3.6)  # inches
_MOST_TICKS = 8
_COLOUR, _OF_FAILURES = SERIES[:2]
_ROOM = 0.05  # beside the first and the last step, as a share of what lies between them
_AT_BOTTOM = 0.04  # share of the height
_FREE_BELOW = 0.15  # what marks at the bottom need below the curve, as a share of its height


def draw_curve(
    curve: pandas.DataFrame, name: str, measure: Measure, clusters: str, failed: Collection[int] = ()
) -> Figure:
    """Draw a column of a curve over its index, with intervals and 0 marked."""
    steps = curve.index.to_numpy()
    value, low, high, possible_low, possible_high = (
        curve.get(f"{name}{end}", curve[name] * np.nan).to_numpy(float)
        for end in ("", "_low", "_high", "_possible_low", "_possible_high")
    )
    is_there = ~np.isnan(value)
    has_interval, has_range = ~np.isnan(low), ~np.isnan(possible_low)
    has_failed = ~is_there & np.isin(steps, list(failed))
    hollow = {"markerfacecolor": PAPER, "markeredgewidth": 1.4}
    with style():
        figure = Figure(figsize=_SIZE, layout="constrained")
        axes = figure.add_subplot()
        axes.axhline(0, color=INK, linewidth=1, zorder=1)
        axes.plot(steps, value, color=_COLOUR, linewidth=1.5, gid=f"line-{name}")
        if has_interval.any():
            label = f"95 % interval over {clusters}"
            axes.fill_between(steps, low, high, color=_COLOUR, alpha=0.2, linewidth=0, gid=f"band-{name}", label=label)
            # A band has no width at a step between two without one.
            axes.vlines(steps, low, high, color=_COLOUR, alpha=0.5, linewidth=1, gid=f"ends-{name}")
        if has_range.any():
            label = "possible with the missing answers"
            axes.fill_between(
                steps,
                possible_low,
                possible_high,
                facecolor="none",
                edgecolor=MUTED,
                hatch="////",
                linewidth=0,
                gid=f"possible-{name}",
                label=label,
            )
            axes.vlines(
                steps, possible_low, possible_high, color=MUTED, linestyles="dashed", linewidth=1, gid=f"range-{name}"
            )
        _dots(axes, steps, value, has_interval, {}, f"dots-{name}", "")
        _dots(axes, steps, value, is_there & has_range, hollow, f"hollow-{name}", "score without the missing answers")
        bare = is_there & ~has_interval & ~has_range
        _dots(axes, steps, value, bare, {**hollow, "marker": "s"}, f"bare-{name}", "score without an interval")
        _crosses(axes, steps[~is_there & ~has_failed], {"color": MUTED}, f"undefined-{name}", "undefined")
        _crosses(axes, steps[has_failed], {"color": _OF_FAILURES, "marker": "X"}, f"failed-{name}", "failed")
        room = _ROOM * (steps[-1] - steps[0]) or 1
        axes.set_xlim(steps[0] - room, steps[-1] + room)
        if not is_there.all():
            bottom, top = axes.get_ylim()
            axes.set_ylim(bottom - _FREE_BELOW * (top - bottom), top)
        axes.yaxis.grid(True, color=GRID, linewidth=0.8)
        axes.set_axisbelow(True)
        few = len(steps) <= _MOST_TICKS
        axes.xaxis.set_major_locator(FixedLocator(steps.tolist()) if few else MaxNLocator(_MOST_TICKS, integer=True))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda tick, _: show(float(tick), measure.kind)))
        axes.set_xlabel("Step of the training")
        selection = name.removesuffix(measure.name).removesuffix("_")
        axes.set_title(": ".join(filter(None, (selection, measure.title))), loc="left", fontsize=10.5)
        figure.legend(loc="outside lower left", ncols=2, fontsize=9)
    return figure


def _dots(axes: Any, steps: Any, value: Any, chosen: Any, look: dict[str, Any], gid: str, label: str) -> None:
    if chosen.any():
        look = {"marker": "o", "markersize": 5, "color": _COLOUR, "linestyle": "none", "zorder": 3, **look}
        axes.plot(steps[chosen], value[chosen], gid=gid, label=label, **look)


def _crosses(axes: Any, steps: Any, look: dict[str, Any], gid: str, label: str) -> None:
    if len(steps):
        look = {"marker": "x", "markersize": 7, "linestyle": "none", "clip_on": False, **look}
        heights = [_AT_BOTTOM] * len(steps)
        axes.plot(steps, heights, transform=axes.get_xaxis_transform(), gid=gid, label=label, **look)
