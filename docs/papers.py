"""The table of docs/reproduce.md: every numbered table, figure and equation of the papers, and whether it can be had.

    python -m docs.papers            run every command with a baseline or the published outputs; fail without a table
    python -m docs.papers --write    write the table into docs/reproduce.md as well

What is checked, and the published values, stand in docs/reproduce.yaml. Values from the authors' published outputs are
computed where these are at hand (`QABIAS_UPSTREAM`).
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from typer.testing import CliRunner

from qabias.benchmarks import load_benchmark
from qabias.cli import app
from qabias.errors import QabiasError
from qabias.tables.model import Estimate, Table, find, read_analysis

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "docs" / "reproduce.yaml"
PAGE = ROOT / "docs" / "reproduce.md"
BEGIN, END = "<!-- papers: written by docs/papers.py -->\n", "<!-- end of papers -->\n"
HEADINGS = ("item", "command", "table", "status", "published", "from published outputs")
OUTPUTS = "nyu-mll/BBQ/results/UnifiedQA/preds_Age.jsonl"

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
        run(command.format_map(given), None if writes_itself else folder)
        folders[name] = folder
    return folders


def make_masked_model(folder: Path) -> None:
    """Save a masked model with random weights that knows the subjects of the gender set as single tokens."""
    from speed.random_models import make_bert, make_tokenizer

    benchmark = load_benchmark("unqover")
    table = benchmark.load("all_mlm", benchmark.origin("bundled", 0, False, None))
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
    wanted = item["check"]
    name = f"{item['item']} ({item['what']})"
    if "file" in wanted:
        path = (folders[wanted["step"]] if "step" in wanted else ROOT) / wanted["file"]
        _require(path.exists(), name, f"no {path.name}")
    for step in wanted.get("steps", [wanted["step"]] if "step" in wanted else []):
        for table in wanted.get("tables", ()):
            _check_table(name, item["item"], table, folders[step])
        scores = json.loads((folders[step] / "scores.json").read_text("utf-8"))["scores"] if "scores" in wanted else {}
        for key in wanted.get("scores", ()):
            found: Any = scores
            for part in key.split("/"):
                found = found.get(part) if isinstance(found, dict) else None
            _require(found is not None, name, f"no score {key}")
    if "columns" in wanted:
        dataset, config, *columns = wanted["columns"]
        names = _examples(dataset, config).column_names
        for column in columns:
            _require(column in names, name, f"no column {column} in {dataset}")
    if "rows" in wanted:
        dataset, n = wanted["rows"]
        n_rows = _examples(dataset, "all").num_rows
        _require(n_rows == n, name, f"{dataset} has {n_rows} rows")
    if "formats" in wanted:
        benchmark, *formats = wanted["formats"]
        _require(set(formats) <= set(load_benchmark(benchmark).formats), name, "a format is missing")


def _check_table(name: str, item: str, wanted: str, folder: Path) -> None:
    table = find(read_analysis(folder / "analysis.json").tables, wanted)
    _require(bool(table.rows), name, f"the table {wanted} is empty")
    number = item.partition(" ")[2]
    if item.split(" ")[0] in ("Figure", "Table"):
        words = table.source.replace(",", " ").split()
        _require(number in words, name, f"the table {wanted} says it is {table.source or 'of no paper'!r}")


def _require(condition: bool, name: str, fault: str) -> None:
    if not condition:
        raise MissingError(f"{name}: {fault}")


def _examples(dataset: str, config: str) -> Any:
    benchmark = load_benchmark(dataset)
    return benchmark.load(config, benchmark.origin("bundled", 0, False, None))


def published_values(content: Mapping[str, Any], where: Path) -> dict[tuple[str, str, str], float]:
    """What the authors' published outputs give, in percent, by paper, item and place; checked against the print.

    Raises:
        MissingError: If a value, rounded as printed, is another one.
    """
    before = Path.cwd()
    os.chdir(where)
    try:
        run(content["published"]["command"])
    finally:
        os.chdir(before)
    folder = where / "runs" / content["published"]["folder"]
    runs = {"blind": "question_only", "race": "race", "arc": "arc"}
    found = {}
    for key, part in runs.items():
        (path,) = [path for path in folder.glob(f"*{part}*") if key == "blind" or "question_only" not in path.name]
        found[key] = read_analysis(path / "analysis.json").tables
    values = {}
    for paper, item, value in _values(content):
        ours = 100 * _cell(find(found[value["run"]], value["table"]), value["row"], value["column"])
        if abs(ours - value["published"]) > 0.05 + 1e-9:
            raise MissingError(f"{item}, {value['what']}: {ours:.2f}, and {value['published']} in print")
        values[paper, item, value["what"]] = ours
    return values


def _values(content: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for paper in content["papers"]:
        for item in paper["items"]:
            for value in item.get("values", ()):
                yield paper["title"], item["item"], value


def _cell(table: Table, row: str, column: str) -> float:
    place = [one.name for one in table.columns].index(column)
    (value,) = [cells[place] for cells in table.rows if cells[0] == row]
    assert isinstance(value, Estimate)
    assert value.value is not None
    return value.value


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
                ours = f"the same to 0.1, {len(item['values'])} of {len(item['values'])} cells"
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
        if mirror and (Path(mirror) / OUTPUTS).exists():
            print(f"{len(published_values(content, where))} published values come out of the published outputs")
        else:
            print("the authors' outputs are not here; their values are not computed again", file=sys.stderr)
    if "--write" in sys.argv:
        text = PAGE.read_text(encoding="utf-8")
        before, _, rest = text.partition(BEGIN)
        _, _, after = rest.partition(END)
        PAGE.write_text(f"{before}{BEGIN}{page(content)}{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
