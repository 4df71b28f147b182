"""The figures and tables of Parrish et al. (2022) for one BBQ run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qabias.benchmarks.base import NO_RULES, Rules
from qabias.benchmarks.bbq.breakdowns import (
    ACCURACY,
    BIAS,
    CATEGORY,
    CONSISTENCY,
    CONTEXTS,
    FIGURE_4,
    N_EXAMPLES,
    N_TEMPLATES,
    READ_BIAS,
    READ_INTERVALS,
    TABLE_2,
    abstention_tables,
    comparison_tables,
    label_tables,
    names,
    saturation_tables,
    scored,
    shown_group,
    stereotype_tables,
    template_table,
)
from qabias.benchmarks.bbq.facts import FACTS, MEASURES, PAPER
from qabias.benchmarks.bbq.roles import paper_categories, score, select_examples, target_groups
from qabias.benchmarks.limits import with_detectable
from qabias.benchmarks.scoring import Key, most_biased_first
from qabias.scores.facts import ALL, RUNS, Scores
from qabias.tables.model import Analysis, Column, Figure, Table

_STYLES = {"label": "labels", "name": "names"}
_TWO_FORMATS = "The paper averages two formats (qabias pool)."
# Differences of the paper's tables.
_IN_THE_PAPER = {
    f"stereotypes_{FIGURE_4}": "The figure renames rows, and its values imply other denominators.",
    "labels_Race_x_gender": "The paper's figure has no row for Roma.",
    "template_rates": f"The paper's table is the template {TABLE_2} in ambiguous contexts.",
}

_FOR_THE_USA = ", written for the USA"
_ROW_ALL = " The paper has the row All."
OF_BBQ = (_FOR_THE_USA, _ROW_ALL)
"""Parts of notes that do not apply to other sets of BBQ's form."""


def analyse(
    table: pa.Table, answers: pa.Table, scores: Scores, question_only: bool = False, rules: Rules = NO_RULES
) -> Analysis:
    """All tables of a BBQ run, and a selection of its examples."""
    categories: dict[Key, Scores] = {(name,): group for name, group in scores["by"]["paper_category"].items()}
    if question_only:
        ambiguous = pc.equal(table["context_condition"], "ambig")
        table, answers = table.filter(ambiguous), answers.filter(ambiguous)
        scores = score(table, answers, {"category": [(name,) for name in paper_categories(table)]}, rules)
        categories = dict(scores["by"]["category"])
    contexts = [context for context in CONTEXTS if scores[f"n_{context}"]]
    categories[(ALL,)] = scores
    groups = _groups(table, answers, rules)
    ranked = most_biased_first(groups["template"], ("bias_ambig", "bias_disambig"))
    examples, how_chosen = select_examples(table, answers, ranked)
    tables = (
        *([_question_only(categories), *saturation_tables(categories, ["ambig"])] if question_only else []),
        *([] if question_only else _bias(categories, contexts)),
        *_names_and_labels(groups["style"], contexts),
        *([] if question_only else _accuracy(categories, contexts)),
        *stereotype_tables(groups["stereotype"], contexts),
        *comparison_tables(groups["comparison"], contexts),
        *label_tables(groups["label"], contexts),
        *_answers(categories, contexts),
        *([_consistency(categories)] if CONSISTENCY in scores else []),
        _positions(categories, contexts),
        _unknown_texts(table, answers),
        template_table(table, groups["template"], groups["cell"], ranked),
    )
    return Analysis(tuple(_beside_the_paper(table, question_only, scores) for table in tables), examples, how_chosen)


def _beside_the_paper(table: Table, question_only: bool, scores: Scores) -> Table:
    """The table with its differences from the paper's."""
    if question_only:
        return table if table.name in ("question_only", "unknown_texts") else replace(table, source="")
    differs = [_IN_THE_PAPER.get(table.name, "")] if table.source else []
    if table.name in FACTS.means and table.source and "n_runs" not in scores:
        differs.append(_TWO_FORMATS)
    return replace(table, note=" ".join(filter(None, (table.note, *differs))))


def _groups(table: pa.Table, answers: pa.Table, rules: Rules) -> dict[str, dict[Key, Scores]]:
    """The metric's scores by all other groups of the tables."""
    category, style, stereotype, template, context, polarity = (
        table[name].to_pylist()
        for name in (
            *("category", "label_type", "social_value", "template_id"),
            *("context_condition", "question_polarity"),
        )
    )
    comparison = [name or None for name in table["comparison"].to_pylist()]
    target = target_groups(table)
    keys = {
        "style": zip(category, style, strict=True),
        "stereotype": zip(paper_categories(table), stereotype, target, strict=True),
        "comparison": zip(category, comparison, strict=True),
        "label": zip(category, map(shown_group, target), comparison, strict=True),
        "template": zip(template, strict=True),
        "cell": zip(template, context, polarity, strict=True),
    }
    groupings = {name: [None if None in key else key for key in of_rows] for name, of_rows in keys.items()}
    by: dict[str, dict[Key, Scores]] = score(table, answers, groupings, rules)["by"]
    return by


