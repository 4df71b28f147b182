"""Users' files: what is small on the disk and large in memory, and what is no file, is refused before it is read."""

import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qabias.errors import QabiasError
from qabias.evidence.verification import verify
from qabias.runs.arguments import Machine, RunArguments
from qabias.runs.run import run
from qabias.support import arrow, files
from qabias.support.table_files import read_table

from .kit.commands import command


@pytest.mark.parametrize("groups", [1, 7])
def test_a_table_is_read_up_to_a_number_of_rows_and_of_bytes(tmp_path, monkeypatch, groups):
    table = pa.table({"text": ["A" * 1000, None] * 500, "n": list(range(1000)), "some": [[1], []] * 500})
    path = tmp_path / "table.parquet"
    pq.write_table(table, path, row_group_size=-(-1000 // groups))
    assert read_table(path).equals(table)
    for name, most, why in (("MOST_ROWS", 999, "1,000 rows are more than 999"), ("MOST_DECODED", 2**18, "in memory")):
        with monkeypatch.context() as patch:
            patch.setattr(arrow, name, most)
            with pytest.raises(QabiasError, match=why):
                read_table(path)
    empty = table.slice(0, 0)
    pq.write_table(empty, path)
    assert read_table(path).equals(empty)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "run"
    run(RunArguments("bbq", "baseline:random", "Age", limit=8), folder, Machine(shows_progress=False))
    assert command("export", folder, "--as", "model-card", "--output", folder.parent / "card").code == 0
    return folder


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
@pytest.mark.parametrize("name", ["run.json", "scores.json", "analysis.json", "predictions/part-00000.parquet"])
def test_no_pipe_and_no_device_in_a_run_is_read(measured, name, make):
    path = measured / name
    aside = path.rename(measured.parent / "aside")
    make(path)
    try:
        assert verify(measured).differences[0].place == name
        for arguments in (("report", measured), ("show", measured), ("check", measured, "--max", "bias_ambig=1")):
            ended = command(*arguments)
            assert ended.is_clean or ended.code in (1, 3), ended
    finally:
        path.unlink()
        aside.rename(path)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), lambda path: path.mkdir()])
def test_no_pipe_and_no_device_is_read_as_a_document(measured, tmp_path, make):
    make(tmp_path / "card.md")
    ended = command("verify", tmp_path / "card.md", "--run", measured)
    assert ended.code == 2
    assert ended.is_clean
    assert command("report", measured, "--output", tmp_path / "card.md").code == 2


def test_a_huge_file_is_refused_by_its_size(measured, tmp_path, monkeypatch):
    with (tmp_path / "large.md").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(OSError, match="larger than 256 MB"):
        verify(tmp_path / "large.md", measured)
    with pytest.raises(OSError, match="larger than 256 MB"):
        files.read_json(tmp_path / "large.md")
    (tmp_path / "results.yaml").write_text("- dataset: {id: &a [1]}\n  b: *a\n", "utf-8")
    assert verify(tmp_path / "results.yaml", measured).differences[0].what == "names no form of `qabias export`"
    assert json.loads((measured / "run.json").read_text("utf-8"))["signature"]
