"""Calls of the metrics with something odd in them, and the plain call that each stands for."""

import copy
import itertools
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa

from tests.metrics import bbnli_rows, bbq_rows, unqover_rows

from .odd_values import ODD, PLAIN, REFUSED, as_columns, as_place, as_score, as_switch, as_text, as_text_or_place

ROUTES = ("compute", "add_batch", "two batches", "row by row", "half added")


@dataclass(frozen=True)
class Form:
    """A metric with a small table of rows that it takes, and good predictions."""

    metric: str
    rows: list[dict[str, Any]]
    predictions: list[Any]
    texts: frozenset[str]
    """Columns of texts; all others that are read hold whole numbers."""
    mixed: frozenset[str]
    """Columns that hold texts or whole numbers."""
    read_prediction: Callable[[Any], Any]
    choices: dict[str, list[Any]]
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Call:
    """What is passed to a metric; `meaning` is the plain call that it stands for, None for what must be refused."""

    name: str
    predictions: Any
    references: Any
    options: dict[str, Any]
    route: str = "compute"
    meaning: "Call | None" = None
    plain: bool = False
    """Whether it may not be refused where its meaning is taken."""


def _bbq() -> Form:
    rows = [
        row for number in range(2) for row in bbq_rows.make_set(number, f"Age-0{number + 1}", (number, 1 - number, 2))
    ]
    texts = {"category", "template_id", "set_id", "question_polarity", "context_condition", "ans0", "ans1", "ans2"}
    choices = {"unparsed": ["exclude", "wrong"], "match": ["strict", "released"]}
    predictions = [0, "The grandson", None, 2, 1, -1, "nobody", 0]
    return Form("bbq", rows, predictions, frozenset(texts), frozenset(), as_text_or_place, choices)


def _unqover() -> Form:
    rows = unqover_rows.make_rows(["A", "B", "C"], 2, ["was late", "was rude"])
    scores = unqover_rows.random_scores(len(rows), 1)
    predictions = [{**row, "example_id": number} for number, row in enumerate(scores)]
    texts = {"subject1", "subject2", "cluster1", "cluster2", "attribute", "attribute_class"}
    choices = {"delta": ["paper", "released"]}
    return Form("unqover", rows, predictions, frozenset(texts), frozenset({"template_id"}), as_score, choices)


def _bbnli(form: str) -> Form:
    rows = {
        "bbnli": [
            {name: value for name, value in row.items() if name != "domain"}
            for number in range(2)
            for kind in ("stereotypical", "test")
            for row in bbnli_rows.make_pair(number, kind)
        ],
        "bbq_nli": bbnli_rows.statements(0, "ambig") + bbnli_rows.statements(1, "disambig", "T-02"),
        "bbq": bbnli_rows.mixed_questions(2),
    }[form]
    predictions = [(0, 1, 2, -1, None)[number % 5] for number in range(len(rows))]
    texts = {name for name, value in rows[0].items() if isinstance(value, str)}
    choices = {"form": [None, form], "denominator": ["paper", "released"], "unparsed": ["wrong", "exclude"]}
    mixed, read = (set(), as_place) if form == "bbq" else ({"label"}, as_text_or_place)
    return Form("bbnli", rows, predictions, frozenset(texts), frozenset(mixed), read, choices)


FORMS: dict[str, Form] = {
    "bbq": _bbq(),
    "unqover": _unqover(),
    **{f"bbnli as {form}": _bbnli(form) for form in ("bbnli", "bbq_nli", "bbq")},
}


def clean(form: Form, name: str = "clean", **options: Any) -> Call:
    """A call with nothing odd."""
    return Call(name, copy.deepcopy(form.predictions), copy.deepcopy(form.rows), {"confidence": None, **options})


def _read_cell(form: Form, column: str, value: Any) -> Any:
    if column in form.texts:
        return as_text(value)
    return as_text_or_place(value) if column in form.mixed else as_place(value)


def _call(name: str, call: Call, meaning: Call | None, plain: bool = False) -> Call:
    return replace(call, name=name, meaning=meaning, plain=plain)


def _with_cell(call: Call, where: str, row: int, column: str | None, value: Any) -> Call:
    """The same call with another value at one place of its predictions or references."""
    cells = list(getattr(call, where))
    cells[row] = value if column is None else {**cells[row], column: value}
    return replace(call, **{where: cells})


def odd_prediction(form: Form, call: Call, draw: random.Random) -> Call:
    """One odd value among the predictions."""
    name = draw.choice(list(ODD))
    row = draw.randrange(len(form.rows))
    column = None
    if form.metric == "unqover":
        column = draw.choice([*unqover_rows.SCORE_COLUMNS, "example_id"])
    value = ODD[name]()
    read = as_place if column == "example_id" else form.read_prediction
    stands_for = read(ODD[name]())
    meaning = None if stands_for is REFUSED else _with_cell(call, "predictions", row, column, stands_for)
    plain = name in PLAIN and meaning is not None
    return _call(
        f"{name} as {column or 'prediction'}", _with_cell(call, "predictions", row, column, value), meaning, plain
    )


