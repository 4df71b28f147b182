"""Files of a run, changed as tests need them, with checksums that fit again."""

import json

import pyarrow.parquet as pq

from qabias.runs.folder import read_checked, write_checked
from qabias.runs.opened import Run
from qabias.support.stored import CHECKSUM, checked_text


def parts_of(folder):
    """The files of the parts, in order."""
    return sorted((folder / "predictions").glob("part-*.parquet"))


def rewrite(folder, change):
    """Put `change` of every part in its place."""
    digest = Run.open(folder).digest
    for path in parts_of(folder):
        write_checked(path, change(pq.read_table(path)), digest)


def edit(path, change):
    """Let `change` change what a JSON file holds."""
    content = json.loads(path.read_text("utf-8"))
    content.pop(CHECKSUM, None)
    change(content)
    path.write_text(checked_text(content), "utf-8", errors="backslashreplace")


def edit_run(folder, change):
    """The same of `run.json`, whose parts become those of the changed run."""
    digest = Run.open(folder).digest
    tables = [read_checked(path, digest) for path in parts_of(folder)]
    edit(folder / "run.json", change)
    for path, table in zip(parts_of(folder), tables, strict=True):
        write_checked(path, table, Run.open(folder).digest)
