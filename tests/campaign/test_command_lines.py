"""Bad command lines: one line that says what to do, no traceback, and what was there stays as it was."""

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.main import get_command

from qabias import cli
from tests.conftest import ROOT
from tests.tiny_models import make_model, make_tokenizer

from .helpers import TimeLimit, chosen, command

_RANDOM = ("--model", "baseline:random", "--limit", "40")
_SETUP = (
    ("run", "bbq", *_RANDOM, "--config", "Age", "--output", "run-bbq"),
    ("run", "bbq", *_RANDOM, "--output", "run-all"),
    ("run", "bbq", *_RANDOM, "--config", "Age", "--format", "letters", "--output", "letters-bbq"),
    ("run", "bbnli", *_RANDOM, "--config", "gender", "--shard", "0/2", "--output", "shard-0"),
    ("run", "bbnli", *_RANDOM, "--config", "gender", "--shard", "1/2", "--output", "shard-1"),
)
_RESULTS = ("--to", "me/model", "--dataset", "me/bbq", "--sample")
VALID: dict[str, tuple[str, ...]] = {
    "run": ("run", "bbnli", *_RANDOM, "--config", "gender", "--shard", "1/2", "--output", "new"),
    "score": ("score", "answers.csv", "--config", "Age", "--output", "new.json"),
    "show": ("show", "run-bbq"),
    "report": ("report", "run-bbq", "--output", "new.html"),
    "compare": ("compare", "run-bbq", "letters-bbq", "--allow-mixed", "--output", "new"),
    "check": ("check", "run-bbq", "--max", "bias_ambig=0.1", "--output", "new.json"),
    "pool": ("pool", "run-bbq", "letters-bbq", "--output", "new"),
    "export": ("export", "run-bbq", "--format", "csv", "--output", "new"),
    "merge": ("merge", "shard-0", "shard-1", "--output", "new"),
    "results": ("push", "results", "run-all", *_RESULTS, "--write-to", "new"),
    "build": ("build", "bbnli", "--config", "gender", "--output", "new"),
    "push dataset": ("push", "dataset", "bbnli", "--to", "me/bbnli", "--dry-run"),
    "push metric": ("push", "metric", "bbnli", "--to", "me/bbnli", "--dry-run"),
    "push results": ("push", "results", "run-all", "--to", "me/model", "--dataset", "me/bbq", "--sample", "--dry-run"),
}
"""What they write is called new."""
WRITES = {"run": ("scores.json", "analysis.json", "report.html"), "score": ("scores.json", "analysis.json")}
"""What a command may write anew, or take away where it cannot be right, in the run folder that it is given."""

TEXTS = ("", "nope", "../../x", "a|config:Religion", "x" * 1000, "\x1b]0;title\x07", "a\nb", "\udcff", "a=b=c", "--no")
NUMBERS = ("many", "1.5", "", "-1", "9" * 30, "nan", "٣", "0x10", "0")
PATHS = ("", "answers.csv/x", "/dev/null/x", "/dev/full", "x" * 300, "a\nb", "\udcff", "a\0b", "model", "answers.csv")
PATHS += ("ring", "run-bbq", "run-bbq/run.json", ".", "nope", "/proc/self/mem", "\x1b[31m", "http://127.0.0.1:1/x")
SPELLINGS = (
    "{}",
    " {} ",
    "{}.0",
    "({})",
    "ans{}",
    "ans {}",
    '{{"answer": {}}}',
    "Answer: {}\nbecause of 3",
)
"""Of an index as a text."""
_LINES = "One line, and\nanother.\r\n" * 2000


def _as_json(text, written):
    rows = list(csv.DictReader(text.splitlines()))
    return json.dumps([{**row, "prediction": written(int(row["prediction"]))} for row in rows])


