"""A large JSON file read piece by piece, so that a log of any length fits into memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from qabias.errors import QabiasError

_CHUNK = 1 << 20
_DECODER = json.JSONDecoder()


def members(path: Path, streamed: str) -> Iterator[tuple[str, Any]]:
    """The members of the object that a file holds, in the order of the file.

    Args:
        path: A JSON file with one object.
        streamed: Name of a member that is a long list: its items are given one by one, each under that name.

    Yields:
        The name and the value of every member. No more of the file is in memory than the value that is being read.

    Raises:
        QabiasError: If the file is not JSON in UTF-8 or is cut off, or the streamed member is no list.
    """
    with path.open(encoding="utf-8") as file:
        text = _Text(file)
        try:
            text.take("{")
            while text.next_is_not("}"):
                name = text.value()
                text.take(":")
                if name == streamed:
                    text.take("[")
                    while text.next_is_not("]"):
                        yield name, text.value()
                        text.separate("]")
                    text.take("]")
                else:
                    yield name, text.value()
                text.separate("}")
        except json.JSONDecodeError as error:
            why = "it is cut off" if _is_cut(error) else str(error)
            raise QabiasError(f"{path}: not readable as JSON: {why}") from error
        except UnicodeDecodeError as error:
            raise QabiasError(f"{path}: not readable as UTF-8: {error}") from error


def _is_cut(error: json.JSONDecodeError) -> bool:
    """Whether what cannot be read is the end of the file: nothing, an open text, or a part of `false`."""
    return error.msg.startswith("Unterminated string") or len(error.doc) - error.pos < len("false")


class _Text:
    """The text of a file from where it has been read to.

    Args:
        file: The file, at its beginning.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._text = ""
        self._at = 0

    def take(self, mark: str) -> None:
        """Read a mark.

        Raises:
            json.JSONDecodeError: If something else stands there.
        """
        if self._next() != mark:
            raise json.JSONDecodeError(f"expected {mark!r}", self._text, self._at)
        self._at += 1

    def next_is_not(self, mark: str) -> bool:
        """Whether something else than a mark comes next; the mark is not read."""
        return self._next() != mark

    def separate(self, end: str) -> None:
        """Read the comma before the next value, or nothing where a mark ends the values."""
        if self.next_is_not(end):
            self.take(",")

    def value(self) -> Any:
        """Read one value.

        Raises:
            json.JSONDecodeError: If it is not whole, or none.
        """
        self._next()
        while True:
            try:
                found, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError:
                if not self._read_on():
                    raise
                continue
            # What ends where the text ends may go on in the next piece, such as a number.
            if end < len(self._text) or not self._read_on():
                self._at = end
                return found

    def _next(self) -> str:
        """The next mark, "" at the end of the file."""
        while True:
            while self._at < len(self._text) and self._text[self._at].isspace():
                self._at += 1
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._read_on():
                return ""

    def _read_on(self) -> bool:
        """Read the next piece, and forget what has been read; False at the end of the file.

        A piece is at least as long as what is left, so that the length of a value does not count twice.
        """
        self._text = self._text[self._at :]
        self._at = 0
        more = self._file.read(max(_CHUNK, len(self._text)))
        self._text += more
        return bool(more)
