"""Models behind an OpenAI-compatible HTTP endpoint: vLLM, TGI, llama.cpp, hosted services."""

from __future__ import annotations

import functools
import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from qabias.errors import QabiasError, arg
from qabias.models.loading import LoadedModel
from qabias.scorers.kind import ASK_METHODS, Loading, ScorerKind, parse_options
from qabias.scorers.server.options import (
    CHAT,
    COMPLETIONS,
    ECHO,
    LETTER_SCHEMA,
    LOGPROBS,
    PLAIN_LOGPROBS,
    PREFIX,
    READ,
    RESPONSE_FORMAT,
    WRITE,
    ServerOptions,
    client_options,
)

if TYPE_CHECKING:
    from qabias.scorers.server.asking import Asker
    from qabias.scorers.server.client import Client
    from qabias.scorers.server.modes import ServerScorer

_log = logging.getLogger(__name__)


def _load(loading: Loading) -> ServerScorer:
    if loading.revision is not None or loading.dtype != "auto":
        raise QabiasError("server: the server sets revision and dtype.", "Remove them.")
    if isinstance(loading.handed_over, LoadedModel):
        raise QabiasError(
            f"server: model {loading.model!r} is in memory here.", f"Use another {arg('backend')}, or none."
        )
    from qabias.scorers.server.apis import APIS, CHAT_API
    from qabias.scorers.server.asking import OpenAIClient
    from qabias.scorers.server.batch import BatchClient
    from qabias.scorers.server.client import Client
    from qabias.scorers.server.submitting import Service

    model, has_client = loading.model, loading.handed_over is not None
    texts = client_options(loading.options) if has_client else loading.options
    options = parse_options("server", ServerOptions, texts)
    what = options.batch[0]
    if what in (WRITE, READ):
        return make_scorer(model, BatchClient(loading.journal, *options.batch, api=options.wire), options)
    client: OpenAIClient | Client
    if has_client:
        client = OpenAIClient(loading.handed_over, options.max_connections, loading.journal)
    else:
        client = (Service if what else Client)(
            options.base_url,
            concurrency=options.max_connections,
            timeout=options.timeout,
            journal=loading.journal,
            api=options.wire,
            own_headers=options.headers,
        )
    if isinstance(client, Service):
        return make_scorer(model, BatchClient(loading.journal, what, api=options.wire, service=client), options)
    if isinstance(client, Client) and options.wire is APIS[CHAT_API]:
        return _fitting(model, client, options, is_chosen=texts.get("mode") == CHAT)
    return make_scorer(model, client, options)


@functools.cache  # an audit asks one server in several runs
def _warn_of_template(_: str, why: str, mode: str) -> None:
    _log.warning("server: the model has no chat template (%s), so prompts are sent plainly: mode=%s", why, mode)


def _fitting(model: str, client: Client, options: ServerOptions, *, is_chosen: bool) -> ServerScorer:
    """The scorer of a mode, without a chat template if the server has none of the model."""
    from qabias.scorers.server.templates import PLAIN

    plain = PLAIN.get("" if is_chosen else options.mode, "")
    why = client.lacking_template(model) if plain else ""
    scorer = make_scorer(model, client, replace(options, mode=plain) if why else options)
    if why:
        _warn_of_template(options.base_url, why, plain)
        scorer.chosen = {"mode": plain}
    return scorer


def make_scorer(model: str, client: Asker, options: ServerOptions) -> ServerScorer:
    """Make the scorer of a mode."""
    from qabias.scorers.server.modes import ServerChatScorer, ServerEchoScorer, ServerLogprobScorer

    made_for = {ECHO: ServerEchoScorer, LOGPROBS: ServerLogprobScorer, PLAIN_LOGPROBS: ServerLogprobScorer}
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
    variants={COMPLETIONS: CHAT, PLAIN_LOGPROBS: LOGPROBS},
)
