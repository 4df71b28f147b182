"""Every wrong value at every place of what a metric is given: a result, or a line that names metric, row and column."""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import operator
import re
from collections import OrderedDict, deque
from types import MappingProxyType
from typing import Any, NamedTuple

import evaluate
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

from . import bbnli_rows, bbq_rows
from .helpers import folder, quiet, same
from .unqover_rows import make_rows

LONG = "x" * 10_000
LONGEST_MESSAGE = 600


class Unlike(Exception):
    """Raised by an object of the tests."""


def raises(*names: str) -> Any:
    """An object whose methods of these names raise, made anew."""

    def fail(*_: Any) -> Any:
        raise Unlike

    return type("Raises", (), {"__hash__": None, **{f"__{name}__": fail for name in names}})()


class Text(str):
    """A text of a kind of its own."""


class Number(int):
    """A number of a kind of its own."""


class Word(str, enum.Enum):
    """A text, as a program holds it that names it once."""

    A = "a"


class HasIndex:
    def __index__(self) -> int:
        return 1


class Case(NamedTuple):
    """A metric with rows of one of its forms, and predictions that it takes."""

    name: str
    metric: Any
    predictions: list[Any]
    rows: list[dict[str, Any]]
    options: tuple[str, ...]


ROW = 2
"""The row that is spoilt."""


def nested(levels: int) -> list[Any]:
    """A list in a list, so often; with 0 levels a list that holds itself."""
    values: list[Any] = []
    if not levels:
        values.append(values)
    for _ in range(levels):
        values = [values]
    return values


PLAIN = (None, 0, 1, 2, -1, np.int8(1), np.uint64(2), np.int64(0), 0.0, 1.0, -0.0, 0.5, 1.0000005, np.float32(0.5))
PLAIN += (np.str_("Age"), Text("Age"), "neg", "nonneg", "ambig", "disambig", "pro", "target", "entailment")
"""Values that a metric takes wherever it takes what they stand for."""

ODD = (True, False, np.True_, torch.tensor(True), np.array(True), -2, 3, 7, 2**31, 2**63, -(2**63), 10**5000, Number(1))
ODD += (np.array(1), np.array(0.5), torch.tensor(1), torch.tensor(0.5), torch.tensor(0.5, requires_grad=True), -0.1)
ODD += (torch.tensor(0.5, dtype=torch.bfloat16), HasIndex(), 1.1, 1e-320, 1e300, float("nan"), float("inf"), -np.inf)
ODD += (np.float16(1.0), np.float64("nan"), 1j, decimal.Decimal("0.5"), fractions.Fraction(1, 2), pd.NA, pd.NaT)
ODD += (pd.Timestamp(0), np.datetime64("NaT"), np.timedelta64(1, "s"), datetime.date(2022, 1, 1), pa.scalar(1))
ODD += (pa.scalar(None, pa.int64()), "", " ", "0", "None", "nan", "ENTAILMENT", "unparsed", "a\0b", "a\nb\x1b[31m")
ODD += ("\ud83d", "\u202ea", LONG, "word " * 2_000, Word.A, np.bytes_(b"x"), b"", b"1", bytearray(b"1"))
ODD += (memoryview(b"1"), [], [1], [None], [[1], [2, 3]], nested(0), nested(5000), [LONG] * 50, (1,), (), {1}, set())
ODD += ({"a": 1}, {}, MappingProxyType({"category": "Age"}), OrderedDict(category="Age"), frozenset(), deque([1]))
ODD += (range(3), len, int, dict, np.array([1]), np.array([0.25, 0.75]), np.array([]), np.zeros((2, 2)))
ODD += (np.array([None], dtype=object), pd.Series([1]), pd.DataFrame({"a": [1]}), pd.Index(["a"]), torch.tensor([1]))
ODD += (pa.array([1]), pa.table({"a": [1]}), object(), ..., NotImplemented, slice(1), ValueError("x"), raises("index"))
ODD += (raises("repr"), raises("repr", "index"), raises("eq"), raises("len", "iter"))
VALUES = (*PLAIN, *ODD)

# What a value stands for: the plain Python value that gives the same score, or REFUSED

REFUSED = object()


def scalar(value: Any) -> Any:
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
    value = scalar(value)
    if value is None or isinstance(value, (bool, np.bool_)):
        return None if value is None else REFUSED
    if isinstance(value, (float, np.floating)):
        return int(value) if np.isfinite(value) and value == int(value) else REFUSED
    try:
        return operator.index(value)
    except (TypeError, Unlike):
        return REFUSED


def as_text(value: Any) -> Any:
    """The text that a value is; None stays None."""
    value = scalar(value)
    return value if value is None else str.__str__(value) if isinstance(value, str) else REFUSED


