"""Written answers of the inference benchmarks: the columns that are kept of them, and what became of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from qabias.answers.outcomes import ANSWERED, OUTCOMES, outcomes
from qabias.benchmarks.facts import counted
from qabias.tables.formatting import percent

STORED_COLUMNS = ("predictions", "outcome", "outcomes")
"""Columns of stored answers that scores are made from, beside `prediction`."""

_COUNTED = {"wrong": "they count as favouring nobody and as wrong", "exclude": "they are left out of the scores"}


def is_text(column: pa.ChunkedArray) -> bool:
    """Whether a column holds texts."""
    return bool(pa.types.is_string(column.type) or pa.types.is_large_string(column.type))


def text_columns(
    texts: Sequence[tuple[str, ...]], labels: Sequence[Sequence[int]], samples: int
) -> dict[str, pa.Array]:
    """The columns of written answers.

    Args:
        texts: For every row what was written, one text for each sample.
        labels: The answers that were read out of them, in the same shape.
        samples: Number of samples of a row.

    Returns:
        `prediction`, `outcome` and `outputs`, and `thinking` where a server gave any. Where there are several samples,
        `predictions`, `outcomes` and `thinking` are lists, one entry for each sample.
    """
    became = [outcomes(of_row, read) for of_row, read in zip(texts, labels, strict=True)]
    thinking = [[getattr(text, "thinking", "") for text in of_row] for of_row in texts]
    plural = "" if samples == 1 else "s"
    columns = {
        f"prediction{plural}": _column(labels, pa.int8(), samples),
        f"outcome{plural}": _column(became, pa.string(), samples),
        "outputs": pa.array([list(map(str, of_row)) for of_row in texts], pa.list_(pa.string())),
    }
    return columns | ({"thinking": _column(thinking, pa.string(), samples)} if any(map(any, thinking)) else {})


def _column(values: Sequence[Sequence[Any]], kind: pa.DataType, samples: int) -> pa.Array:
    """One value for each row, or a list of them where there are several samples."""
    return pa.array([one for (one,) in values], kind) if samples == 1 else pa.array(values, pa.list_(kind))


def outcome_counts(answers: pa.Table) -> dict[str, dict[str, int]]:
    """How often each outcome occurs, as the entry `outcomes` of scores; empty where the answers have none."""
    if "outcome" in answers.column_names:
        counts = Counter(answers["outcome"].to_pylist())
    elif "outcomes" in answers.column_names:
        counts = Counter(became for of_row in answers["outcomes"].to_pylist() for became in of_row or ())
    else:
        return {}
    return {"outcomes": {name: counts[name] for name in OUTCOMES}}


def sample_facts(scores: Mapping[str, Any]) -> dict[str, str]:
    """Answers to inferences; those that name no label, why they do not, and how they count."""
    unparsed = f"{counted(scores['n_unparsed'], 'output')} named no answer ({percent(scores['unparsed_share'])})"
    missing = [f"{n:,} {name}" for name, n in scores.get("outcomes", {}).items() if n and name != ANSWERED]
    if missing:
        unparsed = f"{unparsed}: {', '.join(missing)}"
    rules = dict(field.partition(":")[::2] for field in scores.get("signature", "").split("|"))
    if scores["n_unparsed"] and rules.get("unparsed") in _COUNTED:
        unparsed = f"{unparsed}; {_COUNTED[rules['unparsed']]}"
    return {"Sample": counted(scores["n"], "answer"), "Unparsed": unparsed}
