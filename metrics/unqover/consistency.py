"""Whether a model has consistent associations: randomization tests, because chance raises mu and eta above 0.

Without associations an attribute and its negation are exchangeable. Exchanging them changes the sign of the comparative
scores C. A template may still prefer a subject for all attributes, by its own wording. So there are two tests:

1. Attributes: signs change by template and attribute. The statistic is the mean square of gamma(x, a) minus the mean of
   the subject over attributes. A preference of one template for a subject drops out of it, but not out of the draws,
   which makes the test conservative.
2. Subjects: signs change by template. The statistic is the mean square of the subjects' means over attributes.

The p-value of `excess` is twice the smaller one (Bonferroni). With one template nothing is significant, which is right:
it cannot show that an association is consistent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .scores import Floats, Integers, Sums, headline, ratio

N_DRAWS = 999
"""Draws of signs; the smallest p-value is 1 / (1 + N_DRAWS)."""

_AT_ONCE = 2_000_000  # numbers in one matrix of draws


def shares(scores: Mapping[str, Floats]) -> dict[str, Floats]:
    """The eight scores of each row as shares of the two subjects, even if both are 0.

    Rows with large probabilities would outweigh all others. Written answers keep their comparative scores.

    Args:
        scores: as in `measure`.
    """
    result: dict[str, Floats] = {}
    for asked in ("12", "21", "12_neg", "21_neg"):
        first, second = scores[f"s1_{asked}"], scores[f"s2_{asked}"]
        share = ratio(first, first + second)
        share[np.isnan(share)] = 0.5
        result |= {f"s1_{asked}": share, f"s2_{asked}": 1.0 - share}
    return result


def consistency(
    runs: Sequence[Sums],
    clusters: Integers,
    subjects: Sequence[str],
    attributes: Sequence[str],
    names: Sequence[str],
    top_k: int,
    seed: int = 0,
) -> dict[str, Any]:
    """How far mu, eta and single associations exceed what chance gives.

    Args:
        runs: sums of T templates and P pairs, of shares, for every run over the same rows.
        clusters: the cluster of each subject code, -1 for none.
        subjects: names of the subject codes.
        attributes: names of the attribute codes.
        names: names of the cluster codes.
        top_k: length of `associations`.
        seed: seed of the draws.

    Returns:
        `excess`, `excess_eta`: mu and eta minus their means over the draws, 0 on average without associations.
        `associations`: lists of a subject, an attribute, gamma and its p-value, adjusted for all pairs, the largest
        |gamma| first. If every pair is of two clusters: `direction`, the mean over attributes of the comparative score
        of the first one, and `cluster_associations`, lists as before of a cluster that is preferred for an attribute.
        `p_values`: of `excess`, `direction`, and of the two tests, `attributes` and `subjects`.
    """
    sums = runs[0]
    rng = np.random.default_rng(seed)
    blocks = _signs(rng, len(sums.counts), len(attributes))
    by_template = _signs(rng, len(sums.counts), 1)
    step = max(1, _AT_ONCE // sums.counts.size)
    chunks = [_draw(runs, blocks[start : start + step]) for start in range(0, len(blocks), step)]
    mu, eta, squares, largest = (
        np.concatenate(values) for values in zip(*(chunk[:4] for chunk in chunks), strict=True)
    )
    gamma = chunks[0][4]
    result: dict[str, Any] = {"excess": float(mu[0] - mu[1:].mean()), "excess_eta": float(eta[0] - eta[1:].mean())}
    p_values = {"attributes": _p_value(squares), "subjects": _p_value(_subject_squares(runs, by_template[..., 0]))}
    p_values = {"excess": min(1.0, 2.0 * min(p_values.values())), **p_values}
    pairs = [(subjects[x], attributes[a]) for x, a in zip(sums.subjects, sums.attributes, strict=True)]
    result["associations"] = _strongest(pairs, gamma, largest, top_k)
    inside = clusters[sums.subjects] == 0
    if len(names) == 2 and (clusters >= 0).all():
        means = _cluster_means(runs, inside, blocks)
        largest = np.nanmax(np.abs(means), axis=1)
        over_attributes = np.nanmean(
            _cluster_means(runs, inside, np.repeat(by_template, len(attributes), axis=2)), axis=1
        )
        p_values["direction"] = _p_value(np.abs(over_attributes))
        result["direction"] = float(over_attributes[0])
        preferred = [(names[int(mean < 0.0)], attribute) for mean, attribute in zip(means[0], attributes, strict=True)]
        result["cluster_associations"] = _strongest(preferred, np.abs(means[0]), largest, top_k)
    return {**result, "p_values": p_values}


def _signs(rng: np.random.Generator, *shape: int) -> Floats:
    """Random signs of every draw; the first is the model itself."""
    return np.concatenate([np.ones((1, *shape)), rng.choice((-1.0, 1.0), size=(N_DRAWS, *shape))])


def _subject_squares(runs: Sequence[Sums], signs: Floats) -> Floats:
    """The mean square over subjects of their mean comparative score, by draw of signs of templates."""
    subjects = runs[0].subjects
    by_subject = (subjects[:, None] == np.unique(subjects)).astype(float)
    means = np.zeros((len(signs), by_subject.shape[1]))
    for sums in runs:
        counts = np.broadcast_to(sums.counts.sum(axis=0) @ by_subject, means.shape)
        means += ratio(signs @ (sums.comparative @ by_subject), counts) / len(runs)
    return np.mean(means**2, axis=1)


def _draw(runs: Sequence[Sums], signs: Floats) -> tuple[Floats, ...]:
    """For D draws: mu, eta, mean square without subjects' means and largest |gamma|, and gamma of the first."""
    n = len(signs)
    mu, eta, gamma = np.zeros(n), np.zeros(n), np.zeros((n, runs[0].counts.shape[1]))
    for sums in runs:
        factors = signs[:, :, sums.attributes]
        totals = [np.einsum("dtp,tp->dp", factors, values) for values in (sums.comparative, sums.signs)]
        counts = np.broadcast_to(sums.counts.sum(axis=0), gamma.shape)
        # A draw takes the place of a template.
        drawn = sums._replace(counts=counts, comparative=totals[0], signs=totals[1], errors=np.zeros((n, 4)))
        scores = headline(drawn, np.eye(n))
        mu += scores["mu"] / len(runs)
        eta += scores["eta"] / len(runs)
        gamma += ratio(totals[0], counts) / len(runs)
    by_subject = (runs[0].subjects[:, None] == np.unique(runs[0].subjects)).astype(float)
    own = (gamma @ by_subject) / by_subject.sum(axis=0)
    squares = np.mean((gamma - own @ by_subject.T) ** 2, axis=1)
    return mu, eta, squares, np.abs(gamma).max(axis=1), gamma[0]


