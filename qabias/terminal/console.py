"""Where tables and sentences are printed: a console that shows every text as it is."""

from __future__ import annotations

from typing import Any

import rich.console
from rich.text import Text

from qabias.support.printable import printable


class Console(rich.console.Console):
    """A console of rich that takes no text for markup or emoji and none to steer the terminal."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """A text as rich prints it; every text of a table passes here as well."""
        return super().render_str(printable(text), **options)