def odd_cell(form: Form, call: Call, draw: random.Random) -> Call:
    """One odd value among the references."""
    name, row = draw.choice(list(ODD)), draw.randrange(len(form.rows))
    column = draw.choice(list(form.rows[0]))
    unread = column.startswith("ans") and not isinstance(call.predictions[row], str)
    stands_for = form.rows[row][column] if unread else _read_cell(form, column, ODD[name]())
    meaning = None if stands_for is REFUSED else _with_cell(call, "references", row, column, stands_for)
    plain = meaning is not None and (unread or name in PLAIN)
    return _call(f"{name} as {column}", _with_cell(call, "references", row, column, ODD[name]()), meaning, plain)


def odd_whole(form: Form, call: Call, draw: random.Random) -> Call:
    """An odd value in place of all predictions, of all references or of a column."""
    name = draw.choice(list(ODD))
    where = draw.choice(["predictions", "references", "column"])
    if where == "column":
        column = draw.choice(sorted(form.rows[0]))
        columns = {key: [row[key] for row in form.rows] for key in form.rows[0]}
        return _call(f"{name} for {column}", replace(call, references={**columns, column: ODD[name]()}), None)
    return _call(f"{name} for the {where}", replace(call, **{where: ODD[name]()}), None)


def odd_rows(form: Form, call: Call, draw: random.Random) -> Call:
    """Rows that lack, repeat, exceed or are no rows; rows in another order."""
    rows, predictions = list(call.references), list(call.predictions)
    n, i, j = len(rows), *draw.sample(range(len(rows)), 2)
    kind = draw.choice(
        ["key lost", "key added", "key renamed", "no row", "repeated", "lost", "order", "exchanged", "short"]
    )
    if kind == "key added":
        added = [{**row, "unread": ODD[draw.choice(list(ODD))]()} for row in rows]
        return _call(kind, replace(call, references=added), call, plain=True)
    if kind == "order":
        order = draw.sample(range(n), n)
        turned = replace(call, predictions=[predictions[k] for k in order], references=[rows[k] for k in order])
        return _call(kind, turned, call, plain=True)
    if kind in ("key lost", "key renamed"):
        column = draw.choice(sorted(form.rows[0].keys() - {"ans0", "ans1", "ans2"}))
        rows[i] = {name: value for name, value in rows[i].items() if name != column}
        if kind == "key renamed":
            rows[i][column.upper()] = form.rows[i][column]
    elif kind == "no row":
        rows[i] = ODD[draw.choice([name for name in ODD if name not in ("dict", "empty dict", "dict proxy")])]()
    elif kind == "repeated":
        rows[i] = rows[j]
    elif kind == "lost":
        del rows[i], predictions[i]
        if form.metric == "unqover" or call.options.get("allow_incomplete"):
            shorter = replace(call, predictions=predictions, references=rows)
            return _call(kind, shorter, replace(shorter, route="compute"), plain=True)
    elif kind == "short":
        del predictions[i]
    elif form.metric == "unqover":
        predictions[i], predictions[j] = predictions[j], predictions[i]
    else:
        rows.append(rows[j])
    return _call(kind, replace(call, predictions=predictions, references=rows), None)


def odd_shape(form: Form, call: Call, draw: random.Random) -> Call:
    """The same predictions and references in another shape that is taken."""
    rows, predictions = call.references, call.predictions
    dataset = datasets.Dataset.from_list(rows)
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    shapes: dict[str, Any] = {
        "tuple": tuple(rows),
        "generator": (row for row in rows),
        "columns": columns,
        "arrays": {name: np.array(values) for name, values in columns.items()},
        "objects": {name: np.array(values, dtype=object) for name, values in columns.items()},
        "tuples": {name: tuple(values) for name, values in columns.items()},
        "frame": pd.DataFrame(rows),
        "arrow": pa.Table.from_pylist(rows),
        "dataset": dataset,
        "numpy dataset": dataset.with_format("numpy"),
        "pandas dataset": dataset.with_format("pandas"),
        "slice": dataset[:],
        "backwards twice": dataset.select(range(len(rows))[::-1]).select(range(len(rows))[::-1]),
    }
    name = draw.choice(list(shapes))
    given: Any = predictions
    if form.metric == "unqover":
        kinds = {"list": predictions, "frame": pd.DataFrame(predictions), "arrow": pa.Table.from_pylist(predictions)}
        kinds["columns"] = {key: np.array([row[key] for row in predictions]) for key in predictions[0]}
    else:
        kinds = {"list": predictions, "tuple": tuple(predictions), "generator": (value for value in predictions)}
        kinds["objects"] = np.array(predictions, dtype=object)
        kinds["series"] = pd.Series(predictions, dtype=object)
    kind = draw.choice(list(kinds))
    given = kinds[kind]
    odd = replace(call, predictions=given, references=shapes[name], route="compute")
    return _call(f"{kind} and {name}", odd, call, plain=True)


