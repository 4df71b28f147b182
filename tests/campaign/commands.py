"""The command line in this process: what it printed, how it ended, and whether what it read is as it was."""

import contextlib
import hashlib
import io
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from qabias import cli
from tests.tiny_models import make_model, make_tokenizer

from .counts import HangError, time_limit

SECONDS = 120
"""In which a command on a few rows ends on a busy machine."""
LONGEST = 2000
"""Letters of the one line, however long the value is."""
CHECK_CODES = {0, 1, 2, 3}
"""Of `qabias check`: kept, broken, a mistake, undecided."""

_RANDOM = ("--model", "baseline:random", "--limit", "40")
_SETUP = (
    ("run", "bbq", *_RANDOM, "--config", "Age", "--output", "run-bbq"),
    ("run", "bbq", *_RANDOM, "--config", "Age", "--format", "letters", "--output", "letters-bbq"),
    ("run", "unqover", *_RANDOM, "--config", "religion", "--output", "run-unqover"),
    ("run", "bbnli", *_RANDOM, "--config", "gender", "--output", "run-bbnli"),
    ("run", "bbnli", *_RANDOM, "--config", "gender", "--shard", "0/2", "--output", "shard-0"),
    ("run", "bbnli", *_RANDOM, "--config", "gender", "--shard", "1/2", "--output", "shard-1"),
)

_RESULTS = ("--model-id", "me/model", "--dataset", "me/bbq", "--sample")
VALID: dict[str, tuple[str, ...]] = {
    "run": ("run", "bbnli", *_RANDOM, "--config", "gender", "--shard", "1/2", "--output", "new"),
    "plan": ("plan", "bbnli", "--model", "model", "--config", "gender", "--limit", "20", "--output", "new.json"),
    "score": ("score", "answers.csv", "--config", "Age", "--output", "new.json"),
    "show": ("show", "run-bbq"),
    "report": ("report", "run-bbq", "--output", "new.html"),
    "compare": ("compare", "run-bbq", "letters-bbq", "--allow-mixed", "--output", "new"),
    "check": ("check", "run-bbq", "--max", "bias_ambig=0.1", "--output", "new.json"),
    "pool": ("pool", "run-bbq", "letters-bbq", "--output", "new"),
    "export": ("export", "run-bbq", "--format", "csv", "--output", "new"),
    "merge": ("merge", "shard-0", "shard-1", "--output", "new"),
    "results": ("results", "run-bbq", *_RESULTS, "--output", "new"),
    "build": ("build", "bbnli", "--config", "gender", "--output", "new"),
    "familiarity": (
        *("familiarity", "bbq", "--model", "model", "--config", "Religion", "--limit", "8", "--texts", "2"),
        *("--output", "new"),
    ),
    "push dataset": ("push", "dataset", "bbnli", "--to", "me/bbnli", "--dry-run"),
    "push metric": ("push", "metric", "bbnli", "--to", "me/bbnli", "--dry-run"),
    "push results": ("push", "results", "run-bbq", "--to", "me/model", "--dataset", "me/bbq", "--sample", "--dry-run"),
}
"""A good command line of every command, in the folder that `make_place` fills; what it writes is called new."""

WRITES = {
    "run": ("scores.json", "analysis.json", "report.html"),
    "score": ("scores.json", "analysis.json"),
    "report": ("report.html",),
}
"""What a command may write anew, or take away where it cannot be right, in the run folder that it is given."""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: object
    out: bytes
    err: str
    error: str = ""
    """What was raised, which nothing may be."""
    changed: list[str] = field(default_factory=list)
    """Files that were there before and are others now."""


