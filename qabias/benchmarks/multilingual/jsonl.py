"""Questions in BBQ's JSONL, as several sets publish them: one example a line, those of a set one after another.

`read_items` makes items of them, of which `rows.rows_of` makes rows. What differs between sets is who is a member of
the stereotyped group: a function of a person's two words in `answer_info`, text and tag, and of the groups.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from qabias.benchmarks.multilingual.rows import PLACES, UNDEFINED, Answer, Item, target_of
from qabias.errors import QabiasError

IsTarget = Callable[[str, str, Sequence[str]], bool]
"""Whether a person is a member of the stereotyped group: text and tag of the person, and the groups."""

IsUnknown = Callable[[str, str], bool]
"""Whether an answer says that nobody can tell: its text and tag in `answer_info`."""

_Infos = list[tuple[str, str]]

_POLARITIES = {"neg": True, "nonneg": False}
_CONDITIONS = {"ambig": True, "disambig": False}


def in_groups(text: str, tag: str, groups: Sequence[str]) -> bool:
    """Whether a person's text or tag is one of the groups; of a tag in parts ("F-Black") the last one counts too."""
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
            infos = _infos(row)
            item = _item(row, infos, category, is_target, is_unknown)
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise QabiasError(f"{path}: line {line_number}: not in BBQ's form ({error!r})") from error
        same, kind = (item.template, item.version, infos), (item.negative, item.ambiguous)
        if same != last or kind in kinds:
            last, kinds, number = same, set(), number + 1
        kinds.add(kind)
        yield item._replace(set=str(number))


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that are not empty, with their numbers."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise QabiasError(f"{path}: cannot be read: {error}") from error
    if not text.strip():
        raise QabiasError(f"{path}: holds no examples")
    # Not `splitlines`, which also ends a line at characters that JSON strings may hold.
    yield from ((number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip())


def _infos(row: Mapping[str, Any]) -> _Infos:
    """Text and tag of each answer."""
    return [(_word(text), _word(tag)) for text, tag in (row["answer_info"][f"ans{place}"] for place in PLACES)]


def _item(row: Mapping[str, Any], infos: _Infos, category: str, is_target: IsTarget, is_unknown: IsUnknown) -> Item:
    metadata = row["additional_metadata"]
    groups = [word for word in map(_word, metadata["stereotyped_groups"]) if word]
    unknown = target_of([is_unknown(*info) for info in infos])
    if unknown == UNDEFINED:
        raise ValueError("not exactly one answer says that nobody can tell")
    right = int(row["label"])
    if right not in PLACES:
        raise ValueError(f"the label is {right}")
    first, second, third = (
        Answer(row[f"ans{place}"], "unknown" if place == unknown else tag) for place, (_, tag) in enumerate(infos)
    )
    return Item(
        category=category,
        template=str(row["question_index"]).zfill(2),
        set="",
        negative=_POLARITIES[row["question_polarity"]],
        ambiguous=_CONDITIONS[row["context_condition"]],
        context=row["context"],
        question=row["question"],
        answers=(first, second, third),
        right=right,
        target=target_of([place != unknown and is_target(*info, groups) for place, info in enumerate(infos)]),
        unknown=unknown,
        groups=groups,
        subcategory=_word(metadata.get("subcategory")),
        version=_word(metadata.get("version")),
        source=_word(metadata.get("source")),
    )


def _word(value: object) -> str:
    """A tag or a field of the metadata: "" where there is none (null, NaN or "None")."""
    word = value.strip() if isinstance(value, str) else ""
    return "" if word == "None" else word
