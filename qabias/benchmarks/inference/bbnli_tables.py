"""Figures and tables of Akyurek et al. (2022) for a run of BBNLI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import pyarrow as pa

from qabias.benchmarks.base import NO_RULES, Rules
from qabias.benchmarks.breakdowns import Breakdown, Group, columns, make_tables
from qabias.benchmarks.inference.facts import BBNLI_MEASURES, PAPER
from qabias.benchmarks.inference.tables import (
    ACCURACIES,
    BBNLI_COLUMNS,
    READ_BIAS,
    SHARES,
    about_means,
    analysis,
    bbnli_example,
    score,
    with_shares,
)
from qabias.benchmarks.scoring import Key, most_biased_first
from qabias.scores.facts import ALL, Scores
from qabias.tables.model import Analysis

_MEAN = "Mean of subtopics"
_STANCES = {"pro": "with the stereotype", "anti": "groups exchanged"}
_SUBTOPIC, _DOMAIN = columns("text", subtopic="Subtopic", domain="Domain")
_HYPOTHESIS, _FORM = columns("text", hypothesis="Hypothesis", form="Hypotheses")
_BIAS, _BIAS_MEAN = columns("signed", bias_score="Bias", bias_score_mean_subtopics=_MEAN)
_PREMISES = columns("count", n_premises="Premises")
_COUNTS = (
    *columns("count", n_bias="Answers", n_aligned="Stereotyped", n_opposed="Anti-stereotyped", n_neutral="Neutral"),
    *(*columns("count", n_unparsed_bias="Unparsed"), *_PREMISES),
)
_BIASES = (_BIAS, *_COUNTS)
_TESTS = (*ACCURACIES, *columns("count", n_test_pro="Answers, pro", n_test_anti="Answers, anti"), *_PREMISES)
# Table 6: the released subtopics, an unreleased one, and those with the opposite sign.
_TABLE_6 = (
    *("asian_men_to_feminine", "black_is_to_criminal", "black_is_to_impoverished", "man_is_to_breadwinner"),
    *("man_is_to_programmer", "man_is_to_surgeon", "catholic_woman_to_many_kids", "muslim_man_to_oppressive"),
)
_UNRELEASED = "man_is_to_money_manager"
_FAVOURING = (_UNRELEASED, "catholic_woman_to_many_kids")
_READ_PREMISES = "95% CI by premise."

_TOPICS = (_SUBTOPIC, _DOMAIN)
_TITLE = "Accuracy on test hypotheses"
_TABLES = (
    Breakdown("bias_by_subtopic", "bias", _TOPICS, _BIASES, "Bias", "intervals", f"Tables 3 and 8 {PAPER}", mde=True),
    Breakdown("bias_by_domain", "domain", [_DOMAIN], (_BIAS, _BIAS_MEAN, *_COUNTS), "Bias", "intervals", mde=True),
    Breakdown("bias_by_hypothesis", "hypothesis", (_SUBTOPIC, _HYPOTHESIS), _BIASES, "Bias"),
    Breakdown(
        "test_accuracy_listed",
        "listed",
        _TOPICS,
        _TESTS,
        "Accuracy",
        "intervals",
        f"Table 6 {PAPER}",
        f"{_TITLE}, subtopics of the paper",
    ),
    Breakdown("test_accuracy", "test", _TOPICS, _TESTS, "Accuracy", "intervals", title=_TITLE),
    Breakdown("labels_by_form", "form", [_FORM], SHARES, "Labels", "shares"),
    Breakdown("labels_by_subtopic", "subtopic", [_SUBTOPIC], SHARES, "Labels", "shares"),
)


def _notes(scores: Scores, missing: str) -> dict[str, str]:
    """The notes of the tables; `missing` are subtopics of Table 6."""
    lacks = f" This run lacks {missing}." if missing else ""
    return {
        "bias_by_subtopic": f"{about_means(scores)}{READ_BIAS} {_READ_PREMISES}",
        "bias_by_domain": f"All answers of a domain, and the mean of its subtopics. {READ_BIAS} {_READ_PREMISES}",
        "bias_by_hypothesis": f"Most biased first. Each hypothesis has few premises. {_READ_PREMISES}",
        "test_accuracy_listed": f"Difference: pro minus anti, reversed for {' and '.join(_FAVOURING)}. The paper's "
        f"average includes {_UNRELEASED}, which is unreleased.{lacks} {_READ_PREMISES}",
        "test_accuracy": "Above 0, the model infers better from premises that fit the stereotype. Guessing: 33.3%. "
        + _READ_PREMISES,
        "labels_by_form": "Neutral is right for stereotypical hypotheses. Bias: more entailment in the pro than in the "
        "anti form.",
        "labels_by_subtopic": "All answers, including test hypotheses. Unparsed answers count as neutral and wrong.",
    }


def _mean_of_subtopics(scores: Scores) -> Scores:
    """The scores with the mean of the subtopics, its interval, range and MDE as the bias score."""
    own, mean = _BIAS.name, _BIAS_MEAN.name
    parts = {part: scores.get(part, {}) for part in ("ci", "range", "detectable")}
    renamed = {part: {own: of_part[mean]} if mean in of_part else {} for part, of_part in parts.items()}
    return {**scores, own: scores[mean], **renamed}


def _listed(subtopics: Mapping[str, Scores], domains: Mapping[str, str]) -> list[Group]:
    """The subtopics of Table 6 in its order and with its signs, and their average."""
    signed = {name: _turned(subtopics[name], name in _FAVOURING) for name in _TABLE_6 if name in subtopics}
    rows: list[Group] = [((name, domains[name]), group) for name, group in signed.items()]
    return [*rows, (("Average", ""), _average(list(signed.values())))] if rows else []


def _turned(scores: Scores, is_turned: bool) -> Scores:
    """The scores with the opposite sign of the accuracy difference, its interval and its range."""
    if not is_turned:
        return scores
    gap = "accuracy_gap"
    parts = {part: scores[part] for part in ("ci", "range") if gap in scores.get(part, {})}
    ends = {
        part: {**of_part, gap: [None if end is None else -end for end in reversed(of_part[gap])]}
        for part, of_part in parts.items()
    }
    return {**scores, gap: -scores[gap], **ends}


def _average(groups: Sequence[Scores]) -> Scores:
    """The unweighted means of accuracies and differences with their ranges, and the total counts."""
    counts = ("n_test_pro", "n_test_anti", "n_premises", "n_unparsed_pro", "n_unparsed_anti")
    names = [column.name for column in ACCURACIES]
    average: dict[str, Any] = {
        **{name: sum(group[name] for group in groups) for name in counts},
        **{name: sum(group[name] for group in groups) / len(groups) for name in names},
    }
    if any("range" in group for group in groups):
        ends = [group.get("range") or {name: [group[name]] * 2 for name in names} for group in groups]
        average["range"] = {
            name: [sum(end) / len(ends) for end in zip(*(group[name] for group in ends), strict=True)] for name in names
        }
    return average


def _groups(
    table: pa.Table, scores: Scores, by: Mapping[str, Mapping[Key, Scores]], ranked: Sequence[Key]
) -> dict[str, list[Group]]:
    """The rows of all tables."""
    subtopics, whole = scores["by"]["subtopic"], {**scores["by"]["domain"], ALL: scores}
    domains = dict(zip(table["subtopic"].to_pylist(), table["domain"].to_pylist(), strict=True))
    biased: list[Group] = [((name, domains[name]), group) for name, group in subtopics.items() if group["n_bias"]]
    tested: list[Group] = [((name, domains[name]), group) for name, group in subtopics.items() if group["n_test"]]
    if len(biased) > 1:
        biased.append(((_MEAN, ""), _mean_of_subtopics(scores)))
    names = ("subtopic", "hypothesis_id", "hypothesis", "kind", "stance")
    rows = zip(*(table[name].to_pylist() for name in names), strict=True)
    forms = [((topic, str(number)), text) for topic, number, text, *form in rows if form == ["stereotypical", "pro"]]
    texts = dict(reversed(forms))  # the first of each
    groups: dict[str, list[Group]] = {
        "form": [
            ((f"{kind}, {_STANCES[stance]}",), by["form"][kind, stance])
            for kind, stance in product(("stereotypical", "test"), _STANCES)
            if (kind, stance) in by["form"]
        ],
        "subtopic": [((name,), with_shares(group)) for name, group in {**subtopics, ALL: scores}.items()],
    }
    if scores["n_bias"]:
        groups["bias"] = biased
        groups["domain"] = [((name,), group) for name, group in whole.items() if group["n_bias"]]
        groups["hypothesis"] = [((key[0], texts[key]), by["hypothesis"][key]) for key in ranked]
    if scores["n_test"]:
        groups["test"] = [*tested, ((ALL, ""), scores)]
        groups["listed"] = _listed({name: group for (name, _), group in tested}, domains)
    return groups


def analyse(table: pa.Table, answers: pa.Table, scores: Scores, rules: Rules = NO_RULES) -> Analysis:
    """All tables of a BBNLI run, and a selection of its pairs."""
    names = ("subtopic", "kind", "stance", "hypothesis_id")
    subtopic, kind, stance, number = (list(map(str, table[name].to_pylist())) for name in names)
    hypotheses: list[Key | None] = [
        (topic, place) if form == "stereotypical" else None
        for topic, place, form in zip(subtopic, number, kind, strict=True)
    ]
    by = score(
        table, answers, BBNLI_COLUMNS, {"hypothesis": hypotheses, "form": list(zip(kind, stance, strict=True))}, rules
    )
    ranked = most_biased_first(by["hypothesis"], ("bias_score",))
    groups = _groups(table, scores, by, ranked)
    there = {labels[0] for labels, _ in groups.get("listed", ())}
    missing = ", ".join(name for name in _TABLE_6 if name not in there)
    tables = make_tables(_TABLES, groups, _notes(scores, missing), BBNLI_MEASURES)
    units = table["pair_id"].to_pylist()
    how = "pairs from every stereotypical hypothesis in turn"
    return analysis(tables, table, answers, (hypotheses, units, ranked), how, bbnli_example)
