"""All examples of a run, or those that two runs answer differently, as compact columns for a page."""

from __future__ import annotations

import base64
import gzip
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from qabias.benchmarks.base import RUN
from qabias.benchmarks.scoring import about_norm
from qabias.comparison import MOST_PAIRED, Comparison
from qabias.comparison.paired import common_answers
from qabias.errors import QabiasError
from qabias.report.content import prompts_of
from qabias.runs.estimands import estimands
from qabias.runs.folder import part_path
from qabias.runs.opened import Run
from qabias.runs.signature import signature_fields
from qabias.scores.facts import ALL, Row
from qabias.scores.score import as_score
from qabias.support.arrow import dicts
from qabias.support.files import require_regular_file
from qabias.tables.model import Column, Table

OWN = ("outcome", "labels", "probabilities", "answer", "generated", "said")
"""Keys of an example that differ between runs; each becomes `KEY: RUN`."""

MOST_EXAMPLES = 60_000  # in a page; of a larger run the page has the analysis's selection
TAGS = ("outcome", "change")  # keys whose values are lists of words to filter by
_MOST_SOURCES = 200
_FIRST_MARK = 0xE000  # private-use characters stand for texts that a prompt repeats
_MARKS = re.compile(f"[{chr(_FIRST_MARK)}-{chr(_FIRST_MARK + _MOST_SOURCES)}]")
_MOST_CHOICES, _FEW, _SHORT = 500, 12, 40  # distinct values of a key, of an answer, and characters
_NONE = {type(None)}
_TEXTS = (
    ("context", "context_12", "premise"),
    ("hypothesis", "question", "masked"),
)  # of an example, the first that it has
_LABELS = {"right_answer": "Right answer", "preferred": "No answer is right. The model prefers"}
_LONG = 60  # characters from which a text is worth a mark: contexts and questions, not answers


class Explored(NamedTuple):
    """Examples to filter, as columns; how they were chosen, the columns of their names, and tables above them."""

    title: str
    how_chosen: str
    columns: Mapping[str, Sequence[Any]]
    key: Sequence[str]
    tables: Sequence[Table] = ()


def run_examples(run: Run) -> Explored:
    """All examples of a run up to `MOST_EXAMPLES`, else the analysis's, with the reason."""
    parts = part_path(run.folder, 0).parent.glob("part-*.parquet")
    try:
        n = sum(pq.read_metadata(require_regular_file(path)).num_rows for path in parts)
        if 0 < n <= MOST_EXAMPLES:
            return _all_examples(run)
        reason = f"The run has {n:,} examples, a page at most {MOST_EXAMPLES:,}." if n else "The folder has no answers."
    except (QabiasError, pa.ArrowException, OSError) as error:
        reason = f"Not all are here: {' '.join(map(str, error.args))}"
    prompts, missing = prompts_of(run.analysis.examples, run)
    how = " ".join(filter(None, (run.analysis.how_chosen, missing, reason)))
    return Explored("Examples", how, _columns(run.analysis.examples, prompts), run.benchmark.key)


def _all_examples(run: Run) -> Explored:
    table, answers, key = run.question.table, run.answers, run.benchmark.key
    rows: Sequence[Row] = run.benchmark.examples(table, answers)
    if RUN in table.column_names:
        rows = [{**row, RUN: wording} for row, wording in zip(rows, table[RUN].to_pylist(), strict=True)]
        key = (*key, RUN)
    prompts, missing = prompts_of(rows, run)
    norm = about_norm(dicts(answers, ("loglikelihoods", "prediction"))) if run.arguments.norm != "none" else ""
    how = " ".join(filter(None, (f"All {len(rows):,} examples.", missing, norm.strip())))
    both = estimands(run)
    return Explored("Examples", how, _columns(rows, prompts), key, [both] if both else [])


def _columns(rows: Sequence[Row], prompts: Sequence[Any] = ()) -> dict[str, Sequence[Any]]:
    """The columns of rows, without empty ones; the prompts are the last."""
    keys = list(dict.fromkeys(map(tuple, rows)))
    names = list(dict.fromkeys(name for some in keys for name in some))
    if len(keys) == 1:
        columns = dict(zip(names, zip(*(row.values() for row in rows), strict=True), strict=True))
    else:
        columns = {name: tuple(row.get(name) for row in rows) for name in names}
    kept: dict[str, Sequence[Any]] = {name: values for name, values in columns.items() if {*map(type, values)} != _NONE}
    return {**kept, "prompt": prompts} if prompts else kept


