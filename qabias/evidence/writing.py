"""Writes the documents of a run, by form, from the templates of this folder.

The records of Every Eval Ever follow schema 0.3.0: the schema files of the package `every_eval_ever` 0.3.0.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import re
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

import jinja2
from markupsafe import Markup, escape

from qabias.answers.outcomes import ANSWERED
from qabias.errors import QabiasError
from qabias.evidence.content import DIGITS, TO_COMPLETE, Evidence, bounds, direction
from qabias.runs.opened import Run
from qabias.runs.signature import COLLECTED, scorer_name, signature_fields
from qabias.scores.facts import ALL
from qabias.support.files import json_text, write_atomically
from qabias.support.outputs import check_file, check_folder, same_bytes
from qabias.support.suggest import unknown
from qabias.tables.export import OWN_FOLDER

SCHEMA = "0.3.0"
WITH_DATASET = "model-card"
FORMS = {
    "every-eval-ever": "every-eval-ever.json.j2",
    "nvidia-bias-md": "bias.md.j2",
    WITH_DATASET: "model-card.md.j2",
    "bias-profile": "bias-profile.html.j2",
}
"""The template of each form: records of a result store, NVIDIA's Model Card++, a section of a model card, a page."""

_UNSAFE = re.compile(r"([\\`*_\[\]<>|])")


def documents(evidence: Evidence, form: str, dataset: str = "", name: str = "") -> dict[str, bytes]:
    """The files of a form by relative path; a model card also has the results file for a `dataset` on the Hub.

    A document with another `name` than that of its form is verified by it.
    """
    template = FORMS[form]
    if form == "every-eval-ever":
        return _records(evidence)
    file = quote(name or template.removesuffix(".j2"))
    text = _render(evidence, template, form, file=file).encode("utf-8", errors="backslashreplace")
    results: dict[str, bytes] = {}
    if dataset:
        from qabias.hub.results import result_files

        results = result_files(evidence.run.folder, evidence.run.arguments.model, dataset, sample=True)
    return {template.removesuffix(".j2"): text, **results}


def _render(evidence: Evidence, template: str, form: str, **more: Any) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=template.endswith(".html.j2"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"md": _markdown, "code": _code}
    shown = {"evidence": evidence, "run": evidence.run, "benchmark": evidence.benchmark, "direction": direction}
    return environment.get_template(template).render(form=form, todo=TO_COMPLETE, all=ALL, **shown, **more)


def _markdown(text: object) -> str:
    """A text that Markdown shows as it is, on one line."""
    spans = re.split("(`[^`]*`)", re.sub(r"\s*\n\s*", " ", str(text)))
    return "".join(span if place % 2 else _UNSAFE.sub(r"\\\1", span) for place, span in enumerate(spans))


def _code(text: str) -> Markup:
    """HTML of a text, with its commands as code."""
    return Markup(re.sub("`([^`]*)`", r"<code>\1</code>", str(escape(text))))


def export(folder: Path, form: str, output: Path | None = None, *, dataset: str = "") -> list[Path]:
    """Write the documents of a form. An `output` with a suffix is the file of a form that has one file."""
    if form not in FORMS:
        raise unknown("form", form, FORMS, "--as")
    if dataset and form != WITH_DATASET:
        raise QabiasError(f"--dataset does not apply to --as {form}.", f"Remove it, or use --as {WITH_DATASET}.")
    single = output if output is not None and output.suffix and not output.is_dir() else None
    files = documents(Evidence(Run.scored(folder)), form, dataset, single.name if single else "")
    target = output or folder / OWN_FOLDER
    if single:
        if len(files) > 1:
            raise QabiasError(f"--output {output}: --as {form} writes {len(files)} files.", "Name a folder.")
        paths = {single: next(iter(files.values()))}
    else:
        check_folder(target)
        paths = {target / path: content for path, content in files.items()}
    for path, content in paths.items():
        check_file(path, same_bytes(content))
    for path, content in paths.items():
        write_atomically(path, partial(Path.write_bytes, data=content))
    return list(paths)


