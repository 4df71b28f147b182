"""HELM's record of a run: `scenario_state.json`, with `stats.json` and `run_spec.json` beside it.

Read by the dataclasses `ScenarioState`, `RequestState`, `RunSpec` and `Stat` of crfm-helm 0.5.16, which writes them as
`dataclasses.asdict` gives them, without what is None.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from qabias.errors import QabiasError
from qabias.logs.json_stream import JsonStream, items, keys
from qabias.logs.model import Log, Sample
from qabias.logs.written import as_written

TOOL = "helm"
NAME = "HELM"
"""What messages call it."""
STATE = "scenario_state.json"

_RUN, _STATS, _STATES = "run_spec.json", "stats.json", "request_states"
_HEAD = 4096
_IS_STATE = re.compile(rb'\s*\{\s*"adapter_spec"\s*:\s*\{')
_IS_STATS = re.compile(rb'\s*\[\s*\{\s*"name"\s*:\s*\{\s*"name"\s*:.*"sum_squared"\s*:', re.DOTALL)
_IS_PER_INSTANCE = re.compile(rb'\s*\[\s*\{\s*"instance_id"\s*:.*"train_trial_index"\s*:', re.DOTALL)


def read(path: Path) -> Log | None:
    """The run whose requests and answers a file holds; None for any other file."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if _IS_STATE.match(head):
        return _read_state(path)
    if (_IS_STATS.match(head) or _IS_PER_INSTANCE.match(head)) and not (path.parent / STATE).exists():
        raise QabiasError(
            f"{path}: HELM's scores, which do not hold what the model answered; put {STATE} of the same run beside them"
        )
    return None


def _read_state(path: Path) -> Log:
    with as_written(path, NAME):
        if next(_states(path), None) is None:
            raise QabiasError(f"{path}: HELM's record of a run without a request")
        spec = _adapter(path)
        pattern = spec.get("output_mapping_pattern")
        re.compile(pattern or "")
    run = _beside(path, _RUN)
    with as_written(path.parent / _RUN, NAME):
        task = (run or {}).get("name", "without a name, for want of run_spec.json")
        scenario = dict((run or {}).get("scenario_spec") or {})
    stats = _beside(path, _STATS)
    with as_written(path.parent / _STATS, NAME):
        figures = _figures(stats or [])
    return Log(
        # The folder of a run has its name.
        path=path if run is None else path.parent,
        tool=TOOL,
        version="",
        task=str(task),
        model=str(spec.get("model") or spec.get("model_deployment") or ""),
        about={"adapter_spec": spec, "scenario_spec": scenario},
        samples=partial(_samples, path, pattern),
        figures=figures,
    )


def _stream(path: Path) -> JsonStream:
    return JsonStream(path, "HELM's record of a run", "copy it again, or run HELM once more: it keeps its answers")


def _adapter(path: Path) -> dict[str, Any]:
    """How examples were put to the model; {} where the record does not say it."""
    with _stream(path) as stream:
        for key in keys(stream):
            value = stream.value()
            if key == "adapter_spec":
                return dict(value)
    return {}


def _states(path: Path) -> Iterator[dict[str, Any]]:
    """The requests with their answers, one after the other: the file may be too large to be held."""
    with _stream(path) as stream:
        for key in keys(stream):
            if key == _STATES:
                yield from items(stream)
            else:
                stream.value()


def _beside(path: Path, name: str) -> Any:
    """What a file beside another holds; None where there is no such file."""
    file = path.parent / name
    try:
        return json.loads(file.read_bytes())
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError) as error:
        raise QabiasError(f"{file}: not readable as JSON: {error}") from error


def _figures(stats: list[dict[str, Any]]) -> dict[str, float]:
    """HELM's scores of questions as they are: those of texts changed on purpose are left out."""
    plain = [stat for stat in stats if "mean" in stat and not stat["name"].get("perturbation")]
    times = Counter(stat["name"]["name"] for stat in plain)
    return {_figure_name(stat["name"], times): float(stat["mean"]) for stat in plain}


def _figure_name(name: Mapping[str, str], times: Counter[str]) -> str:
    if times[name["name"]] == 1:
        return name["name"]
    return " ".join(filter(None, (name["name"], name.get("split"), name.get("sub_split"))))


def _samples(path: Path, pattern: str | None) -> Iterator[Sample]:
    """One sample for every answer to a request, and one for a request that has none."""
    times: Counter[tuple[Any, ...]] = Counter()
    for number, state in enumerate(_states(path), start=1):
        with as_written(f"{path}: request {number}", NAME):
            instance = state["instance"]
            name = instance.get("id", f"of request {number}")
            changed = json.dumps(instance.get("perturbation"))
            question = (name, changed, state.get("reference_index"), state.get("request_mode"))
            result = state.get("result") or {"success": False, "error": "it was never asked (a dry run?)"}
            for answer in _answers(result):
                times[question] += 1
                yield _sample(f"instance {name}", state, answer, pattern, times[question])


def _answers(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The completions; where there are none, why."""
    if not result["success"]:
        return [{"error": str(result.get("error") or "the request failed")}]
    return list(result["completions"]) or [{"error": "an answer without a completion"}]


def _sample(where: str, state: Mapping[str, Any], answer: Mapping[str, Any], pattern: str | None, run: int) -> Sample:
    asked = {**state["instance"], **{name: state.get(name) for name in _KEPT}}
    if "error" in answer:
        return Sample(where, asked, error=" ".join(answer["error"].split()), run=run)
    text = answer["text"]
    return Sample(
        where,
        asked,
        _letter(text, state.get("output_mapping") or {}, pattern),
        text,
        finish=str((answer.get("finish_reason") or {}).get("reason") or ""),
        run=run,
        thinking=str((answer.get("thinking") or {}).get("text") or ""),
    )


_KEPT = ("output_mapping", "reference_index", "request_mode", "num_train_instances", "prompt_truncated")
"""What is kept of a request beside the instance."""


def _letter(text: str, options: Mapping[str, str], pattern: str | None) -> str | None:
    """The option that a text is for HELM: the letter alone, or what the run's own pattern finds in it."""
    said = text.strip()
    if pattern:
        found = re.search(pattern, said)
        said = "" if found is None else found[1 if found.re.groups else 0]
    return said if said in options else None
