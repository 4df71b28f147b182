"""Files of lighteval: recognised, and refused with what they lack.

Its details (a Parquet file for every task, lighteval 0.13: `doc`, `metric`, `model_response`) keep the text and the
options of an example; its results (`results_DATE.json`) hold scores alone.
"""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from qabias.errors import QabiasError
from qabias.logs.model import Log

_HEAD = 4096
_PARQUET = b"PAR1"
_IS_RESULTS = re.compile(rb'\s*\{\s*"config_general"\s*:\s*\{.*"lighteval_sha"\s*:', re.DOTALL)
_DETAILS = (
    {"doc", "metric", "model_response"},
    {"__doc__", "__metric__", "__model_response__"},
    {"example", "full_prompt", "gold", "metrics", "predictions"},
)
"""Columns of its details: of this version, of the ones before it, and of the first."""


def read(path: Path) -> Log | None:
    """None for a file of anything else."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if head.startswith(_PARQUET) and _has_details(path):
        raise QabiasError(
            f"{path}: lighteval keeps the text and the options of an example, but neither its number nor the groups of "
            f"its answers, so that nobody can tell from it whom the stereotype names; {_INSTEAD}"
        )
    if _IS_RESULTS.match(head):
        raise QabiasError(f"{path}: lighteval's scores, without the answers; {_INSTEAD}")
    return None


_INSTEAD = (
    "ask the model by qabias run, or by a task for inspect or lm-eval (docs/coming-from.md), or score a table that has "
    "the key of every example with its answer"
)


def _has_details(path: Path) -> bool:
    try:
        columns = set(pq.read_schema(path).names)
    except (pa.ArrowException, OSError):  # cut off or damaged, and so nobody's table
        return False
    return any(columns >= details for details in _DETAILS)
