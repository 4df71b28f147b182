"""The files of inspect_ai: a zip of one JSON document for each sample (`.eval`), or one JSON document (`.json`).

Both are read one sample after the other, so that memory does not grow with the log.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from qabias.errors import QabiasError
from qabias.logs.json_stream import JsonStream, items, keys
from qabias.support.suggest import first_line

_HEADER, _START, _SAMPLES = "header.json", "_journal/start.json", "samples/"
_SUFFIX = ".eval"
_LOCAL_HEADER = b"PK\x03\x04"
_LOCAL_HEADER_BYTES = 30
_ZSTANDARD = 93
"""The number of the compression that inspect writes, in the zip format."""

# A JSON log begins so; inspect reads it by this order too.
_JSON_START = re.compile(rb'\s*\{\s*"version":\s*\d+,\s*"status":\s*"[a-z]+",\s*"eval":\s*\{')
_JSON_START_BYTES = 256


@dataclass(frozen=True)
class InspectFile:
    """A log of inspect_ai, whichever of its two forms it has."""

    header: Mapping[str, Any]
    samples: Callable[[], Iterator[tuple[str, Any]]]


def open_file(path: Path) -> InspectFile | None:
    """Open a log; None where the file is none of inspect_ai."""
    with path.open("rb") as file:
        start = file.read(_JSON_START_BYTES)
    # Only the name is left of a log of which nothing was copied.
    if not start and path.suffix == _SUFFIX:
        raise QabiasError(f"{path}: an empty log of inspect_ai (0 bytes); copy it again from where inspect wrote it")
    if start.startswith(_LOCAL_HEADER):
        return _open_zip(path, start)
    return _open_json(path) if _JSON_START.match(start) else None


def _open_zip(path: Path, start: bytes) -> InspectFile | None:
    try:
        with ZipFile(path) as archive:
            name = next((name for name in (_HEADER, _START) if name in archive.namelist()), None)
            if name is None:
                return None
            _can_decompress(path, archive)
            header = _member(path, archive, name)
    except BadZipFile as error:
        if not start[_LOCAL_HEADER_BYTES:].startswith((_START.encode(), _SAMPLES.encode(), _HEADER.encode())):
            return None
        raise QabiasError(
            f"{path}: a log of inspect_ai that is cut off or damaged: the list of its samples, which stands at the end "
            f"of the file, is missing, so nobody can tell what else was in it; it has {path.stat().st_size:,} bytes; "
            "copy it again from where inspect wrote it"
        ) from error
    return InspectFile(header, lambda: _zip_samples(path))


def _can_decompress(path: Path, archive: ZipFile) -> None:
    """Have the compression of a log understood: before 3.14 Python needs a package for it, which inspect_ai brings."""
    if all(member.compress_type != _ZSTANDARD for member in archive.infolist()) or hasattr(zipfile, "ZIP_ZSTANDARD"):
        return
    try:
        import_module("zipfile_zstd")
    except ImportError as error:
        raise QabiasError(
            f"{path}: this log is compressed by Zstandard, which Python reads from 3.14 on and before only with a "
            'package: pip install "qabias[inspect]"'
        ) from error


def _zip_samples(path: Path) -> Iterator[tuple[str, Any]]:
    with ZipFile(path) as archive:
        # A sample that was asked again stands there twice under one name, by which the last one is found.
        for name in dict.fromkeys(archive.namelist()):
            if name.startswith(_SAMPLES) and name.endswith(".json"):
                yield name, _member(path, archive, name)


def _member(path: Path, archive: ZipFile, name: str) -> Mapping[str, Any]:
    try:
        found = json.loads(archive.read(name))
    except Exception as error:  # every kind of compression has exceptions of its own
        raise QabiasError(
            f"{path}: {name} in this log of inspect_ai is damaged ({first_line(error)}); copy the log again from where "
            "inspect wrote it"
        ) from error
    if not isinstance(found, dict):
        raise QabiasError(f"{path}: {name} in this log of inspect_ai is no object of JSON")
    return found


def _open_json(path: Path) -> InspectFile:
    header = {}
    with _stream(path) as stream:
        for key in keys(stream):
            if key == "samples":
                break
            header[key] = stream.value()
    return InspectFile(header, lambda: _json_samples(path))


def _json_samples(path: Path) -> Iterator[tuple[str, Any]]:
    with _stream(path) as stream:
        for key in keys(stream):
            if key == "samples":
                for number, found in enumerate(items(stream), 1):
                    yield f"sample number {number}", found
                return
            stream.value()


def _stream(path: Path) -> JsonStream:
    return JsonStream(path, "a log of inspect_ai", "copy it again from where inspect wrote it")
