"""Answers that a model writes: the questions to it, how its texts are read, and what became of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qabias.answers.outcomes import ANSWERED, OUTCOMES, outcomes, whole
from qabias.benchmarks.base import Benchmark
from qabias.benchmarks.facts import counted
from qabias.benchmarks.orders import check_orders, in_orders
from qabias.benchmarks.prompt_format import PromptFormat, choose_format
from qabias.errors import QabiasError
from qabias.scorers.registry import FUNCTION
from qabias.support.suggest import unknown
from qabias.tables.formatting import percent

WRITTEN_COLUMNS = ("outcome", "outcomes", "outputs")
"""Columns that written answers have and others have not."""


def is_text(column: pa.ChunkedArray) -> bool:
    """Whether a column holds texts."""
    return bool(pa.types.is_string(column.type) or pa.types.is_large_string(column.type))


def as_places(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Numbers of answers as integers, where floats hold them because some are missing; NaN is nothing."""
    if pa.types.is_floating(column.type):
        try:
            return pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column).cast(pa.int64())
        except pa.ArrowInvalid:
            return column
    return column.cast(pa.int64()) if pa.types.is_null(column.type) else column


def text_columns(
    texts: Sequence[tuple[str, ...]], labels: Sequence[Sequence[int]], samples: int
) -> dict[str, pa.Array]:
    """The columns of written answers."""
    became = [outcomes(of_row, read) for of_row, read in zip(texts, labels, strict=True)]
    thinking = [[getattr(text, "thinking", "") for text in of_row] for of_row in texts]
    plural = "" if samples == 1 else "s"
    columns = {
        f"prediction{plural}": _column(labels, pa.int8(), samples),
        f"outcome{plural}": _column(became, pa.string(), samples),
        "outputs": pa.array([list(map(whole, map(str, of_row))) for of_row in texts], pa.list_(pa.string())),
    }
    return columns | ({"thinking": _column(thinking, pa.string(), samples)} if any(map(any, thinking)) else {})


def _column(values: Sequence[Sequence[Any]], kind: pa.DataType, samples: int) -> pa.Array:
    """One value for each row, or a list of them where there are several samples."""
    return pa.array([one for (one,) in values], kind) if samples == 1 else pa.array(values, pa.list_(kind))


def check_outcomes(answers: pa.Table) -> None:
    """Refuse a column `outcome` that others collected if it holds something else than outcomes and null."""
    if "outcome" not in answers.column_names:
        return
    for value in answers["outcome"].unique().to_pylist():
        if value is not None and value not in OUTCOMES:
            raise unknown("outcome", str(value), OUTCOMES)


def outcome_counts(answers: pa.Table) -> dict[str, dict[str, int]]:
    """How often each outcome occurs, as the entry `outcomes` of scores; empty where the answers have none."""
    if "outcome" in answers.column_names:
        counts = Counter(answers["outcome"].to_pylist())
    elif "outcomes" in answers.column_names:
        counts = Counter(became for of_row in answers["outcomes"].to_pylist() for became in of_row or ())
    else:
        return {}
    return {"outcomes": {name: counts[name] for name in OUTCOMES}}


def about_missing(scores: Mapping[str, Any], n_missing: int, *more: str) -> str:
    """How many answers are missing, and why."""
    unparsed = f"{counted(n_missing, 'output')} named no answer ({percent(scores['unparsed_share'])})"
    reasons = [f"{n:,} {name}" for name, n in scores.get("outcomes", {}).items() if n and name != ANSWERED]
    said = ", ".join(filter(None, (*reasons, *more)))
    return f"{unparsed}: {said}" if said else unparsed


_ASKED_IN_WORDS = "letter"
"""The word of `qabias.scorers.kind.ASK_METHODS` for a model that writes its answer."""


@dataclass(frozen=True)
class AskedText:
    """A question to a model that writes."""

    key: str
    prompt: str
    row: int
    number: int


class _Texts:
    """Stands in for a model that writes: keeps the questions, and gives texts that there are already."""

    # A function of the caller is such a stranger too: it is asked as a chat, and its texts are taken as they are.
    name = FUNCTION
    model_signature = ""
    samples = 1

    def __init__(self, texts: Mapping[str, str] | None = None) -> None:
        self._texts = texts
        self.asked: list[tuple[str, str]] = []

    def generate(self, prompts: Sequence[str], keys: Sequence[str]) -> list[tuple[str, ...]]:
        """The text of every key."""
        self.asked += zip(keys, prompts, strict=True)
        return [("" if self._texts is None else self._texts[key],) for key in keys]


def written_format(benchmark: Benchmark, name: str | None = None, orders: int = 1) -> PromptFormat:
    """The prompt format in which a model that writes in the form of a chat is asked."""
    if "texts" not in benchmark.interfaces:
        raise QabiasError(f"{benchmark.name}: it cannot be asked in words, so a model that only writes has no answers")
    prompt_format = choose_format(
        benchmark.formats, name or benchmark.asks.get(_ASKED_IN_WORDS) or benchmark.default_format(_Texts())
    )
    if prompt_format.wordings:
        names = ", ".join(wording.name for wording in prompt_format.wordings)
        raise QabiasError(f"{benchmark.name}: {prompt_format.name} is a set of formats; ask one of them: {names}")
    check_orders(benchmark, orders)
    return in_orders(benchmark, prompt_format, orders)


def questions_of(benchmark: Benchmark, table: pa.Table, prompt_format: PromptFormat, norm: str) -> list[AskedText]:
    """Every question about some examples, those about one example side by side."""
    recorder = _Texts()
    benchmark.answer(table, recorder, prompt_format, norm)
    n_each, rest = divmod(len(recorder.asked), table.num_rows)
    if rest or len({key for key, _ in recorder.asked}) < len(recorder.asked):
        raise QabiasError(f"{benchmark.name}: its questions have no names of their own; ask it by qabias run")
    return [AskedText(key, prompt, *divmod(place, n_each)) for place, (key, prompt) in enumerate(recorder.asked)]


def answers_to(
    benchmark: Benchmark, table: pa.Table, texts: Mapping[str, str], prompt_format: PromptFormat, norm: str
) -> pa.Table:
    """What a run keeps of texts that a model wrote."""
    return pa.table(benchmark.answer(table, _Texts(texts), prompt_format, norm))


def is_answered(questions: Sequence[AskedText], keys: Collection[str], n_rows: int) -> np.ndarray:
    """Which examples have a text for each of their questions; bool of shape (n_rows,)."""
    answered = np.ones(n_rows, dtype=bool)
    answered[[question.row for question in questions if question.key not in keys]] = False
    return answered


def in_whole_units(benchmark: Benchmark, table: pa.Table, answered: np.ndarray) -> np.ndarray:
    """Which examples belong to units of sampling, such as sets of four, that are answered as a whole."""
    units, _ = benchmark.units(table)
    broken = np.unique(units[~answered])
    return ~np.isin(units, broken)