def _records(evidence: Evidence) -> dict[str, bytes]:
    """The aggregate, after the instances if the benchmark has right answers, by path in the store."""
    run = evidence.run
    owner, _, name = run.arguments.model.strip("/").rpartition("/")
    owner = owner.rpartition("/")[2]
    parts = (evidence.benchmark.name, owner or "unknown", name)
    folder = "/".join(["data", *(re.sub(r"[^A-Za-z0-9._-]+", "-", part).strip(".-") or "unknown" for part in parts)])
    number = uuid.UUID(bytes=hashlib.sha256(run.digest.encode()).digest()[:16], version=4)
    path = f"{folder}/{number}"
    record = _aggregate(evidence)
    written: dict[str, bytes] = {}
    if evidence.benchmark.facts.instance is not None:
        lines = [json.dumps(one, ensure_ascii=False) for one in _instances(evidence, record["evaluation_id"])]
        content = "".join(f"{line}\n" for line in lines).encode("utf-8", errors="backslashreplace")
        written[f"{path}_samples.jsonl"] = content
        record["detailed_evaluation_results"] = {
            "format": "jsonl",
            "file_path": f"{path}_samples.jsonl",
            "hash_algorithm": "sha256",
            "checksum": hashlib.sha256(content).hexdigest(),
            "total_rows": len(lines),
        }
    return {**written, f"{path}.json": json_text(record).encode("utf-8", errors="backslashreplace")}


def _aggregate(evidence: Evidence) -> dict[str, Any]:
    run = evidence.run
    text = _render(
        evidence,
        FORMS["every-eval-ever"],
        "every-eval-ever",
        schema=SCHEMA,
        evaluation_id=f"{evidence.benchmark.name}/{run.arguments.model}/{run.digest[:DIGITS]}",
        seconds=str(int(datetime.datetime.fromisoformat(run.created).timestamp())),
        fields=signature_fields(run.signature),
        bounds=bounds,
        looks=", repeated over the looks" if run.stopped_early else "",
    )
    record: dict[str, Any] = json.loads(text.encode("utf-8", errors="backslashreplace"))
    return record


def _instances(evidence: Evidence, evaluation_id: str) -> Iterator[dict[str, Any]]:
    """One record per example, part by part."""
    question, run, start = evidence.run.question, evidence.run, 0
    read = evidence.benchmark.facts.instance
    assert read is not None
    how = f"parser {run.arguments.parser}" if "outputs" in evidence.run.answers.column_names else "most likely choice"
    if scorer_name(run.signature) == COLLECTED:
        how = "read from a file of answers"
    for part in question.parts.values():
        answers = evidence.run.answers.slice(start, part.num_rows)
        start += part.num_rows
        form = question.format_of(part) if question.prompt_format is not None else None
        shown = form if form is not None and form.orders == 1 and not form.pairs else None
        for row, answer in zip(part.to_pylist(), answers.to_pylist(), strict=True):
            one, place = read(row), answer["prediction"]
            place = -1 if place is None else place
            chosen = one.choices[place] if 0 <= place < len(one.choices) else ""
            outputs = [text for text in answer.get("outputs") or [chosen] if isinstance(text, str)]
            name = "/".join(str(row[column]) for column in (*evidence.benchmark.key, "run") if column in row)
            right = one.choices[one.right]
            became = answer.get("outcome")
            missing = None if chosen else (became if became and became != ANSWERED else "no answer")
            yield {
                "schema_version": SCHEMA,
                "evaluation_id": evaluation_id,
                "model_id": run.arguments.model,
                "evaluation_name": evidence.benchmark.name,
                "sample_id": name,
                "sample_hash": hashlib.sha256(f"{one.text}{right}".encode()).hexdigest(),
                "interaction_type": "single_turn",
                "input": {
                    "raw": one.text,
                    "formatted": shown.render(row)[0] if shown is not None else None,
                    "reference": [right],
                    "choices": list(one.choices),
                },
                "output": {
                    "raw": outputs,
                    "reasoning_trace": [answer["thinking"]] if answer.get("thinking") else None,
                },
                "messages": None,
                "answer_attribution": [
                    {
                        "turn_idx": 0,
                        "source": "output.raw",
                        "extracted_value": chosen,
                        "extraction_method": how,
                        "is_terminal": True,
                    }
                ],
                "evaluation": {"score": float(place == one.right), "is_correct": place == one.right},
                "error": missing,
            }
