"""What a server has answered, kept answer by answer, so that a run that was stopped asks nothing twice.

A file of JSON lines, `{"request": HASH, "answer": ANSWER}`. A line goes to the file in one write as soon as the answer
is there. A process that is killed meanwhile can leave at most a torn line: it is passed over when the file is read, and
its question is asked again.
"""

import hashlib
import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def request_hash(body: Mapping[str, Any]) -> str:
    """SHA-256 of the body of a request, in hexadecimal digits; the order of its fields does not matter."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


class Journal:
    """Answers by the hash of their request, in memory and in a file.

    Several threads, and several processes on one machine, may append to the same file.

    Args:
        path: The file, read now if it is there and made at the first answer; None keeps answers in memory only.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._file: int | None = None
        self._answers = _read(path) if path is not None and path.exists() else {}

    def __contains__(self, request: str) -> bool:
        return request in self._answers

    def __getitem__(self, request: str) -> Any:
        return self._answers[request]

    def get(self, request: str) -> Any:
        """The answer to a request; None where there is none."""
        return self._answers.get(request)

    def add(self, request: str, answer: Any) -> None:
        """Keep an answer; it is in the file when this returns.

        Raises:
            OSError: If the file cannot be written.
        """
        line = (json.dumps({"request": request, "answer": answer}) + "\n").encode()
        with self._lock:
            if self._path is not None:
                self._write(self._path, line)
            self._answers[request] = answer

    def close(self) -> None:
        """Close the file; the next answer opens it again."""
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None

    def _write(self, path: Path, line: bytes) -> None:
        if self._file is None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
            size = os.fstat(self._file).st_size
            if size and os.pread(self._file, 1, size - 1) != b"\n":
                line = b"\n" + line  # ends the line that a killed process left
        while line:  # a full disk takes a part and then raises
            line = line[os.write(self._file, line) :]


def _read(path: Path) -> dict[str, Any]:
    answers = {}
    for line in path.read_bytes().splitlines():
        try:
            entry = json.loads(line)
            answers[str(entry["request"])] = entry["answer"]
        except (ValueError, KeyError, TypeError):
            continue  # torn: asked again
    return answers
