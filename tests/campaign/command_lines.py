"""Good command lines of every command, the folder that they run in, and tables of bad ones."""

import csv
import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq

from tests.tiny_models import make_model, make_tokenizer

from .helpers import command

_RANDOM = ("--model", "baseline:random", "--limit", "40")
_SETUP = (
    ("run", "bbq", *_RANDOM, "--config", "Age", "--output", "run-bbq"),
    ("run", "bbq", *_RANDOM, "--config", "Age", "--format", "letters", "--output", "letters-bbq"),
    ("run", "bbnli", *_RANDOM, "--config", "gender", "--shard", "0/2", "--output", "shard-0"),
    ("run", "bbnli", *_RANDOM, "--config", "gender", "--shard", "1/2", "--output", "shard-1"),
)
_RESULTS = ("--model-id", "me/model", "--dataset", "me/bbq", "--sample")
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
    "results": ("results", "run-bbq", *_RESULTS, "--output", "new"),
    "build": ("build", "bbnli", "--config", "gender", "--output", "new"),
    "push dataset": ("push", "dataset", "bbnli", "--to", "me/bbnli", "--dry-run"),
    "push metric": ("push", "metric", "bbnli", "--to", "me/bbnli", "--dry-run"),
    "push results": ("push", "results", "run-bbq", "--to", "me/model", "--dataset", "me/bbq", "--sample", "--dry-run"),
}
"""What they write is called new."""

READERS = {name: VALID[name] for name in ("show", "report", "compare", "check", "pool", "export", "push results")}
READERS["score"] = ("score", "run-bbq")
READERS["merge"] = ("merge", "run-bbq", "--output", "new")
READERS["run"] = _SETUP[0]
"""Commands that read the folder `run-bbq`."""

WRITES = {"run": ("scores.json", "analysis.json", "report.html"), "score": ("scores.json", "analysis.json")}
"""What a command may write anew, or take away where it cannot be right, in the run folder that it is given."""


