"""The released samples of KoBBQ, with what their templates say of them."""

from __future__ import annotations

import ast
import csv
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from qabias.benchmarks.multilingual.rows import Answer, Item
from qabias.errors import QabiasError

CATEGORIES = (
    *("Age", "Disability_status", "Domestic_area_of_origin", "Educational_background", "Family_structure"),
    *("Gender_identity", "Physical_appearance", "Political_orientation", "Race_ethnicity_nationality", "Religion"),
    *("SES", "Sexual_orientation"),
)
"""The categories as the file of templates spells and orders them."""

UNKNOWN = 2
"""Number of the answer that nobody can tell: the last one in every sample."""

_SAMPLE_ID = re.compile(r"(.+)-(\d+)([a-z])-(\d+)-(amb|dis)-(bsd|cnt)")


class SampleId(NamedTuple):
    """What the id of a sample says."""

    category: str
    template: str
    version: str
    sample: str
    context: str
    question: str


def read_items(samples: Path, templates: Path, category: str) -> list[Item]:
    """The items of one category; those of a set are neighbours, and sets stand as they first appear in the file."""
    template_of = {(row["Category"].lower(), int(row["ID"]), row["version"]): row for row in _rows(templates)}
    sets: dict[str, list[Item]] = {}
    for number, row in enumerate(_rows(samples), start=2):
        try:
            found = _SAMPLE_ID.fullmatch(row["sample_id"])
            if found is None:
                raise ValueError(f"sample_id {row['sample_id']!r}")
            sample = SampleId(*found.groups())
            if sample.category != category.lower():
                continue
            item = _item(category, sample, row, template_of[sample.category, int(sample.template), sample.version])
        except (KeyError, ValueError, SyntaxError, TypeError) as error:
            raise QabiasError(f"{samples}: row {number}: no sample of the templates ({error!r})") from error
        sets.setdefault(f"{item.template}/{item.set}", []).append(item)
    return [item for of_set in sets.values() for item in of_set]


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file, delimiter="\t")


def _item(category: str, sample: SampleId, row: Mapping[str, str], template: Mapping[str, str]) -> Item:
    choices: list[str] = ast.literal_eval(row["choices"])
    negative = sample.question == "bsd"
    # The column has the stereotype's answer to this question: the target where the question is the biased one.
    biased = choices[:UNKNOWN].index(row["biased_answer"])
    target = biased if negative else 1 - biased
    groups = template["Target_group"]
    other = template["N2_info"] if template["N1_info"] == groups else template["N1_info"]
    first, second = (Answer(choices[place], groups if place == target else other) for place in range(UNKNOWN))
    return Item(
        category=category,
        template=sample.template,
        set=f"{sample.version}-{sample.sample}",
        negative=negative,
        ambiguous=sample.context == "amb",
        context=row["context"],
        question=row["question"],
        answers=(first, second, Answer(choices[UNKNOWN], "unknown")),
        right=choices.index(row["answer"]),
        target=target,
        unknown=UNKNOWN,
        stereotype=template["Stereotype"],
        groups=[group.strip() for group in groups.split(",")],
        subcategory=row["label_annotation"],
        version=sample.version,
        source=template["Reference"],
    )
