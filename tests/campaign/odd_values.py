"""Values that somebody may pass to a metric, and what each of them stands for by the documentation.

`REFUSED` is what no call may take for anything. Every other meaning is the plain Python value of which the score must
be, where the metric takes the value at all.
"""

import enum
import operator
from collections import OrderedDict
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import torch

REFUSED = object()


class OddError(Exception):
    """Raised by an object of the tests, not by a metric: it comes through as it is."""


class RaisesInIndex:
    def __index__(self):
        raise OddError


class RaisesInRepr:
    def __repr__(self):
        raise OddError


class RaisesInEqual:
    __hash__ = None

    def __eq__(self, other):
        raise OddError


class RaisesInLen:
    def __len__(self):
        raise OddError

    def __iter__(self):
        raise OddError


class HasIndex:
    def __index__(self):
        return 1


class Text(str):
    __slots__ = ()


class Number(int):
    pass


class Word(str, enum.Enum):
    ENTAILMENT = "entailment"


class Place(enum.IntEnum):
    ONE = 1


def itself() -> list[Any]:
    """A list that holds itself."""
    found: list[Any] = [1]
    found.append(found)
    return found


def deep() -> list[Any]:
    """A list in a list, deeper than Python calls itself."""
    found: list[Any] = []
    for _ in range(5000):
        found = [found]
    return found


ODD: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "True": lambda: True,
    "False": lambda: False,
    "np.True_": lambda: np.True_,
    "tensor of True": lambda: torch.tensor(True),
    "array of True": lambda: np.array(True),
    "0": lambda: 0,
    "1": lambda: 1,
    "2": lambda: 2,
    "-1": lambda: -1,
    "-2": lambda: -2,
    "3": lambda: 3,
    "2**31": lambda: 2**31,
    "2**63": lambda: 2**63,
    "-2**63": lambda: -(2**63),
    "10**400": lambda: 10**400,
    "int subclass": lambda: Number(1),
    "IntEnum": lambda: Place.ONE,
    "np.int8": lambda: np.int8(1),
    "np.uint64": lambda: np.uint64(2),
    "np.int64": lambda: np.int64(0),
    "0-d array": lambda: np.array(1),
    "0-d float array": lambda: np.array(0.5),
    "0-d tensor": lambda: torch.tensor(1),
    "0-d float tensor": lambda: torch.tensor(0.5),
    "tensor with a gradient": lambda: torch.tensor(0.5, requires_grad=True),
    "bfloat16": lambda: torch.tensor(0.5, dtype=torch.bfloat16),
    "has an index": HasIndex,
    "0.0": lambda: 0.0,
    "1.0": lambda: 1.0,
    "-0.0": lambda: -0.0,
    "0.5": lambda: 0.5,
    "1.0000005": lambda: 1.0000005,
    "1.1": lambda: 1.1,
    "1e-320": lambda: 1e-320,
    "1e308": lambda: 1e308,
    "NaN": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "-inf": lambda: float("-inf"),
    "np.float32": lambda: np.float32(0.5),
    "np.float16": lambda: np.float16(1.0),
    "np.nan": lambda: np.float64("nan"),
    "complex": lambda: 1 + 0j,
    "Decimal": lambda: Decimal("0.5"),
    "Fraction": lambda: Fraction(1, 2),
    "pd.NA": lambda: pd.NA,
    "pd.NaT": lambda: pd.NaT,
    "Timestamp": lambda: pd.Timestamp("2020-01-01"),
    "datetime64": lambda: np.datetime64("2020-01-01"),
    "timedelta64": lambda: np.timedelta64(1, "s"),
    "pa.scalar": lambda: pa.scalar(1),
    "pa null": lambda: pa.scalar(None, pa.int64()),
    "empty text": lambda: "",
    "space": lambda: " ",
    "text 1": lambda: "1",
    "text None": lambda: "None",
    "text nan": lambda: "nan",
    "neg": lambda: "neg",
    "nonneg": lambda: "nonneg",
    "ambig": lambda: "ambig",
    "disambig": lambda: "disambig",
    "pro": lambda: "pro",
    "target": lambda: "target",
    "entailment": lambda: "entailment",
    "ENTAILMENT": lambda: "ENTAILMENT",
    "unparsed": lambda: "unparsed",
    "NUL": lambda: "a\0b",
    "newline": lambda: "a\nb",
    "surrogate": lambda: "\ud83d",
    "right to left": lambda: "\u202ea",
    "escape": lambda: "\x1b]0;title\x07",
    "long text": lambda: "x" * 10_000,
    "long words": lambda: "word " * 2_000,
    "str subclass": lambda: Text("Age"),
    "str enum": lambda: Word.ENTAILMENT,
    "np.str_": lambda: np.str_("Age"),
    "bytes": lambda: b"1",
    "bytearray": lambda: bytearray(b"1"),
    "memoryview": lambda: memoryview(b"1"),
    "empty list": list,
    "list": lambda: [1],
    "nested list": lambda: [[1], [2, 3]],
    "list of itself": itself,
    "deep list": deep,
    "tuple": lambda: (1,),
    "empty tuple": tuple,
    "set": lambda: {1},
    "dict": lambda: {"a": 1},
    "empty dict": dict,
    "dict proxy": lambda: MappingProxyType({"category": "Age"}),
    "ordered": lambda: OrderedDict(category="Age"),
    "array": lambda: np.array([1]),
    "array of two": lambda: np.array([0.25, 0.75]),
    "empty array": lambda: np.array([]),
    "array of objects": lambda: np.array([None], dtype=object),
    "series": lambda: pd.Series([1]),
    "tensor": lambda: torch.tensor([1]),
    "arrow": lambda: pa.array([1]),
    "range": lambda: range(1),
    "generator": lambda: (x for x in (1,)),
    "function": lambda: len,
    "class": lambda: int,
    "object": object,
    "Ellipsis": lambda: ...,
    "NotImplemented": lambda: NotImplemented,
    "an error": lambda: ValueError("x"),
    "raises in index": RaisesInIndex,
    "raises in repr": RaisesInRepr,
    "raises in equal": RaisesInEqual,
    "raises in len": RaisesInLen,
}
"""Makers by name: a value made anew for every call, because some can be read only once."""

