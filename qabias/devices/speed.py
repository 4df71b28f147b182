"""How fast a scorer is, beside what its model, its device and a plain loop can do.

This file imports torch.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from typing import Any

import torch

from qabias.devices import loops, questions
from qabias.devices.cases import Case
from qabias.devices.device import Device
from qabias.devices.outcome import MEASURED, Outcome, not_measured
from qabias.devices.subjects import answers, questions_of
from qabias.devices.watching import Call, watched
from qabias.models.loading import LoadedModel
from qabias.scorers.batches import is_out_of_memory

PILOT_QUESTIONS = 16
"""Questions that warm the device up and tell how many fit into the time."""

LOOP_ROWS = (8, 32, 128)
"""Rows of a plain loop's batch, of which the fastest is taken."""

TURNS = 2
"""Times that everything is timed; the fastest counts."""

DENSE_BATCHES = 3

PEER_SHARE = 3
"""How many times longer than the scorer a plain loop may take; both are timed on fewer questions where it would."""


class Speed:
    """Times one scorer."""

    def __init__(self, case: Case, loaded: LoadedModel, device: Device, scorer: Any, seconds: float) -> None:
        self._case, self._loaded, self._device, self._scorer = case, loaded, device, scorer
        everything = questions_of(case.way)
        pilot = questions.take(everything, PILOT_QUESTIONS)
        self._ask(pilot)  # warms it up
        each = device.seconds(lambda: self._ask(pilot)) / questions.count(pilot)
        n_items = min(questions.count(everything), max(PILOT_QUESTIONS, math.ceil(seconds / each)))
        self.items = questions.take(everything, n_items)
        self._wanted, self.seconds = seconds, math.inf

    def _ask(self, items: Any) -> Any:
        return answers(self._scorer, self._case.way, items)

    def measure(self, peak_rate: float | None) -> Outcome:
        """Time the scorer, then its model alone on as many tokens."""
        device, model = self._device, self._loaded.model
        self.seconds = min(device.seconds(lambda: self._ask(self.items)) for _ in range(TURNS))
        device.reset_peak()
        with watched(model, device) as seen:
            elapsed = device.seconds(lambda: self._ask(self.items))
        batches = seen.batches
        if not batches:
            return not_measured("the scorer does not call its model where that can be seen")
        tokens = sum(call.tokens for call in batches)
        rate = tokens / self.seconds
        dense = None if self._case.way.writes else self._dense_rate(batches)
        work = sum(operations(model, call) for call in batches) / self.seconds
        return Outcome(
            MEASURED,
            figures={
                "questions": questions.count(self.items),
                "seconds": self.seconds,
                "questions_per_second": questions.count(self.items) / self.seconds,
                "batches": len(batches),
                "tokens": tokens,
                "tokens_per_second": rate,
                "dense_tokens_per_second": dense,
                "share_of_dense": None if dense is None else rate / dense,
                "operations_per_second": work,
                "share_of_peak": None if peak_rate is None else work / peak_rate,
                "share_outside_model": max(0.0, 1 - seen.seconds / elapsed),
                "peak_memory_bytes": device.peak_memory(),
                "layout": getattr(self._scorer, "layout", "") if self._case.way.way == "options" else "",
            },
        )

    def _dense_rate(self, batches: Sequence[Call]) -> float:
        """Tokens a second of the model's body alone, in full rectangles without mask of the size that was asked."""
        reading = [call for call in batches if call.looked_at is None]
        writing = [call for call in batches if call.looked_at is not None]
        seconds = sum(self._dense_seconds(calls) for calls in (reading, writing) if calls)
        return sum(call.tokens for call in batches) / seconds

    def _dense_seconds(self, calls: Sequence[Call]) -> float:
        """Seconds for the tokens of some calls, from a few rectangles with as many tokens as the largest of them."""
        tokens = sum(call.tokens for call in calls)
        length = max(1, round(tokens / sum(call.rows for call in calls)))
        rows = max(1, max(call.tokens for call in calls) // length)
        looked_at = calls[0].looked_at
        if looked_at is not None:
            looked_at = round(sum(call.tokens * (call.looked_at or 0) for call in calls) / tokens)
        n_batches = min(DENSE_BATCHES, max(1, tokens // (rows * length)))
        run = _dense(self._loaded.model, self._device, rows, length, looked_at)
        run()
        seconds = min(self._device.seconds(lambda: [run() for _ in range(n_batches)]) for _ in range(TURNS))
        return seconds * tokens / (n_batches * rows * length)

    def against_loop(self) -> Outcome:
        """Time a plain loop over padded batches, sorted by length, on the same questions."""
        case, loaded, device = self._case, self._loaded, self._device
        if math.isinf(self.seconds):
            return not_measured("the speed of the scorer was not measured")
        trial = loops.make_loop(case.way, loaded.tokenizer, questions.take(self.items, max(LOOP_ROWS)))
        rates = {size: self._loop_rate(trial, size) for size in LOOP_ROWS if size <= max(8, len(trial.lengths))}
        fitting = {size: rate for size, rate in rates.items() if rate is not None}
        if not fitting:
            return not_measured(f"memory (a plain loop in batches of {LOOP_ROWS[0]} does not fit)")
        best = max(fitting, key=lambda size: fitting[size])
        n_items = questions.count(self.items)
        rows = len(trial.lengths) / min(max(LOOP_ROWS), n_items) * n_items
        share = min(1.0, PEER_SHARE * max(self._wanted, self.seconds) * fitting[best] / rows)
        items = questions.take(self.items, max(PILOT_QUESTIONS, int(share * n_items)))

        def ask() -> None:
            loop = loops.make_loop(case.way, loaded.tokenizer, items)
            loops.run(loop, loaded.model, device.torch_device, best)

        ours, theirs = (min(device.seconds(run) for _ in range(TURNS)) for run in (lambda: self._ask(items), ask))
        return Outcome(
            MEASURED,
            figures={
                "peer": "generate, batch by batch" if case.way.writes else "padded batches, sorted by length",
                "rows": best,
                "questions": questions.count(items),
                "peer_seconds": theirs,
                "seconds": ours,
                "ratio": theirs / ours,
            },
        )

    def _loop_rate(self, loop: loops.Loop, size: int) -> float | None:
        """Rows a second of one batch of usual length; None where it does not fit in memory."""
        order = sorted(range(len(loop.lengths)), key=lambda row: loop.lengths[row])
        start = max(0, (len(order) - size) // 2)
        rows = order[start : start + size]

        def ask() -> None:
            with torch.inference_mode():
                loop.ask(self._loaded.model, self._device.torch_device, rows)

        try:
            ask()
            return len(rows) / self._device.seconds(ask)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            return None


def _dense(model: Any, device: Device, rows: int, length: int, looked_at: int | None) -> Any:
    """A call of the model's body on random tokens, without a mask."""
    tokens = torch.randint(8, model.get_input_embeddings().weight.shape[0], (rows, length), device=device.torch_device)
    inputs: dict[str, Any]
    if not model.config.is_encoder_decoder:
        body = model.base_model
        inputs = {"use_cache": False} if "use_cache" in inspect.signature(body.forward).parameters else {}
    elif looked_at is None:
        body, inputs = model.get_encoder(), {}
    else:
        states = torch.randn(rows, looked_at, model.config.d_model, dtype=model.dtype, device=device.torch_device)
        body, inputs = model.get_decoder(), {"encoder_hidden_states": states, "use_cache": False}

    def run() -> None:
        with torch.inference_mode():
            body(input_ids=tokens, **inputs)

    return run


def operations(model: Any, call: Call) -> float:
    """Floating-point operations of a call: two for each weight of the body's linear layers and token, and attention."""
    config = model.config
    if config.is_encoder_decoder:
        body = model.get_encoder() if call.looked_at is None else model.get_decoder()
        layers, width = config.num_layers, config.num_heads * config.d_kv
    else:
        body, layers, width = model.base_model, config.num_hidden_layers, config.hidden_size
    weights = sum(part.weight.numel() for part in body.modules() if isinstance(part, torch.nn.Linear))
    return call.tokens * (2.0 * weights + 4.0 * layers * width * (call.length + (call.looked_at or 0)))
