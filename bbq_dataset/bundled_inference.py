"""The bundled templates as inference: people and words of the BBQ examples, every unordered pair once."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from qabias.building.templating import fill

from .bundled import FOLDER, fill_english, read_streams
from .examples import DrawnSet, Row, drawn_sets, slot_values
from .fixes import fix_feminine
from .inference import CONTEXT_STUDY, STATEMENTS, InferenceSet, category_of, inference_rows
from .targets import target_location
from .template import Pair, Template

_PERSON_SLOT = re.compile(r"\{\{(NAME|DESC)[12]\}\}")
# From the first to the last slot that describes one person, e.g. "{{NAME1}} {{DESC1}}".
_PERSON = re.compile(rf"{_PERSON_SLOT.pattern}(?:.*{_PERSON_SLOT.pattern})?")
_LEADING_ARTICLE = re.compile(r"(?:The|An?)\b")


def generate(config: str, *, seed: int, folder: Path = FOLDER) -> Iterator[Row]:
    """Yield the rows of one inference config from the bundled templates.

    Args:
        config: One of `inference.NLI_CONFIGS`.
        seed: Seed of the random draws, shared with the BBQ examples.
        folder: Dataset folder with `templates/` and `vocabulary/`.

    Raises:
        QabiasError: If a template file is missing or wrong.
    """
    streams, vocabulary = read_streams(category_of(config), seed=seed, folder=folder)
    if config == CONTEXT_STUDY:
        streams = [(template, rng) for template, rng in streams if template.append]
    yield from inference_rows(config, _sets(drawn_sets(streams, vocabulary)))


def _sets(drawn: Iterator[DrawnSet]) -> Iterator[InferenceSet]:
    """The sets with a target; the first of two sets that only exchange the people."""
    seen = set()
    for entry in drawn:
        template, pair = entry.template, entry.pair
        people = frozenset((pair.first.text, pair.second.text))
        key = (template.context, template.disambiguation, people, tuple(pair.words.items()))
        target = _target_slot(template, pair)
        if target and key not in seen:
            seen.add(key)
            yield _inference_set(entry, target)


def _target_slot(template: Template, pair: Pair) -> int:
    """Number of the target's slot, 0 if the target is undefined."""
    people = [[person.text, person.info] for person in (pair.first, pair.second)]
    return target_location(template.category, people, template.groups, template.second_group) + 1


def _inference_set(entry: DrawnSet, target: int) -> InferenceSet:
    template, pair = entry.template, entry.pair
    values, exchanged = slot_values(pair), slot_values(pair.flipped())
    context = template.context_of(pair)
    holds = _slot_of(template.negative_answer) == target
    slots = {"target": target, "nontarget": 3 - target}
    texts = {
        "neg": (template.negative_statement, template.negative_answer),
        "nonneg": (template.non_negative_statement, template.non_negative_answer),
    }
    return InferenceSet(
        category=template.category,
        template_id=template.template_id,
        set_id=entry.set_id,
        contexts={
            "original": fill_english(context, values),
            "swapped": fill_english(context, exchanged),
        },
        facts={
            "pro": fill_english(template.disambiguation, values if holds else exchanged),
            "anti": fill_english(template.disambiguation, exchanged if holds else values),
        },
        statements={
            (person, polarity): _statement(*texts[polarity], slots[person], values) for person, polarity in STATEMENTS
        },
        questions={
            "neg": fill_english(template.negative_question, values),
            "nonneg": fill_english(template.non_negative_question, values),
        },
        target=_mention(template, pair, slots["target"]),
        nontarget=_mention(template, pair, slots["nontarget"]),
        social_value=template.bias,
        reference=template.source,
        append={length: fill_english(text, values) for length, text in template.append.items()},
    )


def _slot_of(answer: str) -> int:
    return 1 if "{{NAME1}}" in answer else 2


def _worded_for(answer: str, slot: int) -> str:
    """An answer's template, worded for the person in `slot`."""
    return _PERSON_SLOT.sub(lambda match: f"{{{{{match[1]}{slot}}}}}", answer)


def _statement(statement: str, answer: str, slot: int, values: Mapping[str, str]) -> str:
    phrase = _worded_for(answer, slot)
    if not statement.startswith("{{ANSWER}}"):
        phrase = _LEADING_ARTICLE.sub(lambda match: match[0].lower(), phrase, count=1)
    return fill_english(statement.replace("{{ANSWER}}", phrase), values)


def _mention(template: Template, pair: Pair, slot: int) -> str:
    """The text's name for a person: the proper name, else the words of the answer's slots, e.g. "Latina woman"."""
    if template.style == "names":
        return (pair.first, pair.second)[slot - 1].name
    match = _PERSON.search(_worded_for(template.negative_answer, slot))
    assert match, "the reader checks that an answer names a person"
    return fix_feminine(fill(match[0], slot_values(pair)))
