"""All examples of a run, or those that two runs answer differently, as compact columns for a page."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq

from qabias.benchmarks.base import RUN
from qabias.benchmarks.facts import Row
from qabias.comparison import MOST_PAIRED, Comparison
from qabias.comparison.paired import common_answers
from qabias.errors import QabiasError
from qabias.report.content import add_prompts
from qabias.runs.folder import part_path, read_all_answers
from qabias.runs.question import read_question
from qabias.runs.scored import ScoredRun
from qabias.tables.model import ALL, Analysis, Column, Table

MOST_EXAMPLES = 60_000  # in a page; of a larger run the page has the analysis's selection
TAGS = ("outcome", "change")  # keys whose values are lists of words to filter by
_MOST_SOURCES = 200
_FIRST_MARK = 0xE000  # private-use characters stand for texts that a prompt repeats
_MARKS = re.compile(f"[{chr(_FIRST_MARK)}-{chr(_FIRST_MARK + _MOST_SOURCES)}]")
_MOST_CHOICES, _FEW, _SHORT = 500, 12, 60  # distinct values of a key, of an answer, and characters
_LONG = 12  # characters from which a text is worth a mark


class Explored(NamedTuple):
    """Examples to filter, how they were chosen, the columns of their names, and tables above them."""

    title: str
    how_chosen: str
    rows: Sequence[Row]
    key: Sequence[str]
    tables: Sequence[Table] = ()


def run_examples(run: ScoredRun, analysis: Analysis) -> Explored:
    """All examples of a run up to `MOST_EXAMPLES`, else the analysis's, with the reason."""
    key = run.benchmark.key
    parts = part_path(run.folder, 0).parent.glob("part-*.parquet")
    n = sum(pq.read_metadata(path).num_rows for path in parts)
    reason = f"The run has {n:,} examples, a page at most {MOST_EXAMPLES:,}." if n else "The folder has no answers."
    if 0 < n <= MOST_EXAMPLES:
        try:
            question = read_question(run.file)
            answers = read_all_answers(run.file, run.benchmark, question.table)
        except QabiasError as error:
            reason = f"{error.args[0]} {error.args[1] if len(error.args) > 1 else ''}".strip()
        else:
            rows: Sequence[Row] = run.benchmark.examples(question.table, answers)
            if RUN in question.table.column_names:
                wordings = question.table[RUN].to_pylist()
                rows = [{**row, RUN: wording} for row, wording in zip(rows, wordings, strict=True)]
                key = (*key, RUN)
            rows, missing = add_prompts(rows, run)
            return Explored("Examples", f"All {len(rows):,} examples. {missing}".rstrip(), rows, key)
    rows, missing = add_prompts(analysis.examples, run)
    return Explored("Examples", f"{analysis.how_chosen} {missing} {reason}".replace("  ", " "), rows, key)


def differing_examples(comparison: Comparison, mirror: str | None = None) -> Explored | None:
    """Examples whose answers differ from the first run's, side by side; None without common examples."""
    runs, names = comparison.runs, comparison.names
    if not 2 <= len(runs) <= MOST_PAIRED or comparison.are_forms or comparison.is_by_language:
        return None
    common = common_answers(runs, mirror)
    if common is None:
        return None
    table, answers = common
    benchmark = comparison.benchmark
    shown = [benchmark.examples(table, of_run) for of_run in answers]
    own = [name for name in shown[0][0] if any(name in _OWN for _ in shown)] if shown[0] else []
    if "answer" not in own:
        return None
    wordings = table[RUN].to_pylist() if RUN in table.column_names else None
    counts = [Counter({"answers differ": 0}) for _ in names[1:]]
    rows = []
    for place, first, *others in zip(range(table.num_rows), *shown, strict=True):
        if all(other["answer"] == first["answer"] for other in others):
            continue
        changes = [[f"became {one}" for one in other["outcome"] if one not in first["outcome"]] for other in others]
        for count, other, change in zip(counts, others, changes, strict=True):
            count.update([*change, *["answers differ"] * (other["answer"] != first["answer"])])
        row = {name: value for name, value in first.items() if name not in own}
        row["change"] = list(dict.fromkeys(one for change in changes for one in change))
        for name in own:
            row |= {f"{name}: {run}": one.get(name) for run, one in zip(names, (first, *others), strict=True)}
        rows.append(row if wordings is None else {**row, RUN: wordings[place]})
    kinds = sorted({kind for count in counts for kind in count}, key=lambda kind: -max(one[kind] for one in counts))
    transitions = Table(
        "answers_that_differ",
        "Answers that differ",
        "",
        "A change can count in two rows, because an UNKNOWN answer can be right.",
        (
            Column("change", f"Change from {names[0]}", "text"),
            *(Column(f"run_{place}", f"{name}", "count") for place, name in enumerate(names[1:], start=2)),
        ),
        tuple((ALL if kind == "answers differ" else kind, *(count[kind] for count in counts)) for kind in kinds),
    )
    how = f"{len(rows):,} of {table.num_rows:,} common examples have different answers."
    key = benchmark.key if wordings is None else (*benchmark.key, RUN)
    return Explored("Answers that differ", how, rows, key, (transitions,))


