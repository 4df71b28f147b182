"""KoBBQ (Jin et al. 2024): BBQ for South Korea, in Korean."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from qabias.benchmarks.bbq.prompts import FIVE
from qabias.benchmarks.multilingual.benchmark import SetOrigin
from qabias.benchmarks.multilingual.rows import Answer, Item
from qabias.benchmarks.multilingual.sets import ReleasedSet, read_csv
from qabias.benchmarks.prompt_format import Example, PromptFormat
from qabias.building.sources import fetch

UNKNOWN = 2
"""Number of the UNKNOWN answer: the last in every sample."""

_SAMPLE_ID = re.compile(
    r"(?P<category>.+)-(?P<template>\d+)(?P<version>[a-z])-(?P<sample>\d+)-(?P<context>amb|dis)-(?P<question>bsd|cnt)"
)


def _item(category: str, sample: re.Match[str], row: Mapping[str, str], template: Mapping[str, str]) -> Item:
    choices: list[str] = ast.literal_eval(row["choices"])
    negative = sample["question"] == "bsd"
    # The column has the stereotyped answer to this question.
    biased = choices[:UNKNOWN].index(row["biased_answer"])
    target = biased if negative else 1 - biased
    groups = template["Target_group"]
    other = template["N2_info"] if template["N1_info"] == groups else template["N1_info"]
    people = [Answer(choices[place], groups if place == target else other) for place in range(UNKNOWN)]
    return Item(
        category=category,
        template=sample["template"],
        set=f"{sample['version']}-{sample['sample']}",
        negative=negative,
        ambiguous=sample["context"] == "amb",
        context=row["context"],
        question=row["question"],
        answers=[*people, Answer(choices[UNKNOWN], "unknown")],
        right=choices.index(row["answer"]),
        target=target,
        unknown=UNKNOWN,
        stereotype=template["Stereotype"],
        groups=[group.strip() for group in groups.split(",")],
        subcategory=row["label_annotation"],
        version=sample["version"],
        source=template["Reference"],
    )


# The prompts of the authors

REPOSITORY = "naver-ai/KoBBQ"
PATH = "evaluation/0_evaluation_prompts.tsv"
NUMBERS = range(1, 6)

# Prompt 3 names two of its slots in capitals.
_SLOT = re.compile(r"\{(context|question|a|b|c)\}", re.IGNORECASE)
_PLACES = {"a": 0, "b": 1, "c": 2}


class Prompt(NamedTuple):
    """A published prompt."""

    text: str
    labels: tuple[str, str, str]
    unknown: str


def formats() -> Mapping[str, PromptFormat]:
    """The formats `kobbq_1` to `kobbq_5` and their set `five`, by name. The published file is read when needed."""

    @cache
    def prompts() -> dict[int, Prompt]:
        path = fetch(REPOSITORY, PATH)
        return {int(row["prompt_id"]): _prompt(row) for row in read_csv(path, "\t")}

    five = tuple(
        PromptFormat(
            f"kobbq_{number}",
            1,
            f"prompt {number} of KoBBQ's authors, with its own wording of UNKNOWN; asks for the letter only",
            partial(_render, prompts, number),
            lists_answers=True,
            asks=("answer-logprob", "letter-logprob", "letter"),
        )
        for number in NUMBERS
    )
    description = f"each of {', '.join(variant.name for variant in five)}; scores are means over them"
    all_five = replace(five[0], name=FIVE, description=description, variants=five)
    return {prompt_format.name: prompt_format for prompt_format in (*five, all_five)}


def _prompt(row: Mapping[str, str]) -> Prompt:
    """A prompt of a row, whose newlines are a backslash and an n."""
    # Labels are such as "A: " or "(A) ".
    first, second, third = (re.sub("[^A-Ca-c]", "", row[column]) for column in _PLACES)
    return Prompt(row["prompt"].replace("\\n", "\n"), (first, second, third), row["unknown"])


def _render(prompts: Callable[[], Mapping[int, Prompt]], number: int, example: Example) -> tuple[str, tuple[str, ...]]:
    prompt = prompts()[number]
    # Released samples have the first prompt's wording.
    released = prompts()[1].unknown
    texts = (example[f"ans{place}"] for place in _PLACES.values())
    answers = [prompt.unknown if answer == released else answer for answer in texts]

    def fill(slot: re.Match[str]) -> str:
        name = slot[1].lower()
        return answers[_PLACES[name]] if name in _PLACES else str(example[name])

    return _SLOT.sub(fill, prompt.text), tuple(f" {label}" for label in prompt.labels)


class KoreanQuestions(ReleasedSet):
    """KoBBQ: Korean Bias Benchmark for Question Answering (Jin et al. 2024)."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.formats = {**self.formats, **formats()}

    def formats_from(self, origin: SetOrigin) -> Mapping[str, PromptFormat]:
        """The authors' prompts from the mirror of the origin."""
        return {**self.formats, **formats()}

    def items(self, category: str, *files: Path) -> Iterator[Item]:
        """The items of one category. Those of a set are neighbors, sets are in file order."""
        samples, templates = (read_csv(path, "\t") for path in files)
        template_of = {(row["Category"].lower(), int(row["ID"]), row["version"]): row for row in templates}
        sets: dict[str, list[Item]] = {}
        for row in samples:
            sample = _SAMPLE_ID.fullmatch(row["sample_id"])
            assert sample is not None
            if sample["category"] == category.lower():
                template = template_of[sample["category"], int(sample["template"]), sample["version"]]
                item = _item(category, sample, row, template)
                sets.setdefault(f"{item.template}/{item.set}", []).append(item)
        return chain.from_iterable(sets.values())


BENCHMARK = KoreanQuestions("kobbq")
