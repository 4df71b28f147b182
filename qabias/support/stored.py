"""JSON files that this package wrote, read with one message for whatever is not as it was written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from qabias.errors import QabiasError
from qabias.support.files import read_json, strict, write_json

DAMAGED = "is damaged"
SEAL = "sha256"
"""The field of a sealed file that holds the digest of all others."""

_MOST_SHOWN = 60


class Stored:
    """A value in a file, with its place."""

    def __init__(self, value: Any, path: Path, remedy: str, fault: str = DAMAGED, place: str = "") -> None:
        self.value = value
        self._path = path
        self._remedy = remedy
        self._fault = fault
        self._place = place

    def __getitem__(self, name: str) -> Stored:
        """A field of an object."""
        fields = self.object()
        if name not in fields:
            raise self._error(f"{self._of(name)} is missing")
        return self._part(name, fields[name])

    def get(self, name: str) -> Stored | None:
        """The same; None where there is no such field."""
        return self[name] if name in self.object() else None

    def fields(self) -> Iterator[tuple[str, Stored]]:
        """The fields of an object with their names."""
        for name, value in self.object().items():
            yield name, self._part(name, value)

    def items(self) -> list[Stored]:
        """The items of a list."""
        if not isinstance(self.value, list):
            self.refuse("a list")
        return [self._part(str(number), item) for number, item in enumerate(self.value)]

    def object(self) -> dict[str, Any]:
        """The value of an object."""
        if not isinstance(self.value, dict):
            self.refuse("an object")
        return dict(self.value)

    def text(self) -> str:
        """A text."""
        if not isinstance(self.value, str):
            self.refuse("a text")
        return str(self.value)

    def text_or_none(self) -> str | None:
        """A text, or None for null."""
        return None if self.value is None else self.text()

    def texts(self) -> tuple[str, ...]:
        """The texts of a list."""
        return tuple(item.text() for item in self.items())

    def named_texts(self) -> dict[str, str]:
        """The texts of an object."""
        return {name: field.text() for name, field in self.fields()}

    def flag(self) -> bool:
        """True or false."""
        if not isinstance(self.value, bool):
            self.refuse("true or false")
        return bool(self.value)

    def count(self) -> int:
        """A whole number that is not negative."""
        if type(self.value) is not int or self.value < 0:
            self.refuse("a count")
        return int(self.value)

    def whole(self, least: int = 0) -> int:
        """A whole number that is not too small."""
        if isinstance(self.value, bool) or not isinstance(self.value, int) or self.value < least:
            self.refuse(f"a whole number from {least} on")
        return int(self.value)

    def number_or_none(self) -> float | int | None:
        """A number, or None for null, which is an undefined score."""
        if self.value is not None and (isinstance(self.value, bool) or not isinstance(self.value, int | float)):
            self.refuse("a number or null")
        found: float | int | None = self.value
        return found

    def one_of(self, known: Sequence[str]) -> str:
        """A text that is one of some."""
        if self.text() not in known:
            self.refuse(f"one of {', '.join(map(repr, known))}")
        return self.text()

    def refuse(self, wanted: str) -> NoReturn:
        """Say what was there, and what should have been."""
        shown = repr(self.value)
        shown = shown if len(shown) <= _MOST_SHOWN else f"{shown[:_MOST_SHOWN]}..."
        where = self._place or "the whole"
        raise self._error(f"{where} is {shown}, not {wanted}")

    def _error(self, what: str) -> QabiasError:
        return QabiasError(f"{self._path} {self._fault}: {what}; {self._remedy}")

    def _of(self, name: str) -> str:
        return f"{self._place}.{name}" if self._place else name

    def _part(self, name: str, value: Any) -> Stored:
        return Stored(value, self._path, self._remedy, self._fault, self._of(name))


def write_sealed_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write an object with a digest of its fields, by which `read_stored` knows that it is as it was written."""
    fields = strict(content)
    write_json(path, {**fields, SEAL: _digest(fields)})


def read_stored(path: Path, remedy: str, fault: str = DAMAGED) -> Stored:
    """Read a file; one under seal must be as it was written, one without is older or was made by hand."""
    try:
        content = read_json(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise QabiasError(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise QabiasError(f"{path} {fault}: it is no JSON ({error}); {remedy}") from error
    if isinstance(content, dict) and content.pop(SEAL, None) not in (None, _digest(content)):
        raise QabiasError(f"{path} {fault}: it is not as it was written ({SEAL} differs); {remedy}")
    return Stored(content, path, remedy, fault)


def _digest(content: Mapping[str, Any]) -> str:
    """SHA-256 of the fields as JSON, in hexadecimal digits."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
