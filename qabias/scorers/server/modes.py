"""Whether a server can be asked in the mode that was chosen, and if not, in which others it can.

The first request of a run is the test: it is sent alone, see `ConcurrentAsker`, and its answer is kept. Only if it
fails in a way that may be the mode's are all modes tried, by one short request of one new token each. If the chosen
mode works there, the failure was not the mode's, and the first request is sent again as patiently as any other.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from qabias.errors import QabiasError
from qabias.scorers.server.chat import PATH, chat_body, read_message
from qabias.scorers.server.client import Asker, Body, GaveUpError, ModeError, RefusedError
from qabias.scorers.server.echo import ECHO_PATH, sum_option
from qabias.scorers.server.logprobs import top_tokens
from qabias.scorers.server.options import CHAT, ECHO, LOGPROBS, MODES, ServerOptions

_PREFIX, _OPTION = "The letter after A is", " B"
# What a server says that cannot be asked like this; it says 401, 402, 403 and 429 whatever it is asked.
_STATUSES = (200, 400, 404, 405, 422)
_NO_LIMIT = sys.maxsize


class ModeFinder(Asker):
    """Asks by another asker, and where its first request fails, says which modes the server has."""

    def __init__(self, client: Asker, model: str, options: ServerOptions) -> None:
        self._client = client
        self._model = model
        self._options = options
        self._is_proven = False

    @property
    def has_answered(self) -> bool:
        """See `Asker.has_answered`."""
        return self._client.has_answered

    def show_progress(self) -> None:
        """See `Asker.show_progress`."""
        self._client.show_progress()

    def unread(self) -> int:
        """See `Asker.unread`."""
        return self._client.unread()

    def ask(self, bodies: Sequence[Body], ask_one: Callable[[Body], Any]) -> list[Any]:
        """See `Asker.ask`."""
        return self._client.ask(bodies, partial(self._ask, ask_one))

    def post(self, path: str, body: Body, doubtful: int | None = None) -> dict[str, Any]:
        """See `Asker.post`; where a test request says that the mode works, a failure is not taken for the mode's."""
        return self._client.post(path, body, doubtful or (_NO_LIMIT if self._is_proven else None))

    def _ask(self, ask_one: Callable[[Body], Any], body: Body) -> Any:
        try:
            return ask_one(body)
        except QabiasError as error:
            if self._client.has_answered or not _may_be_the_mode(error):
                raise
            working = [mode for mode in MODES if self._works(mode)]
            if self._options.mode in working and isinstance(error, GaveUpError):
                self._is_proven = True
                return ask_one(body)
            if self._options.mode in working or not working:
                raise
            ways = " and ".join(f"--option mode={mode}" for mode in working)
            raise QabiasError(
                f"{error}. The server does not answer with mode={self._options.mode}; a test request of one token "
                f"each says that it does with {ways}"
            ) from None

    def _works(self, mode: str) -> bool:
        path, fields, read = _TESTS[mode]
        # The limit has the server's own name, where one was chosen.
        fields = {self._options.token_field if name == "max_tokens" else name: one for name, one in fields.items()}
        try:
            read(self._client.post(path, {"model": self._model, **fields, **self._options.body}, 1))
        except QabiasError:
            return False
        return True


def _may_be_the_mode(error: QabiasError) -> bool:
    """Whether a failure may come from the way of asking."""
    if isinstance(error, RefusedError):
        return error.status in _STATUSES
    return isinstance(error, ModeError) or (isinstance(error, GaveUpError) and error.is_doubtful)


def _read_echo(answer: Mapping[str, Any]) -> object:
    return sum_option(answer, _PREFIX + _OPTION, len(_OPTION), 1)


_CHAT_FIELDS = {"messages": chat_body("", _PREFIX, {})["messages"], "max_tokens": 1}
_TESTS: Mapping[str, tuple[str, Body, Callable[[Mapping[str, Any]], object]]] = {
    CHAT: (PATH, _CHAT_FIELDS, read_message),
    LOGPROBS: (PATH, {**_CHAT_FIELDS, "logprobs": True, "top_logprobs": 5}, top_tokens),
    ECHO: (ECHO_PATH, {"prompt": _PREFIX + _OPTION, "echo": True, "logprobs": 1, "max_tokens": 1}, _read_echo),
}