def digests(folder: Path) -> dict[str, str]:
    """What every file, link and special file in a folder is."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = os.fsencode(path.relative_to(folder)).decode("utf-8", "backslashreplace")
        if path.is_symlink():
            found[name] = f"link to {path.readlink()!r}"
        elif path.is_file():
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        elif not path.is_dir():
            found[name] = "special"
    return found


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Be in a folder for a while."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def call(arguments: tuple[str, ...], encoding: str = "utf-8", seconds: float = SECONDS) -> Ended:
    """Run a command line in this process and folder."""
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="strict", write_through=True)
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace", write_through=True)
    before = sys.argv
    sys.argv = ["qabias", *arguments]
    code: object = None
    error = ""
    try:
        with time_limit(seconds), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            cli.main()
    except SystemExit as stopped:
        code = stopped.code or 0
    except (Exception, HangError) as raised:
        error = f"{type(raised).__name__}: {raised}"[:300]
    finally:
        sys.argv = before
    return Ended(code, out.buffer.getvalue(), err.buffer.getvalue().decode(), error)


def call_in(place: Path, arguments: tuple[str, ...], encoding: str = "utf-8") -> Ended:
    """Run a command line in a folder, and see which files of it are others afterwards."""
    before = digests(place)
    with inside(place):
        ended = call(arguments, encoding)
    after = digests(place)
    changed = [name for name, digest in before.items() if after.get(name) != digest]
    return Ended(ended.code, ended.out, ended.err, ended.error, changed)


def allowed_changes(arguments: tuple[str, ...]) -> set[str]:
    """The names of files that a command may write anew: those of the run that it makes, scores or reports."""
    command = arguments[0] if arguments else ""
    if command == "run" and "--output" in arguments:
        folders = [arguments[arguments.index("--output") + 1]]
    else:
        folders = [] if "--output" in arguments else list(arguments[1:])
    return {f"{folder}/{name}" for folder in folders for name in WRITES.get(command, ())}


def fault_of(ended: Ended, arguments: tuple[str, ...]) -> str | None:
    """What is wrong with how a command ended, whatever it was asked."""
    if ended.error:
        return ended.error
    codes = CHECK_CODES if arguments[:1] == ("check",) else {0, 2}
    if ended.code not in codes:
        return f"exit code {ended.code!r}"
    if "Traceback (most recent call last)" in ended.err:
        return "traceback"
    changed = set(ended.changed) - allowed_changes(arguments)
    if changed:
        return f"changed {sorted(changed)}"
    return fault_of_message(ended.err) if ended.code == 2 else None


def fault_of_message(err: str) -> str | None:
    if err.startswith("Usage:"):  # of typer: what was wrong stands in its last line
        return None if "Error: " in err else "usage without an error"
    lines = [line for line in err.split("\n") if line.startswith("qabias: error: ")]
    if len(lines) != 1:
        return f"{len(lines)} lines of errors in {err[-300:]!r}"
    if len(lines[0]) > LONGEST:
        return f"a line of {len(lines[0])} letters"
    if not err.endswith(f"{lines[0]}\n"):
        return f"more after the error: {err[-300:]!r}"
    control = [letter for letter in lines[0] if not letter.isprintable() and letter not in "\u00a0\u2009\u202f"]
    return f"control characters {control[:3]} in {lines[0][:200]!r}" if control else None


def make_place(folder: Path) -> Path:
    """Fill a folder with small runs, a model and answers."""
    folder.mkdir(parents=True)
    with inside(folder):
        make_model("llama").save_pretrained("model")
        make_tokenizer().save_pretrained("model")
        for arguments in _SETUP:
            ended = call(arguments)
            assert ended.code == 0, (arguments, ended)
        _write_answers(Path())
    return folder


def _write_answers(folder: Path) -> None:
    """The answers of the run of BBQ as a table of predictions."""
    import pyarrow.parquet as pq

    table = pq.read_table(folder / "run-bbq" / "predictions" / "part-00000.parquet")
    rows = table.select(["category", "example_id", "prediction"]).to_pylist()
    lines = ["category,example_id,prediction", *(",".join(map(str, row.values())) for row in rows)]
    (folder / "answers.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def copied(place: Path, folder: Path) -> Path:
    """A copy of the folder of `make_place`, for one command."""
    shutil.copytree(place, folder, symlinks=True)
    return folder
