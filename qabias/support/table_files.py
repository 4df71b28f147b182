"""Users' tables (CSV, JSON, Parquet) as Arrow columns, and CSV row by row."""

import codecs
import csv
import json
import math
import re
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

_ENDINGS = (".parquet", ".csv", ".tsv", ".jsonl", ".ndjson", ".json")
_PACKED = (".gz", ".bz2")
_MOST_BYTES = 2**30  # read as one Arrow block, which must be below 2 GiB
_MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16", codecs.BOM_UTF8[:2]: "utf-8-sig"}
_WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")


def read_table(path: Path) -> pa.Table:
    """Read a table, by the file's ending; column types are inferred from the whole file."""
    known = ", ".join(_ENDINGS)
    if path.is_dir():
        raise QabiasError(f"{path}: is a folder.", f"Name a file whose name ends in one of {known}.")
    if not path.exists():
        raise missing(path)
    ending = (Path(path.stem) if path.suffix.lower() in _PACKED else path).suffix.lower()
    try:
        with regular(path).open("rb") as file:
            if file.read(4) in _WORKBOOKS:
                raise QabiasError(f"{path} is a workbook (Excel) or an archive.", "Save its sheet as CSV UTF-8.")
        if ending not in _ENDINGS:
            raise QabiasError(f"{path}: unknown kind of file.", f"Use a name that ends in one of {known}.")
        if ending == ".parquet":
            return read_users_parquet(path)
        return _read_csv(_text(path), ending) if ending in (".csv", ".tsv") else _read_json(_text(path), path)
    except OSError as error:
        raise _unreadable(path, ending[1:], error) from error
    except pa.ArrowInvalid as error:
        why = " ".join(str(error).split())[:300].rstrip(".")
        fix = "Write one object a line." if "js" in ending else "Quote texts with delimiters or line breaks."
        raise QabiasError(f"{path} is not readable as {ending[1:]}: {why}.", fix) from error


def _text(path: Path) -> str:
    """The text of a file that may be packed, in UTF-8 or UTF-16."""
    content = bytearray()
    with pa.input_stream(str(path), compression="detect") as file:
        while piece := file.read(2**20):
            content += piece
            if len(content) > _MOST_BYTES:
                raise QabiasError(f"{path}: more than {_MOST_BYTES // 2**30} GiB of text.", "Save it as Parquet.")
    encoding = _MARKS.get(bytes(content[:2]), "utf-16-le" if content[1:2] == b"\0" else "utf-8")
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise QabiasError(f"{path}: line {line} is not {encoding.upper()}.", "Save it as UTF-8.") from error


def _read_csv(text: str, ending: str) -> pa.Table:
    """CSV with the delimiter that its first line names, or has most often."""
    head, _, rest = text.partition("\n")
    named = re.fullmatch(r"sep=(.)\r?", head)
    names = re.sub('"[^"]*"', "", head)
    delimiter = named[1] if named else max("\t,;|" if ending == ".tsv" else ",;\t|", key=names.count)
    content = (rest if named else text).encode()
    return pyarrow.csv.read_csv(
        pa.BufferReader(content),
        # One block: types come from all rows, and Arrow loses a byte of a line break at a block's edge.
        read_options=pyarrow.csv.ReadOptions(block_size=len(content) + 1),
        parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
    )


def _read_json(text: str, path: Path) -> pa.Table:
    """JSON lines, or a list of objects."""
    content = text.encode()
    options = pyarrow.json.ReadOptions(block_size=len(content) + 1)
    try:
        return pyarrow.json.read_json(pa.BufferReader(content), read_options=options)
    except pa.ArrowInvalid as error:  # a list, or values of several types in a column
        is_list = text.lstrip().startswith("[")
        try:
            # `splitlines` would also split inside JSON strings.
            rows = json.loads(text) if is_list else [json.loads(line) for line in text.split("\n") if line.strip()]
            names = dict.fromkeys(name for row in rows for name in row.keys())  # noqa: SIM118 - only objects have keys
        except (ValueError, RecursionError, AttributeError):
            raise error from None
        return pa.table({name: to_column([row.get(name) for row in rows], f"{path}: {name}") for name in names})


def to_column(values: Any, what: str) -> pa.Array:
    """Values as an Arrow array; None and NaN are null, and numbers and objects among texts become texts."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    listed = values.tolist() if hasattr(values, "tolist") else list(values)
    listed = [None if isinstance(value, float) and math.isnan(value) else value for value in listed]
    if any(isinstance(value, str) for value in listed):
        listed = [value if value is None or isinstance(value, str) else _as_text(value) for value in listed]
    try:
        return pa.array(listed)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise QabiasError(f"{what}: its values are not of one type ({error}).", "Give numbers or texts.") from error


def _as_text(value: Any) -> str:
    return json.dumps(value, default=str) if isinstance(value, dict) else str(value)


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
