"""Shared by the Python functions: temporary folders, options as texts."""

from __future__ import annotations

import json
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from pathlib import Path
from typing import NoReturn, ParamSpec, TypeAlias, TypeVar, cast

from qabias.building.sources import using_mirror
from qabias.errors import QabiasError
from qabias.support.outputs import TEMPORARY

P = ParamSpec("P")
R = TypeVar("R")
OptionValue: TypeAlias = "str | int | float | bool | list[object] | dict[str, object]"


class Scratch:
    """A temporary folder, removed with the last object that needs it, at the latest when Python ends."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=TEMPORARY))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)

    def __deepcopy__(self, memo: dict[int, object]) -> Scratch:
        """Share the folder with the copy."""
        return self

    def __reduce__(self) -> NoReturn:
        raise QabiasError(
            "a result in a temporary folder cannot be pickled.",
            "Save the result first: result.save(FOLDER).",
        )


def run_folder(output: str | Path | None) -> tuple[Path, Scratch | None]:
    """The folder of a run, and its owner if it is temporary."""
    if output is not None:
        return Path(output), None
    scratch = Scratch()
    return scratch.folder / "run", scratch


def warn_caller(texts: Iterable[str]) -> None:
    """Warn from a decorated function of the API, at the line that calls it."""
    for text in texts:
        warnings.warn(text, stacklevel=4)


def option_texts(option: Mapping[str, OptionValue] | None) -> dict[str, str]:
    """Options as command-line texts: texts unchanged, all else as JSON."""
    texts = {}
    for name, value in (option or {}).items():
        try:
            texts[name] = value if isinstance(value, str) else json.dumps(value)
        except TypeError as error:
            raise QabiasError(
                f"option {name!r} is {value!r}.", "Give a text, a number, True, False, or a list of these."
            ) from error
    return texts


def takes_mirror(function: Callable[P, R]) -> Callable[P, R]:
    """Let the argument `mirror` of a function hold within its call."""

    @wraps(function)
    def call(*args: P.args, **named: P.kwargs) -> R:
        with using_mirror(cast("str | Path | None", named.get("mirror"))):
            return function(*args, **named)

    return call
