"""Calling a metric: the `evaluate` module of a benchmark, on a table and its predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from qabias.errors import QabiasError


def compute(folder: Path, table: pa.Table, predictions: Any, **options: Any) -> dict[str, Any]:
    """What a metric returns.

    Args:
        folder: The `evaluate` module.
        table: The examples.
        predictions: Parallel to them, in the form that the metric takes.
        **options: Options of the metric.

    Raises:
        QabiasError: If the metric finds something wrong with its inputs; a metric knows `ValueError` only.
    """
    import evaluate  # takes seconds, and only scoring needs it

    metric = evaluate.load(str(folder))
    try:
        result: dict[str, Any] = metric.compute(predictions=predictions, references=table, **options)
    except ValueError as error:
        raise QabiasError(str(error)) from error
    return result
