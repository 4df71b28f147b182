"""Tables of a BBQ run by its breakdowns, with shared columns and notes.

A model that is right on 97% of the ambiguous questions has an s_AMB of at most 0.03. The saturation tables therefore
show the bound that the accuracy sets, the direction of the errors, and the probabilities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from qabias.benchmarks.bbq.facts import MEASURES, PAPER, READ_ABSTENTION, READ_SURE
from qabias.benchmarks.limits import values, with_detectable, with_ranges
from qabias.benchmarks.scoring import Key
from qabias.scores.facts import ALL, Scores
from qabias.scores.formatting import show
from qabias.scores.score import estimate, limited
from qabias.tables.model import Column, Figure, Table, Value

CONSISTENCY = "order_consistency"
"""Share of the questions with the same answer in all answer orders."""

CONTEXTS = {"ambig": "ambiguous", "disambig": "disambiguated"}

CATEGORY = Column("category", "Category", "text")
BIAS = {
    "ambig": Column("bias_ambig", "s_AMB, ambiguous", "signed"),
    "disambig": Column("bias_disambig", "s_DIS, disambiguated", "signed"),
}
ACCURACY = {context: Column(f"accuracy_{context}", f"Accuracy, {word}", "share") for context, word in CONTEXTS.items()}
N_EXAMPLES = {context: Column(f"n_{context}", f"Examples, {word}", "count") for context, word in CONTEXTS.items()}
N_TEMPLATES = Column("n_templates", "Templates", "count")

READ_BIAS = "0 is best, above 0 follows stereotypes."
READ_INTERVALS = "95% CI by template."


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
    """A table of groups by `labels` (their keys), with scores and counts of the metric."""
    rows = tuple((*key, *values(scores, columns)) for key, scores in groups.items())
    table = Table(name, title, source, note, (*labels, *columns), rows, figure, section)
    return with_ranges(table, list(groups.values()), MEASURES)


def plain(scores: Scores, name: str) -> float | None:
    """A score without its interval, None if undefined."""
    return estimate(scores, name).value


def names(columns: Sequence[Column]) -> tuple[str, ...]:
    """The names of some columns."""
    return tuple(column.name for column in columns)


def n_answers(scores: Scores, context: str) -> int:
    """The number of parsed answers to examples with a target."""
    n: int = sum(scores[f"n_{kind}_{context}"] for kind in ("biased", "counter_biased", "unknown"))
    return n


# Breakdowns omit scores from fewer answers in a context than two sets have.
MIN_ANSWERS = 4

# Figure 4 shows one category, Table 2 one template.
FIGURE_4 = "Race_ethnicity"
# Rows of Figure 4 with another name than the templates' stereotype.
_FIGURE_ROWS = {
    "anger, violence": "Anger/Violence",
    "othering, illegal immigration": "Immigration",
    "meritocracy": "Quota Filling",
    "intelligence": "Intelligence",
    "academic competence, intelligence": "Intelligence",
}
TABLE_2 = "Physical_appearance-16"

_POLARITIES = {"neg": "negative", "nonneg": "non-negative"}
# How the two people of an intersectional question differ, and their second trait.
_COMPARISONS = {
    "match_race": "same race, other {}",
    "match_other": "other race, same {}",
    "mismatch_both": "other race, other {}",
}
_SECOND_TRAIT = {"Race_x_gender": "gender", "Race_x_SES": "SES"}
_READ_THIN = f"Scores need {MIN_ANSWERS} answers."

# Names in the published vocabulary that Figures 9 and 10 show as one group.
_ONE_GROUP = ("Black, African American", "Latino, Hispanic", "Arab, Middle Eastern")
_SHOWN_AS = {name: names for names in _ONE_GROUP for name in names.split(", ")}


def shown_group(label: str | None) -> str | None:
    """The row of Figures 9 and 10 for a label of two traits, e.g. "F-Black, African American"."""
    trait, dash, name = (label or "").partition("-")
    return f"{trait}{dash}{_SHOWN_AS.get(name, name)}" if label else None


def stereotype_tables(groups: Mapping[Key, Scores], contexts: Sequence[str]) -> list[Table]:
    """A heat map per category: stereotype by group of the target."""
    bias = [BIAS[context] for context in contexts]
    tables = [
        scored(
            f"stereotypes_{category.replace(' (names)', '_names')}",
            f"{category}: bias by stereotype and group",
            f"Figure 4 {PAPER}" if category == FIGURE_4 else "",
            f"{READ_BIAS} {_READ_THIN} Cells have few templates.",
            "Stereotypes",
            [Column("stereotype", "Stereotype", "text"), Column("label", "Group", "text")],
            {
                (stereotype or "(none stated)", label): _without_thin(scores)
                for (stereotype, label), scores in within.items()
            },
            [*bias, *(N_EXAMPLES[context] for context in contexts), N_TEMPLATES],
            Figure("heatmap", "stereotype", names(bias), across="label"),
        )
        for category, within in _nested(groups).items()
    ]
    for number, table in enumerate(tables):
        if table.source:
            columns = (*table.columns, Column("figure_row", "Row of Figure 4, if renamed", "text"))
            rows = tuple((*row, _FIGURE_ROWS.get(str(row[0]))) for row in table.rows)
            tables[number] = replace(table, columns=columns, rows=rows)
    return tables


def comparison_tables(groups: Mapping[Key, Scores], contexts: Sequence[str]) -> list[Table]:
    """A table per intersectional category, by the difference of the two people."""
    bias = [BIAS[context] for context in contexts]
    return [
        scored(
            f"comparisons_{category}",
            f"{category}: by the other person",
            f"Figure 8 {PAPER}",
            "A stereotype of both traits together shows above 0 in all three rows.",
            "Intersections",
            [Column("comparison", "The other person", "text")],
            {(_comparison(category, name),): within[name,] for name in _COMPARISONS if (name,) in within},
            [*bias, *(N_EXAMPLES[context] for context in contexts), N_TEMPLATES],
            Figure("intervals", "comparison", names(bias)),
        )
        for category, within in _nested(groups).items()
    ]


def label_tables(groups: Mapping[Key, Scores], contexts: Sequence[str]) -> list[Table]:
    """A table per intersectional category, by group of the target and difference of the two people."""
    bias = [BIAS[context] for context in contexts]
    figures = {"Race_x_gender": "Figure 9", "Race_x_SES": "Figure 10"}
    return [
        scored(
            f"labels_{category}",
            f"{category}: by group of the target",
            f"{figures[category]} {PAPER}",
            f"{READ_BIAS} {_READ_THIN} Names count as their group.",
            "Intersections",
            [Column("label", "Group", "text"), Column("comparison", "The other person", "text")],
            {
                (label, _comparison(category, name)): _without_thin(scores)
                for label in dict.fromkeys(label for label, _ in within)
                for name in _COMPARISONS
                for scores in [within.get((label, name))]
                if scores is not None
            },
            [*bias, *(N_EXAMPLES[context] for context in contexts), N_TEMPLATES],
            Figure("heatmap", "label", names(bias), across="comparison"),
        )
        for category, within in _nested(groups).items()
    ]


def template_table(
    table: pa.Table, templates: Mapping[Key, Scores], cells: Mapping[Key, Scores], ranked: Sequence[Key]
) -> Table:
    """Roles of the answers to each template, by context and question."""
    facts = ("template_id", "category", "social_value")
    columns: list[list[Any]] = [table[name].to_pylist() for name in facts]
    facts_of = {template: (category, value) for template, category, value in zip(*columns, strict=True)}
    rows: list[tuple[Value, ...]] = []
    for (template,) in ranked:
        for context, word in CONTEXTS.items():
            bias = plain(templates[template,], f"bias_{context}")
            for polarity, question in _POLARITIES.items():
                scores = cells.get((template, context, polarity))
                if scores is not None:
                    shares = [plain(scores, f"share_{who}_{context}") for who in ("target", "nontarget", "unknown")]
                    rows.append(
                        (template, *facts_of[template], word, question, *shares, n_answers(scores, context), bias)
                    )
    return Table(
        "template_rates",
        "Answers by template",
        f"Table 2 {PAPER}" if (TABLE_2, "ambig", "neg") in cells else "",
        "Largest s_AMB first. Bias: the target is named more often in negative than in non-negative questions. "
        "Templates have few examples.",
        (
            Column("template_id", "Template", "text"),
            CATEGORY,
            Column("stereotype", "Stereotype", "text"),
            Column("context", "Context", "text"),
            Column("question", "Question", "text"),
            Column("share_target", "Target", "share"),
            Column("share_nontarget", "Non-target", "share"),
            Column("share_unknown", "UNKNOWN", "share"),
            Column("n", "Answers", "count"),
            Column("bias", "Bias", "signed"),
        ),
        tuple(rows),
        section="Templates",
    )


def _nested(groups: Mapping[Key, Scores]) -> dict[str, dict[Key, Scores]]:
    nested: dict[str, dict[Key, Scores]] = {}
    for (first, *rest), scores in groups.items():
        nested.setdefault(first, {})[tuple(rest)] = scores
    return nested


def _comparison(category: str, name: str) -> str:
    return _COMPARISONS[name].format(_SECOND_TRAIT[category])


def _without_thin(scores: Scores) -> Scores:
    """The scores without bias scores of too few answers."""
    fewest = MIN_ANSWERS * scores.get("n_runs", 1)
    thin = [BIAS[context].name for context in CONTEXTS if n_answers(scores, context) < fewest]
    intervals = {name: interval for name, interval in scores["ci"].items() if name not in thin}
    ranges = {name: ends for name, ends in scores.get("range", {}).items() if name not in thin}
    return {**scores, **dict.fromkeys(thin, np.nan), "ci": intervals, "range": ranges}


_AMONG_ERRORS = Column("bias_ambig_among_errors", "Direction of errors", "signed")
_SIDES = ("aligned", "nonaligned")
_N_SIDES = [Column(f"n_{side}", f"Examples, {side}", "count") for side in _SIDES]
_READ_BOUND = "Maximum: largest bias at this accuracy."
_READ_PROBABILITIES = "Probability bias: P(stereotyped answer) minus P(anti-stereotyped answer)."
_MEASURES = {measure.name: measure for measure in MEASURES}


def saturation_tables(categories: Mapping[Key, Scores], contexts: Sequence[str]) -> list[Table]:
    """Errors and probabilities by category, one table per context."""
    tables = {"ambig": _ambiguous, "disambig": _disambiguated}
    return [tables[context](categories) for context in contexts]


def about_errors(scores: Scores) -> list[str]:
    """The same for all ambiguous examples, as lines, without undefined scores."""
    if not scores["n_ambig"]:
        return []
    lines = []
    bound = estimate(scores, "bias_bound_ambig")
    if bound.value is not None:
        n_biased, n_counter = scores["n_biased_ambig"], scores["n_counter_biased_ambig"]
        errors = f"errors in ambiguous contexts: {n_biased:,} stereotyped, {n_counter:,} anti-stereotyped"
        direction = _in_words(scores, _AMONG_ERRORS.name)
        lines += [
            f"{errors}; direction {direction}" if n_biased + n_counter else errors,
            f"s_AMB is {_in_words(scores, 'bias_ambig')}; maximum at this accuracy: {show(bound, 'share')}",
        ]
    if "bias_probability_ambig" in scores and estimate(scores, "bias_probability_ambig").value is not None:
        n_without = scores["n_without_probabilities_ambig"]
        excluded = f"; {n_without:,} examples have no probabilities" if n_without else ""
        lines.append(f"probability bias, ambiguous: {_in_words(scores, 'bias_probability_ambig')}{excluded}")
    return lines


def about_abstention(scores: Scores) -> list[str]:
    """How disambiguated examples are answered wrongly, as lines."""
    if not scores["n_aligned"] or not scores["n_nonaligned"]:
        return []
    rates = {
        event: " and ".join(show(estimate(scores, f"{event}_{side}").value, "share") for side in _SIDES)
        for event in ("abstention", "wrong_person")
    }
    return [
        f"aligned and nonaligned contexts: abstains in {rates['abstention']}, wrong person in {rates['wrong_person']}",
        f"abstention gap {_in_words(scores, 'abstention_gap')}. {READ_ABSTENTION}",
    ]


def abstention_tables(categories: Mapping[Key, Scores]) -> list[Table]:
    """Wrong answers in disambiguated contexts by side, and the parts of s_DIS."""
    titles = {"abstention": "Abstains", "wrong_person": "Wrong person"}
    counted = {"n_unknown": "Abstains", "n_wrong_person": "Wrong person"}
    gap = Column("abstention_gap", "Abstention gap", "signed")
    columns = [
        gap,
        *(Column(f"{event}_{side}", f"{title}, {side}", "share") for event, title in titles.items() for side in _SIDES),
        *(
            Column(f"{event}_{side}", f"{title}, {side}", "count")
            for event, title in counted.items()
            for side in _SIDES
        ),
        *_N_SIDES,
    ]
    parts = {"abstention": "By abstention", "wrong_person": "By wrong persons", "imbalance": "By unequal numbers"}
    of_bias = [Column(f"bias_disambig_{part}", title, "signed") for part, title in parts.items()]
    split = scored(
        "abstention",
        "Abstentions and wrong persons, disambiguated contexts",
        "",
        READ_ABSTENTION,
        "Accuracy",
        [CATEGORY],
        categories,
        columns,
        Figure("intervals", "category", (gap.name,)),
    )
    note = "The parts sum to s_DIS. A wrong person counts twice. The last part is 0 for equally many examples per side."
    columns = [BIAS["disambig"], *of_bias, *_N_SIDES]
    summed = scored("bias_disambig_parts", "Parts of s_DIS", "", note, "Bias", [CATEGORY], categories, columns)
    return [with_detectable(split, list(categories.values()), MEASURES), summed]


def _in_words(scores: Mapping[str, Any], name: str) -> str:
    """A score with its interval, or with its possible range."""
    measure = _MEASURES[name]
    score = limited(scores, measure)
    text = "undefined" if score.value is None else show(score, measure.kind)
    if score.possible is not None:
        return f"{text} (possible: {score.possible_in_words})"
    if score.value is not None and score.low is None:
        return f"{text} (no CI: too few templates have such answers)"
    return f"{text} {score.interval}".strip()


def _ambiguous(categories: Mapping[Key, Scores]) -> Table:
    return scored(
        "saturation_ambig",
        "Direction of errors, ambiguous contexts",
        "",
        f"{_READ_BOUND} Direction: stereotyped minus anti-stereotyped answers, as a share of both. "
        f"{_about_probabilities(categories, 'ambig')}",
        "Bias",
        [CATEGORY],
        categories,
        [
            BIAS["ambig"],
            Column("bias_bound_ambig", "Maximum", "share"),
            _AMONG_ERRORS,
            Column("n_biased_ambig", "Stereotyped", "count"),
            Column("n_counter_biased_ambig", "Anti-stereotyped", "count"),
            *_of_probabilities(categories, "ambig"),
            N_TEMPLATES,
        ],
        Figure("intervals", "category", (_AMONG_ERRORS.name,)),
    )


def _disambiguated(categories: Mapping[Key, Scores]) -> Table:
    probable = _about_probabilities(categories, "disambig")
    probable += f"{READ_SURE} " if probable else ""
    return scored(
        "saturation_disambig",
        "Largest possible bias, disambiguated contexts",
        "",
        f"{_READ_BOUND} {probable}".strip(),
        "Bias",
        [CATEGORY],
        categories,
        [
            BIAS["disambig"],
            Column("bias_bound_disambig", "Maximum", "share"),
            *_of_probabilities(categories, "disambig"),
            *_N_SIDES,
            N_TEMPLATES,
        ],
    )


def _of_probabilities(categories: Mapping[Key, Scores], context: str) -> list[Column]:
    """The columns of the probabilities, if any."""
    if f"bias_probability_{context}" not in categories[ALL,]:
        return []
    columns = [Column(f"bias_probability_{context}", "Probability bias", "signed")]
    if any(scores[f"n_without_probabilities_{context}"] for scores in categories.values()):
        columns.append(Column(f"n_without_probabilities_{context}", "Examples without probabilities", "count"))
    return columns


def _about_probabilities(categories: Mapping[Key, Scores], context: str) -> str:
    return f"{_READ_PROBABILITIES} " if _of_probabilities(categories, context) else ""
