"""What identifies a local model: a digest of the files that its answers depend on."""

from __future__ import annotations

import hashlib
import json
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from qabias.errors import QabiasError
from qabias.models.loading import cached_commit, model_folder
from qabias.support.files import cache_folder, read_json, regular
from qabias.support.stored import read_fields, write_stored

# Weights, configuration, adapter, tokenizer and chat template; neither the state of a training nor its results.
_AFFECTING = re.compile(
    r"(?!training_args|optimizer|scheduler).*\.(safetensors|bin|gguf|model|spm|jinja|codes|tiktoken)(\.index\.json)?"
    r"|(config|generation_config|adapter_config|tokenizer.*|special_tokens_map|added_tokens|chat_template)\.json"
    r"|(vocab|merges|dict|bpe).*\.(json|txt)"
)
_LARGE = 2**24  # bytes of a file from which its digest is kept
_SETTLED_NS = 2 * 10**9  # a younger file may change again without another time


def files_digest(model: str) -> str:
    """SHA-256 of the files of a local model, in hexadecimal digits; "" for one of the Hub, which has a commit."""
    files, commit = _files_of(model)
    lines = [f"{name}\0{_file_digest(path)}\n" for name, path in files.items()]
    return hashlib.sha256("".join([*lines, commit]).encode()).hexdigest() if lines else ""


def files_state(model: str) -> list[tuple[Any, ...]]:
    """What changes with the files of a local model, read in a moment."""
    return [_state_of(path) for path in _files_of(model)[0].values()]


def _files_of(model: str) -> tuple[dict[str, Path], str]:
    """The files of a local model, by names that do not depend on its path, and the commit of the base of an adapter."""
    folder = Path(model_folder(model))
    folders, commit = {"": folder}, ""
    with suppress(OSError, ValueError, LookupError, TypeError):
        adapter: dict[str, Any] = read_json(folder / "adapter_config.json")
        base = str(adapter["base_model_name_or_path"])
        folders["base/"] = Path(base)
        commit = cached_commit(base, adapter.get("revision"))
    paths = [
        (f"{where}{path.relative_to(place).as_posix()}", path)
        for where, place in folders.items()
        for path in (*place.glob("*"), *place.glob("additional_chat_templates/*"))
        if _AFFECTING.fullmatch(path.name) and not path.is_dir()
    ]
    return {name: regular(path) for name, path in sorted(paths)}, commit


def _file_digest(path: Path) -> str:
    """SHA-256 of a file; that of a large one is computed once, as long as the file is the same."""
    size, *times, _, _ = state = _state_of(path)
    if size < _LARGE:
        return _computed(path)
    kept = cache_folder() / "digests" / f"{hashlib.sha256(json.dumps(state).encode()).hexdigest()}.json"
    with suppress(OSError, QabiasError, LookupError):  # computed again if it was not kept, or is damaged
        return str(read_fields(kept, "")["digest"])
    digest = _computed(path)
    if time.time_ns() - max(times) > _SETTLED_NS and _state_of(path) == state:
        with suppress(OSError):
            write_stored(kept, {"digest": digest})
    return digest


def _state_of(path: Path) -> tuple[int, int, int, int, str]:
    stated = path.stat()
    return stated.st_size, stated.st_mtime_ns, stated.st_ctime_ns, stated.st_ino, str(path.resolve())


def _computed(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(2**20):
            digest.update(chunk)
    return digest.hexdigest()
