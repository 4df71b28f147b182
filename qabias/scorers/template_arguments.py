"""Arguments of a chat template, such as `enable_thinking`, given as options of the scorer: `template.NAME=VALUE`."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from qabias.errors import QabiasError
from qabias.support.suggest import did_you_mean

TEMPLATE = "template."
"""How the options begin that go to the chat template."""

SWITCHES = ("enable_thinking", "thinking")
"""Arguments by which templates turn thinking on and off."""

# What every template is given besides, by the scorer, the tokenizer and the library.
_OTHERS = ("messages", "tools", "documents", "add_generation_prompt", "raise_exception", "strftime_now")
_WORDS = ("true", "false", "null")
_GENERATION = re.compile(r"\{%-?\s*(?:end)?generation\s*-?%\}")


def parse_arguments(scorer: str, options: Mapping[str, str]) -> dict[str, Any]:
    """Read the arguments of a chat template from the options of a scorer."""
    given = {option.removeprefix(TEMPLATE): text for option, text in options.items() if option.startswith(TEMPLATE)}
    return {name: _value(scorer, name, text) for name, text in given.items()}


def _value(scorer: str, name: str, text: str) -> Any:
    option = f"{scorer}: {TEMPLATE}{name}"
    if not name.isidentifier():
        raise QabiasError(
            f"{option} names no argument; write {TEMPLATE}NAME=VALUE, such as template.reasoning_effort=low"
        )
    if len(text.splitlines()) != 1 or "|" in text:
        raise QabiasError(f"{option} must be one line of text without '|' to fit into the signature")
    if text.lower() in _WORDS and text not in _WORDS:
        raise QabiasError(f"{option} is {text!r}; write {text.lower()}")
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    # Any text would count as true in a template, "off" too.
    if name in SWITCHES and not isinstance(value, bool):
        raise QabiasError(f"{option} is {text!r}; write true or false")
    return value


def argument_names(source: str, special: Iterable[str]) -> tuple[str, ...]:
    """Names of the arguments that a chat template takes, without those that every template is given."""
    import jinja2
    import jinja2.meta

    environment = jinja2.Environment(extensions=["jinja2.ext.loopcontrols"], autoescape=False)
    # Transformers' own tag around what the assistant says.
    names = jinja2.meta.find_undeclared_variables(environment.parse(_GENERATION.sub("", source)))
    return tuple(sorted(names.difference(_OTHERS, special)))


def check_names(model: str, given: Iterable[str], known: Collection[str]) -> None:
    """Refuse arguments that a chat template does not take; it would ignore them."""
    for name in given:
        if name not in known:
            offer = f"it takes {', '.join(known)}" if known else "it takes none"
            raise QabiasError(
                f"chat: the template of model {model!r} has no argument {name!r}; {offer}{did_you_mean(name, known)}"
            )
