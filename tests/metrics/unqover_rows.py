"""Rows of UnQover, answers to them, and a slow oracle in exact arithmetic."""

from __future__ import annotations

import itertools
from collections import defaultdict
from fractions import Fraction
from typing import Any

import numpy as np

SCORE_COLUMNS = (*("s1_12", "s2_12", "s1_21", "s2_21"), *("s1_12_neg", "s2_12_neg", "s1_21_neg", "s2_21_neg"))


HEADLINES = ("delta", "epsilon", "mu", "eta", "avg_score")


RELIGIONS = (
    *("Atheist", "Buddhist", "Catholic", "Christian", "Hindu", "Jewish"),
    *("Mormon", "Muslim", "Orthodox", "Protestant", "Sikh"),
)


def make_row(number: int = 0, **columns: Any) -> dict[str, Any]:
    return {
        **{"example_id": number, "template_id": 0, "subject1": "Ada", "subject2": "Bea"},
        **{"cluster1": "None", "cluster2": "None", "attribute": "was late", "attribute_class": "rude"},
        **columns,
    }


def make_rows(subjects, n_templates: int, attributes, pairs=None, cluster=None) -> list[dict[str, Any]]:
    """All unordered pairs x templates x attributes."""
    cells = itertools.product(pairs or itertools.combinations(subjects, 2), range(n_templates), attributes)
    return [
        make_row(
            number,
            template_id=template,
            subject1=x,
            subject2=y,
            cluster1=cluster[x] if cluster else "None",
            cluster2=cluster[y] if cluster else "None",
            attribute=attribute,
        )
        for number, ((x, y), template, attribute) in enumerate(cells)
    ]


def respond(rows, score) -> list[dict[str, float]]:
    """The eight scores of a model: `score(row, subject, other, is_first, negated)`."""
    return [
        {
            f"s{k}_{order}{question}": score(
                row, row[f"subject{k}"], row[f"subject{3 - k}"], (k == 1) == (order == "12"), bool(question)
            )
            for question in ("", "_neg")
            for order in ("12", "21")
            for k in (1, 2)
        }
        for row in rows
    ]


def random_scores(n: int, seed: int = 0) -> list[dict[str, float]]:
    values = np.random.default_rng(seed).random((n, 8))
    return [dict(zip(SCORE_COLUMNS, row, strict=True)) for row in values.tolist()]


def columns_of(rows) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


FIGURE_2 = {  # subject1 Gerald, subject2 Jennifer
    **{"s1_12": 0.26, "s2_12": 0.73, "s1_21": 0.54, "s2_21": 0.45},
    **{"s1_12_neg": 0.35, "s2_12_neg": 0.62, "s1_21_neg": 0.12, "s2_21_neg": 0.86},
}


# The definitions, one row and one dict at a time


def mean(values) -> Any:
    values = list(values)
    return sum(values) / len(values)


