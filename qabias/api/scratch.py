"""Temporary folders that live as long as what was measured in them."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path
from typing import NoReturn

from qabias.errors import QabiasError


class Scratch:
    """A temporary folder that is removed when nobody holds this object any more, at the latest at the end of Python."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="qabias-"))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)

    def __deepcopy__(self, memo: dict[int, object]) -> Scratch:
        """A copy of a result is in the same folder."""
        return self

    def __reduce__(self) -> NoReturn:
        raise QabiasError(
            "a result in a temporary folder cannot be pickled, because the folder goes with it; give the run an "
            "output=..., or save the result first: result.save(FOLDER)"
        )


def run_folder(output: str | Path | None) -> tuple[Path, Scratch | None]:
    """The folder of a run, and what holds it where it is a temporary one."""
    if output is not None:
        return Path(output), None
    scratch = Scratch()
    return scratch.folder / "run", scratch
