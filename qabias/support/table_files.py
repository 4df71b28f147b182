"""Reading somebody's table: CSV, JSON lines or Parquet."""

from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from qabias.errors import QabiasError

_READERS = {
    ".parquet": pq.read_table,
    ".csv": pyarrow.csv.read_csv,
    ".jsonl": pyarrow.json.read_json,
    ".json": pyarrow.json.read_json,
}


def read_table(path: Path) -> pa.Table:
    """Read a table from a file whose ending tells its kind.

    Raises:
        QabiasError: If there is no such file, its kind is unknown, or it cannot be read as that kind.
    """
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise QabiasError(f"{path}: unknown kind of file; its name must end in one of {', '.join(_READERS)}")
    try:
        return reader(path)
    except FileNotFoundError as error:
        raise QabiasError(f"{path}: no such file") from error
    except pa.ArrowInvalid as error:
        raise QabiasError(f"{path}: not readable as {path.suffix[1:]}: {' '.join(str(error).split())}") from error
