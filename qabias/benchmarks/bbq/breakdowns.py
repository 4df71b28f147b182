"""Break-downs of a BBQ run: by stereotype and group, by comparison of two traits, and by template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from qabias.benchmarks.bbq.columns import (
    BIAS,
    CATEGORY,
    CONTEXTS,
    N_EXAMPLES,
    N_TEMPLATES,
    READ_BIAS,
    READ_INTERVALS,
    n_answers,
    names,
    plain,
    scored,
)
from qabias.benchmarks.bbq.facts import PAPER
from qabias.benchmarks.facts import Scores
from qabias.benchmarks.scoring import Key
from qabias.tables.model import Column, Figure, Table, Value

# Break-downs show no score from fewer answers in a context: two sets, each asked both ways.
MIN_ANSWERS = 4

# What the paper shows: Figure 4 is of one category, where people are given labels, Table 2 of one template.
FIGURE_4 = "Race_ethnicity"
TABLE_2 = "Physical_appearance-16"

_POLARITIES = {"neg": "negative", "nonneg": "non-negative"}
# How the two people of an intersectional question differ: values of the column `comparison`, and their second trait.
_COMPARISONS = {
    "match_race": "same race, other {}",
    "match_other": "other race, same {}",
    "mismatch_both": "other race, other {}",
}
_SECOND_TRAIT = {"Race_x_gender": "gender", "Race_x_SES": "SES"}
_READ_THIN = f"Fewer than {MIN_ANSWERS} answers show no score, and a single template has no interval."


def stereotype_tables(groups: Mapping[Key, Scores]) -> list[Table]:
    """A heat map for every category: stereotype by label of the target."""
    return [
        scored(
            f"stereotypes_{_identifier(category)}",
            f"{category}: stereotypes and the groups they are held of",
            f"Figure 4 {PAPER}" if category == FIGURE_4 else "",
            f"s_AMB where no context tells the answer. {READ_BIAS} {_READ_THIN} Not every stereotype is held of every "
            "group: what has no template has no row. Most cells rest on one or two templates, so read them as hints of "
            "what to look at.",
            "Stereotypes",
            [Column("stereotype", "Stereotype", "text"), Column("label", "Group", "text")],
            {
                (stereotype or "(none stated)", label): _without_thin(scores)
                for (stereotype, label), scores in within.items()
            },
            [BIAS["ambig"], N_EXAMPLES["ambig"], N_TEMPLATES],
            Figure("heatmap", "stereotype", ("bias_ambig",), across="label"),
        )
        for category, within in _nested(groups).items()
    ]


def comparison_tables(groups: Mapping[Key, Scores], contexts: Sequence[str]) -> list[Table]:
    """A table for every intersectional category: by how the two people differ."""
    bias = [BIAS[context] for context in contexts]
    return [
        scored(
            f"comparisons_{category}",
            f"{category}: by whom the target is compared with",
            f"Figure 8 {PAPER}",
            "The target has both traits; the other person differs in one of them or in both. Answers from a stereotype "
            f"of both traits together would show above 0 in all three rows. {READ_INTERVALS}",
            "Intersections",
            [Column("comparison", "The other person", "text")],
            {(_comparison(category, name),): within[name,] for name in _COMPARISONS if (name,) in within},
            [*bias, *(N_EXAMPLES[context] for context in contexts), N_TEMPLATES],
            Figure("intervals", "comparison", names(bias)),
        )
        for category, within in _nested(groups).items()
    ]


def label_tables(groups: Mapping[Key, Scores], contexts: Sequence[str]) -> list[Table]:
    """A table for every intersectional category: by label of the target and by how the two people differ."""
    bias = [BIAS[context] for context in contexts]
    figures = {"Race_x_gender": "Figure 9", "Race_x_SES": "Figure 10"}
    return [
        scored(
            f"labels_{category}",
            f"{category}: by group of the target",
            f"{figures[category]} {PAPER}",
            f"{READ_BIAS} {_READ_THIN} People with names count with the group of their name.",
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
    """Whom the answers to each template name, by context and question."""
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
        "How often each answer is given to the negative and to the non-negative question of a template, the most "
        "biased template first (largest s_AMB). A stereotype shows where the group is named to the negative question "
        "and the other person to the non-negative one. A template has few examples, all of one wording: read it as a "
        "hint.",
        (
            Column("template_id", "Template", "text"),
            CATEGORY,
            Column("stereotype", "Stereotype", "text"),
            Column("context", "Context", "text"),
            Column("question", "Question", "text"),
            Column("share_target", "Group member", "share"),
            Column("share_nontarget", "Other person", "share"),
            Column("share_unknown", "UNKNOWN", "share"),
            Column("n", "Answers", "count"),
            Column("bias", "Bias of template", "signed"),
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


def _identifier(category: str) -> str:
    return category.replace(" (names)", "_names")


def _without_thin(scores: Scores) -> Scores:
    """The scores without bias scores that rest on a handful of answers."""
    fewest = MIN_ANSWERS * scores.get("n_runs", 1)
    thin = [BIAS[context].name for context in CONTEXTS if n_answers(scores, context) < fewest]
    intervals = {name: interval for name, interval in scores["ci"].items() if name not in thin}
    ranges = {name: ends for name, ends in scores.get("range", {}).items() if name not in thin}
    return {**scores, **dict.fromkeys(thin, np.nan), "ci": intervals, "range": ranges}
