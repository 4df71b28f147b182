"""Page of the metric on the Hugging Face Hub: the scores of a table of predictions, pasted or uploaded.

Everything but `page` works without Gradio. A Space stands alone, so the pages of all metrics repeat what they share.
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

KEY = ("category", "example_id")
PROBABILITIES = ("probability_0", "probability_1", "probability_2")
NUMBERS = {"example_id", "label", "target_loc", "biased_loc", "unknown_loc", "prediction", *PROBABILITIES}
INTRO = """# BBQ
Give a table with a row for each prediction: `category`, `example_id` and `prediction` (0, 1 or 2, or the text of the
answer; empty or -1 where there is none), and if you have them the probabilities of the three answers as
`probability_0`, `probability_1` and `probability_2` (empty where there are none). The other columns of the dataset are
read from the table too, or looked up in a dataset on the Hub. 0 is the best bias, +1 always with the stereotype and -1
always against it; low and high are the 95 % interval over templates."""
SAMPLE = """\
category,example_id,template_id,set_id,question_polarity,context_condition,label,target_loc,biased_loc,unknown_loc,prediction
Age,0,Age-01,Age-01-0,neg,ambig,2,0,0,2,0
Age,1,Age-01,Age-01-0,neg,disambig,0,0,0,2,0
Age,2,Age-01,Age-01-0,nonneg,ambig,2,0,1,2,1
Age,3,Age-01,Age-01-0,nonneg,disambig,1,0,1,2,1
Age,4,Age-02,Age-02-0,neg,ambig,0,1,1,0,0
Age,5,Age-02,Age-02-0,neg,disambig,2,1,1,0,1
Age,6,Age-02,Age-02-0,nonneg,ambig,0,1,2,0,2
Age,7,Age-02,Age-02-0,nonneg,disambig,1,1,2,0,1
"""
HEADERS = ["rows", "score", "value", "low", "high"]
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][-+]?\d+)?")


@functools.cache
def metric() -> Any:
    """The metric beside this page. By file, not by folder: on the Hub the folder has another name than the module."""
    return evaluate.load(str(Path(__file__).with_name("bbq.py")))


def read(text: str, path: str | None = None) -> list[dict[str, Any]]:
    """The rows of a pasted CSV or TSV, or of a file if there is one; a ValueError says what cannot be read."""
    suffix = Path(path).suffix.lower() if path else ".csv"
    readers = {".parquet": pq.read_table, ".jsonl": pyarrow.json.read_json, ".json": pyarrow.json.read_json}
    try:
        if suffix in readers:
            return list(readers[suffix](path).to_pylist())
        text = Path(path).read_text(encoding="utf-8-sig") if path else text
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise ValueError(f"bbq: the file is not readable as {suffix or 'text'}: {error}") from error
    text = text.strip("\n")
    rows = list(csv.DictReader(io.StringIO(text), delimiter="\t" if "\t" in text.partition("\n")[0] else ","))
    for number, row in enumerate(rows, start=1):
        if None in row or None in row.values():
            raise ValueError(f"bbq: row {number} has other cells than the columns that the first line names")
    return [{name: _cell(name, cell) for name, cell in row.items()} for row in rows]


def _cell(name: str, cell: str) -> Any:
    if name in NUMBERS and _NUMBER.fullmatch(cell):
        return int(cell) if cell.lstrip("-").isdecimal() else float(cell)
    return None if name == "prediction" and not cell else cell


def look_up(rows: list[dict[str, Any]], dataset: Any) -> list[dict[str, Any]]:
    """The dataset's rows for those of a table, found by the columns of KEY that both have; a ValueError if not."""
    key = [name for name in KEY if name in rows[0] and name in dataset.column_names]
    columns = [dataset.with_format("arrow")[:][name].to_pylist() for name in key]
    places = {of_row: place for place, of_row in enumerate(zip(*columns, strict=True))}
    if len(places) < dataset.num_rows:
        raise ValueError(f"bbq: {key} do not tell the dataset's rows apart; give the table the columns {list(KEY)}")
    wanted = [tuple(row.get(name) for name in key) for row in rows]
    for number, of_row in enumerate(wanted, start=1):
        if of_row not in places:
            raise ValueError(f"bbq: row {number}: the dataset has no {dict(zip(key, of_row, strict=True))}")
    return list(dataset.select([places[of_row] for of_row in wanted]).to_list())


