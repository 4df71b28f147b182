"""Tables of a BBNLI run: bias by subtopic, domain and hypothesis, accuracy on test hypotheses, shares of labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from qabias.benchmarks.facts import Scores
from qabias.benchmarks.grouping import Key
from qabias.benchmarks.inference.facts import PAPER
from qabias.benchmarks.inference.grouping import (
    ACCURACIES,
    READ_BIAS,
    READ_FEW,
    SHARES,
    N,
    with_shares,
)
from qabias.tables.model import ALL, Column, Figure, Table, estimate, values

_MEAN = "Mean of subtopics"
_FORMS = {"stereotypical": "stereotypical", "test": "test"}
_STANCES = {"pro": "with the stereotype", "anti": "groups exchanged"}
_SUBTOPIC = Column("subtopic", "Subtopic", "text")
_DOMAIN = Column("domain", "Domain", "text")
_BIAS = Column("bias_score", "Bias", "signed")
_BIAS_COUNTS = (
    Column("n_bias", "Answers", "count"),
    Column("n_aligned", "Agree with the stereotype", "count"),
    Column("n_opposed", "Go against it", "count"),
    Column("n_neutral", "Neutral", "count"),
    Column("n_unparsed_bias", "Unparsed", "count"),
)
_N_PREMISES = Column("n_premises", "Premises", "count")
_READ_PREMISES = "Intervals are 95 % bootstrap intervals over premises; a single premise has none."


def bias_tables(
    scores: Scores, domains: Mapping[str, str], hypotheses: Mapping[Key, Scores], ranked: Sequence[Key], table: pa.Table
) -> list[Table]:
    """Bias by subtopic, domain and hypothesis, where the run has stereotypical hypotheses.

    Args:
        scores: The metric's result, with `by` for `subtopic` and `domain`.
        domains: Domain of every subtopic.
        hypotheses: Scores by subtopic and number of the hypothesis.
        ranked: These keys, the most biased first.
        table: The examples, for the texts.
    """
    if not scores["n_bias"]:
        return []
    subtopics = {name: of for name, of in scores["by"]["subtopic"].items() if of["n_bias"]}
    columns = (_BIAS, *_BIAS_COUNTS, _N_PREMISES)
    rows = [(name, domains[name], *values(of, columns)) for name, of in subtopics.items()]
    if len(rows) > 1:
        mean = estimate(scores, "bias_score_mean_subtopics")
        rows.append((_MEAN, "", mean, *values(scores, columns)[1:]))
    by_subtopic = Table(
        "bias_by_subtopic",
        "Bias by subtopic",
        f"Tables 3 and 8 {PAPER}",
        f"Answers to stereotypical hypotheses, which no premise settles. {READ_BIAS} {_READ_PREMISES} {READ_FEW}",
        (_SUBTOPIC, _DOMAIN, *columns),
        tuple(rows),
        Figure("intervals", "subtopic", ("bias_score",)),
        "Bias",
    )
    both = (_BIAS, Column("bias_score_mean_subtopics", _MEAN, "signed"), *_BIAS_COUNTS, _N_PREMISES)
    of_domains = {**scores["by"]["domain"], ALL: scores}
    by_domain = Table(
        "bias_by_domain",
        "Bias by domain",
        f"Table 3 {PAPER}",
        f"All answers of a domain together, and the mean of its subtopics, each counting once. {READ_BIAS} "
        f"{_READ_PREMISES}",
        (_DOMAIN, *both),
        tuple((name, *values(of, both)) for name, of in of_domains.items() if of["n_bias"]),
        Figure("intervals", "domain", ("bias_score", "bias_score_mean_subtopics")),
        "Bias",
    )
    return [by_subtopic, by_domain, _bias_by_hypothesis(hypotheses, ranked, table)]


def _bias_by_hypothesis(hypotheses: Mapping[Key, Scores], ranked: Sequence[Key], table: pa.Table) -> Table:
    names = ("subtopic", "hypothesis_id", "kind", "stance", "hypothesis")
    texts: dict[Key, str] = {}
    for subtopic, number, kind, stance, text in zip(*(table[name].to_pylist() for name in names), strict=True):
        if kind == "stereotypical" and stance == "pro":
            texts.setdefault((subtopic, str(number)), text)
    columns = (_BIAS, *_BIAS_COUNTS, _N_PREMISES)
    return Table(
        "bias_by_hypothesis",
        "Bias by hypothesis",
        "",
        "Every stereotypical hypothesis with all premises of its subtopic, the most biased first; the text is its "
        f"first wording, with the stereotype. {_READ_PREMISES} A hypothesis has few premises: read it as a hint of "
        "what to look at.",
        (_SUBTOPIC, Column("hypothesis", "Hypothesis", "text"), *columns),
        tuple((key[0], texts[key], *values(hypotheses[key], columns)) for key in ranked),
        section="Bias",
    )


def accuracy_tables(scores: Scores, domains: Mapping[str, str]) -> list[Table]:
    """Accuracy on test hypotheses by subtopic, where the run has any."""
    if not scores["n_test"]:
        return []
    columns = (
        *ACCURACIES,
        Column("n_test_pro", "Answers, with the stereotype", "count"),
        Column("n_test_anti", "Answers, against it", "count"),
        _N_PREMISES,
    )
    subtopics = {name: of for name, of in scores["by"]["subtopic"].items() if of["n_test"]}
    return [
        Table(
            "test_accuracy",
            "Accuracy on test hypotheses",
            f"Table 6 {PAPER}",
            "Test hypotheses are ordinary inferences from the same premises. The difference is accuracy where the "
            "premise goes with the stereotype minus accuracy where the groups are exchanged: above 0 the model reads "
            "a text better if it agrees with the stereotype. Guessing gives about 33.3 %. The paper turns the sign "
            "round for two subtopics whose premises favour the target group; this table does not, and it has all "
            f"subtopics. {_READ_PREMISES}",
            (_SUBTOPIC, _DOMAIN, *columns),
            (
                *((name, domains[name], *values(of, columns)) for name, of in subtopics.items()),
                (ALL, "", *values(scores, columns)),
            ),
            Figure("intervals", "subtopic", ("accuracy_pro", "accuracy_anti")),
            "Accuracy",
        )
    ]


def label_tables(scores: Scores, forms: Mapping[Key, Scores]) -> list[Table]:
    """Shares of the labels by kind and stance (`forms`), and by subtopic."""
    columns = (*SHARES, N)
    by_form = Table(
        "labels_by_form",
        "Labels by form",
        "",
        "Shares of the answers. To stereotypical hypotheses neutral is always right; a bias shows where entailment is "
        "more common with the stereotype than with the groups exchanged, or contradiction less common. A model that "
        "gives one label to everything has a bias score of 0.",
        (Column("form", "Hypotheses", "text"), *columns),
        tuple(
            (f"{_FORMS[kind]}, {_STANCES[stance]}", *values(forms[kind, stance], columns))
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
        "Shares of all answers, test hypotheses included. Unparsed outputs are none of the labels; they favour nobody "
        "and are not right.",
        (_SUBTOPIC, *columns),
        tuple((name, *values(with_shares(of), columns)) for name, of in of_subtopics.items()),
        Figure("shares", "subtopic", tuple(column.name for column in SHARES)),
        "Labels",
    )
    return [by_form, by_subtopic]
