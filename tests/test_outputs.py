"""What a command writes replaces nothing that it reads, no run, and nothing of others unless it is asked for."""

import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

import qabias
from qabias import cli
from qabias.building.folder import claimed, data_checksums, is_built, parquet_path
from qabias.errors import QabiasError
from qabias.runs.arguments import RunArguments
from qabias.runs.run import run
from qabias.support.outputs import check_file, check_folder, check_new_folder, json_with, overwriting, same_bytes

FOREIGN = b"somebody's\n"

# What is asked of a command, the files that it writes, and whether it may be told to replace others. OUT is a place,
# ONE and TWO are runs of other formats.
FILES = {
    "score": (["score", "ANSWERS", "--config", "Age", "--output", "OUT.json"], ["OUT.json"]),
    "report": (["report", "ONE", "--output", "OUT.html"], ["OUT.html"]),
    "report of several": (["report", "ONE", "TWO", "--output", "OUT.html"], ["OUT.html"]),
    "check": (["check", "ONE", "--max", "bias_ambig=0.9", "--allow-undecided", "--output", "OUT.json"], ["OUT.json"]),
    "compare": (["compare", "ONE", "TWO", "--output", "OUT"], ["OUT/compare.html", "OUT/analysis.json"]),
    "pool": (
        ["pool", "ONE", "TWO", "--output", "OUT"],
        ["OUT/pool.json", "OUT/scores.json", "OUT/analysis.json", "OUT/pool.html"],
    ),
    "export": (["export", "ONE", "--table", "bias_by_category", "--output", "OUT"], ["OUT/bias_by_category.csv"]),
    "results": (
        ["push", "results", "ALL", "--to", "me/m", "--dataset", "me/d", "--sample", "--write-to", "OUT"],
        ["OUT/.eval_results/bbq-all-qa-baseline-sample40.yaml"],
    ),
    "build": (["build", "bbq", "--config", "Religion", "--output", "OUT"], ["OUT/README.md"]),
}
# What makes the same file of another run.
OTHERS = {"ONE": "OTHER", "ALL": "ALL-OTHER", "ANSWERS": "OTHER-ANSWERS", "bbq": "bbnli"}
OTHERS_IN = {
    "build": {**OTHERS, "Religion": "man_is_to_surgeon"},
    "compare": {"ONE": "THIRD"},
    "pool": {"ONE": "THIRD"},
}
# A run folder is never replaced.
RUNS = {
    "merge": (["merge", "ONE", "--output", "OUT"], ["OUT/notes.txt"]),
    "score into a folder": (["score", "ANSWERS", "--config", "Age", "--output", "OUT"], ["OUT/notes.txt"]),
    "run": (["run", "bbq", "--model", "baseline:random", "--config", "Age", "--output", "OUT"], ["OUT/notes.txt"]),
}


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Runs and answers by the words that stand for them."""
    where = tmp_path_factory.mktemp("given")
    for name, prompt_format in (("one", "qa"), ("two", "race"), ("third", "arc")):
        run(RunArguments("bbq", "baseline:random", "Age", format=prompt_format, limit=40), where / name)
    run(RunArguments("bbq", "baseline:random", "Age", format="qa", limit=40, seed=1), where / "other")
    for name, seed in (("all", 0), ("all-other", 1)):
        run(RunArguments("bbq", "baseline:random", limit=40, seed=seed), where / name)
    (where / "answers.csv").write_text("example_id,prediction\n0,1\n1,2\n2,0\n3,1\n", encoding="utf-8")
    (where / "answers2.csv").write_text("example_id,prediction\n0,1\n1,2\n2,0\n3,0\n", encoding="utf-8")
    return {
        "THIRD": where / "third",
        "OTHER": where / "other",
        "OTHER-ANSWERS": where / "answers2.csv",
        "ONE": where / "one",
        "ALL": where / "all",
        "ALL-OTHER": where / "all-other",
        "TWO": where / "two",
        "ANSWERS": where / "answers.csv",
    }


def call(where, places, *words):
    """Run a command whose words stand for places."""
    texts = [str(places.get(word, where / word if word.startswith("OUT") else word)) for word in words]
    return CliRunner().invoke(cli.app, texts)


def contents(where: Path):
    return {path: path.read_bytes() for path in sorted(where.rglob("*")) if path.is_file()}


ALL = FILES | RUNS


@pytest.mark.parametrize(
    ("name", "file"), [(name, file) for name, (_, files) in ALL.items() for file in files], ids=lambda value: value
)
def test_no_command_replaces_a_file_of_others(places, tmp_path, name, file):
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(FOREIGN)
    result = call(tmp_path, places, *ALL[name][0])
    assert isinstance(result.exception, QabiasError), result.output
    assert "choose another --" in str(result.exception).lower() or "by --output" in str(result.exception)
    assert contents(tmp_path) == {path: FOREIGN}


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_a_command_replaces_its_own_output_and_that_of_another_run_only_with_overwrite(places, tmp_path, name):
    words, files = FILES[name]
    others = OTHERS_IN.get(name, OTHERS)
    of_other = [others.get(word, word) for word in words]
    assert of_other != words
    for _ in range(2):
        assert not call(tmp_path, places, *of_other).exit_code
    before = contents(tmp_path)
    assert {tmp_path / file for file in files} <= set(before)
    result = call(tmp_path, places, *words)
    assert isinstance(result.exception, QabiasError), result.output
    assert "--overwrite" in str(result.exception)
    assert contents(tmp_path) == before
    assert not call(tmp_path, places, *words, "--overwrite").exit_code
    written = contents(tmp_path)
    assert written != before
    for file in files:
        (tmp_path / file).write_bytes(FOREIGN)
    (tmp_path / "OUT" / ".qabias-build.json").unlink(missing_ok=True)
    assert not call(tmp_path, places, *words, "--overwrite").exit_code
    after = contents(tmp_path)
    assert all(after[tmp_path / file] == written[tmp_path / file] for file in files)


@pytest.mark.parametrize("flags", [[], ["--overwrite"]])
@pytest.mark.parametrize("file", ["run.json", "scores.json", "analysis.json", "predictions/part-00000.parquet"])
def test_the_files_of_a_run_are_never_replaced(places, tmp_path, file, flags):
    shutil.copytree(places["ONE"], tmp_path / "OUT")
    before = contents(tmp_path)
    for words in (
        ["report", "ONE"],
        ["score", "ANSWERS", "--config", "Age"],
        ["check", "ONE", "--max", "bias_ambig=1"],
    ):
        if words[0] == "score" and not file.endswith(".json"):
            continue
        result = call(tmp_path, places, *words, "--output", f"OUT/{file}", *flags)
        assert "run" in str(result.exception)
        assert isinstance(result.exception, QabiasError)
    for words in (["compare", "ONE", "TWO"], ["pool", "ONE", "TWO"], ["build", "bbq", "--config", "Religion"]):
        result = call(tmp_path, places, *words, "--output", "OUT", *flags)
        assert "holds a run" in str(result.exception)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("flags", [[], ["--overwrite"]])
def test_what_a_command_reads_is_never_replaced(places, tmp_path, flags):
    (tmp_path / "OUT.json").write_text('{"example_id": 0, "prediction": 1}\n', encoding="utf-8")
    before = contents(tmp_path)
    result = call(tmp_path, places, "score", "OUT.json", "--config", "Age", "--output", "OUT.json", *flags)
    assert "is read by this command and would be lost" in str(result.exception)
    assert contents(tmp_path) == before


def test_from_python_the_same_is_refused_in_its_words(places, tmp_path):
    path = tmp_path / "page.html"
    path.write_bytes(FOREIGN)
    result = qabias.read(places["ONE"])
    with pytest.raises(QabiasError, match=r"or replace it by overwrite"):
        result.report(path)
    assert path.read_bytes() == FOREIGN
    result.report(path, overwrite=True)
    result.report(path)  # its own by now
    compared = qabias.compare([places["ONE"], places["TWO"]])
    folder = tmp_path / "compared"
    folder.mkdir()
    (folder / "analysis.json").write_bytes(FOREIGN)
    with pytest.raises(QabiasError, match=r"analysis\.json: exists"):
        compared.report(folder)
    compared.report(folder, overwrite=True)
    compared.report(folder)


@pytest.mark.parametrize("mark", [None, '{"benchmark": "bbnli"}'])
def test_a_build_that_fails_leaves_a_folder_of_others_theirs(places, tmp_path, mark):
    folder = tmp_path / "OUT"
    folder.mkdir()
    (folder / "README.md").write_bytes(FOREIGN)
    if mark is not None:
        (folder / ".qabias-build.json").write_text(mark, "utf-8")
    before = contents(tmp_path)
    words = ["build", "bbq", "--config", "Age", "--source", "official", "--mirror", tmp_path / "none"]
    assert call(tmp_path, places, *map(str, words), "--output", "OUT", "--overwrite").exit_code
    assert contents(tmp_path) == before
    assert isinstance(call(tmp_path, places, *FILES["build"][0]).exception, QabiasError)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("n_written", [0, 1])
def test_a_folder_is_marked_where_a_file_was_written_before_the_failure(tmp_path, n_written):
    folder = tmp_path / "OUT"
    path = folder / parquet_path("Age")

    def build():
        with claimed(folder, "bbq", "Age"):
            path.parent.mkdir(parents=True)
            for _ in range(n_written):
                path.write_bytes(b"rows")
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        build()
    assert folder.exists() == bool(n_written)
    assert is_built("bbq", "Age")(folder) == bool(n_written)


def test_two_builds_do_not_mix_their_data(tmp_path):
    for config in ("Age", "SES"):
        path = tmp_path / parquet_path(config)
        with claimed(tmp_path, "bbq", config) as others:
            with pytest.raises(QabiasError, match="another command"), claimed(tmp_path, "bbq", "Religion"):
                pass
            path.parent.mkdir(parents=True)
            path.write_bytes(b"rows")
        assert os.listdir(tmp_path / "data") == [config]
        assert data_checksums(tmp_path) == {parquet_path(config): hashlib.sha256(b"rows").hexdigest()}
        assert list(tmp_path.rglob("*.parquet")) == [path]
    assert others == [f"removed {parquet_path('Age')}"]
    assert is_built("bbq", "SES")(tmp_path)
    assert not is_built("bbq", "Age")(tmp_path)  # refused without --overwrite


def test_the_rule_by_itself(tmp_path):
    file, folder = tmp_path / "file", tmp_path / "folder"
    file.write_bytes(FOREIGN)
    folder.mkdir()
    (tmp_path / "link").symlink_to(file)
    check_file(tmp_path / "new" / "file")
    check_file(file, same_bytes(FOREIGN))
    with overwriting(True):
        check_file(file)
    check_new_folder(folder)
    check_folder(tmp_path / "new")
    for refused, why in (
        (lambda: check_file(file), "exists"),
        (lambda: check_file(folder), "is a folder"),
        (lambda: check_file(file / "below"), "is a file, not a folder"),
        (lambda: overwriting(True)(check_file)(tmp_path / "link", inputs=[file]), "is read by this command"),
        (lambda: check_folder(file), "is a file"),
        (lambda: check_folder(folder / "in", [folder]), "which is"),
        (lambda: check_new_folder(tmp_path), "holds other files"),
    ):
        with pytest.raises(QabiasError, match=why):
            refused()
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        for is_own in (same_bytes(b""), json_with("a")):  # reading it would have no end
            with pytest.raises(QabiasError, match="is a device or a pipe"):
                overwriting(True)(check_file)(tmp_path / "pipe", is_own)
    (folder / "a.json").write_text(json.dumps({"a": 1, "b": [1.5]}), encoding="utf-8")
    assert json_with("a", b=(1.5,))(folder / "a.json")
    assert not json_with("c")(folder / "a.json")
    assert not json_with(a=2)(folder / "a.json")
    assert not json_with(a=1)(file)
