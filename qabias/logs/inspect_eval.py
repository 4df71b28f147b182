"""Logs of inspect_ai, of any task: a zip of JSON documents (`.eval`), or one JSON document (`.json`)."""

from __future__ import annotations

import json
import math
import re
import reprlib
import zipfile
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from zipfile import BadZipFile, ZipFile

from qabias.errors import QabiasError
from qabias.logs.model import Log, Sample, as_written
from qabias.support.suggest import first_line

T = TypeVar("T")

TOOL = "inspect_ai"

_FINISHED = "success"
_KEPT = (
    *("task_version", "task_registry_name", "task_args", "created", "solver", "packages", "config"),
    *("model_generate_config", "metadata", "tags"),
)
"""What a log says of its evaluation that is kept, of the names in its `eval`."""

_ASKED = ("id", "input", "choices", "target", "metadata")
# What stands elsewhere in a sample is named so where it is used; the second is how older versions write it.
_ATTACHMENTS = ("attachment://", "tc://")

_KINDS: Mapping[type, str] = {dict: "an object", list: "a list", str: "a text", int: "a whole number"}
_HEADER, _START, _SAMPLES = "header.json", "_journal/start.json", "samples/"
_SUFFIX = ".eval"
_LOCAL_HEADER = b"PK\x03\x04"
_LOCAL_HEADER_BYTES = 30
_ZSTANDARD = 93
"""The number of the compression that inspect writes, in the zip format."""

# A JSON log begins so; inspect reads it by this order too.
_JSON_START = re.compile(rb'\s*\{\s*"version":\s*\d+,\s*"status":\s*"[a-z]+",\s*"eval":\s*\{')
_JSON_START_BYTES = 256


def read(path: Path) -> Log | None:
    """The log of inspect_ai in a file, `.eval` or `.json`; None where it is none."""
    file = open_file(path)
    spec = file.header.get("eval") if file else None
    if file is None or not isinstance(spec, dict) or not {"task", "dataset"} <= set(spec):
        return None
    with as_written(f"{path}: the header of this log", TOOL):
        return _log(path, file, spec)


def _log(path: Path, file: InspectFile, spec: Mapping[str, Any]) -> Log:
    if _typed(spec, "config", dict, {}).get("log_samples") is False:
        raise QabiasError(f"{path}: this log of inspect_ai holds no samples; ask again without --no-log-samples")
    _typed(spec, "task_registry_name", str, "")
    return Log(
        path=path,
        tool=TOOL,
        version=_typed(_typed(spec, "packages", dict, {}), TOOL, str, ""),
        task=_typed(spec, "task", str, ""),
        model=_typed(spec, "model", str, ""),
        settings={"status": _status(file.header)} | {name: spec[name] for name in _KEPT if spec.get(name) is not None},
        samples=lambda: _samples(path, file),
        figures=_figures(file.header),
        n_expected=_n_expected(file.header),
        notes=tuple(_notes(path, file.header)),
    )


