"""Whether figures are right: equal to a reference in a wider type, and equal whatever the batches.

This file imports torch.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from qabias.devices import loops, questions
from qabias.devices.bounds import bound
from qabias.devices.cases import Case
from qabias.devices.device import Device
from qabias.devices.outcome import FAILS, HOLDS, Outcome
from qabias.devices.subjects import answers, questions_of
from qabias.models.loading import LoadedModel

FEW_QUESTIONS = 8
"""Questions whose figures are held against the reference."""

FEWER_QUESTIONS = 3
"""The same for large shapes."""

SMALL_BUDGET = 64
"""Tokens of a batch in the second asking: few, so that batches are other ones."""

FLOAT64, FLOAT32 = "float64 on the CPU", "float32 on the device"


@dataclass(frozen=True)
class Reference:
    """What a plain loop over a wider model answers, one row at a time."""

    where: str
    items: Any
    found: Sequence[Any]
    units: np.ndarray
    largest: float


def make_reference(case: Case, loaded: LoadedModel, device: Device, where: str, n_questions: int) -> Reference:
    """Ask the same model in a wider type, one row at a time and without pads, trees or batches."""
    items = questions.take(questions_of(case.way), n_questions)
    wider, place = (torch.float64, "cpu") if where == FLOAT64 else (torch.float32, device.torch_device)
    model = copy.deepcopy(loaded.model).to(device=place, dtype=wider)
    loop = loops.make_loop(case.way, loaded.tokenizer, items)
    found = loops.run(loop, model, place, 1)
    figures = np.array([0.0]) if case.way.writes else _by_unit(np.array(found, dtype=np.float64).ravel(), loop.units)
    return Reference(where, items, found, loop.units, bound(case.dtype, case.shape.layers, figures))


def equality(case: Case, reference: Reference, scorer: Any, loaded: LoadedModel, device: Device) -> Outcome:
    """Hold a scorer's figures against the reference, and beside them those of a plain loop in its own precision."""
    ours = answers(scorer, case.way, reference.items)
    loop = loops.make_loop(case.way, loaded.tokenizer, reference.items)
    plain = loops.run(loop, loaded.model, device.torch_device, 1)
    as_plain = [one.text() for one in plain] if case.way.writes else np.array(plain, dtype=np.float64).ravel()
    return _judged(
        reference,
        _difference(case, reference, ours),
        {
            "reference": reference.where,
            "plain_difference": _difference(case, reference, as_plain),
            "spread": _spread(case, reference),
            "layout": getattr(scorer, "layout", "") if case.way.way == "options" else "",
        },
    )


def invariance(case: Case, reference: Reference, scorer: Any, other: Any) -> Outcome:
    """Hold the figures of two token budgets against each other; of texts, each against the reference."""
    ours = answers(scorer, case.way, reference.items)
    again = answers(other, case.way, reference.items)
    figures: dict[str, Any] = {"token_budgets": ["default", SMALL_BUDGET]}
    if case.way.writes:
        figures["equal_texts"] = sum(map(str.__eq__, ours, again)) / len(ours)
        return _judged(reference, max(_difference(case, reference, texts) for texts in (ours, again)), figures)
    return _judged(reference, _largest(_by_unit(ours, reference.units), _by_unit(again, reference.units)), figures)


def _judged(reference: Reference, difference: float, figures: dict[str, Any]) -> Outcome:
    common = {"questions": questions.count(reference.items), "difference": difference, "bound": reference.largest}
    if difference <= reference.largest:
        return Outcome(HOLDS, figures=common | figures)
    why = f"the largest difference is {difference:.1e}, and at most {reference.largest:.1e} is rounding"
    return Outcome(FAILS, why, common | figures)


def _difference(case: Case, reference: Reference, ours: Any) -> float:
    """Largest difference to the reference; infinite where one has a figure and the other has none."""
    if case.way.writes:
        return max(one.parts_from(text) for one, text in zip(reference.found, ours, strict=True))
    expected = np.array(reference.found, dtype=np.float64).ravel()
    return _largest(_by_unit(ours, reference.units), _by_unit(expected, reference.units))


def _largest(first: np.ndarray, second: np.ndarray) -> float:
    known = ~np.isnan(second)
    if first.shape != second.shape or not np.array_equal(~np.isnan(first), known) or not known.any():
        return float("inf")
    return float(np.abs(first - second)[known].max())


def _by_unit(figures: np.ndarray, units: np.ndarray) -> np.ndarray:
    return figures / units if len(figures) == len(units) else figures


def _spread(case: Case, reference: Reference) -> float | None:
    """Standard deviation of the figures, against which the bound is small where equality says much."""
    if case.way.writes:
        return None
    return float(np.nanstd(_by_unit(np.array(reference.found, dtype=np.float64).ravel(), reference.units)))
