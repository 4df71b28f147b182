"""Calling the metric of a benchmark on a table and its predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from qabias.errors import QabiasError
from qabias.support.suggest import did_you_mean, unknown

if TYPE_CHECKING:
    import pyarrow as pa

Rules = Mapping[str, str]
"""Options of a metric that say how answers are counted, by name; those that are left out have their defaults."""

NO_RULES: Rules = MappingProxyType({})

RUN = "run"
"""The column that tells the runs of a pool apart; the scores of a table that has it are means over the runs."""


def compute(
    metric: Any,
    table: pa.Table,
    predictions: Any,
    rules: Mapping[str, Any],
    by: Sequence[str] | None = None,
    inputs: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """What a metric returns."""
    options: dict[str, Any] = {"by": by, **rules}
    if RUN in table.column_names:
        options["mean_over"] = RUN
    try:
        result: dict[str, Any] = metric.compute(predictions=predictions, references=table, **inputs, **options)
    except ValueError as error:
        raise QabiasError(str(error)) from error
    return result


def read_columns(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Some columns of the examples, and `RUN` where they have it."""
    return table.select([*columns, *([RUN] if RUN in table.column_names else [])])


def check_rules(known: Mapping[str, Sequence[str]], rules: Rules, name: str) -> dict[str, str]:
    """The rules that are not the default."""
    for rule, value in rules.items():
        if rule not in known:
            there = ", ".join(known) or "none"
            raise QabiasError(f"{name} has no rule {rule!r} for its scores; it has {there}{did_you_mean(rule, known)}")
        if value not in known[rule]:
            raise unknown(f"value of {rule}", value, list(known[rule]))
    return {rule: value for rule, value in rules.items() if value != known[rule][0]}
