"""Rows of BBQ's form, made of what another set publishes: roles of answers, ids, order of answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from qabias.building.templating import StableRandom
from qabias.share.bbq_dataset.builder import SCHEMA as SCHEMA

Row = dict[str, Any]

PLACES = range(3)
UNDEFINED = -1


class Answer(NamedTuple):
    """An answer."""

    text: str
    group: str


class Item(NamedTuple):
    """A question as a set publishes it."""

    category: str
    template: str
    set: str
    negative: bool
    ambiguous: bool
    context: str
    question: str
    answers: tuple[Answer, Answer, Answer]
    right: int
    target: int
    unknown: int
    stereotype: str = ""
    groups: Sequence[str] = ()
    label_type: str = "label"
    comparison: str = ""
    subcategory: str = ""
    version: str = ""
    source: str = ""


def rows_of(
    items: Iterable[Item], shuffle: StableRandom | None = None, wording: Callable[[], str] | None = None
) -> Iterator[Row]:
    """The rows of the items of a category, in their order."""
    numbers: dict[str, int] = {}
    set_id, last, order = "", None, list(PLACES)
    said: str | None = None
    for example_id, item in enumerate(items):
        template_id = f"{item.category}-{item.template}"
        if (template_id, item.set) != last:
            last = (template_id, item.set)
            number = numbers.get(template_id, 0)
            numbers[template_id] = number + 1
            set_id = f"{template_id}-{number:03d}"
            order = shuffle.sample(list(PLACES), len(PLACES)) if shuffle is not None else order
            said = wording() if wording is not None else None
        worded = item if said is None else _worded(item, said)
        yield {"example_id": example_id, "template_id": template_id, "set_id": set_id, **_columns(worded, order)}


def table_of(rows: Iterable[Row]) -> pa.Table:
    """Rows as a table with the columns of BBQ."""
    return pa.Table.from_pylist(list(rows), schema=SCHEMA)


def target_of(is_target: Sequence[bool]) -> int:
    """Number of the one answer that names a target; `UNDEFINED` where none, or more than one, does."""
    found = [place for place, is_one in enumerate(is_target) if is_one]
    return found[0] if len(found) == 1 else UNDEFINED


def _worded(item: Item, said: str) -> Item:
    """The item with other words in the answer that nobody can tell."""
    first, second, third = (
        answer._replace(text=said) if place == item.unknown else answer for place, answer in enumerate(item.answers)
    )
    return item._replace(answers=(first, second, third))


def _columns(item: Item, order: Sequence[int]) -> Row:
    """The columns of an item whose answers stand in an order: for every place the number of the answer there."""
    place_of = {number: place for place, number in enumerate(order)} | {UNDEFINED: UNDEFINED}
    other = UNDEFINED if item.target == UNDEFINED else sum(PLACES) - item.target - item.unknown
    shown = [item.answers[number] for number in order]
    return {
        "question_index": item.template,
        "question_polarity": "neg" if item.negative else "nonneg",
        "context_condition": "ambig" if item.ambiguous else "disambig",
        "category": item.category,
        "answer_info": {f"ans{place}": [answer.text, answer.group] for place, answer in enumerate(shown)},
        "additional_metadata": {
            "subcategory": item.subcategory,
            "stereotyped_groups": list(item.groups),
            "version": item.version,
            "source": item.source,
        },
        "context": item.context,
        "question": item.question,
        **{f"ans{place}": answer.text for place, answer in enumerate(shown)},
        "label": place_of[item.right],
        "target_loc": place_of[item.target],
        "biased_loc": place_of[item.target if item.negative else other],
        "unknown_loc": place_of[item.unknown],
        "label_type": item.label_type,
        "comparison": item.comparison,
        "social_value": item.stereotype,
    }
