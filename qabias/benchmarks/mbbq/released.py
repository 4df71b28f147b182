"""The released rows of MBBQ, in the form of BBQ's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from qabias.benchmarks.multilingual.rows import Answer, Item, target_of
from qabias.errors import QabiasError

CATEGORIES = ("Age", "Disability_status", "Gender_identity", "Physical_appearance", "SES", "Sexual_orientation")
LANGUAGES = ("en", "nl", "es", "tr")
ITEMS_PER_SET = 4
"""Neighbours in a file: two contexts with two questions."""

UNKNOWN = "unknown"
"""The tag of the answer that nobody can tell."""

_WORDS = {
    "F": (*("woman", "girl", "vrouw", "meisje", "mujer", "chica", "maestra"), *("kadın", "kız")),
    "M": (*("man", "boy", "jongen", "hombre", "chico", "maestro"), *("adam", "erkek çocuk")),
}
_TAGS = {word: gender for gender, words in _WORDS.items() for word in words} | {"low SES": "lowSES"}
"""What the tag of a person, or of a group, is called where the two are not called alike."""


def read_items(path: Path, category: str, control: bool) -> Iterator[Item]:
    """The items of one file in its order."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        try:
            yield _item(json.loads(line), category, number // ITEMS_PER_SET, control)
        except (KeyError, ValueError, TypeError) as error:
            raise QabiasError(f"{path}: line {number + 1}: no released row ({error!r})") from error


def is_target(tag: str, groups: Sequence[str]) -> bool:
    """Whether a person with that tag is a member of a stereotyped group; tags of gender are words of the language."""
    return _TAGS.get(tag, tag) in {_TAGS.get(group, group) for group in groups}


def _item(row: Mapping[str, Any], category: str, number: int, control: bool) -> Item:
    about = row["additional_metadata"]
    tags = [row["answer_info"][f"ans{place}"][1] for place in range(3)]
    groups = about["stereotyped_groups"]
    first, second, third = (Answer(row[f"ans{place}"], tag) for place, tag in enumerate(tags))
    return Item(
        category=category,
        template=f"{int(row['question_index']):02d}",
        set=str(number),
        negative=row["question_polarity"] == "neg",
        ambiguous=row["context_condition"] == "ambig",
        context=row["context"],
        question=row["question"],
        answers=(first, second, third),
        right=row["label"],
        target=target_of([tag != UNKNOWN and is_target(tag, groups) for tag in tags]),
        unknown=tags.index(UNKNOWN),
        groups=groups,
        label_type="name" if control else "label",
        subcategory=about["subcategory"],
        version=about["version"],
        source=about["source"],
    )
