"""A JSON document read value by value, where it is too large to be held as a whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from qabias.errors import QabiasError

CHUNK = 1 << 20
"""Characters that are read at once; more where one value is longer."""

_DECODER = json.JSONDecoder()
_SPACE = " \t\r\n"
# An escape or a number that is cut off is noticed some characters before the end.
_NEAR_END = 32


class JsonStream:
    """Values of a JSON document, one after the other."""

    def __init__(self, path: Path, what: str, fix: str) -> None:
        self._path = path
        self._what = what
        self._fix = fix
        self._file = path.open(encoding="utf-8")
        self._text = ""
        self._at = 0

    def __enter__(self) -> JsonStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def next(self) -> str:
        """The next character that is no space, which is not taken; "" at the end."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in _SPACE:
                    return self._text[self._at]
                self._at += 1
            if not self._more():
                return ""

    def take(self, one_of: str) -> str:
        """Take the next character that is no space."""
        found = self.next()
        if not found or found not in one_of:
            raise self._damaged("its end is missing" if not found else f"{found!r} stands where it must not")
        self._at += 1
        return found

    def value(self) -> Any:
        """Take the next value."""
        self.next()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                cut = error.msg.startswith("Unterminated") or error.pos > len(self._text) - _NEAR_END
                if not cut:
                    raise self._damaged(error.msg) from error
                if not self._more():
                    raise self._damaged("its end is missing") from error
                continue
            except ValueError as error:  # Python reads whole numbers of no more than some thousand digits
                raise self._damaged("a number has too many digits") from error
            except RecursionError as error:
                raise self._damaged("its values are nested too deeply") from error
            # A number near the end of what is held may go on: of 1.5e-3, 1 is one.
            if end < len(self._text) - _NEAR_END or not self._more():
                self._at = end
                return value

    def _more(self) -> bool:
        """Read on and forget what was taken; False at the end. It doubles, so that a long value is no long wait."""
        held = self._text[self._at :]
        try:
            read = self._file.read(max(CHUNK, len(held)))
        except UnicodeDecodeError as error:
            raise self._damaged("it is not UTF-8") from error
        if read:
            self._text, self._at = held + read, 0
        return bool(read)

    def _damaged(self, why: str) -> QabiasError:
        return QabiasError(f"{self._path}: {self._what} that is cut off or damaged: {why}; {self._fix}")


def keys(stream: JsonStream) -> Iterator[str]:
    """The keys of the object that comes next; whoever asks for the next key has taken the value of the last one."""
    stream.take("{")
    if stream.next() == "}":
        stream.take("}")
        return
    while True:
        key = stream.value()
        stream.take(":")
        yield key
        if stream.take(",}") == "}":
            return


def items(stream: JsonStream) -> Iterator[Any]:
    """The items of the array that comes next; none where it is null."""
    if stream.next() == "n":
        stream.value()
        return
    stream.take("[")
    if stream.next() == "]":
        stream.take("]")
        return
    while True:
        yield stream.value()
        if stream.take(",]") == "]":
            return
