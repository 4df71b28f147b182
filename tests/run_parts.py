"""Parts of a run, changed as tests need them: another hand's answers, or what an older version wrote."""

import json

import pyarrow.parquet as pq

from qabias.runs.folder import read_run
from qabias.runs.sealed import write_sealed


def parts_of(folder):
    """The files of the parts, in order."""
    return sorted((folder / "predictions").glob("part-*.parquet"))


def rewrite(folder, change):
    """Put `change` of every part in its place, under the seal of the run."""
    digest = read_run(folder).digest
    for path in parts_of(folder):
        write_sealed(path, change(pq.read_table(path)), digest)


def unseal(folder):
    """Make a run one of an older version, which knew no seal."""
    content = json.loads((folder / "run.json").read_text("utf-8"))
    del content["sealed"]
    (folder / "run.json").write_text(json.dumps(content), "utf-8")
    for path in parts_of(folder):
        pq.write_table(pq.read_table(path).replace_schema_metadata(None), path, compression="zstd")