def as_text_or_place(value: Any) -> Any:
    text = as_text(value)
    return as_place(value) if text is REFUSED else text


def as_score(value: Any) -> Any:
    value = scalar(value)
    if isinstance(value, (bool, np.bool_, str, bytes, complex, decimal.Decimal)) or value is None:
        return REFUSED
    try:
        return float(value)
    except OverflowError:
        return float("inf")
    except (TypeError, ValueError, Unlike):
        return REFUSED


def meaning(case: Case, column: str | None, value: Any) -> Any:
    """What a value means in a column of the rows, or as a prediction."""
    if column is None:
        return {"unqover": as_score, "bbq": as_text_or_place}.get(case.name, _answer(case))(value)
    if column == "domain" or column.startswith("ans"):
        return case.rows[ROW][column]  # nobody reads it
    if (column == "template_id" and case.name == "unqover") or (
        column == "label" and _answer(case) is as_text_or_place
    ):
        return as_text_or_place(value)
    return as_text(value) if isinstance(case.rows[0][column], str) else as_place(value)


def _answer(case: Case) -> Any:
    """Names of labels are answers where a text follows or does not."""
    return as_text_or_place if case.name == "bbnli" and "biased_loc" not in case.rows[0] else as_place


def cases() -> dict[str, Any]:
    bbq = [{**row, "answer_info": {f"ans{k}": ["Ada Bell", "x"] for k in range(3)}} for row in bbq_rows.table()[:8]]
    shared = ("by", "mean_over", "confidence")
    return {
        "bbq": ("bbq", [0, 1] * 4, bbq, ("unparsed", "match", "allow_incomplete", *shared)),
        "unqover": (
            "unqover",
            [dict.fromkeys(_SCORES, 0.5) for _ in range(6)],
            make_rows("abc", 2, ("X",)),
            ("delta", "top_k", *shared),
        ),
        **{
            form: ("bbnli", [0, 1] * (len(rows) // 2), rows, ("form", "denominator", "unparsed", *shared))
            for form, rows in (
                ("bbnli", bbnli_rows.table()[:24]),
                ("bbq_nli", bbnli_rows.mixed_statements(1)),
                ("bbq_qa", bbnli_rows.mixed_questions(2)),
            )
        },
    }


_SCORES = [f"s{k}_{order}{question}" for k in (1, 2) for order in ("12", "21") for question in ("", "_neg")]


@pytest.fixture(scope="module", params=["bbq", "unqover", "bbnli", "bbq_nli", "bbq_qa"])
def case(request) -> Case:
    name, predictions, rows, options = cases()[request.param]
    return Case(name, evaluate.load(str(folder(name))), predictions, rows, options)


OWN = "by the object itself"


def ended(case: Case, named: str = "", **arguments: Any) -> tuple[str, Any]:
    """How a call ends: with a result, a problem and its fix in one line each, or a fault."""
    try:
        return "result", quiet(case.metric, **arguments)
    except ValueError as error:
        text = str(error)
        good = (
            text.startswith(f"{case.name}: ")
            and re.search(named, text)
            and re.fullmatch(r"[^\n]+\n  fix: [^\n]+", text)
        )
        if good and len(text) <= LONGEST_MESSAGE and type(error) is ValueError:
            return "refused", text
        return "fault", f"{type(error).__name__}: {text[:LONGEST_MESSAGE]}"
    except Unlike:
        return "refused", OWN
    except BaseException as error:  # whatever else there is, the test must say where
        return "fault", f"{type(error).__name__}: {str(error)[:LONGEST_MESSAGE]}"


def faults(case: Case, calls: Any) -> list[tuple[int, str, str]]:
    """All that is wrong, with the place of the value in `VALUES`."""
    ends = [(number, at, *ended(case, **arguments)) for number, at, arguments in calls]
    return [(number, at, said) for number, at, how, said in ends if how == "fault"]


def odd_cells(case: Case, column: str | None, named: str, make: Any, **options: Any) -> list[Any]:
    """What is wrong with every value at one place: refused by name, or scored as what it stands for."""
    wrong = []
    for number, value in enumerate(VALUES):
        how, result = ended(case, named, **make(value), confidence=None, **options)
        meant = meaning(case, column, value)
        if how == "fault":
            wrong.append((number, column, result))
        elif meant is REFUSED:
            is_named = how == "refused" and (not column or f"row {ROW}: {column}" in result or result in OWN)
            wrong += [] if is_named else [(number, column, f"{how}, though it stands for nothing: {result}"[:200])]
        elif how == "result" or number < len(PLAIN):
            expected, plain = ended(case, **make(meant), confidence=None, **options)
            if how != expected or (how == "result" and not same(result, plain)):
                wrong.append((number, column, f"{how}, but what it stands for: {expected} {str(plain)[:100]}"))
    return wrong


def spoilt(rows: list[Any], value: Any) -> list[Any]:
    return [*rows[:ROW], value, *rows[ROW + 1 :]]


def test_as_it_is_there_is_a_result(case):
    assert quiet(case.metric, predictions=case.predictions, references=case.rows)["n"] == len(case.rows)


@pytest.mark.slow
def test_a_value_of_a_row_that_is_something_else(case):
    for column in case.rows[0]:

        def make(value: Any, column: str = column) -> dict[str, Any]:
            rows = spoilt(case.rows, {**case.rows[ROW], column: value})
            return {"predictions": case.predictions, "references": rows}

        options = {"match": "released"} if column.startswith("ans") and "match" in case.options else {}
        assert odd_cells(case, column, r"references row \d+", make, **options) == []


def test_a_prediction_that_is_something_else(case):
    is_scores = isinstance(case.predictions[0], dict)

    def make(value: Any) -> dict[str, Any]:
        wrong = {**case.predictions[ROW], "s1_21": value} if is_scores else value
        return {"predictions": spoilt(case.predictions, wrong), "references": case.rows}

    assert odd_cells(case, None, "predictions row 2: " + ".*s1_21" * is_scores, make) == []


@pytest.mark.parametrize("argument", ["predictions", "references"])
def test_rows_that_are_something_else(case, argument):
    given = {"predictions": case.predictions, "references": case.rows}
    calls = [
        (number, at, {"named": "predictions|references", **given, argument: value})
        for number, wrong in enumerate(VALUES)
        for at, value in (
            ("whole", wrong),
            ("row", spoilt(given[argument], wrong)),
            ("column", {**{name: [row[name] for row in case.rows] for name in case.rows[0]}, "label": wrong}),
            ("all", [wrong] * len(case.rows)),
        )
    ]
    assert faults(case, calls) == []


def test_an_option_that_is_something_else(case):
    calls = [
        (number, option, {"named": named, "predictions": case.predictions, "references": case.rows, option: value})
        for option in case.options
        for number, wrong in enumerate(VALUES)
        for value, named in (
            (wrong, rf"^\w+: (.* )?{option}\b|column .* is unknown|is not a single value|equally often|neither a col"),
            ([wrong], rf"^\w+: (.* )?{option}\b|column .* is unknown|is not a single value"),
        )
    ]
    assert faults(case, calls) == []


# Values that were once taken for something else


@pytest.mark.parametrize("value", [True, np.False_, torch.tensor(True), np.array(False)], ids=repr)
def test_a_boolean_is_no_score_in_a_column(value):
    name, predictions, rows, _ = cases()["unqover"]
    columns = {
        name: [row[name] for row in spoilt(predictions, {**predictions[ROW], "s1_21": value})] for name in _SCORES
    }
    with pytest.raises(ValueError, match=r"^unqover: predictions row 2: s1_21"):
        evaluate.load(str(folder(name))).compute(predictions=columns, references=rows)


def test_numbers_of_rows_in_the_wrong_order_beside_a_batch_without_are_refused():
    name, predictions, rows, _ = cases()["unqover"]
    unqover = evaluate.load(str(folder(name)))
    numbered = [{**scores, "example_id": row["example_id"]} for scores, row in zip(predictions, rows, strict=True)]
    for first, second in ((numbered[1::-1], predictions[2:]), (predictions[:2], numbered[:1:-1])):
        unqover.add_batch(predictions=first, references=rows[:2])
        unqover.add_batch(predictions=second, references=rows[2:])
        message = r"^unqover: predictions row \d: column 'example_id' is missing\n .*and example_id with all rows"
        with pytest.raises(ValueError, match=message):
            unqover.compute()
        unqover = evaluate.load(str(folder(name)))


def test_a_breakdown_by_names_that_can_be_read_but_once(case):
    column = next(iter(case.rows[0]))
    given = {"predictions": case.predictions, "references": case.rows}
    expected = quiet(case.metric, **given, by=[column])
    assert list(expected["by"]) == [column]
    assert repr(quiet(case.metric, **given, by=iter([column]))) == repr(expected)
    assert repr(quiet(case.metric, **given, by=np.array([column]))) == repr(expected)


def test_numbers_of_other_kinds_as_options_are_what_they_are(case):
    given = {"predictions": case.predictions, "references": case.rows}
    expected = quiet(case.metric, **given, confidence=0.5)
    for confidence in (np.float64(0.5), np.float32(0.5), fractions.Fraction(1, 2)):
        assert repr(quiet(case.metric, **given, confidence=confidence)) == repr(expected)