def _bias(categories: Mapping[Key, Scores], contexts: Sequence[str]) -> list[Table]:
    bias = [BIAS[context] for context in contexts]
    by_category = scored(
        "bias_by_category",
        "Bias by category",
        f"Figure 3 {PAPER}",
        f"{READ_BIAS} {READ_INTERVALS} Each category has few templates{_FOR_THE_USA}.",
        "Bias",
        [CATEGORY],
        categories,
        [*bias, *(N_EXAMPLES[context] for context in contexts), N_TEMPLATES],
        Figure("intervals", "category", names(bias)),
    )
    by_category = with_detectable(by_category, list(categories.values()), MEASURES)
    errors = [_aligned_errors(categories)] if "ambig" in contexts else []
    return [by_category, *saturation_tables(categories, contexts), *errors]


def _accuracy(categories: Mapping[Key, Scores], contexts: Sequence[str]) -> list[Table]:
    accuracy = [ACCURACY[context] for context in contexts]
    by_category = scored(
        "accuracy_by_category",
        "Accuracy by category",
        f"Figure 5 {PAPER}",
        f"UNKNOWN is right in ambiguous contexts, a person in disambiguated ones. Guessing: 33.3%. {READ_INTERVALS}",
        "Accuracy",
        [CATEGORY],
        categories,
        [*accuracy, *(N_EXAMPLES[context] for context in contexts), N_TEMPLATES],
        Figure("intervals", "category", names(accuracy)),
    )
    overall = [_overall_accuracy(categories[ALL,])] if len(contexts) == len(CONTEXTS) else []
    cost = [_alignment_cost(categories), *abstention_tables(categories)] if "disambig" in contexts else []
    return [by_category, *overall, *cost]


def _overall_accuracy(scores: Scores) -> Table:
    columns = (Column("accuracy", "Accuracy, overall", "share"), *ACCURACY.values(), *N_EXAMPLES.values())
    return scored(
        "overall_accuracy",
        "Overall accuracy",
        f"Section 6 {PAPER}",
        f"Both contexts together. A model that always answers UNKNOWN has 50%, guessing 33.3%. {READ_INTERVALS}",
        "Accuracy",
        [CATEGORY],
        {(ALL,): scores},
        [*columns, N_TEMPLATES],
    )


def _aligned_errors(categories: Mapping[Key, Scores]) -> Table:
    rows = []
    for (category,), scores in categories.items():
        biased, counter = scores["n_biased_ambig"], scores["n_counter_biased_ambig"]
        errors = biased + counter
        rows.append((category, biased / errors if errors else None, biased, counter, errors))
    return Table(
        "aligned_errors",
        "Stereotyped errors",
        f"Footnote 7 {PAPER}",
        "Share of stereotyped answers among errors in ambiguous contexts. 50% is best." + _ROW_ALL,
        (
            CATEGORY,
            Column("share_aligned", "Stereotyped, share", "share"),
            Column("n_biased_ambig", "Stereotyped", "count"),
            Column("n_counter_biased_ambig", "Anti-stereotyped", "count"),
            Column("n_errors", "Errors", "count"),
        ),
        tuple(rows),
        Figure("bars", "category", ("share_aligned",)),
        "Bias",
    )


def _alignment_cost(categories: Mapping[Key, Scores]) -> Table:
    columns = (
        Column("accuracy_cost", "Accuracy cost", "signed"),
        Column("accuracy_nonaligned", "Accuracy, nonaligned", "share"),
        Column("accuracy_aligned", "Accuracy, aligned", "share"),
        Column("n_nonaligned", "Examples, nonaligned", "count"),
        Column("n_aligned", "Examples, aligned", "count"),
    )
    table = scored(
        "alignment_cost",
        "Accuracy cost of nonalignment",
        f"Figure 2 {PAPER}",
        "Accuracy on nonaligned minus aligned examples; below 0 follows stereotypes.",
        "Accuracy",
        [CATEGORY],
        categories,
        columns,
        Figure("intervals", "category", ("accuracy_cost",)),
    )
    return with_detectable(table, list(categories.values()), MEASURES)


def _question_only(categories: Mapping[Key, Scores]) -> Table:
    values = (BIAS["ambig"], ACCURACY["ambig"])
    return scored(
        "question_only",
        "Question-only baseline",
        f"Figure 6 {PAPER}",
        f"The prompts have no context, so UNKNOWN is always right. {READ_BIAS}",
        "Question-only baseline",
        [CATEGORY],
        categories,
        [*values, N_EXAMPLES["ambig"], N_TEMPLATES],
        Figure("intervals", "category", names(values)),
    )


