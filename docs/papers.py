"""The tables of docs/paper-tables.md: every numbered table, figure and equation of the papers, with its command.

    python -m docs.papers            run a small stand-in of every command; fail where a table is missing
    python -m docs.papers --write    write the tables into docs/paper-tables.md as well

What is checked, and the printed values, stand in docs/reproduce.yaml. Values from the authors' published outputs are
computed again where these are at hand (`QABIAS_UPSTREAM`).
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from typer.testing import CliRunner

from lab.reproduce.__main__ import main as reproduce
from qabias.benchmarks import load_benchmark
from qabias.cli import app
from qabias.errors import QabiasError
from qabias.scores.score import as_score
from qabias.share.bbq_dataset.template import CATEGORIES
from qabias.tables.model import Analysis, Table, find, read_analysis

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "docs" / "reproduce.yaml"
PAGE = ROOT / "docs" / "paper-tables.md"
BEGIN, END = "<!-- papers: written by docs/papers.py -->\n", "<!-- end of papers -->\n"
HEADINGS = ("item", "command", "table", "status", "published", "from published outputs")
OUTPUTS = "nyu-mll/BBQ/results/UnifiedQA/preds_{}.jsonl"

Item = Mapping[str, Any]


class MissingError(Exception):
    """An item of a paper that a command did not give."""


def read() -> dict[str, Any]:
    """What docs/reproduce.yaml says."""
    content: dict[str, Any] = yaml.safe_load(DATA.read_text(encoding="utf-8"))
    return content


def run(command: str, output: Path | None = None) -> str:
    """Run a command of qabias; what it prints.

    Raises:
        MissingError: If it fails.
    """
    arguments = shlex.split(command)
    result = CliRunner().invoke(app, [*arguments, *(["--output", str(output)] if output else [])])
    if result.exit_code:
        fault = result.exception if isinstance(result.exception, QabiasError) else result.output
        raise MissingError(f"qabias {command}: {fault}")
    return result.output


def run_steps(steps: Mapping[str, str], where: Path) -> dict[str, Path]:
    """Run all commands, in their order; the folder of each by its name."""
    folders: dict[str, Path] = {}
    for name, command in steps.items():
        folder = where / name
        if "{masked}" in command:
            make_masked_model(where / "masked")
        given = {"here": folder, "masked": where / "masked", **folders}
        writes_itself = "{here}" in command
        if writes_itself:
            folder.mkdir(parents=True)
        no_page = " --no-report" if command.startswith("run ") else ""  # what is checked is in other files
        run(command.format_map(given) + no_page, None if writes_itself else folder)
        folders[name] = folder
    return folders


def make_masked_model(folder: Path) -> None:
    """Save a masked model with random weights that knows the subjects of the gender set as single tokens."""
    from lab.speed.random_models import make_bert, make_tokenizer

    benchmark = load_benchmark("unqover")
    table = benchmark.load("gender_mlm", benchmark.origin("bundled", 0, False))
    columns = ("answer1", "answer2", "context_12", "masked")
    texts = [text for name in columns for text in table[name].unique().to_pylist()]
    tokenizer = make_tokenizer(texts)
    tokenizer.add_tokens(sorted({*table["answer1"].unique().to_pylist(), *table["answer2"].unique().to_pylist()}))
    loaded = make_bert("BertForMaskedLM", tokenizer, layers=1, width=64, vocab_size=len(tokenizer))
    loaded.model.save_pretrained(folder)
    loaded.tokenizer.save_pretrained(folder)


def check(item: Item, folders: Mapping[str, Path]) -> None:
    """Check that an item is there.

    Raises:
        MissingError: If it is not.
    """
    wanted = item["check"] if isinstance(item["check"], list) else [item["check"]]
    for one in wanted:
        kinds = set(one) & set(_CHECKS)
        if not kinds:
            raise MissingError(f"{item['item']}: its check names nothing that is checked")
        for kind in kinds:
            fault = _CHECKS[kind](item["item"], one[kind], folders.get(one.get("step", ""), ROOT))
            if fault:
                raise MissingError(f"{item['item']} ({item['what']}): {fault}")


def _tested_by(item: str, tests: Sequence[str], folder: Path) -> str:
    names = [test.split("::") for test in tests]  # whether they pass is seen where all tests run
    missing = ["::".join(pair) for pair in names if f"\ndef {pair[1]}(" not in (ROOT / pair[0]).read_text("utf-8")]
    return f"no test {', '.join(missing)}" if missing else ""


@functools.cache
def _analysis(folder: Path) -> Analysis:
    return read_analysis(folder / "analysis.json")


def _shown(item: str, wanted: Sequence[str], folder: Path) -> str:
    name, column, *values = wanted
    table = find(_analysis(folder).tables, name)
    place = [one.name for one in table.columns].index(column)
    shown = sorted({str(row[place]) for row in table.rows})
    return "" if shown == sorted(values) else f"the column {column} of {name} has {shown}"


def _columns_of(item: str, wanted: Sequence[str], folder: Path) -> str:
    name, *columns = wanted
    table = find(_analysis(folder).tables, name)
    missing = set(columns) - {one.name for one in table.columns}
    return f"{name} has no column {', '.join(sorted(missing))}" if missing else ""


def _tables(item: str, names: Sequence[str], folder: Path) -> str:
    tables = {table.name: table for table in _analysis(folder).tables}
    kind, _, number = item.partition(" ")
    for name in names:
        if name not in tables or not tables[name].rows:
            return f"no table {name}, or an empty one"
        if kind in ("Figure", "Table") and not re.search(rf"{kind}s? (\d+(, | and ))*{number}\b", tables[name].source):
            return f"the table {name} says it is {tables[name].source or 'of no paper'!r}"
    return ""


def _scores(item: str, keys: Sequence[str], folder: Path) -> str:
    scores = json.loads((folder / "scores.json").read_text("utf-8"))["scores"]
    for key in keys:
        found: Any = scores
        for part in key.split("/"):
            found = found.get(part) if isinstance(found, dict) else None
        if found is None:
            return f"no score {key}"
    return ""


def _distinct(item: str, wanted: Sequence[Any], folder: Path) -> str:
    """Whether a column of a data set has these values, or so many; one entry for all sources, or one for each."""
    dataset, config, column, expected = wanted
    for source in _sources():
        found = sorted(_examples(dataset, config, source)[column].unique().to_pylist())
        value = expected[source] if isinstance(expected, dict) else expected
        if value not in (found, len(found)):
            return f"{column} of {source} {dataset} has {found if len(found) < 20 else len(found)}"
    return ""


def _mixed(item: str, wanted: Sequence[Any], folder: Path) -> str:
    """Whether so many rows compare a person whose words match a pattern with one whose words do not."""
    dataset, config, pattern, expected = wanted
    for source in _sources():
        answers = _examples(dataset, config, source)["answer_info"].to_pylist()
        people = [[text for text, group in row.values() if group != "unknown"] for row in answers]
        n = sum(len({bool(re.search(pattern, text)) for text in pair}) == 2 for pair in people)
        if n != expected[source]:
            return f"{n} rows of {source} {dataset} mix {pattern} with other words"
    return ""


def _rows(item: str, wanted: Sequence[Any], folder: Path) -> str:
    dataset, n = wanted
    n_rows = _examples(dataset, "all", _sources()[-1]).num_rows
    return "" if n_rows == n else f"{dataset} has {n_rows} rows"


def _formats(item: str, wanted: Sequence[str], folder: Path) -> str:
    benchmark, *formats = wanted
    missing = set(formats) - set(load_benchmark(benchmark).formats)
    return f"no format {', '.join(sorted(missing))}" if missing else ""


_CHECKS: Mapping[str, Callable[[str, Any, Path], str]] = {
    "tested_by": _tested_by,
    "shown": _shown,
    "columns_of": _columns_of,
    "tables": _tables,
    "scores": _scores,
    "distinct": _distinct,
    "mixed": _mixed,
    "rows": _rows,
    "formats": _formats,
}
"""What can be checked, by its name in the file: from item, what is wanted and folder to the fault, "" for none."""


def _sources() -> tuple[str, ...]:
    """The sources of texts that are at hand: the authors' need a mirror."""
    return ("bundled", "official") if os.environ.get("QABIAS_UPSTREAM") else ("bundled",)