def differing_examples(comparison: Comparison) -> Explored | None:
    """Examples whose answers differ from the first run's, side by side; None if the runs cannot be paired."""
    if not comparison.view.has_examples or not 2 <= len(comparison.runs) <= MOST_PAIRED:
        return None
    changes = changed_answers(comparison.runs, comparison.names)
    if changes is None:
        return None
    formats = {signature_fields(run.signature).get("format") for run in comparison.runs}
    prompts = prompts_of(changes.rows, comparison.runs[0])[0] if len(formats) == 1 else []
    how = f"{len(changes.rows):,} of {changes.n_common:,} common examples have different answers."
    return Explored("Answers that differ", how, _columns(changes.rows, prompts), changes.key, (changes.table,))


class One(NamedTuple):
    """An example for the first screen: its name and texts, and answers with labels and words on them."""

    name: str
    text: str
    question: str
    answers: Sequence[tuple[str, str, Sequence[str]]]


def telling(explored: Explored | None, tables: Sequence[Table], figure: Table | None, sign: int = 1) -> One | None:
    """The example that shows a finding best: of the first association, or of the group farthest from 0 in a figure."""
    if explored is None or not explored.columns:
        return None
    first = next((table for table in tables if table.name == "associations"), None)
    cells = zip(first.columns, first.rows[0], strict=True) if first else ()
    associated = {(column.name, value) for column, value in cells if column.kind == "text"}
    groups = [(str(group), as_score(value)) for group, value, *_ in figure.rows if group != ALL] if figure else []
    sure = [(max(one.low, -one.high), one, group) for group, one in groups if one.low is not None and one.high]
    least, one, group = max(sure, default=(0.0, None, ""), key=lambda pair: pair[0])
    wanted = {"wrong"}
    if figure and one and least > 0:
        side = "stereotyped" if sign * (one.value or 0.0) > 0 else "anti-stereotyped"
        wanted |= {group, side, figure.columns[1].name.rpartition("_")[2]}

    columns = explored.columns
    comparative = columns.get("comparative")
    pairs = [(columns[name], value) for name, value in associated if name in columns]
    tags = [values for name, values in columns.items() if _is_tags(name)]
    names = [values for values in columns.values() if {*map(type, values)} <= {str, *_NONE} and wanted & {*values}]

    def fit(place: int) -> tuple[float, ...]:
        words = {word for values in tags for word in values[place] or ()} | {values[place] for values in names}
        strength = abs(comparative[place] or 0.0) if comparative else 0.0
        return sum(values[place] == value for values, value in pairs), strength, len(words & wanted)

    place = max(range(len(next(iter(columns.values())))), key=fit)
    row = {name: values[place] for name, values in columns.items()}
    ends = [name.removeprefix("answer") for name in row if name.partition(":")[0] == "answer"]
    answers = [(x[2:] or "Answer", str(row[f"answer{x}"] or "none"), row.get(f"outcome{x}") or ()) for x in ends]
    answers += [(label, str(row[name]), ()) for name, label in _LABELS.items() if row.get(name)]
    text, question = (next((row[name] for name in names if row.get(name)), "") for names in _TEXTS)
    return One("/".join(str(row[key]) for key in explored.key if key in row), text, question, answers)


def choices(columns: Mapping[str, Sequence[Any]]) -> dict[str, set[str]]:
    """The values of the keys by which examples can be filtered: few short texts, and no answers unless very few."""
    kept: dict[str, set[str]] = {}
    for name, values in columns.items():
        if _is_tags(name):
            texts = {one for value in values for one in value or ()}
        else:
            texts = {*values} - {None} if {*map(type, values)} <= {str, *_NONE} and name != "prompt" else set()
        is_answer = name.partition(":")[0].endswith("answer") and len(texts) > _FEW
        if 0 < len(texts) <= _MOST_CHOICES and not is_answer and all(len(text) <= _SHORT for text in texts):
            kept[name] = texts
    return kept


def _is_tags(name: str) -> bool:
    return name.partition(":")[0] in TAGS


def encode(explored: Explored, filters: Iterable[str]) -> str:
    """Examples as gzipped JSON in base64: every column as distinct values and differences of their numbers."""
    columns: list[dict[str, Any]] = []
    flat: list[Sequence[Any]] = []
    n = 0
    for name, values in explored.columns.items():
        n, side = len(values), name.partition(": ")
        kind = "tags" if _is_tags(name) else "share" if name.startswith("probabilit") else ""
        marked = _marked(values, flat) if name == "prompt" else None
        if marked is not None:
            values, kind = marked, "prompt"
        filled = [value for value in values if value is not None]
        lengths = {*map(len, filled)} if kind != "tags" and {*map(type, filled)} == {list} else set()
        is_split = len(lengths) == 1 and lengths != {0}
        nothing = [None] * max(lengths, default=0)
        rows = (nothing if value is None else value for value in values)
        parts = list(zip(*rows, strict=True)) if is_split else [values]
        flat += parts
        origin = {"side": side[0], "run": side[2]} if side[0] in OWN and side[2] else {}
        columns.append(
            {"name": name, "kind": kind, "list": is_split, **origin, "parts": [_part(one, kind) for one in parts]}
        )
    content = {"n": n, "key": list(explored.key), "filters": list(filters), "columns": columns}
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode("utf-8", errors="replace"), 6, mtime=0)).decode()