def make_place() -> None:
    """Fill this folder with small runs, a model and a table of answers."""
    make_model("llama").save_pretrained("model")
    make_tokenizer().save_pretrained("model")
    for arguments in _SETUP:
        ended = command(*arguments)
        assert ended.code == 0, (arguments, ended)
    rows = pq.read_table("run-bbq/predictions").select(["category", "example_id", "prediction"]).to_pylist()
    with open("answers.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    Path("ring").symlink_to("ring")


class Line(NamedTuple):
    """A command line, and what is done before it to the folder that it runs in."""

    name: str
    arguments: tuple[str, ...]
    damage: Callable[[], object] = lambda: None
    encoding: str = "utf-8"
    same: tuple[str, ...] = ()
    """A command line that must print the same, because what this one reads means the same."""


TEXTS = ("", "nope", "ünï", "../../x", "a|config:Religion", "x" * 1000, "\x1b]0;title\x07", "a\nb", "\udcff", "a=b=c")
TEXTS += ("--nope",)
NUMBERS = ("many", "1.5", "", "-1", "9" * 30, "nan", "٣", "0x10", "0")
PATHS = ("", "answers.csv/x", "/dev/null/x", "/dev/full", "x" * 300, "a\nb", "\udcff", "a\0b", "model", "answers.csv")
PATHS += ("ring", "run-bbq", "run-bbq/run.json", ".", "nope", "/proc/self/mem", "\x1b[31m", "http://127.0.0.1:1/x")


def _options(name: str) -> list[tuple[str, str]]:
    """The options of a command that take a value, with its kind, as the help names them."""
    return re.findall(r"^  (--[a-z-]+) <([a-z\[\]]+)>", command(*name.split(), "--help").out, flags=re.MULTILINE)


def bad_options() -> Iterator[Line]:
    """Every option of every command with every second bad value of its kind, once the even and once the odd ones."""
    for name, valid in VALID.items():
        for number, (flag, kind) in enumerate(_options(name)):
            values = {"path": PATHS, "int": NUMBERS, "float": NUMBERS}.get(kind, TEXTS)
            for value in values[number % 2 :: 2]:
                yield Line(f"{name} {flag} {value[:20]!r}", (*valid, flag, value))


def bad_names() -> Iterator[Line]:
    """Every command with something else in the place of its first argument, without it and with one too many."""
    for name, valid in VALID.items():
        n = len(name.split())
        for place in PATHS:
            yield Line(f"{name} {place[:20]!r}", (*valid[:n], place, *valid[n + 1 :]))
        yield Line(f"{name} without", (*valid[:n], *valid[n + 1 :]))
        yield Line(f"{name} one more", (*valid, "answers.csv"))


def taken_outputs() -> Iterator[Line]:
    """Outputs that are an input, a file of a run, or somebody's file: nothing that was there is replaced."""
    outputs = ("answers.csv", "run-bbq/run.json", "run-bbq/predictions/part-00000.parquet", "model", ".", "shard-0")
    for (name, valid), output in itertools.product(VALID.items(), outputs):
        if "--output" in valid:
            yield Line(f"{name} --output {output}", (*valid[: valid.index("--output")], "--output", output))


def terminals() -> Iterator[Line]:
    """Terminals that cannot print every letter."""
    for name, encoding in itertools.product(VALID, ("ascii", "cp1252", "cp932")):
        yield Line(f"{name} {encoding}", VALID[name], encoding=encoding)


def _changed(path: str, change: Callable[[bytes], bytes]) -> Callable[[], object]:
    return lambda: Path(path).write_bytes(change(Path(path).read_bytes()))


SAME_ANSWERS: dict[str, Callable[[str], str]] = {
    "BOM": lambda text: "\ufeff" + text,
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "quoted": lambda text: '"' + text.strip().replace(",", '","').replace("\n", '"\n"') + '"\n',
    "no last newline": lambda text: text.rstrip("\n"),
    "more columns": lambda text: "\n".join(f"{line},more" for line in text.splitlines()) + "\n",
    "other order": lambda text: "\n".join([text.splitlines()[0], *text.splitlines()[:0:-1]]) + "\n",
}
"""Tables of answers that mean the same."""
BAD_ENDS = ("\0\0\0", "Age\n", "Age,1,2,3,4,5\n", '"Age,1,2\n', "Age,nan,1\n", "Age,99999999,1\n", "Age,x,1\n")
BAD_ENDS += (
    f"Age,{'9' * 40},1\n",
    "x" * 3_000_000 + "\n",
    "\x1b]0;title\x07,1,1\n",
    '"=HYPERLINK(""http://x"")",1,1\n',
)
BAD_ROWS = (
    '{"example_id": [0], "category": "Age", "prediction": 1}',
    "1",
    "[1, 2]",
    '{"example_id": 0',
    "",
    "[" * 50_000,
)
BAD_ROWS += ('{"example_id": 0, "category": "Age", "prediction": [1]}', '{"example_id": NaN, "prediction": NaN}')
BAD_ROWS += ('{"example_id": ' + "1" * 5_000 + ', "prediction": 1}', '{"a": 1}\n{"b": 2}', '{"prediction": "\\ud83d"}')


def answers_files() -> Iterator[Line]:
    """Tables of predictions that mean the same, and bad ones."""
    line, path = VALID["score"], "answers.csv"
    for kind, change in SAME_ANSWERS.items():
        changed = _changed(path, lambda content, change=change: change(content.decode()).encode())
        yield Line(f"answers {kind}", line, changed, same=line)
    for end in BAD_ENDS:
        yield Line(f"answers and {end[:20]!r}", line, _changed(path, lambda content, end=end: content + end.encode()))
    for before, after in ((",", ";"), ("prediction", "answer"), ("example_id", "prediction"), ("Age,", "Aged,")):
        changed = _changed(path, lambda text, a=before, b=after: text.replace(a.encode(), b.encode()))
        yield Line(f"answers with {after}", line, changed)
    for text in BAD_ROWS:
        write = _changed(path, lambda _, text=text: f"{text}\n".encode())
        yield Line(
            f"rows {text[:20]!r}",
            ("score", "bad.jsonl", *line[2:]),
            lambda write=write: (write(), Path(path).rename("bad.jsonl")),
        )


TABLES = {table.__name__: table for table in (bad_options, bad_names, taken_outputs, terminals, answers_files)}
