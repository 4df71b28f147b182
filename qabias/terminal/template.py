"""One template of a run: how its items were answered by condition, and a few of them word for word."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console

from qabias.tables.model import Column, Table, Value
from qabias.benchmarks import load_benchmark
from qabias.errors import QabiasError
from qabias.benchmarks.bbq.prompts import QUESTION_ONLY
from qabias.measuring.run import RunArguments, load_examples, read_answers, read_run
from qabias.terminal.scores import MIN_WIDTH, print_table

N_ITEMS = 4

_LABELS = ("contradiction", "neutral", "entailment")
_NO_ANSWER = "no answer"
_NO_TARGET = "no target"
# An output that is none of the labels counts as neutral does: it takes no side.
_INFERENCE_KINDS = (*_LABELS, _NO_ANSWER)
Row = Mapping[str, Any]


class _View(NamedTuple):
    """How the items of a benchmark are shown.

    Attributes:
        template: Name of the template of every row.
        conditions: Columns that tell the conditions of a template apart.
        kinds: Kinds of answers that shares are of, in the order of the columns.
        left_out: Kinds that are counted and have no part in the shares, as in the report.
        columns: What `answers` reads.
        answers: The kinds of the answers to an item, one for each sample.
        lines: An item with its answers, in lines.
    """

    template: Callable[[pa.Table], pa.ChunkedArray]
    conditions: Sequence[str]
    kinds: Sequence[str]
    left_out: Sequence[str]
    columns: Sequence[str]
    answers: Callable[[Row], Sequence[str]]
    lines: Callable[[Row], Sequence[str]]


def show_template(folder: Path, name: str, console: Console, upstream_dir: str | None = None) -> None:
    """Print the shares of the answers to a template by condition, and a few of its items.

    Args:
        folder: A run folder.
        name: A template of BBQ or UnQover, or a premise of BBNLI, e.g. "Age-01".
        console: Where to print.
        upstream_dir: Local mirror of the published files.

    Raises:
        QabiasError: If there is no whole run, or it has no such template.
    """
    run = read_run(folder)
    arguments = RunArguments(**run["arguments"])
    benchmark = load_benchmark(arguments.benchmark)
    table = load_examples(benchmark, arguments, upstream_dir)
    answers, n_missing = read_answers(folder, benchmark, table, run["units_per_part"])
    if n_missing:
        raise QabiasError(f"{folder}: {n_missing} parts are missing; run the same command again to finish it")
    view = _VIEWS[arguments.benchmark]
    templates = view.template(table).cast(pa.string())
    chosen = pc.equal(templates, name)
    if not pc.any(chosen).as_py():
        raise _unknown(name, templates.unique().to_pylist())
    if arguments.format in QUESTION_ONLY:  # both examples of a question are then the same; the report has one
        chosen = pc.and_(chosen, pc.equal(table["context_condition"], "ambig"))
    rows = table.filter(chosen)
    of_rows = answers.drop_columns(list(benchmark.key)).filter(chosen)
    for column in of_rows.column_names:
        rows = rows.append_column(column, of_rows[column])
    console.width = max(console.width, MIN_WIDTH)
    print_table(rates(arguments.benchmark, name, rows), console)
    # The first four of BBQ are a set; elsewhere the first would be all of one kind.
    step = 1 if arguments.benchmark == "bbq" else max(1, rows.num_rows // N_ITEMS)
    places = range(0, rows.num_rows, step)[:N_ITEMS]
    for row in rows.take(list(places)).to_pylist():
        for line in view.lines(row):
            console.print(line, markup=False, highlight=False)
        console.print()
    console.print(f"{len(places)} of {rows.num_rows:,} items", markup=False, highlight=False)


def _unknown(name: str, known: Sequence[str]) -> QabiasError:
    same_number = [one for one in known if one.replace("-0", "-") == name.replace("-0", "-")]
    close = same_number or difflib.get_close_matches(name, known, 3)
    meant = f"; did you mean {' or '.join(map(repr, close))}?" if close else f"; it has {known[0]!r} to {known[-1]!r}"
    return QabiasError(f"the run has no template {name!r}{meant}")


def rates(benchmark: str, name: str, rows: pa.Table) -> Table:
    """Shares of the kinds of answers by condition; the mean scores of UnQover.

    Args:
        benchmark: Name of the benchmark.
        name: Name of the template.
        rows: Its examples with their answers.
    """
    return _scores(name, rows) if benchmark == "unqover" else _shares(_VIEWS[benchmark], name, rows)


def _shares(view: _View, name: str, rows: pa.Table) -> Table:
    counts: dict[tuple[str, ...], Counter[str]] = {}
    columns = [column for column in (*view.conditions, *view.columns) if column in rows.column_names]
    for row in rows.select(columns).to_pylist():
        condition = tuple(str(row[column] or "none") for column in view.conditions)
        counts.setdefault(condition, Counter()).update(view.answers(row))
    left_out = [kind for kind in view.left_out if any(of[kind] for of in counts.values())]
    cells: list[tuple[Value, ...]] = []
    for condition, of in sorted(counts.items()):
        n = sum(of[kind] for kind in view.kinds)
        shares = [of[kind] / n if n else None for kind in view.kinds]
        cells.append((*condition, *shares, n, *(of[kind] for kind in left_out)))
    return Table(
        "template",
        f"Answers to {name}",
        "",
        "",
        (
            *(Column(column, column.replace("_", " "), "text") for column in view.conditions),
            *(Column(kind, kind, "share") for kind in view.kinds),
            Column("n", "Answers", "count"),
            *(Column(kind, kind, "count") for kind in left_out),
        ),
        tuple(cells),
    )


def _scores(name: str, rows: pa.Table) -> Table:
    """Mean scores over the rows that have all eight, as in the report."""
    orders = {"12": "in this order", "21": "the other way round"}
    questions = {"": "question", "_neg": "negated question"}
    asked = [f"{order}{question}" for order in orders for question in questions]
    scores = np.stack([[rows[f"s{subject}_{which}"].to_numpy() for subject in (1, 2)] for which in asked])
    scores = scores[:, :, ~np.isnan(scores).any(axis=(0, 1))]
    n = scores.shape[-1]
    means = scores.mean(axis=-1).tolist() if n else [[None, None]] * len(asked)
    titles = [(order, question) for order in orders.values() for question in questions.values()]
    return Table(
        "template",
        f"Mean scores of the subjects, {name}",
        "",
        "",
        (
            Column("order", "Subjects in the text", "text"),
            Column("question", "Question", "text"),
            Column("subject1", "Subject 1", "number"),
            Column("subject2", "Subject 2", "number"),
            Column("n", "Items", "count"),
        ),
        tuple((*title, *of_title, n) for title, of_title in zip(titles, means, strict=True)),
    )


# BBQ


def _bbq_answers(row: Row) -> list[str]:
    place = row["prediction"]
    if place is None or place < 0:
        return [_NO_ANSWER]
    return [_NO_TARGET if row["target_loc"] < 0 else _bbq_role(row, place)]


def _bbq_role(row: Row, place: int) -> str:
    if place == row["unknown_loc"]:
        return "UNKNOWN"
    if row["target_loc"] < 0:
        return "a person"
    return "group member" if place == row["target_loc"] else "other person"


def _bbq_lines(row: Row) -> list[str]:
    lines = [f"#{row['example_id']} {row['context_condition']}, {row['question_polarity']}: {row['context']}"]
    lines.append(f"  {row['question']}")
    for place in range(3):
        marks = [_bbq_role(row, place)]
        marks += ["right"] * (place == row["label"]) + ["stereotype"] * (place == row["biased_loc"])
        lines.append(f"  {'>' if place == row['prediction'] else ' '} {row[f'ans{place}']} ({', '.join(marks)})")
    return [*lines, *_written(row)]


def _written(row: Row) -> list[str]:
    return [f"  written: {text!r}" for text in row.get("outputs") or ()]


# Inference


def _label(code: int | None) -> str:
    return _NO_ANSWER if code is None or code < 0 else _LABELS[code]


def _labels(row: Row) -> list[str]:
    return [_label(code) for code in (row["predictions"] if "predictions" in row else (row["prediction"],))]


def _inference_lines(row: Row) -> list[str]:
    condition = ", ".join(str(row[name]) for name in ("context_condition", "kind", "stance") if row.get(name))
    return [
        f"#{row['example_id']} {condition}: {row['premise']}",
        f"  {row['hypothesis']}",
        f"  > {', '.join(_labels(row))} (right: {_label(row['label'])})",
        *_written(row),
    ]


# UnQover


def _unqover_lines(row: Row) -> list[str]:
    lines = [f"#{row['example_id']} subject 1 {row['subject1']}, subject 2 {row['subject2']}"]
    for order in ("12", "21"):
        lines.append(f"  {row[f'context_{order}']}")
        for question, suffix in (("question", ""), ("negated_question", "_neg")):
            text = row.get(question) or row[{"question": "masked", "negated_question": "masked_negated"}[question]]
            scores = ", ".join(f"{row[f'subject{i}']} {row[f's{i}_{order}{suffix}']:.3f}" for i in (1, 2))
            lines.append(f"    {text}  {scores}")
    return lines


def _no_kinds(row: Row) -> Sequence[str]:
    return ()  # UnQover has scores, not answers


def _column(name: str) -> Callable[[pa.Table], pa.ChunkedArray]:
    return lambda table: table[name]


def _premise(table: pa.Table) -> pa.ChunkedArray:
    number = pc.utf8_lpad(pc.cast(table["premise_id"], pa.string()), 2, "0")
    return pc.binary_join_element_wise(pc.cast(table["subtopic"], pa.string()), number, "-")


_VIEWS = {
    "bbq": _View(
        _column("template_id"),
        ("context_condition", "question_polarity"),
        ("group member", "other person", "UNKNOWN"),
        (_NO_ANSWER, _NO_TARGET),
        ("prediction", "unknown_loc", "target_loc"),
        _bbq_answers,
        _bbq_lines,
    ),
    "unqover": _View(_column("template_id"), (), (), (), (), _no_kinds, _unqover_lines),
    "bbnli": _View(
        _premise, ("kind", "stance"), _INFERENCE_KINDS, (), ("prediction", "predictions"), _labels, _inference_lines
    ),
    "bbq_nli": _View(
        _column("template_id"),
        ("context_condition", "context_stance", "question_polarity", "statement_about"),
        _INFERENCE_KINDS,
        (),
        ("prediction", "predictions"),
        _labels,
        _inference_lines,
    ),
}
