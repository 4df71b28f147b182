"""Speed of a scorer: tokens per second of its model, including padding."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch

from lab.devices import questions
from lab.devices.cases import Case, answers, questions_of
from lab.devices.correct import MEASURED, Outcome

SECONDS = 2.0
"""Seconds of a timed measurement."""

PILOT_QUESTIONS = 16
"""Questions that warm the device up and estimate the number that fits the time."""

TURNS = 2
"""Number of timings; the fastest counts."""


class Call(NamedTuple):
    """One outer call of the model, or of a part of it."""

    rows: int
    length: int

    @property
    def tokens(self) -> int:
        """Tokens of the batch, including padding."""
        return self.rows * self.length


def seconds_of(run: Callable[[], object], device: torch.device) -> float:
    """Seconds until the device has finished a call."""
    synchronize = (lambda: None) if device.type == "cpu" else getattr(torch, device.type).synchronize
    synchronize()
    started = time.perf_counter()
    run()
    synchronize()
    return time.perf_counter() - started


def speed(case: Case, scorer: Any, model: Any) -> Outcome:
    """Time a scorer on as many questions as fit into `SECONDS`."""
    everything = questions_of(case.way)

    def ask(items: Any) -> Callable[[], Any]:
        return lambda: answers(scorer, case.way, items)

    pilot = questions.take(everything, PILOT_QUESTIONS)
    ask(pilot)()  # warms it up
    each = seconds_of(ask(pilot), model.device) / questions.count(pilot)
    items = questions.take(everything, max(PILOT_QUESTIONS, math.ceil(SECONDS / each)))
    seconds = min(seconds_of(ask(items), model.device) for _ in range(TURNS))
    with watched(model) as calls:
        ask(items)()
    tokens = sum(call.tokens for call in calls)
    return Outcome(
        MEASURED,
        figures={
            "questions": questions.count(items),
            "seconds": seconds,
            "questions_per_second": questions.count(items) / seconds,
            "batches": len(calls),
            "tokens": tokens,
            "tokens_per_second": tokens / seconds,
            "layout": getattr(scorer, "layout", "") if case.way.way == "options" else "",
        },
    )


@contextmanager
def watched(model: Any) -> Iterator[list[Call]]:
    """Collect the calls with tokens of a model: of its body, its encoder and decoder, or all of it."""
    calls: list[Call] = []
    depth = 0

    def enter(module: Any, positional: Any, named: Any) -> None:
        nonlocal depth
        tokens = named.get("decoder_input_ids") if named.get("encoder_outputs") is not None else named.get("input_ids")
        if depth == 0 and tokens is not None:
            length = tokens.shape[-1]  # multiple choice has three dimensions
            calls.append(Call(tokens.numel() // length, length))
        depth += 1

    def leave(*_: Any) -> None:
        nonlocal depth
        depth -= 1

    parts = [model, model.base_model]
    if model.config.is_encoder_decoder:
        parts += [model.get_encoder(), model.get_decoder()]
    handles = []
    for module in {id(part): part for part in parts}.values():
        handles.append(module.register_forward_pre_hook(enter, with_kwargs=True))
        # Also after a failed call, e.g. out of memory.
        handles.append(module.register_forward_hook(leave, always_call=True))
    try:
        yield calls
    finally:
        for handle in handles:
            handle.remove()
