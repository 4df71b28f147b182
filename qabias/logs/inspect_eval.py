"""Logs of inspect_ai, of any task."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from qabias.errors import QabiasError
from qabias.logs.inspect_files import InspectFile, open_file
from qabias.logs.model import Log, Sample
from qabias.support.suggest import first_line

T = TypeVar("T")

TOOL = "inspect_ai"

_FINISHED = "success"
_ABOUT = (
    *("task_version", "task_registry_name", "task_args", "created", "solver", "packages", "config"),
    *("model_generate_config", "metadata", "tags"),
)
"""What a log says of its evaluation that is kept, of the names in its `eval`."""

_ASKED = ("id", "input", "choices", "target", "metadata")
# What stands elsewhere in a sample is named so where it is used; the second is how older versions write it.
_ATTACHMENTS = ("attachment://", "tc://")

_KINDS: Mapping[type, str] = {dict: "an object", list: "a list", str: "a text", int: "a whole number"}
_WRONG = (AttributeError, LookupError, TypeError, ValueError, OverflowError, RecursionError)
"""What reading a value raises that inspect would have written otherwise."""


def read(path: Path) -> Log | None:
    """The log of inspect_ai in a file, `.eval` or `.json`; None where it is none."""
    found = open_file(path)
    spec = found.header.get("eval") if found else None
    if found is None or not isinstance(spec, dict) or not {"task", "dataset"} <= set(spec):
        return None
    with _as_written(f"{path}: the header of this log of inspect_ai"):
        return _log(path, found, spec)


def _log(path: Path, found: InspectFile, spec: Mapping[str, Any]) -> Log:
    if _of(spec, "config", dict, {}).get("log_samples") is False:
        raise QabiasError(f"{path}: this log of inspect_ai holds no samples; ask again without --no-log-samples")
    _of(spec, "task_registry_name", str, "")
    return Log(
        path=path,
        tool=TOOL,
        version=_of(_of(spec, "packages", dict, {}), TOOL, str, ""),
        task=_of(spec, "task", str, ""),
        model=_of(spec, "model", str, ""),
        about={"status": _status(found.header)} | {name: spec[name] for name in _ABOUT if spec.get(name) is not None},
        samples=lambda: _samples(path, found),
        figures=_figures(found.header),
        n_expected=_n_expected(found.header),
        notes=tuple(_notes(path, found.header)),
    )


@contextmanager
def _as_written(where: str) -> Iterator[None]:
    """Have what is not as inspect writes it named, with its place."""
    try:
        yield
    except QabiasError:
        raise
    except _WRONG as error:
        detail = f"it has no {error}" if isinstance(error, KeyError) else first_line(error)
        raise QabiasError(f"{where} is not as inspect writes it: {detail}") from error


def _checked(value: Any, kind: type[T], what: str) -> T:
    """A value of a kind."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{what} is {reprlib.repr(value)}, not {_KINDS[kind]}")
    return value


def _of(found: Mapping[str, Any], name: str, kind: type[T], default: T) -> T:
    """A value of an object; the default where it has none."""
    value = found.get(name)
    return default if value is None else _checked(value, kind, name)


def _status(header: Mapping[str, Any]) -> str:
    return str(header.get("status", "started"))


def _results(header: Mapping[str, Any]) -> Mapping[str, Any]:
    return _of(header, "results", dict, {})


def _figures(header: Mapping[str, Any]) -> dict[str, float]:
    """The metrics by name, with their scorer before it, and between the two how several epochs were made one."""
    figures = {}
    for score in _of(_results(header), "scores", list, []):
        group = "/".join(filter(None, (score["name"], score.get("reducer"))))
        for name, metric in _of(score, "metrics", dict, {}).items():
            _checked(metric, dict, f"the metric {name}")
            figures[f"{group}/{name}"] = math.nan if metric["value"] is None else float(metric["value"])
    return figures


def _n_expected(header: Mapping[str, Any]) -> int | None:
    """Samples times epochs; where inspect has not come to the end, by the list of the samples that it meant to ask."""
    total = _of(_results(header), "total_samples", int, 0)
    if total:
        return total
    spec = header["eval"]
    ids = _of(_of(spec, "dataset", dict, {}), "sample_ids", list, [])
    epochs = _of(_of(spec, "config", dict, {}), "epochs", int, 1)
    return len(ids) * epochs if ids else None


def _notes(path: Path, header: Mapping[str, Any]) -> Iterator[str]:
    status = _status(header)
    if status != _FINISHED:
        why = _of(_of(header, "error", dict, {}), "message", str, "")
        because = f" ({_first_line(why)})" if why else ""
        yield (
            f"inspect has not come to the end of this evaluation, its status is {status}{because}; `inspect eval-retry "
            f"{path.name}` asks what is missing"
        )


def _samples(path: Path, file: InspectFile) -> Iterator[Sample]:
    for place, found in file.samples():
        with _as_written(f"{path}: {place} in this log of inspect_ai"):
            sample = _sample(_checked(found, dict, "it"))
        yield sample


def _sample(found: Mapping[str, Any]) -> Sample:
    """A sample without its messages and events, which are the larger part of it."""
    epoch = _of(found, "epoch", int, 1)
    output = _of(found, "output", dict, {})
    choices = _of(output, "choices", list, [])
    choice = _checked(choices[0], dict, "its first choice") if choices else None
    attached = _of(found, "attachments", dict, {})
    _of(found, "metadata", dict, {})
    answers = _answers(found)
    return Sample(
        where=f"sample {found.get('id')}" + (f", epoch {epoch}" if epoch > 1 else ""),
        asked={name: _with_attached(found[name], attached) for name in _ASKED if name in found},
        answer=next((answer for answer in answers.values() if answer is not None), None),
        text=None if choice is None else _with_attached(_of(output, "completion", str, ""), attached),
        finish=_of(choice or {}, "stop_reason", str, ""),
        error=_error(found),
        run=epoch,
        thinking=_thinking(choice or {}),
        answers=answers,
    )


def _answers(sample: Mapping[str, Any]) -> dict[str, Any]:
    """What each scorer says that it has read; older versions have but one, under another name."""
    old = _of(sample, "score", dict, {})
    scores = {"": old} if old else _of(sample, "scores", dict, {})
    return {name: _checked(score, dict, f"the score of {name}").get("answer") for name, score in scores.items()}


def _error(sample: Mapping[str, Any]) -> str:
    if sample.get("error"):
        return _first_line(_of(_of(sample, "error", dict, {}), "message", str, "") or "unknown error")
    if sample.get("invalidation"):
        reason = _of(_of(sample, "invalidation", dict, {}), "reason", str, "")
        return "marked as invalid" + (f": {reason}" if reason else "")
    return ""


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0].rstrip(".")


def _thinking(choice: Mapping[str, Any]) -> str:
    content = _of(choice, "message", dict, {}).get("content")
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
