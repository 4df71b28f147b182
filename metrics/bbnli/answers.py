"""From predictions as users have them to the numbers 0, 1 and 2, and -1 for what is no answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .values import shown, to_integer

LABELS = ("contradiction", "neutral", "entailment")
"""Names of the labels 0, 1 and 2, the order of the authors' data (GLUE and MNLI have it the other way round)."""

UNPARSED = "unparsed"

_CODES = {**{label: code for code, label in enumerate(LABELS)}, UNPARSED: -1}


def answer_codes(outputs: Sequence[Any], words: bool) -> np.ndarray:
    """Answers of shape (n,), -1 where unparsed.

    Args:
        outputs: integers from -1 to 2, None for -1, and, if `words`, names of labels or "unparsed" in any case.
        words: whether the answers are labels; if not, they are places of answers, which have no names.

    Raises:
        ValueError: an output is none of these; the text names its row.
    """
    read = label_code if words else to_integer
    codes = np.empty(len(outputs), dtype=np.int64)
    for number, output in enumerate(outputs):
        code = -1 if output is None else output if type(output) is int else read(output)
        if code is None or not -1 <= code <= 2:
            named = f"the label 0, 1 or 2, its name {LABELS}" if words else "the index 0, 1 or 2"
            raise ValueError(
                f"bbnli: predictions row {number}: {shown(output)} is not an answer; pass {named}, or -1 or None where "
                "the output names no answer (read texts and decide ties before)"
            )
        codes[number] = code
    return codes


def label_code(value: Any) -> int | None:
    """The label that a number or a name stands for, None if it stands for none."""
    return _CODES.get(value.lower()) if isinstance(value, str) else to_integer(value)
