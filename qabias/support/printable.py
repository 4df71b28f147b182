"""Safe output: no terminal control characters, and plain signs for characters an encoding lacks."""

import codecs
import io
import os
import re
import sys
import unicodedata

from qabias.errors import QabiasError
from qabias.support.suggest import shortened

# Control characters except tab and line feed (an escape sequence moves the cursor or sets the title of a window, a
# carriage return overwrites a line), separators of lines, marks that turn the direction of a text around, and halves of
# surrogate pairs, which no stream can write.
_CONTROLS = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_UNPRINTABLE = re.compile(rf"[{_CONTROLS}\u061c\u200e\u200f]")
_CONTROL = re.compile(f"[{_CONTROLS}]")  # texts of some scripts need the other marks


def printable(text: str) -> str:
    r"""The text with control characters as escapes, such as `\x1b`."""
    return _UNPRINTABLE.sub(_escape, text)


def refuse_control(text: str, where: str) -> None:
    """Refuse a text that could steer whatever shows it."""
    if (control := _CONTROL.search(text)) is not None:
        raise QabiasError(
            f"{where}: the text {shortened(text)} has the control character U+{ord(control[0]):04X}.", "Remove it."
        )


def echo(text: str = "", *, err: bool = False) -> None:
    """Print a line without control characters."""
    stream = sys.stderr if err else sys.stdout
    stream.write(f"{printable(text)}\n")
    stream.flush()


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


PLAIN = "qabias-plain"

_SIGNS = {
    **dict.fromkeys("−–—―‐‑‒─━═╌╴╶", "-"),
    **dict.fromkeys("│┃║", "|"),
    **dict.fromkeys("┌┐└┘├┤┬┴┼╭╮╰╯╔╗╚╝╠╣╦╩╬┏┓┗┛╞╡╪╤╧╒╕╘╛", "+"),
    **dict.fromkeys("█▉▊▋▌▍▎▏▓▒░", "#"),
    **dict.fromkeys("“”„«»", '"'),
    **dict.fromkeys("‘’‚", "'"),
    **dict.fromkeys("•·", "*"),
    "×": "x",
    "÷": "/",
    "±": "+/-",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "≈": "~",
    "→": "->",
    "←": "<-",
    "↔": "<->",
    "ß": "ss",
    "ı": "i",
    "ø": "o",
    "æ": "ae",
}


def write_plainly() -> None:
    """Let standard output and error replace characters that their encoding lacks by plain signs."""
    codecs.register_error(PLAIN, _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=PLAIN)


def flush() -> None:
    """Flush standard output; discard it if the reader is gone."""
    try:
        sys.stdout.flush()
    except OSError as error:
        # Python itself would try again at its end, and print a traceback.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise OSError(error.errno, error.strerror, "standard output") from error


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_sign, error.object[error.start : error.end])), error.end


def _sign(character: str) -> str:
    """A character in ASCII: its plain sign, the letter without its accent, or a question mark."""
    if character in _SIGNS:
        return _SIGNS[character]
    plain = "".join(part for part in unicodedata.normalize("NFKD", character) if part.isascii())
    return plain or "?"
