"""The five prompts of KoBBQ's authors (Jin et al. 2024) as formats, read from the published file.

Importing this reads nothing: the file is fetched when the first of the formats is rendered.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from qabias.benchmarks.bbq.prompts import FIVE
from qabias.benchmarks.prompt_format import Example, PromptFormat
from qabias.building.sources import fetch

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
    """The five prompts, read from the published file when one is first needed."""

    def __init__(self) -> None:
        self._upstream_dir: str | None = None
        self._prompts: dict[int, Prompt] = {}

    def look_in(self, upstream_dir: str | None) -> None:
        """Take the file from a mirror, see `qabias.building.sources.fetch`; None changes nothing."""
        self._upstream_dir = upstream_dir or self._upstream_dir

    def prompt(self, number: int) -> Prompt:
        """A prompt by its number in the file, from 1 on."""
        if not self._prompts:
            path = fetch(REPOSITORY, PATH, upstream_dir=self._upstream_dir)
            with path.open(encoding="utf-8", newline="") as file:
                self._prompts = {int(row["prompt_id"]): _prompt(row) for row in csv.DictReader(file, delimiter="\t")}
        return self._prompts[number]


PROMPTS = PublishedPrompts()
"""Where the formats have their texts from; a loader tells it the mirror of the user."""


def formats(prompts: PublishedPrompts = PROMPTS) -> Mapping[str, PromptFormat]:
    """The formats `kobbq_1` to `kobbq_5` and the set `five` of them, by name."""
    five = tuple(
        PromptFormat(
            f"kobbq_{number}",
            1,
            f"prompt {number} of KoBBQ's authors, with its own wording of UNKNOWN; asks for the letter only",
            partial(_render, prompts, number),
            lists_answers=True,
            asks=("options", "letter", "write"),
        )
        for number in NUMBERS
    )
    about = f"each of {', '.join(wording.name for wording in five)}; scores are means over them"
    all_five = replace(five[0], name=FIVE, description=about, wordings=five)
    return {prompt_format.name: prompt_format for prompt_format in (*five, all_five)}


def _prompt(row: Mapping[str, str]) -> Prompt:
    """A prompt of a row of the file, in which newlines are written as a backslash and the letter n."""
    first, second, third = (_label(row[column]) for column in _PLACES)
    return Prompt(row["prompt"].replace("\\n", "\n"), (first, second, third), row["unknown"])


def _label(shown: str) -> str:
    """The letter in what stands before an answer, such as "A: " or "(A) "."""
    return re.sub("[^A-Ca-c]", "", shown)


def _render(prompts: PublishedPrompts, number: int, example: Example) -> tuple[str, tuple[str, ...]]:
    prompt = prompts.prompt(number)
    # The released samples have the wording of the first prompt.
    released = prompts.prompt(1).unknown
    given = (example[f"ans{place}"] for place in _PLACES.values())
    answers = [prompt.unknown if answer == released else answer for answer in given]

    def fill(slot: re.Match[str]) -> str:
        name = slot[1].lower()
        return answers[_PLACES[name]] if name in _PLACES else str(example[name])

    return _SLOT.sub(fill, prompt.text), tuple(f" {label}" for label in prompt.labels)
