"""How far a scorer's figures are from a reference, and from its own in other batches.

Figures are logarithms: log-likelihoods by scored token, and logarithms of probabilities. The bound is

    SAFETY x u x sqrt(2 x layers + 2) x size

u is the unit roundoff of the precision, half the distance of 1 to the next number. Each layer adds two rounded sums to
the states, attention and feed-forward; the embeddings and the output layer are two more. Rounding errors of several
sums are nearly independent, so that they grow with the square root of their number (Higham and Mary, "A new approach to
probabilistic rounding error analysis", SIAM Journal on Scientific Computing 41, 2019). The size is that of what is
rounded: logits of the shapes here are of size 1, and a logarithm of the vocabulary is subtracted in float32, so that
its own rounding counts too. `SAFETY` is for what is left out: several roundings inside a layer, and the largest of many
figures rather than a usual one. On CPUs the largest difference of the shapes here was about a third of the bound.

This file imports torch.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from qabias.devices import loops, questions
from qabias.devices.cases import Case, answers, questions_of
from qabias.models.loading import LoadedModel

HOLDS, FAILS, MEASURED, NOT_MEASURED = "holds", "fails", "measured", "not measured"

QUESTIONS, QUESTIONS_OF_LARGE = 8, 3
"""Questions whose figures are compared with the reference; fewer of a large model."""

LARGE = 400e6
"""Parameters from which a model is large: its reference is computed on the device in float32."""

SMALL_BUDGET = 64
"""Tokens of a batch in the second asking: few, so that batches are other ones."""

UNIT_ROUNDOFF = {"float32": 2.0**-24, "bfloat16": 2.0**-8 / 2, "float16": 2.0**-11}
SAFETY = 16.0


@dataclass(frozen=True)
class Outcome:
    """The result of one measure: `holds`, `fails`, `measured` or `not measured`."""

    state: str
    why: str = ""
    figures: Mapping[str, Any] = field(default_factory=dict)


def bound(dtype: str, layers: int, reference: np.ndarray) -> float:
    """Largest difference of a figure to the reference."""
    rounding = UNIT_ROUNDOFF[dtype] * math.sqrt(2 * layers + 2)
    # Logarithms are taken in float32 whatever the precision of the model.
    logarithm = UNIT_ROUNDOFF["float32"] * float(np.nanmax(np.abs(reference), initial=1.0))
    return SAFETY * (rounding + logarithm)


class Correctness:
    """Compares the figures of one case."""

    def __init__(self, case: Case, loaded: LoadedModel, scorer: Any) -> None:
        is_large = case.shape.parameters > LARGE
        self._case = case
        self._items = questions.take(questions_of(case.way), QUESTIONS_OF_LARGE if is_large else QUESTIONS)
        wider: dict[str, Any] = {"dtype": torch.float32} if is_large else {"dtype": torch.float64, "device": "cpu"}
        self._where = "float32 on the device" if is_large else "float64 on the CPU"
        model = copy.deepcopy(loaded.model).to(**wider)
        self._reference = loops.run(case.way, loaded.tokenizer, self._items, model)
        self._bound = bound(case.dtype, case.shape.layers, self._reference.figures)
        self._answers = answers(scorer, case.way, self._items)

    def equality(self) -> Outcome:
        """Compare a scorer with the reference."""
        return self._judged(self._difference(self._answers), {"reference": self._where})

    def invariance(self, other: Any) -> Outcome:
        """Compare the figures of two token budgets; texts are compared with the reference."""
        again = answers(other, self._case.way, self._items)
        if self._case.way.writes:
            equal = sum(map(str.__eq__, self._answers, again)) / len(again)
            return self._judged(max(map(self._difference, (self._answers, again))), {"equal_texts": equal})
        return self._judged(_largest(self._by_token(self._answers), self._by_token(again)), {})

    def _difference(self, ours: Any) -> float:
        """Largest difference to the reference; of texts the margin at the place where they part."""
        if self._case.way.writes:
            return max(one.parts_from(text) for one, text in zip(self._reference.written, ours, strict=True))
        return _largest(self._by_token(ours), self._reference.figures)

    def _by_token(self, figures: np.ndarray) -> np.ndarray:
        units = self._reference.units
        return figures / units if len(figures) == len(units) else figures

    def _judged(self, difference: float, figures: dict[str, Any]) -> Outcome:
        common = {"questions": questions.count(self._items), "difference": difference, "bound": self._bound}
        if difference <= self._bound:
            return Outcome(HOLDS, figures=common | figures)
        why = f"the largest difference is {difference:.1e}, and at most {self._bound:.1e} is rounding"
        return Outcome(FAILS, why, common | figures)


def _largest(first: np.ndarray, second: np.ndarray) -> float:
    """Largest difference; infinite where one has a figure and the other has none."""
    known = ~np.isnan(second)
    if first.shape != second.shape or not np.array_equal(~np.isnan(first), known) or not known.any():
        return float("inf")
    return float(np.abs(first - second)[known].max())
