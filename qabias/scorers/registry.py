"""Scorers by name: this package's, and scorers of installed packages."""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from qabias.answers.likelihoods import NORMS
from qabias.answers.parsing import PARSE_RULES
from qabias.errors import QabiasError, arg
from qabias.models.loading import LoadedModel, architectures, is_gguf, read_config
from qabias.models.memory import config_of
from qabias.scorers.base import PairScorer, Scorer, TextScorer
from qabias.scorers.kind import INTERFACES, Loading, ScorerKind, parse_options
from qabias.support.suggest import choose, closest, unknown

GROUP = "qabias.scorers"
BASELINE = "baseline"
BASELINE_PREFIX = f"{BASELINE}:"
SERVER = "server"
FUNCTION = "function"
FUNCTION_PREFIX = f"{FUNCTION}:"
# Most models that can be asked are causal language models, whatever their configuration calls them.
FALLBACK = "causal"
_LISTED = "qabias list backends --full"
_MODULES = (FALLBACK, "seq2seq", "nli", "extractive_qa", "masked_lm", "multiple_choice", SERVER, FUNCTION, BASELINE)


@cache
def kinds() -> Mapping[str, ScorerKind]:
    """All scorers by name."""
    known = {}
    for module in _MODULES:
        kind: ScorerKind = importlib.import_module(f"qabias.scorers.{module}").KIND
        known[kind.name] = kind
    for entry in importlib.metadata.entry_points(group=GROUP):
        try:
            kind = entry.load()
        except Exception as error:  # external modules raise anything
            raise QabiasError(
                f"the backend {entry.name} ({entry.value}) cannot be imported: {error!r}.",
                "Fix or uninstall its package.",
            ) from error
        if not isinstance(kind, ScorerKind) or kind.name != entry.name or not set(kind.interfaces) <= set(INTERFACES):
            raise QabiasError(
                f"{entry.value} is not a ScorerKind named {entry.name!r}.",
                f"Register a ScorerKind of this name with interfaces among {', '.join(INTERFACES)}.",
            )
        if kind.name in known:
            raise QabiasError(f"two scorers have the name {kind.name!r}.", f"Rename or uninstall {entry.value}.")
        known[kind.name] = kind
    return known


def load_kind(name: str) -> ScorerKind:
    """Return a scorer by name."""
    known = kinds()
    if name not in known:
        names = [other for other in known if other not in (BASELINE, FUNCTION)]
        raise unknown("backend", name, names, arg("backend"), "qabias list backends")
    return known[name]


def kind_of(scorer: Scorer) -> ScorerKind:
    """Return the description of a loaded scorer, derived from its methods if it is not registered."""
    known = kinds().get(scorer.name)
    if known is not None:
        return known
    way = "texts" if isinstance(scorer, TextScorer) else "pairs" if isinstance(scorer, PairScorer) else "options"
    return ScorerKind(scorer.name, "", (way,), load=lambda _: scorer)


def scorers_for(ways: Iterable[str]) -> tuple[str, ...]:
    """Names of the scorers with one of these interfaces."""
    wanted = set(ways)
    return tuple(name for name, kind in kinds().items() if wanted & set(kind.interfaces))


def default_scorer(model: str, revision: str | None = None) -> str:
    """Return the scorer for a model's head; `causal` if its configuration names none."""
    if model == BASELINE:
        raise QabiasError(
            f"{arg('model')} baseline lacks its kind.", f"Use {arg('model')} baseline:KIND. See: qabias list baselines"
        )
    prefix, colon, kind = model.partition(":")
    if colon and closest(prefix, [BASELINE], cutoff=0.8):
        raise QabiasError(
            f"unknown model {model!r}. Did you mean '{BASELINE_PREFIX}{kind}'?",
            f"Use {arg('model')} baseline:KIND. See: qabias list baselines",
        )
    if is_gguf(model):
        return FALLBACK
    return scorer_made_for(read_config(model, revision))


def scorer_made_for(config: Any) -> str:
    """Return the scorer for the head in a configuration; `causal` if it names none."""
    for kind in kinds().values():
        if kind.made_for is not None and kind.made_for(config):
            return kind.name
    for architecture in architectures(config):
        for kind in kinds().values():
            if kind.heads and architecture.endswith(kind.heads):
                return kind.name
    return FALLBACK


