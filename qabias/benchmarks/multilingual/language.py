"""A language in data: how questions are put in it, and how its texts say that nobody can tell, or decline.

The words are in `languages/CODE.yaml`:

    name: Dutch
    read_by: who wrote the words and who read them a second time
    prompts:                        # the words around context, question and answers
      question: "Vraag:"
      answer: "Antwoord:"
      letters: what asks for the letter of an answer alone
    unknown: [texts that, whole, say that nobody can tell]
    unknown_phrases: [regular expressions of a text in lower case that say so]
    refusals: [regular expressions of how a text begins that declines to answer]
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from qabias.errors import QabiasError
from qabias.support.suggest import unknown

FOLDER = Path(__file__).parent / "languages"
"""The languages that come with this package."""


@dataclass(frozen=True)
class Language:
    """A language.

    Attributes:
        code: ISO 639-1 code, e.g. "nl".
        name: Its English name.
        question: What stands before a question.
        answer: What stands before an answer.
        letters: Sentence that asks for the letter of an answer and nothing else.
        unknown: Texts that, whole, say that nobody can tell, in lower case.
        unknown_phrases: Regular expressions that say so inside a text in lower case.
        refusals: Regular expressions of the beginning of a text, in lower case, that declines to answer.
    """

    code: str
    name: str
    question: str
    answer: str
    letters: str
    unknown: tuple[str, ...] = ()
    unknown_phrases: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()


@cache
def load_language(code: str) -> Language:
    """The language of that code.

    Raises:
        QabiasError: If this package does not have it.
    """
    known = sorted(path.stem for path in FOLDER.glob("*.yaml"))
    if code not in known:
        raise unknown("language", code, known)
    return read_language(FOLDER / f"{code}.yaml")


def read_language(path: Path) -> Language:
    """A language from its file; the name of the file is its code.

    Raises:
        QabiasError: If the file cannot be read, or lacks something.
    """
    try:
        content: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
        prompts = content["prompts"]
        return Language(
            code=path.stem,
            name=content["name"],
            question=prompts["question"],
            answer=prompts["answer"],
            letters=prompts["letters"],
            **{name: tuple(content.get(name, ())) for name in ("unknown", "unknown_phrases", "refusals")},
        )
    except (OSError, yaml.YAMLError) as error:
        raise QabiasError(f"{path}: cannot be read: {error}") from error
    except (KeyError, TypeError) as error:
        raise QabiasError(f"{path}: lacks {error}; see the files in {FOLDER} for what a language has") from error
