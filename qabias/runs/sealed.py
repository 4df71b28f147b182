"""Parts of a run under seal: Parquet files that say which run they are of, and in which no changed bit goes unseen.

The seal stands in the metadata of the schema: a digest of what the run measures, and the SHA-256 of the file as it is
with zeros in place of that SHA-256. It is checked before anything is read of the file.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from qabias.errors import QabiasError
from qabias.runs.arguments import RunArguments
from qabias.support.files import write_atomically

_KEY = b"qabias"
_NO_DIGEST = b"0" * 64
_SEAL = re.compile(rb"run=([0-9a-f]{64}) file=([0-9a-f]{64})")
_COMPRESSION = "zstd"


def digest_of(signature: str, arguments: RunArguments) -> str:
    """SHA-256 of what a run measures, in hexadecimal digits."""
    defaults = {field.name: field.default for field in dataclasses.fields(RunArguments)}
    given = dataclasses.asdict(arguments)
    told = {name: value for name, value in given.items() if value not in (defaults[name], {})}
    return hashlib.sha256(json.dumps([signature, told], sort_keys=True).encode()).hexdigest()


def write_sealed(path: Path, table: pa.Table, run: str, *, lasting: bool = False) -> None:
    """Write a part under seal, whole or not at all; equal answers give equal bytes."""
    sealed = table.replace_schema_metadata({_KEY: b"run=%b file=%b" % (run.encode(), _NO_DIGEST)})
    buffer = pa.BufferOutputStream()
    pq.write_table(sealed, buffer, compression=_COMPRESSION)
    content = bytearray(buffer.getvalue())
    [*_, seal] = _SEAL.finditer(content)
    content[slice(*seal.span(2))] = hashlib.sha256(content).hexdigest().encode()
    write_atomically(path, partial(Path.write_bytes, data=content), lasting=lasting)


def is_sealed(path: Path) -> bool:
    """Whether a part is under seal, of whatever run; those of older versions are not."""
    return _SEAL.search(_content(path)) is not None


def read_sealed(path: Path, run: str, *, may_be_open: bool) -> pa.Table:
    """Read a part and check its seal."""
    content = _content(path)
    seals = list(_SEAL.finditer(content))
    if seals:
        _check(path, content, seals[-1], run)
    elif not may_be_open:
        raise damaged(path, "its seal is gone")
    try:
        # A thread of Arrow that lets go of these bytes while Python ends would abort the process: it reads by itself.
        table = pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False)
        return table.replace_schema_metadata(None)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise damaged(path, str(error)) from error


def _check(path: Path, content: bytes, seal: re.Match[bytes], run: str) -> None:
    """Refuse what does not fit its seal."""
    begin, end = seal.span(2)
    digest = hashlib.sha256(content[:begin])
    digest.update(_NO_DIGEST)
    digest.update(memoryview(content)[end:])
    if digest.hexdigest().encode() != seal[2]:
        raise damaged(path, "it is not as it was written")
    if seal[1].decode() != run:
        raise QabiasError(
            f"{path}: holds answers of another run than {path.parent.parent / 'run.json'} names; if run.json was "
            "edited, put back what it said; else move the file to its own run"
        )


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise QabiasError(
            f"{path}: cannot be read ({error.strerror or error}), which says nothing of its answers: keep the file, "
            "make it readable, and run the same command again"
        ) from error


def damaged(path: Path, why: str) -> QabiasError:
    """The error of a part that cannot be used, and is made anew."""
    return QabiasError(f"{path}: damaged ({' '.join(why.split())}); remove the file and run the same command again")
