"""The stored probabilities of the three answers, and those that others collected."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qabias.benchmarks.bbq import NAME
from qabias.benchmarks.orders import PREDICTIONS
from qabias.errors import QabiasError

N_ANSWERS = 3


def check_probabilities(column: pa.ChunkedArray) -> None:
    """Refuse probabilities that others collected if they are no lists of three numbers."""
    is_numbers = pa.types.is_list(column.type) and pa.types.is_primitive(column.type.value_type)
    if not is_numbers or pc.list_value_length(column).drop_null().unique().to_pylist() not in ([], [N_ANSWERS]):
        raise QabiasError(
            f"{NAME}: the column probabilities is to hold a list of three numbers for each example, such as [0.2, 0.1, "
            "0.7], or null; give them as JSON lines or Parquet, or leave the column out"
        )


def probabilities_of(answers: pa.Table) -> np.ndarray | None:
    """The probabilities of the three answers, as the metric takes them."""
    if "probabilities" not in answers.column_names:
        return None
    lists = answers["probabilities"].combine_chunks()
    values = np.full((len(lists), N_ANSWERS), np.nan)
    is_there = lists.is_valid().to_numpy(zero_copy_only=False)
    values[is_there] = lists.flatten().to_numpy(zero_copy_only=False).reshape(-1, N_ANSWERS)
    if PREDICTIONS not in answers.column_names:
        return values
    total = values.sum(axis=1, keepdims=True)  # below 1 where an order has no probabilities
    return np.divide(values, total, out=np.full_like(values, np.nan), where=total > 0)
