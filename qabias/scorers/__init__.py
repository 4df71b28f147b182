"""Ways of asking a model, found by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qabias.errors import QabiasError

if TYPE_CHECKING:
    from qabias.models.loading import LoadedModel
    from qabias.scorers.base import Scorer

BASELINE_PREFIX = "baseline:"
# A run may go on with other values of these; a model that is served anew has another address and the same name.
_PASSING_OPTIONS = ("url", "concurrency", "timeout", "tokenizer", "price_in", "price_out")
_GENERATION_OPTIONS = ("samples", "temperature", "max_new_tokens")


def load_scorer(
    scorer: str | None,
    model: str,
    *,
    seed: int = 0,
    revision: str | None = None,
    device: str = "auto",
    dtype: str = "auto",
    token_budget: int | None = None,
    scorer_options: Mapping[str, str] | None = None,
    journal: Path | None = None,
) -> Scorer:
    """Load a model and the way of asking it.

    Args:
        scorer: One of `SCORERS`, or None for the way that the model's head is made for.
        model: `"baseline:KIND"` (no scorer needed), or a name or path that the scorer can load.
        seed: Of random baselines and sampled answers.
        revision: Branch, tag or commit of a Hub model.
        device: A torch device, or `"auto"`.
        dtype: Precision of the model, or `"auto"`.
        token_budget: Tokens of a batch; None for the scorer's default.
        scorer_options: Options of the scorer by name, as texts.
        journal: File that keeps what a server answers; read by the scorer `server` only.

    Returns:
        The scorer, ready to score.

    Raises:
        QabiasError: If the scorer, an option or the model is unknown.
    """
    options = dict(scorer_options or {})
    if model.startswith(BASELINE_PREFIX):
        from qabias.scorers.baseline import BaselineScorer

        refuse_options("baseline", options, ())
        return BaselineScorer(model.removeprefix(BASELINE_PREFIX), seed=seed)
    if scorer is None:
        from qabias.models.loading import default_scorer

        scorer = default_scorer(model, revision)
    if scorer not in SCORERS:
        raise QabiasError(
            f"unknown scorer {scorer!r}; choose one of {', '.join(SCORERS)}, or a model named {BASELINE_PREFIX}KIND"
        )
    loading = {"revision": revision, "device": device, "dtype": dtype}
    load = partial(_load_server, journal=journal) if scorer == "server" else SCORERS[scorer]
    return load(model, loading, token_budget, options, seed)


def lasting_options(scorer: str | None, options: Mapping[str, str]) -> dict[str, str]:
    """The options that determine answers, without those that only say how a server is reached or an estimate made."""
    passing = _PASSING_OPTIONS if scorer == "server" else ()
    return {name: value for name, value in options.items() if name not in passing}


def _load_causal(
    model: str, loading: dict[str, Any], token_budget: int | None, options: dict[str, str], seed: int
) -> Scorer:
    from qabias.models.loading import load_causal
    from qabias.scorers.chat import ChatCausalScorer, chat_template, take_chat

    chat, system = take_chat(options)
    if generates("causal", options):
        load = partial(load_causal, model, **loading)
        return _load_generation("causal", load, token_budget, options, seed, chat, system)
    refuse_options("causal", options, ("chat", "system", "layout", "mode", *_GENERATION_OPTIONS))
    from qabias.scorers.causal import CausalScorer

    loaded = load_causal(model, **loading)
    template = chat_template(loaded, chat, system)
    if template is not None:
        return ChatCausalScorer(loaded, template, token_budget=token_budget, **options)
    return CausalScorer(loaded, token_budget=token_budget, **options)  # type: ignore[arg-type]  # the scorer checks values


def _load_seq2seq(
    model: str, loading: dict[str, Any], token_budget: int | None, options: dict[str, str], seed: int
) -> Scorer:
    from qabias.models.loading import load_seq2seq

    if generates("seq2seq", options):
        return _load_generation("seq2seq", partial(load_seq2seq, model, **loading), token_budget, options, seed)
    refuse_options("seq2seq", options, ("mode", *_GENERATION_OPTIONS))
    from qabias.scorers.seq2seq import Seq2SeqScorer

    return Seq2SeqScorer(load_seq2seq(model, **loading), token_budget=token_budget)


def generates(scorer: str, options: dict[str, str]) -> bool:
    """Take the option `mode` out of the options: whether the model writes its answers.

    Raises:
        QabiasError: If there is no such mode, or options of written answers are given without it.
    """
    mode = options.pop("mode", "likelihood")
    if mode not in ("likelihood", "generate"):
        raise QabiasError(f"{scorer}: mode is {mode!r}; give likelihood or generate")
    needless = [name for name in _GENERATION_OPTIONS if name in options]
    if mode == "likelihood" and needless:
        raise QabiasError(f"{scorer}: {needless[0]} is for written answers; add --option mode=generate")
    return mode == "generate"


def _load_generation(
    scorer: str,
    load: Callable[[], LoadedModel],
    token_budget: int | None,
    options: dict[str, str],
    seed: int,
    chat: str = "no",
    system: str | None = None,
) -> Scorer:
    from qabias.scorers.chat import ChatGenerationScorer, chat_template
    from qabias.scorers.generation import GenerationScorer, parse_options

    chosen = parse_options(options)  # before the model, which takes longer
    loaded = load()
    template = chat_template(loaded, chat, system)
    if template is not None:
        return ChatGenerationScorer(loaded, template, seed=seed, token_budget=token_budget, **chosen)
    return GenerationScorer(loaded, name=scorer, seed=seed, token_budget=token_budget, **chosen)


def _load_nli(
    model: str, loading: dict[str, Any], token_budget: int | None, options: dict[str, str], seed: int
) -> Scorer:
    refuse_options("nli", options, ("labels",))
    from qabias.models.encoders import load_encoder
    from qabias.scorers.nli import NLIScorer

    return NLIScorer(load_encoder(model, "sequence_classification", **loading), token_budget=token_budget, **options)


def _load_extractive_qa(
    model: str, loading: dict[str, Any], token_budget: int | None, options: dict[str, str], seed: int
) -> Scorer:
    refuse_options("extractive_qa", options, ("span", "header"))
    from qabias.models.encoders import load_encoder
    from qabias.scorers.extractive_qa import NEWSQA_HEADER, ExtractiveQAScorer

    if options.get("header") == "newsqa":
        options["header"] = NEWSQA_HEADER
    loaded = load_encoder(model, "question_answering", **loading)
    return ExtractiveQAScorer(loaded, token_budget=token_budget, **options)  # type: ignore[arg-type]  # the scorer checks values


def _load_masked_lm(
    model: str, loading: dict[str, Any], token_budget: int | None, options: dict[str, str], seed: int
) -> Scorer:
    refuse_options("masked_lm", options, ("topk", "pronouns"))
    from qabias.models.encoders import load_encoder
    from qabias.scorers.masked_lm import MaskedLMScorer

    topk = options.get("topk", "all")
    if topk != "all" and not (topk.isdecimal() and int(topk) > 0):
        raise QabiasError(f"masked_lm: topk is {topk!r}; give a whole number such as 10, or all")
    pronouns = options.get("pronouns", "no")
    if pronouns not in ("no", "yes"):
        raise QabiasError(f"masked_lm: pronouns is {pronouns!r}; give yes or no")
    return MaskedLMScorer(
        load_encoder(model, "masked_lm", **loading),
        topk=None if topk == "all" else int(topk),
        pronouns={"female": "she", "male": "he"} if pronouns == "yes" else None,
        token_budget=token_budget,
    )


def _load_multiple_choice(
    model: str, loading: dict[str, Any], token_budget: int | None, options: dict[str, str], seed: int
) -> Scorer:
    refuse_options("multiple_choice", options, ())
    from qabias.models.encoders import load_encoder
    from qabias.scorers.multiple_choice import MultipleChoiceScorer

    return MultipleChoiceScorer(load_encoder(model, "multiple_choice", **loading), token_budget=token_budget)


def _load_server(
    model: str,
    loading: dict[str, Any],
    token_budget: int | None,
    options: dict[str, str],
    seed: int,
    journal: Path | None = None,
) -> Scorer:
    from qabias.scorers.server.scorer import load

    if loading["revision"] is not None or loading["dtype"] != "auto":
        raise QabiasError("server: revision and dtype are the server's to choose; leave them out")
    return load(model, options, journal)


def refuse_options(scorer: str, options: Mapping[str, str], known: tuple[str, ...]) -> None:
    """Refuse options that a scorer does not have.

    Raises:
        QabiasError: If one is not in `known`.
    """
    for name in options:
        if name not in known:
            offer = f"it has {', '.join(known)}" if known else "it has none"
            raise QabiasError(f"the scorer {scorer} has no option {name!r}; {offer}")


SCORERS: dict[str, Callable[[str, dict[str, Any], int | None, dict[str, str], int], Scorer]] = {
    "causal": _load_causal,
    "seq2seq": _load_seq2seq,
    "nli": _load_nli,
    "extractive_qa": _load_extractive_qa,
    "masked_lm": _load_masked_lm,
    "multiple_choice": _load_multiple_choice,
    "server": _load_server,
}
