"""Models behind an OpenAI-compatible HTTP endpoint: vLLM, TGI, llama.cpp, hosted services."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qabias.errors import QabiasError, arg
from qabias.models.loading import LoadedModel
from qabias.scorers.kind import ASK_METHODS, Loading, ScorerKind, parse_options
from qabias.scorers.server.options import (
    ECHO,
    LETTER_SCHEMA,
    LOGPROBS,
    PREFIX,
    READ,
    RESPONSE_FORMAT,
    WRITE,
    ServerOptions,
    client_options,
)
from qabias.support.files import MOST_LOG_BYTES

if TYPE_CHECKING:
    from qabias.scorers.server.asking import Asker
    from qabias.scorers.server.modes import ServerScorer


def _load(loading: Loading) -> ServerScorer:
    if loading.revision is not None or loading.dtype != "auto":
        raise QabiasError("server: the server sets revision and dtype.", "Remove them.")
    if isinstance(loading.handed_over, LoadedModel):
        raise QabiasError(
            f"server: model {loading.model!r} is in memory here.", f"Use another {arg('backend')}, or none."
        )
    from qabias.scorers.server.asking import OpenAIClient
    from qabias.scorers.server.batch import BatchClient
    from qabias.scorers.server.client import MOST_BYTES, Client

    model = loading.model
    texts = client_options(loading.options) if loading.handed_over is not None else loading.options
    options = parse_options("server", ServerOptions, texts)
    what, journal, client = options.batch[0], loading.journal, loading.handed_over
    if client is not None:
        return make_scorer(model, OpenAIClient(client, options.max_connections, journal), options)
    if what in (WRITE, READ):
        return make_scorer(model, BatchClient(journal, *options.batch, api=options.wire), options)
    http = Client(
        options.base_url,
        concurrency=options.max_connections,
        timeout=options.timeout,
        journal=None if what else journal,
        api=options.wire,
        own_headers=options.headers,
        most_bytes=MOST_LOG_BYTES if what else MOST_BYTES,
    )
    asker = BatchClient(journal, what, api=options.wire, client=http) if what else http
    return make_scorer(model, asker, options)


def make_scorer(model: str, client: Asker, options: ServerOptions) -> ServerScorer:
    """Make the scorer of a mode."""
    from qabias.scorers.server.modes import ServerChatScorer, ServerEchoScorer, ServerLogprobScorer

    made_for = {ECHO: ServerEchoScorer, LOGPROBS: ServerLogprobScorer}
    return made_for.get(options.mode, ServerChatScorer)(model, client, options)


KIND = ScorerKind(
    name="server",
    summary="written answers, or probabilities of letters or texts, of a model behind an OpenAI-compatible server",
    interfaces=("options", "texts"),
    load=_load,
    options=ServerOptions,
    asks={"answer-logprob": {"mode": "echo"}, "letter-logprob": {"mode": "logprobs"}}
    | {word: {"mode": "chat"} for word in ASK_METHODS[2:-1]}
    | {"json": {"mode": "chat", f"{PREFIX}{RESPONSE_FORMAT}": LETTER_SCHEMA}},
    chats=True,
)
