"""Caches a GGUF model as safetensors, because reading GGUF takes most of a short run."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from qabias.support.files import cache_folder

_log = logging.getLogger(__name__)


def converted(name: str, digest: str, convert: Callable[[Path], None]) -> Path | None:
    """Return the folder of a converted model, made if it is not there; None if the cache cannot be written."""
    folder = cache_folder() / "models" / f"{name}-{digest[:16]}"
    try:
        if not folder.exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as made:
                temporary = Path(made) / folder.name
                temporary.mkdir()
                convert(temporary)
                _put_in_place(temporary, folder)
    except OSError as error:
        _log.warning("%s cannot be kept as safetensors and is converted at every start: %s", name, error)
        return None
    return folder


def _put_in_place(made: Path, folder: Path) -> None:
    """Rename a folder; if another process was faster, its folder stays."""
    try:
        os.rename(made, folder)
    except OSError:
        if not folder.exists():
            raise
