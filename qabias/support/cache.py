"""The folder of this user in which files are kept that can be had again."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """`QABIAS_CACHE`, else `qabias` in the user's cache folder; it need not exist."""
    chosen = os.environ.get("QABIAS_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "qabias"
