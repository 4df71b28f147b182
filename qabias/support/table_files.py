"""Reading somebody's table: CSV, JSON lines or Parquet, as columns of an Arrow table; CSV row by row too."""

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json

from qabias.errors import QabiasError
from qabias.support.arrow import read_parquet
from qabias.support.suggest import missing, shortened

_READERS = {
    ".parquet": read_parquet,
    ".csv": pyarrow.csv.read_csv,
    ".jsonl": pyarrow.json.read_json,
    ".json": pyarrow.json.read_json,
}


def read_table(path: Path) -> pa.Table:
    """Read a table from a file whose ending tells its kind; the types of CSV columns are guessed."""
    known = ", ".join(_READERS)
    if path.is_dir():
        raise QabiasError(f"{path}: is a folder.", f"Name a file whose name ends in one of {known}.")
    if not path.exists():
        raise missing(path)
    read = _READERS.get(path.suffix.lower())
    if read is None:
        raise QabiasError(f"{path}: unknown kind of file.", f"Its name must end in one of {known}.")
    try:
        return read(path)
    except OSError as error:
        raise _unreadable(path, path.suffix[1:], error) from error
    except pa.ArrowInvalid as error:
        raise QabiasError(f"{path}: not readable as {path.suffix[1:]}: {' '.join(str(error).split())}") from error


def check_columns(table: pa.Table, where: str) -> None:
    """Refuse a table in which two columns have one name."""
    twice = [name for name, n in Counter(table.column_names).items() if n > 1]
    if twice:
        raise QabiasError(
            f"{where}: {Counter(table.column_names)[twice[0]]} columns have the name {shortened(twice[0])}.",
            "Keep one.",
        )


def read_csv_rows(path: Path, columns: Sequence[str] = (), what: str = "") -> Iterator[tuple[int, dict[str, Any]]]:
    """Read a CSV file with a header row by row."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            missing = [name for name in columns if name not in (reader.fieldnames or [])]
            if missing:
                must_be = f"this must be {what}" if what else "it needs"
                raise QabiasError(f"{path}: no column {', '.join(missing)}.", f"{must_be}: {', '.join(columns)}.")
            for row in reader:
                yield reader.line_num, row
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise _unreadable(path, "a CSV file", error) from error


def _unreadable(path: Path, kind: str, error: Exception) -> QabiasError:
    if isinstance(error, FileNotFoundError):
        return missing(path)
    if isinstance(error, IsADirectoryError):
        return QabiasError(f"{path}: is a folder.", "Name a file.")
    if isinstance(error, OSError):
        return QabiasError(f"{path}: cannot be read: {error.strerror or error}")
    return QabiasError(f"{path}: not {kind} in UTF-8: {error}")
