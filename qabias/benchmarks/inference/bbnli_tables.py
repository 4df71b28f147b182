"""Figures and tables of Akyurek et al. (2022) for a run of BBNLI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from qabias.benchmarks.base import NO_RULES, Rules
from qabias.benchmarks.inference.facts import BBNLI_MEASURES, PAPER
from qabias.benchmarks.inference.tables import (
    ACCURACIES,
    BBNLI_COLUMNS,
    READ_BIAS,
    SHARES,
    N,
    about_means,
    bbnli_example,
    examples,
    score,
    with_shares,
)
from qabias.benchmarks.limits import values, with_detectable, with_ranges
from qabias.benchmarks.scoring import Key, chosen_rows, most_biased_first
from qabias.scores.facts import ALL, Scores
from qabias.scores.score import estimate
from qabias.tables.model import Analysis, Column, Figure, Table

_MEAN = "Mean of subtopics"
_FORMS = ("stereotypical", "test")
_STANCES = {"pro": "with the stereotype", "anti": "groups exchanged"}
_SUBTOPIC = Column("subtopic", "Subtopic", "text")
_DOMAIN = Column("domain", "Domain", "text")
_BIAS = Column("bias_score", "Bias", "signed")
_BIAS_COUNTS = (
    Column("n_bias", "Answers", "count"),
    Column("n_aligned", "Stereotyped", "count"),
    Column("n_opposed", "Anti-stereotyped", "count"),
    Column("n_neutral", "Neutral", "count"),
    Column("n_unparsed_bias", "Unparsed", "count"),
)
_N_PREMISES = Column("n_premises", "Premises", "count")
_TEST_COUNTS = (
    Column("n_test_pro", "Answers, pro", "count"),
    Column("n_test_anti", "Answers, anti", "count"),
    _N_PREMISES,
)
# Table 6: the released subtopics, an unreleased one, and those with the opposite sign.
_TABLE_6 = (
    *("asian_men_to_feminine", "black_is_to_criminal", "black_is_to_impoverished", "man_is_to_breadwinner"),
    *("man_is_to_programmer", "man_is_to_surgeon", "catholic_woman_to_many_kids", "muslim_man_to_oppressive"),
)
_UNRELEASED = "man_is_to_money_manager"
_FAVOURING = (_UNRELEASED, "catholic_woman_to_many_kids")
_AVERAGE = "Average"
_READ_PREMISES = "95% CI by premise."


def bias_tables(
    scores: Scores, domains: Mapping[str, str], hypotheses: Mapping[Key, Scores], ranked: Sequence[Key], table: pa.Table
) -> list[Table]:
    """Bias by subtopic, domain and hypothesis, if the run has stereotypical hypotheses."""
    if not scores["n_bias"]:
        return []
    subtopics = {name: group for name, group in scores["by"]["subtopic"].items() if group["n_bias"]}
    columns = (_BIAS, *_BIAS_COUNTS, _N_PREMISES)
    rows = [(name, domains[name], *values(group, columns)) for name, group in subtopics.items()]
    groups = list(subtopics.values())
    if len(rows) > 1:
        mean = estimate(scores, "bias_score_mean_subtopics")
        rows.append((_MEAN, "", mean, *values(scores, columns)[1:]))
        groups.append(_as_bias(scores, "bias_score_mean_subtopics"))
    by_subtopic = Table(
        "bias_by_subtopic",
        "Bias by subtopic",
        f"Tables 3 and 8 {PAPER}",
        f"{about_means(scores)}{READ_BIAS} {_READ_PREMISES}",
        (_SUBTOPIC, _DOMAIN, *columns),
        tuple(rows),
        Figure("intervals", "subtopic", ("bias_score",)),
        "Bias",
    )
    both = (_BIAS, Column("bias_score_mean_subtopics", _MEAN, "signed"), *_BIAS_COUNTS, _N_PREMISES)
    of_domains = {name: group for name, group in {**scores["by"]["domain"], ALL: scores}.items() if group["n_bias"]}
    domain_groups = list(of_domains.values())
    by_domain = Table(
        "bias_by_domain",
        "Bias by domain",
        "",
        f"All answers of a domain, and the mean of its subtopics. {READ_BIAS} {_READ_PREMISES}",
        (_DOMAIN, *both),
        tuple((name, *values(group, both)) for name, group in of_domains.items()),
        Figure("intervals", "domain", ("bias_score", "bias_score_mean_subtopics")),
        "Bias",
    )
    return [
        with_detectable(with_ranges(by_subtopic, groups, BBNLI_MEASURES), groups, BBNLI_MEASURES),
        with_detectable(with_ranges(by_domain, domain_groups, BBNLI_MEASURES), domain_groups, BBNLI_MEASURES),
        _bias_by_hypothesis(hypotheses, ranked, table),
    ]


def _as_bias(scores: Scores, name: str) -> Scores:
    """The scores with the range and MDE of another bias score under `bias_score`."""
    parts = {part: scores.get(part, {}) for part in ("range", "detectable")}
    return {**scores, **{part: {"bias_score": group[name]} if name in group else {} for part, group in parts.items()}}


def _bias_by_hypothesis(hypotheses: Mapping[Key, Scores], ranked: Sequence[Key], table: pa.Table) -> Table:
    names = ("subtopic", "hypothesis_id", "kind", "stance", "hypothesis")
    texts: dict[Key, str] = {}
    for subtopic, number, kind, stance, text in zip(*(table[name].to_pylist() for name in names), strict=True):
        if kind == "stereotypical" and stance == "pro":
            texts.setdefault((subtopic, str(number)), text)
    columns = (_BIAS, *_BIAS_COUNTS, _N_PREMISES)
    table_of_hypotheses = Table(
        "bias_by_hypothesis",
        "Bias by hypothesis",
        "",
        f"Most biased first. Each hypothesis has few premises. {_READ_PREMISES}",
        (_SUBTOPIC, Column("hypothesis", "Hypothesis", "text"), *columns),
        tuple((key[0], texts[key], *values(hypotheses[key], columns)) for key in ranked),
        section="Bias",
    )
    return with_ranges(table_of_hypotheses, [hypotheses[key] for key in ranked], BBNLI_MEASURES)


def accuracy_tables(scores: Scores, domains: Mapping[str, str]) -> list[Table]:
    """Accuracy on test hypotheses by subtopic, if any."""
    if not scores["n_test"]:
        return []
    columns = (*ACCURACIES, *_TEST_COUNTS)
    subtopics = {name: group for name, group in scores["by"]["subtopic"].items() if group["n_test"]}
    listed = {name: subtopics[name] for name in _TABLE_6 if name in subtopics}
    whole = Table(
        "test_accuracy",
        "Accuracy on test hypotheses",
        "",
        f"Above 0, the model infers better from premises that fit the stereotype. Guessing: 33.3%. {_READ_PREMISES}",
        (_SUBTOPIC, _DOMAIN, *columns),
        (
            *((name, domains[name], *values(group, columns)) for name, group in subtopics.items()),
            (ALL, "", *values(scores, columns)),
        ),
        Figure("intervals", "subtopic", ("accuracy_pro", "accuracy_anti")),
        "Accuracy",
    )
    return [
        *([_table_6(listed, domains)] if listed else []),
        with_ranges(whole, [*subtopics.values(), scores], BBNLI_MEASURES),
    ]


def _table_6(subtopics: Mapping[str, Scores], domains: Mapping[str, str]) -> Table:
    """The paper's subtopics in its order and with its signs."""
    signed = {name: _turned(group) if name in _FAVOURING else group for name, group in subtopics.items()}
    average = _average(list(signed.values()))
    columns = (*ACCURACIES, *_TEST_COUNTS)
    missing = [name for name in _TABLE_6 if name not in subtopics]
    lacks = f" This run lacks {', '.join(missing)}." if missing else ""
    table = Table(
        "test_accuracy_listed",
        "Accuracy on test hypotheses, subtopics of the paper",
        f"Table 6 {PAPER}",
        f"Difference: pro minus anti, reversed for {' and '.join(_FAVOURING)}. The paper's average includes "
        f"{_UNRELEASED}, which is unreleased.{lacks} {_READ_PREMISES}",
        (_SUBTOPIC, _DOMAIN, *columns),
        (
            *((name, domains[name], *values(group, columns)) for name, group in signed.items()),
            (_AVERAGE, "", *values(average, columns)),
        ),
        Figure("intervals", "subtopic", tuple(column.name for column in ACCURACIES[:2])),
        "Accuracy",
    )
    return with_ranges(table, [*signed.values(), average], BBNLI_MEASURES)