SAME_ANSWERS = {
    "BOM": lambda text: "\ufeff" + text,
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "quoted": lambda text: '"' + text.strip().replace(",", '","').replace("\n", '"\n"') + '"\n',
    "no last newline": lambda text: text.rstrip("\n"),
    "more columns": lambda text: "\n".join(f"{line},more" for line in text.splitlines()) + "\n",
    "other order": lambda text: "\n".join([text.splitlines()[0], *text.splitlines()[:0:-1]]) + "\n",
    "semicolons": lambda text: text.replace(",", ";"),
    "tabs": lambda text: text.replace(",", "\t"),
    "sep=": lambda text: "sep=|\n" + text.replace(",", "|"),
    "line breaks": lambda text: "".join(f'{line},"{_LINES}{n}"\n' for n, line in enumerate(text.splitlines())),
    "list": lambda text: _as_json(text, int),
    "mixed": lambda text: _as_json(text, lambda place: place if place % 2 else str(place)),
    **{spelling: lambda text, as_=spelling: _as_json(text, as_.format) for spelling in SPELLINGS},
}
"""Tables of answers that mean the same."""
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le")
BAD_ENDS = ("\0\0\0", "Age\n", "Age,1,2,3,4,5\n", '"Age,1,2\n', "Age,nan,1\n", "Age,99999999,1\n", "Age,x,1\n")
BAD_ENDS += (f"Age,{'9' * 40},1\n", "x" * 3_000_000 + "\n", "\x1b]0;title\x07,1,1\n")
BAD_ROWS = ('{"example_id": [0], "category": "Age", "prediction": 1}', "1", "[1, 2]", '{"example_id": 0', "")
BAD_ROWS += ("[" * 50_000, '{"example_id": 0, "category": "Age", "prediction": [1]}', '{"prediction": "\\ud83d"}')
BAD_ROWS += ('{"example_id": NaN, "prediction": NaN}', '{"example_id": ' + "1" * 5_000 + "}", '{"a": 1}\n{"b": 2}')


def bad_options():
    """Every option of every command with every second bad value of its kind, once the even and once the odd ones."""
    for valid in VALID.values():
        parser = get_command(cli.app)
        for word in valid[: 1 + (valid[0] == "push")]:
            parser = parser.get_command(None, word)
        options = [param for param in parser.params if param.param_type_name == "option" and not param.is_flag]
        for number, param in enumerate(options):
            kind = getattr(param.type_descriptor.annotation, "__name__", "")
            values = {"Path": PATHS, "int": NUMBERS, "float": NUMBERS}.get(kind, TEXTS)
            yield from ((*valid, param.opts[0], value) for value in values[number % 2 :: 2])


def bad_names():
    """Every command with something else in the place of its first argument, without it and with one too many."""
    for name, valid in VALID.items():
        n = len(name.split())
        yield from ((*valid[:n], place, *valid[n + 1 :]) for place in PATHS)
        yield (*valid[:n], *valid[n + 1 :])
        yield (*valid, "answers.csv")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder of small runs, a model and a table of answers that every command gets a copy of."""
    folder = tmp_path_factory.mktemp("commands")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        make_model("llama").save_pretrained("model")
        make_tokenizer().save_pretrained("model")
        assert [command(*arguments).code for arguments in _SETUP] == [0] * len(_SETUP)
        rows = pq.read_table("run-bbq/predictions").select(["category", "example_id", "prediction"]).to_pylist()
        with open("answers.csv", "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, rows[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        Path("ring").symlink_to("ring")
    return folder


@pytest.fixture(autouse=True)
def away_from_home(monkeypatch, tmp_path):
    """Nothing of this machine is read or written: no cache, no server, no token."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("QABIAS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("HF_TOKEN", raising=False)


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def fault(arguments, here):
    """Return what is wrong with how a command line ends, or None."""
    before = files(here)
    with TimeLimit(120):
        ended = command(*arguments)
    after = files(here)
    name = arguments[0] if arguments else ""
    folders = [arguments[-1]] if name == "run" else [] if "--output" in arguments else arguments[1:]
    written = {f"{folder}/{file}" for folder in folders for file in WRITES.get(name, ())}
    if changed := {path for path, content in before.items() if after.get(path) != content} - written:
        return f"changed {sorted(changed)}"
    if ended.err.startswith("Usage:"):  # of typer: what was wrong stands in its last line
        return None if ended.code == 2 and "Error: " in ended.err else "usage without an error"
    if not ended.is_clean and not (name == "check" and ended.code in (1, 3)):
        return f"code {ended.code}: {ended.err[-300:]}"
    if any(not letter.isprintable() and letter not in "\n\r\t\u00a0\u2009\u202f" for letter in ended.err):
        return f"control characters: {ended.err[-300:]!r}"
    return None


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("table", [bad_options, bad_names])
@pytest.mark.filterwarnings("ignore")
def test_a_bad_command_line_is_one_line_and_changes_nothing(place, tmp_path, monkeypatch, table, part):
    faults = []
    for number, arguments in enumerate(chosen(list(table())[part::4], quick=2)):
        here = shutil.copytree(place, tmp_path / str(number), symlinks=True)
        monkeypatch.chdir(here)
        if wrong := fault(arguments, here):
            faults.append(f"{arguments}: {wrong}")
    assert not faults, f"{len(faults)} faults:\n" + "\n".join(faults)


