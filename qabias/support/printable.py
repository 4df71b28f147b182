"""Foreign texts for a terminal: what would steer it is shown, not done."""

import re
import sys

# Control characters except tab and line feed (an escape sequence moves the cursor or sets the title of a window, a
# carriage return overwrites a line), separators of lines, marks that turn the direction of a text around, and halves of
# surrogate pairs, which no stream can write.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    r"""The text with every character that steers a terminal as its escape, such as `\x1b`."""
    return _UNPRINTABLE.sub(_escape, text)


def echo(text: str = "", *, err: bool = False) -> None:
    """Print a line in which nothing steers the terminal."""
    stream = sys.stderr if err else sys.stdout
    stream.write(f"{printable(text)}\n")
    stream.flush()


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
