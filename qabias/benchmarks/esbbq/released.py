"""The released rows of EsBBQ and CaBBQ."""

from __future__ import annotations

import ast
import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

from qabias.benchmarks.multilingual.rows import Answer, Item, target_of
from qabias.errors import QabiasError

CATEGORIES = (
    *("Age", "DisabilityStatus", "Gender", "LGBTQIA", "Nationality", "PhysicalAppearance", "RaceEthnicity"),
    *("Religion", "SES", "SpanishRegion"),
)
UNKNOWN = "unknown"
"""What the released rows have in place of the wording of UNKNOWN, always as the last answer."""


def read_items(path: Path) -> Iterator[Item]:
    """The items of one category in file order.

    Args:
        path: The released CSV file.

    Raises:
        QabiasError: If a row is not a released one.
    """
    with path.open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file), start=2):
            try:
                yield _item(row)
            except (KeyError, ValueError, SyntaxError, TypeError) as error:
                raise QabiasError(f"{path}: line {number}: no released row ({error!r})") from error


def _item(row: Mapping[str, str]) -> Item:
    infos = [ast.literal_eval(row[f"answer_info.ans{place}"]) for place in range(3)]
    groups = ast.literal_eval(row["stereotyped_groups"])
    # The last of the words of a person is the group: "m, árabe".
    first, second, third = (
        Answer(row[f"ans{place}"], info[-1].split(",")[-1].strip()) for place, info in enumerate(infos)
    )
    return Item(
        category=row["category"],
        template=f"{int(row['template_id']):02d}",
        set="/".join((row["version"], row["flipped"], row["ans0"], row["ans1"], row["stated_gender_info"])),
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
