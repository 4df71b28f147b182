"""Users' tables, from files (CSV, JSON, Parquet) and from memory, as Arrow columns; CSV row by row."""

import codecs
import csv
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from qabias.errors import QabiasError
from qabias.support.arrow import read_users_parquet
from qabias.support.files import require_regular_file
from qabias.support.suggest import first_line, missing, shortened

_ENDINGS = (".parquet", ".csv", ".tsv", ".jsonl", ".ndjson", ".json")
_MOST_MB = 1024  # read as one Arrow block, which must be below 2 GiB
_UTF16, _UTF32 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE), (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
ORIGIN_MARK = "Loaded by qabias: "
"""What begins the line of a dataset's description with the origin of its rows."""

_WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")


def read_table(path: Path) -> pa.Table:
    """Read a table, by the file's ending; column types are inferred from the whole file."""
    ending = (Path(path.stem) if path.suffix.lower() in (".gz", ".bz2") else path).suffix.lower()
    try:
        with require_regular_file(path).open("rb") as file:
            begin = file.read(4)
            if begin in _WORKBOOKS:
                raise QabiasError(f"{path} is a workbook (Excel) or an archive.", "Save its sheet as CSV UTF-8.")
        if ending not in _ENDINGS:
            raise QabiasError(
                f"{path}: unknown kind of file.", f"Use a name that ends in one of {', '.join(_ENDINGS)}."
            )
        if ending == ".parquet":
            return read_users_parquet(path)
        text = _text(path, "gzip" if begin[:2] == b"\x1f\x8b" else "bz2" if begin[:3] == b"BZh" else None)
        return _read_csv(text) if ending in (".csv", ".tsv") else _read_json(text, path)
    except QabiasError:
        raise
    except OSError as error:
        raise _unreadable(path, ending[1:], error) from error
    except (ValueError, RecursionError) as error:
        fix = "write one object a line." if "js" in ending else "quote texts with delimiters or line breaks."
        problem = f"{path} is not readable as {ending[1:]}: {first_line(error)[:300]}."
        raise QabiasError(problem, f"Save it as UTF-8, and {fix}") from error


def _text(path: Path, packed: str | None) -> str:
    """The text of a file, in UTF-8, UTF-16 or UTF-32."""
    with pa.input_stream(str(require_regular_file(path, _MOST_MB * 2**20)), compression=packed) as file:
        content = b"".join(islice(iter(partial(file.read, 2**20), b""), _MOST_MB + 1))
    if len(content) > _MOST_MB * 2**20:
        raise QabiasError(f"{path}: more than {_MOST_MB:,} MB of text.", "Save it as Parquet.")
    unmarked = {0: "utf-16-be", 1: "utf-16-le"}.get(content[:2].find(b"\0"), "utf-8-sig")
    marked = "utf-32" if content[:4] in _UTF32 else "utf-16" if content[:2] in _UTF16 else ""
    return content.decode(marked or unmarked)


def _read_csv(text: str) -> pa.Table:
    """CSV with the delimiter that its first line names, or has most often."""
    head, _, rest = text.partition("\n")
    named = re.fullmatch(r"sep=(.)\r?", head)
    delimiter = named[1] if named else max(",;\t|", key=re.sub('"[^"]*"', "", head).count)
    content = (rest if named else text).encode()
    return pyarrow.csv.read_csv(
        pa.BufferReader(content),
        # One block: types come from all rows, and Arrow loses a byte of a line break at a block's edge.
        read_options=pyarrow.csv.ReadOptions(block_size=len(content) + 1),
        parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
    )


def _read_json(text: str, path: Path) -> pa.Table:
    """JSON lines, or a list of objects."""
    if not text.lstrip().startswith("["):  # `splitlines` would also split inside JSON strings
        text = "[" + ",\n".join(line for line in text.split("\n") if line.strip()) + "]"
    return from_rows(json.loads(text), str(path))


def is_table(rows: object) -> bool:
    """Return whether an object is a table, not a sequence of single values."""
    if isinstance(rows, Mapping) or hasattr(rows, "column_names") or hasattr(rows, "columns"):
        return True
    return isinstance(rows, Sequence) and bool(rows) and all(isinstance(row, Mapping) for row in rows)


def to_table(rows: Any, what: str) -> pa.Table:
    """A user's table as an Arrow table; NaN becomes null, like None."""
    if not is_table(rows):
        raise QabiasError(
            f"{what} are a {type(rows).__name__}.",
            "Give a datasets.Dataset, a data frame, an Arrow table, columns by name, or a list of rows.",
        )
    if isinstance(rows, pa.Table):
        return rows
    if hasattr(rows, "with_format"):
        return rows.with_format("arrow")[:]
    if hasattr(rows, "notna"):  # a data frame, whose missing values have several types
        rows = rows.astype(object).where(rows.notna(), None)
    try:
        if not hasattr(rows, "items"):
            return from_rows(rows, what)
        columns = [to_column(values, f"{what}: column {name}") for name, values in rows.items()]
        return pa.table(columns, list(map(str, rows.keys())))
    except (pa.ArrowInvalid, pa.ArrowTypeError, AttributeError) as error:
        raise QabiasError(
            f"{what}: not a table ({' '.join(str(error).split())}).", "Give one value per row and column."
        ) from error


def origin_of(rows: object) -> list[dict[str, Any]]:
    """Return the origin that rows record."""
    lines = str(getattr(getattr(rows, "info", None), "description", None)).splitlines()
    return [json.loads(line.removeprefix(ORIGIN_MARK)) for line in lines if line.startswith(ORIGIN_MARK)]


def from_rows(rows: Sequence[Mapping[str, Any]], what: str) -> pa.Table:
    """Rows as a table with the columns of all of them."""
    if not all(isinstance(row, Mapping) for row in rows):
        raise QabiasError(f"{what}: a row is no object.", "Give an object with names and values in each row.")
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: to_column([row.get(name) for row in rows], f"{what}: {name}") for name in names})


def to_column(values: Any, what: str) -> pa.Array:
    """Values as an Arrow array; None and NaN are null, and numbers and objects among texts become texts."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    listed = values.tolist() if hasattr(values, "tolist") else list(values)
    listed = [None if isinstance(value, float) and math.isnan(value) else value for value in listed]
    if any(isinstance(value, str) for value in listed):
        listed = [json.dumps(value, default=str) if isinstance(value, dict) else value for value in listed]
        listed = [value if value is None else str(value) for value in listed]
    try:
        return pa.array(listed, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise QabiasError(f"{what}: its values are not of one type ({error}).", "Give numbers or texts.") from error


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
        with require_regular_file(path).open(encoding="utf-8-sig", newline="") as file:
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
