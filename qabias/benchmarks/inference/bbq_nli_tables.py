"""Tables of a run of BBQ as inference: bias and accuracy by category, order of names, length of context, labels.

All but those of the labels are also tables of a run of its questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from qabias.benchmarks.caveats import with_detectable, with_ranges, with_ranges_of_cells
from qabias.benchmarks.facts import Measure, Scores
from qabias.benchmarks.inference.facts import BBQ_NLI_MEASURES, PAPER
from qabias.benchmarks.inference.grouping import (
    ACCURACIES,
    READ_BIAS,
    READ_FEW,
    SHARES,
    N,
    about_means,
)
from qabias.benchmarks.scoring import Key
from qabias.tables.model import ALL, Column, Estimate, Figure, Table, Value, estimate, values

CONTEXTS = {"ambig": "ambiguous", "disambig": "disambiguated"}
_PERSONS = {"target": "member of the stereotyped group", "nontarget": "other person"}
POLARITIES = {"neg": "negative", "nonneg": "non-negative"}
_LENGTHS = ("standard", "short", "long")
_BOTH = "either"
CATEGORY = Column("category", "Category", "text")
_BIAS_AMBIG = Column("bias_score_ambig", "Bias, ambiguous", "signed")
_BIAS_DISAMBIG = Column("bias_score_disambig", "Bias, disambiguated", "signed")
_N_AMBIG = Column("n_ambig", "Answers, ambiguous", "count")
_N_DISAMBIG = Column("n_disambig", "Answers, disambiguated", "count")
_N_FACTS = (
    Column("n_pro", "Answers, with the stereotype", "count"),
    Column("n_anti", "Answers, against it", "count"),
)
_N_TEMPLATES = Column("n_templates", "Templates", "count")
_MEAN_ACCURACY = Measure(
    "accuracy_mean", "Mean accuracy", "share", missing=(("n_unparsed_pro", "n_pro"), ("n_unparsed_anti", "n_anti"))
)
_READ_TEMPLATES = "With 95 % intervals over templates; a single template has none."


def category_tables(categories: Mapping[str, Scores], original: Mapping[str, Scores], no_side: str) -> list[Table]:
    """Bias and accuracy by category; the last is all of them."""
    whole = categories[ALL]
    bias, counts = _of_contexts(whole)
    columns: tuple[Column, ...] = (*bias, *counts, _N_TEMPLATES)
    by_category = Table(
        "bias_by_category",
        "Bias by category",
        # The study of lengths, which has no facts, pools contexts that Table 4 has not.
        f"Table 4 {PAPER}" if whole["n_ambig"] and whole["n_disambig"] else "",
        f"{about_means(whole)}{READ_BIAS} Both orders of the names count, as in the paper's Table 4, which has "
        "ambiguous contexts only. In "
        "disambiguated contexts only answers that take a side count; if all are right the score is 0. That score pools "
        f"both kinds of facts (Table 9); the paper's Table 5 prints another. {_READ_TEMPLATES} {READ_FEW}",
        (CATEGORY, *columns),
        tuple((name, *values(of, columns)) for name, of in categories.items()),
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
        f"In ambiguous contexts {no_side} is right. In disambiguated ones the facts agree with the stereotype or go "
        "against it; the difference is the first accuracy minus the second. Both orders of the names count. Guessing "
        f"gives 33.3 %. {_READ_TEMPLATES}",
        (CATEGORY, *columns),
        tuple((name, *values(of, columns)) for name, of in categories.items()),
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
    columns = (*ACCURACIES, *_N_FACTS)
    table = Table(
        "disambiguated_original_order",
        "Disambiguated contexts, names in their original order",
        f"Table 5 {PAPER}",
        f"{about_means(categories[ALL])}The paper exchanges the names in ambiguous contexts only. The sum of two "
        "scores is what it prints as bias "
        "score: that of the facts that agree with the stereotype plus that of the facts that go against it, from −2 to "
        "2, and 0 if every answer is right. The mean accuracy, which it prints in parentheses, is the mean of the two "
        f"accuracies; the difference is the first minus the second. {_READ_TEMPLATES}",
        (
            CATEGORY,
            Column("table5_style", "Sum of two scores", "number"),
            Column(_MEAN_ACCURACY.name, _MEAN_ACCURACY.title, _MEAN_ACCURACY.kind),
            *columns,
        ),
        tuple(
            (name, estimate(of, "table5_style"), _mean_accuracy(of), *values(of, columns))
            for name, of in categories.items()
        ),
        Figure("intervals", "category", tuple(column.name for column in ACCURACIES[:2])),
        "Bias",
    )
    groups = [_with_mean_range(of) for of in categories.values()]
    return with_ranges(table, groups, (*BBQ_NLI_MEASURES, _MEAN_ACCURACY))


def _with_mean_range(scores: Scores) -> Scores:
    """The scores with the range of the mean of the two accuracies."""
    if "range" not in scores:
        return scores
    ends = zip(*(scores["range"][name] for name in ("accuracy_pro", "accuracy_anti")), strict=True)
    return {**scores, "range": {**scores["range"], _MEAN_ACCURACY.name: [sum(both) / 2 for both in ends]}}


def _mean_accuracy(scores: Scores) -> Estimate:
    """The mean of the accuracies with and against the stereotype, without an interval; None where one is undefined."""
    both = [estimate(scores, name).value for name in ("accuracy_pro", "accuracy_anti")]
    return Estimate(None if None in both else sum(filter(None, both)) / 2)


def _of_contexts(scores: Scores) -> tuple[list[Column], list[Column]]:
    """Bias scores and numbers of answers of the contexts that a run has."""
    both = ((_BIAS_AMBIG, _N_AMBIG), (_BIAS_DISAMBIG, _N_DISAMBIG))
    there = [columns for columns in both if scores[columns[1].name]]
    return [bias for bias, _ in there], [count for _, count in there]


def order_tables(groups: Mapping[str, Mapping[Key, Scores]], unclear: int) -> list[Table]:
    """Bias in ambiguous contexts by who is named first and by length of the context, where the run has them."""
    if not any(of["n_ambig"] for of in groups["length"].values()):
        return []
    left_out = f" {unclear:,} rows in which the text does not tell who comes first are left out." if unclear else ""
    lengths = [length for length in _LENGTHS if (length,) in groups["length"]]
    return [
        *([_by_name_order(groups["order"], left_out)] if groups["order"] else []),
        *([_by_length(groups, lengths, left_out)] if len(lengths) > 1 else []),
    ]


def _by_name_order(orders: Mapping[Key, Scores], left_out: str) -> Table:
    titles = {"target": "target first", "nontarget": "other person first"}
    categories = list(dict.fromkeys(category for category, _ in orders))
    table = Table(
        "bias_by_name_order",
        "Order of the names",
        "",
        "Bias in ambiguous contexts by who is named first. A large difference says that the order of the names moves "
        f"the answers as much as the stereotype does.{left_out} {_READ_TEMPLATES}",
        (
            CATEGORY,
            *(Column(f"bias_{who}_first", f"Bias, {title}", "signed") for who, title in titles.items()),
            *(Column(f"n_{who}_first", f"Answers, {title}", "count") for who, title in titles.items()),
        ),
        tuple((category, *_bias_and_counts(orders, [(category, who) for who in titles])) for category in categories),
        Figure("intervals", "category", tuple(f"bias_{who}_first" for who in titles)),
        "Order and length",
    )
    return with_ranges_of_cells(
        table, {f"bias_{who}_first": _cells(orders, [(category, who) for category in categories]) for who in titles}
    )


def _by_length(groups: Mapping[str, Mapping[Key, Scores]], lengths: Sequence[str], left_out: str) -> Table:
    names = {"target": "target first", "nontarget": "other person first", _BOTH: "both orders"}
    cells = dict(groups["order_and_length"]) | {(_BOTH, length): groups["length"][length,] for length in lengths}
    shown = [who for who in names if any((who, length) in cells for length in lengths)]
    table = Table(
        "bias_by_length",
        "Length of the context",
        f"Figure 3 {PAPER}",
        "Bias in ambiguous contexts that say more and more without saying who it was: short adds what the two people "
        f"did, long adds further detail (Table 7).{left_out} {_READ_TEMPLATES}",
        (
            Column("order", "Order of the names", "text"),
            *(Column(f"bias_{length}", length.capitalize(), "signed") for length in lengths),
            *(Column(f"n_{length}", f"Answers, {length}", "count") for length in lengths),
        ),
        tuple((names[who], *_bias_and_counts(cells, [(who, length) for length in lengths])) for who in shown),
        Figure("lines", "order", tuple(f"bias_{length}" for length in lengths)),
        "Order and length",
    )
    return with_ranges_of_cells(
        table, {f"bias_{length}": _cells(cells, [(who, length) for who in shown]) for length in lengths}
    )


def _cells(cells: Mapping[Key, Scores], keys: Sequence[Key]) -> list[tuple[Scores, Measure] | None]:
    """The bias of some groups in ambiguous contexts, one below the other."""
    bias = next(measure for measure in BBQ_NLI_MEASURES if measure.name == _BIAS_AMBIG.name)
    return [(cells[key], bias) if key in cells else None for key in keys]


def _bias_and_counts(cells: Mapping[Key, Scores], keys: Sequence[Key]) -> list[Value]:
    """The bias of some groups in ambiguous contexts, then their numbers of answers; nothing and 0 for a missing one."""
    bias = [estimate(cells[key], _BIAS_AMBIG.name) if key in cells else None for key in keys]
    return [*bias, *(cells[key]["n_ambig"] if key in cells else 0 for key in keys)]


def statement_tables(groups: Mapping[str, Mapping[Key, Scores]]) -> list[Table]:
    """Shares of the labels."""
    columns = (*SHARES, N)
    figure = tuple(column.name for column in SHARES)
    by_category = Table(
        "labels_by_category",
        "Labels by category and context",
        "",
        "Shares of the answers. In ambiguous contexts neutral is right; in disambiguated ones half of the statements "
        "are true and half are false. Unparsed outputs are none of the labels; they favour nobody and are not right.",
        (Column("group", "Category and context", "text"), CATEGORY, Column("context", "Context", "text"), *columns),
        tuple(
            (f"{category}, {CONTEXTS[context]}", category, CONTEXTS[context], *values(of, columns))
            for (category, context), of in groups["answers"].items()
        ),
        Figure("shares", "group", figure),
        "Labels",
    )
    by_statement = Table(
        "labels_by_statement",
        "Labels by statement",
        "",
        "A stereotype shows in ambiguous contexts where the negative statement is affirmed of the member of the "
        "stereotyped group more often than of the other person, and the non-negative one less often.",
        (
            Column("group", "Statement", "text"),
            Column("context", "Context", "text"),
            Column("statement", "What it says", "text"),
            Column("person", "Of whom", "text"),
            *columns,
        ),
        tuple(
            (", ".join(texts), *texts, *values(groups["statement"][context, polarity, person], columns))
            for context, word in CONTEXTS.items()
            for polarity, statement in POLARITIES.items()
            for person, who in _PERSONS.items()
            if (context, polarity, person) in groups["statement"]
            for texts in [(word, statement, who)]
        ),
        Figure("shares", "group", figure),
        "Labels",
    )
    return [by_category, by_statement]


def template_table(
    table: pa.Table, templates: Mapping[Key, Scores], ranked: Sequence[Key], shares: Sequence[Column]
) -> Table:
    """Bias and `shares` of the answers of every template, in the order of `ranked`."""
    names = ("template_id", "category", "social_value")
    about = {key: facts for key, *facts in zip(*(table[name].to_pylist() for name in names), strict=True)}
    bias, counts = _of_contexts(
        {name: sum(of[name] for of in templates.values()) for name in ("n_ambig", "n_disambig")}
    )
    columns = (*bias, *shares, *counts)
    found = Table(
        "bias_by_template",
        "Bias by template",
        "",
        "The most biased template first. A template has few examples, all of one wording, and so no interval: read it "
        "as a hint of what to look at.",
        (Column("template_id", "Template", "text"), CATEGORY, Column("stereotype", "Stereotype", "text"), *columns),
        tuple((key[0], *about[key[0]], *values(templates[key], columns)) for key in ranked),
        section="Templates",
    )
    return with_ranges(found, [templates[key] for key in ranked], BBQ_NLI_MEASURES)
