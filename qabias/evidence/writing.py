"""Writes the documents of a run, by form, from the templates of this folder."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from qabias.errors import QabiasError
from qabias.evidence.content import TO_COMPLETE, Evidence, direction
from qabias.evidence.every_eval_ever import records
from qabias.runs.opened import Run
from qabias.scores.facts import ALL
from qabias.support.files import write_atomically
from qabias.support.outputs import check_file, check_folder, same_bytes
from qabias.support.suggest import unknown
from qabias.tables.export import OWN_FOLDER

WITH_DATASET = "model-card"
FORMS = {
    "every-eval-ever": "every-eval-ever.json.j2",
    "nvidia-bias-md": "bias.md.j2",
    WITH_DATASET: "model-card.md.j2",
    "bias-profile": "bias-profile.html.j2",
}
"""The template of each form: records of a result store, NVIDIA's Model Card++, a section of a model card, a page."""

_UNSAFE = re.compile(r"([\\`*_\[\]<>|])")


def documents(evidence: Evidence, form: str, dataset: str = "") -> dict[str, bytes]:
    """The files of a form by relative path; a model card also has the results file for a `dataset` on the Hub."""
    template = FORMS[form]
    if form == "every-eval-ever":
        return records(evidence, partial(_render, evidence, template, form))
    text = _render(evidence, template, form).encode("utf-8", errors="backslashreplace")
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
    files = documents(Evidence(Run.scored(folder)), form, dataset)
    target = output or folder / OWN_FOLDER
    if output is not None and output.suffix and not output.is_dir():
        if len(files) > 1:
            raise QabiasError(f"--output {output}: --as {form} writes {len(files)} files.", "Name a folder.")
        paths = {output: next(iter(files.values()))}
    else:
        check_folder(target)
        paths = {target / path: content for path, content in files.items()}
    for path, content in paths.items():
        check_file(path, same_bytes(content))
    for path, content in paths.items():
        write_atomically(path, partial(Path.write_bytes, data=content))
    return list(paths)
