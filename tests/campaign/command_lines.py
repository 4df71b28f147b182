"""The tables of the command lines: bad options, bad names, damaged files, other encodings."""

import itertools
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from qabias.support.stored import SEAL

from .commands import VALID, call


@dataclass(frozen=True)
class Line:
    """A command line, and what is done to the files before it."""

    name: str
    arguments: tuple[str, ...]
    damage: Callable[[Path], None] | None = None
    encoding: str = "utf-8"
    refused: bool = False
    """Whether it must be refused."""
    same: tuple[str, ...] = ()
    """A command line that must print the same, because what this one reads means the same."""


TEXTS = {
    "empty": "",
    "unknown": "nope",
    "accents": "ünï",
    "upwards": "../../x",
    "fields": "a|config:Religion",
    "long": "x" * 1000,
    "escape": "\x1b]0;title\x07",
    "newline": "a\nb",
    "not UTF-8": os.fsdecode(b"\xff\xfe"),
    "two equals": "a=b=c",
    "option": "--nope",
}
NUMBERS = {"text": "many", "fraction": "1.5", "empty": "", "negative": "-1", "huge": "9" * 30, "NaN": "nan"}
NUMBERS |= {"other digits": "٣", "hexadecimal": "0x10", "zero": "0"}
PATHS = {"empty": "", "below a file": "answers.csv/x", "below a device": "/dev/null/x", "a device": "/dev/full"}
PATHS |= {
    "long": "x" * 300,
    "newline": "a\nb",
    "not UTF-8": os.fsdecode(b"\xff\xfe"),
    "NUL": "a\0b",
    "a folder": "model",
}
PATHS |= {"a file": "answers.csv", "a ring": "ring", "a run": "run-bbnli", "a file of a run": "run-bbnli/run.json"}
PLACES = ("answers.csv", "model", "nope", "/dev/null", "/proc/self/mem", "ring", "", ".", "a\nb", os.fsdecode(b"\xff"))
PLACES += ("x" * 300, "\x1b[31m", "run-bbq/run.json", "run-bbq/predictions", "http://127.0.0.1:1/x")


def make_ring(place: Path) -> None:
    """A link to itself."""
    (place / "ring").symlink_to("ring")


def _options(name: str) -> list[tuple[str, str]]:
    """The options of a command that take a value, with its kind, as the help names them."""
    shown = call((*name.split(), "--help")).out.decode()
    return re.findall(r"^  (--[a-z-]+) <([a-z\[\]]+)>", shown, flags=re.MULTILINE)


def bad_options() -> list[Line]:
    """Every option of every command with every second bad value of its kind, once the even and once the odd ones."""
    lines = []
    for name in VALID:
        for number, (flag, kind) in enumerate(_options(name)):
            values = list({"path": PATHS, "int": NUMBERS, "float": NUMBERS}.get(kind, TEXTS).items())
            for said, value in values[number % 2 :: 2]:
                lines.append(Line(f"{name} {flag} {said}", (*VALID[name], flag, value), make_ring))
    return lines


def bad_names() -> list[Line]:
    """Every command with something else in the place of its first argument, without it and with one too many."""
    lines = []
    for name, valid in VALID.items():
        n = len(name.split())
        if valid[n].startswith("--"):
            continue
        for place in PLACES:
            lines.append(Line(f"{name} {place[:20]!r}", (*valid[:n], place, *valid[n + 1 :]), make_ring))
        lines.append(Line(f"{name} without", (*valid[:n], *valid[n + 1 :])))
        lines.append(Line(f"{name} one more", (*valid, "answers.csv")))
    lines += [Line(f"{name} unknown option", (*valid, "--nope"), refused=True) for name, valid in VALID.items()]
    return lines


READERS: dict[str, tuple[str, ...]] = {
    name: VALID[name] for name in ("show", "report", "compare", "check", "pool", "export", "results", "push results")
}
READERS["score"] = ("score", "run-bbq")
READERS["score otherwise"] = ("score", "run-bbq", "--score", "unparsed=wrong", "--output", "new")
READERS["merge"] = ("merge", "run-bbq", "--output", "new")
READERS["run"] = ("run", "bbq", "--model", "baseline:random", "--config", "Age", "--limit", "40", "--output", "run-bbq")
"""Commands that read the folder `run-bbq`."""


def _text(content: str | bytes) -> Callable[[Path], None]:
    def write(file: Path) -> None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))

    return write


