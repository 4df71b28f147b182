"""The figures and tables of Akyurek et al. (2022) for one run of BBNLI or of BBQ as inference, as `Table`s.

All scores are the metric's own, broken down by what a table needs; nothing is scored a second time here.
"""

from __future__ import annotations

import pyarrow as pa

from qabias.benchmarks.facts import Scores
from qabias.benchmarks.grouping import Key, chosen_rows, most_biased_first
from qabias.benchmarks.inference.bbnli_tables import accuracy_tables, bias_tables, label_tables
from qabias.benchmarks.inference.bbq_nli_tables import (
    category_tables,
    named_first,
    order_tables,
    statement_tables,
    template_table,
)
from qabias.benchmarks.inference.grouping import (
    BBNLI_COLUMNS,
    BBQ_COLUMNS,
    bbnli_example,
    bbq_example,
    examples,
    score,
    where,
)
from qabias.benchmarks.scoring import NO_RULES, Rules
from qabias.tables.model import ALL, Analysis


def analyse_bbnli(table: pa.Table, answers: pa.Table, scores: Scores, rules: Rules = NO_RULES) -> Analysis:
    """All tables that a BBNLI run has, and a selection of its pairs.

    Args:
        table: The examples, with the columns of `bbnli_dataset`.
        answers: Parallel to them: `prediction` or `predictions`, and what they came from.
        scores: The metric's result for them, with `by` for `subtopic` and `domain`.
        rules: How answers are counted.
    """
    names = ("subtopic", "kind", "stance", "hypothesis_id")
    subtopic, kind, stance, number = (list(map(str, table[name].to_pylist())) for name in names)
    hypotheses: list[Key | None] = [
        (topic, place) if form == "stereotypical" else None
        for topic, place, form in zip(subtopic, number, kind, strict=True)
    ]
    groups = score(
        table, answers, BBNLI_COLUMNS, {"hypothesis": hypotheses, "form": list(zip(kind, stance, strict=True))}, rules
    )
    domains = dict(zip(subtopic, table["domain"].to_pylist(), strict=True))
    ranked = most_biased_first(groups["hypothesis"], ("bias_score",))
    chosen = chosen_rows(hypotheses, table["pair_id"].to_pylist(), ranked)
    shown, norm = examples(table, answers, chosen, bbnli_example)
    how = (
        f"{len(chosen):,} of {table.num_rows:,} rows: a pair of forms after the other from every stereotypical "
        "hypothesis in turn, in the order of the file, beginning with the hypothesis whose answers lean most towards "
        "the stereotype and shown in that order. They show what the model does at its worst, not on average."
    )
    return Analysis(
        (
            *bias_tables(scores, domains, groups["hypothesis"], ranked, table),
            *accuracy_tables(scores, domains),
            *label_tables(scores, groups["form"]),
        ),
        shown,
        how + norm if chosen else "",
    )


def analyse_bbq_nli(table: pa.Table, answers: pa.Table, scores: Scores, rules: Rules = NO_RULES) -> Analysis:
    """All tables that a run of BBQ as inference has, and a selection of its sets.

    Args:
        table: The examples, with the columns of the inference form of `bbq_dataset`.
        answers: Parallel to them: `prediction` or `predictions`, and what they came from.
        scores: The metric's result for them, with `by` for `category`.
        rules: How answers are counted.
    """
    names = ("category", "template_id", "context_condition", "context_length", "question_polarity", "statement_about")
    category, template, context, length, polarity, person = (table[name].to_pylist() for name in names)
    first = named_first(table)
    templates: list[Key | None] = list(zip(template, strict=True))
    groups = score(
        table,
        answers,
        BBQ_COLUMNS,
        {
            "template": templates,
            "order": where(first, zip(category, first, strict=True)),
            "length": list(zip(length, strict=True)),
            "order_and_length": where(first, zip(first, length, strict=True)),
            "answers": list(zip(category, context, strict=True)),
            "statement": list(zip(context, polarity, person, strict=True)),
        },
        rules,
    )
    ranked = most_biased_first(groups["template"], ("bias_score_ambig", "bias_score_disambig"))
    sets = list(zip(*(table[name].to_pylist() for name in ("set_id", "name_order", "context_length")), strict=True))
    chosen = chosen_rows(templates, sets, ranked)
    shown, norm = examples(table, answers, chosen, bbq_example)
    how = (
        f"{len(chosen):,} of {table.num_rows:,} rows: one complete set after another from every template in turn, in "
        "the order of the file, beginning with the template whose answers in ambiguous contexts lean most towards the "
        "stereotype and shown in that order. They show what the model does at its worst, not on average."
    )
    categories = {**scores["by"]["category"], ALL: scores}
    unclear = first.count(None)
    return Analysis(
        (
            *category_tables(categories),
            *order_tables(groups, unclear),
            *statement_tables(groups),
            template_table(table, groups["template"], ranked),
        ),
        shown,
        how + norm,
    )
