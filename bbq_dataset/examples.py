"""From a filled template to the four examples of a set, in the released schema with our additions."""

import math
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass
from typing import Any

from qabias.building.templating import StableRandom

from .pairs import pairs
from .targets import target_location
from .template import UNKNOWN_ANSWERS, Pair, Person, Template
from .vocabulary import Vocabulary

Row = dict[str, Any]

_KINDS = ("negative", "non_negative", "unknown")
_N_ORDERS = math.factorial(len(_KINDS))

COMPARISONS = {"": "", "a": "match_race", "b": "match_other", "c": "mismatch_both"}


@dataclass(frozen=True)
class FilledTexts:
    """The texts of one set with every slot filled."""

    context: str
    disambiguated_context: str
    negative_question: str
    negative_answer: str
    non_negative_question: str
    non_negative_answer: str
    source: str


Filler = Callable[[Template, Pair], FilledTexts]
PairFix = Callable[[Template, Pair], Pair]


@dataclass(frozen=True)
class DrawnSet:
    """The random draws of a set of four examples.

    Attributes:
        template: The template version.
        pair: The people and words that fill it.
        set_id: Template and number within it, e.g. "Age-07-012".
        unknown: The UNKNOWN answer.
        order: The answers as shown: "negative", "non_negative" and "unknown" in some order.
    """

    template: Template
    pair: Pair
    set_id: str
    unknown: str
    order: tuple[str, ...]


def slot_values(pair: Pair) -> dict[str, str]:
    """The values of the slots: people and their descriptions by number, and the words of the pair."""
    values = dict(pair.words)
    for number, person in ((1, pair.first), (2, pair.second)):
        values[f"NAME{number}"] = person.name
        for slot in ("GEN", "OCC", "DESC"):
            values[f"{slot}{number}"] = person.description
    return values


def drawn_sets(
    templates: Iterable[tuple[Template, StableRandom]],
    vocabulary: Vocabulary,
    fix_pair: PairFix = lambda template, pair: pair,
) -> Iterator[DrawnSet]:
    """Draw the sets of one category in file order.

    Args:
        templates: Template versions of one category, each with its random stream.
        vocabulary: Labels and names.
        fix_pair: Corrects a pair before it is used.
    """
    set_numbers: dict[str, int] = {}
    for template, rng in templates:
        shown: dict[tuple[Any, ...], set[tuple[str, ...]]] = {}
        for pair in pairs(template, vocabulary, rng):
            number = set_numbers.get(template.template_id, 0)
            set_numbers[template.template_id] = number + 1
            unknown = rng.choice(UNKNOWN_ANSWERS)
            # The same people may meet twice, e.g. a pair of occupations that are both drawn first.
            texts = (pair.first, pair.second, *pair.words.items())
            not_in = shown.setdefault(texts, set()) if vocabulary.apart else set()
            order = _draw_order(rng, not_in)
            not_in.add(order)
            yield DrawnSet(template, fix_pair(template, pair), f"{template.template_id}-{number:03d}", unknown, order)


def _draw_order(rng: StableRandom, not_in: Set[tuple[str, ...]]) -> tuple[str, ...]:
    """A random order of the kinds of answers, outside `not_in` if any other is possible."""
    while True:
        order = tuple(rng.sample(_KINDS, len(_KINDS)))
        if order not in not_in or len(not_in) == _N_ORDERS:
            return order


def examples(
    templates: Iterable[tuple[Template, StableRandom]],
    vocabulary: Vocabulary,
    filler: Filler,
    fix_pair: PairFix = lambda template, pair: pair,
) -> Iterator[Row]:
    """Yield the examples of one category in file order.

    Args:
        templates: Template versions of one category, each with its random stream.
        vocabulary: Labels and names.
        filler: Puts a pair into the texts of a template.
        fix_pair: Corrects a pair before it is used.
    """
    example_id = 0
    for drawn in drawn_sets(templates, vocabulary, fix_pair):
        for row in _set_of_four(drawn, filler(drawn.template, drawn.pair)):
            yield {"example_id": example_id, "set_id": drawn.set_id, **row}
            example_id += 1


def _person_of(answer_template: str, pair: Pair) -> Person:
    """The person in the slot of the answer's template."""
    return pair.first if "{{NAME1}}" in answer_template else pair.second


def _set_of_four(drawn: DrawnSet, texts: FilledTexts) -> Iterator[Row]:
    """The two questions, each with both contexts."""
    shared = _shared_columns(drawn, texts)
    order, target_loc, unknown_loc = drawn.order, shared["target_loc"], shared["unknown_loc"]
    for polarity, question, answer in (
        ("neg", texts.negative_question, "negative"),
        ("nonneg", texts.non_negative_question, "non_negative"),
    ):
        for condition, context, gold in (
            ("ambig", texts.context, "unknown"),
            ("disambig", texts.disambiguated_context, answer),
        ):
            yield {
                **shared,
                "question_polarity": polarity,
                "context_condition": condition,
                "context": context,
                "question": question,
                "label": order.index(gold),
                "biased_loc": biased_location(target_loc, unknown_loc, polarity),
            }


def _shared_columns(drawn: DrawnSet, texts: FilledTexts) -> Row:
    """The common columns of the four examples of a set."""
    template, pair, unknown, order = drawn.template, drawn.pair, drawn.unknown, drawn.order
    negative = _person_of(template.negative_answer, pair)
    non_negative = _person_of(template.non_negative_answer, pair)
    answers = {
        "negative": (texts.negative_answer, [negative.text, negative.info]),
        "non_negative": (texts.non_negative_answer, [non_negative.text, non_negative.info]),
        "unknown": (unknown, [unknown, "unknown"]),
    }
    infos = [answers[kind][1] for kind in order]
    return {
        "question_index": str(template.question_index),
        "category": template.category,
        "answer_info": {f"ans{i}": info for i, info in enumerate(infos)},
        "additional_metadata": {
            "subcategory": f"intersectional_{pair.comparison}" if pair.comparison else template.subcategory,
            "stereotyped_groups": list(template.groups),
            "version": template.version,
            "source": texts.source,
        },
        **{f"ans{i}": answers[kind][0] for i, kind in enumerate(order)},
        "target_loc": target_location(template.category, infos, template.groups, template.second_group),
        "unknown_loc": order.index("unknown"),
        "label_type": template.label_type,
        "comparison": COMPARISONS[pair.comparison],
        "social_value": template.bias,
        "template_id": template.template_id,
    }


def biased_location(target_loc: int, unknown_loc: int, polarity: str) -> int:
    """Index of the biased answer, -1 if the target is undefined.

    It is the target for a negative question and the other person for a non-negative one.
    """
    if target_loc == -1 or polarity == "neg":
        return target_loc
    return 3 - target_loc - unknown_loc
