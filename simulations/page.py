"""The coverage of the intervals as a table and a picture for the documentation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from simulations.coverage import ACCURACIES, FEW, MORE, TEMPLATES, Cell, table

BEGIN, END = "<!-- coverage: written by simulations/coverage.py -->", "<!-- end of coverage -->"
PICTURE = Path("images") / "coverage.png"
SIDES = (("coverage", "intervals of qabias", "#1f5fa8"), ("t_coverage", "t intervals", "#c2541b"))


def write(found: Sequence[Cell], repetitions: int, docs: Path) -> None:
    """Put the table between its marks in `intervals.md`, and draw the picture.

    Args:
        found: All cells.
        repetitions: Simulated benchmarks of a cell.
        docs: The folder of the documentation.
    """
    page = docs / "intervals.md"
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    if not rest or not after:
        raise SystemExit(f"{page} has no {BEGIN} before {END}; put both around the table")
    told = (
        f"{len(found):,} cells, {repetitions:,} simulated benchmarks each; {repetitions * MORE:,} with fewer than "
        f"{FEW} templates."
    )
    for name in ("templates", "accuracy", "correlation"):
        told += f" {name.capitalize()}: {', '.join(map(str, sorted({getattr(cell.world, name) for cell in found})))}."
    page.write_text(f"{before}{BEGIN}\n\n{told}\n\n{table(found, by_score=False)}\n\n{END}{after}", encoding="utf-8")
    draw(found).savefig(docs / PICTURE, dpi=110)


def draw(found: Sequence[Cell]) -> Figure:
    """Every cell's coverage by number of templates, a panel per accuracy."""
    shown = [accuracy for accuracy in ACCURACIES if any(cell.world.accuracy == accuracy for cell in found)]
    figure = Figure(figsize=(2.2 * len(shown), 3.4), layout="constrained")
    axes = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    shift = np.random.default_rng(0)
    for axis, accuracy in zip(axes, shown, strict=True):
        of = [cell for cell in found if cell.world.accuracy == accuracy]
        for side, (field, name, colour) in enumerate(SIDES):
            places = [
                TEMPLATES.index(cell.world.templates) + 0.4 * side - 0.2 + shift.uniform(-0.12, 0.12) for cell in of
            ]
            axis.scatter(places, [getattr(cell, field) for cell in of], s=2, color=colour, label=name, alpha=0.5)
        axis.axhline(0.95, color="#666666", linewidth=0.8)
        axis.set_title(f"accuracy {accuracy}", fontsize=9)
        axis.set_xticks(range(len(TEMPLATES)), [str(n) for n in TEMPLATES], fontsize=8)
        axis.set_ylim(0.0, 1.02)
    axes[0].set_ylabel("share of benchmarks whose interval holds the truth", fontsize=8)
    figure.supxlabel("templates", fontsize=9)
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper right", fontsize=8, ncols=2, markerscale=4)
    return figure
