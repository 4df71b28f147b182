"""Written answers: the questions, how texts are parsed, and their outcomes."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qabias.answers.outcomes import ANSWERED, NO_ANSWER, OUTCOMES, REPEATED, UNREAD, outcomes, whole
from qabias.answers.parsing import stated_number
from qabias.benchmarks.base import Benchmark, Origin
from qabias.benchmarks.orders import check_orders, in_orders
from qabias.benchmarks.prompt_format import PromptFormat, choose_format
from qabias.errors import QabiasError
from qabias.scorers.registry import FUNCTION
from qabias.scores.formatting import percent, pluralize
from qabias.scores.score import MOST_MISSING
from qabias.support.arrow import plain
from qabias.support.suggest import shortened, unknown

WRITTEN_COLUMNS = ("outcome", "outcomes", "outputs")
"""Columns that only written answers have."""

_EXPLAINS = re.compile(r"(?i)\n|\b(?:because|since|reason|expla)")


def read_predictions(answers: pa.Table, table: pa.Table, parse: Callable[[list[str]], dict[str, pa.Array]]) -> pa.Table:
    """Given answers: indices are kept, texts are parsed, and texts that state an index are indices."""
    column = plain(answers["prediction"])
    if not any(is_kind(column.type) for is_kind in (pa.types.is_struct, pa.types.is_string, pa.types.is_large_string)):
        check_outcomes(answers)
        if pa.types.is_floating(column.type) or pa.types.is_null(column.type):
            with suppress(pa.ArrowInvalid):  # 0.5, which the metric refuses by its row
                column = pc.if_else(pc.is_nan(column.cast(pa.float64())), None, column).cast(pa.int64())
        return answers.set_column(answers.column_names.index("prediction"), "prediction", column)
    texts = [json.dumps(one, ensure_ascii=False) if isinstance(one, dict) else one or "" for one in column.to_pylist()]
    stated = {row: number for row, text in enumerate(texts) if (number := stated_number(text)) is not None}
    options = [table[name].to_pylist() for name in ("ans0", "ans1", "ans2") if name in table.column_names]
    for row, names in enumerate(zip(*options, strict=True)):  # in "the 2 boys" a number is no index
        if str(stated.get(row)) in re.findall(r"\d+", " ".join(names)):
            del stated[row]
    columns = parse(texts)
    odd = [texts[row] for row, number in stated.items() if number not in range(3)]
    if odd and len(stated) > MOST_MISSING * len(texts):
        raise QabiasError(
            f"{pluralize(len(stated), 'answer')} are numbers, not all from 0 to 2. One is {shortened(odd[0])}.",
            "If they count from 1, subtract 1. Or give the letters or texts of the answers.",
        )
    places, became = columns["prediction"].to_pylist(), columns["outcome"].to_pylist()
    for row, number in () if odd else stated.items():
        # "Answer: 2) the boy" must agree with itself; an explanation may name anyone.
        is_clear = places[row] in (NO_ANSWER, number) or _EXPLAINS.search(texts[row])
        places[row], became[row] = (number, ANSWERED) if is_clear else (NO_ANSWER, UNREAD)
    return pa.table(columns | {"prediction": pa.array(places, columns["prediction"].type), "outcome": pa.array(became)})


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
    return pa.array([one for (one,) in values], kind) if samples == 1 else pa.array(values, pa.list_(kind))


def check_outcomes(answers: pa.Table) -> None:
    """Refuse a column `outcome` with other values than outcomes and null."""
    if "outcome" not in answers.column_names:
        return
    for value in answers["outcome"].unique().to_pylist():
        if value is not None and value not in OUTCOMES:
            raise unknown("outcome", str(value), OUTCOMES)


def outcome_counts(answers: pa.Table) -> dict[str, dict[str, int]]:
    """The entry `outcomes` of scores: how often each outcome occurs. Empty without outcomes."""
    if "outcome" in answers.column_names:
        counts = Counter(answers["outcome"].to_pylist())
    elif "outcomes" in answers.column_names:
        counts = Counter(became for of_row in answers["outcomes"].to_pylist() for became in of_row or ())
    else:
        return {}
    return {"outcomes": {name: counts[name] for name in OUTCOMES}}


def about_missing(scores: Mapping[str, Any], n_missing: int, *more: str) -> str:
    """How many answers are missing, and why."""
    unparsed = f"{pluralize(n_missing, 'output')} named no answer ({percent(scores['unparsed_share'])})"
    words = {REPEATED: "repeat the options"}
    reasons = [
        f"{n:,} {words.get(name, name)}" for name, n in scores.get("outcomes", {}).items() if n and name != ANSWERED
    ]
    details = ", ".join(filter(None, (*reasons, *more)))
    return f"{unparsed}: {details}" if details else unparsed


_ASKED_IN_WORDS = "letter"
"""The ask method (`qabias.scorers.kind.ASK_METHODS`) of a model that writes its answer."""


@dataclass(frozen=True)
class AskedText:
    """A question to a model that writes."""

    key: str
    prompt: str
    row: int
    number: int


class _Texts:
    """A scorer that records the questions and returns existing texts."""

    # Like a function of the caller, it is asked as a chat.
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


def written_format(
    benchmark: Benchmark, name: str | None = None, orders: int = 1, origin: Origin | None = None
) -> PromptFormat:
    """The prompt format for a chat model."""
    if "texts" not in benchmark.interfaces:
        raise QabiasError(f"{benchmark.name} needs probabilities, and this model only writes.", "Use a local model.")
    formats = benchmark.formats_from(origin) if origin else benchmark.formats
    name = name or benchmark.asks.get(_ASKED_IN_WORDS) or benchmark.default_format(_Texts())
    prompt_format = choose_format(formats, name)
    if prompt_format.variants:
        names = ", ".join(variant.name for variant in prompt_format.variants)
        raise QabiasError(f"{benchmark.name}: {prompt_format.name} is a set of formats.", f"Use one of {names}.")
    check_orders(benchmark, orders)
    return in_orders(benchmark, prompt_format, orders)


def questions_of(benchmark: Benchmark, table: pa.Table, prompt_format: PromptFormat, norm: str) -> list[AskedText]:
    """Every question about some examples. Those about one example are neighbors."""
    recorder = _Texts()
    benchmark.answer(table, recorder, prompt_format, norm)
    n_each, rest = divmod(len(recorder.asked), table.num_rows)
    if rest or len({key for key, _ in recorder.asked}) < len(recorder.asked):
        raise QabiasError(f"{benchmark.name}: its questions have no unique names.", "Use qabias run.")
    return [AskedText(key, prompt, *divmod(place, n_each)) for place, (key, prompt) in enumerate(recorder.asked)]


def answers_to(
    benchmark: Benchmark, table: pa.Table, texts: Mapping[str, str], prompt_format: PromptFormat, norm: str
) -> pa.Table:
    """Columns that a run keeps of written texts."""
    return pa.table(benchmark.answer(table, _Texts(texts), prompt_format, norm))


def is_answered(questions: Sequence[AskedText], keys: Collection[str], n_rows: int) -> np.ndarray:
    """Which examples have a text for each question; bool of shape (n_rows,)."""
    answered = np.ones(n_rows, dtype=bool)
    answered[[question.row for question in questions if question.key not in keys]] = False
    return answered


def in_whole_units(benchmark: Benchmark, table: pa.Table, answered: np.ndarray) -> np.ndarray:
    """Which examples belong to fully answered units of sampling, such as sets of four."""
    units, _ = benchmark.units(table)
    broken = np.unique(units[~answered])
    return ~np.isin(units, broken)
