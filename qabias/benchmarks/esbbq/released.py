"""The released rows of EsBBQ and CaBBQ."""

from __future__ import annotations

import ast
import csv
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from qabias.benchmarks.multilingual.rows import Answer, Item, target_of
from qabias.errors import QabiasError

CATEGORIES = (
    *("Age", "DisabilityStatus", "Gender", "LGBTQIA", "Nationality", "PhysicalAppearance", "RaceEthnicity"),
    *("Religion", "SES", "SpanishRegion"),
)
_PEOPLE = ("version", "flipped", "ans0", "ans1", "stated_gender_info")
UNKNOWN = "unknown"
"""What the released rows have in place of the wording of UNKNOWN, always as the last answer."""


def read_items(path: Path) -> Iterator[Item]:
    """The items of one category in file order."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    told: dict[str | None, dict[str, int]] = defaultdict(dict)
    for row in rows:
        if row.get("context_condition") == "ambig":
            told[row.get("template_id")].setdefault(row["context"], len(told[row.get("template_id")]))
    for number, row in enumerate(rows, start=2):
        try:
            yield _item(row, told[row["template_id"]])
        except (KeyError, ValueError, SyntaxError, TypeError) as error:
            raise QabiasError(f"{path}: line {number}: no released row ({error!r})") from error


def _item(row: Mapping[str, str], told: Mapping[str, int]) -> Item:
    """A row as an item."""
    infos = [ast.literal_eval(row[f"answer_info.ans{place}"]) for place in range(3)]
    groups = ast.literal_eval(row["stereotyped_groups"])
    # The last of the words of a person is the group: "m, árabe".
    first, second, third = (
        Answer(row[f"ans{place}"], info[-1].split(",")[-1].strip()) for place, info in enumerate(infos)
    )
    return Item(
        category=row["category"],
        template=f"{int(row['template_id']):02d}",
        set="/".join((*(row[name] for name in _PEOPLE), _told_in(row["context"], told))),
        negative=row["question_polarity"] == "neg",
        ambiguous=row["context_condition"] == "ambig",
        context=row["context"],
        question=row["question"],
        answers=(first, second, third),
        right=int(row["label"]),
        target=target_of([not {answer.group}.isdisjoint(groups) for answer in (first, second)]),
        unknown=[answer.text for answer in (first, second, third)].index(UNKNOWN),
        stereotype=row["relevant_social_value"],
        groups=groups,
        label_type="name" if row["proper_nouns_only"] == "True" else "label",
        subcategory=row["subcategory"],
        version=row["version"],
        source="; ".join(ast.literal_eval(row["source"])),
    )


def _told_in(context: str, told: Mapping[str, int]) -> str:
    """Number of the ambiguous context with which a context begins, which tells apart sets about the same people."""
    found = max((begin for begin in told if context.startswith(begin)), key=len, default=None)
    return context if found is None else str(told[found])
