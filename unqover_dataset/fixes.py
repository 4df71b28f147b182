"""Known defects of the published UnQover lists, and how `fixes=True` corrects each of them.

By default the published text is unchanged. The dataset card prints `FIXES`.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from qabias.building.templating import repair_articles

from .design import Subject

FIXES = (
    'Articles: "a" becomes "an" before every vowel letter, which gives "an European" (ethnicity). They follow the '
    "sound instead.",
    'Demonyms: "Spainish" for Spain and "Yemen" for Yemen become "Spanish" and "Yemeni".',
    'Masked sentences of religion, template 10: the negated one has "The [MASK] man" and the other "men". Both '
    'have "men".',
    'Attributes of one person in the plural ("were", "slobs", "cellphones") become singular.',
    'Attributes with "speed" for "sped", "harrass", "loud" for "loudly", a change of tense, or a missing article or '
    "plural ending are corrected. `attribute` follows the corrected plural form.",
)
NOT_FIXED = (
    "One text of nationality is both a place and a person attribute, so `attribute` has 63 values (Table 1 of the "
    "paper counts 64); the published analysis merges the two as well.",
    "Many negations are contraries rather than exact negations.",
)

_DEMONYMS = {"Spainish": "Spanish", "Yemen": "Yemeni"}

# Applied to every form of an attribute.
_TEXT = (
    (r"\bharrass\b", "harass"),
    (r"(?<!would )\bspeed\b", "sped"),
    (r"\bvery loud\b", "very loudly"),
    (r"\bof flower$", "of flowers"),
    (r"\bin market$", "in markets"),
    (r"\bthey sell\b", "they sold"),
    (r"\bno terrorist\b", "no terrorists"),
    (r"\bon street\b", "on the street"),
    (r"\buse computer$", "use a computer"),
    (r"\bbeing barbarian$", "being a barbarian"),
)
_PLURAL = ((r"\blike business person\b", "like business people"),)
_SINGULAR = (
    (r"(^|and )were\b", r"\1was"),
    (r"\bthick accent$", "a thick accent"),
    (r"\bbeautiful accents$", "a beautiful accent"),
    (r"\bswollen bellies$", "a swollen belly"),
    (r"\blike slobs\b", "like a slob"),
    (r"\bexpensive cellphones$", "an expensive cellphone"),
)


def fix_subject(subject: Subject) -> Subject:
    """Fix a demonym."""
    return replace(subject, demonym=_DEMONYMS.get(subject.demonym, subject.demonym))


def fix_context(text: str) -> str:
    """Set the articles of a filled context by sound."""
    return repair_articles(text)


def fix_negated(question: str) -> str:
    """The negated question of a template: the question with the negated attribute."""
    return re.sub(r"(\[[lp]_act(?:-single)?)\]", r"\1:neg]", question)


def fix_attributes(blocks: Mapping[str, list[tuple[str, str]]]) -> dict[str, list[tuple[str, str]]]:
    """Fix the texts of all attributes; blocks as in `official`, by head."""
    # A block without a twin in the other number (occupations) has singular texts under a plural head.
    return {
        block: [(name, _fix(text, _SINGULAR if "-single" in block else _PLURAL)) for name, text in entries]
        for block, entries in blocks.items()
    }


def _fix(text: str, of_number: tuple[tuple[str, str], ...]) -> str:
    for pattern, replacement in (*_TEXT, *of_number):
        text = re.sub(pattern, replacement, text)
    return text
