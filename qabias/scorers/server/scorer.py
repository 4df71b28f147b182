"""The ways of asking a model behind a server, one file each.

It writes (`chat`), says how likely the letter of each answer is (`logprobs`), or the text of each answer (`echo`).
"""

from pathlib import Path

from qabias.scorers.server.batch import BatchClient
from qabias.scorers.server.chat import ServerChatScorer
from qabias.scorers.server.client import Asker, Client
from qabias.scorers.server.echo import ServerEchoScorer
from qabias.scorers.server.given import GivenClient
from qabias.scorers.server.logprobs import ServerLogprobScorer
from qabias.scorers.server.modes import ModeFinder
from qabias.scorers.server.options import ECHO, LOGPROBS, ServerOptions

AnyServerScorer = ServerChatScorer | ServerEchoScorer | ServerLogprobScorer


def load(model: str, options: ServerOptions, journal: Path | None) -> AnyServerScorer:
    """The scorer that the options ask for, with a client of its own."""
    if options.batch:
        return make_scorer(model, BatchClient(journal, options.batch, options.results), options)
    client = Client(
        options.url,
        concurrency=options.concurrency,
        timeout=options.timeout,
        total_timeout=options.total_timeout,
        journal=journal,
    )
    return make_scorer(model, ModeFinder(client, model, options), options)


def load_given(model: str, client: object, options: ServerOptions, journal: Path | None) -> AnyServerScorer:
    """The scorer that the options ask for, with a client that the caller has."""
    asker = GivenClient(client, concurrency=options.concurrency, journal=journal)
    return make_scorer(model, ModeFinder(asker, model, options), options)


def make_scorer(model: str, client: Asker, options: ServerOptions) -> AnyServerScorer:
    """The scorer of a mode."""
    if options.mode == ECHO:
        return ServerEchoScorer(model, client, options.body)
    named = {"token_field": options.token_field, "temperature": options.temperature}
    if options.mode == LOGPROBS:
        return ServerLogprobScorer(model, client, options.top_logprobs, **named, body=options.body)
    return ServerChatScorer(model, client, options.max_new_tokens, **named, body=options.body)
