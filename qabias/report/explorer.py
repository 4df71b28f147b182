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
import pyarrow.parquet as pq

from qabias.benchmarks.base import RUN
from qabias.benchmarks.facts import Row
from qabias.comparison import MOST_PAIRED, Comparison
from qabias.comparison.paired import common_answers
from qabias.errors import QabiasError
from qabias.report.content import prompts_of
from qabias.runs.folder import part_path, read_all_answers
from qabias.runs.question import read_question
from qabias.runs.scored import ScoredRun
from qabias.tables.model import ALL, Analysis, Column, Table

MOST_EXAMPLES = 60_000  # in a page; of a larger run the page has the analysis's selection
TAGS = ("outcome", "change")  # keys whose values are lists of words to filter by
_MOST_SOURCES = 200
_FIRST_MARK = 0xE000  # private-use characters stand for texts that a prompt repeats
_MARKS = re.compile(f"[{chr(_FIRST_MARK)}-{chr(_FIRST_MARK + _MOST_SOURCES)}]")
_MOST_CHOICES, _FEW, _SHORT = 500, 12, 40  # distinct values of a key, of an answer, and characters
_NONE = {type(None)}
_LONG = 12  # characters from which a text is worth a mark


class Explored(NamedTuple):
    """Examples to filter, as columns; how they were chosen, the columns of their names, and tables above them."""

    title: str
    how_chosen: str
    columns: Mapping[str, Sequence[Any]]
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
            prompts, missing = prompts_of(rows, run)
            return Explored("Examples", f"All {len(rows):,} examples. {missing}".rstrip(), _columns(rows, prompts), key)
    prompts, missing = prompts_of(analysis.examples, run)
    how = " ".join(filter(None, (analysis.how_chosen, missing, reason)))
    return Explored("Examples", how, _columns(analysis.examples, prompts), key)


def _columns(rows: Sequence[Row], prompts: Sequence[Any] = ()) -> dict[str, Sequence[Any]]:
    """The columns of rows, without empty ones; the prompts are the last."""
    keys = list(dict.fromkeys(map(tuple, rows)))
    names = list(dict.fromkeys(name for some in keys for name in some))
    if len(keys) == 1:
        columns = dict(zip(names, zip(*(row.values() for row in rows), strict=True), strict=True))
    else:
        columns = {name: tuple(row.get(name) for row in rows) for name in names}
    found: dict[str, Sequence[Any]] = {name: values for name, values in columns.items() if {*map(type, values)} != _NONE}
    return {**found, "prompt": prompts} if prompts else found


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
    return Explored("Answers that differ", how, _columns(rows), key, (transitions,))


_OWN = ("outcome", "probabilities", "answer", "generated", "said", "labels")  # keys that differ between runs


def choices(columns: Mapping[str, Sequence[Any]]) -> dict[str, set[str]]:
    """The values of the keys by which examples can be filtered: few short texts, and no answers unless very few."""
    lists = [values for values in columns.values() if {*map(type, values)} - _NONE == {list}]
    listed = {one for values in lists for one in itertools.chain.from_iterable(filter(None, values)) if isinstance(one, str)}
    found: dict[str, set[str]] = {}
    for name, values in columns.items():
        if _is_tags(name):
            texts = {*itertools.chain.from_iterable(filter(None, values))}
        else:
            texts = {*values} - {None} if {*map(type, values)} <= {str, *_NONE} and name != "prompt" else set()
        is_answer = not _is_tags(name) and len(texts) > _FEW and texts <= listed
        if 0 < len(texts) <= _MOST_CHOICES and not is_answer and all(len(text) <= _SHORT for text in texts):
            found[name] = texts
    return found


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
        parts = list(zip(*(nothing if value is None else value for value in values), strict=True)) if is_split else [values]
        flat += parts
        about = {"side": side[0], "run": side[2]} if side[0] in _OWN and side[2] else {}
        columns.append({"name": name, "kind": kind, "list": is_split, **about, "parts": [_part(one, kind) for one in parts]})
    content = {"n": n, "key": list(explored.key), "filters": list(filters), "columns": columns}
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode("utf-8", errors="replace"), 6, mtime=0)).decode()


def _part(values: Sequence[Any], kind: str) -> list[Any]:
    """Distinct values by first use, and the differences of their numbers; no numbers if all are distinct."""
    types = {*map(type, values)}
    plain = list(map(json.dumps, values)) if types & {list, dict} else values
    if kind == "share" and types == {float}:
        plain = np.round(np.array(values), 3).tolist()
    distinct = list(dict.fromkeys(plain))
    numbers = dict(zip(distinct, itertools.count()))
    steps = [] if len(distinct) == len(values) else np.diff([numbers[value] for value in plain], prepend=0).tolist()
    if types & {list, dict}:
        distinct = list(map(json.loads, distinct))
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
        distinct = {value for value in {*values} if isinstance(value, str)} if {*map(type, values)} <= {str, *_NONE} else set()
        if any(len(text) > _LONG for text in distinct) and not any(map(_has_mark, distinct)):
            sizes[place] = max(map(len, distinct))
    for place in sorted(sizes, key=lambda place: -sizes[place]):
        mark, values = chr(_FIRST_MARK + place), flat[place]
        texts = [text.replace(values[owner], mark) if values[owner] else text for text, owner in zip(texts, owners, strict=True)]
    left = iter(texts)
    return [next(left) if isinstance(prompt, str) else [next(left) for _ in prompt] for prompt in prompts]


def _has_mark(text: str) -> bool:
    return not text.isascii() and _MARKS.search(text) is not None
