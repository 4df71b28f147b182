"""Answers without a model: their scores are known in advance."""

import hashlib
import math
from collections.abc import Sequence

from qabias.errors import QabiasError, arg
from qabias.scorers.base import OptionScores, Request
from qabias.scorers.kind import Loading, ScorerKind
from qabias.support.suggest import choose, unknown

ROLE_OF_KIND = {
    "stereotyped": "biased",
    "anti-stereotyped": "counter_biased",
    "unknown": "unknown",
    "oracle": "gold",
    "first": "first",
    "last": "last",
    "negation-blind": "preferred",
    "consistent": "consistent",
}
KINDS = (*ROLE_OF_KIND, "random", "uniform")
CERTAINTY = 0.9  # probability of the chosen option; the others share the rest


class BaselineScorer:
    """Always gives the answer with one role in the benchmark, a random one, or equal scores (`uniform`)."""

    def __init__(self, kind: str, seed: int = 0) -> None:
        if kind not in KINDS:
            raise unknown("baseline", kind, KINDS, f"{arg('model')} baseline:", "qabias list baselines")
        self.kind = kind
        self.seed = seed
        self.name = "baseline"
        self.model_signature = ""

    def score(self, requests: Sequence[Request]) -> list[OptionScores]:
        """Score every option of every request, in order."""
        return [self._score_one(request) for request in requests]

    def _score_one(self, request: Request) -> OptionScores:
        n_options = len(request.options)
        choice = self._choose(request)
        if choice < 0:
            loglikelihoods = [-math.log(n_options)] * n_options
        else:
            loglikelihoods = [math.log((1 - CERTAINTY) / (n_options - 1))] * n_options
            loglikelihoods[choice] = math.log(CERTAINTY)
        return OptionScores.make(loglikelihoods, [len(option.split()) for option in request.options], request.options)

    def _choose(self, request: Request) -> int:
        if self.kind == "random":
            # Equal on every machine and in every order.
            digest = hashlib.sha256(f"{self.seed}/{request.key}".encode()).digest()
            return int.from_bytes(digest, "big") % len(request.options)
        if self.kind == "uniform":
            return -1
        role = ROLE_OF_KIND[self.kind]
        if role not in request.roles:
            known = [kind for kind, role in ROLE_OF_KIND.items() if role in request.roles]
            raise QabiasError(
                f"baseline: the kind {self.kind!r} has no role in this benchmark.",
                choose([*known, "random", "uniform"], (), f"{arg('model')} baseline:", "qabias list baselines"),
            )
        return request.roles[role]


def _load(loading: Loading) -> BaselineScorer:
    prefix, _, kind = loading.model.rpartition(":")
    if prefix != KIND.name:
        raise QabiasError(
            f"baseline: model {loading.model!r} is not a baseline.",
            f"Use {arg('model')} baseline:KIND. See: qabias list baselines",
        )
    ignored = [f"--{name}" for name in loading.chosen("revision", "dtype")]
    if ignored:
        raise QabiasError(f"{loading.model} queries no model.", f"Remove {' and '.join(ignored)}.")
    return BaselineScorer(kind, seed=loading.seed)


KIND = ScorerKind(
    name="baseline",
    summary="answers by a rule, without a model",
    interfaces=("options",),
    load=_load,
    asks={"answer-logprob": {}, "letter-logprob": {}},
    many_at_once=True,
)
