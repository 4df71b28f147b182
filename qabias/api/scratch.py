"""Temporary folders that live as long as what was measured in them."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path


class Scratch:
    """A temporary folder that is removed when nobody holds this object any more, at the latest at the end of Python."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="qabias-"))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)


def run_folder(output: str | Path | None) -> tuple[Path, Scratch | None]:
    """The folder of a run, and what holds it where it is a temporary one.

    Args:
        output: The folder that was asked for; None for a temporary one.
    """
    if output is not None:
        return Path(output), None
    scratch = Scratch()
    return scratch.folder / "run", scratch