def _checked(value: Any, kind: type[T], what: str) -> T:
    """A value of a kind."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{what} is {reprlib.repr(value)}, not {_KINDS[kind]}")
    return value


def _typed(content: Mapping[str, Any], name: str, kind: type[T], default: T) -> T:
    """A value of an object; the default where it has none."""
    value = content.get(name)
    return default if value is None else _checked(value, kind, name)


def _status(header: Mapping[str, Any]) -> str:
    return str(header.get("status", "started"))


def _results(header: Mapping[str, Any]) -> Mapping[str, Any]:
    return _typed(header, "results", dict, {})


def _figures(header: Mapping[str, Any]) -> dict[str, float]:
    """The metrics by name, with their scorer before it, and between the two how several epochs were made one."""
    figures = {}
    for score in _typed(_results(header), "scores", list, []):
        group = "/".join(filter(None, (score["name"], score.get("reducer"))))
        for name, metric in _typed(score, "metrics", dict, {}).items():
            _checked(metric, dict, f"the metric {name}")
            figures[f"{group}/{name}"] = math.nan if metric["value"] is None else float(metric["value"])
    return figures


def _n_expected(header: Mapping[str, Any]) -> int | None:
    """Samples times epochs; where inspect has not come to the end, by the list of the samples that it meant to ask."""
    total = _typed(_results(header), "total_samples", int, 0)
    if total:
        return total
    spec = header["eval"]
    ids = _typed(_typed(spec, "dataset", dict, {}), "sample_ids", list, [])
    epochs = _typed(_typed(spec, "config", dict, {}), "epochs", int, 1)
    return len(ids) * epochs if ids else None


def _notes(path: Path, header: Mapping[str, Any]) -> Iterator[str]:
    status = _status(header)
    if status != _FINISHED:
        why = _typed(_typed(header, "error", dict, {}), "message", str, "")
        because = f" ({_first_line(why)})" if why else ""
        yield (
            f"inspect has not come to the end of this evaluation, its status is {status}{because}; `inspect eval-retry "
            f"{path.name}` asks what is missing"
        )


def _samples(path: Path, file: InspectFile) -> Iterator[Sample]:
    for place, content in file.samples():
        with as_written(f"{path}: {place} in this log", TOOL):
            sample = _sample(_checked(content, dict, "it"))
        yield sample


def _sample(content: Mapping[str, Any]) -> Sample:
    """A sample without its messages and events, which are the larger part of it."""
    epoch = _typed(content, "epoch", int, 1)
    output = _typed(content, "output", dict, {})
    choices = _typed(output, "choices", list, [])
    choice = _checked(choices[0], dict, "its first choice") if choices else None
    attached = _typed(content, "attachments", dict, {})
    _typed(content, "metadata", dict, {})
    answers = _answers(content)
    return Sample(
        where=f"sample {content.get('id')}" + (f", epoch {epoch}" if epoch > 1 else ""),
        asked={name: _with_attached(content[name], attached) for name in _ASKED if name in content},
        answer=next((answer for answer in answers.values() if answer is not None), None),
        text=None if choice is None else _with_attached(_typed(output, "completion", str, ""), attached),
        finish=_typed(choice or {}, "stop_reason", str, ""),
        error=_error(content),
        run=epoch,
        thinking=_thinking(choice or {}),
        answers=answers,
    )


def _answers(sample: Mapping[str, Any]) -> dict[str, Any]:
    """What each scorer says that it has read; older versions have but one, under another name."""
    old = _typed(sample, "score", dict, {})
    scores = {"": old} if old else _typed(sample, "scores", dict, {})
    return {name: _checked(score, dict, f"the score of {name}").get("answer") for name, score in scores.items()}


def _error(sample: Mapping[str, Any]) -> str:
    if sample.get("error"):
        return _first_line(_typed(_typed(sample, "error", dict, {}), "message", str, "") or "unknown error")
    if sample.get("invalidation"):
        reason = _typed(_typed(sample, "invalidation", dict, {}), "reason", str, "")
        return "marked as invalid" + (f": {reason}" if reason else "")
    return ""


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0].rstrip(".")


def _thinking(choice: Mapping[str, Any]) -> str:
    content = _typed(choice, "message", dict, {}).get("content")
    if not isinstance(content, list):
        return ""
    parts = [_checked(part, dict, "a part of its message") for part in content]
    return "\n".join(filter(None, (part.get("reasoning") for part in parts if part.get("type") == "reasoning")))


def _with_attached(value: Any, attached: Mapping[str, str]) -> Any:
    """A value with long texts put back that inspect keeps once for all places where they stand."""
    if isinstance(value, str):
        start = next((start for start in _ATTACHMENTS if value.startswith(start)), None)
        return value if start is None else attached.get(value[len(start) :], value)
    if isinstance(value, list):
        return [_with_attached(item, attached) for item in value]
    if isinstance(value, dict):
        return {key: _with_attached(item, attached) for key, item in value.items()}
    return value


class InspectFile(NamedTuple):
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
        content = json.loads(archive.read(name))
    except Exception as error:  # every kind of compression has exceptions of its own
        raise QabiasError(
            f"{path}: {name} in this log of inspect_ai is damaged ({first_line(error)}); copy the log again from where "
            "inspect wrote it"
        ) from error
    if not isinstance(content, dict):
        raise QabiasError(f"{path}: {name} in this log of inspect_ai is no object of JSON")
    return content


def _open_json(path: Path) -> InspectFile:
    header = _read_json(path)
    header.pop("samples", None)
    return InspectFile(header, lambda: _json_samples(path))


def _json_samples(path: Path) -> Iterator[tuple[str, Any]]:
    for number, sample in enumerate(_typed(_read_json(path), "samples", list, []), start=1):
        yield f"sample number {number}", sample


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise QabiasError(
            f"{path}: a log of inspect_ai that is cut off or damaged ({first_line(error)}); copy it again from where "
            "inspect wrote it"
        ) from error
    return content
