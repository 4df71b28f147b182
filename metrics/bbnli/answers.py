"""Predictions as the numbers 0, 1 and 2, and -1 for unparseable answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .values import input_error, shown, to_integer

LABELS = ("contradiction", "neutral", "entailment")
"""Names of the labels 0, 1 and 2, in the order of the authors' data (GLUE and MNLI use the reverse order)."""

UNPARSED = "unparsed"

_CODES = {**{label: code for code, label in enumerate(LABELS)}, UNPARSED: -1}


def answer_codes(outputs: Sequence[Any], words: bool) -> np.ndarray:
    """Answers of shape (n,), -1 if unparsed.

    Args:
        outputs: integers from -1 to 2, None for -1, and, if `words`, names of labels or "unparsed" in any case.
        words: whether the answers are labels; otherwise they are positions of answers, without names.

    Raises:
        ValueError: another output; the message names its row.
    """
    read = label_code if words else to_integer
    codes = np.empty(len(outputs), dtype=np.int64)
    for number, output in enumerate(outputs):
        code = -1 if output is None else output if type(output) is int else read(output)
        if code is None or not -1 <= code <= 2:
            named = f"the label 0, 1 or 2, its name {LABELS}" if words else "the index 0, 1 or 2"
            problem = f"bbnli: predictions row {number}: {shown(output)} is not an answer"
            raise input_error(problem, f"pass {named}, or None if the answer is unparseable")
        codes[number] = code
    return codes


def label_code(value: Any) -> int | None:
    """The label with this number or name, or None."""
    return _CODES.get(value.lower()) if isinstance(value, str) else to_integer(value)
