"""What a scorer gives its model: the shape of every batch, and the time of the device inside the model.

This file imports torch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from qabias.devices.device import Device


@dataclass(frozen=True)
class Call:
    """One call of the model, or of a part of it, from outside."""

    rows: int
    length: int
    looked_at: int | None = None

    @property
    def tokens(self) -> int:
        """Tokens of the batch, pads included."""
        return self.rows * self.length


@dataclass
class Watched:
    """What was seen."""

    calls: list[Call] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def batches(self) -> list[Call]:
        """The calls with tokens."""
        return [call for call in self.calls if call.rows]

    @property
    def tokens(self) -> int:
        """Tokens that were run, pads included."""
        return sum(call.tokens for call in self.calls)


@contextmanager
def watched(model: Any, device: Device) -> Iterator[Watched]:
    """Watch what goes through a model: its body, its encoder and decoder, its output layer, or all of it."""
    found, depth, marks, starts = Watched(), [0], [], []

    def enter(module: Any, positional: Any, named: Any) -> None:
        if depth[0] == 0:
            found.calls.append(_call(named))
            starts.append(device.mark())
        depth[0] += 1

    def leave(module: Any, positional: Any, named: Any, output: Any) -> None:
        depth[0] -= 1
        if depth[0] == 0:
            marks.append((starts.pop(), device.mark()))

    handles = []
    for module in _parts(model):
        handles.append(module.register_forward_pre_hook(enter, with_kwargs=True))
        # Also after a call that fails, as one does that does not fit in memory.
        handles.append(module.register_forward_hook(leave, with_kwargs=True, always_call=True))
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()
        device.synchronize()
        found.seconds = sum(device.between(*both) for both in marks)


def _parts(model: Any) -> list[Any]:
    """The modules that a scorer may call, each once."""
    parts = [model, model.base_model, model.get_output_embeddings()]
    if model.config.is_encoder_decoder:
        parts += [model.get_encoder(), model.get_decoder()]
    return list({id(part): part for part in parts if part is not None}.values())


def _call(named: dict[str, Any]) -> Call:
    encoded, written = named.get("encoder_outputs"), named.get("decoder_input_ids")
    if written is not None and encoded is not None:
        return Call(len(written), written.shape[1], encoded[0].shape[1])
    tokens = named.get("input_ids")
    if tokens is None:
        return Call(0, 0)
    length = tokens.shape[-1]  # of multiple choice there are three dimensions
    return Call(tokens.numel() // length, length)
