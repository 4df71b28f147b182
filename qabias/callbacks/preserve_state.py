"""State of a training that must be the same after its model was asked."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from qabias.models.memory import evaluating


@contextmanager
def preserve_state(model: torch.nn.Module, optimizer: Any = None) -> Iterator[None]:
    """Have a model ready to be asked, and leave model and random numbers as they were."""
    modules = [(module, dict(vars(module)), dict(module._buffers)) for module in model.modules()]
    try:
        with _random_numbers_kept(), evaluating(model):
            _set_mode(optimizer, "eval")
            if "_original_forward" in vars(model):  # accelerate keeps it there
                vars(model)["forward"] = model._original_forward
            yield
    finally:
        for module, attributes, buffers in modules:
            _put_back(vars(module), attributes)
            _put_back(module._buffers, buffers)
        _set_mode(optimizer, "train")
        if any(weight.is_cuda for weight in model.parameters()):
            torch.cuda.empty_cache()


@contextmanager
def _random_numbers_kept() -> Iterator[None]:
    # What others draw from NumPy's global numbers must not change; nothing of ours does.
    states = random.getstate(), np.random.get_state()  # noqa: NPY002
    # Where CUDA was not used yet, nothing was drawn there.
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    mps_state = torch.mps.get_rng_state() if torch.backends.mps.is_available() else None
    try:
        with torch.random.fork_rng(devices, device_type="cuda"):
            yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
        if mps_state is not None:
            torch.mps.set_rng_state(mps_state)


def _set_mode(optimizer: Any, mode: str) -> None:
    change = getattr(optimizer, mode, None)
    if callable(change):
        change()


def _put_back(there: dict[str, Any], before: dict[str, Any]) -> None:
    """Make a dictionary what it was, in place."""
    for name in [name for name in there if name not in before]:
        del there[name]
    there.update(before)
