"""Fills this project's texts, `templates/<domain>/<subtopic>.yaml`, which `template.py` reads."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import astuple
from pathlib import Path

from qabias.building.templating import capitalize_sentences, fill, repair_articles, slots_of

from .pairs import FilledTexts, Hypothesis, Row, Stance, row
from .template import Premise, Template, read_template

FOLDER = Path(__file__).parent
# Increased when a text changes.
VERSION = "1"


def generate(subtopic: str, folder: Path = FOLDER) -> Iterator[Row]:
    """Yield the rows of one subtopic, the pro and anti form of a pair in sequence.

    Args:
        subtopic: Name of the subtopic.
        folder: Dataset folder with `templates/`.

    Raises:
        QabiasError: If the template file is missing or wrong (names file, item and field).
    """
    template = read_template(subtopic, folder)
    owners: dict[str, tuple[str, Stance]] = {}
    for (premise_id, premise), hypothesis in itertools.product(enumerate(template.premises), template.hypotheses):
        places = (f"premise {premise_id}", "text"), (hypothesis.item, "hypothesis"), (hypothesis.item, "question")
        for variant_id, words in enumerate(_word_combinations(template, premise, hypothesis)):
            for stance, groups in template.groups.items():
                texts = _filled(premise, hypothesis, {**words, **groups})
                for (item, field), text in zip(places, astuple(texts), strict=True):
                    other_item, other_stance = owners.setdefault(text, (item, stance))
                    if (other_item, other_stance) != (item, stance):
                        raise template.error(
                            item, field, f"{stance} form reads as the {other_stance} form of {other_item}: {text!r}"
                        )
                yield row(subtopic, premise_id, hypothesis, variant_id, stance, texts, premise.reference)


def _word_combinations(template: Template, premise: Premise, hypothesis: Hypothesis) -> Iterator[dict[str, str]]:
    """All choices of the words in the premise or hypothesis, the last word list fastest."""
    used = slots_of(premise.text) | slots_of(hypothesis.text)
    lists = {slot: words for slot, words in template.words.items() if slot in used}
    for choice in itertools.product(*lists.values()):
        yield dict(zip(lists, choice, strict=True))


def _filled(premise: Premise, hypothesis: Hypothesis, values: Mapping[str, str]) -> FilledTexts:
    texts = (premise.text, hypothesis.text, hypothesis.question)
    return FilledTexts(*(capitalize_sentences(repair_articles(fill(text, values))) for text in texts))
