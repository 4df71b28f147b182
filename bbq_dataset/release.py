"""The authors' released examples, with the columns that a metric needs joined from their templates."""

import json
from collections.abc import Iterator
from dataclasses import replace

from qabias.building.sources import fetch
from qabias.building.templating import filled_pattern
from qabias.errors import QabiasError

from . import fixes as known_fixes
from .examples import COMPARISONS, Row, biased_location
from .official import REPOSITORY, read_templates
from .targets import target_location
from .template import Pair, Person, Template

RELEASED_KEYS = (
    "example_id",
    "question_index",
    "question_polarity",
    "context_condition",
    "category",
    "answer_info",
    "additional_metadata",
    "context",
    "question",
    "ans0",
    "ans1",
    "ans2",
    "label",
)
_INTERSECTIONAL = "intersectional_"
_FIX = "use the unchanged published files"


def generate(category: str, *, fixes: bool) -> Iterator[Row]:
    """Yield the released examples of one category in file order.

    Args:
        category: Name of the category.
        fixes: Fix or drop known errors (`bbq_dataset.fixes`).

    Raises:
        QabiasError: If a file is missing, or a line is not a released example.
    """
    templates = {
        (str(template.question_index), template.version): template for template in read_templates(category, fixes=fixes)
    }
    path = f"data/{category}.jsonl"
    set_numbers: dict[str, int] = {}
    set_id = ""
    lines = fetch(REPOSITORY, path).read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        released = _released(line, f"{path} line {number}")
        key = (released["question_index"], released["additional_metadata"]["version"])
        if key not in templates:
            problem = f"{path} line {number}: no published template {key[0]} version {key[1]!r}"
            raise QabiasError(problem, _FIX)
        template = templates[key]
        # The four examples of a set follow one another (checked for 2,989 released sets).
        if released["example_id"] % 4 == 0:
            index = set_numbers.get(template.template_id, 0)
            set_numbers[template.template_id] = index + 1
            set_id = f"{template.template_id}-{index:03d}"
        row = {**released, "set_id": set_id}
        if fixes:
            if known_fixes.is_excluded_from_release(row):
                continue
            row = _fixed(row, template)
        row = add_roles(row, template)
        if not fixes or row["target_loc"] != -1:
            yield row


def _released(line: str, place: str) -> Row:
    try:
        row = json.loads(line)
        return {key: row[key] for key in RELEASED_KEYS}
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise QabiasError(f"{place}: not a released BBQ example: {error!r}", _FIX) from error


def add_roles(row: Row, template: Template) -> Row:
    """Add the roles of the answers and the template's columns to a released row."""
    infos = [row["answer_info"][f"ans{i}"] for i in range(3)]
    groups = row["additional_metadata"]["stereotyped_groups"]
    target_loc = target_location(row["category"], infos, groups, template.second_group)
    unknown_loc = next(i for i, (_, info) in enumerate(infos) if info == "unknown")
    subcategory = row["additional_metadata"]["subcategory"]
    comparison = subcategory.removeprefix(_INTERSECTIONAL) if subcategory.startswith(_INTERSECTIONAL) else ""
    return {
        **row,
        "target_loc": target_loc,
        "biased_loc": biased_location(target_loc, unknown_loc, row["question_polarity"]),
        "unknown_loc": unknown_loc,
        "label_type": template.label_type,
        "comparison": COMPARISONS[comparison],
        "social_value": template.bias,
        "template_id": template.template_id,
    }


def _fixed(row: Row, template: Template) -> Row:
    key = (template.category, template.question_index)
    row = dict(row)
    if (*key, template.version) in known_fixes.EXCHANGED_ANSWERS and row["context_condition"] == "disambig":
        unknown = next(i for i in range(3) if row["answer_info"][f"ans{i}"][1] == "unknown")
        row["label"] = 3 - unknown - row["label"]
    if key in known_fixes.TAGS_BOUND_TO_SLOTS:
        row["answer_info"] = _tags_on_slots(row, template)
    for field in ("context", "question", "ans0", "ans1", "ans2"):
        row[field] = known_fixes.fix_text(row[field])
    return row


def _tags_on_slots(row: Row, template: Template) -> dict[str, list[str]]:
    """The answer infos with the tag of the slot that each name fills in the context."""
    match = filled_pattern(template.context).match(row["context"])
    if match is None:
        problem = f"{template.category} example {row['example_id']}: context does not follow {template.origin}"
        raise QabiasError(problem, _FIX)
    by_name = {name: info for name, info in row["answer_info"].values() if info != "unknown"}
    first, second = match["NAME1"], match["NAME2"]
    # Fixing the template exchanges the words of version b, but not the text of the released row.
    tags = template.tags[::-1] if template.category == "SES" and template.version == "b" else template.tags
    pair = Pair(Person(first, by_name[first]), Person(second, by_name[second]), {})
    tagged = known_fixes.tags_on_slots(replace(template, tags=tags), pair)
    infos = {first: tagged.first.info, second: tagged.second.info}
    return {answer: [name, infos.get(name, info)] for answer, (name, info) in row["answer_info"].items()}
