"""Whether a model has consistent associations: a randomization test, because chance raises mu and eta above 0.

Without associations an attribute and its negation are exchangeable. Exchanging them in a template changes the sign of
the comparative scores of its rows with this attribute. So the sums of a template and attribute get random signs, and
every statistic is compared with its values under many draws (Westfall and Young 1993 for single associations).
Preferences that change from template to template are chance here. One template alone cannot show an association.

The p-value of mu is that of the mean of gamma squared: it compares every template with every other one, and detects
more than mu itself.
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
        `p_values`: of the three scores.
    """
    sums = runs[0]
    rng = np.random.default_rng(seed)
    signs = rng.choice((-1.0, 1.0), size=(N_DRAWS, len(sums.counts), len(attributes)))
    signs = np.concatenate([np.ones((1, *signs.shape[1:])), signs])  # the first draw is the model itself
    step = max(1, _AT_ONCE // sums.counts.size)
    chunks = [_draw(runs, signs[start : start + step]) for start in range(0, len(signs), step)]
    mu, eta, squares, largest = (
        np.concatenate(values) for values in zip(*(chunk[:4] for chunk in chunks), strict=True)
    )
    gamma = chunks[0][4]
    result: dict[str, Any] = {"excess": float(mu[0] - mu[1:].mean()), "excess_eta": float(eta[0] - eta[1:].mean())}
    p_values = {"excess": _p_value(squares), "excess_eta": _p_value(eta)}
    pairs = [(subjects[x], attributes[a]) for x, a in zip(sums.subjects, sums.attributes, strict=True)]
    result["associations"] = _strongest(pairs, gamma, largest, top_k)
    inside = clusters[sums.subjects] == 0
    if len(names) == 2 and (clusters >= 0).all():
        means = _cluster_means(runs, inside, signs)
        direction, largest = np.nanmean(means, axis=1), np.nanmax(np.abs(means), axis=1)
        p_values["direction"] = _p_value(np.abs(direction))
        result["direction"] = float(direction[0])
        preferred = [(names[int(mean < 0.0)], attribute) for mean, attribute in zip(means[0], attributes, strict=True)]
        result["cluster_associations"] = _strongest(preferred, np.abs(means[0]), largest, top_k)
    return {**result, "p_values": p_values}


def _draw(runs: Sequence[Sums], signs: Floats) -> tuple[Floats, ...]:
    """For D draws: mu, eta, mean squared gamma and largest |gamma|, and gamma of the first; means over the runs."""
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
    return mu, eta, np.mean(gamma**2, axis=1), np.abs(gamma).max(axis=1), gamma[0]


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