def _changed(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    return lambda file: file.write_bytes(change(file.read_bytes())) and None


def _replace_by_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def _replace_by_ring(file: Path) -> None:
    file.unlink()
    file.symlink_to(file.name)


DAMAGE: dict[str, Callable[[Path], None]] = {
    "empty": _text(""),
    "null": _text("null"),
    "list": _text("[]"),
    "number": _text("1e999"),
    "text": _text('"text"'),
    "empty object": _text("{}"),
    "NaN": _text('{"scores": NaN}'),
    "garbage": _text(bytes(range(256)) * 4),
    "zeros": _text(bytes(4096)),
    "deep": _text("[" * 100_000),
    "deep object": _text('{"a":' * 50_000 + "1" + "}" * 50_000),
    "digits": _text('{"benchmark": ' + "1" * 5_000 + "}"),
    "surrogate": _text('{"benchmark": "\\ud83d"}'),
    "truncated": _changed(lambda content: content[: len(content) // 2]),
    "without the last byte": _changed(lambda content: content[:-1]),
    "twice": _changed(lambda content: content * 2),
    "UTF-16": _changed(lambda content: content.decode("utf-8", "replace").encode("utf-16")),
    "not UTF-8": _changed(lambda content: content.replace(b'"', b'"\xff', 1)),
    "missing": Path.unlink,
    "a folder": _replace_by_folder,
    "a ring": _replace_by_ring,
}
JSON_FILES = ("run.json", "scores.json", "analysis.json")
PART = "predictions/part-00000.parquet"


def damaged_files() -> list[Line]:
    """Every damage of every file of a run, before four of the commands that read it, by turns."""
    readers = itertools.cycle(READERS.items())
    lines = []
    for number, ((kind, damage), file) in enumerate(itertools.product(DAMAGE.items(), (*JSON_FILES, PART))):
        for reader, arguments in itertools.islice(readers, 5 if number % 3 == 0 else 4):
            lines.append(Line(f"{reader}: {file} {kind}", arguments, _in_run(file, damage)))
    return lines


def _in_run(file: str, damage: Callable[[Path], None]) -> Callable[[Path], None]:
    return lambda place: damage(place / "run-bbq" / file)


WRONG = (None, True, -1, 1e308, "text", "\ud83d", [], [1], {}, {"a": 1})


def _with_value(file: str, path: tuple[str, ...], value: Any) -> Callable[[Path], None]:
    def damage(place: Path) -> None:
        where = place / "run-bbq" / file
        content = json.loads(where.read_text("utf-8"))
        inner = content
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
        content.pop(SEAL, None)
        where.write_text(json.dumps(content), "utf-8")

    return damage


FIELDS = {
    "run.json": [
        *((name,) for name in ("benchmark", "signature", "created", "qabias_version", "versions", "arguments")),
        ("units_per_part",),
        *(("arguments", name) for name in ("benchmark", "model", "config", "source", "fixes", "format", "scorer")),
        *(("arguments", name) for name in ("norm", "limit", "seed", "options", "revision", "dtype", "rules")),
        *(("arguments", name) for name in ("answers", "orders", "asked_by")),
    ],
    "scores.json": [
        *((name,) for name in ("benchmark", "signature", "scores")),
        *(("scores", name) for name in ("accuracy_ambig", "bias_ambig", "n", "n_ambig", "ci", "by", "detectable")),
        *(("scores", "ci", name) for name in ("bias_ambig", "accuracy")),
        ("scores", "by", "category"),
    ],
    "analysis.json": [("tables",), ("examples",), ("signature",)],
}


def wrong_types() -> list[Line]:
    """Every field of the JSON files of a run with a value of another type, before one command after another."""
    readers = itertools.cycle(READERS.items())
    lines = []
    for file, paths in FIELDS.items():
        for path, value in itertools.product(paths, WRONG):
            reader, arguments = next(readers)
            name = f"{reader}: {file} {'.'.join(path)}={value!r}"
            lines.append(Line(name, arguments, _with_value(file, path, value)))
    return lines


def _part(change: Callable[[pa.Table], pa.Table]) -> Callable[[Path], None]:
    def damage(place: Path) -> None:
        file = place / "run-bbq" / PART
        pq.write_table(change(pq.read_table(file)), file)

    return damage


def _filled(table: pa.Table, column: str, value: Any) -> pa.Table:
    where = table.schema.get_field_index(column)
    return table.set_column(where, column, pa.array([value] * table.num_rows))


ANSWERS = "prediction"
PART_CHANGES: dict[str, Callable[[pa.Table], pa.Table]] = {
    "without answers": lambda table: table.drop_columns([ANSWERS]),
    "without keys": lambda table: table.drop_columns(["example_id"]),
    "without all": lambda table: table.select([]),
    "without rows": lambda table: table.slice(0, 0),
    "half": lambda table: table.slice(0, table.num_rows // 2),
    "twice": lambda table: pa.concat_tables([table, table]),
    "backwards": lambda table: table.take(list(range(table.num_rows))[::-1]),
    "texts": lambda table: _filled(table, ANSWERS, "zero"),
    "7": lambda table: _filled(table, ANSWERS, 7),
    "nulls": lambda table: _filled(table, ANSWERS, None),
    "fractions": lambda table: _filled(table, ANSWERS, 0.5),
    "lists": lambda table: _filled(table, ANSWERS, [0]),
    "keys of texts": lambda table: _filled(table, "example_id", "x"),
    "one key": lambda table: _filled(table, "example_id", 0),
    "another answer": lambda table: _filled(table, ANSWERS, 0),
    "other names": lambda table: table.rename_columns([f"{name}_" for name in table.column_names]),
    "foreign": lambda table: pa.table({"a": [1]}),
}


def altered_parts() -> list[Line]:
    """A part that says something else, before every command that reads it: all of it is refused or computed anew."""
    readers = {name: READERS[name] for name in ("score", "score otherwise", "merge", "show", "compare", "run")}
    return [
        Line(f"{reader}: part {kind}", arguments, _part(change))
        for (reader, arguments), (kind, change) in itertools.product(readers.items(), PART_CHANGES.items())
    ]


def _answers(change: Callable[[str], str | bytes]) -> Callable[[Path], None]:
    return lambda place: _text(change((place / "answers.csv").read_text("utf-8")))(place / "answers.csv")


SAME_ANSWERS: dict[str, Callable[[str], str | bytes]] = {
    "BOM": lambda text: "\ufeff" + text,
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "quoted": lambda text: '"' + text.strip().replace(",", '","').replace("\n", '"\n"') + '"\n',
    "no last newline": lambda text: text.rstrip("\n"),
    "more columns": lambda text: "\n".join(f"{line},more" for line in text.splitlines()) + "\n",
    "other order": lambda text: "\n".join([text.splitlines()[0], *text.splitlines()[:0:-1]]) + "\n",
}
"""Tables of answers that mean the same."""

BAD_ANSWERS: dict[str, Callable[[str], str | bytes]] = {
    "empty": lambda text: "",
    "head": lambda text: text.splitlines()[0] + "\n",
    "newlines": lambda text: "\n" * 100,
    "UTF-16": lambda text: text.encode("utf-16"),
    "latin-1": lambda text: text.encode() + b"\xe4\xf6,1,2\n",
    "NUL": lambda text: text + "\0\0\0",
    "column twice": lambda text: text.replace("category,example_id,prediction", "category,prediction,prediction"),
    "all columns twice": lambda text: "\n".join(f"{line},{line}" for line in text.splitlines()),
    "no answers": lambda text: text.replace("prediction", "answer"),
    "no key": lambda text: text.replace("example_id", "number"),
    "short row": lambda text: text + "Age\n",
    "long row": lambda text: text + "Age,1,2,3,4,5\n",
    "open quote": lambda text: text + '"Age,1,2\n',
    "answer 7": lambda text: text[: text.rstrip().rindex(",")] + ",7\n",
    "answer 0.5": lambda text: text[: text.rstrip().rindex(",")] + ",0.5\n",
    "answer inf": lambda text: text[: text.rstrip().rindex(",")] + ",inf\n",
    "answer true": lambda text: text[: text.rstrip().rindex(",")] + ",true\n",
    "key nan": lambda text: text + "Age,nan,1\n",
    "key unknown": lambda text: text + "Age,99999999,1\n",
    "key huge": lambda text: text + f"Age,{'9' * 40},1\n",
    "key twice": lambda text: text + text.splitlines()[-1] + "\n",
    "key of texts": lambda text: text + "Age,x,1\n",
    "other category": lambda text: text.replace("Age,", "Aged,"),
    "long line": lambda text: text + "x" * 3_000_000 + "\n",
    "escape": lambda text: text + "\x1b]0;title\x07,1,1\n",
    "formula": lambda text: text + '"=HYPERLINK(""http://x"")",1,1\n',
    "semicolons": lambda text: text.replace(",", ";"),
    "tabs": lambda text: text.replace(",", "\t"),
    "Parquet name": lambda text: b"PAR1" + text.encode() + b"PAR1",
}

JSON_LINES = {
    "list as key": '{"example_id": [0], "category": "Age", "prediction": 1}\n',
    "object as key": '{"example_id": {"a": 0}, "category": "Age", "prediction": 1}\n',
    "list as answer": '{"example_id": 0, "category": "Age", "prediction": [1]}\n',
    "null as answer": '{"example_id": 0, "category": "Age", "prediction": null}\n',
    "true as answer": '{"example_id": 0, "category": "Age", "prediction": true}\n',
    "mixed": '{"example_id": 0, "prediction": 1}\n{"example_id": "1", "prediction": "x"}\n',
    "surrogate": '{"example_id": 0, "category": "Age", "prediction": "\\ud83d"}\n',
    "no objects": "1\n2\n",
    "a list": "[1, 2]\n",
    "broken": '{"example_id": 0, "prediction": 1\n',
    "deep": "[" * 50_000 + "\n",
    "empty": "",
    "empty lines": "\n\n",
    "NaN": '{"example_id": NaN, "prediction": NaN}\n',
    "digits": '{"example_id": ' + "1" * 5_000 + ', "prediction": 1}\n',
    "other keys": '{"a": 1}\n{"b": 2}\n',
}


def answers_files() -> list[Line]:
    """Tables of predictions that mean the same, and bad ones, of every kind of file."""
    line = VALID["score"]
    lines = [Line(f"score CSV {kind}", line, _answers(change), same=line) for kind, change in SAME_ANSWERS.items()]
    lines += [Line(f"score CSV {kind}", line, _answers(change)) for kind, change in BAD_ANSWERS.items()]
    for ending in ("jsonl", "json"):
        arguments = ("score", f"bad.{ending}", *line[2:])
        for kind, text in JSON_LINES.items():
            lines.append(Line(f"score {ending} {kind}", arguments, _named(f"bad.{ending}", _text(text))))
    arguments = ("score", "bad.parquet", *line[2:])
    for kind, change in PART_CHANGES.items():
        lines.append(Line(f"score Parquet {kind}", arguments, _copied_part(change)))
    for kind, damage in DAMAGE.items():
        lines.append(Line(f"score CSV file {kind}", line, _named("answers.csv", damage)))
        lines.append(Line(f"plan model {kind}", VALID["plan"], _named("model/config.json", damage)))
        lines.append(Line(f"plan tokenizer {kind}", VALID["plan"], _named("model/tokenizer.json", damage)))
    return lines


def _named(name: str, damage: Callable[[Path], None]) -> Callable[[Path], None]:
    return lambda place: damage(place / name)


def _copied_part(change: Callable[[pa.Table], pa.Table]) -> Callable[[Path], None]:
    return lambda place: pq.write_table(change(pq.read_table(place / "run-bbq" / PART)), place / "bad.parquet")


def taken_outputs() -> list[Line]:
    """Outputs that are an input, a file of a run, or somebody's file: nothing that was there is replaced."""
    outputs = ("answers.csv", "run-bbq/run.json", f"run-bbq/{PART}", "run-bbq/scores.json", "run-bbnli")
    outputs += ("model", "model/config.json", ".", "run-unqover/analysis.json", "shard-0")
    commands = ("score", "report", "compare", "check", "pool", "export", "merge", "results", "build", "plan")
    commands += ("run",)
    lines = []
    for name, output in itertools.product(commands, outputs):
        arguments = list(VALID[name])
        arguments[arguments.index("--output") + 1] = output
        lines.append(Line(f"{name} --output {output}", tuple(arguments)))
    return lines


ENCODINGS = ("ascii", "cp1252", "cp437", "latin-1", "cp932")


def terminals() -> list[Line]:
    """Terminals that cannot print every letter."""
    names = [name for name in VALID if name not in ("build", "push dataset")]
    return [
        Line(f"{name} {encoding}", VALID[name], encoding=encoding)
        for name, encoding in itertools.product(names, ENCODINGS)
    ]


TABLES: dict[str, Callable[[], list[Line]]] = {
    "bad options": bad_options,
    "bad names": bad_names,
    "damaged files": damaged_files,
    "wrong types": wrong_types,
    "altered parts": altered_parts,
    "answers": answers_files,
    "taken outputs": taken_outputs,
    "terminals": terminals,
}