PLAIN = {"None", "0", "1", "2", "-1", "np.int8", "np.uint64", "np.int64", "0.0", "1.0", "-0.0", "0.5", "1.0000005"}
PLAIN |= {"np.float32", "np.str_", "str subclass", "neg", "nonneg", "ambig", "disambig", "pro", "target", "entailment"}
"""Names of the values that a metric takes wherever it takes what they stand for."""


def _scalar(value: Any) -> Any:
    """What an array without dimensions, a tensor or a value of Arrow holds."""
    if isinstance(value, pa.Scalar):
        return value.as_py()
    if isinstance(value, torch.Tensor):
        return value.item() if value.numel() == 1 else REFUSED
    if isinstance(value, np.ndarray):
        return value.item() if value.ndim == 0 else REFUSED
    return value


def as_place(value: Any) -> Any:
    """The whole number that a value stands for; None stays None."""
    value = _scalar(value)
    if value is None:
        return None
    if isinstance(value, (bool, np.bool_)):
        return REFUSED
    if isinstance(value, (float, np.floating)):
        return int(value) if np.isfinite(value) and value == int(value) else REFUSED
    try:
        return operator.index(value)
    except (TypeError, OddError):
        return REFUSED


def as_text(value: Any) -> Any:
    """The text that a value is; None stays None."""
    value = _scalar(value)
    return value if value is None else str.__str__(value) if isinstance(value, str) else REFUSED


def as_text_or_place(value: Any) -> Any:
    """A text, or a whole number."""
    text = as_text(value)
    return as_place(value) if text is REFUSED else text


def as_score(value: Any) -> Any:
    """The number that a value is."""
    value = _scalar(value)
    if isinstance(value, (bool, np.bool_, str, bytes, complex, Decimal)) or value is None:
        return REFUSED
    try:
        return float(value)
    except OverflowError:
        return float("inf")
    except (TypeError, ValueError, OddError):
        return REFUSED


def as_switch(value: Any) -> Any:
    """Whether a value is true."""
    try:
        return bool(value)
    except (TypeError, ValueError, RuntimeError, OddError):
        return REFUSED


def as_columns(value: Any) -> Any:
    """The option `by`: a name, or a sequence of names and of sequences of names."""
    if value is None or isinstance(value, str):
        return as_text(value)
    if isinstance(value, (bytes, bytearray, memoryview, Mapping, RaisesInLen)) or not hasattr(value, "__iter__"):
        return REFUSED
    if getattr(value, "ndim", 1) != 1:
        return REFUSED
    entries = []
    for entry in value:
        names = [entry] if isinstance(entry, str) else entry
        if not isinstance(names, (list, tuple)) or not names or not all(isinstance(name, str) for name in names):
            return REFUSED
        entries.append([as_text(name) for name in names])
    return entries
