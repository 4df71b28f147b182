"""What identifies a local model: a digest of the files that its answers depend on."""

from __future__ import annotations

import hashlib
import json
import re
import time
from contextlib import suppress
from pathlib import Path

from qabias.errors import QabiasError
from qabias.models import loading
from qabias.support.files import cache_folder, read_json, require_regular_file, sha256_of
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
    folder = Path(loading.smollm2_source()[0] if model == loading.SMOLLM2 else model)
    lines = _lines(folder)
    base = revision = ""
    with suppress(OSError, ValueError, LookupError, TypeError):
        adapter = read_json(folder / "adapter_config.json")
        base, revision = str(adapter["base_model_name_or_path"]), str(adapter.get("revision") or "main")
    if base:
        lines += [*(f"base/{line}" for line in _lines(Path(base))), loading.cached_commit(base, revision)]
    return hashlib.sha256("".join(lines).encode()).hexdigest() if lines else ""


def _lines(folder: Path) -> list[str]:
    """The names of the files in a folder that affect answers, which do not depend on its path, and their digests."""
    paths = [path for pattern in ("*", "additional_chat_templates/*") for path in folder.glob(pattern)]
    affecting = sorted(path for path in paths if _AFFECTING.fullmatch(path.name) and not path.is_dir())
    return [
        f"{path.relative_to(folder).as_posix()}\0{_file_digest(require_regular_file(path))}\n" for path in affecting
    ]


def _file_digest(path: Path) -> str:
    """SHA-256 of a file; that of a large one is computed once, as long as the file is the same."""
    stated = path.stat()
    times = stated.st_mtime_ns, stated.st_ctime_ns
    if stated.st_size < _LARGE or time.time_ns() - max(times) <= _SETTLED_NS:
        return sha256_of(path)
    state = json.dumps([stated.st_size, *times, stated.st_ino, str(path.resolve())])
    kept = cache_folder() / "digests" / f"{hashlib.sha256(state.encode()).hexdigest()}.json"
    with suppress(OSError, QabiasError, LookupError):  # computed again if it was not kept, or is damaged
        return str(read_fields(kept, "")["digest"])
    digest = sha256_of(path)
    with suppress(OSError):
        write_stored(kept, {"digest": digest})
    return digest
