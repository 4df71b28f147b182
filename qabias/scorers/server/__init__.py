"""Models behind an OpenAI-compatible HTTP endpoint: vLLM, TGI, llama.cpp, hosted services."""

from qabias.errors import QabiasError
from qabias.models.loading import LoadedModel
from qabias.scorers.base import Scorer
from qabias.scorers.kind import ASK_METHODS, Loading, ScorerKind
from qabias.scorers.server.body import PREFIX
from qabias.scorers.server.options import parse_options


def _load(loading: Loading) -> Scorer:
    if loading.revision is not None or loading.dtype != "auto":
        raise QabiasError("server: revision and dtype are the server's to choose; leave them out")
    if isinstance(loading.handed_over, LoadedModel):
        raise QabiasError(f"server: model {loading.model!r} is in memory here; choose a scorer that asks it, or none")
    from qabias.scorers.server.scorer import load, load_given

    if loading.handed_over is not None:
        options = parse_options(loading.options, has_client=True)
        return load_given(loading.model, loading.handed_over, options, loading.journal)
    return load(loading.model, parse_options(loading.options), loading.journal)


KIND = ScorerKind(
    name="server",
    about="written answers, or probabilities of letters or texts, of a model behind an OpenAI-compatible server",
    interfaces=("options", "texts"),
    load=_load,
    options={
        "url": "base of the endpoint, e.g. http://host:8000/v1",
        "mode": "chat for written answers, logprobs for probabilities of letters, or echo for those of texts",
        "concurrency": "most requests under way at once",
        "timeout": "seconds to wait for a sign of life",
        "total_timeout": "seconds that one request may take in all; by default ten times the timeout",
        "max_new_tokens": "most tokens of a written answer; by default four times what the prompt format needs",
        "token_field": "what the server calls that limit: max_tokens or max_completion_tokens",
        "temperature": "0, or none for a server that wants none to be named",
        "top_logprobs": "number of the likeliest tokens that the server is to name with mode=logprobs",
        "batch": "write for request files of a batch service, read=FILE,FILE for its result files",
        "tokenizer": "tokenizer that an estimate counts with",
        "price_in": "dollars for a million tokens of prompts",
        "price_out": "dollars for a million generated tokens",
    },
    open_options={PREFIX: "field of every request, JSON or text, dots lead into objects"},
    default_mode="chat",
    asks={"options": {"mode": "echo"}, "letter": {"mode": "logprobs"}}
    | {word: {"mode": "chat"} for word in ASK_METHODS[2:]},
    parse_options=parse_options,
    passing_options=("url", "concurrency", "timeout", "total_timeout", "batch", "tokenizer", "price_in", "price_out"),
    chats=True,
)
