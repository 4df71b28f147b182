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
_ADAPTER = "adapter_config.json"
_LARGE = 2**24  # bytes of a file from which its digest is kept
_SETTLED_NS = 2 * 10**9  # a younger file may change again without another time


def files_digest(model: str) -> str:
    """SHA-256 of the files of a local model, in hexadecimal digits; "" for one of the Hub, which has a commit."""
    folder = Path(model_folder(model))
    if not folder.exists():
        return ""
    base = _digest_of_base(folder / _ADAPTER) if (folder / _ADAPTER).is_file() else b""
    return hashlib.sha256(_digest_of(folder) + base).hexdigest()


def _digest_of(folder: Path) -> bytes:
    """The digest of a folder, wherever it is."""
    paths = (path for pattern in ("*", "additional_chat_templates/*") for path in sorted(folder.glob(pattern)))
    files = [path for path in paths if _AFFECTING.fullmatch(path.name) and not path.is_dir()]
    lines = [f"{path.relative_to(folder).as_posix()}\0{_file_digest(regular(path))}\n" for path in files]
    return hashlib.sha256("".join(lines).encode()).digest()


def _digest_of_base(path: Path) -> bytes:
    """The digest of the weights that an adapter changes, or their commit on the Hub; nothing if it names none."""
    with suppress(OSError, ValueError, LookupError, TypeError):
        adapter: dict[str, Any] = read_json(path)
        base = str(adapter["base_model_name_or_path"])
        return _digest_of(Path(base)) if Path(base).exists() else cached_commit(base, adapter.get("revision")).encode()
    return b""


def _file_digest(path: Path) -> str:
    """SHA-256 of a file; that of a large one is computed once, as long as the file is the same."""
    size, *times, _, _ = identity = _identity(path)
    if size < _LARGE:
        return _computed(path)
    kept = cache_folder() / "digests" / f"{hashlib.sha256(json.dumps(identity).encode()).hexdigest()}.json"
    with suppress(OSError, QabiasError, LookupError):  # computed again if it was not kept, or is damaged
        return str(read_fields(kept, "")["digest"])
    digest = _computed(path)
    if time.time_ns() - max(times) > _SETTLED_NS and _identity(path) == identity:
        with suppress(OSError):
            write_stored(kept, {"digest": digest})
    return digest


def _identity(path: Path) -> tuple[int, int, int, int, str]:
    stated = path.stat()
    return stated.st_size, stated.st_mtime_ns, stated.st_ctime_ns, stated.st_ino, str(path.resolve())


def _computed(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(2**20):
            digest.update(chunk)
    return digest.hexdigest()
