"""Users' tables (CSV, JSON lines, Parquet) as Arrow columns, and CSV row by row."""

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json

from qabias.errors import QabiasError
from qabias.support.arrow import read_users_parquet
from qabias.support.files import regular
from qabias.support.suggest import missing, shortened

_READERS = {
    ".parquet": read_users_parquet,
    ".csv": pyarrow.csv.read_csv,
    ".jsonl": pyarrow.json.read_json,
    ".json": pyarrow.json.read_json,
}


def read_table(path: Path) -> pa.Table:
    """Read a table, by the file's ending; CSV column types are inferred."""
    known = ", ".join(_READERS)
    if path.is_dir():
        raise QabiasError(f"{path}: is a folder.", f"Name a file whose name ends in one of {known}.")
    if not path.exists():
        raise missing(path)
    read = _READERS.get(path.suffix.lower())
    if read is None:
        raise QabiasError(f"{path}: unknown kind of file.", f"Use a name that ends in one of {known}.")
    try:
        return read(regular(path))
    except OSError as error:
        raise _unreadable(path, path.suffix[1:], error) from error
    except pa.ArrowInvalid as error:
        why = " ".join(str(error).split())
        raise QabiasError(f"{path} is not readable as {path.suffix[1:]}: {why}.", "Write it again.") from error


def check_columns(table: pa.Table, where: str) -> None:
    """Refuse a table with a repeated column name."""
    twice = [name for name, n in Counter(table.column_names).items() if n > 1]
    if twice:
        raise QabiasError(
            f"{where}: {Counter(table.column_names)[twice[0]]} columns have the name {shortened(twice[0])}.",
            "Keep one.",
        )


def read_csv_rows(path: Path, columns: Sequence[str] = (), what: str = "") -> Iterator[tuple[int, dict[str, Any]]]:
    """Read a CSV file with a header row by row."""
    try:
        with regular(path).open(encoding="utf-8-sig", newline="") as file:
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
        return QabiasError(f"{path} cannot be read: {error.strerror or error}.", "Make it readable.")
    return QabiasError(f"{path} is not {kind} in UTF-8: {error}.", "Save it as UTF-8.")
