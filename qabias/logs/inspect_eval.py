"""Logs of inspect_ai, of any task: a zip of JSON documents (`.eval`) or one JSON document (`.json`)."""

from __future__ import annotations

import json
import math
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile, ZipFile

from qabias.errors import QabiasError
from qabias.logs import Log, Sample, as_written
from qabias.support.suggest import first_line, install

TOOL = "inspect_ai"

_FINISHED = "success"
_KEPT = ("task_registry_name", "config")
"""Fields of `eval` that are kept."""

_ASKED = ("id", "input", "choices", "target", "metadata")
_ATTACHMENT = "attachment://"  # prefix of the name of a text that is stored once per sample

_HEADER, _START, _SAMPLES = "header.json", "_journal/start.json", "samples/"
_SUFFIX = ".eval"
_LOCAL_HEADER = b"PK\x03\x04"
_LOCAL_HEADER_BYTES = 30
_ZSTANDARD = 93  # number of this compression in the zip format; inspect writes it

# The beginning of a JSON log; inspect relies on this order too.
_JSON_START = re.compile(rb'\s*\{\s*"version":\s*\d+,\s*"status":\s*"[a-z]+",\s*"eval":\s*\{')
_JSON_START_BYTES = 256

_MOST_BYTES, _READ_BYTES = 1 << 27, 1 << 12  # maximum bytes of a sample or a header, and bytes unpacked at once

_COPY = "Copy the original log again."


def read(path: Path) -> Log | None:
    """Read a log, `.eval` or `.json`; None for other files."""
    file = open_file(path)
    if file is None:
        return None
    with as_written(f"{path}: the header of this log", TOOL):
        spec = file.header.get("eval")
        if not isinstance(spec, dict) or not {"task", "dataset"} <= set(spec):
            return None
        return _log(path, file, spec)


def _log(path: Path, file: InspectFile, spec: Mapping[str, Any]) -> Log:
    config, packages, results = spec.get("config") or {}, spec.get("packages") or {}, file.header.get("results") or {}
    if config.get("log_samples") is False:
        raise QabiasError(f"{path}: this log of inspect_ai has no samples.", "Rerun the task without --no-log-samples.")
    status = str(file.header.get("status", "started"))
    # An unfinished log still lists all samples.
    n_meant = len((spec["dataset"] or {}).get("sample_ids") or ()) * int(config.get("epochs") or 1)
    return Log(
        path=path,
        tool=TOOL,
        version=str(packages.get(TOOL) or ""),
        task=str(spec["task"] or ""),
        model=str(spec.get("model") or ""),
        settings={"status": status} | {name: spec[name] for name in _KEPT if spec.get(name) is not None},
        samples=lambda: _samples(path, file),
        figures=_figures(results),
        n_expected=int(results.get("total_samples") or n_meant) or None,
        notes=() if status == _FINISHED else (_unfinished(path, status, file.header.get("error") or {}),),
    )


def _figures(results: Mapping[str, Any]) -> dict[str, float]:
    """Metrics named `scorer/reducer/metric`; the reducer is how several epochs were combined."""
    figures = {}
    for score in results.get("scores") or ():
        group = "/".join(filter(None, (score["name"], score.get("reducer"))))
        for name, metric in (score.get("metrics") or {}).items():
            figures[f"{group}/{name}"] = math.nan if metric["value"] is None else float(metric["value"])
    return figures


def _unfinished(path: Path, status: str, error: Mapping[str, Any]) -> str:
    because = f" ({_first_line(error['message'])})" if error.get("message") else ""
    return (
        f"This evaluation of inspect is not finished (status {status}{because}). To finish it, run `inspect eval-retry "
        f"{path.name}`."
    )


def _samples(path: Path, file: InspectFile) -> Iterator[Sample]:
    for place, content in file.samples():
        with as_written(f"{path}: {place} in this log", TOOL):
            sample = _sample(content)
        yield sample


