"""Examples of a user's own templates: who fills them, and the four items of every set."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qabias.benchmarks.multilingual.rows import Answer, Item, Row, rows_of
from qabias.building.templating import StableRandom, fill
from qabias.errors import QabiasError
from qabias.share.bbq_dataset import bundled as _bundled
from qabias.share.bbq_dataset import examples as _examples
from qabias.share.bbq_dataset import pairs as _pairs
from qabias.share.bbq_dataset import template as _template
from qabias.share.bbq_dataset import vocabulary as _vocabulary

if TYPE_CHECKING:
    from qabias.share.bbq_dataset.template import Pair, Template
    from qabias.share.bbq_dataset.vocabulary import Vocabulary


TEMPLATES, LABELS = "templates", "vocabulary/labels.csv"
STYLES = ("words", "labels")
_OPTIONAL = ("subcategory", "people", "words", "versions")
_QUESTION_MARKS = ("?", "？", "؟", "՞", "።", ";", "\u037e")
_SENTENCE_START = re.compile(r"(^|[.!?]['\"»”]?\s+)([¿¡«“'\"]*\w)")
_UNKNOWN = 2
"""Number of the answer that says that nobody can tell, before the order is drawn."""


def is_target(category: str, text: str, info: str, groups: Sequence[str]) -> bool:
    """Whether a person is a member of the stereotyped group: by the group tag, or by the label that names them."""
    return info in groups or text in groups


def read_words(folder: Path) -> Vocabulary:
    """The labels of a folder; none where it has no `vocabulary/labels.csv`."""
    path = folder / LABELS
    labels: Mapping[str, Any] = _vocabulary.read_labels(path) if path.exists() else {}
    vocabulary: Vocabulary = _vocabulary.Vocabulary(labels, ())
    return vocabulary


def read_own(folder: Path, categories: Sequence[str]) -> dict[str, list[Template]]:
    """The templates of every category of a folder, checked."""
    form = _template.Form(
        categories=tuple(categories),
        is_target=is_target,
        styles={},
        other_styles=STYLES,
        optional=_OPTIONAL,
        second_groups={},
        needs_statements=False,
        question_marks=_QUESTION_MARKS,
        has_published_numbers=False,
    )
    words = read_words(folder)
    return {category: _bundled.read_templates(category, words, folder, form) for category in categories}


def rows_of_templates(
    templates: Sequence[Template], words: Vocabulary, unknown: Sequence[str], parts: Sequence[object], code: str
) -> Iterator[Row]:
    """The examples of one category."""
    example_id = 0
    for template_id, versions in groupby(templates, lambda template: template.template_id):
        random = StableRandom(*parts, template_id)
        items = [item for version in versions for item in _items(version, words, random, code)]
        for row in rows_of(items, random, partial(random.choice, unknown)):
            yield {**row, "example_id": example_id}
            example_id += 1


def _items(template: Template, words: Vocabulary, random: StableRandom, code: str) -> list[Item]:
    """Both questions of every set, each with the ambiguous and with the disambiguated context."""
    if template.style == "words":
        pairs = list(_pairs.words_pairs(template, random))
    else:
        pairs = list(_pairs.with_flips(_pairs.label_pairs(template, words, random)))
    if not pairs:
        raise QabiasError(
            f"{template.origin}: nobody can fill it: {LABELS} has no label of {template.category} that is not in the "
            f"groups {list(template.groups)}; add one"
        )
    return [item for number, pair in enumerate(pairs) for item in _set_of_four(template, pair, number, code)]


def _set_of_four(template: Template, pair: Pair, number: int, code: str) -> Iterator[Item]:
    values = _examples.slot_values(pair)

    def filled(text: str) -> str:
        return _with_capitals(fill(text, values), code)

    context = filled(template.context)
    told = f"{context} {filled(template.disambiguation)}"
    texts = (template.negative_answer, template.non_negative_answer)
    people = [pair.first if "{{NAME1}}" in text else pair.second for text in texts]
    first, second = (Answer(filled(text), person.info) for text, person in zip(texts, people, strict=True))
    targets = [is_target(template.category, person.name, person.info, template.groups) for person in people]
    for negative, question in ((True, template.negative_question), (False, template.non_negative_question)):
        for ambiguous in (True, False):
            yield Item(
                category=template.category,
                template=f"{template.question_index:02d}",
                set=f"{template.version}/{number}",
                negative=negative,
                ambiguous=ambiguous,
                context=context if ambiguous else told,
                question=filled(question),
                answers=(first, second, Answer("", "unknown")),
                right=_UNKNOWN if ambiguous else (0 if negative else 1),
                target=targets.index(True),
                unknown=_UNKNOWN,
                stereotype=template.bias,
                groups=template.groups,
                label_type=template.label_type,
                subcategory=template.subcategory,
                version=template.version,
                source=template.source,
            )


def _with_capitals(text: str, code: str) -> str:
    """Give every sentence a capital letter at its start, as the language writes it."""

    def capital(match: re.Match[str]) -> str:
        letter = match[2][-1]
        # In Turkish and Azerbaijani the capital of i has a dot.
        upper = "İ" if letter == "i" and code in ("tr", "az") else letter.title()
        return f"{match[1]}{match[2][:-1]}{upper}"

    return _SENTENCE_START.sub(capital, text)
