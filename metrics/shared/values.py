"""Values and columns in any shape that users pass: reading them and showing them in a message."""

from __future__ import annotations

import numbers
import operator
import reprlib
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Integers = npt.NDArray[np.int64]

_SHOWN = 80
"""Characters of a value in a message."""

_NUMBERS = (int, float, np.integer, np.floating)

_LONG_INTEGER = 10_000
"""Bits of the largest integer that a message prints."""


def shown(value: Any) -> str:
    """A value as text for a message: one line of at most 80 characters."""
    text = _REPR.repr(value)
    if "\n" in text:  # an array or a frame
        text = " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def input_error(problem: str, fix: str) -> ValueError:
    """An error in two lines: what happened, and what to do."""
    return ValueError(f"{problem}\n  fix: {fix}")


def is_long(value: Any) -> bool:
    """Whether a value is an integer with more digits than Python prints."""
    return isinstance(value, int) and value.bit_length() > _LONG_INTEGER


def is_listing(values: Any) -> bool:
    """Whether a value has one item per row, in order."""
    if isinstance(values, (str, bytes, Mapping, AbstractSet, type)) or not hasattr(values, "__iter__"):
        return False
    return bool(getattr(values, "ndim", 1) != 0)


def items(values: Any) -> list[Any]:
    """The values of a list, tuple, array, tensor, series or dataset column as Python values."""
    for method in ("tolist", "to_pylist"):
        if hasattr(values, method):
            return list(getattr(values, method)())
    if isinstance(values, Sequence) and not isinstance(values, deque):  # a deque has no slices
        values = values[:]
    return list(values)


def array_of(values: Any) -> np.ndarray:
    """A column as an array; empty, of dtype object, if NumPy cannot read it."""
    try:
        if isinstance(values, pa.ChunkedArray):
            return values.to_numpy()
        return np.asarray(values[:] if isinstance(values, Sequence) else values)
    except (TypeError, ValueError, RuntimeError):  # ragged lists; tensors with gradients or of type bfloat16
        return np.empty(0, dtype=object)


def encode(values: Any) -> tuple[Integers, list[Any]]:
    """A column as codes and the values of the codes; None has code -1."""
    try:
        if isinstance(values, Sequence):
            values = values[:]
            if len(set(map(type, values)) - {type(None)}) > 1:
                raise TypeError("Arrow would turn an integer among fractions into 1.0")
        array = values if isinstance(values, (pa.Array, pa.ChunkedArray)) else pa.array(values)
        if not pa.types.is_dictionary(array.type):
            array = array.dictionary_encode()
        if isinstance(array, pa.ChunkedArray):
            array = array.unify_dictionaries().combine_chunks()
        codes = array.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        return codes, array.dictionary.to_pylist()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        # Values of several types, lists and very large integers are compared one by one.
        known: dict[Any, int] = {}
        levels: list[Any] = []
        listed = items(values)
        codes = np.full(len(listed), -1, dtype=np.int64)
        for number, value in enumerate(listed):
            if value is not None:
                key = (type(value), value) if isinstance(value, (str, int, float, np.generic)) else id(value)
                code = known.setdefault(key, len(levels))
                if code == len(levels):
                    levels.append(value)
                codes[number] = code
        return codes, levels


def to_integer(value: Any) -> int | None:
    """The integer that a number equals; None for booleans, fractions, NaN and texts."""
    if is_boolean(value):
        return None
    if isinstance(value, (float, np.floating)):
        return int(value) if float(value).is_integer() else None
    if not isinstance(value, numbers.Integral) and not hasattr(value, "dtype"):
        return None
    try:
        return operator.index(value)
    except TypeError:  # an array of several numbers, or of fractions
        return None


def are_plain_numbers(values: Iterable[Any]) -> bool:
    """Whether all values are numbers of Python or NumPy, without booleans, judged by their types."""
    return all(issubclass(kind, _NUMBERS) and not issubclass(kind, bool) for kind in set(map(type, values)))


def is_boolean(value: Any) -> bool:
    """Whether a value is True or False, from Python, NumPy or a tensor without dimensions."""
    return isinstance(value, bool) or str(getattr(value, "dtype", "")) in ("bool", "torch.bool")


class _Repr(reprlib.Repr):
    """Shortens long and deep values, and shows only the type if a value has no text."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = _SHOWN
        self.maxlist = self.maxtuple = self.maxdict = 10

    def repr_int(self, x: int, level: int) -> str:
        """An integer; Python refuses to print a very long one."""
        return f"an integer of {x.bit_length()} bits" if is_long(x) else super().repr_int(x, level)


_REPR = _Repr()
