"""Machines that a run can be planned for."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from qabias.errors import QabiasError
from qabias.support.suggest import unknown

CPU = "cpu"
FITS = "yes"


@dataclass(frozen=True)
class Hardware:
    """A machine; all figures but `devices` are those of one device, as `hardware.yaml` describes them."""

    name: str
    devices: int
    peak_flops: float
    memory_bytes: float
    share_of_peak: float

    @property
    def flops(self) -> float:
        """Operations per second of all devices together."""
        return self.devices * self.peak_flops * self.share_of_peak

    def fits(self, weights_bytes: float) -> str:
        """Whether it holds the weights of a model, in words; a run has a whole copy on every device."""
        if weights_bytes <= self.memory_bytes:
            return FITS
        if weights_bytes <= self.devices * self.memory_bytes:
            return f"only spread over {self.devices} devices: behind a server"
        return f"no: {math.ceil(weights_bytes / self.memory_bytes)} devices' worth"


@cache
def all_hardware() -> dict[str, Hardware]:
    """The machines of `hardware.yaml` by name."""
    content = yaml.safe_load((Path(__file__).parent / "hardware.yaml").read_text(encoding="utf-8"))
    return {name: Hardware(name, **figures) for name, figures in content.items()}


def choose_hardware(names: Sequence[str]) -> list[Hardware]:
    """The machines of these names, by default all but the CPU; raises `QabiasError` where there is none."""
    known = all_hardware()
    for name in names:
        if name not in known:
            raise unknown("hardware", name, known, cutoff=0.4)
    if CPU in names and len(names) > 1:
        raise QabiasError("a CPU takes other batches; plan for it by itself")
    return [known[name] for name in names or known if names or name != CPU]
