"""Something that is no ordinary file in the place of every file that a command reads or would write."""

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conftest import ROOT
from tests.saved_models import save
from tests.tiny_models import make_model, make_tokenizer

from .forked import call
from .helpers import chosen

MEMORY = 1500 * 2**20
"""Bytes that a command may take beside what it begins with."""
SECONDS = 60

RUN = ("bbq", "--config", "Age", "--limit", 8, "--no-report", "--output", "run")
SETUP = (
    ("run", *RUN, "--model", "baseline:random"),
    ("run", *RUN[:-1], "other", "--model", "baseline:oracle"),
    ("score", "run", "--report"),
    ("export", "run", "--as", "model-card", "--output", "documents"),
    ("export", "run", "--as", "every-eval-ever", "--output", "records"),
)
FILES = ("run.json", "scores.json", "analysis.json", "report.html", "predictions/part-00000.parquet", "verdict.json")
READERS: dict[str, tuple] = {
    "run": (*RUN, "--model", "baseline:random"),
    "score": ("run", "--report"),
    "show": ("run", "--full"),
    "report": ("run",),
    "verify": ("run",),
    "compare": ("run", "other", "--allow-mixed", "--output", "new"),
    "check": ("run", "--max", "bias_ambig=0.9"),
    "pool": ("run", "other", "--output", "new"),
    "export": ("run", "--as", "model-card", "--output", "new"),
    "merge": ("run", "--output", "new"),
    "push": (
        "results",
        "run",
        *["--to", "me/model", "--dataset", "me/bbq", "--sample", "--model-index", "--write-to", "new"],
    ),
}
"""Commands that read a run folder."""
TABLES = ("answers.csv", "answers.jsonl", "answers.json", "answers.parquet", "log.eval", "samples_bbq_2026.jsonl")
TEMPLATES = ("benchmark.yaml", "language.yaml", "vocabulary/labels.csv", "templates/Eta.yaml")
MODEL = ("config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors", "generation_config.json")
NEW = {  # Commands with the file that they would write.
    "report": ("run", "--output", "new"),
    "check": ("run", "--max", "bias_ambig=0.9", "--output", "new"),
    "score": ("run", "--output", "new.json"),
    "export": ("run", "--format", "csv", "--output", "new"),
    "compare": ("run", "other", "--allow-mixed", "--output", "new"),
    "build": ("bbnli", "--config", "gender", "--output", "new"),
}
ODD: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "zeros without an end": lambda path: path.symlink_to("/dev/zero"),
    "a folder": Path.mkdir,
    "a hole of a terabyte": lambda path: path.open("wb").truncate(2**40),
    "a ring": lambda path: path.symlink_to(path.name),
}


def cases():
    """Every command with every file that it may read or write."""
    for name, rest in READERS.items():
        yield from ((f"run/{file}", name, *rest) for file in FILES)
    yield from ((name, "score", name, "--config", "Age") for name in TABLES)
    for document in ("documents/model-card.md", "records/record.json", "results.yaml"):
        yield (document, "verify", document, "--run", "run")
    for file in TEMPLATES:
        yield (f"mine/{file}", "run", "mine", "--model", "baseline:oracle", "--output", "new")
        yield (f"mine/{file}", "build", "mine", "--output", "new")
    yield from (
        (f"model/{file}", "run", *RUN[:-1], "new", "--model", "model") for file in (*MODEL, "adapter_config.json")
    )
    yield ("replies.jsonl", "run", *RUN[:-1], "new", "--model", "m", "--backend", "server", "--option",
           "batch=read=replies.jsonl")  # fmt: skip
    yield from ((rest[-1], name, *rest) for name, rest in NEW.items())
    yield ("new/README.md", "push", *READERS["push"], "--model-index")
    yield ("new/.eval_results/bbq-all.yaml", "push", *READERS["push"])
    yield ("run/requests.jsonl", "merge", "run", "other", "--output", "new")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with runs, tables, documents, templates and a model."""
    folder = tmp_path_factory.mktemp("odd") / "here"
    folder.mkdir()
    for arguments in SETUP:
        ended = call(*arguments, folder=folder)
        assert ended.code == 0, ended
    shutil.copytree(ROOT / "docs" / "examples" / "templates_it", folder / "mine")
    save(folder / "model", make_model("llama", max_position_embeddings=1024), make_tokenizer())
    return folder


@pytest.mark.parametrize("odd", ODD)
def test_a_command_ends_clearly_whatever_is_in_the_place_of_a_file(odd, place, tmp_path):
    wrong = []
    for number, (file, *arguments) in enumerate(chosen([*cases()], quick=6)):
        here = shutil.copytree(place, tmp_path / str(number) / "here")
        path = here / file
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        ODD[odd](path)
        try:
            ended = call(*arguments, folder=here, seconds=SECONDS, memory=MEMORY)
        except TimeoutError as error:
            wrong.append((file, arguments, str(error)))
        else:
            is_quiet = ended.code in (0, 1, 3) and "Traceback" not in ended.err
            if not (ended.is_clean or is_quiet) or "Out of memory" in ended.err:
                wrong.append((file, arguments, ended.code, ended.err[-400:]))
        shutil.rmtree(here.parent)
    assert not wrong, "\n".join(map(str, wrong))


def _table(path, rows, text, groups=1):
    """A small file of equal texts, whose numbers of rows are many."""
    one = pa.table({"category": ["Age"], "example_id": [0], "prediction": [text]})
    table = one.take(pa.array([0] * (rows // groups)))
    with pq.ParquetWriter(path, table.schema, compression="zstd") as file:
        for _ in range(groups):
            file.write_table(table)


BOMBS: dict[str, Callable[[Path], object]] = {
    "many rows": partial(_table, rows=40_000_000, text="A", groups=40),
    "long texts": partial(_table, rows=4_000_000, text="A" * 1000, groups=40),
    "very long texts": partial(_table, rows=4000, text="A" * 10**6, groups=40),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_small_table_that_fills_the_memory_is_refused(bomb, place, tmp_path):
    here = shutil.copytree(place, tmp_path / "here")
    BOMBS[bomb](here / "bomb.parquet")
    ended = call("score", "bomb.parquet", "--config", "Age", folder=here, seconds=SECONDS, memory=4 * 2**30)
    assert ended.code == 2
    assert ended.is_clean, ended
    assert "rows are more" in ended.err or "in memory" in ended.err
