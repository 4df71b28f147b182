"""Questions asked in several answer orders, and the one answer that results."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from qabias.answers import NO_ANSWER
from qabias.answers.likelihoods import normalised
from qabias.answers.outcomes import ANSWERED, UNREAD
from qabias.errors import QabiasError

if TYPE_CHECKING:
    from qabias.benchmarks.base import Benchmark
    from qabias.benchmarks.prompt_format import PromptFormat

Order = tuple[int, ...]
"""The number of the answer at every position of the prompt."""

PREDICTIONS = "order_predictions"
"""The column with the answer in each order."""


def check_orders(benchmark: Benchmark, orders: int) -> None:
    """Refuse a number of answer orders that a benchmark does not have."""
    if isinstance(orders, bool) or orders not in benchmark.orders:
        known = ", ".join(map(str, benchmark.orders))
        problem = f"permutations is {orders}, but {benchmark.name} has no {orders} answer orders."
        raise QabiasError(problem, f"Use one of {known}.")


def in_orders(benchmark: Benchmark, prompt_format: PromptFormat, orders: int) -> PromptFormat:
    """The format with several answer orders. A format that does not list the answers is refused."""
    if orders > 1 and not prompt_format.lists_answers:
        listing = ", ".join(name for name, other in benchmark.formats.items() if other.lists_answers)
        raise QabiasError(
            f"{benchmark.name}: the format {prompt_format.name} does not list the answers, so they have no order.",
            f"Use one answer order, or one of these formats: {listing}.",
        )
    return prompt_format.in_orders(orders)


def orders_of(n_answers: int, n_orders: int) -> list[Order]:
    """The answer orders of a question, the file's order first."""
    places = tuple(range(n_answers))
    if n_orders == 1:
        return [places]
    if n_orders == n_answers:
        return [places[start:] + places[:start] for start in places]
    if n_orders == math.factorial(n_answers):
        return list(itertools.permutations(places))
    raise QabiasError(
        f"{n_answers} answers have no {n_orders} orders.", f"Use 1, {n_answers} or {math.factorial(n_answers)}."
    )


def likeliest(probabilities: np.ndarray) -> pa.Array:
    """The answer with the largest probability to every question, `NO_ANSWER` for a tie."""
    is_tied = (probabilities == probabilities.max(axis=1, keepdims=True)).sum(axis=1) > 1
    return pa.array(np.where(is_tied, NO_ANSWER, probabilities.argmax(axis=1)).astype(np.int8))


def likelihood_columns(columns: Mapping[str, pa.Array], orders: Sequence[Order], norm: str) -> dict[str, pa.Array]:
    """One answer per question from the likelihoods in all orders."""
    named = ("loglikelihoods", "n_tokens", "n_bytes")
    loglikelihoods, n_tokens, n_bytes = (_in_file_order(columns[name], orders) for name in named)
    values = normalised(loglikelihoods, n_tokens, n_bytes, norm)  # shape (questions, orders, answers)
    with np.errstate(invalid="ignore"):
        weights = np.exp(values - values.max(axis=2, keepdims=True))
        probabilities = np.nan_to_num(weights / weights.sum(axis=2, keepdims=True))
        # The exact sum does not depend on the order: equal answers stay equal.
        means = np.array([[math.fsum(answer) / len(orders) for answer in question.T] for question in probabilities])
    return {
        "prediction": likeliest(means),
        "probabilities": pa.array(means.tolist(), pa.list_(pa.float64())),
        "order_loglikelihoods": pa.array(loglikelihoods.tolist(), pa.list_(pa.list_(pa.float64()))),
        "n_tokens": pa.array(n_tokens[:, 0].tolist(), pa.list_(pa.int32())),
        "n_bytes": pa.array(n_bytes[:, 0].tolist(), pa.list_(pa.int32())),
        PREDICTIONS: _predictions(columns, orders),
    }


def written_columns(columns: Mapping[str, pa.Array], orders: Sequence[Order]) -> dict[str, pa.Array]:
    """One answer per question from the texts in all orders."""
    predictions = _predictions(columns, orders)
    chosen = [majority(one) for one in predictions.to_pylist()]
    outcomes = _by_question(columns["outcome"], orders)
    became = [ANSWERED if place != NO_ANSWER else _missing(one) for place, one in zip(chosen, outcomes, strict=True)]
    others = {name: column for name, column in columns.items() if name not in ("prediction", "outcome")}
    return {
        "prediction": pa.array(chosen, pa.int64()),
        "outcome": pa.array(became, pa.string()),
        PREDICTIONS: predictions,
        **{name: pa.array(_flat(_by_question(column, orders))) for name, column in others.items()},
    }


def majority(places: Sequence[int]) -> int:
    """The answer of more than half of the orders, or `NO_ANSWER`."""
    place, n = Counter(places).most_common(1)[0]
    return place if 2 * n > len(places) else NO_ANSWER


def are_consistent(answers: pa.ChunkedArray) -> np.ndarray:
    """Whether questions have the same answer in all orders; bool of shape (n_questions,)."""
    lists = answers.combine_chunks()
    places = lists.flatten().to_numpy().reshape(len(lists), -1)
    alike: np.ndarray = (places == places[:, :1]).all(axis=1) & (places[:, 0] != NO_ANSWER)
    return alike


def without_majority(answers: pa.ChunkedArray, chosen: np.ndarray) -> int:
    """How many questions were answered in all orders but have no majority."""
    lists = answers.combine_chunks()
    places = lists.flatten().to_numpy().reshape(len(lists), -1)
    return int(((places != NO_ANSWER).all(axis=1) & (chosen == NO_ANSWER)).sum())


def _missing(outcomes: Sequence[Any]) -> str:
    others = Counter(outcome for outcome in outcomes if outcome != ANSWERED)
    return str(others.most_common(1)[0][0]) if others else UNREAD


def _predictions(columns: Mapping[str, pa.Array], orders: Sequence[Order]) -> pa.Array:
    """The answer in each order, numbered as in the file."""
    places = columns["prediction"].to_numpy(zero_copy_only=False).astype(np.int64).reshape(-1, len(orders))
    # Index -1 is `NO_ANSWER`.
    numbers = np.array([(*order, NO_ANSWER) for order in orders])
    return pa.array(numbers[np.arange(len(orders)), places].tolist(), pa.list_(pa.int8()))


def _in_file_order(column: pa.Array, orders: Sequence[Order]) -> np.ndarray:
    """Values per answer, shape (questions, orders, answers), from lists in prompt order."""
    values = np.array(column.to_pylist()).reshape(-1, len(orders), len(orders[0]))
    places = np.argsort(orders, axis=1)  # of every answer in each order
    return np.take_along_axis(values, np.broadcast_to(places, values.shape), axis=2)


def _by_question(column: pa.Array, orders: Sequence[Order]) -> list[list[Any]]:
    values = column.to_pylist()
    return [values[start : start + len(orders)] for start in range(0, len(values), len(orders))]


def _flat(lists: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Lists of values, one level flatter."""
    return [[one for value in values for one in (value if isinstance(value, list) else [value])] for values in lists]
