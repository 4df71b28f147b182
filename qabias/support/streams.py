"""Standard output and standard error of the command line: what their encoding cannot hold is written in plain signs.

Redirected output on Windows is often cp1252, and a terminal may be ASCII; neither has the minus sign of the tables.
"""

import codecs
import io
import os
import sys
import unicodedata

PLAIN = "qabias-plain"
"""Name of the error handler that `write_plainly` sets."""

_SIGNS = {
    **dict.fromkeys("−–—―‐‑‒─━═╌╴╶", "-"),
    **dict.fromkeys("│┃║", "|"),
    **dict.fromkeys("┌┐└┘├┤┬┴┼╭╮╰╯╔╗╚╝╠╣╦╩╬┏┓┗┛╞╡╪╤╧╒╕╘╛", "+"),
    **dict.fromkeys("█▉▊▋▌▍▎▏▓▒░", "#"),
    **dict.fromkeys("“”„«»", '"'),
    **dict.fromkeys("‘’‚", "'"),
    **dict.fromkeys("\u00a0\u202f\u2009", " "),
    **dict.fromkeys("•·", "*"),
    "…": "...",
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
    """Let standard output and standard error write in plain signs what their encoding cannot hold."""
    codecs.register_error(PLAIN, _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=PLAIN)


def flush() -> None:
    """Write out what is left; where nobody reads any more, it goes nowhere."""
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
