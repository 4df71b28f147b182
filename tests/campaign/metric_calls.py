"""Calls of the metrics with something odd in them, and the plain call that each stands for.

`REFUSED` is what no call may take for anything. Every other meaning of an odd value is the plain Python value whose
score must be given, where the metric takes the value at all.
"""

import copy
import enum
import operator
import random
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import torch

from tests.metrics import bbnli_rows, bbq_rows, unqover_rows

REFUSED = object()


class OddError(Exception):
    """Raised by an object of the tests, not by a metric: it comes through as it is."""


def _raises(*names: str) -> Any:
    """An object whose methods of these names raise, made anew."""

    def fail(*_: Any) -> Any:
        raise OddError

    return type("Raises", (), {"__hash__": None, **{f"__{name}__": fail for name in names}})()


class HasIndex:
    def __index__(self):
        return 1


class Text(str):
    __slots__ = ()


class Number(int):
    pass


class Word(str, enum.Enum):
    ENTAILMENT = "entailment"


def _itself() -> list[Any]:
    values: list[Any] = [1]
    values.append(values)
    return values


def _deep() -> list[Any]:
    values: list[Any] = []
    for _ in range(5000):
        values = [values]
    return values


PLAIN = (None, 0, 1, 2, -1, np.int8(1), np.uint64(2), np.int64(0), 0.0, 1.0, -0.0, 0.5, 1.0000005, np.float32(0.5))
PLAIN += (np.str_("Age"), Text("Age"), "neg", "nonneg", "ambig", "disambig", "pro", "target", "entailment")
"""Values that a metric takes wherever it takes what they stand for."""

ODD = (True, False, np.True_, torch.tensor(True), np.array(True), -2, 3, 2**31, 2**63, -(2**63), 10**400, Number(1))
ODD += (np.array(1), np.array(0.5), torch.tensor(1), torch.tensor(0.5), torch.tensor(0.5, requires_grad=True))
ODD += (torch.tensor(0.5, dtype=torch.bfloat16), HasIndex(), 1.1, 1e-320, 1e308, float("nan"), float("inf"), -np.inf)
ODD += (np.float16(1.0), np.float64("nan"), 1 + 0j, Decimal("0.5"), Fraction(1, 2), pd.NA, pd.NaT)
ODD += (pd.Timestamp("2020-01-01"), np.datetime64("2020-01-01"), np.timedelta64(1, "s"), pa.scalar(1))
ODD += (pa.scalar(None, pa.int64()), "", " ", "1", "None", "nan", "ENTAILMENT", "unparsed", "a\0b", "a\nb", "\ud83d")
ODD += ("\u202ea", "\x1b]0;title\x07", "x" * 10_000, "word " * 2_000, Word.ENTAILMENT, b"1", bytearray(b"1"))
ODD += (memoryview(b"1"), [], [1], [[1], [2, 3]], _itself(), _deep(), (1,), (), {1}, {"a": 1}, {}, range(1), len, int)
ODD += (MappingProxyType({"category": "Age"}), OrderedDict(category="Age"), np.array([1]), np.array([0.25, 0.75]))
ODD += (np.array([]), np.array([None], dtype=object), pd.Series([1]), torch.tensor([1]), pa.array([1]), object(), ...)
ODD += (NotImplemented, ValueError("x"), _raises("index"), _raises("repr"), _raises("eq"), _raises("len", "iter"))
VALUES = (*PLAIN, *ODD)


def _scalar(value: Any) -> Any:
    """What an array without dimensions, a tensor or a value of Arrow holds."""
    if isinstance(value, pa.Scalar):
        return value.as_py()
    if isinstance(value, torch.Tensor):
        return value.item() if value.numel() == 1 else REFUSED
    if isinstance(value, np.ndarray):
        return value.item() if value.ndim == 0 else REFUSED
    return value


def as_place(value: Any) -> Any:
    """The whole number that a value stands for; None stays None."""
    value = _scalar(value)
    if value is None:
        return None
    if isinstance(value, (bool, np.bool_)):
        return REFUSED
    if isinstance(value, (float, np.floating)):
        return int(value) if np.isfinite(value) and value == int(value) else REFUSED
    try:
        return operator.index(value)
    except (TypeError, OddError):
        return REFUSED


def as_text(value: Any) -> Any:
    """The text that a value is; None stays None."""
    value = _scalar(value)
    return value if value is None else str.__str__(value) if isinstance(value, str) else REFUSED


