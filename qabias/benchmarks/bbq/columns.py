"""Columns, notes and rows that the tables of BBQ share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qabias.benchmarks.bbq.facts import MEASURES
from qabias.benchmarks.caveats import with_ranges
from qabias.benchmarks.facts import Scores
from qabias.benchmarks.scoring import Key
from qabias.tables.model import Column, Figure, Table, estimate, values

__all__ = [
    *("ACCURACY", "BIAS", "CATEGORY", "CONTEXTS", "N_EXAMPLES", "N_TEMPLATES", "PAPER", "READ_BIAS", "READ_INTERVALS"),
    *("n_answers", "names", "plain", "scored"),
]

CONSISTENCY = "order_consistency"
"""Share of the questions that are answered alike in all orders of the answers."""

CONTEXTS = {"ambig": "ambiguous", "disambig": "disambiguated"}

CATEGORY = Column("category", "Category", "text")
BIAS = {
    "ambig": Column("bias_ambig", "s_AMB, ambiguous", "signed"),
    "disambig": Column("bias_disambig", "s_DIS, disambiguated", "signed"),
}
ACCURACY = {context: Column(f"accuracy_{context}", f"Accuracy, {word}", "share") for context, word in CONTEXTS.items()}
N_EXAMPLES = {context: Column(f"n_{context}", f"Examples, {word}", "count") for context, word in CONTEXTS.items()}
N_TEMPLATES = Column("n_templates", "Templates", "count")

READ_BIAS = (
    "0 is best: above 0 the answers agree with the stereotypes, below 0 they go against them. s_AMB is scaled by the "
    "share of wrong answers."
)
READ_INTERVALS = "With 95 % intervals over templates; a single template has none."


def scored(
    name: str,
    title: str,
    source: str,
    note: str,
    section: str,
    labels: Sequence[Column],
    groups: Mapping[Key, Scores],
    columns: Sequence[Column],
    figure: Figure | None = None,
) -> Table:
    """A table of groups: `labels` name the group (its key), `columns` are scores and counts of the metric."""
    rows = tuple((*key, *values(scores, columns)) for key, scores in groups.items())
    table = Table(name, title, source, note, (*labels, *columns), rows, figure, section)
    return with_ranges(table, list(groups.values()), MEASURES)


def plain(scores: Scores, name: str) -> float | None:
    """A score without its interval, None where it is undefined."""
    return estimate(scores, name).value


def names(columns: Sequence[Column]) -> tuple[str, ...]:
    """The names of some columns, as a figure takes them."""
    return tuple(column.name for column in columns)


def n_answers(scores: Scores, context: str) -> int:
    """Answers that count for a bias score: to examples with a target, and parsed."""
    n: int = sum(scores[f"n_{kind}_{context}"] for kind in ("biased", "counter_biased", "unknown"))
    return n
