"""How a command ends that cannot go on: one line that says what to do, whatever was raised, in any encoding."""

import errno
import io
import os
import shutil
import subprocess
import sys
import warnings

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import qabias
from qabias import cli
from qabias.benchmarks import load_benchmark
from qabias.cli import folders
from qabias.cli.failures import FAULT, INTERRUPTED
from qabias.errors import QabiasError
from qabias.report import terminal
from qabias.runs.arguments import RunArguments
from qabias.runs.run import run
from qabias.runs.signature import signature_fields
from qabias.support.printable import PLAIN, write_plainly
from qabias.support.suggest import closest

from .conftest import ROOT
from .kit.commands import command


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A finished run of a few examples."""
    where = tmp_path_factory.mktemp("runs") / "run"
    return run(RunArguments("bbq", "baseline:random", "Age", limit=40), where).folder


@pytest.fixture
def called(monkeypatch, tmp_path):
    """Calls commands; gives exit code, standard output and standard error."""
    monkeypatch.chdir(tmp_path)
    return command


def raises(monkeypatch, error):
    def show(*_, **options):
        raise error

    monkeypatch.setattr(folders, "_check_folder", show)


def test_a_fault_names_its_place_and_has_exit_code_70(called, monkeypatch):
    raises(monkeypatch, KeyError("gone\nfor good"))
    code, out, err = called("show", "runs/x")
    assert (code, out, err.count("\n")) == (FAULT, "", 2)
    assert err.startswith("fault: ")
    assert "(KeyError in qabias/cli/folders.py:" in err
    assert "qabias --debug show" in err


@pytest.mark.parametrize("way", ["option", "environment"])
def test_debug_prints_the_traceback_before_the_line(called, monkeypatch, way):
    raises(monkeypatch, QabiasError("no such thing.", "Make one."))
    if way == "environment":
        monkeypatch.setenv("QABIAS_DEBUG", "1")
    code, _, err = called(*(["--debug"] if way == "option" else []), "show", "x")
    assert code == 2
    assert err.startswith("Traceback (most recent call last)")
    assert err.endswith("\nerror: no such thing.\n  fix: Make one.\n")


@pytest.mark.parametrize("error", [QabiasError("x, " * 10**6, "y, " * 10**6), OSError(1, "z " * 10**6)])
def test_no_message_is_long(called, monkeypatch, error):
    raises(monkeypatch, error)
    code, _, err = called("show", "x")
    assert code == 2
    assert len(err.splitlines()) == 2
    assert len(err) < 5000
    assert "characters)" in err


def test_ctrl_c_is_one_line_and_exit_code_130(called, monkeypatch):
    raises(monkeypatch, KeyboardInterrupt())
    assert called("show", "x") == (INTERRUPTED, "", "stopped\n")


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            OSError(errno.ENOSPC, "No space left on device", "a/.x.json.abcd1234.unfinished"),
            "a/x.json: No space left on device",
        ),
        (OSError(errno.ENOSPC, "Full", "source", None, "target"), "target: Full"),
        (PermissionError(errno.EACCES, "Permission denied", "a"), "a: Permission denied"),
    ],
)
def test_what_the_system_refuses_names_the_file_and_what_to_do(called, monkeypatch, error, line):
    raises(monkeypatch, error)
    code, out, err = called("show", "x")
    assert (code, out) == (2, "")
    assert err.splitlines()[0] == f"error: {line}."


def test_too_little_memory_is_no_fault(called, monkeypatch):
    raises(monkeypatch, MemoryError())
    code, _, err = called("show", "x")
    assert (code, err.count("\n")) == (2, 2)
    assert "memory" in err


def test_a_warning_is_one_line_without_source(called, monkeypatch):
    def show(*_, **options):
        warnings.warn("this is\nodd", stacklevel=1)

    monkeypatch.setattr(folders, "_check_folder", lambda _: None)
    monkeypatch.setattr(terminal, "show_folder", show)
    assert called("show", "x") == (0, "", "warning: this is odd\n")


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
@pytest.mark.parametrize("words", [["show"], ["compare"], ["list"], ["--help"], ["check"]], ids=" ".join)
def test_every_command_writes_in_any_encoding(folder, monkeypatch, tmp_path, encoding, words):
    monkeypatch.chdir(tmp_path)
    again = shutil.copytree(folder, tmp_path / "again")
    given = {"compare": [folder, again], "check": [folder, "--max", "bias_ambig=0.9"]}
    arguments = [*words, *given.get(words[0], [] if words[0] in ("list", "--help") else [folder])]
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding=encoding))
    monkeypatch.setattr(sys, "argv", ["qabias", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code in (0, None) or words == ["check"]
    sys.stdout.flush()
    text = out.getvalue().decode(encoding)
    if words[0] not in ("list", "--help"):  # which have question marks of their own
        assert "?" not in text
    if words == ["show"]:
        assert "[-" in text  # the minus sign of tables is U+2212


def test_characters_become_their_plain_signs(monkeypatch):
    write_plainly()
    assert "−5 – é … │█→ \u4e2d".encode("ascii", PLAIN) == b"-5 - e ... |#-> ?"
    assert "−5 – é …".encode("cp1252", PLAIN) == b"-5 \x96 \xe9 \x85"
    assert "\ud83d".encode("utf-8", PLAIN) == b"?"


@pytest.mark.slow
def test_a_reader_that_stops_reading_is_no_error(folder):
    code = f"{sys.executable} -m qabias list | head -1"
    found = subprocess.run(
        ["bash", "-o", "pipefail", "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert found.stderr == ""
    assert found.stdout.count("\n") == 1


# Input that used to end in a traceback


def test_a_probability_that_is_nan_is_refused_with_its_row(tmp_path):
    rows = qabias.load("unqover", "religion", limit=8)
    names = ("s1_12", "s2_12", "s1_21", "s2_21", "s1_12_neg", "s2_12_neg", "s1_21_neg", "s2_21_neg")
    values = {name: pa.array([0.5] * (len(rows) - 1) + [float("nan") if name == "s1_21" else 0.5]) for name in names}
    table = pa.table({**{key: rows.data.table[key] for key in ("set", "example_id")}, **values})
    pq.write_table(table, tmp_path / "p.parquet")
    with pytest.raises(QabiasError, match=rf"p\.parquet: row {len(rows)}: s1_21 is NaN"):
        qabias.score(tmp_path / "p.parquet", benchmark="unqover", config="religion")


def test_a_mistyped_run_is_named_with_those_beside_it(called, folder):
    code, _, err = called("score", folder.with_name("rnu"))
    assert code == 2
    assert f"{folder.with_name('rnu')}: no such file or folder. Did you mean 'run'?" in err


def test_a_run_that_has_lost_what_it_asked_is_not_shown_as_a_comparison(folder, tmp_path, called):
    changed = shutil.copytree(folder, tmp_path / "run")
    (changed / "run.json").unlink()
    code, out, err = called("show", changed)
    assert (code, out, err.count("\n")) == (2, "", 2)
    assert "run.json" in err


TABLES = {
    "twice.csv": ("example_id,prediction,prediction\n0,1,1\n", "twice.csv: 2 columns have the name 'prediction'"),
    "list.jsonl": ('{"example_id": [0], "prediction": 1}\n', r"list.jsonl: row 1: example_id is [0]"),
    "truth.jsonl": ('{"example_id": 0, "prediction": true}\n', "truth.jsonl: row 1: prediction is True"),
    "long.csv": (f"example_id,prediction\n{'9' * 18},1\n", "category 'Age', example_id 99999"),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_wrong_table_of_predictions_is_one_line_with_the_row(called, tmp_path, name):
    text, line = TABLES[name]
    (tmp_path / name).write_text(text, encoding="utf-8")
    code, _, err = called("score", name, "--config", "Age")
    assert (code, err.count("\n")) == (2, 2)
    assert line in err


def test_a_card_that_is_not_utf_8_is_one_line(called, folder, tmp_path):
    (tmp_path / "README.md").write_bytes("---\n---\ncaf\xe9\n".encode("latin-1"))
    ids = ("--to", "me/m", "--dataset", "me/d", "--write-to", ".")
    code, _, err = called("push", "results", folder, *ids, "--sample", "--model-index")
    assert (code, err.count("\n")) == (2, 2)
    assert "is not UTF-8" in err


@pytest.mark.slow
def test_a_partial_table_says_first_how_much_it_covers(called, tmp_path):
    (tmp_path / "few.csv").write_text("example_id,prediction\n0,1\n1,2\n2,0\n3,1\n", encoding="utf-8")
    code, out, _ = called("score", "few.csv", "--config", "Age", "--output", "few.json")
    assert code == 0
    result = qabias.score(tmp_path / "few.csv", config="Age")
    assert out.splitlines()[0] == result.sample["Answered"] == "4 of 3,680 examples of Age have an answer: 0.1 %"
    rows = qabias.load("bbq", "Age")
    whole = qabias.score([0] * len(rows), rows)
    assert "coverage" not in signature_fields(whole.signature)
    with pytest.raises(QabiasError, match=r"coverage: .*'4/3680'.*'whole'"):
        qabias.compare([result, whole])


def test_a_name_in_other_letters_is_the_closest_to_itself():
    names = [measure.name for measure in load_benchmark("bbq").facts.measures]
    assert [closest(name.upper(), names)[0] for name in names] == names
