"""Page of a metric on the Hugging Face Hub: scores a pasted or uploaded table of predictions.

Only `page` needs Gradio. `page.yaml` holds what differs between metrics.
"""

import csv
import functools
import io
import re
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import datasets
import evaluate
import pyarrow as pa
import pyarrow.json
import pyarrow.parquet as pq
import yaml

PAGE = yaml.safe_load(Path(__file__).with_name("page.yaml").read_text(encoding="utf-8"))
NAME, KEY, SAMPLE, PREDICTIONS = (PAGE[name] for name in ("metric", "key", "sample", "predictions"))
NUMBERS = {*PAGE["numbers"], *PAGE["probabilities"], *([PREDICTIONS] if isinstance(PREDICTIONS, str) else PREDICTIONS)}
HEADERS = ["score", "value", "low", "high", "rows"]
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][-+]?\d+)?")


@functools.cache
def metric() -> Any:
    """The metric of this folder, loaded by file name: on the Hub the folder's name differs from the module's."""
    return evaluate.load(str(Path(__file__).with_name(f"{NAME}.py")))


def read(text: str, path: str | None = None) -> list[dict[str, Any]]:
    """The rows of a pasted CSV or TSV, or of a file if given; a ValueError names what cannot be read."""
    suffix = Path(path).suffix.lower() if path else ".csv"
    readers = {".parquet": pq.read_table, ".jsonl": pyarrow.json.read_json, ".json": pyarrow.json.read_json}
    try:
        if suffix in readers:
            return list(readers[suffix](path).to_pylist())
        text = Path(path).read_text(encoding="utf-8-sig") if path else text
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        problem = f"{NAME}: the file is not readable as {suffix or 'text'}: {error}"
        raise _error(problem, "upload a .csv, .tsv, .jsonl or .parquet file") from error
    text = text.strip("\n")
    rows = list(csv.DictReader(io.StringIO(text), delimiter="\t" if "\t" in text.partition("\n")[0] else ","))
    for number, row in enumerate(rows, start=1):
        if None in row or None in row.values():
            raise _error(f"{NAME}: row {number} does not have one cell per column", "match the row to the first line")
    return [{name: _cell(name, cell) for name, cell in row.items()} for row in rows]


def _error(problem: str, fix: str) -> ValueError:
    return ValueError(f"{problem}\n  fix: {fix}")


def _cell(name: str, cell: str) -> Any:
    if name in NUMBERS and _NUMBER.fullmatch(cell):
        return int(cell) if cell.lstrip("-").isdecimal() else float(cell)
    return None if name == PREDICTIONS and not cell else cell


def predictions_of(rows: list[dict[str, Any]]) -> list[Any]:
    """The predictions of a table: one column, or several as a dict per row."""
    if not isinstance(PREDICTIONS, str):
        return [{name: row[name] for name in PREDICTIONS if name in row} for row in rows]
    if PREDICTIONS not in rows[0]:
        raise _error(f"{NAME}: the table has no column {PREDICTIONS}", "name the columns in the first line")
    return [row[PREDICTIONS] for row in rows]


def look_up(rows: list[dict[str, Any]], dataset: Any) -> list[dict[str, Any]]:
    """The dataset row of each table row, matched by their common columns of KEY; a ValueError if a row has none."""
    key = [name for name in KEY if name in rows[0] and name in dataset.column_names]
    columns = [dataset.with_format("arrow")[:][name].to_pylist() for name in key]
    places = {values: place for place, values in enumerate(zip(*columns, strict=True))}
    if len(places) < dataset.num_rows:
        raise _error(f"{NAME}: several dataset rows have the same {key}", f"add the columns {KEY} to the table")
    wanted = [tuple(row.get(name) for name in key) for row in rows]
    for number, values in enumerate(wanted, start=1):
        if values not in places:
            problem = f"{NAME}: row {number}: the dataset has no {dict(zip(key, values, strict=True))}"
            raise _error(problem, "choose the dataset and config that you measured")
    return list(dataset.select([places[values] for values in wanted]).to_list())


def compute(rows: list[dict[str, Any]], dataset: Any = None, by: str = "") -> dict[str, Any]:
    """The metric's result for a table; without a dataset its own columns are the references."""
    if not rows:
        raise _error(f"{NAME}: the table is empty", "give a line with column names, then one line per prediction")
    inputs: dict[str, Any] = {"predictions": predictions_of(rows)}
    if PAGE["probabilities"]:
        shares = [[row.get(name) for name in PAGE["probabilities"]] for row in rows]
        inputs["probabilities"] = [None if all(value in (None, "") for value in row) else row for row in shares]
    inputs["references"] = rows if dataset is None else look_up(rows, dataset)
    return dict(metric().compute(**inputs, by=[name.strip() for name in by.split(",") if name.strip()] or None))


def lines(result: Mapping[str, Any], group: str = "all") -> Iterator[list[Any]]:
    """The numbers of a result as lines with the columns HEADERS, or "n/a"."""
    for name, value in result.items():
        numbers = value if isinstance(value, dict) else {"": value}
        if all(isinstance(number, (int, float)) for number in numbers.values()):
            for key, number in numbers.items():
                shown = [number, *result.get("ci", {}).get(name, ("", ""))]
                shown = ["n/a" if each != each else round(each, 4) if each != "" else "" for each in shown]
                yield [f"{name}: {key}" if key else name, *shown, group]
    for columns, parts in result.get("by", {}).items():
        for value, part in parts.items():
            yield from lines(part, f"{columns} = {value}")


def show(text: str, path: str | None, dataset_id: str, config: str, by: str) -> tuple[list[list[Any]], str]:
    """The table of scores and its messages: warnings and the signature, or an error."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            rows = read(text, path)
            dataset = datasets.load_dataset(dataset_id, config or None, split="test") if dataset_id else None
            result = compute(rows, dataset, by)
            table = list(lines(result))
        texts = [str(warning.message) for warning in caught if str(warning.message).startswith(f"{NAME}: ")]
        return table, "\n".join([f"{len(rows)} rows scored", *texts, f"Signature: {result['signature']}"])
    except (ValueError, OSError) as error:
        return [], f"Error: {error}"


def page() -> Any:
    """The page, ready to launch; it scores the sample when it opens."""
    import gradio as gr

    with gr.Blocks(title=PAGE["title"]) as blocks:
        gr.Markdown(f"# {PAGE['title']}\n{PAGE['intro']}")
        with gr.Row():
            with gr.Column():
                text = gr.Textbox(SAMPLE, label="Table (CSV or TSV)", lines=10, max_lines=10)
                types = [".csv", ".tsv", ".jsonl", ".parquet"]
                path = gr.File(label="Or a file (replaces the pasted table)", file_types=types, height=160)
                with gr.Row():
                    dataset_id = gr.Textbox(label="Dataset on the Hub (optional)", placeholder="ORG/NAME")
                    config = gr.Textbox(label="Config", placeholder=PAGE["config"])
                by = gr.Textbox(label="Break the scores down by", placeholder=PAGE["by"])
                button = gr.Button("Score", variant="primary")
            with gr.Column():
                outputs = [gr.Dataframe(headers=HEADERS, label="Scores"), gr.Textbox(label="Messages")]
        gr.on([blocks.load, button.click], show, [text, path, dataset_id, config, by], outputs)
    return blocks


def serve() -> None:
    """Start the page, with fonts of the visitor: it loads nothing from others."""
    import gradio as gr

    metric()  # takes seconds: load it before the first visit
    theme = gr.themes.Default(font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"])
    page().launch(max_file_size="100mb", theme=theme)


if __name__ == "__main__":
    serve()