def _part(values: Sequence[Any], kind: str) -> list[Any]:
    """Distinct values by first use, and the differences of their numbers; no numbers if all are distinct."""
    types = {*map(type, values)}
    plain = list(map(repr, values)) if types & {list, dict} else values
    if kind == "share" and types == {float}:
        plain = np.round(np.array(values), 3).tolist()
    distinct = list(dict.fromkeys(plain))
    numbers = dict(zip(distinct, itertools.count()))
    steps = [] if len(distinct) == len(values) else np.diff([numbers[value] for value in plain], prepend=0).tolist()
    if types & {list, dict}:
        distinct = list(dict(zip(plain, values, strict=True)).values())
    return [[None if value != value else value for value in distinct], steps]


def _marked(prompts: Sequence[Any], flat: Sequence[Sequence[Any]]) -> list[Any] | None:
    """Prompts with a mark for every text of another column; None if a prompt has such a character itself."""
    lists = [[prompt] if isinstance(prompt, str) else prompt for prompt in prompts]
    texts = list(itertools.chain.from_iterable(lists))
    owners = [place for place, some in enumerate(lists) for _ in some]
    if any(map(_has_mark, texts)):
        return None
    sizes = {}
    for place, values in enumerate(flat[:_MOST_SOURCES]):
        is_text = {*map(type, values)} <= {str, *_NONE}
        distinct = {*values} - {None} if is_text else set()
        if any(len(text) > _LONG for text in distinct) and not any(map(_has_mark, distinct)):
            sizes[place] = max(map(len, distinct))
    for place in sorted(sizes, key=lambda place: -sizes[place]):
        mark, values = chr(_FIRST_MARK + place), flat[place]
        texts = [
            text.replace(values[owner], mark) if values[owner] else text
            for text, owner in zip(texts, owners, strict=True)
        ]
    left = iter(texts)
    return [next(left) if isinstance(prompt, str) else [next(left) for _ in prompt] for prompt in prompts]


def _has_mark(text: str) -> bool:
    return not text.isascii() and _MARKS.search(text) is not None


class Changes(NamedTuple):
    """Examples whose answers differ from the first run's, among all common ones, and the counts of the changes."""

    rows: Sequence[Row]
    key: Sequence[str]
    n_common: int
    table: Table


def changed_answers(runs: Sequence[Run], names: Sequence[str]) -> Changes | None:
    """Compare the answers of the first run with the answers of the others; None without common examples."""
    common = common_answers(runs)
    benchmark = runs[0].benchmark
    shown = [benchmark.examples(common[0], answers) for answers in common[1]] if common else []
    if common is None or not shown[0] or not {"answer", "outcome"} <= {*shown[0][0]}:
        return None
    table = common[0]
    wordings = table[RUN].to_pylist() if RUN in table.column_names else [None] * table.num_rows
    counts: list[Counter[str]] = [Counter({ALL: 0}) for _ in names[1:]]
    rows = []
    for wording, first, *others in zip(wordings, *shown, strict=True):
        if all(other["answer"] == first["answer"] for other in others):
            continue
        changes = [[f"became {one}" for one in other["outcome"] if one not in first["outcome"]] for other in others]
        for count, other, change in zip(counts, others, changes, strict=True):
            count.update([*change, *[ALL] * (other["answer"] != first["answer"])])
        row = {name: value for name, value in first.items() if name not in OWN}
        row |= {"change": list(dict.fromkeys(one for change in changes for one in change))}
        row |= {
            f"{name}: {run}": one.get(name) for name in OWN for run, one in zip(names, (first, *others), strict=True)
        }
        rows.append(row if wording is None else {**row, RUN: wording})
    key = benchmark.key if RUN not in table.column_names else (*benchmark.key, RUN)
    return Changes(rows, key, table.num_rows, _table(names, counts))


def _table(names: Sequence[str], counts: Sequence[Mapping[str, Any]]) -> Table:
    """The number of examples with each change, by run."""
    kinds = sorted(
        {kind for count in counts for kind in count}, key=lambda kind: (kind == ALL, -max(one[kind] for one in counts))
    )
    return Table(
        "answers_that_differ",
        "Changes",
        "",
        "A change can count in two rows, because an UNKNOWN answer can be right.",
        (
            Column("change", f"Change from {names[0]}", "text"),
            *(Column(f"run_{place}", name, "count") for place, name in enumerate(names[1:], start=2)),
        ),
        tuple((kind, *(count[kind] for count in counts)) for kind in kinds),
    )
