"""Modes in which a server is asked; the first request of a run shows which of them it supports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from qabias.errors import QabiasError
from qabias.scorers.server.asking import Asker, Body, ModeError, RefusedError
from qabias.scorers.server.chat import PATH, chat_body, read_message
from qabias.scorers.server.client import GaveUpError
from qabias.scorers.server.echo import ECHO_PATH, sum_option
from qabias.scorers.server.logprobs import top_tokens
from qabias.scorers.server.options import CHAT, ECHO, LOGPROBS, MODES, ServerOptions

_PREFIX, _OPTION = "The letter after A is", " B"
# What a server says that cannot be asked like this; it says 401, 402, 403 and 429 whatever it is asked.
_STATUSES = (200, 400, 404, 405, 422)


def explain_failure(client: Asker, model: str, options: ServerOptions, error: QabiasError) -> None:
    """Raise the failure of a first request, with the modes that the server has; return if it is worth another try."""
    if not _may_be_the_mode(error):
        raise error
    working = [mode for mode in MODES if _works(client, model, options, mode)]
    if options.mode in working and isinstance(error, GaveUpError):
        return
    if options.mode in working or not working:
        raise error
    choices = " and ".join(f"--option mode={mode}" for mode in working)
    raise QabiasError(
        f"{error}. The server does not answer with mode={options.mode}; a test request of one token each says that it "
        f"does with {choices}"
    )


def _may_be_the_mode(error: QabiasError) -> bool:
    if isinstance(error, RefusedError):
        return error.status in _STATUSES
    return isinstance(error, ModeError) or (isinstance(error, GaveUpError) and error.is_doubtful)


def _works(client: Asker, model: str, options: ServerOptions, mode: str) -> bool:
    path, fields, read = _TESTS[mode]
    # The limit has the server's own name, where one was chosen.
    fields = {options.limit_field if name == "max_tokens" else name: value for name, value in fields.items()}
    try:
        read(client.post(path, {"model": model, **options.fields, **fields}, 1))
    except QabiasError:
        return False
    return True


def _read_echo(answer: Mapping[str, Any]) -> object:
    return sum_option(answer, _PREFIX + _OPTION, len(_OPTION), 1)


_CHAT_FIELDS = {"messages": chat_body("", _PREFIX, {})["messages"], "max_tokens": 1}
_TESTS: Mapping[str, tuple[str, Body, Callable[[Mapping[str, Any]], object]]] = {
    CHAT: (PATH, _CHAT_FIELDS, read_message),
    LOGPROBS: (PATH, {**_CHAT_FIELDS, "logprobs": True, "top_logprobs": 5}, top_tokens),
    ECHO: (ECHO_PATH, {"prompt": _PREFIX + _OPTION, "echo": True, "logprobs": 1, "max_tokens": 1}, _read_echo),
}
