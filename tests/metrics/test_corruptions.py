"""Every wrong value at every place of what a metric is given: a result, or a line that names metric, row and column."""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import re
from collections import deque
from typing import Any, NamedTuple

import evaluate
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

from . import bbnli_rows, bbq_rows
from .helpers import folder, quiet
from .unqover_rows import make_rows

LONG = "x" * 10_000
LONGEST_MESSAGE = 600


class Raises:
    """Fails wherever it is looked at."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def __index__(self) -> int:
        raise RuntimeError("no index")


class Text(str):
    """A text of a kind of its own."""


class Case(NamedTuple):
    """A metric with rows of one of its forms, and predictions that it takes."""

    name: str
    metric: Any
    predictions: list[Any]
    rows: list[dict[str, Any]]
    options: tuple[str, ...]


ROW = 2
"""The row that is spoilt."""


def deep() -> list[Any]:
    nested: list[Any] = []
    for _ in range(5000):
        nested = [nested]
    return nested


VALUES = (
    *(None, True, False, 0, 1, 2, 3, -1, -2, 7, 2**63, 10**30, 10**5000, -(10**400)),
    *(
        0.0,
        0.5,
        1.0,
        1.5,
        -0.1,
        1e300,
        float("nan"),
        float("inf"),
        1j,
        fractions.Fraction(1, 2),
        decimal.Decimal("0.5"),
    ),
    *("", "no", "0", LONG, "\ud83d", "a\nb\x1b[31m", b"", b"bytes", Text("neg"), np.str_("neg"), np.bytes_(b"x")),
    *([], [1], [None], (), {}, {"a": 1}, set(), {1}, frozenset(), deque([1]), range(3), deep(), [LONG] * 50),
    *(np.True_, np.int64(1), np.uint64(2**64 - 1), np.float32(0.5), np.float64("nan"), np.datetime64("NaT")),
    *(np.array(1), np.array(0.5), np.array(True), np.array([]), np.array([1, 2]), np.zeros((2, 2)), np.zeros((0, 3))),
    *(torch.tensor(1), torch.tensor(0.5), torch.tensor(True), torch.tensor([1, 2]), torch.ones((), requires_grad=True)),
    torch.tensor(0.5, dtype=torch.bfloat16),
    *(pd.NA, pd.NaT, pd.Timestamp(0), pd.Series([1]), pd.DataFrame({"a": [1]}), pd.Index(["a"])),
    *(pa.scalar(1), pa.array([1]), pa.table({"a": [1]}), datetime.date(2022, 1, 1), datetime.timedelta(1)),
    *(object(), Raises(), Raises, dict, int, len, Ellipsis, NotImplemented, memoryview(b"ab"), slice(1)),
)


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


def fault(case: Case, named: str, **arguments: Any) -> str | None:
    """What is wrong with the error of a call; None where it is as it should be, or there is a result."""
    try:
        quiet(case.metric, **arguments)
    except ValueError as error:
        text = str(error)
        good = text.startswith(f"{case.name}: ") and re.search(named, text) and "\n" not in text
        if good and len(text) <= LONGEST_MESSAGE and type(error) is ValueError:
            return None
        return f"{type(error).__name__}: {text[:LONGEST_MESSAGE]}"
    except BaseException as error:  # whatever else there is, the test must say where
        return f"{type(error).__name__}: {str(error)[:LONGEST_MESSAGE]}"
    return None


def faults(case: Case, calls: Any) -> list[tuple[int, str, str]]:
    """All that is wrong, with the place of the value in `VALUES`."""
    found = [(number, at, fault(case, **arguments)) for number, at, arguments in calls]
    return [(number, at, said) for number, at, said in found if said is not None]


def spoilt(rows: list[Any], value: Any) -> list[Any]:
    return [*rows[:ROW], value, *rows[ROW + 1 :]]


def test_as_it_is_there_is_a_result(case):
    assert quiet(case.metric, predictions=case.predictions, references=case.rows)["n"] == len(case.rows)


def test_a_value_of_a_row_that_is_something_else(case):
    columns = list(case.rows[0])
    calls = [
        (
            number,
            column,
            {
                "named": r"references row \d+",
                "predictions": case.predictions,
                "references": spoilt(case.rows, {**case.rows[ROW], column: value}),
                **({"match": "released"} if column.startswith("ans") and "match" in case.options else {}),
            },
        )
        for column in columns
        for number, value in enumerate(VALUES)
    ]
    assert len(calls) > 400
    assert faults(case, calls) == []


def test_a_prediction_that_is_something_else(case):
    is_scores = isinstance(case.predictions[0], dict)
    calls = [
        (
            number,
            "prediction",
            {
                "named": r"predictions row 2: .*s1_21" if is_scores else r"predictions row 2: ",
                "references": case.rows,
                "predictions": spoilt(
                    case.predictions, {**case.predictions[ROW], "s1_21": value} if is_scores else value
                ),
            },
        )
        for number, value in enumerate(VALUES)
    ]
    assert faults(case, calls) == []


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
            (wrong, rf"^\w+: (.* )?{option}\b|column .* is missing|is not a single value|equally often|neither a col"),
            ([wrong], rf"^\w+: (.* )?{option}\b|column .* is missing|is not a single value"),
        )
    ]
    assert faults(case, calls) == []


# Values that were once taken for something else


BOOLEANS = (True, False, np.True_, np.False_, torch.tensor(True), np.array(False))


@pytest.mark.parametrize("value", BOOLEANS, ids=repr)
def test_a_boolean_is_no_number(value):
    name, predictions, rows, _ = cases()["unqover"]
    unqover = evaluate.load(str(folder(name)))
    for shape in (list, lambda rows: {name: [row[name] for row in rows] for name in _SCORES}):
        with pytest.raises(ValueError, match=r"^unqover: predictions row 2: s1_21 .* is not a score from 0 to 1"):
            unqover.compute(
                predictions=shape(spoilt(predictions, {**predictions[ROW], "s1_21": value})), references=rows
            )
    for form in ("bbq", "bbnli", "bbq_nli", "bbq_qa"):
        name, predictions, rows, _ = cases()[form]
        metric = evaluate.load(str(folder(name)))
        with pytest.raises(ValueError, match=rf"^{name}: predictions row 2: .* is not an answer"):
            metric.compute(predictions=spoilt(predictions, value), references=rows)
        with pytest.raises(ValueError, match=rf"^{name}: references row 2: label .* is not "):
            metric.compute(predictions=predictions, references=spoilt(rows, {**rows[ROW], "label": value}))
    name, predictions, rows, _ = cases()["bbq"]
    sure = [[1.0, 0.0, 0.0]] * len(rows)
    with pytest.raises(ValueError, match=r"^bbq: probabilities row 2: .* are not three numbers"):
        quiet(
            evaluate.load(str(folder(name))),
            predictions=predictions,
            references=rows,
            probabilities=spoilt(sure, [value, 0.0, 0.0]),
        )


def test_numbers_without_dimensions_are_numbers():
    name, predictions, rows, _ = cases()["unqover"]
    unqover = evaluate.load(str(folder(name)))
    expected = unqover.compute(predictions=predictions, references=rows)
    for value in (np.float32(0.5), np.array(0.5), torch.tensor(0.5), torch.tensor(0.5, dtype=torch.bfloat16)):
        given = spoilt(predictions, {**predictions[ROW], "s1_21": value})
        assert repr(unqover.compute(predictions=given, references=rows)) == repr(expected)


def test_numbers_of_rows_in_the_wrong_order_beside_a_batch_without_are_refused():
    name, predictions, rows, _ = cases()["unqover"]
    unqover = evaluate.load(str(folder(name)))
    numbered = [{**scores, "example_id": row["example_id"]} for scores, row in zip(predictions, rows, strict=True)]
    for first, second in ((numbered[1::-1], predictions[2:]), (predictions[:2], numbered[:1:-1])):
        unqover.add_batch(predictions=first, references=rows[:2])
        unqover.add_batch(predictions=second, references=rows[2:])
        message = (
            r"^unqover: predictions row \d: column 'example_id' is missing; .* example_id with all rows or with none"
        )
        with pytest.raises(ValueError, match=message):
            unqover.compute()
        unqover = evaluate.load(str(folder(name)))


@pytest.mark.parametrize("kind", [np.str_, Text])
def test_texts_of_other_kinds_are_texts(case, kind):
    rows = [
        {name: kind(value) if isinstance(value, str) else value for name, value in row.items()} for row in case.rows
    ]
    expected = quiet(case.metric, predictions=case.predictions, references=case.rows)
    found = quiet(case.metric, predictions=case.predictions, references=rows)
    assert repr(found) == repr(expected)
    half = quiet(case.metric, predictions=case.predictions, references=[*rows[:3], *case.rows[3:]])
    assert repr(half) == repr(expected)


@pytest.mark.parametrize("by", [5, 0.5, {"template_id": 1}, {"template_id"}, b"", b"template_id", np.array(1), pd.NA])
def test_a_breakdown_by_something_else_is_refused(case, by):
    with pytest.raises(ValueError, match=rf"^{case.name}: by .* is neither a column name nor a list"):
        case.metric.compute(predictions=case.predictions, references=case.rows, by=by)


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


@pytest.mark.parametrize("given", [{0, 1}, torch.tensor(0.5), np.array(1)], ids=repr)
def test_what_has_no_order_or_no_items_is_no_list(case, given):
    kind = type(given).__name__
    with pytest.raises(ValueError, match=rf"^{case.name}: predictions are a {kind}; pass a"):
        case.metric.compute(predictions=given, references=case.rows)
    with pytest.raises(ValueError, match=rf"^{case.name}: references are a {kind}; pass a list of dicts"):
        case.metric.compute(predictions=case.predictions, references=given)
    columns = {name: [row[name] for row in case.rows] for name in case.rows[0]}
    with pytest.raises(ValueError, match=rf"^{case.name}: references column 'label' is a {kind}; pass one value per"):
        case.metric.compute(predictions=case.predictions, references={**columns, "label": given})


def test_a_long_value_is_cut(case):
    name = "label" if "label" in case.rows[0] else "subject1"
    rows = spoilt(case.rows, {**case.rows[ROW], name: [LONG]})
    with pytest.raises(ValueError, match=r"^.{1,300}$"):
        case.metric.compute(predictions=case.predictions, references=rows)


class Word(str, enum.Enum):
    """A text, as a program holds it that names it once."""

    A = "a"


def of_unqover():
    """The metric, rows and answers that differ."""
    rows = make_rows("abc", 2, ("X", "Y"))
    rng = np.random.default_rng(0)
    return (
        evaluate.load(str(folder("unqover"))),
        rows,
        [dict.fromkeys(_SCORES, value) for value in rng.random(len(rows))],
    )


@pytest.mark.parametrize("make", [float, np.int8, np.float32, torch.tensor, np.array], ids=lambda make: make.__name__)
def test_ids_are_the_same_in_every_type(make):
    metric, rows, predictions = of_unqover()
    expected = quiet(metric, predictions=predictions, references=rows)
    mixed = [{**row, "template_id": make(row["template_id"])} if number % 3 else row for number, row in enumerate(rows)]
    assert repr(quiet(metric, predictions=predictions, references=mixed)) == repr(expected)
    doubled = [rows[0], {**rows[0], "template_id": make(rows[0]["template_id"])}]
    with pytest.raises(ValueError, match=r"^unqover: .* repeat row 0"):
        metric.compute(predictions=predictions[:2], references=doubled)


def test_a_member_of_an_enumeration_of_texts_is_its_text():
    metric, rows, predictions = of_unqover()
    named = [{**row, "subject1": Word(row["subject1"]) if row["subject1"] == "a" else row["subject1"]} for row in rows]
    expected = quiet(metric, predictions=predictions, references=rows, by=["subject1"])
    assert repr(quiet(metric, predictions=predictions, references=named, by=["subject1"])) == repr(expected)
