"""A language as data: words of prompts, and phrases for parsing written answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from qabias.answers.phrases import ENGLISH, Phrases
from qabias.benchmarks.bbq.prompts import LETTERS
from qabias.benchmarks.prompt_format import Example, PromptFormat
from qabias.building.templating import read_yaml
from qabias.errors import QabiasError
from qabias.support.suggest import unknown

FOLDER = Path(__file__).parent / "languages"

_CODES = """
aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo es
et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki
kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no
nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta te
tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu
"""
ISO_639_1 = frozenset(_CODES.split())
"""Language codes of two letters."""

_WORDS = {"unknown": "wordings", "articles": "articles"}
_PATTERNS = {
    "unknown_phrases": "unknown",
    **{name: name for name in ("refusals", "unable", "prejudice", "stated", "endings")},
    **{name: name for name in ("rejected", "doubts", "negations", "joins")},
}
_KEYS = ("name", "read_by", "prompts", *_WORDS, *_PATTERNS)
_PROMPT_KEYS = ("question", "answer", "letters", "gap")


@dataclass(frozen=True)
class Language:
    """A language."""

    code: str
    name: str
    question: str
    answer: str
    letters: str
    gap: str = " "
    phrases: Phrases = ENGLISH


@cache
def load_language(code: str) -> Language:
    """The language of that code."""
    known = sorted(path.stem for path in FOLDER.glob("*.yaml"))
    if code not in known:
        raise unknown("language", code, known)
    return read_language(FOLDER / f"{code}.yaml")


def read_language(path: Path) -> Language:
    """A language from its file, whose name is the code."""
    try:
        content: dict[str, Any] = read_yaml(path)
        prompts = content["prompts"]
        for fields, keys in ((content, _KEYS), (prompts, _PROMPT_KEYS)):
            for key in fields:
                if key not in keys:
                    raise unknown(f"key in {path}:", str(key), keys)
        return Language(
            *(path.stem, content["name"], prompts["question"], prompts["answer"], prompts["letters"]),
            gap=prompts.get("gap", " "),
            phrases=_phrases(path, content),
        )
    except OSError as error:
        raise QabiasError(f"{path}: cannot be read: {error}.", "Make it readable.") from error
    except (KeyError, TypeError) as error:
        raise QabiasError(f"{path}: lacks {error}.", f"Add it, as in the files in {FOLDER}.") from error


def _phrases(path: Path, content: dict[str, Any]) -> Phrases:
    """The phrases of a file, with every pattern checked."""
    phrases = {}
    for key, field in (_WORDS | _PATTERNS).items():
        entries = content.get(key, [])
        if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
            raise QabiasError(f"{path}: {key} is not a list of texts.", "Put each in quotation marks.")
        for pattern in entries if key in _PATTERNS else ():
            try:
                re.compile(pattern)
            except re.error as error:
                problem = f"{path}: {key}: {pattern!r} is not a regular expression: {error}."
                raise QabiasError(problem, "Correct it.") from error
        phrases[field] = tuple(entries)
    return Phrases(**phrases)


def formats_in(language_of: Callable[[Example], Language]) -> Mapping[str, PromptFormat]:
    """The formats `qa` and `letters` in the words of a language, by name."""

    def qa(example: Example) -> tuple[str, tuple[str, ...]]:
        words = language_of(example)
        return f"{asked(words, example)}\n{words.answer}", tuple(
            f"{words.gap}{example[f'ans{place}']}" for place in range(3)
        )

    def letters(example: Example) -> tuple[str, tuple[str, ...]]:
        words = language_of(example)
        listed = "\n".join(f"{letter}. {example[f'ans{place}']}" for place, letter in enumerate(LETTERS))
        prefix = f"{asked(words, example)}\n{listed}\n\n{words.letters}\n{words.answer}"
        return prefix, tuple(f"{words.gap}{letter}" for letter in LETTERS)

    def asked(words: Language, example: Example) -> str:
        return f"{example['context']}\n\n{words.question}{words.gap}{example['question']}"

    asks = ("answer-logprob", "letter-logprob", "letter")
    described = "context, question, lettered answers; asks for the letter only"
    return {
        "qa": PromptFormat("qa", 1, "context, question, then each answer's text", qa, asks=asks[:1]),
        "letters": PromptFormat("letters", 1, described, letters, lists_answers=True, asks=asks),
    }
