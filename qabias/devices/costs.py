"""What a measure will take, roughly, so that nothing is begun that does not fit into time or memory."""

from __future__ import annotations

from qabias.devices.cases import Case
from qabias.devices.correct import FEW_QUESTIONS, FEWER_QUESTIONS, FLOAT32, FLOAT64
from qabias.devices.device import Device
from qabias.devices.outcome import gib
from qabias.devices.shapes import BYTES
from qabias.devices.subjects import NEW_TOKENS

# The share of the rate of matrix products at which small batches are assumed to run.
EFFICIENCY = 0.25
# Numbers drawn a second where weights are made, and bytes copied a second where they are widened.
DRAWN_A_SECOND = {True: 3e7, False: 3e9}
COPIED_A_SECOND = 5e8
# Seconds that a layer takes however few tokens it is given, and that whatever is begun takes.
LEAST_OF_LAYER, LEAST = 1e-3, 1.0
# Memory beside the weights, as a share of them and at least so much.
WORKING_SHARE, LEAST_WORKING = 0.1, 2**29
TELLING = 3.0
"""Seconds that must have been expected of a measure, so that its time tells how slow the machine is."""

LARGE = 400e6
"""Parameters from which fewer questions are held against the reference."""

USUAL_TOKENS = 60
"""Tokens of a row that are reckoned with before anything has been encoded."""


class Costs:
    """Reckons seconds and bytes."""

    def __init__(self, device: Device, rates: dict[str, float], cpu_rate: float) -> None:
        self._device, self._rates, self._cpu_rate = device, rates, cpu_rate
        self._slowness = 1.0

    def learn(self, expected: float, spent: float) -> None:
        """Reckon with what something took in place of what was expected, where that was long enough to tell."""
        if expected / self._slowness > TELLING:
            self._slowness = max(1.0, self._slowness * spent / expected)

    def n_questions(self, case: Case) -> int:
        """Questions that are held against the reference."""
        return FEWER_QUESTIONS if case.shape.parameters > LARGE else FEW_QUESTIONS

    def building(self, case: Case) -> float:
        """Seconds to make a model."""
        return self._slowness * (LEAST + case.shape.parameters / DRAWN_A_SECOND[self._device.is_cpu])

    def forward(self, case: Case, n_questions: int) -> float:
        """Seconds to ask some questions, one row at a time."""
        return self._slowness * self._seconds(case, n_questions, self._rates[case.dtype])

    def reference(self, case: Case, where: str) -> float:
        """Seconds to make a reference and to ask it."""
        rate = self._cpu_rate if where == FLOAT64 else self._rates["float32"]
        copied = case.shape.parameters * BYTES["float64" if where == FLOAT64 else "float32"] / COPIED_A_SECOND
        return self._slowness * (copied + self._seconds(case, self.n_questions(case), rate))

    def _seconds(self, case: Case, n_questions: int, rate: float) -> float:
        """Seconds of some questions, one row at a time, where products have a rate."""
        rows = n_questions * (3 if case.way.way in ("options", "choices") else 1)
        passes = rows * (NEW_TOKENS if case.way.writes else 1)
        tokens = rows * (USUAL_TOKENS + (NEW_TOKENS if case.way.writes else 0))
        return passes * case.shape.layers * LEAST_OF_LAYER + 2.0 * case.shape.parameters * tokens / (EFFICIENCY * rate)

    def memory(self, case: Case) -> int:
        """Bytes that a model takes with what it computes."""
        weights = case.shape.weights_bytes(case.dtype)
        return int(weights + max(LEAST_WORKING, WORKING_SHARE * weights))

    def shortage(self, case: Case) -> str | None:
        """Why a model is not made; None where it fits."""
        return _short(self.memory(case), self._device.free_memory())

    def choose_reference(self, case: Case, seconds: float) -> tuple[str, str | None]:
        """Which reference there is memory and time for, and why there is none."""
        on_cpu = Device("cpu").free_memory()
        short = _short(case.shape.weights_bytes("float64"), on_cpu)
        if short is None and self.reference(case, FLOAT64) <= seconds:
            return FLOAT64, None
        copied = case.shape.weights_bytes(case.dtype) + case.shape.weights_bytes("float32")
        short = _short(copied, self._device.free_memory())
        if short is None and self.reference(case, FLOAT32) > seconds:
            short = f"time (a reference needs about {self.reference(case, FLOAT32):.0f} s, {seconds:.0f} s left for it)"
        return FLOAT32, short


def _short(needed: int, free: int | None) -> str | None:
    if free is None or needed <= free:
        return None
    return f"memory (needs {gib(needed)}, {gib(free)} free)"
