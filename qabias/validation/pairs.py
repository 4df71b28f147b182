"""Pairs of sentences that people label: what they are shown, and how well their labels agree.

The procedure is that of Akyurek et al. (2022, section 2.2.1): two annotators label a fifth of the pairs of premise and
hypothesis, before words are exchanged for others, as entailment, contradiction or neutral. If they agree, one of them
labels the rest, and pairs whose label is not the right one are talked over.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from qabias.errors import QabiasError
from qabias.validation.items import chosen, draw
from qabias.validation.ratings import Rating, alpha, ratio

KIND = "pair"
"""The kind of such an item in the key, by which ratings of pairs are told from those of questions."""

# What the paper's two annotators reached, to compare with.
PUBLISHED_ALPHA = 0.96

SHOWN = ("item_id", "premise", "hypothesis", "ans0", "ans1", "ans2")


@dataclass(frozen=True)
class PairItem:
    """A pair as raters see it, and what the key knows of it."""

    item_id: str
    premise: str
    hypothesis: str
    ans0: str
    ans1: str
    ans2: str
    label: int
    kind: str
    template_id: str
    condition: str
    source_id: str


def draw_pairs(
    table: pa.Table,
    answers: Sequence[str],
    share: float,
    seed: int = 0,
    n_pairs: int | None = None,
    only: Sequence[str] = (),
) -> list[PairItem]:
    """Draw pairs at random, in random order."""
    pairs = chosen(table, only).to_pylist()
    n = max(1, round(share * len(pairs))) if n_pairs is None else n_pairs
    drawn = draw(pairs, n, np.random.default_rng(seed))
    ans0, ans1, ans2 = answers
    return [
        PairItem(item_id=f"item-{place:05d}", kind=KIND, ans0=ans0, ans1=ans1, ans2=ans2, **pair)
        for place, pair in enumerate(drawn, start=1)
    ]


def are_pairs(key: Mapping[str, Mapping[str, str]]) -> bool:
    """Whether a key is one of pairs."""
    kinds = {row["kind"] == KIND for row in key.values()}
    if len(kinds) > 1:
        raise QabiasError("the key holds pairs and questions; score each by the key of its own export")
    return kinds == {True}


def score_pairs(ratings: Sequence[Rating], key: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """How well annotators agree with each other and with the right labels."""
    by_item: dict[str, dict[str, int]] = defaultdict(dict)
    for rating in ratings:
        by_item[rating.item_id][rating.annotator] = rating.answer
    shared = [list(given.values()) for given in by_item.values() if len(given) > 1]
    return {
        "n_pairs": len(key),
        "n_rated": len(by_item),
        "n_shared": len(shared),
        "alpha": alpha(shared),
        "agreement": ratio(sum(len(set(given)) == 1 for given in shared), len(shared)),
        "annotators": {
            name: _accuracy_of([rating for rating in ratings if rating.annotator == name], key)
            for name in sorted({rating.annotator for rating in ratings})
        },
        "to_discuss": {
            item_id: {"source_id": key[item_id]["source_id"], "label": int(key[item_id]["label"]), "answers": given}
            for item_id, given in sorted(by_item.items())
            if set(given.values()) != {int(key[item_id]["label"])}
        },
    }


def _accuracy_of(ratings: Sequence[Rating], key: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """The accuracy of one annotator, of all pairs and by what they are."""

    def by(column: str) -> dict[str, Any]:
        groups: dict[str, list[bool]] = defaultdict(list)
        for rating in ratings:
            groups[key[rating.item_id][column]].append(_is_right(rating, key))
        return {name: _share(groups[name]) for name in sorted(groups)}

    whole = _share([_is_right(rating, key) for rating in ratings])
    return {**whole, "by_kind": by("condition"), "by_subtopic": by("template_id")}


def _is_right(rating: Rating, key: Mapping[str, Mapping[str, str]]) -> bool:
    return rating.answer == int(key[rating.item_id]["label"])


def _share(right: Sequence[bool]) -> dict[str, Any]:
    return {"n": len(right), "accuracy": ratio(sum(right), len(right))}