@functools.cache
def _examples(dataset: str, config: str, source: str) -> Any:
    benchmark = load_benchmark(dataset)
    return benchmark.load(config, benchmark.origin(source, 0, False))


def published_values(content: Mapping[str, Any], mirror: Path, where: Path) -> tuple[int, list[str]]:
    """Compute from the authors' published outputs what can be, and compare it with `ours` and the print.

    Args:
        content: What docs/reproduce.yaml says.
        mirror: Mirror of the published files.
        where: A folder that is empty, or has the runs of an earlier call.

    Returns:
        The number of values, and the categories whose outputs are not in the mirror.

    Raises:
        MissingError: If a value is another one than the file says, or than is printed where nothing is noted.
    """
    wanted = dict.fromkeys(category_of(value) for _, _, value in values_of(content))
    there = [name for name in CATEGORIES if name in wanted and (mirror / OUTPUTS.format(name)).exists()]
    if not there:
        return 0, list(wanted)
    given = ["bbq", "--published", "--models", "unifiedqa-11b", "--config", ",".join(there), "--mirror", str(mirror)]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        if reproduce([*given, "--output", str(where)]):
            raise MissingError(printed.getvalue())
    n = 0
    for _, item, value in values_of(content):
        if category_of(value) in there:
            name = "formats-mean" if value["run"] == "mean" else value["run"]
            tables = read_analysis(where / "paper-bbq-published" / f"unifiedqa-11b-{name}" / "analysis.json").tables
            ours = 100 * _cell(find(tables, value["table"]), value["row"], value["column"])
            if abs(ours - value["ours"]) > 0.005 + 1e-9:
                raise MissingError(f"{item['item']}, {value['what']}: {ours:.3f} and not {value['ours']}")
            n += 1
    return n, [name for name in wanted if name not in there]


