"""Verdicts in the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from qabias.runs.scored import ScoredRun
from qabias.tables.model import Column, Table
from qabias.tables.terminal import MIN_WIDTH, Console, print_table
from qabias.testing.telling import WORDS, about, limit_in_words, remarks, value_in_words
from qabias.testing.verdicts import Verdict

_COLUMNS = (
    Column("name", "score", "text"),
    Column("group", "group", "text"),
    Column("n", "examples", "count"),
    Column("value", "value, [interval]", "text"),
    Column("limit", "wanted", "text"),
    Column("state", "verdict", "text"),
)


def print_verdicts(run: ScoredRun, verdicts: Sequence[Verdict]) -> None:
    """Print one line for each verdict, below them what stands behind those that need it, and how many there are."""
    console = Console()
    console.width = max(console.width, MIN_WIDTH)
    rows = tuple(
        (one.name, one.group, one.n, value_in_words(one), limit_in_words(one), WORDS[one.state]) for one in verdicts
    )
    print_table(Table("verdicts", run.folder.name, "", "", _COLUMNS, rows), console)
    behind = [f"{one.name} of {one.group}: {text}" for one in verdicts if (text := about(one))]
    counts = Counter(one.state for one in verdicts)
    total = ", ".join(f"{counts[state]} {word}" for state, word in WORDS.items() if counts[state])
    for text in (*behind, *remarks(run, verdicts), run.signature, total):
        console.print(text, markup=False, highlight=False, soft_wrap=True)