@pytest.mark.filterwarnings("ignore")
def test_a_table_of_answers_means_the_same_or_is_refused_in_one_line(place, tmp_path, monkeypatch):
    here = shutil.copytree(place, tmp_path / "here", symlinks=True)
    monkeypatch.chdir(here)
    path = here / "answers.csv"
    text = path.read_text("utf-8")
    expected = command(*VALID["score"]).out
    scores = json.loads(Path("new.json").read_text("utf-8"))["scores"]
    swaps = ((",", ";"), ("prediction", "answer"), ("example_id", "prediction"), ("Age,", "Aged,"))
    bad = [
        *(text + end for end in BAD_ENDS),
        *(text.replace(*swap) for swap in swaps),
        *(f"{row}\n" for row in BAD_ROWS),
    ]
    for changed in chosen([*(change(text) for change in SAME_ANSWERS.values()), *bad], quick=8):
        Path("new.json").unlink(missing_ok=True)
        path.write_text(changed, "utf-8", newline="")
        assert fault(VALID["score"], here) is None, changed[-100:]
        (here / "bad.jsonl").write_text(changed, "utf-8")
        assert fault(("score", "bad.jsonl", *VALID["score"][2:]), here) is None, changed[-100:]
    for number, (name, change) in enumerate(SAME_ANSWERS.items()):
        Path("new.json").unlink(missing_ok=True)
        changed = change(text)
        table = here / ("answers.json" if changed.startswith("[") else "answers.csv")
        table.write_bytes(changed.encode(ENCODINGS[number % len(ENCODINGS)]))
        output = command("score", table.name, *VALID["score"][2:]).out
        assert output == expected or table.suffix == ".json", name
        same = json.loads(Path("new.json").read_text("utf-8"))["scores"]
        assert {key: same[key] for key in scores} == scores, name


PROCESSES = [
    *((VALID[name], {"LC_ALL": "C", "PYTHONUTF8": "0"}, "pipe") for name in ("run", "compare")),
    *((VALID[name], {}, output) for name in ("show", "check") for output in ("closed", "full")),
    (("show", os.fsdecode(b"\xff\xfe")), {}, "pipe"),
    ((*VALID["run"], "--source", "official"), {"QABIAS_UPSTREAM": "answers.csv"}, "pipe"),
    (VALID["run"], {"HOME": "/nonexistent"}, "pipe"),
]
"""Command lines as processes of their own: arguments, environment, and what their output is."""


@pytest.mark.parametrize(("arguments", "environment", "output"), chosen(PROCESSES, 3))
def test_a_process_of_its_own_ends_with_its_code_and_no_traceback(place, tmp_path, arguments, environment, output):
    here = shutil.copytree(place, tmp_path / "here", symlinks=True)
    before = files(here)
    with open("/dev/full" if output == "full" else os.devnull, "w") as sink:
        process = subprocess.Popen(
            [sys.executable, "-m", "qabias", *arguments],
            cwd=here,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            stdin=subprocess.DEVNULL,
            stdout=sink if output == "full" else subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        if output == "closed":
            process.stdout.close()
            process.stdout = None
        _, err = process.communicate(timeout=300)
    assert b"Traceback" not in err
    assert b"UserWarning" not in err
    assert process.returncode in ({0, 2} if output == "pipe" else {0, 1, 2, 3})
    after = files(here)
    assert {file: after.get(file) for file in before} == before
