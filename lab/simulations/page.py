"""The coverage of the intervals as a table for the documentation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lab.simulations.coverage import FEW, MORE, Cell, table

BEGIN, END = "<!-- coverage: written by lab/simulations/coverage.py -->", "<!-- end of coverage -->"


def write(found: Sequence[Cell], repetitions: int, docs: Path) -> None:
    """Put the table between its marks in `intervals.md`."""
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
    page.write_text(f"{before}{BEGIN}\n\n{told}\n\n{table(found)}\n\n{END}{after}", encoding="utf-8")
