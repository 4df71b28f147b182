"""The files of JBBQ, which its authors send and nobody may pass on: where they lie, and which they are.

There is nothing to download and no published id to verify them by. They are read as they are, and named by their
content: runs of the same files have the same signature, others do not.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from qabias.errors import QabiasError

CATEGORIES = ("Age", "Disability_status", "Gender_identity", "Physical_appearance", "Sexual_orientation")

ASK = "ask its authors for it by the form that https://github.com/ynklab/JBBQ_data links to"

_FOLDERS = ("", "data", "ynklab/JBBQ_data", "ynklab/JBBQ_data/data")


def folder_of(upstream_dir: str | None) -> Path:
    """The folder of the files `CATEGORY.jsonl`."""
    given = upstream_dir or os.environ.get("QABIAS_UPSTREAM")
    if not given:
        raise QabiasError(f"JBBQ may not be passed on: {ASK}, and name its folder with --upstream-dir")
    named = Path(given).expanduser()
    root = named.parent if named.is_file() else named
    for folder in _FOLDERS:
        if any(file_of(root / folder, category).is_file() for category in CATEGORIES):
            return root / folder
    names = ", ".join(f"{category}.jsonl" for category in CATEGORIES)
    raise QabiasError(f"{named}: holds no file of JBBQ ({names}); JBBQ may not be passed on: {ASK}")


def file_of(folder: Path, category: str) -> Path:
    """The file of a category in the folder of the files."""
    return folder / f"{category}.jsonl"


def digest_of(folder: Path) -> str:
    """SHA-256, in hexadecimal digits, of the names and contents of all files of JBBQ that a folder holds."""
    digest = hashlib.sha256()
    for category in CATEGORIES:
        file = file_of(folder, category)
        if file.is_file():
            try:
                content = file.read_bytes()
            except OSError as error:
                raise QabiasError(f"{file}: cannot be read: {error}") from error
            digest.update(f"{category} {len(content)}\n".encode() + content)
    return digest.hexdigest()
