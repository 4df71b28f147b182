"""From tokens to operations, memory, time and money."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from qabias.errors import QabiasError
from qabias.planning.counters import Work
from qabias.planning.outline import Subject
from qabias.scorers import causal

FORMULA = (
    "operations = 2 * parameters * tokens + 4 * layers * attention width * pairs of tokens within a row "
    "(a text-to-text model: encoder and decoder each with their own parameters and tokens)"
)
CPU = "cpu"
BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
# States that a layer holds of a token while it computes, in units of the hidden size: input, attention's four,
# the feed-forward part of about eight, and a copy. An estimate.
STATES_PER_TOKEN = 14


@dataclass(frozen=True)
class Hardware:
    """A machine; all figures but `devices` are those of one device.

    Attributes:
        name: Name on the command line.
        devices: Number of devices, each with a copy of the model and a share of the parts.
        peak_flops: Operations per second that the maker states.
        memory_bytes: Memory.
        share_of_peak: Share of `peak_flops` that scoring is assumed to reach, in (0, 1].
        source: Where the figures are from.
        precision: What the peak is stated for.
    """

    name: str
    devices: int
    peak_flops: float
    memory_bytes: float
    share_of_peak: float
    source: str
    precision: str = "bfloat16"

    @property
    def flops(self) -> float:
        """Operations per second of all devices together."""
        return self.devices * self.peak_flops * self.share_of_peak


@dataclass(frozen=True)
class Memory:
    """Memory that a copy of the model takes, in bytes.

    Attributes:
        weights: Of its parameters.
        working: Of states, masks and logits of a batch and of what generation keeps; an estimate, None where the shape
            of the model is not known.
    """

    weights: float
    working: float | None

    @property
    def total(self) -> float:
        """Both together."""
        return self.weights + (self.working or 0)


@cache
def all_hardware() -> dict[str, Hardware]:
    """The machines of `hardware.yaml` by name."""
    content = yaml.safe_load((Path(__file__).parent / "hardware.yaml").read_text(encoding="utf-8"))
    return {name: Hardware(name, **figures) for name, figures in content.items()}


def load_hardware(name: str) -> Hardware:
    """The machine of that name.

    Raises:
        QabiasError: If there is none.
    """
    known = all_hardware()
    if name not in known:
        close = difflib.get_close_matches(name, known, 1, cutoff=0.4)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise QabiasError(f"unknown hardware {name!r}: choose one of {', '.join(known)}{hint}")
    return known[name]


def resolve_dtype(dtype: str, on_cpu: bool) -> str:
    """Precision of the weights: `auto` is bfloat16, and float32 on a CPU.

    Raises:
        QabiasError: If there is no such precision.
    """
    if dtype == "auto":
        return "float32" if on_cpu else "bfloat16"
    if dtype not in BYTES:
        raise QabiasError(f"unknown dtype {dtype!r}; choose one of auto, {', '.join(BYTES)}")
    return dtype


def count_flops(subject: Subject, work: Work) -> float:
    """Operations of a run by `FORMULA`; without its second term where the shape of the model is not known."""
    first = subject.encoder_parameters or subject.parameters
    second = subject.parameters - subject.encoder_parameters
    matrices = 2 * (first * work.tokens + second * work.decoder_tokens)
    if subject.shape is None:
        return matrices
    return matrices + 4 * subject.shape.layers * subject.shape.attention_width * work.attention


def estimate_memory(subject: Subject, dtype: str, tokens_per_batch: float, *, generates: bool = False) -> Memory:
    """Memory of the weights, and an estimate of what a batch adds.

    Args:
        subject: The model.
        dtype: Precision of weights and states.
        tokens_per_batch: Tokens of a batch.
        generates: Whether keys and values of all layers are kept.
    """
    size = BYTES[dtype]
    shape = subject.shape
    if shape is None:
        return Memory(subject.parameters * size, None)
    states = tokens_per_batch * STATES_PER_TOKEN * shape.hidden_size * size
    cache_size = tokens_per_batch * shape.layers * shape.cache_width * size if generates else 0
    # A block of logits in single precision and its logarithms.
    logits = 2 * 4 * max(causal.LOGITS_AT_ONCE, shape.vocabulary_size)
    return Memory(subject.parameters * size, states + cache_size + logits)