def values_of(content: Mapping[str, Any]) -> Iterator[tuple[str, Item, Mapping[str, Any]]]:
    """All values with the titles of their papers and their items."""
    for paper in content["papers"]:
        for item in paper["items"]:
            for value in item.get("values", ()):
                yield paper["title"], item, value


def category_of(value: Mapping[str, Any]) -> str:
    """The category of BBQ that a value is of."""
    return str(value.get("category") or value["row"])


def _cell(table: Table, row: str | Sequence[str], column: str) -> float:
    labels = [row] if isinstance(row, str) else list(row)
    place = [one.name for one in table.columns].index(column)
    found = [cells[place] for cells in table.rows if set(labels) <= set(cells)]
    if len(found) != 1 or as_score(found[0]).value is None:
        raise MissingError(f"the table {table.name} has no one value in row {row}, column {column}")
    return float(as_score(found[0]).value or 0)


def page(content: Mapping[str, Any]) -> str:
    """The tables of the page, in Markdown."""
    lines = []
    for paper in content["papers"]:
        lines += [f"### {paper['title']}", "", f"| {' | '.join(HEADINGS)} |", "|---" * len(HEADINGS) + "|"]
        for item in paper["items"]:
            status = f"{item['status']}: {item['note']}" if item.get("note") else item["status"]
            published, ours = item.get("published", ""), item.get("ours", "")
            if item.get("values"):
                published = "; ".join(f"{value['what']}: {value['published']}" for value in item["values"])
                ours = "; ".join(f"{value['what']}: {value['ours']}" for value in item["values"])
            what = f"{item['item']}: {item['what']}"
            lines.append(f"| {what} | `{item['command']}` | {item['table']} | {status} | {published} | {ours} |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    """Check everything, and write the page with --write."""
    content = read()
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)
        folders = run_steps(content["steps"], where)
        n_items = 0
        for paper in content["papers"]:
            for item in paper["items"]:
                check(item, folders)
                n_items += 1
        print(f"{n_items} items of {len(content['papers'])} papers are there")
        mirror = os.environ.get("QABIAS_UPSTREAM")
        n, missing = published_values(content, Path(mirror), where / "published") if mirror else (0, ["all"])
        print(f"{n} values come out of the published outputs; not at hand: {', '.join(missing) or 'none'}")
    if "--write" in sys.argv:
        text = PAGE.read_text(encoding="utf-8")
        before, _, rest = text.partition(BEGIN)
        _, _, after = rest.partition(END)
        PAGE.write_text(f"{before}{BEGIN}{page(content)}{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
