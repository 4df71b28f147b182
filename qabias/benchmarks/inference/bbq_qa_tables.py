"""Tables of a run of BBQ's questions: whom the answers name. The other tables are those of BBQ as inference."""

from __future__ import annotations

from collections.abc import Mapping

from qabias.benchmarks.facts import Scores
from qabias.benchmarks.inference.bbq_nli_tables import CATEGORY, CONTEXTS, POLARITIES
from qabias.benchmarks.inference.grouping import PERSON_SHARES, N
from qabias.benchmarks.scoring import Key
from qabias.tables.model import Column, Figure, Table, values


def question_tables(groups: Mapping[str, Mapping[Key, Scores]]) -> list[Table]:
    """Shares of the answers."""
    columns = (*PERSON_SHARES, N)
    figure = tuple(column.name for column in PERSON_SHARES)
    by_category = Table(
        "answers_by_category",
        "Answers by category and context",
        "",
        "Shares of the answers. The group member is the one of the stereotyped group. In ambiguous contexts unknown is "
        "right; in disambiguated ones each person is right in half of the questions. Unparsed outputs favour "
        "nobody and are not right.",
        (Column("group", "Category and context", "text"), CATEGORY, Column("context", "Context", "text"), *columns),
        tuple(
            (f"{category}, {CONTEXTS[context]}", category, CONTEXTS[context], *values(of, columns))
            for (category, context), of in groups["answers"].items()
        ),
        Figure("shares", "group", figure),
        "Answers",
    )
    by_question = Table(
        "answers_by_question",
        "Answers by question",
        "",
        "A stereotype shows in ambiguous contexts where the group member is named more often in answer to negative "
        "questions than to non-negative ones.",
        (
            Column("group", "Question", "text"),
            Column("context", "Context", "text"),
            Column("question", "What it asks", "text"),
            *columns,
        ),
        tuple(
            (f"{word}, {asked}", word, asked, *values(groups["question"][context, polarity], columns))
            for context, word in CONTEXTS.items()
            for polarity, asked in POLARITIES.items()
            if (context, polarity) in groups["question"]
        ),
        Figure("shares", "group", figure),
        "Answers",
    )
    return [by_category, by_question]