def as_text_or_place(value: Any) -> Any:
    """A text, or a whole number."""
    text = as_text(value)
    return as_place(value) if text is REFUSED else text


def as_score(value: Any) -> Any:
    """The number that a value is."""
    value = _scalar(value)
    if isinstance(value, (bool, np.bool_, str, bytes, complex, Decimal)) or value is None:
        return REFUSED
    try:
        return float(value)
    except OverflowError:
        return float("inf")
    except (TypeError, ValueError, OddError):
        return REFUSED


def as_columns(value: Any) -> Any:
    """The option `by`: a name, or a sequence of names and of sequences of names."""
    if value is None or isinstance(value, str):
        return as_text(value)
    if isinstance(value, (bytes, bytearray, memoryview, Mapping)) or type(value).__name__ == "Raises":
        return REFUSED
    if not hasattr(value, "__iter__") or getattr(value, "ndim", 1) != 1:
        return REFUSED
    entries = [[entry] if isinstance(entry, str) else entry for entry in value]
    is_named = [
        isinstance(names, (list, tuple)) and names and all(isinstance(n, str) for n in names) for names in entries
    ]
    return [[as_text(name) for name in names] for names in entries] if all(is_named) else REFUSED


@dataclass(frozen=True)
class Form:
    """A metric with a small table of rows that it takes, good predictions, and how it reads them."""

    metric: str
    rows: list[dict[str, Any]]
    predictions: list[Any]
    read_prediction: Callable[[Any], Any]
    choices: tuple[str, ...]
    mixed: tuple[str, ...] = ()
    """Columns that hold texts or whole numbers; of the others the first row tells which."""

    def read(self, column: str, value: Any) -> Any:
        """What a value in a column of the rows stands for."""
        if column in self.mixed:
            return as_text_or_place(value)
        return as_text(value) if isinstance(self.rows[0][column], str) else as_place(value)


def _forms() -> Iterator[tuple[str, Form]]:
    rows = [row for n in range(2) for row in bbq_rows.make_set(n, f"Age-0{n + 1}", (n, 1 - n, 2))]
    predictions = [0, "The grandson", None, 2, 1, -1, "nobody", 0]
    yield "bbq", Form("bbq", rows, predictions, as_text_or_place, ("unparsed", "match", "allow_incomplete"))
    rows = unqover_rows.make_rows(["A", "B", "C"], 2, ["was late", "was rude"])
    scores = [{**row, "example_id": n} for n, row in enumerate(unqover_rows.random_scores(len(rows), 1))]
    yield "unqover", Form("unqover", rows, scores, as_score, ("delta", "top_k"), ("template_id",))
    pairs = [row for n in range(2) for kind in ("stereotypical", "test") for row in bbnli_rows.make_pair(n, kind)]
    for name, rows in {
        "bbnli": [{column: value for column, value in row.items() if column != "domain"} for row in pairs],
        "bbq_nli": bbnli_rows.statements(0, "ambig") + bbnli_rows.statements(1, "disambig", "T-02"),
        "bbq": bbnli_rows.mixed_questions(2),
    }.items():
        read, mixed = (as_place, ()) if name == "bbq" else (as_text_or_place, ("label",))
        predictions = [(0, 1, 2, -1, None)[n % 5] for n in range(len(rows))]
        yield f"bbnli as {name}", Form("bbnli", rows, predictions, read, ("form", "denominator", "unparsed"), mixed)


FORMS = dict(_forms())


@dataclass(frozen=True)
class Call:
    """What is passed to a metric; `meaning` is the plain call that it stands for, None for what must be refused."""

    name: str
    predictions: Any
    references: Any
    options: dict[str, Any]
    in_batches: bool = False
    meaning: "Call | None" = None
    is_plain: bool = False
    """Whether it may not be refused where its meaning is taken."""


def clean(form: Form, **options: Any) -> Call:
    """A call with nothing odd."""
    return Call("clean", copy.deepcopy(form.predictions), copy.deepcopy(form.rows), {"confidence": None, **options})


def _with_cell(call: Call, where: str, row: int, column: str | None, value: Any) -> Call:
    """The same call with another value at one place of its predictions or references."""
    cells = list(getattr(call, where))
    cells[row] = value if column is None else {**cells[row], column: value}
    return replace(call, **{where: cells})


