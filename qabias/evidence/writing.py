"""Writes the documents of a run, by form."""

from __future__ import annotations

import importlib
from functools import partial
from pathlib import Path

from qabias.errors import QabiasError
from qabias.evidence.content import Evidence
from qabias.runs.opened import Run
from qabias.support.files import write_atomically
from qabias.support.outputs import check_file, check_folder, same_bytes
from qabias.support.suggest import unknown
from qabias.tables.export import OWN_FOLDER

WITH_DATASET = "model-card"
FORMS = {
    "every-eval-ever": "every_eval_ever",
    "nvidia-bias-md": "nvidia_bias_md",
    WITH_DATASET: "model_card",
    "bias-profile": "bias_profile",
}
"""The module of each form."""


def documents(evidence: Evidence, form: str, dataset: str = "") -> dict[str, bytes]:
    """The files of a form by relative path."""
    write = importlib.import_module(f"{__package__}.{FORMS[form]}").files
    files: dict[str, bytes] = write(evidence, dataset) if dataset else write(evidence)
    return files


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
