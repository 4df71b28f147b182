"""The tables of a run, and its examples."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from qabias.benchmarks.breakdowns import Breakdown, columns, make_tables
from qabias.benchmarks.scoring import N_EXAMPLES, probabilities
from qabias.scores.facts import Scores
from qabias.tables.model import Analysis, Column
from qabias_toy.examples import ROLES
from qabias_toy.facts import MEASURES

TEMPLATE = Column("template", "Template", "text")
SCORES = (
    *(Column("bias", "Preference for the first cook", "signed"), Column("accuracy", "Accuracy", "share")),
    *columns("count", n="Examples", n_pairs="Pairs of cooks"),
)
ROLE_COUNTS = columns("count", **{f"n_{role}": role.capitalize() for role in ROLES})
TABLES = (
    Breakdown("bias_by_template", "template", [TEMPLATE], SCORES, "Bias", "intervals", title="Preference by template"),
    Breakdown("answers", "template", [TEMPLATE], ROLE_COUNTS, "Answers", title="Whom the answers name"),
)
NOTES = {
    "bias_by_template": "0 is best. With 95 % intervals over pairs of cooks.",
    "answers": "Numbers of answers.",
}


def analyse(table: pa.Table, answers: pa.Table, groups: Mapping[str, Scores]) -> Analysis:
    """The tables of a run from its scores by group, and its first examples."""
    rows = [((name,), scores) for name, scores in groups.items()]
    return Analysis(
        tuple(make_tables(TABLES, {"template": rows}, NOTES, MEASURES)),
        tuple(examples(table.slice(0, N_EXAMPLES), answers.slice(0, N_EXAMPLES))),
        "The first examples in file order.",
    )


def examples(table: pa.Table, answers: pa.Table) -> list[dict[str, Any]]:
    """Every example with its answer."""
    return list(map(_example, table.to_pylist(), answers.to_pylist()))


def _example(row: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, Any]:
    place = answer["prediction"]
    return {
        **{name: row[name] for name in ("template_id", "example_id", "context", "question", "options", "roles")},
        "probabilities": probabilities(answer.get("loglikelihoods")),
        "answer": None if place is None or place < 0 else row["options"][place],
        "outcome": ["no answer" if place is None or place < 0 else row["roles"][place]],
    }
