"""A model that comes as GGUF, kept as safetensors in the user's cache, because reading GGUF takes most of a short run.

The folder of a converted model is that of a model of transformers, with `sha256.json`: the digest of each of its files.
They are checked whenever the folder is used; a folder that does not agree is made again.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from qabias.support.files import cache_folder

_DIGESTS = "sha256.json"
# Raise it when converted models are made in another way; older ones are then not used.
_VERSION = 1
_BLOCK = 2**22  # bytes

_log = logging.getLogger(__name__)


def converted(name: str, digest: str, convert: Callable[[Path], None]) -> Path | None:
    """The folder of a converted model; it is converted where that has not been done."""
    folder = cache_folder() / "models" / f"{name}-{digest[:16]}-{_VERSION}"
    if _is_whole(folder):
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as made:
            temporary = Path(made) / folder.name
            temporary.mkdir()
            convert(temporary)
            digests = {path.name: _sha256(path) for path in sorted(temporary.iterdir())}
            (temporary / _DIGESTS).write_text(json.dumps(digests, indent=2), encoding="utf-8")
            _put_in_place(temporary, folder)
    except OSError as error:
        _log.warning("%s cannot be kept as safetensors and is converted at every start: %s", name, error)
        return None
    return folder


def _put_in_place(made: Path, folder: Path) -> None:
    """Rename a folder; where another process was faster, its folder stays."""
    if folder.exists() and not _is_whole(folder):
        _log.warning("%s is damaged and made again", folder)
        shutil.rmtree(folder)
    try:
        os.rename(made, folder)
    except OSError:
        if not _is_whole(folder):
            raise


def _is_whole(folder: Path) -> bool:
    try:
        digests = json.loads((folder / _DIGESTS).read_text(encoding="utf-8"))
        return isinstance(digests, dict) and all(_sha256(folder / name) == value for name, value in digests.items())
    except (OSError, ValueError):
        return False


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