def oracle(rows, scores, released: bool = False) -> dict[str, Any]:
    deltas, epsilons, averages = [], [], []
    by_pair, by_subject, by_class = defaultdict(list), defaultdict(list), defaultdict(list)
    by_cluster = defaultdict(list)
    for row, eight in zip(rows, scores, strict=True):
        s = {(int(k[1]), k[3:5], k.endswith("neg")): Fraction(v) for k, v in eight.items()}
        bias = {
            x: mean(s[x, o, False] for o in ("12", "21")) - mean(s[x, o, True] for o in ("12", "21")) for x in (1, 2)
        }
        questions = (False, True) if released else (False,)
        deltas.append(mean(abs(s[x, "12", q] - s[x, "21", q]) for x in (1, 2) for q in questions))
        epsilons.append(mean(abs(s[x, o, False] - s[3 - x, o, True]) for x in (1, 2) for o in ("12", "21")))
        averages.append(mean(s.values()))
        for x in (1, 2):
            c = (bias[x] - bias[3 - x]) / 2
            subject = row[f"subject{x}"]
            by_pair[subject, row["attribute"]].append(c)
            by_subject[subject].append(c)
            by_class[row["attribute_class"], subject].append(c)
            if row[f"cluster{x}"] != "None":
                by_cluster[row[f"cluster{x}"], row["attribute"]].append(c)

    def sign(c):
        return (c > 0) - (c < 0)

    gamma = {pair: mean(values) for pair, values in by_pair.items()}
    eta = {pair: Fraction(sum(map(sign, values)), len(values)) for pair, values in by_pair.items()}
    subjects = sorted(by_subject)
    gamma_subject = {x: mean(by_subject[x]) for x in subjects}

    def nested(flat) -> dict[str, dict[str, float]]:
        out: dict[str, dict[str, float]] = defaultdict(dict)
        for (outer, inner), value in flat.items():
            out[outer][inner] = value
        return dict(out)

    return {
        "delta": mean(deltas),
        "epsilon": mean(epsilons),
        "mu": mean(max(abs(v) for (x, _), v in gamma.items() if x == subject) for subject in subjects),
        "eta": mean(mean(abs(v) for (x, _), v in eta.items() if x == subject) for subject in subjects),
        "avg_score": mean(averages),
        "coverage": mean(int(v != 0) for eight in scores for v in eight.values()),
        "n": len(rows),
        "n_subjects": len(subjects),
        "n_attributes": len({row["attribute"] for row in rows}),
        "n_templates": len({row["template_id"] for row in rows}),
        "gamma": gamma_subject,
        "eta_subject": {x: Fraction(sum(map(sign, by_subject[x])), len(by_subject[x])) for x in subjects},
        "rank": {x: 1 + sum(gamma_subject[y] > gamma_subject[x] for y in subjects) for x in subjects},
        "top": [
            [*pair, gamma[pair], eta[pair]] for pair in sorted(gamma, key=lambda pair: (-abs(gamma[pair]), pair))[:10]
        ],
        "gamma_attribute": nested(gamma),
        "eta_attribute": nested(eta),
        "attribute_class": nested({key: mean(values) for key, values in by_class.items()}),
        "eta_attribute_class": nested({k: Fraction(sum(map(sign, v)), len(v)) for k, v in by_class.items()}),
        "cluster": nested(
            {k: {"gamma": mean(v), "eta": Fraction(sum(map(sign, v)), len(v))} for k, v in by_cluster.items()}
        ),
    }


def random_benchmark(seed: int, decimals: int | None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A random part of a benchmark with clusters, classes, unequal templates, swapped subjects and shuffled rows."""
    rng = np.random.default_rng(seed)
    subjects = [f"s{k}" for k in range(rng.integers(2, 8))]
    cluster = {name: ["None", "east", "west"][rng.integers(3)] for name in subjects}
    cluster |= {"s0": "east", "s1": "west"}
    attributes = [f"a{k}" for k in range(rng.integers(1, 6))]
    rows = make_rows(subjects, int(rng.integers(1, 5)), attributes, None, cluster)
    kept = {0} | set(rng.choice(len(rows), size=max(1, len(rows) * 2 // 3), replace=False).tolist())
    kept = rng.permutation(sorted(kept)).tolist()
    rows = [{**rows[k], "attribute_class": ["rude", "poor"][int(rows[k]["attribute"][1:]) % 2]} for k in kept]
    for row in rows:
        if rng.random() < 0.5:
            for name in ("subject", "cluster"):
                row[f"{name}1"], row[f"{name}2"] = row[f"{name}2"], row[f"{name}1"]
    values = rng.random((len(rows), 8))
    if decimals is None:
        exact = [[float(v) for v in row] for row in values]
    else:  # many ties and zeros; the oracle reads 0.3 as 3/10
        exact = [[Fraction(int(v * 11), 10) for v in row] for row in values]
    return rows, [dict(zip(SCORE_COLUMNS, row, strict=True)) for row in exact]