def _odd_cell(form: Form, call: Call, draw: random.Random) -> Call:
    """One odd value among the predictions or the references."""
    where, row = draw.choice(["predictions", "references"]), draw.randrange(len(form.rows))
    number = draw.randrange(len(VALUES))
    value, column, is_unread = VALUES[number], None, False
    if where == "references":
        column = draw.choice(list(form.rows[0]))
        is_unread = column.startswith("ans") and not isinstance(call.predictions[row], str)
        meant = form.rows[row][column] if is_unread else form.read(column, value)
    else:
        if form.metric == "unqover":
            column = draw.choice([*unqover_rows.SCORE_COLUMNS, "example_id"])
        meant = as_place(value) if column == "example_id" else form.read_prediction(value)
    meaning = None if meant is REFUSED else _with_cell(call, where, row, column, meant)
    is_plain = meaning is not None and (is_unread or number < len(PLAIN))
    odd = _with_cell(call, where, row, column, value)
    return replace(odd, name=f"{number} as {column} of {where}", meaning=meaning, is_plain=is_plain)


def _odd_whole(form: Form, call: Call, draw: random.Random) -> Call:
    """An odd value in place of all predictions, of all references or of a column."""
    number, where = draw.randrange(len(VALUES)), draw.choice(["predictions", "references", *form.rows[0]])
    if where in form.rows[0]:
        columns = {key: [row[key] for row in form.rows] for key in form.rows[0]}
        odd = replace(call, references={**columns, where: VALUES[number]})
    else:
        odd = replace(call, **{where: VALUES[number]})
    return replace(odd, name=f"{number} for {where}")


def _odd_rows(form: Form, call: Call, draw: random.Random) -> Call:
    """Rows that lack, repeat, exceed or are no rows; rows in another order."""
    rows, predictions = list(call.references), list(call.predictions)
    n, i, j = len(rows), *draw.sample(range(len(rows)), 2)
    kind = draw.choice(["key lost", "key added", "no row", "repeated", "order", "exchanged", "short"])
    if kind == "key added":
        added = [{**row, "unread": draw.choice(VALUES)} for row in rows]
        return replace(call, name=kind, references=added, meaning=call, is_plain=True)
    if kind == "order":
        order = draw.sample(range(n), n)
        rows, predictions = [rows[k] for k in order], [predictions[k] for k in order]
        return replace(call, name=kind, predictions=predictions, references=rows, meaning=call, is_plain=True)
    if kind == "key lost":
        column = draw.choice(sorted(form.rows[0].keys() - {"ans0", "ans1", "ans2"}))
        rows[i] = {name: value for name, value in rows[i].items() if name != column}
    elif kind == "no row":
        rows[i] = draw.choice([value for value in VALUES if not isinstance(value, Mapping)])
    elif kind == "repeated":
        rows[i] = rows[j]
    elif kind == "short":
        del predictions[i]
    elif form.metric == "unqover":
        predictions[i], predictions[j] = predictions[j], predictions[i]
    else:
        rows.append(rows[j])
    return replace(call, name=kind, predictions=predictions, references=rows)


def _odd_option(form: Form, call: Call, draw: random.Random) -> Call:
    """An option with an odd value."""
    option = draw.choice(["by", "mean_over", "confidence", *form.choices])
    column = draw.choice(sorted(form.rows[0]))
    value = draw.choice([*VALUES, column, [column, [column, "label"]], (column,), "nothing", 95, 0.9, np.float64(0.9)])
    odd = replace(call, name=f"{option}={type(value).__name__}", options={**call.options, option: value})
    if option in ("by", "mean_over"):
        meant = as_columns(value) if option == "by" else as_text(value)
    elif option == "confidence":
        meant = None if value is None else as_score(value)
    elif option == "top_k":
        meant = REFUSED if value is None else as_place(value)
    elif option == "allow_incomplete":
        meant = bool(value) if isinstance(value, (bool, np.bool_)) else REFUSED
    else:
        meant = as_text(value)
    return replace(odd, meaning=None if meant is REFUSED else replace(call, options={**call.options, option: meant}))


MAKERS = (_odd_cell, _odd_cell, _odd_cell, _odd_cell, _odd_whole, _odd_rows, _odd_option)


def calls(form: Form, n: int, seed: str) -> Iterator[Call]:
    """So many odd calls, always the same ones."""
    draw = random.Random(seed)
    for number in range(n):
        options: dict[str, Any] = {"confidence": 0.95} if number % 16 == 0 else {}
        if form.metric == "bbq" and number % 4 == 2:
            options["allow_incomplete"] = True
        call = replace(clean(form, **options), in_batches=draw.random() < 0.3)
        yield draw.choice(MAKERS)(form, call, draw)
