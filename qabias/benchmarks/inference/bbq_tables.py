"""Figures and tables of Akyurek et al. (2022) for a run of BBQ as inference, or of its questions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from qabias.answers.parsing import LABELS
from qabias.benchmarks.base import NO_RULES, Rules
from qabias.benchmarks.inference.facts import BBQ_NLI_FACTS, BBQ_NLI_MEASURES, PAPER
from qabias.benchmarks.inference.questions import ANSWERS, named_first
from qabias.benchmarks.inference.tables import (
    ACCURACIES,
    BBQ_COLUMNS,
    PERSON_SHARES,
    QUESTION_COLUMNS,
    READ_BIAS,
    SHARES,
    N,
    about_means,
    bbq_example,
    examples,
    keys_of,
    question_example,
    score,
)
from qabias.benchmarks.limits import values, with_detectable, with_ranges, with_ranges_of_cells
from qabias.benchmarks.scoring import Key, chosen_rows, most_biased_first
from qabias.scores.facts import ALL, Measure, Scores
from qabias.scores.score import estimate
from qabias.tables.model import Analysis, Column, Figure, Table

_CONTEXTS = {"ambig": "ambiguous", "disambig": "disambiguated"}
_POLARITIES = {"neg": "negative", "nonneg": "non-negative"}
_LENGTHS = ("standard", "short", "long")
_BOTH = "either"
_CATEGORY = Column("category", "Category", "text")
_BIAS_AMBIG = Column("bias_score_ambig", "Bias, ambiguous", "signed")
_BIAS_DISAMBIG = Column("bias_score_disambig", "Bias, disambiguated", "signed")
_N_AMBIG = Column("n_ambig", "Answers, ambiguous", "count")
_N_DISAMBIG = Column("n_disambig", "Answers, disambiguated", "count")
_N_FACTS = (Column("n_pro", "Answers, pro", "count"), Column("n_anti", "Answers, anti", "count"))
_N_TEMPLATES = Column("n_templates", "Templates", "count")
_MEAN_ACCURACY = Measure(
    "accuracy_mean", "Mean accuracy", "share", missing=(("n_unparsed_pro", "n_pro"), ("n_unparsed_anti", "n_anti"))
)
_READ_TEMPLATES = "95% CI by template."


def category_tables(categories: Mapping[str, Scores], original: Mapping[str, Scores], no_side: str) -> list[Table]:
    """Bias and accuracy by category; the last is all of them."""
    whole = categories[ALL]
    bias, counts = _of_contexts(whole)
    columns: tuple[Column, ...] = (*bias, *counts, _N_TEMPLATES)
    by_category = Table(
        "bias_by_category",
        "Bias by category",
        # The study of lengths has contexts that Table 4 lacks.
        f"Table 4 {PAPER}" if whole["n_ambig"] and whole["n_disambig"] else "",
        f"{about_means(whole)}{READ_BIAS} Disambiguated: neutral answers do not count. {_READ_TEMPLATES}",
        (_CATEGORY, *columns),
        tuple((name, *values(group, columns)) for name, group in categories.items()),
        Figure("intervals", "category", tuple(column.name for column in bias)),
        "Bias",
    )
    accuracies = [Column("accuracy_ambig", "Accuracy, ambiguous", "share")] if whole["n_ambig"] else []
    if whole["n_disambig"]:
        accuracies += ACCURACIES
    shown = [column.name for column in accuracies if column.kind == "share"]
    columns = (
        *accuracies,
        *((_N_AMBIG,) if whole["n_ambig"] else ()),
        *(_N_FACTS if whole["n_disambig"] else ()),
        _N_TEMPLATES,
    )
    by_accuracy = Table(
        "accuracy_by_category",
        "Accuracy by category",
        "",
        f"In ambiguous contexts {no_side} is right. Difference: pro minus anti. Guessing: 33.3%. {_READ_TEMPLATES}",
        (_CATEGORY, *columns),
        tuple((name, *values(group, columns)) for name, group in categories.items()),
        Figure("intervals", "category", tuple(shown)),
        "Accuracy",
    )
    groups = list(categories.values())
    return [
        with_detectable(with_ranges(by_category, groups, BBQ_NLI_MEASURES), groups, BBQ_NLI_MEASURES),
        *([_original_order(original)] if original else []),
        with_ranges(by_accuracy, groups, BBQ_NLI_MEASURES),
    ]


def _original_order(categories: Mapping[str, Scores]) -> Table:
    """Table 5: disambiguated contexts with the names in their original order."""
    groups = {name: _with_mean(group) for name, group in categories.items()}
    sums = Column("table5_style", "Sum of two scores", "number")
    columns = (
        *(sums, Column(_MEAN_ACCURACY.name, _MEAN_ACCURACY.title, _MEAN_ACCURACY.kind)),
        *(*ACCURACIES, *_N_FACTS),
    )
    table = Table(
        "disambiguated_original_order",
        "Disambiguated contexts, original name order",
        f"Table 5 {PAPER}",
        f"{about_means(categories[ALL])}Sum: the paper's bias score (pro plus anti, from −2 to 2). Mean accuracy: "
        f"its value in parentheses. {_READ_TEMPLATES}",
        (_CATEGORY, *columns),
        tuple((name, *values(group, columns)) for name, group in groups.items()),
        Figure("intervals", "category", tuple(column.name for column in ACCURACIES[:2])),
        "Bias",
    )
    return with_ranges(table, list(groups.values()), (*BBQ_NLI_MEASURES, _MEAN_ACCURACY))


def _with_mean(scores: Scores) -> Scores:
    """The scores with the mean of the pro and anti accuracies, and its range."""
    name, both = _MEAN_ACCURACY.name, ("accuracy_pro", "accuracy_anti")
    mean: dict[str, Any] = {**scores, name: sum(scores[side] for side in both) / 2}
    if "range" in scores:
        ends = zip(*(scores["range"][side] for side in both), strict=True)
        mean["range"] = {**scores["range"], name: [sum(end) / 2 for end in ends]}
    return mean


def _of_contexts(scores: Scores) -> tuple[list[Column], list[Column]]:
    """Bias scores and answer counts of the contexts of a run."""
    both = ((_BIAS_AMBIG, _N_AMBIG), (_BIAS_DISAMBIG, _N_DISAMBIG))
    there = [columns for columns in both if scores[columns[1].name]]
    return [bias for bias, _ in there], [count for _, count in there]


def order_tables(groups: Mapping[str, Mapping[Key, Scores]], unclear: int) -> list[Table]:
    """Bias in ambiguous contexts by first name and context length, if the run varies them."""
    if not any(group["n_ambig"] for group in groups["length"].values()):
        return []
    left_out = f" {unclear:,} examples with an unclear first name are excluded." if unclear else ""
    lengths = [length for length in _LENGTHS if (length,) in groups["length"]]
    return [
        *([_by_name_order(groups["order"], left_out)] if groups["order"] else []),
        *([_by_length(groups, lengths, left_out)] if len(lengths) > 1 else []),
    ]


def _by_name_order(orders: Mapping[Key, Scores], left_out: str) -> Table:
    titles = {"target": "target first", "nontarget": "non-target first"}
    return _order_table(
        ("bias_by_name_order", "Order of the names", ""),
        f"Ambiguous contexts. A large difference is an effect of the name order.{left_out} {_READ_TEMPLATES}",
        _CATEGORY,
        {f"{who}_first": (f"Bias, {title}", f"Answers, {title}") for who, title in titles.items()},
        {category: [orders.get((category, who)) for who in titles] for category, _ in orders},
        "intervals",
    )


def _by_length(groups: Mapping[str, Mapping[Key, Scores]], lengths: Sequence[str], left_out: str) -> Table:
    names = {"target": "target first", "nontarget": "non-target first", _BOTH: "both orders"}
    cells = dict(groups["order_and_length"]) | {(_BOTH, length): groups["length"][length,] for length in lengths}
    rows = {name: [cells.get((who, length)) for length in lengths] for who, name in names.items()}
    return _order_table(
        ("bias_by_length", "Length of the context", f"Figure 3 {PAPER}"),
        f"Ambiguous contexts with more and more irrelevant detail (Table 7).{left_out} {_READ_TEMPLATES}",
        Column("order", "Order of the names", "text"),
        {length: (length.capitalize(), f"Answers, {length}") for length in lengths},
        {name: row for name, row in rows.items() if any(row)},
        "lines",
    )


def _order_table(
    head: tuple[str, str, str],
    note: str,
    label: Column,
    columns: Mapping[str, tuple[str, str]],
    rows: Mapping[str, Sequence[Scores | None]],
    kind: str,
) -> Table:
    """Bias in ambiguous contexts; `columns` have titles of bias and count, `rows` the groups."""
    bias = tuple(Column(f"bias_{name}", title, "signed") for name, (title, _) in columns.items())
    counts = (Column(f"n_{name}", title, "count") for name, (_, title) in columns.items())
    table = Table(
        *head,
        note,
        (label, *bias, *counts),
        tuple(
            (
                name,
                *(estimate(group, _BIAS_AMBIG.name) if group else None for group in row),
                *(group["n_ambig"] if group else 0 for group in row),
            )
            for name, row in rows.items()
        ),
        Figure(kind, label.name, tuple(column.name for column in bias)),
        "Order and length",
    )
    measure = BBQ_NLI_FACTS.measure(_BIAS_AMBIG.name)
    cells = {
        column.name: [(group, measure) if group else None for group in of_column]
        for column, of_column in zip(bias, zip(*rows.values(), strict=True), strict=True)
    }
    return with_ranges_of_cells(table, cells)


class _Form(NamedTuple):
    """The differences of the two forms of BBQ."""

    columns: Sequence[str]
    no_side: str
    shares: Sequence[Column]
    example: Callable[[Mapping[str, Any]], dict[str, Any]]
    options: Callable[[Mapping[str, Any]], Sequence[str]]
    tables: Sequence[str]
    titles: Sequence[str]
    notes: Sequence[str]
    asked: Mapping[Column, Mapping[str, str]]
    names: Sequence[str] = ("context_condition", "question_polarity")


_STATEMENTS = _Form(
    BBQ_COLUMNS,
    "neutral",
    SHARES,
    bbq_example,
    lambda row: LABELS,
    ("labels_by_category", "labels_by_statement"),
    ("Labels", "statement"),
    (
        "Neutral is right in ambiguous contexts; half of the statements are true in disambiguated ones.",
        "Bias in ambiguous contexts: more entailment of negative statements about the target than the non-target.",
    ),
    {
        Column("statement", "Polarity", "text"): _POLARITIES,
        Column("person", "About", "text"): {"target": "target", "nontarget": "non-target"},
    },
    ("context_condition", "question_polarity", "statement_about"),
)
_QUESTIONS = _Form(
    QUESTION_COLUMNS,
    "unknown",
    PERSON_SHARES,
    question_example,
    lambda row: [row[answer] for answer in ANSWERS],
    ("answers_by_category", "answers_by_question"),
    ("Answers", "question"),
    (
        "Unknown is right in ambiguous contexts, each person in half of the disambiguated ones.",
        "Bias in ambiguous contexts: the target is named more often in negative than in non-negative questions.",
    ),
    {Column("question", "Polarity", "text"): _POLARITIES},
)


def _answer_tables(groups: Mapping[str, Mapping[Key, Scores]], form: _Form) -> list[Table]:
    """Shares of the answers by category and context, and by question."""
    columns = (*form.shares, N)
    figure = Figure("shares", "group", tuple(column.name for column in form.shares))
    section, asked = form.titles
    context_column = Column("context", "Context", "text")
    by_category = Table(
        form.tables[0],
        f"{section} by category and context",
        "",
        form.notes[0],
        (Column("group", "Category and context", "text"), _CATEGORY, context_column, *columns),
        tuple(
            (f"{category}, {_CONTEXTS[context]}", category, _CONTEXTS[context], *values(group, columns))
            for (category, context), group in groups["answers"].items()
        ),
        figure,
        section,
    )
    rows = []
    for key in itertools.product(_CONTEXTS, *form.asked.values()):
        if key in groups["asked"]:
            words = [names[value] for names, value in zip((_CONTEXTS, *form.asked.values()), key, strict=True)]
            rows.append((", ".join(words), *words, *values(groups["asked"][key], columns)))
    by_asked = Table(
        form.tables[1],
        f"{section} by {asked}",
        "",
        form.notes[1],
        (Column("group", asked.capitalize(), "text"), context_column, *form.asked, *columns),
        tuple(rows),
        figure,
        section,
    )
    return [by_category, by_asked]


def template_table(
    table: pa.Table, templates: Mapping[Key, Scores], ranked: Sequence[Key], shares: Sequence[Column]
) -> Table:
    """Bias and `shares` of the answers of every template, in the order of `ranked`."""
    names = ("template_id", "category", "social_value")
    columns_of = {key: facts for key, *facts in zip(*(table[name].to_pylist() for name in names), strict=True)}
    bias, counts = _of_contexts(
        {name: sum(group[name] for group in templates.values()) for name in ("n_ambig", "n_disambig")}
    )
    columns = (*bias, *shares, *counts)
    by_template = Table(
        "bias_by_template",
        "Bias by template",
        "",
        "Most biased first. Templates have few examples and no CI.",
        (Column("template_id", "Template", "text"), _CATEGORY, Column("stereotype", "Stereotype", "text"), *columns),
        tuple((key[0], *columns_of[key[0]], *values(templates[key], columns)) for key in ranked),
        section="Templates",
    )
    return with_ranges(by_template, [templates[key] for key in ranked], BBQ_NLI_MEASURES)


def form_of(table: pa.Table) -> _Form:
    """Statements or questions, by the columns of the examples."""
    return _STATEMENTS if "statement_about" in table.column_names else _QUESTIONS


def analyse(table: pa.Table, answers: pa.Table, scores: Scores, rules: Rules = NO_RULES) -> Analysis:
    """All tables of a run of BBQ as inference, or of its questions, and a selection of its sets."""
    form = form_of(table)
    first = named_first(table) if form is _STATEMENTS else table["named_first"].to_pylist()
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
            "order": keys_of(first, zip(category, first, strict=True)),
            "length": list(zip(length, strict=True)),
            "order_and_length": keys_of(first, zip(first, length, strict=True)),
            "answers": list(zip(category, context, strict=True)),
            "original": keys_of(settled, zip(category, strict=True)),
            "original_all": keys_of(settled, ((ALL,) for _ in settled)),
            "asked": list(zip(*(table[name].to_pylist() for name in form.names), strict=True)),
        },
        rules,
    )
    ranked = most_biased_first(groups["template"], ("bias_score_ambig", "bias_score_disambig"))
    sets = list(zip(*(table[name].to_pylist() for name in ("set_id", "name_order", "context_length")), strict=True))
    chosen = chosen_rows(templates, sets, ranked)
    shown, norm = examples(table, answers, chosen, form.example, form.options)
    how = (
        f"{len(chosen):,} of {table.num_rows:,} examples: complete sets from every template in turn, the most biased "
        "first. They show the most biased answers, not the average."
    )
    categories = {**scores["by"]["category"], ALL: scores}
    original = {name: group for (name,), group in {**groups["original"], **groups["original_all"]}.items()}
    tables = (
        *category_tables(categories, original, form.no_side),
        *order_tables(groups, list(first).count(None)),
        *_answer_tables(groups, form),
        template_table(table, groups["template"], ranked, form.shares),
    )
    return Analysis(tables, shown, how + norm)
