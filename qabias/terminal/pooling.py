"""A pool of runs in the terminal."""

from __future__ import annotations

from dataclasses import replace

from qabias.comparison.outcomes import OUTCOMES_TABLE, with_ranges_in_cells
from qabias.pooling import Pool
from qabias.terminal.console import Console
from qabias.terminal.scores import MIN_WIDTH, print_findings
from qabias.terminal.table import print_table


def print_pool(pool: Pool, console: Console | None = None) -> None:
    """Print the means with their spread and the scores of the runs."""
    console = console or Console()
    console.width = max(console.width, MIN_WIDTH)
    console.print(pool.signature, markup=False)
    if pool.claim:
        console.print(pool.claim, markup=False)
    for label, text in pool.benchmark.sample_facts(pool.scores).items():
        console.print(f"{label}: {text}", markup=False)
    for note in pool.analysis.notes:
        console.print(note, markup=False)
    names = {f"pooled_{measure.name}" for measure in pool.measures}
    for table in pool.analysis.tables:
        if table.name == OUTCOMES_TABLE:
            print_table(table, console)
        if table.name in names:
            print_table(with_ranges_in_cells(replace(table, title=f"{table.title} [95 % interval]")), console)
    print_findings(pool.benchmark, pool.scores, console, pool.is_question_only)
