"""Shared by the Python functions: temporary folders, options as texts."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NoReturn, TypeAlias

from qabias.errors import QabiasError
from qabias.support.outputs import TEMPORARY

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


def warn_caller(texts: Iterable[str], above: int = 3) -> None:
    """Warn from a function of the API, at the line that calls it: so many frames above this one's body."""
    for text in texts:
        warnings.warn(text, stacklevel=above)


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


def upstream(folder: str | Path | None) -> str | None:
    """The given mirror of the published files, else the environment's."""
    return str(folder) if folder is not None else os.environ.get("QABIAS_UPSTREAM") or None