def scorer_of(scorer: str | None, model: str, revision: str | None = None, handed_over: object = None) -> str:
    """Choose a model's scorer: a baseline's, a function's, the named one, or the head's."""
    if model.startswith(BASELINE_PREFIX) and scorer not in (None, BASELINE):
        option = f"{arg('base_url')} or {arg('backend')} {scorer}" if scorer == SERVER else f"{arg('backend')} {scorer}"
        raise QabiasError(f"{model} queries no model.", f"Remove {option}.")
    for own, prefix in ((BASELINE, BASELINE_PREFIX), (FUNCTION, FUNCTION_PREFIX)):
        if model.startswith(prefix):
            return own
    if scorer is None and isinstance(handed_over, LoadedModel):
        return scorer_made_for(config_of(handed_over))
    return scorer or default_scorer(model, revision)


def is_deterministic(scorer: str, options: Mapping[str, str]) -> bool:
    """Whether a scorer gives the same answers again: by likelihoods, or at temperature 0 in process or with a seed."""
    mode = options.get("mode", "")
    if scorer == FUNCTION:
        return mode == "score"
    if options.get("temperature", options.get("body.temperature", "0")).strip("0.") or "samples" in options:
        return False
    return scorer != SERVER or mode in ("echo", "logprobs", "completions-logprobs") or "body.seed" in options


def load_scorer(
    scorer: str | None,
    model: str,
    *,
    scorer_options: Mapping[str, str] | None = None,
    revision: str | None = None,
    handed_over: object = None,
    **loading: Any,
) -> Scorer:
    """Load a model and its scorer."""
    kind = load_kind(scorer_of(scorer, model, revision, handed_over))
    options = dict(scorer_options or {})
    refuse_options(kind, options)
    return kind.load(Loading(model, options, revision, handed_over=handed_over, **loading))


def lasting_options(scorer: str, options: Mapping[str, str]) -> dict[str, str]:
    """Options that affect answers, without those for the connection or for estimates."""
    known = load_kind(scorer).known_options

    def is_passing(name: str) -> bool:
        begin, dot, _ = name.partition(".")
        return bool(known.get(begin + dot, {}).get("passing"))

    return {name: value for name, value in options.items() if not is_passing(name)}


def check_options(kind: ScorerKind, options: Mapping[str, str]) -> Any:
    """Read the options of a scorer as loading does, without a model."""
    refuse_options(kind, options)
    return parse_options(kind.name, kind.options, options)


def refuse_options(kind: ScorerKind, options: Iterable[str]) -> None:
    """Refuse options that a scorer does not have."""
    for name in options:
        begin, dot, rest = name.partition(".")
        if begin + dot not in kind.known_options:
            known = {option.removesuffix("."): option for option in kind.known_options}
            known = {word: f"{option}{rest or 'NAME'}" if word != option else word for word, option in known.items()}
            close = [known[other] for other in closest(begin, known)]
            meant = f" Did you mean {close[0]!r}?" if close else ""
            fix = (
                f"Remove {arg('option')}." if not known else choose(list(known.values()), close, arg("option"), _LISTED)
            )
            raise QabiasError(f"unknown option {name!r} of the backend {kind.name}.{meant}", fix)


def check_rule(scorer: Scorer, norm: str) -> None:
    """Refuse a length normalization or parser that a scorer cannot use."""
    known: tuple[str, ...] = NORMS
    if isinstance(scorer, TextScorer):
        known = ("none", *PARSE_RULES)
    elif isinstance(scorer, PairScorer) or not kind_of(scorer).has_lengths:
        known = ("none",)
    elif not kind_of(scorer).counts_tokens:
        known = tuple(name for name in NORMS if name != "token")
    if norm not in known:
        flag = arg("parser") if norm in PARSE_RULES else arg("length_norm")
        fix = f"Remove {flag}." if len(known) == 1 or norm in PARSE_RULES else choose(known, (), flag)
        raise QabiasError(f"{flag} {norm} does not work with the backend {scorer.name}.", fix)
