"""JSON files of this package: with a checksum, read as typed values."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import types
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from qabias.errors import QabiasError
from qabias.support.files import read_json, strict, strict_text, write_text
from qabias.support.suggest import shortened

T = TypeVar("T")

CHECKSUM = "sha256"

_IN_WORDS = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    type(None): "null",
    tuple: "a list",
}


def checked_text(content: Mapping[str, Any]) -> str:
    """The text of a file with the checksum of its fields."""
    fields = strict(dict(content))
    return strict_text({**fields, CHECKSUM: _checksum(fields)})


def write_stored(path: Path, content: Mapping[str, Any]) -> None:
    """Write an object with the checksum of its fields."""
    write_text(path, checked_text(content))


def read_fields(path: Path, remedy: str) -> dict[str, Any]:
    """Read an object and compare its checksum."""
    try:
        content = read_json(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise QabiasError(f"{path} cannot be read: {error.strerror or error}.", "Make it readable.") from error
    except ValueError as error:
        raise QabiasError(f"{path} is damaged: it is not JSON ({error}).", f"{remedy}.") from error
    if not isinstance(content, dict):
        raise QabiasError(f"{path} is damaged: it holds {shortened(content)}, not an object.", f"{remedy}.")
    checksum = content.pop(CHECKSUM, None)
    if checksum != _checksum(content):
        fault = "differs" if checksum else "is missing"
        raise QabiasError(f"{path} is damaged: its {CHECKSUM} {fault}.", f"{remedy}.")
    return content


def read_stored(path: Path, kind: type[T], remedy: str) -> T:
    """Read an object as a dataclass; raises as `read_fields` does, and for a field of a wrong type."""
    return typed(kind, read_fields(path, remedy), path, remedy)


def typed(kind: type[T], fields: Mapping[str, Any], path: Path, remedy: str) -> T:
    """Return the fields of a file as a dataclass."""
    try:
        return parse(kind, fields)
    except ValueError as error:
        raise QabiasError(f"{path} is damaged: {error}.", f"{remedy}.") from error


def parse(kind: type[T], content: Any) -> T:
    """JSON as a value of a type: dataclasses and named tuples from objects, tuples from lists."""
    result: T = _parse(kind, content, "")
    return result


def _parse(kind: Any, value: Any, place: str) -> Any:
    if kind is Any:
        return value
    origin, arguments = _structure(kind)
    if origin in (Union, types.UnionType):
        fitting = [one for one in arguments if _fits(one, value)]
        if not fitting:
            raise _mismatch(place, value, " or ".join(_in_words(one) for one in arguments))
        return _parse(fitting[0], value, place)
    if not _fits(kind, value):
        raise _mismatch(place, value, _in_words(kind))
    if origin is tuple:
        return tuple(_parse(arguments[0], item, f"{place}.{number}") for number, item in enumerate(value))
    if origin is Mapping:
        return {name: _parse(arguments[1], item, f"{place}.{name}") for name, item in value.items()}
    fields = _fields(kind)
    if not fields:
        return value
    for name in {**fields, **value}:
        if name not in value:
            raise ValueError(f"{_inside(place, name)} is missing")
        if name not in fields:
            raise ValueError(f"{_inside(place, name)} is unknown")
    return kind(**{name: _parse(field, value[name], _inside(place, name)) for name, field in fields.items()})


@cache
def _structure(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    return get_origin(kind), get_args(kind)


@cache
def _fields(kind: Any) -> dict[str, Any]:
    """The fields of a dataclass or a named tuple with their types, or those that its `stored` names."""
    hints = get_type_hints(kind) if dataclasses.is_dataclass(kind) or hasattr(kind, "_fields") else {}
    return {name: hints[name] for name in (kind.stored() if hasattr(kind, "stored") else hints)}


def _fits(kind: Any, value: Any) -> bool:
    """Whether a value's own type fits a type."""
    if kind is Any:
        return True
    if kind in (int, float):
        return isinstance(value, (int, kind)) and not isinstance(value, bool)
    if kind in (str, bool, type(None)):
        return isinstance(value, kind)
    return isinstance(value, list if _structure(kind)[0] is tuple else dict)


def _in_words(kind: Any) -> str:
    return _IN_WORDS.get(get_origin(kind) or kind, "an object")


def _inside(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _mismatch(place: str, value: Any, wanted: str) -> ValueError:
    return ValueError(f"{place or 'the whole'} is {shortened(value)}, not {wanted}")


def _checksum(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
