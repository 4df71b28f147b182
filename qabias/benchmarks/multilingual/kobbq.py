"""KoBBQ (Jin et al. 2024): BBQ for South Korea, in Korean."""

from __future__ import annotations

import ast
import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pyarrow as pa

from qabias.benchmarks.bbq.prompts import FIVE
from qabias.benchmarks.multilingual.benchmark import ORDERS, PublishedQuestions, SetOrigin
from qabias.benchmarks.multilingual.rows import Answer, Item, rows_of, table_of
from qabias.benchmarks.prompt_format import Example, PromptFormat
from qabias.building.sources import fetch

CATEGORIES = (
    *("Age", "Disability_status", "Domestic_area_of_origin", "Educational_background", "Family_structure"),
    *("Gender_identity", "Physical_appearance", "Political_orientation", "Race_ethnicity_nationality", "Religion"),
    *("SES", "Sexual_orientation"),
)
"""The categories, spelled and ordered like the file of templates."""

UNKNOWN = 2
"""Number of the UNKNOWN answer: the last in every sample."""

_SAMPLE_ID = re.compile(
    r"(?P<category>.+)-(?P<template>\d+)(?P<version>[a-z])-(?P<sample>\d+)-(?P<context>amb|dis)-(?P<question>bsd|cnt)"
)


def read_items(samples: Path, templates: Path, category: str) -> list[Item]:
    """The items of one category. Those of a set are neighbors, sets are in file order."""
    template_of = {(row["Category"].lower(), int(row["ID"]), row["version"]): row for row in _rows(templates)}
    sets: dict[str, list[Item]] = {}
    for row in _rows(samples):
        sample = _SAMPLE_ID.fullmatch(row["sample_id"])
        assert sample is not None
        if sample["category"] == category.lower():
            template = template_of[sample["category"], int(sample["template"]), sample["version"]]
            item = _item(category, sample, row, template)
            sets.setdefault(f"{item.template}/{item.set}", []).append(item)
    return [item for of_set in sets.values() for item in of_set]


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file, delimiter="\t")


def _item(category: str, sample: re.Match[str], row: Mapping[str, str], template: Mapping[str, str]) -> Item:
    choices: list[str] = ast.literal_eval(row["choices"])
    negative = sample["question"] == "bsd"
    # The column has the stereotyped answer to this question.
    biased = choices[:UNKNOWN].index(row["biased_answer"])
    target = biased if negative else 1 - biased
    groups = template["Target_group"]
    other = template["N2_info"] if template["N1_info"] == groups else template["N1_info"]
    first, second = (Answer(choices[place], groups if place == target else other) for place in range(UNKNOWN))
    return Item(
        category=category,
        template=sample["template"],
        set=f"{sample['version']}-{sample['sample']}",
        negative=negative,
        ambiguous=sample["context"] == "amb",
        context=row["context"],
        question=row["question"],
        answers=(first, second, Answer(choices[UNKNOWN], "unknown")),
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


class PublishedPrompts:
    """The five prompts, read from the published file when first needed."""

    @cached_property
    def by_number(self) -> dict[int, Prompt]:
        """The prompts by their numbers in the file, from 1."""
        path = fetch(REPOSITORY, PATH)
        return {int(row["prompt_id"]): _prompt(row) for row in _rows(path)}


PROMPTS = PublishedPrompts()
"""The texts of the formats."""


def formats(prompts: PublishedPrompts = PROMPTS) -> Mapping[str, PromptFormat]:
    """The formats `kobbq_1` to `kobbq_5` and their set `five`, by name."""
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
    description = f"each of {', '.join(wording.name for wording in five)}; scores are means over them"
    all_five = replace(five[0], name=FIVE, description=description, wordings=five)
    return {prompt_format.name: prompt_format for prompt_format in (*five, all_five)}


def _prompt(row: Mapping[str, str]) -> Prompt:
    """A prompt of a row, whose newlines are a backslash and an n."""
    # Labels are such as "A: " or "(A) ".
    first, second, third = (re.sub("[^A-Ca-c]", "", row[column]) for column in _PLACES)
    return Prompt(row["prompt"].replace("\\n", "\n"), (first, second, third), row["unknown"])


def _render(prompts: PublishedPrompts, number: int, example: Example) -> tuple[str, tuple[str, ...]]:
    prompt = prompts.by_number[number]
    # Released samples have the first prompt's wording.
    released = prompts.by_number[1].unknown
    texts = (example[f"ans{place}"] for place in _PLACES.values())
    answers = [prompt.unknown if answer == released else answer for answer in texts]

    def fill(slot: re.Match[str]) -> str:
        name = slot[1].lower()
        return answers[_PLACES[name]] if name in _PLACES else str(example[name])

    return _SLOT.sub(fill, prompt.text), tuple(f" {label}" for label in prompt.labels)


class KoreanQuestions(PublishedQuestions):
    """KoBBQ: Korean Bias Benchmark for Question Answering (Jin et al. 2024)."""

    categories = CATEGORIES
    options: Mapping[str, Sequence[str]] = MappingProxyType({"answers": ORDERS, "part": ("test", "all")})

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.formats = {**self.formats, **formats()}

    def table(self, category: str, origin: SetOrigin) -> pa.Table:
        """The samples of one category, set by set."""
        samples, templates = (
            self.fetch(f"data/KoBBQ_{name}.tsv", origin) for name in (f"{origin.options['part']}_samples", "templates")
        )
        return table_of(rows_of(read_items(samples, templates, category), origin.shuffle(self.name, category, "order")))


BENCHMARK = KoreanQuestions("kobbq")