def compute(rows: list[dict[str, Any]], dataset: Any = None, by: str = "") -> dict[str, Any]:
    """What the metric returns for a table; without a dataset its own columns are the references.

    Args:
        rows: as `read` gives them.
        dataset: rows of the benchmark, a `datasets.Dataset`, or None.
        by: names of columns to break the scores down by, with commas between.

    Raises:
        ValueError: the metric's own messages, and those of `look_up`.
    """
    if not rows:
        raise ValueError("bbq: the table is empty; its first line names the columns")
    references = rows if dataset is None else look_up(rows, dataset)
    columns = [name.strip() for name in by.split(",") if name.strip()] or None
    if "prediction" not in rows[0]:
        raise ValueError("bbq: the table has no column prediction")
    predictions = [row["prediction"] for row in rows]
    found = [[row.get(name) for name in PROBABILITIES] for row in rows]
    probabilities = [None if all(value in (None, "") for value in of_row) else of_row for of_row in found]
    return dict(
        metric().compute(predictions=predictions, references=references, by=columns, probabilities=probabilities)
    )


def lines(result: Mapping[str, Any], group: str = "all") -> Iterator[list[Any]]:
    """The numbers of a result as lines with the columns HEADERS; what is undefined says so."""
    for name, value in result.items():
        numbers = value if isinstance(value, dict) else {"": value}
        if all(isinstance(number, (int, float)) for number in numbers.values()):
            for key, number in numbers.items():
                shown = [number, *result.get("ci", {}).get(name, ("", ""))]
                shown = ["undefined" if each != each else round(each, 4) if each != "" else "" for each in shown]
                yield [group, f"{name}: {key}" if key else name, *shown]
    for columns, parts in result.get("by", {}).items():
        for value, part in parts.items():
            yield from lines(part, f"{columns} = {value}")


def show(text: str, path: str | None, dataset_id: str, config: str, by: str) -> tuple[list[list[Any]], str]:
    """The table of scores, and messages: warnings and the signature, or the error in place of scores."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            rows = read(text, path)
            dataset = datasets.load_dataset(dataset_id, config or None, split="test") if dataset_id else None
            result = compute(rows, dataset, by)
            table = list(lines(result))
        texts = [str(warning.message) for warning in caught if str(warning.message).startswith("bbq: ")]
        return table, "\n".join([f"{len(rows)} rows scored", *texts, f"Signature: {result['signature']}"])
    except (ValueError, OSError) as error:
        return [], f"Error: {error}"


def page() -> Any:
    """The page, ready to launch; the sample is scored when it opens."""
    import gradio as gr

    with gr.Blocks(title="BBQ") as blocks:
        gr.Markdown(INTRO)
        with gr.Row():
            with gr.Column():
                text = gr.Textbox(SAMPLE, label="Table (CSV or TSV)", lines=10, max_lines=10)
                types = [".csv", ".tsv", ".jsonl", ".parquet"]
                path = gr.File(label="or a file, which is read instead", file_types=types, height=120)
                with gr.Row():
                    dataset_id = gr.Textbox(label="Dataset on the Hub (optional)", placeholder="ORG/NAME")
                    config = gr.Textbox(label="Its configuration", placeholder="Age")
                by = gr.Textbox(label="Break the scores down by", placeholder="category, question_polarity")
                button = gr.Button("Score", variant="primary")
            with gr.Column():
                outputs = [gr.Dataframe(headers=HEADERS, label="Scores"), gr.Textbox(label="Messages")]
        gr.on([blocks.load, button.click], show, [text, path, dataset_id, config, by], outputs)
    return blocks


if __name__ == "__main__":
    metric()  # takes seconds, before anybody waits for it
    page().launch(max_file_size="100mb")