def _sample(content: Mapping[str, Any]) -> Sample:
    epoch, output = int(content.get("epoch") or 1), content.get("output") or {}
    choices, attached = output.get("choices") or (), content.get("attachments") or {}
    choice = choices[0] if choices else {}
    answers = {name: score.get("answer") for name, score in (content.get("scores") or {}).items()}
    return Sample(
        where=f"sample {content.get('id')}" + (f", epoch {epoch}" if epoch > 1 else ""),
        asked={name: _with_attached(content[name], attached) for name in _ASKED if name in content},
        answer=next((answer for answer in answers.values() if answer is not None), None),
        text=_with_attached(str(output.get("completion") or ""), attached) if choices else None,
        finish=str(choice.get("stop_reason") or ""),
        error=_error(content),
        run=epoch,
        thinking=_thinking(choice),
        answers=answers,
    )


def _error(sample: Mapping[str, Any]) -> str:
    if sample.get("error"):
        return _first_line(sample["error"].get("message") or "unknown error")
    if sample.get("invalidation"):
        return f"marked as invalid: {sample['invalidation'].get('reason') or 'no reason'}"
    return ""


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0].rstrip(".")


def _thinking(choice: Mapping[str, Any]) -> str:
    content = (choice.get("message") or {}).get("content")
    parts = content if isinstance(content, list) else ()
    return "\n".join(filter(None, (part.get("reasoning") for part in parts if part.get("type") == "reasoning")))


def _with_attached(value: Any, attached: Mapping[str, str]) -> Any:
    """Replace references to texts that inspect stores once per sample."""
    if isinstance(value, str):
        return attached.get(value.removeprefix(_ATTACHMENT), value) if value.startswith(_ATTACHMENT) else value
    if isinstance(value, list):
        return [_with_attached(item, attached) for item in value]
    if isinstance(value, dict):
        return {key: _with_attached(item, attached) for key, item in value.items()}
    return value


class InspectFile(NamedTuple):
    """A log in either of its two formats."""

    header: Mapping[str, Any]
    samples: Callable[[], Iterator[tuple[str, Any]]]


def open_file(path: Path) -> InspectFile | None:
    """Open a log; None for other files."""
    with path.open("rb") as file:
        start = file.read(_JSON_START_BYTES)
    # A failed copy leaves an empty file.
    if not start and path.suffix == _SUFFIX:
        raise QabiasError(f"{path}: an empty log of inspect_ai (0 bytes).", _COPY)
    if start.startswith(_LOCAL_HEADER):
        return _open_zip(path, start)
    if not _JSON_START.match(start):
        return None
    header = _read_json(path)
    header.pop("samples", None)  # these are read one by one
    return InspectFile(
        header, lambda: ((f"sample number {n}", one) for n, one in enumerate(_read_json(path).get("samples") or (), 1))
    )


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
        raise QabiasError(f"{path}: damaged log of inspect_ai ({path.stat().st_size:,} bytes).", _COPY) from error
    return InspectFile(header, lambda: _zip_samples(path))


def _can_decompress(path: Path, archive: ZipFile) -> None:
    """Check that Python can read the compression: before 3.14 it needs a package that comes with inspect_ai."""
    if all(member.compress_type != _ZSTANDARD for member in archive.infolist()) or hasattr(zipfile, "ZIP_ZSTANDARD"):
        return
    try:
        import_module("zipfile_zstd")
    except ImportError as error:
        raise QabiasError(
            f"{path}: this log is compressed by Zstandard, which Python before 3.14 cannot read.", install("inspect")
        ) from error


def _zip_samples(path: Path) -> Iterator[tuple[str, Any]]:
    with ZipFile(path) as archive:
        # A repeated sample occurs twice under one name, which finds the last one.
        for name in dict.fromkeys(archive.namelist()):
            if name.startswith(_SAMPLES) and name.endswith(".json"):
                yield name, _member(path, archive, name)


def _member(path: Path, archive: ZipFile, name: str) -> Mapping[str, Any]:
    n_bytes = archive.getinfo(name).file_size
    if n_bytes > _MOST_BYTES:
        raise QabiasError(f"{path}: {name} has {n_bytes:,} bytes, more than {_MOST_BYTES:,}.", "Use another copy.")
    try:
        with archive.open(name) as file:  # in small steps: the stated size may be wrong
            content: Mapping[str, Any] = json.loads(b"".join(iter(partial(file.read, _READ_BYTES), b"")))
        return content
    except Exception as error:  # each compression has its own exceptions
        raise QabiasError(f"{path}: {name} in this log is damaged ({first_line(error)}).", _COPY) from error


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise QabiasError(f"{path}: truncated or damaged log of inspect_ai ({first_line(error)}).", _COPY) from error
    return content
