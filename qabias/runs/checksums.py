"""Parts of a run: Parquet files that name their run and detect any changed bit."""

from __future__ import annotations

import hashlib
import re
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from qabias.errors import QabiasError
from qabias.support.files import MOST_BYTES, require_regular_file, write_atomically

_KEY = b"qabias"
_NO_CHECKSUM = b"0" * 64
_COMPRESSION = "zstd"
_CHECKSUM = re.compile(rb"run=([0-9a-f]{64}) file=([0-9a-f]{64})")


def write_checked(path: Path, table: pa.Table, run: str, *, lasting: bool = False) -> None:
    """Write a part of a run with its checksum, atomically; equal answers give equal bytes."""
    marked = table.replace_schema_metadata({_KEY: b"run=%b file=%b" % (run.encode(), _NO_CHECKSUM)})
    buffer = pa.BufferOutputStream()
    pq.write_table(marked, buffer, compression=_COMPRESSION)
    content = bytearray(buffer.getvalue())
    [*_, checksum] = _CHECKSUM.finditer(content)
    content[slice(*checksum.span(2))] = hashlib.sha256(content).hexdigest().encode()
    write_atomically(path, partial(Path.write_bytes, data=content), lasting=lasting)


def read_checked(path: Path, run: str) -> pa.Table:
    """Read a part of a run and verify its checksum."""
    try:
        content = require_regular_file(path, MOST_BYTES).read_bytes()
    except OSError as error:
        raise QabiasError(
            f"{path} cannot be read: {error.strerror or error}.",
            "Keep the file, make it readable, and rerun the command.",
        ) from error
    _check(path, content, run)
    try:
        # Without threads: one that releases these bytes while Python ends would abort the process.
        table = pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False)
        return table.replace_schema_metadata(None)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise damaged(path, str(error)) from error


def _check(path: Path, content: bytes, run: str) -> None:
    checksums = list(_CHECKSUM.finditer(content))
    if not checksums:
        raise damaged(path, "its checksum is missing")
    begin, end = checksums[-1].span(2)
    digest = hashlib.sha256(content[:begin])
    digest.update(_NO_CHECKSUM)
    digest.update(memoryview(content)[end:])
    if digest.hexdigest().encode() != checksums[-1][2]:
        raise damaged(path, "it is not as it was written")
    if checksums[-1][1].decode() != run:
        raise QabiasError(
            f"{path}: holds answers of another run than {path.parent.parent / 'run.json'} names.",
            "Move the file to its own run.",
        )


def damaged(path: Path, why: str) -> QabiasError:
    """Return the error of a damaged part."""
    return QabiasError(f"{path}: damaged ({' '.join(why.split())}).", "Remove the file and run the same command again.")
