"""Whether a run goes on when memory runs out."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from qabias.devices.cases import Case
from qabias.devices.device import Device
from qabias.devices.outcome import FAILS, HOLDS, Outcome, not_measured
from qabias.devices.subjects import answers
from qabias.scorers import batches

TOO_LARGE = sys.maxsize // 2**20
"""A token budget that puts all questions into one batch."""

ROOM_SHARE = 1 / 3
"""The share of what one batch of all questions needs that is left for it."""

LEAST_ROOM = 2**26
"""Bytes that are left at least: what a device needs whatever the batch."""


def why_not(device: Device) -> Outcome | None:
    """The outcome on a device where it is not tried; None where it is."""
    if device.is_cpu:
        return not_measured("not tried on CPU")
    if not device.can_limit:
        return not_measured("not tried on this device, whose memory torch cannot limit")
    return None


def recovery(
    case: Case, device: Device, make: Callable[[int | None], Any], items: Any, units: np.ndarray, largest: float
) -> Outcome:
    """Ask with a budget that is too large on purpose, in a part of the memory that it needs."""
    usual = answers(make(None), case.way, items)
    base = device.allocated()
    device.reset_peak()
    greedy = make(TOO_LARGE)
    with counted() as before:
        answers(greedy, case.way, items)
    needed = (device.peak_memory() or base) - base
    room = max(LEAST_ROOM, int(ROOM_SHARE * needed))
    again = make(TOO_LARGE)
    with device.limited(room), counted() as halvings:
        found = answers(again, case.way, items)
    figures: dict[str, Any] = {"needed_bytes": needed, "room_bytes": room}
    told = {"halvings": before[0] + halvings[0], **figures}
    if not told["halvings"]:
        return not_measured("memory did not run out")
    if case.way.writes:
        return Outcome(HOLDS, figures=told | {"equal_texts": sum(map(str.__eq__, usual, found)) / len(usual)})
    difference = float(np.nanmax(np.abs(usual - found) / units))
    told |= {"difference": difference, "bound": largest}
    if difference <= largest:
        return Outcome(HOLDS, figures=told)
    return Outcome(FAILS, f"figures differ by {difference:.1e} after memory ran out", told)


@contextmanager
def counted() -> Iterator[list[int]]:
    """Count how often batches are made smaller because memory runs out, which is logged; the log is kept quiet."""
    count, log = [0], logging.getLogger(batches.__name__)

    def count_one(record: logging.LogRecord) -> bool:
        is_one = "out of memory" in record.getMessage()
        count[0] += is_one
        return not is_one

    log.addFilter(count_one)
    try:
        yield count
    finally:
        log.removeFilter(count_one)
