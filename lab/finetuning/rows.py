"""Reads and checks the training rows of a file or a dataset."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qabias.errors import QabiasError
from qabias.support.suggest import first_line
from qabias.support.table_files import read_csv_rows, read_table


@dataclass(frozen=True)
class Row:
    """One row and its position."""

    source: str
    number: int
    values: Mapping[str, Any]

    def text(self, column: str) -> str:
        """The text of a cell."""
        value = self._value(column)
        if not isinstance(value, str) or not value.strip():
            raise self.fault(column, f"{_short(value)} is not a text", "use a text that is not empty")
        return value

    def nested(self, column: str) -> Any:
        """The content of a cell with a list or an object; a text is parsed as JSON, because CSV has only texts."""
        value = self._value(column)
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value)
        except json.JSONDecodeError as error:
            raise self.fault(column, f"{_short(value)} is not JSON ({error})", "use a list or an object") from error

    def _value(self, column: str) -> Any:
        if column not in self.values:
            raise self.fault(column, f"is missing among {', '.join(map(repr, self.values))}", "rename or add it")
        return self.values[column]

    def fault(self, column: str, problem: str, fix: str) -> QabiasError:
        """Error for a cell."""
        return QabiasError(f"{self.source}: row {self.number}, column {column!r}: {problem}", fix)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def read_file(path: Path, limit: int | None = None) -> list[Row]:
    """Read the rows of a file."""
    if path.suffix.lower() == ".csv":  # all cells stay texts
        return _number(str(path), (cells for _, cells in read_csv_rows(path)), limit)
    return _number(str(path), read_table(path).to_pylist(), limit)


def read_dataset(name: str, config: str | None, split: str, limit: int | None = None) -> list[Row]:
    """Read the rows of a dataset."""
    import datasets

    try:
        dataset = datasets.load_dataset(name, config, split=split)
    except Exception as error:  # load_dataset raises any error of its readers
        raise QabiasError(
            f"dataset {name!r} cannot be loaded: {first_line(error)}",
            "check its name, config and splits, or use files: --train and --dev",
        ) from error
    return _number(f"{name}:{split}", dataset, limit)


def _number(source: str, rows: Iterable[Mapping[str, Any]], limit: int | None) -> list[Row]:
    numbered: list[Row] = []
    for number, values in enumerate(rows, start=1):
        if limit is not None and number > limit:
            break
        numbered.append(Row(source, number, values))
    if not numbered:
        raise QabiasError(f"{source}: has no rows", "use a file or split with rows")
    return numbered


def fingerprint(examples: Iterable[Any]) -> str:
    """SHA-256 of examples in order, to check that a resumed run uses the same data."""
    digest = hashlib.sha256()
    for example in examples:
        digest.update(repr(example).encode())
        digest.update(b"\n")
    return digest.hexdigest()
