"""Values and columns in the shapes that users have them in: how they are told apart, read and shown in a message."""

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
"""Characters of a value that a message shows."""

_NUMBERS = (int, float, np.integer, np.floating)

_LONG_INTEGER = 10_000
"""Bits of an integer that is not written out."""


def shown(value: Any) -> str:
    """A value as messages show it: in one line of at most 80 characters, whatever it is."""
    text = _REPR.repr(value)
    if "\n" in text:  # an array or a frame
        text = " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def is_long(value: Any) -> bool:
    """Whether a value is an integer of more digits than Python writes."""
    return isinstance(value, int) and value.bit_length() > _LONG_INTEGER


def is_listing(values: Any) -> bool:
    """Whether there is an item for each row, in their order."""
    if isinstance(values, (str, bytes, Mapping, AbstractSet, type)) or not hasattr(values, "__iter__"):
        return False
    return bool(getattr(values, "ndim", 1) != 0)


def items(values: Any) -> list[Any]:
    """The values of a list, tuple, array, tensor, series, or column of a dataset as Python values."""
    for method in ("tolist", "to_pylist"):
        if hasattr(values, method):
            return list(getattr(values, method)())
    if isinstance(values, Sequence) and not isinstance(values, deque):  # of which there are no slices
        values = values[:]
    return list(values)


def array_of(values: Any) -> np.ndarray:
    """A column as an array; of dtype object if it holds what NumPy cannot take."""
    try:
        if isinstance(values, pa.ChunkedArray):
            return values.to_numpy()
        return np.asarray(values[:] if isinstance(values, Sequence) else values)
    except (TypeError, ValueError, RuntimeError):  # ragged lists; tensors with gradients or of type bfloat16
        return np.empty(0, dtype=object)


def encode(values: Any) -> tuple[Integers, list[Any]]:
    """A column as codes and the values that they stand for; None has code -1."""
    try:
        if isinstance(values, Sequence):
            values = values[:]
            if len(set(map(type, values)) - {type(None)}) > 1:
                raise TypeError("Arrow would make 1.0 of the integer beside a fraction")
        array = values if isinstance(values, (pa.Array, pa.ChunkedArray)) else pa.array(values)
        if not pa.types.is_dictionary(array.type):
            array = array.dictionary_encode()
        if isinstance(array, pa.ChunkedArray):
            array = array.unify_dictionaries().combine_chunks()
        codes = array.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        return codes, array.dictionary.to_pylist()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        # Values of several types, lists, or integers that are too large: they are compared one by one.
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
    """The integer that a number stands for, None if it stands for none (booleans, fractions, NaN, texts)."""
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
    """Whether all values are numbers of Python or NumPy, none of them True or False; only their types are looked at."""
    return all(issubclass(kind, _NUMBERS) and not issubclass(kind, bool) for kind in set(map(type, values)))


def is_boolean(value: Any) -> bool:
    """Whether a value is True or False, of Python, of NumPy or in a tensor without dimensions."""
    return isinstance(value, bool) or str(getattr(value, "dtype", "")) in ("bool", "torch.bool")


class _Repr(reprlib.Repr):
    """Does not write out what is long or deep, and says the type of what cannot be written."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = _SHOWN
        self.maxlist = self.maxtuple = self.maxdict = 10

    def repr_int(self, x: int, level: int) -> str:
        """An integer, which Python refuses to write where it is very long."""
        return f"an integer of {x.bit_length()} bits" if is_long(x) else super().repr_int(x, level)


_REPR = _Repr()
