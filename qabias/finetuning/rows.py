"""Reading the rows to train on, from a file or a dataset, and refusing those that are not what they should be."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qabias.errors import QabiasError

SUFFIXES = (".jsonl", ".json", ".csv", ".parquet")


@dataclass(frozen=True)
class Row:
    """One row and where it stands.

    Attributes:
        source: File or dataset that it comes from.
        number: Its number there, from 1; the header of a CSV file does not count.
        values: Its cells by column.
    """

    source: str
    number: int
    values: Mapping[str, Any]

    def text(self, column: str) -> str:
        """The text of a cell.

        Raises:
            QabiasError: If there is no such column, or its cell is no text or blank.
        """
        value = self._value(column)
        if not isinstance(value, str) or not value.strip():
            raise self.fault(column, f"{_short(value)} is no text; give one that is not blank")
        return value

    def nested(self, column: str) -> Any:
        """The content of a cell that is a list or an object; a text is read as JSON, for CSV has nothing else.

        Raises:
            QabiasError: If there is no such column, or its text is not JSON.
        """
        value = self._value(column)
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value)
        except json.JSONDecodeError as error:
            raise self.fault(column, f"{_short(value)} is not JSON ({error}); write a list or an object") from error

    def _value(self, column: str) -> Any:
        if column not in self.values:
            raise self.fault(column, f"is missing among {', '.join(map(repr, self.values))}; rename or add it")
        return self.values[column]

    def fault(self, column: str, what: str) -> QabiasError:
        """Error for a cell; `what` says what is wrong and how to mend it."""
        return QabiasError(f"{self.source}: row {self.number}, column {column!r}: {what}")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def read_file(path: Path, limit: int | None = None) -> list[Row]:
    """Read the rows of a file.

    Args:
        path: JSON lines, CSV with a header (lists and objects as JSON), or Parquet; told by the suffix.
        limit: Most rows, the first ones; None for all.

    Raises:
        QabiasError: If the file cannot be read, is damaged, of another kind or empty.
    """
    readers = {".jsonl": _read_json_lines, ".json": _read_json_lines, ".csv": _read_csv, ".parquet": _read_parquet}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise QabiasError(f"{path}: unknown kind of file; its name must end in one of {', '.join(SUFFIXES)}")
    try:
        return _number(str(path), reader(path), limit)
    except (OSError, UnicodeDecodeError) as error:
        raise QabiasError(f"{path}: cannot be read ({error}); check the name and that it is UTF-8") from error


def read_dataset(name: str, config: str | None, split: str, limit: int | None = None) -> list[Row]:
    """Read the rows of a dataset.

    Args:
        name: Name on the Hub, or a folder.
        config: Its configuration; None for its only one.
        split: Its split.
        limit: Most rows, the first ones; None for all.

    Raises:
        QabiasError: If the dataset cannot be had or has no rows.
    """
    import datasets

    try:
        dataset = datasets.load_dataset(name, config, split=split)
    except Exception as error:  # load_dataset raises whatever its readers raise
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise QabiasError(
            f"dataset {name!r} cannot be loaded: {reason}; check its name, --config and splits and the network, "
            "or give files with --train and --dev"
        ) from error
    return _number(f"{name}:{split}", dataset, limit)


def _number(source: str, rows: Iterable[Mapping[str, Any]], limit: int | None) -> list[Row]:
    found = []
    for number, values in enumerate(rows, start=1):
        if limit is not None and number > limit:
            break
        found.append(Row(source, number, values))
    if not found:
        raise QabiasError(f"{source}: has no rows; give a file or split that has")
    return found


def _read_json_lines(path: Path) -> Iterable[Mapping[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                values = json.loads(line)
            except json.JSONDecodeError as error:
                raise QabiasError(f"{path}: line {number} is not JSON ({error}); write one object a line") from error
            if not isinstance(values, dict):
                raise QabiasError(f"{path}: line {number} is no object; write one object with all columns a line")
            yield values


def _read_csv(path: Path) -> Iterable[Mapping[str, Any]]:
    with path.open(encoding="utf-8", newline="") as lines:
        try:
            yield from csv.DictReader(lines)
        except csv.Error as error:
            raise QabiasError(f"{path}: is no CSV ({error}); save it anew or as JSON lines") from error


def _read_parquet(path: Path) -> Iterable[Mapping[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(path).to_pylist()
    except pa.ArrowInvalid as error:
        raise QabiasError(f"{path}: is no Parquet file ({error}); save it anew") from error


def fingerprint(examples: Iterable[Any]) -> str:
    """SHA-256 of examples in their order, which tells whether a run goes on with the data it began with."""
    digest = hashlib.sha256()
    for example in examples:
        digest.update(repr(example).encode())
        digest.update(b"\n")
    return digest.hexdigest()
