"""Stores every answer of a server: a resumed run repeats no request."""

import hashlib
import json
import os
import re
import threading
import time
import zlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qabias.support.files import MOST_LOG_BYTES, require_regular_file, sync_folder

REQUESTS_FILE = "requests.jsonl"
SERVED = "model"
"""What stands for a request in the entry that has the server's own name of the model."""
TEMPLATE = "template"
"""The same for the entry with the reason why prompts are sent without a chat template."""

_SECONDS_BETWEEN_SYNCS = 1.0
_SUMMED = re.compile(rb'(.*), "crc": "([0-9a-f]{8})"\}', re.DOTALL)


def request_hash(body: Mapping[str, Any]) -> str:
    """SHA-256 of the body of a request, in hexadecimal digits, for any order of its fields."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


class Journal:
    """Answers by the hash of their request, in memory and in a file."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._file: int | None = None
        self._synced = 0.0
        self._reading = threading.Lock()
        self._known: dict[str, Any] | None = None
        self._used: Counter[str] = Counter()

    @property
    def _answers(self) -> dict[str, Any]:
        """Read as late as possible: a command that waited for another one reuses its answers."""
        with self._reading:
            if self._known is None:
                is_there = self._path is not None and self._path.exists()
                lines = (
                    require_regular_file(self._path, MOST_LOG_BYTES).read_bytes().splitlines()
                    if self._path and is_there
                    else []
                )
                self._known = {}
                for entry in filter(None, map(_entry, lines)):
                    self._known[entry["request"]] = entry["answer"]
                    self._used.update(entry.get("usage", {}))
            return self._known

    def __contains__(self, request: str) -> bool:
        return request in self._answers

    def __getitem__(self, request: str) -> Any:
        return self._answers[request]

    def get(self, request: str) -> Any:
        """Return the answer to a request; None if it is missing."""
        return self._answers.get(request)

    @property
    def used(self) -> Counter[str]:
        """The number of answered requests, and the sum of what their answers used."""
        return Counter({"requests": len(self._answers.keys() - {SERVED, TEMPLATE})}) + self._used

    def add(self, request: str, answer: Any, usage: Mapping[str, int] | None = None) -> None:
        """Store an answer, and what it used; both are in the file on return."""
        entry = {"request": request, "answer": answer, **({"usage": dict(usage)} if usage else {})}
        begin = json.dumps(entry).encode()[:-1]
        line = b'%b, "crc": "%08x"}\n' % (begin, zlib.crc32(begin))
        known = self._answers
        with self._lock:
            if self._path is not None:
                self._write(self._path, line)
            known[request] = answer
            self._used.update(usage or {})

    def close(self) -> None:
        """Close the file; the next answer opens it again."""
        with self._lock:
            if self._file is not None:
                os.fsync(self._file)
                os.close(self._file)
                self._file = None

    def _write(self, path: Path, line: bytes) -> None:
        if self._file is None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
            self._synced = time.monotonic()
            sync_folder(path.parent)
            size = os.fstat(self._file).st_size
            if size and os.pread(self._file, 1, size - 1) != b"\n":
                line = b"\n" + line  # ends the line that a killed process left
        while line:  # a full disk takes a part and then raises
            line = line[os.write(self._file, line) :]
        if time.monotonic() - self._synced >= _SECONDS_BETWEEN_SYNCS:
            os.fsync(self._file)
            self._synced = time.monotonic()


def _entry(line: bytes) -> dict[str, Any] | None:
    """The content of a line; None if it is torn or damaged."""
    summed = _SUMMED.fullmatch(line)
    if summed is None or zlib.crc32(summed[1]) != int(summed[2], 16):
        return None
    entry: dict[str, Any] = json.loads(summed[1] + b"}")
    return entry
