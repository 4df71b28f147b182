"""Arguments of the wrong type, refused at the door: name, value, and what it may be."""

from __future__ import annotations

import os
from collections.abc import Mapping

from qabias.errors import QabiasError


def check_texts(**given: object) -> None:
    """Refuse arguments that are no texts."""
    for name, value in given.items():
        if not isinstance(value, str):
            raise QabiasError(f"{name} is {value!r}; give a text")


def check_optional_texts(**given: object) -> None:
    """Refuse arguments that are neither texts nor None."""
    check_texts(**{name: value for name, value in given.items() if value is not None})


def check_path(name: str, value: object) -> None:
    """Refuse what is no path."""
    if not isinstance(value, str | os.PathLike):
        raise QabiasError(f"{name} is {value!r}; give the path of a folder or file")


def check_optional_paths(**given: object) -> None:
    """Refuse arguments that are neither paths nor None."""
    for name, value in given.items():
        if value is not None:
            check_path(name, value)


def check_named(argument: str, value: object) -> None:
    """Refuse what is neither None nor values by name."""
    if value is not None and not (isinstance(value, Mapping) and all(isinstance(name, str) for name in value)):
        raise QabiasError(f"{argument} is {value!r}; give values by name, such as {argument}={{NAME: VALUE}}")


def check_rules_given(score: object) -> None:
    """Refuse rules for counting answers that are not texts by name."""
    check_named("score", score)
    if isinstance(score, Mapping):
        check_texts(**{f"score[{name!r}]": value for name, value in score.items()})
