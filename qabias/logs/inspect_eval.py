"""Logs of inspect_ai, of any task."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from qabias.errors import QabiasError
from qabias.logs.inspect_files import InspectFile, open_file
from qabias.logs.model import Log, Sample

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


def read(path: Path) -> Log | None:
    """The log of inspect_ai in a file, `.eval` or `.json`; None where it is none.

    Args:
        path: The file; its name does not matter.

    Raises:
        QabiasError: If it is one, and damaged, cut off or without samples.
    """
    found = open_file(path)
    spec = found.header.get("eval") if found else None
    if found is None or not isinstance(spec, dict) or not {"task", "dataset"} <= set(spec):
        return None
    if (spec.get("config") or {}).get("log_samples") is False:
        raise QabiasError(f"{path}: this log of inspect_ai holds no samples; ask again without --no-log-samples")
    return Log(
        path=path,
        tool=TOOL,
        version=(spec.get("packages") or {}).get(TOOL, ""),
        task=spec["task"],
        model=spec.get("model") or "",
        about={"status": _status(found.header)} | {name: spec[name] for name in _ABOUT if name in spec},
        samples=lambda: _samples(found),
        figures=_figures(found.header),
        n_expected=_n_expected(found.header),
        notes=tuple(_notes(path, found.header)),
    )


def _status(header: Mapping[str, Any]) -> str:
    return str(header.get("status", "started"))


def _results(header: Mapping[str, Any]) -> Mapping[str, Any]:
    return header.get("results") or {}


def _figures(header: Mapping[str, Any]) -> dict[str, float]:
    """The metrics by name, with their scorer before it, and between the two how several epochs were made one."""
    figures = {}
    for score in _results(header).get("scores") or ():
        group = "/".join(filter(None, (score["name"], score.get("reducer"))))
        for name, metric in score["metrics"].items():
            figures[f"{group}/{name}"] = math.nan if metric["value"] is None else float(metric["value"])
    return figures


def _n_expected(header: Mapping[str, Any]) -> int | None:
    """Samples times epochs; where inspect has not come to the end, by the list of the samples that it meant to ask."""
    total = _results(header).get("total_samples")
    if total:
        return int(total)
    ids = header["eval"]["dataset"].get("sample_ids")
    epochs = (header["eval"].get("config") or {}).get("epochs") or 1
    return len(ids) * epochs if ids else None


def _notes(path: Path, header: Mapping[str, Any]) -> Iterator[str]:
    status = _status(header)
    if status != _FINISHED:
        why = (header.get("error") or {}).get("message", "")
        because = f" ({_first_line(why)})" if why else ""
        yield (
            f"inspect has not come to the end of this evaluation, its status is {status}{because}; `inspect eval-retry "
            f"{path.name}` asks what is missing"
        )
    scorers = list(dict.fromkeys(score["name"] for score in _scorers(header)))
    if len(scorers) > 1:
        yield (
            f"there are the scorers {', '.join(scorers)}; of every sample the first one counts that has read an answer"
        )


def _scorers(header: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return _results(header).get("scores") or header["eval"].get("scorers") or []


def _samples(found: InspectFile) -> Iterator[Sample]:
    return map(_sample, found.samples())


def _sample(found: Mapping[str, Any]) -> Sample:
    """A sample without its messages and events, which are the larger part of it."""
    epoch = found.get("epoch", 1)
    output = found.get("output") or {}
    choice = (output.get("choices") or [None])[0]
    attached = found.get("attachments") or {}
    return Sample(
        where=f"sample {found.get('id')}" + (f", epoch {epoch}" if epoch > 1 else ""),
        asked={name: _with_attached(found[name], attached) for name in _ASKED if name in found},
        answer=_answer(found),
        text=None if choice is None else _with_attached(output.get("completion") or "", attached),
        finish=(choice or {}).get("stop_reason") or "",
        error=_error(found),
        run=epoch,
        thinking=_thinking(choice or {}),
    )


def _answer(sample: Mapping[str, Any]) -> Any:
    """What the first scorer that says what it has read says; older versions have but one, under another name."""
    scores = sample.get("scores") or {}
    if sample.get("score"):
        scores = {"": sample["score"]}
    return next((score["answer"] for score in scores.values() if score.get("answer") is not None), None)


def _error(sample: Mapping[str, Any]) -> str:
    if sample.get("error"):
        return _first_line(sample["error"].get("message") or "unknown error")
    if sample.get("invalidation"):
        reason = sample["invalidation"].get("reason")
        return "marked as invalid" + (f": {reason}" if reason else "")
    return ""


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0].rstrip(".")


def _thinking(choice: Mapping[str, Any]) -> str:
    content = (choice.get("message") or {}).get("content")
    if not isinstance(content, list):
        return ""
    parts = (part.get("reasoning") for part in content if part.get("type") == "reasoning")
    return "\n".join(filter(None, parts))


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
