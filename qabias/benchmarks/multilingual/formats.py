"""Prompt formats in a language: the likelihood of each answer's text, and the letter of an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from qabias.benchmarks.bbq.prompts import LETTERS
from qabias.benchmarks.multilingual.language import Language
from qabias.benchmarks.prompt_format import Example, PromptFormat

LanguageOf = Callable[[Example], Language]


def formats_in(language_of: LanguageOf) -> Mapping[str, PromptFormat]:
    """The formats `qa` and `letters` in the words of a language, by name."""

    def qa(example: Example) -> tuple[str, tuple[str, ...]]:
        words = language_of(example)
        prefix = f"{_asked(words, example)}\n{words.answer}"
        return prefix, tuple(f"{words.gap}{example[f'ans{place}']}" for place in range(3))

    def letters(example: Example) -> tuple[str, tuple[str, ...]]:
        words = language_of(example)
        listed = "\n".join(f"{letter}. {example[f'ans{place}']}" for place, letter in enumerate(LETTERS))
        prefix = f"{_asked(words, example)}\n{listed}\n\n{words.letters}\n{words.answer}"
        return prefix, tuple(f"{words.gap}{letter}" for letter in LETTERS)

    formats = (
        PromptFormat("qa", 1, "context, question, then each answer's text", qa, asks=("options",)),
        PromptFormat(
            "letters",
            1,
            "context, question, lettered answers; asks for the letter only",
            letters,
            lists_answers=True,
            asks=("options", "letter", "write"),
        ),
    )
    return {prompt_format.name: prompt_format for prompt_format in formats}


def _asked(words: Language, example: Example) -> str:
    return f"{example['context']}\n\n{words.question}{words.gap}{example['question']}"
