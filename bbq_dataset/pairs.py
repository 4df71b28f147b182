"""The pairs of people that fill a template, in file order.

The loops follow the published row-by-row generator and give the counts of Table 3 of Parrish et al. 2022. The bundled
templates use the same loops.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, TypeVar

from qabias.building.templating import StableRandom

from .template import Pair, Person, Template
from .vocabulary import Label, Name, Vocabulary

T = TypeVar("T")

N_DRAWN = 5
# People of one group in the two SES name templates; the other group has `N_DRAWN`.
N_SES_NAMES = 6


def pairs(template: Template, vocabulary: Vocabulary, rng: StableRandom) -> Iterator[Pair]:
    """Yield every pair of people that fills `template`, each one set of four examples."""
    if template.is_intersectional:
        if template.style == "labels":
            yield from _intersectional_labels(template, vocabulary, rng)
        elif template.category == "Race_x_gender":
            yield from _race_by_gender_names(template, vocabulary, rng)
        else:
            yield from _race_by_ses_names(template, vocabulary, rng)
    elif template.style == "words":
        yield from words_pairs(template, rng)
    elif template.style == "occupations":
        yield from with_flips(_occupations(template, vocabulary, rng))
    elif template.style == "labels":
        if template.category == "Gender_identity":
            yield from _gender_labels(template, vocabulary, rng)
        else:
            yield from with_flips(label_pairs(template, vocabulary, rng))
    elif template.category == "Race_ethnicity":
        yield from with_flips(_race_names(template, vocabulary, rng))
    elif template.category == "Gender_identity":
        yield from with_flips(_gender_names(template, vocabulary, rng))
    else:
        yield from with_flips(_ses_names(template, vocabulary, rng))


def with_flips(pairs: Iterator[Pair]) -> Iterator[Pair]:
    """Every pair, followed by the same people exchanged between the slots."""
    for pair in pairs:
        yield pair
        yield pair.flipped()


def _draw(items: Sequence[T], rng: StableRandom) -> list[T]:
    """Five of `items` in random order; all of them in their own order if there are fewer."""
    return rng.sample(items, N_DRAWN) if len(items) >= N_DRAWN else list(items)


def _words(template: Template, rng: StableRandom) -> dict[str, str]:
    return {slot: rng.choice(words) for slot, words in template.words.items()}


def _description(template: Template, tag: str, rng: StableRandom) -> str:
    return rng.choice(template.descriptions[tag]) if template.descriptions else ""


def words_pairs(template: Template, rng: StableRandom) -> Iterator[Pair]:
    """Every phrase of one list with every phrase of the other, or with its counterpart if they are parallel."""
    first_tag, second_tag = template.tags
    combined = zip(*template.people, strict=True) if template.parallel else product(*template.people)
    for first, second in combined:
        yield Pair(Person(first, first_tag), Person(second, second_tag), _words(template, rng))


def label_pairs(template: Template, vocabulary: Vocabulary, rng: StableRandom) -> Iterator[Pair]:
    """Up to five labels of the groups, each with up to five others that do not overlap (style `labels`)."""
    labels = vocabulary.labels[template.category]
    for target in _draw([label for label in labels if label.word in template.groups], rng):
        for rival in _draw(_rivals(target, labels, template.groups), rng):
            # A nationality is tagged with its region; the other labels are their own tag.
            yield Pair(
                Person(target.word, target.tag or target.word),
                Person(rival.word, rival.tag or rival.word),
                _words(template, rng),
            )


def _rivals(target: Label, labels: Sequence[Label], targets: Sequence[str]) -> list[Label]:
    return [label for label in labels if label.word not in targets and label.word not in target.overlaps]


def _gender_labels(template: Template, vocabulary: Vocabulary, rng: StableRandom) -> Iterator[Pair]:
    labels = [
        label.word
        for label in vocabulary.labels[template.category]
        if template.subcategory in ("None", label.subcategory)
    ]
    for first in labels:
        for second in labels:
            if first != second:
                yield Pair(Person(first, first), Person(second, second), _words(template, rng))


def _occupations(template: Template, vocabulary: Vocabulary, rng: StableRandom) -> Iterator[Pair]:
    occupations = vocabulary.labels["SES"]
    for first in rng.sample(occupations, N_DRAWN):
        for second in occupations:
            if second.tag != first.tag:
                yield Pair(Person(first.word, first.tag), Person(second.word, second.tag), _words(template, rng))


def _full_name(first: Name, vocabulary: Vocabulary, rng: StableRandom, other: str = "") -> str:
    """A first name with a surname of its ethnicity; `other` is the full name of the other person."""
    surnames = vocabulary.select_names("last", ethnicities=[first.ethnicity])
    if other:
        surnames = vocabulary.distinct_from(surnames, other.split()[-1])
    return f"{first.name} {rng.choice(surnames).name}"


def _race_names(template: Template, vocabulary: Vocabulary, rng: StableRandom) -> Iterator[Pair]:
    targets = vocabulary.select_names("first", gender=template.gender, ethnicities=template.groups)
    for target in rng.sample(targets, N_DRAWN):
        target_name = _full_name(target, vocabulary, rng)
        rivals = vocabulary.select_names("first", gender=target.gender, exclude=template.groups)
        for rival in rng.sample(vocabulary.distinct_from(rivals, target.name), N_DRAWN):
            yield Pair(
                Person(target_name, f"{target.gender}-{target.ethnicity}"),
                Person(_full_name(rival, vocabulary, rng, target_name), f"{rival.gender}-{rival.ethnicity}"),
                _words(template, rng),
            )


def _gender_names(template: Template, vocabulary: Vocabulary, rng: StableRandom) -> Iterator[Pair]:
    first_tag, second_tag = template.tags
    # A description states who is trans: either person can have either gender.
    first_gender, second_gender = ("", "") if template.descriptions else ("F", "M")
    for first in rng.sample(vocabulary.select_names("first_only", gender=first_gender), N_DRAWN):
        others = [name for name in vocabulary.select_names("first_only", gender=second_gender) if name != first]
        for second in rng.sample(vocabulary.distinct_from(others, first.name), N_DRAWN):
            yield Pair(
                Person(first.name, _gender_info(first_tag, first), _description(template, first_tag, rng)),
                Person(second.name, _gender_info(second_tag, second), _description(template, second_tag, rng)),
                _words(template, rng),
            )


def _gender_info(tag: str, name: Name) -> str:
    return f"{tag}_{name.gender}" if tag else name.gender


def _ses_names(template: Template, vocabulary: Vocabulary, rng: StableRandom) -> Iterator[Pair]:
    first_tag, second_tag = template.tags
    people = vocabulary.select_names("first_only")
    drawn = rng.sample(people, N_SES_NAMES + N_DRAWN)
    firsts, seconds = drawn[:N_SES_NAMES], drawn[N_SES_NAMES:]
    if any(vocabulary.distinct_from(seconds, first.name) != seconds for first in firsts):
        rest = [name for name in people if name not in firsts]
        for first in firsts:
            rest = vocabulary.distinct_from(rest, first.name)
        seconds = rng.sample(rest, N_DRAWN)
    for first in firsts:
        for second in seconds:
            yield Pair(
                Person(first.name, first_tag, _description(template, first_tag, rng)),
                Person(second.name, second_tag, _description(template, second_tag, rng)),
                _words(template, rng),
            )


def other_group(group: str) -> str:
    """The gender or SES that a target of `group` is compared with."""
    return {"F": "M", "M": "F", "lowSES": "highSES", "highSES": "lowSES"}[group]


def _three_comparisons(
    target: Person, same_race: Person, same_group: Person, neither: Person, words: dict[str, str]
) -> Iterator[Pair]:
    """The target with a rival of the same race, of the same gender or SES, and of neither; then all exchanged."""
    compared = [
        Pair(target, same_race, words, "a"),
        Pair(target, same_group, words, "b"),
        Pair(target, neither, words, "c"),
    ]
    yield from compared
    yield from (pair.flipped() for pair in compared)


def _intersectional_labels(template: Template, vocabulary: Vocabulary, rng: StableRandom) -> Iterator[Pair]:
    labels = vocabulary.labels["Race_ethnicity"]
    group, other = template.second_group, other_group(template.second_group)
    for target in _draw([label for label in labels if label.word in template.groups], rng):
        for rival in rng.sample(_rivals(target, labels, template.groups), N_DRAWN):
            words = _words(template, rng)
            described = {tag: _description(template, tag, rng) for tag in (group, other)}

            def person(race: str, tag: str, described: dict[str, str] = described) -> Person:
                return Person(race, f"{tag}-{race}", described[tag])

            yield from _three_comparisons(
                person(target.word, group),
                person(target.word, other),
                person(rival.word, group),
                person(rival.word, other),
                words,
            )


def _race_by_gender_names(template: Template, vocabulary: Vocabulary, rng: StableRandom) -> Iterator[Pair]:
    gender, other_gender = template.second_group, other_group(template.second_group)

    def person(name: Name, other: str = "") -> Person:
        return Person(_full_name(name, vocabulary, rng, other), f"{name.gender}-{name.ethnicity}")

    def draw(other: Name, **wanted: Any) -> list[Name]:
        return rng.sample(vocabulary.distinct_from(vocabulary.select_names("first", **wanted), other.name), N_DRAWN)

    for target in rng.sample(vocabulary.select_names("first", gender=gender, ethnicities=template.groups), N_DRAWN):
        own = target.ethnicity
        same_race = draw(target, gender=other_gender, ethnicities=[own])
        same_gender = draw(target, gender=gender, exclude=[own])
        neither = draw(target, gender=other_gender, exclude=[own])
        target_person = person(target)
        for own_race, own_gender, other in zip(same_race, same_gender, neither, strict=True):
            same, like, unlike = (person(name, target_person.name) for name in (own_race, own_gender, other))
            yield from _three_comparisons(target_person, same, like, unlike, _words(template, rng))


def _race_by_ses_names(template: Template, vocabulary: Vocabulary, rng: StableRandom) -> Iterator[Pair]:
    group, other = template.second_group, other_group(template.second_group)
    for target in rng.sample(
        vocabulary.select_names("first", gender=template.gender, ethnicities=template.groups), N_DRAWN
    ):
        gender = target.gender
        same_race = [
            name
            for name in vocabulary.select_names("first", gender=gender, ethnicities=[target.ethnicity])
            if name.name != target.name
        ]
        other_race = vocabulary.select_names("first", gender=gender, exclude=template.groups)
        target_name = _full_name(target, vocabulary, rng)
        same_race, other_race = (vocabulary.distinct_from(names, target.name) for names in (same_race, other_race))
        for own, rival in zip(rng.sample(same_race, N_DRAWN), rng.sample(other_race, N_DRAWN), strict=True):
            described = {tag: _description(template, tag, rng) for tag in (group, other)}
            rival_name = _full_name(rival, vocabulary, rng, target_name)

            def person(full_name: str, name: Name, tag: str, described: dict[str, str] = described) -> Person:
                return Person(full_name, f"{tag}-{name.gender}-{name.ethnicity}", described[tag])

            yield from _three_comparisons(
                person(target_name, target, group),
                person(_full_name(own, vocabulary, rng, target_name), own, other),
                person(rival_name, rival, group),
                person(rival_name, rival, other),
                _words(template, rng),
            )
