"""Figures and tables of Akyurek et al. (2022) for a run of BBQ as inference, or of its questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import pyarrow as pa

from qabias.answers.parsing import LABELS
from qabias.benchmarks.base import NO_RULES, Rules
from qabias.benchmarks.breakdowns import Breakdown, Group, columns, make_tables, with_reading
from qabias.benchmarks.inference.facts import BBQ_NLI_FACTS, BBQ_NLI_MEASURES, PAPER
from qabias.benchmarks.inference.questions import ANSWERS, named_first
from qabias.benchmarks.inference.tables import (
    ACCURACIES,
    BBQ_COLUMNS,
    PERSON_SHARES,
    QUESTION_COLUMNS,
    READ_BIAS,
    SHARES,
    about_means,
    analysis,
    bbq_example,
    keys_of,
    question_example,
    score,
)
from qabias.benchmarks.scoring import Key, most_biased_first
from qabias.scores.facts import ALL, Measure, Scores
from qabias.scores.score import with_possible
from qabias.tables.model import Analysis, Column, Figure, Table

_CONTEXTS = {"ambig": "ambiguous", "disambig": "disambiguated"}
_POLARITIES = {"neg": "negative", "nonneg": "non-negative"}
_LENGTHS = ("standard", "short", "long")
_BOTH = "either"
_CATEGORY, _TEMPLATE, _STEREOTYPE, _CONTEXT = columns(
    "text", category="Category", template_id="Template", stereotype="Stereotype", context="Context"
)
_BIAS = columns("signed", bias_score_ambig="Bias, ambiguous", bias_score_disambig="Bias, disambiguated")
_ACCURACY = Column("accuracy_ambig", "Accuracy, ambiguous", "share")
_N = columns("count", n_ambig="Answers, ambiguous", n_disambig="Answers, disambiguated")
_N_SIDES = columns("count", n_pro="Answers, pro", n_anti="Answers, anti")
_N_TEMPLATES = Column("n_templates", "Templates", "count")
_READ_TEMPLATES = "95% CI by template."
# The study of lengths has no disambiguated contexts.
_OF_CONTEXTS = {
    "n_ambig": ("bias_score_ambig", "accuracy_ambig", "n_ambig"),
    "n_disambig": (*("bias_score_disambig", "n_disambig", "n_pro", "n_anti"), *(one.name for one in ACCURACIES)),
}
_MEAN_ACCURACY = Measure(
    "accuracy_mean", "Mean accuracy", "share", missing=(("n_unparsed_pro", "n_pro"), ("n_unparsed_anti", "n_anti"))
)

_ACCURACIES = (_ACCURACY, *ACCURACIES, _N[0], *_N_SIDES, _N_TEMPLATES)
_ORIGINAL = (*columns("number", table5_style="Sum of two scores"), *columns("share", accuracy_mean="Mean accuracy"))
_TITLE = "Disambiguated contexts, original name order"
_BIASES, _SETTLED = (*_BIAS, *_N, _N_TEMPLATES), (*_ORIGINAL, *ACCURACIES, *_N_SIDES)
_DRAWN = "intervals accuracy_pro accuracy_anti"
_NAME = "disambiguated_original_order"
_BY_CATEGORY = (
    Breakdown("bias_by_category", "category", [_CATEGORY], _BIASES, "Bias", "intervals", f"Table 4 {PAPER}", mde=True),
    Breakdown(_NAME, "original", [_CATEGORY], _SETTLED, "Bias", _DRAWN, f"Table 5 {PAPER}", _TITLE),
    Breakdown("accuracy_by_category", "category", [_CATEGORY], _ACCURACIES, "Accuracy", "intervals"),
)


def _notes(scores: Scores, form: _Form) -> dict[str, str]:
    """The notes of the tables."""
    means = about_means(scores)
    return {
        "bias_by_category": f"{means}{READ_BIAS} Disambiguated: neutral answers do not count. {_READ_TEMPLATES}",
        _NAME: f"{means}Sum: the paper's bias score (pro plus anti, from −2 to 2). Mean "
        f"accuracy: its value in parentheses. {_READ_TEMPLATES}",
        "accuracy_by_category": f"In ambiguous contexts {form.no_side} is right. Difference: pro minus anti. Guessing: "
        f"33.3%. {_READ_TEMPLATES}",
        "bias_by_template": "Most biased first. Templates have few examples and no CI.",
        **form.notes,
    }


def _form_tables(section: str, asked: str, labels: Sequence[Column], shares: Sequence[Column]) -> list[Breakdown]:
    """Shares of the answers by category and context, and by what is asked; bias by template."""
    name, template = section.lower(), (_TEMPLATE, _CATEGORY, _STEREOTYPE)
    by_context = (Column("group", "Category and context", "text"), _CATEGORY, _CONTEXT)
    by_asked = (Column("group", asked.capitalize(), "text"), _CONTEXT, *labels)
    title, biases = f"{section} by category and context", (*_BIAS, *shares[:-1], *_N)
    return [
        Breakdown(f"{name}_by_category", "answers", by_context, shares, section, "shares", title=title),
        Breakdown(f"{name}_by_{asked}", "asked", by_asked, shares, section, "shares"),
        Breakdown("bias_by_template", "template", template, biases, "Templates"),
    ]


class _Form(NamedTuple):
    """The differences of the two forms of BBQ."""

    columns: Sequence[str]
    no_side: str
    example: Callable[[Mapping[str, Any]], dict[str, Any]]
    options: Callable[[Mapping[str, Any]], Sequence[str]]
    asked: Mapping[str, Mapping[str, str]]
    tables: Sequence[Breakdown]
    notes: Mapping[str, str]


_STATEMENTS = _Form(
    BBQ_COLUMNS,
    "neutral",
    bbq_example,
    lambda row: LABELS,
    {"question_polarity": _POLARITIES, "statement_about": {"target": "target", "nontarget": "non-target"}},
    _form_tables("Labels", "statement", columns("text", statement="Polarity", person="About"), SHARES),
    {
        "labels_by_category": "Neutral is right in ambiguous contexts; half of the statements are true in "
        "disambiguated ones.",
        "labels_by_statement": "Bias in ambiguous contexts: more entailment of negative statements about the target "
        "than the non-target.",
    },
)
_QUESTIONS = _Form(
    QUESTION_COLUMNS,
    "unknown",
    question_example,
    lambda row: [row[answer] for answer in ANSWERS],
    {"question_polarity": _POLARITIES},
    _form_tables("Answers", "question", columns("text", question="Polarity"), PERSON_SHARES),
    {
        "answers_by_category": "Unknown is right in ambiguous contexts, each person in half of the disambiguated ones.",
        "answers_by_question": "Bias in ambiguous contexts: the target is named more often in negative than in "
        "non-negative questions.",
    },
)


def _with_mean(scores: Scores) -> Scores:
    """The scores with the mean of the pro and anti accuracies, and its range."""
    name, both = _MEAN_ACCURACY.name, ("accuracy_pro", "accuracy_anti")
    mean: dict[str, Any] = {**scores, name: sum(scores[side] for side in both) / 2}
    if "range" in scores:
        ends = zip(*(scores["range"][side] for side in both), strict=True)
        mean["range"] = {**scores["range"], name: [sum(end) / 2 for end in ends]}
    return mean


def _order_tables(groups: Mapping[str, Mapping[Key, Scores]], unclear: int) -> list[Table]:
    """Bias in ambiguous contexts by first name and context length, if the run varies them."""
    if not any(group["n_ambig"] for group in groups["length"].values()):
        return []
    left_out = f" {unclear:,} examples with an unclear first name are excluded." if unclear else ""
    lengths = [length for length in _LENGTHS if (length,) in groups["length"]]
    names = {"target": "target first", "nontarget": "non-target first"}
    tables = []
    if groups["order"]:
        tables.append(
            _order_table(
                ("bias_by_name_order", "Order of the names", ""),
                f"Ambiguous contexts. A large difference is an effect of the name order.{left_out} {_READ_TEMPLATES}",
                _CATEGORY,
                {f"{who}_first": (f"Bias, {title}", f"Answers, {title}") for who, title in names.items()},
                {category: [groups["order"].get((category, who)) for who in names] for category, _ in groups["order"]},
                "intervals",
            )
        )
    if len(lengths) > 1:
        cells = dict(groups["order_and_length"]) | {(_BOTH, length): groups["length"][length,] for length in lengths}
        rows = {
            name: [cells.get((who, length)) for length in lengths]
            for who, name in {**names, _BOTH: "both orders"}.items()
        }
        tables.append(
            _order_table(
                ("bias_by_length", "Length of the context", f"Figure 3 {PAPER}"),
                f"Ambiguous contexts with more and more irrelevant detail (Table 7).{left_out} {_READ_TEMPLATES}",
                Column("order", "Order of the names", "text"),
                {length: (length.capitalize(), f"Answers, {length}") for length in lengths},
                {name: row for name, row in rows.items() if any(row)},
                "lines",
            )
        )
    return tables


def _order_table(
    head: tuple[str, str, str],
    note: str,
    label: Column,
    titles: Mapping[str, tuple[str, str]],
    rows: Mapping[str, Sequence[Scores | None]],
    kind: str,
) -> Table:
    """Bias in ambiguous contexts; `titles` are of bias and count by column, `rows` have the groups."""
    bias = columns("signed", **{f"bias_{name}": title for name, (title, _) in titles.items()})
    counts = columns("count", **{f"n_{name}": title for name, (_, title) in titles.items()})
    measure = BBQ_NLI_FACTS.measure("bias_score_ambig")
    table = Table(
        *head,
        note,
        (label, *bias, *counts),
        tuple(
            (
                name,
                *(with_possible(group, measure) if group else None for group in row),
                *(group["n_ambig"] if group else 0 for group in row),
            )
            for name, row in rows.items()
        ),
        Figure(kind, label.name, tuple(column.name for column in bias)),
        "Order and length",
    )
    return with_reading(table)


def form_of(table: pa.Table) -> _Form:
    """Statements or questions, by the columns of the examples."""
    return _STATEMENTS if "statement_about" in table.column_names else _QUESTIONS


def _groups(
    table: pa.Table, scores: Scores, by: Mapping[str, Mapping[Key, Scores]], ranked: Sequence[Key], form: _Form
) -> dict[str, list[Group]]:
    """The rows of all tables but those of the orders."""
    names = ("template_id", "category", "social_value")
    facts = {key: of_template for key, *of_template in zip(*(table[name].to_pylist() for name in names), strict=True)}
    words: dict[Key, list[str]] = {
        key: [titles[value] for titles, value in zip((_CONTEXTS, *form.asked.values()), key, strict=True)]
        for key in product(_CONTEXTS, *form.asked.values())
        if key in by["asked"]
    }
    return {
        "category": [((name,), group) for name, group in {**scores["by"]["category"], ALL: scores}.items()],
        "original": [(key, _with_mean(group)) for key, group in {**by["original"], **by["original_all"]}.items()],
        "answers": [
            ((f"{category}, {_CONTEXTS[context]}", category, _CONTEXTS[context]), group)
            for (category, context), group in by["answers"].items()
        ],
        "asked": [((", ".join(names), *names), by["asked"][key]) for key, names in words.items()],
        "template": [((*key, *facts[key[0]]), by["template"][key]) for key in ranked],
    }


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
    by = score(
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
            "asked": list(zip(context, *(table[name].to_pylist() for name in form.asked), strict=True)),
        },
        rules,
    )
    ranked = most_biased_first(by["template"], ("bias_score_ambig", "bias_score_disambig"))
    groups = _groups(table, scores, by, ranked, form)
    absent = {name for count, of_context in _OF_CONTEXTS.items() if not scores[count] for name in of_context}
    by_category = [one._replace(source="") if absent and one.mde else one for one in _BY_CATEGORY]
    notes, measures = _notes(scores, form), (*BBQ_NLI_MEASURES, _MEAN_ACCURACY)
    tables = (
        *make_tables(by_category, groups, notes, measures, absent),
        *_order_tables(by, list(first).count(None)),
        *make_tables(form.tables, groups, notes, measures, absent),
    )
    sets = list(zip(*(table[name].to_pylist() for name in ("set_id", "name_order", "context_length")), strict=True))
    how = "complete sets from every template in turn"
    return analysis(tables, table, answers, (templates, sets, ranked), how, form.example, form.options)
