"""An extension of mkdocstrings: functions that take their arguments from a decorator, as `help` shows them."""

import inspect
from importlib import import_module
from typing import Any

import griffe

KINDS = {
    inspect.Parameter.POSITIONAL_OR_KEYWORD: griffe.ParameterKind.positional_or_keyword,
    inspect.Parameter.KEYWORD_ONLY: griffe.ParameterKind.keyword_only,
}


class Signatures(griffe.Extension):
    """Read the signature and the docstring of a function with `takes_arguments` from the function itself."""

    def on_function_instance(self, *, func: griffe.Function, **kwargs: Any) -> None:
        """Replace what was read from the source."""
        if func.docstring is None or not any("takes_arguments" in str(one.value) for one in func.decorators):
            return
        shown = getattr(import_module(func.module.path), func.name)
        func.parameters = griffe.Parameters(
            *(
                griffe.Parameter(
                    one.name,
                    annotation=_annotation(one.annotation),
                    kind=KINDS[one.kind],
                    default=None if one.default is one.empty else repr(one.default),
                )
                for one in inspect.signature(shown).parameters.values()
            )
        )
        func.docstring.value = inspect.getdoc(shown) or ""


def _annotation(value: Any) -> str:
    text = value if isinstance(value, str) else inspect.formatannotation(value)
    return text.replace("collections.abc.", "").replace("pathlib.", "")