def _names_and_labels(styles: Mapping[Key, Scores], contexts: Sequence[str]) -> list[Table]:
    both = [category for category, style in styles if style == "name" and (category, "label") in styles]
    if not both:
        return []
    shown: dict[Key, Scores] = {
        (f"{category}, {_STYLES[style]}", category, _STYLES[style]): scores
        for (category, style), scores in styles.items()
        if category in both
    }
    bias = [BIAS[context] for context in contexts]
    columns = [*bias, *(ACCURACY[context] for context in contexts), *(N_EXAMPLES[context] for context in contexts)]
    return [
        scored(
            "names_and_labels",
            "Names and labels",
            f"Section 6 {PAPER}",
            "Groups are named by label or by a typical first name, in different templates.",
            "Bias",
            [Column("group", "Templates with", "text"), CATEGORY, Column("style", "People have", "text")],
            shown,
            [*columns, N_TEMPLATES],
            Figure("intervals", "group", names(bias)),
        )
    ]


def _answers(categories: Mapping[Key, Scores], contexts: Sequence[str]) -> list[Table]:
    people = {"target": "Target", "nontarget": "Non-target", "unknown": "UNKNOWN"}
    tables = []
    for context in contexts:
        shares = [Column(f"share_{who}_{context}", title, "share") for who, title in people.items()]
        tables.append(
            scored(
                f"answers_{context}",
                f"Answers by role, {CONTEXTS[context]} contexts",
                "",
                "A preference for one group, whatever the question asks, shows here but not in the bias scores.",
                "Answers",
                [CATEGORY],
                categories,
                [*shares, N_EXAMPLES[context]],
                Figure("shares", "category", names(shares)),
            )
        )
    return tables


def _consistency(categories: Mapping[Key, Scores]) -> Table:
    n_orders = categories[(ALL,)]["n_orders"]
    return scored(
        CONSISTENCY,
        "Consistent in all answer orders",
        "",
        f"Questions with the same answer in all {n_orders} orders. A model that answers by position has 0.",
        "Answers",
        [CATEGORY],
        categories,
        [Column(CONSISTENCY, "Consistent", "share"), Column("n", "Questions", "count")],
        Figure("bars", "category", (CONSISTENCY,)),
    )


def consistency_by_run(names: Sequence[str], scores: Sequence[Scores]) -> list[Table]:
    """A table of consistency over answer orders by run, if any run has several."""
    if not any(CONSISTENCY in one for one in scores):
        return []
    return [
        Table(
            f"{CONSISTENCY}_by_run",
            "Consistent in all answer orders",
            "",
            "Questions with the same answer in all orders. More orders are harder; one order has no value.",
            (
                Column("run", "Run", "text"),
                Column("n_orders", "Answer orders", "count"),
                Column(CONSISTENCY, "Consistent", "share"),
                Column("n", "Questions", "count"),
            ),
            tuple(
                (name, one.get("n_orders", 1), one.get(CONSISTENCY), one["n"])
                for name, one in zip(names, scores, strict=True)
            ),
            None,
            RUNS,
        )
    ]


def _positions(categories: Mapping[Key, Scores], contexts: Sequence[str]) -> Table:
    positions = [Column(f"share_position_{place}", f"Answer {place + 1}", "share") for place in range(3)]
    parsing = [
        Column("n", "Examples", "count"),
        Column("unparsed_share", "Unparsed", "share"),
        *(Column(f"n_unparsed_{context}", f"Unparsed, {CONTEXTS[context]}", "count") for context in contexts),
        Column("n_undefined_target", "No target", "count"),
    ]
    return scored(
        "answer_positions",
        "Answer positions",
        "",
        "The order is random: a share far from 33.3% is an answer by position. Examples without a target count for "
        "accuracy only.",
        "Answers",
        [CATEGORY],
        categories,
        [*positions, *parsing],
        Figure("shares", "category", names(positions)),
    )


def _unknown_texts(table: pa.Table, answers: pa.Table) -> Table:
    places = table["unknown_loc"].to_numpy()
    texts = np.choose(places, [table[f"ans{place}"].to_numpy() for place in range(3)])
    chosen = answers["prediction"].fill_null(-1).to_numpy() == places
    n_offered, n_chosen = Counter(texts.tolist()), Counter(texts[chosen].tolist())
    n_unknown = int(chosen.sum())
    return Table(
        "unknown_texts",
        "Wordings of UNKNOWN",
        f"Figure 7 {PAPER}",
        f"Shares of {n_unknown:,} UNKNOWN answers. Each question offers one random wording, so equal rates are best.",
        (
            Column("text", "Wording", "text"),
            Column("share", "Share of UNKNOWN answers", "share"),
            Column("rate", "Chosen if offered", "share"),
            Column("n", "Chosen", "count"),
            Column("n_offered", "Offered", "count"),
        ),
        tuple(
            (text, n_chosen[text] / n_unknown if n_unknown else None, n_chosen[text] / offered, n_chosen[text], offered)
            for text, offered in sorted(n_offered.items())
        ),
        Figure("bars", "text", ("share",)),
        "Answers",
    )
