"""Models behind an OpenAI-compatible HTTP endpoint: vLLM, TGI, llama.cpp, hosted services."""

from qabias.errors import QabiasError
from qabias.scorers.base import Scorer
from qabias.scorers.kind import ASKS, Loading, ScorerKind
from qabias.scorers.server.options import parse_options


def _load(loading: Loading) -> Scorer:
    if loading.revision is not None or loading.dtype != "auto":
        raise QabiasError("server: revision and dtype are the server's to choose; leave them out")
    from qabias.scorers.server.scorer import load

    return load(loading.model, parse_options(loading.options), loading.journal)


KIND = ScorerKind(
    name="server",
    about="written answers, or log-likelihoods of options, of a model behind an OpenAI-compatible server",
    ways=("options", "texts"),
    load=_load,
    options={
        "url": "base of the endpoint, e.g. http://host:8000/v1",
        "mode": "chat for written answers, or echo for log-likelihoods",
        "concurrency": "most requests under way at once",
        "timeout": "seconds to wait for a sign of life",
        "max_new_tokens": "most tokens of a written answer",
        "token_field": "what the server calls that limit: max_tokens or max_completion_tokens",
        "temperature": "0, or none for a server that wants none to be named",
        "tokenizer": "tokenizer that an estimate counts with",
        "price_in": "dollars for a million tokens of prompts",
        "price_out": "dollars for a million generated tokens",
    },
    asks={"options": {"mode": "echo"}} | {word: {"mode": "chat"} for word in ASKS[2:]},
    parse_options=parse_options,
    passing_options=("url", "concurrency", "timeout", "tokenizer", "price_in", "price_out"),
    chats=True,
)