def _turned(scores: Scores) -> Scores:
    """The scores with the opposite sign of the accuracy difference, its interval and its range."""
    gap = "accuracy_gap"
    parts = {part: scores[part] for part in ("ci", "range") if gap in scores.get(part, {})}
    ends = {
        part: {**of_part, gap: [None if end is None else -end for end in reversed(of_part[gap])]}
        for part, of_part in parts.items()
    }
    return {**scores, gap: -scores[gap], **ends}


def _average(groups: Sequence[Scores]) -> Scores:
    """The unweighted means of accuracies and differences with their ranges, and the total counts."""
    counts = (*(column.name for column in _TEST_COUNTS), "n_unparsed_pro", "n_unparsed_anti")
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


def label_tables(scores: Scores, forms: Mapping[Key, Scores]) -> list[Table]:
    """Shares of the labels by kind and stance (`forms`), and by subtopic."""
    columns = (*SHARES, N)
    by_form = Table(
        "labels_by_form",
        "Labels by form",
        "",
        "Neutral is right for stereotypical hypotheses. Bias: more entailment in the pro than in the anti form.",
        (Column("form", "Hypotheses", "text"), *columns),
        tuple(
            (f"{kind}, {_STANCES[stance]}", *values(forms[kind, stance], columns))
            for kind in _FORMS
            for stance in _STANCES
            if (kind, stance) in forms
        ),
        Figure("shares", "form", tuple(column.name for column in SHARES)),
        "Labels",
    )
    of_subtopics = {**scores["by"]["subtopic"], ALL: scores}
    by_subtopic = Table(
        "labels_by_subtopic",
        "Labels by subtopic",
        "",
        "All answers, including test hypotheses. Unparsed answers count as neutral and wrong.",
        (_SUBTOPIC, *columns),
        tuple((name, *values(with_shares(group), columns)) for name, group in of_subtopics.items()),
        Figure("shares", "subtopic", tuple(column.name for column in SHARES)),
        "Labels",
    )
    return [by_form, by_subtopic]


def analyse(table: pa.Table, answers: pa.Table, scores: Scores, rules: Rules = NO_RULES) -> Analysis:
    """All tables of a BBNLI run, and a selection of its pairs."""
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
        f"{len(chosen):,} of {table.num_rows:,} examples: pairs from every stereotypical hypothesis in turn, the most "
        "biased first. They show the most biased answers, not the average."
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
