"""Known defects of the published BBQ data, and how `fixes=True` corrects each of them.

By default the published text is unchanged. The dataset card prints `FIXES`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

from qabias.building.templating import capitalize_sentences, repair_articles

from .examples import Row
from .template import Pair, Template

FIXES = (
    "Physical_appearance 6b and 10b: the two answer cells are exchanged, so the gold answer contradicts the text. The "
    "cells are exchanged back.",
    "Disability_status 4 and 19: a wrong delimiter, a wrong order of the lists and a broken slot leave version b "
    "empty, so the gold answer always agrees with the stereotype. They are corrected in `official` (24 + 24 and 8 + 8 "
    "examples instead of 12 and 8) and dropped from `release`.",
    "SES 8: the group tag belongs to the text, but moves with the names when they are exchanged. It stays with the "
    "slot. Version b exchanges the roles twice; it becomes the counterpart of a. In `release` the tags are corrected.",
    "Gender_identity 35 and 36: the tags have the same error. They stay with the slot (the gold answer then never "
    "agrees with the stereotype).",
    "SES 9 and 10: versions a and b both give the negative answer to the low-income group. In `official` version b "
    "becomes the counterpart of a; both are dropped from `release`.",
    "Gender_identity 13: pairs of two males or two females have no target. They are dropped (16 examples).",
    "Stray braces, typing errors, doubled words and spaces, spaces around answers, a/an, capitals at the start of a "
    "sentence or answer, 'Latino woman' and 'lesbian man' are corrected.",
    "As inference: 'Man' and 'Woman' inside the contexts of Gender_identity, a/an, stray braces, spaces at ends, "
    "statements that end in a question mark and contexts that end in an exclamation mark are corrected.",
)

EXCHANGED_ANSWERS = {("Physical_appearance", 6, "b"), ("Physical_appearance", 10, "b")}
TAGS_BOUND_TO_SLOTS = {("SES", 8), ("Gender_identity", 35), ("Gender_identity", 36)}
ALWAYS_ALIGNED = {("SES", 9), ("SES", 10)}
VERSION_B_EMPTY = {("Disability_status", 4), ("Disability_status", 19)}

# Words that a text has if the pattern fits, the pattern, and what takes its place.
_TYPING_ERRORS = (
    ("monther", re.compile(r"\bmonther\b"), "mother"),
    ("hadeach", re.compile(r"\bhadeach\b"), "had each"),
    ("he on ", re.compile(r"\b([Tt])he on (?=on |well|a one)"), r"\1he one "),
    ("with in a ", re.compile(r"\bwith (?=in a (?:bun|ponytail)\b)"), "with her hair "),
    *((f"{word} {word}", re.compile(rf"\b{word} {word}\b"), word) for word in ("already", "people", "with")),
    ("{", re.compile("{"), ""),
    ("}", re.compile("}"), ""),
)
_FEMININE = (
    ("lesbian m", re.compile(r"\blesbian m(an|en)\b"), r"lesbian wom\1"),
    ("Latino ", re.compile(r"\bLatino (?=(?:woman|women|girl|girls|lady|ladies|mother|mothers)\b)"), "Latina "),
)
_BRACKETS = re.compile(r"\[[^\]]*\]")
_FINAL_MARK = re.compile(r"[?!]$")
_DOUBLE_SPACE = re.compile(r" {2,}")


@lru_cache(2**12)  # most texts of a template are the same for many of its people
def fix_text(text: str) -> str:
    """Fix typing errors, doubled words and spaces, stray braces, articles and sentence starts of a filled text."""
    text = fix_feminine(_replaced(text, _TYPING_ERRORS))
    return repair_articles(capitalize_sentences(_DOUBLE_SPACE.sub(" ", text).strip()))


def fix_sentence(text: str) -> str:
    """Fix a filled text that must be a statement, not a question or an exclamation."""
    return _FINAL_MARK.sub(".", fix_text(text))


def fix_feminine(text: str) -> str:
    """Make an identity label agree with the noun after it ("Latino woman" to "Latina woman")."""
    return _replaced(text, _FEMININE)


def _replaced(text: str, replacements: Iterable[tuple[str, re.Pattern[str], str]]) -> str:
    for words, pattern, replacement in replacements:
        if words in text:
            text = pattern.sub(replacement, text)
    return text


def fix_row(row: Mapping[str, str]) -> dict[str, str]:
    """Fix a row of a template file before it is read: delimiters and order of its lists, broken slots."""
    fixed = {column: cell.replace("{[NAME", "{{NAME") for column, cell in row.items()}
    if "NAME1:" in fixed.get("Names", "").replace("}", ""):
        cell = _BRACKETS.sub(lambda listed: listed[0].replace(";", ","), fixed["Names"])
        fixed["Names"] = "; ".join(sorted((clause.strip() for clause in cell.split(";")), key=lambda c: "NAME2" in c))
    return fixed


def fix_templates(templates: Iterable[Template]) -> list[Template]:
    """Fix the roles, lists or slots of the published templates."""
    return [_fix_template(template) for template in templates]


def _fix_template(template: Template) -> Template:
    key = (template.category, template.question_index)
    if (*key, template.version) in EXCHANGED_ANSWERS:
        return replace(
            template,
            negative_answer=template.non_negative_answer,
            non_negative_answer=template.negative_answer,
        )
    if key in ALWAYS_ALIGNED and template.version == "b":
        return replace(template, people=template.people[::-1], tags=template.tags[::-1])
    if key == ("SES", 8) and template.version == "b":
        words = {"WORD1": template.words["WORD2"], "WORD2": template.words["WORD1"]}
        return replace(template, words=words, tags=template.tags[::-1])
    return template


def tags_on_slots(template: Template, pair: Pair) -> Pair:
    """Bind the group tags to the slots in the few templates whose text states the group."""
    if (template.category, template.question_index) not in TAGS_BOUND_TO_SLOTS:
        return pair

    def tagged(info: str, tag: str) -> str:
        _, _, gender = info.partition("_")
        return f"{tag}_{gender}" if gender else tag

    first, second = template.tags
    return replace(
        pair,
        first=replace(pair.first, info=tagged(pair.first.info, first)),
        second=replace(pair.second, info=tagged(pair.second.info, second)),
    )


def drop_undefined_targets(rows: Iterable[Row]) -> Iterator[Row]:
    """Drop the examples with two targets or none, and number the rest again."""
    kept = (row for row in rows if row["target_loc"] != -1)
    for example_id, row in enumerate(kept):
        yield {**row, "example_id": example_id}


def is_excluded_from_release(row: Mapping[str, object]) -> bool:
    """Whether a released example's template has unbalanced gold answers, which no single row can fix."""
    key = (str(row["category"]), int(str(row["question_index"])))
    return key in ALWAYS_ALIGNED or key in VERSION_B_EMPTY
