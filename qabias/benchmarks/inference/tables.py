"""The figures and tables of Akyurek et al. (2022) for one run of BBNLI or of either form of BBQ, as `Table`s.

All scores are the metric's own, broken down by what a table needs; nothing is scored a second time here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from qabias.answers.parsing import LABELS
from qabias.benchmarks.base import NO_RULES, Rules
from qabias.benchmarks.facts import Scores
from qabias.benchmarks.inference.bbnli_tables import accuracy_tables, bias_tables, label_tables
from qabias.benchmarks.inference.bbq_nli_tables import (
    category_tables,
    order_tables,
    statement_tables,
    template_table,
)
from qabias.benchmarks.inference.bbq_qa_tables import question_tables
from qabias.benchmarks.inference.grouping import (
    BBNLI_COLUMNS,
    BBQ_COLUMNS,
    PERSON_SHARES,
    QUESTION_COLUMNS,
    SHARES,
    answers_of,
    bbnli_example,
    bbq_example,
    examples,
    question_example,
    score,
    where,
)
from qabias.benchmarks.inference.questions import named_first
from qabias.benchmarks.scoring import Key, chosen_rows, most_biased_first
from qabias.tables.model import ALL, Analysis, Column, Table


def analyse_bbnli(table: pa.Table, answers: pa.Table, scores: Scores, rules: Rules = NO_RULES) -> Analysis:
    """All tables that a BBNLI run has, and a selection of its pairs."""
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
    """All tables that a run of BBQ as inference has, and a selection of its sets."""
    form = _Form(BBQ_COLUMNS, "neutral", SHARES, bbq_example, lambda row: LABELS)
    names = ("context_condition", "question_polarity", "statement_about")
    context, polarity, person = (table[name].to_pylist() for name in names)
    statement: list[Key | None] = list(zip(context, polarity, person, strict=True))
    found = _analysis(table, answers, scores, form, named_first(table), {"statement": statement}, rules)
    return _whole(found, statement_tables(found.groups))


def analyse_bbq_qa(table: pa.Table, answers: pa.Table, scores: Scores, rules: Rules = NO_RULES) -> Analysis:
    """All tables that a run of BBQ's questions has, and a selection of its sets."""
    form = _Form(QUESTION_COLUMNS, "unknown", PERSON_SHARES, question_example, answers_of)
    context, polarity = (table[name].to_pylist() for name in ("context_condition", "question_polarity"))
    question: list[Key | None] = list(zip(context, polarity, strict=True))
    found = _analysis(table, answers, scores, form, table["named_first"].to_pylist(), {"question": question}, rules)
    return _whole(found, question_tables(found.groups))


class _Form(NamedTuple):
    """What tells the two forms of BBQ apart."""

    columns: Sequence[str]
    no_side: str
    shares: Sequence[Column]
    about: Callable[[Mapping[str, Any]], dict[str, Any]]
    options: Callable[[Mapping[str, Any]], Sequence[str]]


class _Found(NamedTuple):
    """The parts of an analysis: tables before and after those of the answers, scores by group, and examples."""

    before: Sequence[Table]
    after: Sequence[Table]
    groups: Mapping[str, Mapping[Key, Scores]]
    examples: tuple[Mapping[str, Any], ...]
    how: str


def _whole(found: _Found, of_answers: Sequence[Table]) -> Analysis:
    return Analysis((*found.before, *of_answers, *found.after), found.examples, found.how)


def _analysis(
    table: pa.Table,
    answers: pa.Table,
    scores: Scores,
    form: _Form,
    first: Sequence[str | None],
    groupings: Mapping[str, Sequence[Key | None]],
    rules: Rules,
) -> _Found:
    """What the two forms of BBQ have in common; `first` is who is named first in each row."""
    names = ("category", "template_id", "context_condition", "context_length", "name_order")
    category, template, context, length, order = (table[name].to_pylist() for name in names)
    templates: list[Key | None] = list(zip(template, strict=True))
    settled = [
        "kept" if facts == "disambig" and names == "original" else None
        for facts, names in zip(context, order, strict=True)
    ]
    groups = score(
        table,
        answers,
        form.columns,
        {
            "template": templates,
            "order": where(first, zip(category, first, strict=True)),
            "length": list(zip(length, strict=True)),
            "order_and_length": where(first, zip(first, length, strict=True)),
            "answers": list(zip(category, context, strict=True)),
            "original": where(settled, zip(category, strict=True)),
            "original_all": where(settled, ((ALL,) for _ in settled)),
            **groupings,
        },
        rules,
    )
    ranked = most_biased_first(groups["template"], ("bias_score_ambig", "bias_score_disambig"))
    sets = list(zip(*(table[name].to_pylist() for name in ("set_id", "name_order", "context_length")), strict=True))
    chosen = chosen_rows(templates, sets, ranked)
    shown, norm = examples(table, answers, chosen, form.about, form.options)
    how = (
        f"{len(chosen):,} of {table.num_rows:,} rows: one complete set after another from every template in turn, in "
        "the order of the file, beginning with the template whose answers in ambiguous contexts lean most towards the "
        "stereotype and shown in that order. They show what the model does at its worst, not on average."
    )
    categories = {**scores["by"]["category"], ALL: scores}
    original = {name: of for (name,), of in {**groups["original"], **groups["original_all"]}.items()}
    return _Found(
        (*category_tables(categories, original, form.no_side), *order_tables(groups, list(first).count(None))),
        (template_table(table, groups["template"], ranked, form.shares),),
        groups,
        shown,
        how + norm,
    )