_OWN = ("outcome", "probabilities", "answer", "generated", "said", "labels")  # keys that differ between runs


def choices(rows: Sequence[Row]) -> dict[str, set[str]]:
    """The values of the keys by which examples can be filtered: few short texts, and no answers unless very few."""
    names = [name for name in (rows[0] if rows else ()) if name != "prompt"]
    listed = {one for row in rows for name in names if isinstance(row.get(name), list) for one in map(str, row[name])}
    found: dict[str, set[str]] = {}
    for name in names:
        values = [row.get(name) for row in rows]
        texts = {value for value in values if isinstance(value, str)}
        if _is_tags(name):
            texts = {tag for value in values for tag in value or ()}
        is_answer = not _is_tags(name) and texts <= listed and len(texts) > _FEW
        if 0 < len(texts) <= _MOST_CHOICES and not is_answer and all(len(text) <= _SHORT for text in texts):
            found[name] = texts
    return found


def _is_tags(name: str) -> bool:
    return name.partition(":")[0] in TAGS


def encode(rows: Sequence[Row], key: Sequence[str], filters: Iterable[str]) -> str:
    """Examples as gzipped JSON in base64: every column as distinct values and differences of their numbers."""
    names = list(dict.fromkeys(name for keys in dict.fromkeys(map(tuple, rows)) for name in keys))
    columns, flat = [], []
    for name in sorted(names, key=lambda name: name == "prompt"):
        values = [row.get(name) for row in rows]
        kind = "tags" if _is_tags(name) else "share" if name.startswith("probabilit") else ""
        if name == "prompt":
            marked = _marked(values, flat)
            values, kind = (values, "") if marked is None else (marked, "prompt")
        if all(value is None for value in values):
            continue
        lengths = {len(value) if isinstance(value, list) else -1 for value in values if value is not None}
        is_split = kind != "tags" and len(lengths) == 1 and min(lengths) > 0
        n_parts = lengths.pop() if is_split else 1
        parts = [[value and value[place] for value in values] for place in range(n_parts)] if is_split else [values]
        flat += parts
        side, _, run = name.partition(": ") if name.partition(":")[0] in _OWN else ("", "", "")
        about = {"name": name, "kind": kind, "list": is_split, **({"side": side, "run": run} if run else {})}
        columns.append({**about, "parts": [_column(part, kind) for part in parts]})
    content = json.dumps(
        {"n": len(rows), "key": list(key), "filters": list(filters), "columns": columns},
        ensure_ascii=False,
        separators=(",", ":"),
    )
    return base64.b64encode(gzip.compress(content.encode("utf-8", errors="replace"), 6, mtime=0)).decode()


def _column(values: Sequence[Any], kind: str) -> list[Any]:
    """Distinct values by first use, and the differences of their numbers; no numbers if all are distinct."""
    if kind == "share":
        values = [round(value, 3) if isinstance(value, float) else value for value in values]
    plain = [json.dumps(value) if isinstance(value, (list, dict)) else value for value in values]
    numbers: dict[Any, int] = {}
    codes = [numbers.setdefault(value, len(numbers)) for value in plain]
    first = dict(zip(plain, values, strict=True))
    distinct = [None if value != value else value for value in map(first.__getitem__, numbers)]
    return [distinct, [] if len(distinct) == len(codes) else np.diff(codes, prepend=0).tolist()]


def _marked(prompts: Sequence[Any], flat: Sequence[Sequence[Any]]) -> list[Any] | None:
    """Prompts with a mark for every text of another column; None if a text has such a character itself."""
    lists = [[prompt] if isinstance(prompt, str) else prompt or [] for prompt in prompts]
    if any(_MARKS.search(text) for texts in lists for text in texts):
        return None
    sizes = {}
    for place, values in enumerate(flat[:_MOST_SOURCES]):
        texts = {value for value in values if isinstance(value, str)}
        if any(len(text) > _LONG for text in texts) and not any(map(_MARKS.search, texts)):
            sizes[place] = max(map(len, texts))
    sources = [(chr(_FIRST_MARK + place), flat[place]) for place in sorted(sizes, key=lambda place: -sizes[place])]
    marked: list[Any] = []
    for place, texts in enumerate(lists):
        for mark, values in sources:
            value = values[place]
            if value:
                texts = [text.replace(value, mark) for text in texts]
        marked.append(texts if isinstance(prompts[place], list) else texts[0] if texts else None)
    return marked
