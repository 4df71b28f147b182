"""Rows of BBQ's form from another set's examples: roles of answers, ids, answer order."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from qabias.building.templating import StableRandom
from qabias.errors import QabiasError
from qabias.share.bbq_dataset.origin import SCHEMA as SCHEMA

Row = dict[str, Any]

PLACES = range(3)
UNDEFINED = -1

IsTarget = Callable[[str, str, Sequence[str]], bool]
"""Whether a person is in the stereotyped group: text and tag of the person, and the groups."""

IsUnknown = Callable[[str, str], bool]
"""Whether an answer is UNKNOWN: its text and tag in `answer_info`."""

_Infos = list[tuple[str, str]]

_POLARITIES = {"neg": True, "nonneg": False}
_CONDITIONS = {"ambig": True, "disambig": False}


class Answer(NamedTuple):
    """An answer."""

    text: str
    group: str


class Item(NamedTuple):
    """A published question."""

    category: str
    template: str
    set: str
    negative: bool
    ambiguous: bool
    context: str
    question: str
    answers: Sequence[Answer]
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
    numbers: Counter[str] = Counter()
    set_id, last, order = "", None, list(PLACES)
    unknown_text: str | None = None
    biased: dict[tuple[bool, bool], str] = {}
    for example_id, item in enumerate(items):
        template_id = f"{item.category}-{item.template}"
        if (template_id, item.set) != last:
            last = (template_id, item.set)
            set_id = f"{template_id}-{numbers[template_id]:03d}"
            numbers[template_id] += 1
            order = shuffle.sample(list(PLACES), len(PLACES)) if shuffle is not None else order
            unknown_text = wording() if wording is not None else None
            biased = {}
        if item.target != UNDEFINED:
            place = item.target if item.negative else sum(PLACES) - item.target - item.unknown
            biased[item.negative, item.ambiguous] = name = item.answers[place].text
            if biased.get((not item.negative, item.ambiguous)) == name:
                problem = f"{item.category}, example {example_id}: {name!r} is the biased answer in both polarities."
                raise QabiasError(problem, "Exchange the answers and their tags together.")
        answers = list(item.answers)
        if unknown_text is not None:
            answers[item.unknown] = answers[item.unknown]._replace(text=unknown_text)
        columns = _columns(item, [answers[number] for number in order], order)
        yield {"example_id": example_id, "template_id": template_id, "set_id": set_id, **columns}


def table_of(rows: Iterable[Row]) -> pa.Table:
    """Rows as a table with the columns of BBQ."""
    return pa.Table.from_pylist(list(rows), schema=SCHEMA)


def target_of(is_target: Sequence[bool]) -> int:
    """Number of the only answer that names a target, or `UNDEFINED`."""
    places = [place for place, is_one in enumerate(is_target) if is_one]
    return places[0] if len(places) == 1 else UNDEFINED


def _columns(item: Item, shown: Sequence[Answer], order: Sequence[int]) -> Row:
    """The columns of an item with the answers shown in an order."""
    place_of = {number: place for place, number in enumerate(order)} | {UNDEFINED: UNDEFINED}
    other = UNDEFINED if item.target == UNDEFINED else sum(PLACES) - item.target - item.unknown
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
        **{f"ans{place}": answer.text for place, answer in enumerate(shown)},
        "label": place_of[item.right],
        "target_loc": place_of[item.target],
        "biased_loc": place_of[item.target if item.negative else other],
        "unknown_loc": place_of[item.unknown],
        "social_value": item.stereotype,
        **{name: getattr(item, name) for name in ("context", "question", "label_type", "comparison")},
    }


def in_groups(text: str, tag: str, groups: Sequence[str]) -> bool:
    """Whether a person's text, tag or last part of the tag ("F-Black") is one of the groups."""
    return not {text, tag, tag.rsplit("-", 1)[-1]}.isdisjoint(groups)


def says_unknown(text: str, tag: str) -> bool:
    """Whether the tag of an answer is BBQ's for UNKNOWN."""
    return tag == "unknown"


def read_items(
    path: Path, category: str, is_target: IsTarget = in_groups, is_unknown: IsUnknown = says_unknown
) -> Iterator[Item]:
    """The items of one file, in its order."""
    last: tuple[str, str, _Infos] | None = None
    kinds: set[tuple[bool, bool]] = set()
    number = 0
    for line_number, line in _lines(path):
        try:
            row = json.loads(line)
            tagged = [row["answer_info"][f"ans{place}"] for place in PLACES]
            infos = [(_word(text), _word(tag)) for text, tag in tagged]
            item = _item(row, infos, category, is_target, is_unknown)
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            why = error if type(error) is ValueError else repr(error)
            raise QabiasError(f"{path}: line {line_number}: not in BBQ's form ({why}).", "Correct the line.") from error
        same, kind = (item.template, item.version, infos), (item.negative, item.ambiguous)
        if same != last or kind in kinds:
            last, kinds, number = same, set(), number + 1
        kinds.add(kind)
        yield item._replace(set=str(number))


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines that are not empty."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise QabiasError(f"{path}: cannot be read: {error}.", "Use a readable UTF-8 file.") from error
    if not text.strip():
        raise QabiasError(f"{path}: no examples.", "Download the file again.")
    # `splitlines` would also split inside JSON strings.
    yield from ((number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip())


def _item(row: Mapping[str, Any], infos: _Infos, category: str, is_target: IsTarget, is_unknown: IsUnknown) -> Item:
    metadata = row["additional_metadata"]
    groups = [word for word in map(_word, metadata["stereotyped_groups"]) if word]
    unknown = target_of([is_unknown(*info) for info in infos])
    if unknown == UNDEFINED:
        raise ValueError("not exactly one UNKNOWN answer")
    right = int(row["label"])
    if right not in PLACES:
        raise ValueError(f"the label is {right}")
    answers = [Answer(row[f"ans{at}"], "unknown" if at == unknown else tag) for at, (_, tag) in enumerate(infos)]
    for place, (word, _) in enumerate(infos):
        places = [at for at in PLACES if re.search(rf"(?i)(?<!\w){re.escape(word)}(?!\w)", row[f"ans{at}"])]
        if word and places and not {place, unknown} & {*places}:
            raise ValueError(f"ans{place} is tagged {word!r}, which ans{places[0]} names")
    return Item(
        category=category,
        template=str(row["question_index"]).zfill(2),
        set="",
        negative=_POLARITIES[row["question_polarity"]],
        ambiguous=_CONDITIONS[row["context_condition"]],
        context=row["context"],
        question=row["question"],
        answers=answers,
        right=right,
        target=target_of([place != unknown and is_target(*info, groups) for place, info in enumerate(infos)]),
        unknown=unknown,
        groups=groups,
        subcategory=_word(metadata.get("subcategory")),
        version=_word(metadata.get("version")),
        source=_word(metadata.get("source")),
    )


def _word(value: object) -> str:
    """A tag or metadata field; "" for null, NaN or "None"."""
    word = value.strip() if isinstance(value, str) else ""
    return "" if word == "None" else word
