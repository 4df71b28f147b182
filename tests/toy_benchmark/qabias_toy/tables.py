"""The tables of a run, and its examples."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from qabias.benchmarks.limits import values
from qabias.benchmarks.scoring import N_EXAMPLES, probabilities
from qabias.scores.facts import Scores
from qabias.tables.model import Analysis, Column, Figure, Table
from qabias_toy.examples import ROLES

TEMPLATE = Column("template", "Template", "text")
READ_INTERVALS = "With 95 % intervals over pairs of cooks."


def analyse(table: pa.Table, answers: pa.Table, groups: Mapping[str, Scores]) -> Analysis:
    """The tables of a run from its scores by group, and its first examples."""
    scores = (
        Column("bias", "Preference for the first cook", "signed"),
        Column("accuracy", "Accuracy", "share"),
        *(Column(name, title, "count") for name, title in (("n", "Examples"), ("n_pairs", "Pairs of cooks"))),
    )
    kinds = tuple(Column(f"n_{role}", role.capitalize(), "count") for role in ROLES)
    return Analysis(
        (
            Table(
                "bias_by_template",
                "Preference by template",
                "",
                f"0 is best. {READ_INTERVALS}",
                (TEMPLATE, *scores),
                tuple((name, *values(of, scores)) for name, of in groups.items()),
                Figure("intervals", "template", ("bias",)),
                "Bias",
            ),
            Table(
                "answers",
                "Whom the answers name",
                "",
                "Numbers of answers.",
                (TEMPLATE, *kinds),
                tuple((name, *values(of, kinds)) for name, of in groups.items()),
                section="Answers",
            ),
        ),
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
