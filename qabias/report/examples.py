"""Examples of a run as rows of a table that people can search and filter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qabias.tables.formatting import UNDEFINED, percent, show

_SHORT, _SHORT_CHOICE = 60, 40  # characters
_MOST_CHOICES = 40
# Long texts that repeat what the other columns show are folded.
_FOLDED = ("prompt",)


@dataclass(frozen=True)
class Field:
    """A column of the examples."""

    title: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Examples:
    """Examples, laid out."""

    labels: Mapping[str, str]
    folds: Mapping[str, str]
    fields: Sequence[Field]
    filters: Mapping[str, Sequence[str]]
    rows: Sequence[Mapping[str, Any]]


def lay_out(examples: Sequence[Mapping[str, Any]]) -> Examples:
    """Find out which columns examples have, and show their values as texts."""
    given = [name for name in dict.fromkeys(name for row in examples for name in row) if _any(examples, name)]
    folds = [name for name in given if name in _FOLDED]
    names = [name for name in given if name not in _FOLDED]
    labels = _labels(examples, names)
    fields = _fields(examples, names[len(labels) :])
    filters = {name: values for name in names for values in [_choices(examples, name)] if len(values) > 1}
    rows = [
        {
            "labels": [_text(name, row.get(name)) for name in labels],
            "folds": [_texts(name, row.get(name)) for name in folds],
            "cells": [_cell(row, one.names) for one in fields],
            "filters": [_text(name, row.get(name)) for name in filters],
        }
        for row in examples
    ]
    titles, of_folds = ({name: _title(name) for name in some} for some in (labels, folds))
    return Examples(titles, of_folds, fields, filters, rows)


def _any(examples: Sequence[Mapping[str, Any]], name: str) -> bool:
    return any(row.get(name) is not None for row in examples)


def _labels(examples: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[str]:
    """The leading keys whose values are short."""
    labels = []
    for name in names:
        if any(isinstance(row.get(name), (list, dict)) or len(_text(name, row.get(name))) > _SHORT for row in examples):
            break
        labels.append(name)
    return labels


def _fields(examples: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[Field]:
    fields: list[Field] = []
    for name in names:
        if fields and _parallel(examples, fields[-1].names[0], name):
            fields[-1] = Field(f"{fields[-1].title} · {name.replace('_', ' ')}", (*fields[-1].names, name))
        else:
            fields.append(Field(_title(name), (name,)))
    return fields


def _parallel(examples: Sequence[Mapping[str, Any]], first: str, name: str) -> bool:
    """Whether two keys hold lists of the same lengths (or nothing)."""
    pairs = [(row.get(first), row.get(name)) for row in examples if row.get(name) is not None]
    return all(isinstance(one, list) and isinstance(other, list) and len(one) == len(other) for one, other in pairs)


def _choices(examples: Sequence[Mapping[str, Any]], name: str) -> list[str]:
    """The values of a key that few texts share, in order; none for numbers and long texts."""
    values = {row.get(name) for row in examples if not isinstance(row.get(name), (list, dict))}
    texts = sorted(value for value in values if isinstance(value, str))
    if len(texts) != len(values - {None}) or len(texts) > min(_MOST_CHOICES, len(examples) / 2):
        return []
    return texts if all(len(text) <= _SHORT_CHOICE for text in texts) else []


def _cell(row: Mapping[str, Any], names: Sequence[str]) -> str | list[str]:
    first = row.get(names[0])
    if not isinstance(first, list):
        return _text(names[0], first)
    columns = [[_text(name, value) for value in row[name]] for name in names if row.get(name) is not None]
    return [" · ".join(parts) for parts in zip(*columns, strict=True)]


def _texts(name: str, value: Any) -> list[str]:
    return [_text(name, inner) for inner in value] if isinstance(value, list) else [_text(name, value)]


def _text(name: str, value: Any) -> str:
    if value is None:
        return UNDEFINED
    if isinstance(value, float):
        return percent(value) if name.startswith("probabilit") else show(value, "number")
    if isinstance(value, dict):
        return ", ".join(f"{_title(key)}: {_text(key, inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return ", ".join(_text(name, inner) for inner in value)
    return str(value)


def _title(name: str) -> str:
    text = name.replace("_", " ")
    return text[:1].upper() + text[1:]
