"""Written answers to examples: the columns that are kept of them, and what became of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from qabias.answers.outcomes import ANSWERED, OUTCOMES, outcomes, whole
from qabias.benchmarks.facts import counted
from qabias.support.suggest import unknown
from qabias.tables.formatting import percent

WRITTEN_COLUMNS = ("outcome", "outcomes", "outputs")
"""Columns that written answers have and others have not."""


def is_text(column: pa.ChunkedArray) -> bool:
    """Whether a column holds texts."""
    return bool(pa.types.is_string(column.type) or pa.types.is_large_string(column.type))


def as_places(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Numbers of answers as integers, where floats hold them because some are missing; NaN is nothing."""
    if pa.types.is_floating(column.type):
        try:
            return pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column).cast(pa.int64())
        except pa.ArrowInvalid:
            return column
    return column.cast(pa.int64()) if pa.types.is_null(column.type) else column


def text_columns(
    texts: Sequence[tuple[str, ...]], labels: Sequence[Sequence[int]], samples: int
) -> dict[str, pa.Array]:
    """The columns of written answers."""
    became = [outcomes(of_row, read) for of_row, read in zip(texts, labels, strict=True)]
    thinking = [[getattr(text, "thinking", "") for text in of_row] for of_row in texts]
    plural = "" if samples == 1 else "s"
    columns = {
        f"prediction{plural}": _column(labels, pa.int8(), samples),
        f"outcome{plural}": _column(became, pa.string(), samples),
        "outputs": pa.array([list(map(whole, map(str, of_row))) for of_row in texts], pa.list_(pa.string())),
    }
    return columns | ({"thinking": _column(thinking, pa.string(), samples)} if any(map(any, thinking)) else {})


def _column(values: Sequence[Sequence[Any]], kind: pa.DataType, samples: int) -> pa.Array:
    """One value for each row, or a list of them where there are several samples."""
    return pa.array([one for (one,) in values], kind) if samples == 1 else pa.array(values, pa.list_(kind))


def check_outcomes(answers: pa.Table) -> None:
    """Refuse a column `outcome` that others collected if it holds something else than outcomes and null."""
    if "outcome" not in answers.column_names:
        return
    for value in answers["outcome"].unique().to_pylist():
        if value is not None and value not in OUTCOMES:
            raise unknown("outcome", str(value), OUTCOMES)


def outcome_counts(answers: pa.Table) -> dict[str, dict[str, int]]:
    """How often each outcome occurs, as the entry `outcomes` of scores; empty where the answers have none."""
    if "outcome" in answers.column_names:
        counts = Counter(answers["outcome"].to_pylist())
    elif "outcomes" in answers.column_names:
        counts = Counter(became for of_row in answers["outcomes"].to_pylist() for became in of_row or ())
    else:
        return {}
    return {"outcomes": {name: counts[name] for name in OUTCOMES}}


def about_missing(scores: Mapping[str, Any], n_missing: int, *more: str) -> str:
    """How many answers are missing, and why."""
    unparsed = f"{counted(n_missing, 'output')} named no answer ({percent(scores['unparsed_share'])})"
    reasons = [f"{n:,} {name}" for name, n in scores.get("outcomes", {}).items() if n and name != ANSWERED]
    said = ", ".join(filter(None, (*reasons, *more)))
    return f"{unparsed}: {said}" if said else unparsed