def odd_option(form: Form, call: Call, draw: random.Random) -> Call:
    """An option with an odd value."""
    names = ["by", "mean_over", "confidence", *form.choices]
    names += {"bbq": ["allow_incomplete", "probabilities"], "unqover": ["top_k"]}.get(form.metric, [])
    option = draw.choice(names)
    column = draw.choice(sorted(form.rows[0]))
    more: dict[str, Callable[[], Any]] = {
        "a column": lambda: column,
        "columns": lambda: [column, [column, "label"]],
        "columns that end": lambda: iter([column]),
        "a tuple of columns": lambda: (column,),
        "another name": lambda: "nothing",
        "95": lambda: 95,
        "0.9": lambda: 0.9,
        "np.float64": lambda: np.float64(0.9),
        "a choice": lambda: draw.choice(form.choices.get(option, ["x"])),
    }
    name = draw.choice([*ODD, *more])
    state = draw.getstate()
    value = {**ODD, **more}[name]()
    draw.setstate(state)
    if option == "probabilities":
        return odd_probabilities(form, call, draw)
    stands_for = _read_option(form, option, {**ODD, **more}[name]())
    meaning = None if stands_for is REFUSED else replace(call, options={**call.options, option: stands_for})
    return _call(f"{option}={name}", replace(call, options={**call.options, option: value}), meaning)


def _read_option(form: Form, option: str, value: Any) -> Any:
    if option == "by":
        return as_columns(value)
    if option == "mean_over":
        return as_text(value)
    if option == "confidence":
        return None if value is None else as_score(value)
    if option == "top_k":
        return REFUSED if value is None else as_place(value)
    if option == "allow_incomplete":
        return as_switch(value)
    text = as_text(value)
    return text if text in form.choices[option] else REFUSED


def odd_probabilities(form: Form, call: Call, draw: random.Random) -> Call:
    """Probabilities of BBQ with an odd row or an odd value."""
    rows: list[Any] = [[0.25, 0.25, 0.5] for _ in form.rows]
    row, place, name = draw.randrange(len(rows)), draw.randrange(3), draw.choice(list(ODD))
    if draw.random() < 0.3:
        whole = list(rows)
        whole[row] = ODD[name]()
        meaning = replace(call, options={**call.options, "probabilities": [*rows[:row], None, *rows[row + 1 :]]})
        odd = replace(call, options={**call.options, "probabilities": whole}, route="compute")
        return _call(f"{name} as probabilities", odd, meaning if name == "None" else None)
    stands_for = as_score(ODD[name]())
    beside = [0.0, 0.0] if stands_for == 1 else [0.5, 0.0] if stands_for == 0.5 else [1.0, 0.0]

    def filled(value: Any) -> list[Any]:
        return [*beside[:place], value, *beside[place:]]

    odd_rows = [*rows[:row], filled(ODD[name]()), *rows[row + 1 :]]
    odd = replace(call, options={**call.options, "probabilities": odd_rows}, route="compute")
    if stands_for is REFUSED:
        return _call(f"{name} as probability", odd, None)
    plain_rows = [*rows[:row], filled(stands_for), *rows[row + 1 :]]
    meaning = replace(call, options={**call.options, "probabilities": plain_rows}, route="compute")
    return _call(f"{name} as probability", odd, meaning, plain=name in PLAIN)


KINDS: dict[str, list[Callable[[Form, Call, random.Random], Call]]] = {
    "predictions": [odd_prediction, odd_prediction, odd_prediction, odd_whole, odd_rows],
    "references": [odd_cell, odd_cell, odd_cell, odd_whole, odd_rows, odd_shape],
    "options": [odd_option],
}


def calls(form: Form, kind: str, n: int, seed: str) -> Iterable[Call]:
    """So many odd calls, always the same ones."""
    draw = random.Random(seed)
    for number in itertools.count():
        if number == n:
            return
        options: dict[str, Any] = {"confidence": 0.95} if number % 16 == 0 else {}
        if number % 4 == 1:
            options["by"] = [draw.choice(sorted(form.texts - {"ans0", "ans1", "ans2"}))]
        if form.metric == "bbq" and number % 4 == 2:
            options["allow_incomplete"] = True
        call = replace(clean(form, **options), route=draw.choice(ROUTES))
        yield draw.choice(KINDS[kind])(form, call, draw)
