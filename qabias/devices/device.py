"""The device: its name, its memory, its clock and the rate of its matrix products.

This file imports torch.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from qabias.models.loading import resolve_device

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_MEMINFO = Path("/proc/meminfo")
# Writing this resets the largest resident memory of a process under Linux.
_RESET_PEAK = "5"
# Sides of the matrices whose products are timed, so many times each, until one takes long enough to tell.
_SIDES = (256, 512, 1024, 2048, 4096, 8192)
_PRODUCTS = 3
_ENOUGH_SECONDS = 0.05


class Device:
    """A device of torch."""

    def __init__(self, name: str = "auto") -> None:
        self.torch_device = resolve_device(_found() if name == "auto" else name)
        self.type = self.torch_device.type
        self._backend: Any = getattr(torch, self.type)
        if self.torch_device.index is not None and hasattr(self._backend, "set_device"):
            self._backend.set_device(self.torch_device)

    @property
    def is_cpu(self) -> bool:
        """Whether it is the CPU."""
        return self.type == "cpu"

    @property
    def usual_dtype(self) -> str:
        """The precision in which models usually run on it."""
        return "float32" if self.is_cpu else "bfloat16"

    def describe(self) -> dict[str, Any]:
        """What it is, for the report."""
        if self.is_cpu:
            capability = torch.backends.cpu.get_cpu_capability()
            return {"type": "cpu", "name": capability, "threads": torch.get_num_threads(), "cores": os.cpu_count()}
        ask_name = getattr(self._backend, "get_device_name", None)
        return {
            "type": "rocm" if torch.version.hip else self.type,
            "name": ask_name(self.torch_device) if ask_name else self.type,
            "free_memory_bytes": self.free_memory(),
        }

    def synchronize(self) -> None:
        """Wait until it has done everything."""
        if not self.is_cpu:
            self._backend.synchronize()

    def seconds(self, run: Callable[[], object]) -> float:
        """Seconds on the clock that a call takes until the device has done it."""
        self.synchronize()
        started = time.perf_counter()
        run()
        self.synchronize()
        return time.perf_counter() - started

    def mark(self) -> Any:
        """A moment on the device, without waiting for it; for `between`."""
        if self.is_cpu:
            return time.perf_counter()
        event = self._backend.Event(enable_timing=True)
        event.record()
        return event

    def between(self, start: Any, end: Any) -> float:
        """Seconds between two marks, of which the device has passed both."""
        return end - start if self.is_cpu else start.elapsed_time(end) / 1000

    def free_memory(self) -> int | None:
        """Bytes that are free for models; None where the system does not tell."""
        if self.is_cpu:
            return _available()
        gc.collect()
        self._backend.empty_cache()
        if hasattr(self._backend, "mem_get_info"):
            return int(self._backend.mem_get_info()[0])
        return int(self._backend.recommended_max_memory() - self._backend.driver_allocated_memory())

    def reset_peak(self) -> None:
        """Begin to note the largest memory anew, where that can be done."""
        if self.is_cpu:
            if os.access(_CLEAR, os.W_OK):
                _CLEAR.write_text(_RESET_PEAK)
        elif hasattr(self._backend, "reset_peak_memory_stats"):
            self._backend.reset_peak_memory_stats()

    def peak_memory(self) -> int | None:
        """Largest memory since `reset_peak`: of tensors, on the CPU of the process; None where it is not told."""
        if self.is_cpu:
            return _status("VmHWM") if os.access(_CLEAR, os.W_OK) else None
        if hasattr(self._backend, "max_memory_allocated"):
            return int(self._backend.max_memory_allocated())
        return None

    def allocated(self) -> int:
        """Bytes of all tensors on an accelerator."""
        name = "memory_allocated" if hasattr(self._backend, "memory_allocated") else "current_allocated_memory"
        return int(getattr(self._backend, name)())

    @property
    def can_limit(self) -> bool:
        """Whether this process can be held to less memory than there is, and tell what it used."""
        return hasattr(self._backend, "set_per_process_memory_fraction") and hasattr(self._backend, "mem_get_info")

    @contextmanager
    def limited(self, room: int) -> Iterator[None]:
        """Hold this process to the memory of the accelerator that it has now, and so many bytes more."""
        self._backend.empty_cache()
        most = self._backend.memory_reserved() + room
        self._backend.set_per_process_memory_fraction(min(1.0, most / self._backend.mem_get_info()[1]))
        try:
            yield
        finally:
            self._backend.set_per_process_memory_fraction(1.0)
            self._backend.empty_cache()

    def product_rate(self, dtype: str) -> float:
        """Floating-point operations a second of products of square matrices, the best of ever larger ones."""
        best = 0.0
        for side in _SIDES:
            seconds = self._product_seconds(side, getattr(torch, dtype))
            best = max(best, 2 * side**3 / seconds)
            if seconds > _ENOUGH_SECONDS:
                break
        return best

    def _product_seconds(self, side: int, dtype: torch.dtype) -> float:
        left, right = (torch.randn(side, side, device=self.torch_device).to(dtype) for _ in range(2))
        return min(self.seconds(lambda: left @ right) for _ in range(_PRODUCTS))


def _found() -> str:
    """The accelerator that torch finds, else the CPU."""
    if torch.cuda.is_available():  # ROCm too
        return "cuda"
    if torch.backends.mps.is_available():
        return "mps"
    return "xpu" if hasattr(torch, "xpu") and torch.xpu.is_available() else "cpu"


def _status(name: str) -> int | None:
    return _kib(_STATUS, name)


def _available() -> int | None:
    """Memory that the system can still give, within the limit of the process's control group."""
    free = _kib(_MEMINFO, "MemAvailable")
    group = Path("/sys/fs/cgroup")
    try:
        room = int((group / "memory.max").read_text()) - int((group / "memory.current").read_text())
    except (OSError, ValueError):  # no such group, or "max"
        return free
    return room if free is None else min(free, room)


def _kib(path: Path, name: str) -> int | None:
    """A line such as "VmHWM:  1024 kB" of a file of Linux, in bytes."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:")), None)
