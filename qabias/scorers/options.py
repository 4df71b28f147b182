"""Options of a backend: the fields of one dataclass, read from texts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, get_args, get_type_hints

from qabias.errors import QabiasError, arg
from qabias.support.suggest import unknown

T = TypeVar("T")


def option_field(
    default: Any,
    text: str,
    *,
    choices: Iterable[str] | Mapping[str, Any] = (),
    least: float = 1,
    wanted: str = "",
    none: str | None = None,
    read: Callable[[Any], Any] | None = None,
    prefix: str = "",
    passing: bool = False,
) -> Any:
    """A field that is an option, with its help.

    `choices` are words, or the value of each. A number is at least `least`; if it is wrong, the error says what is
    `wanted`. `none` is the word for None. `read` reads other texts; with the `prefix` of free names, such as
    `template.`, it reads all options. A `passing` option does not affect answers.
    """
    shown = {"choices": choices, "least": least, "wanted": wanted, "none": none, "read": read, "prefix": prefix}
    shown |= {"help": text, "passing": passing}
    return field(default_factory=dict, metadata=shown) if prefix else field(default=default, metadata=shown)


@dataclass(frozen=True)
class NoOptions:
    """Of a backend without options."""


def parse_options(scorer: str, kind: type[T], texts: Mapping[str, str]) -> T:
    """Read the options of a backend without its model; its method `check(scorer, names)` sees all of them."""
    hints = get_type_hints(kind)
    values: dict[str, Any] = {}
    for each in fields(kind):  # type: ignore[arg-type]  # a type of dataclasses has no name
        if each.metadata["prefix"]:
            values[each.name] = each.metadata["read"](texts)
        elif each.name in texts:
            values[each.name] = _read(scorer, each.name, hints[each.name], texts[each.name], each.metadata)
    options = kind(**values)
    getattr(options, "check", lambda *_: None)(scorer, texts.keys())
    return options


def _read(scorer: str, name: str, kind: Any, text: str, how: Mapping[str, Any]) -> Any:
    choices = how["choices"]
    if how["read"]:
        return how["read"](text)
    if choices and text not in choices:
        raise unknown(f"{name} of {scorer}", text, choices, f"{arg('option')} {name}=")
    if choices:
        return choices[text] if isinstance(choices, Mapping) else text
    if kind is str or str in get_args(kind):
        return text
    if text == how["none"]:
        return None
    number = math.nan
    with suppress(ValueError):
        number = float(text) if kind is float or float in get_args(kind) else int(text)
    if not how["least"] <= number < math.inf:
        raise QabiasError(f"{scorer}: {name} is {text!r}.", f"Give {how['wanted']}.")
    return number
