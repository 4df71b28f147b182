"""A model's outputs: answers and their probabilities.

Source of the rules for texts: the authors' analysis script.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .inputs import Source, Table
from .values import are_plain_numbers, array_of, input_error, is_boolean, is_listing, shown, to_integer

MATCHES = ("strict", "released")
"""How an output text may match an answer."""

ANSWERS = ("ans0", "ans1", "ans2")

PROBABILITIES = Source(
    "bbq", "probabilities", "an array of shape (n, 3), or a list with three numbers or None for each row"
)

_WRONG_SUM = 1e-6
"""Largest allowed difference between the sum of the probabilities and 1."""


class Outputs(NamedTuple):
    """A model's outputs as a user passes them."""

    predictions: Any
    probabilities: Any = None

    @classmethod
    def pair(cls, predictions: Any, probabilities: Any) -> Any:
        """Both together, or only the predictions, which may be missing.

        Raises:
            ValueError: probabilities without predictions.
        """
        if probabilities is None:
            return predictions
        if predictions is None:
            raise input_error("bbq: probabilities without predictions", "pass both together, and references")
        return cls(predictions, probabilities)


def table_of(predictions: Table, probabilities: Any) -> Table:
    """The predictions with a column `probabilities`, which is None in rows without any.

    Raises:
        ValueError: the probabilities are not a list, or their number differs.
    """
    nothing = probabilities is None
    listed = [None] * predictions.n if nothing else PROBABILITIES.listed(probabilities, PROBABILITIES.wanted)
    if len(listed) != predictions.n:
        problem = f"bbq: {len(listed)} rows of probabilities but {predictions.n} predictions"
        raise input_error(problem, "pass one row per prediction")
    return Table.wrap(predictions.source, {"prediction": predictions.items("prediction"), "probabilities": listed})


def read_probabilities(outputs: Table) -> npt.NDArray[np.float64] | None:
    """The probabilities of the three answers of every row.

    Args:
        outputs: one or several batches from `table_of`.

    Returns:
        Shape (n, 3), each in [0, 1], with row sums of 1; NaN in rows without any. None if all rows are without.

    Raises:
        ValueError: a row is not three numbers from 0 to 1 with a sum of 1; the message names it.
    """
    values = outputs.items("probabilities")
    if all(row is None for row in values):
        return None
    nothing = [np.nan] * len(ANSWERS)
    rows = [nothing if row is None else row for row in values]
    shares = array_of(rows)
    if shares.dtype.kind not in "fiu" or shares.shape != (outputs.n, len(ANSWERS)) or _have_booleans(rows):
        number = next((number for number, row in enumerate(rows) if not _are_numbers(row)), 0)
        problem = f": {shown(values[number])} are not three numbers"
        raise PROBABILITIES.error(problem, "pass one probability per answer", number)
    shares = shares.astype(np.float64)
    absent = np.isnan(shares)
    has_none = absent.all(axis=1)
    for wrong, rule, fix in (
        (absent.any(axis=1) & ~has_none, "lack some of the three", "pass all of them, or None"),
        (
            ((shares < 0) | (shares > 1)).any(axis=1),
            "are not all from 0 to 1",
            "pass probabilities, not their logarithms",
        ),
        (
            ~has_none & ~(np.abs(shares.sum(axis=1) - 1) <= _WRONG_SUM),
            "do not sum to 1",
            "normalize them over the three answers, or pass the softmax of log-likelihoods",
        ),
    ):
        if wrong.any():
            number = int(np.argmax(wrong))
            raise PROBABILITIES.error(f": {shown(values[number])} {rule}", fix, number)
    return None if has_none.all() else shares


def _are_numbers(row: Any) -> bool:
    array = array_of(row) if is_listing(row) and hasattr(row, "__len__") else np.empty(0)
    return array.shape == (len(ANSWERS),) and array.dtype.kind in "fiu" and not _have_booleans([row])


def _have_booleans(rows: Sequence[Any]) -> bool:
    """Whether some rows hold True or False, which NumPy reads as 1 and 0."""
    of_dtypes = {row.dtype: row for row in rows if hasattr(row, "dtype")}
    values = list(chain.from_iterable(row for row in rows if not hasattr(row, "dtype")))
    return any(map(is_boolean, of_dtypes.values())) or (not are_plain_numbers(values) and any(map(is_boolean, values)))


def answer_indices(outputs: Sequence[Any], rows: Table, match: str) -> np.ndarray:
    """Answer indices of shape (n,) from indices and texts, -1 if unparsed."""
    is_text = [isinstance(output, str) for output in outputs]
    answers: list[list[str]] = []
    persons: list[Any] | None = None
    if any(is_text):
        answers = [rows.items(name) for name in ANSWERS]
        persons = rows.items("answer_info") if match == "released" else None
    seen: dict[str, str] = {}
    places = np.full(len(outputs), -1, dtype=np.int64)
    for number, output in enumerate(outputs):
        if output is None:
            continue
        if is_text[number]:
            options = tuple(column[number] for column in answers)
            for name, option in zip(ANSWERS, options, strict=True):
                if not isinstance(option, str):
                    problem = f"bbq: references row {number}: {name} {shown(option)} is not a string"
                    raise input_error(problem, f"pass {rows.source.wanted}")
            cleaned = _clean(output, seen)
            places[number] = _match(cleaned, [_clean(option, seen) for option in options])
            if places[number] < 0 and persons is not None:
                places[number] = _match_person(cleaned, _persons(persons[number], number), seen)
            continue
        integer = output if type(output) is int else to_integer(output)
        if integer is None or not -1 <= integer <= 2:
            problem = f"bbq: predictions row {number}: {shown(output)} is not an answer"
            raise input_error(
                problem, "pass the index 0, 1 or 2, the answer text, or None if the answer is unparseable"
            )
        places[number] = integer
    return places


def _clean(text: str, seen: dict[str, str]) -> str:
    """A text prepared for comparison, by the rules of the authors' script."""
    if text not in seen:
        cleaned = text.replace("}", "").strip().lower().removesuffix(".").rstrip()
        if cleaned.endswith("pantsu"):  # truncated at the model's length limit
            cleaned += "it"
        seen[text] = cleaned.replace("o'brien", "obrien")
    return seen[text]


def _match(output: str, options: Sequence[str]) -> int:
    return options.index(output) if output in options else -1


def _match_person(output: str, persons: Sequence[str], seen: dict[str, str]) -> int:
    """The first answer whose person's first two words occur in the output; single words never match."""
    for answer, person in enumerate(persons):
        words = _clean(person, seen).split()[:2]
        if len(words) == 2 and " ".join(words) in output:
            return answer
    return -1


def _persons(info: Any, number: int) -> list[str]:
    try:
        persons = [info[name][0] for name in ANSWERS]
    except (KeyError, IndexError, TypeError):
        persons = [None]
    if not all(isinstance(person, str) for person in persons):
        problem = f"bbq: references row {number}: answer_info {shown(info)} is not a dict"
        raise input_error(problem, "pass a dict from ans0, ans1, ans2 to [text, info]")
    return persons