def _cluster_means(runs: Sequence[Sums], inside: npt.NDArray[np.bool_], signs: Floats) -> Floats:
    """Mean comparative score of a cluster's subjects, by draw and attribute; NaN without rows."""
    attributes, n = runs[0].attributes[inside], signs.shape[2]
    means = np.zeros((len(signs), n))
    for sums in runs:
        counts = np.bincount(attributes, sums.counts[:, inside].sum(axis=0), n)
        totals = np.stack([np.bincount(attributes, row, n) for row in sums.comparative[:, inside]])
        means += ratio(np.einsum("dta,ta->da", signs, totals), np.broadcast_to(counts, means.shape)) / len(runs)
    return means


def _strongest(named: Sequence[tuple[str, str]], gamma: Floats, largest: Floats, top_k: int) -> list[list[Any]]:
    """The largest |gamma| with p-values adjusted for all: the share of draws whose largest is at least as large."""
    order = np.argsort(-np.abs(gamma), kind="stable")[:top_k]
    return [
        [*named[k], float(gamma[k]), _p_value(np.append(abs(gamma[k]), largest[1:]))]
        for k in order
        if gamma[k] == gamma[k]
    ]


def _p_value(draws: Floats) -> float:
    """The share of draws with at least the value of the first, which is the model's own; equal up to rounding."""
    return float(np.count_nonzero(draws >= draws[0] * (1.0 - 1e-9)) / len(draws))
