"""Log-likelihoods of options under a causal language model; every distinct token runs once."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from qabias.errors import QabiasError, arg
from qabias.models.loading import CAUSAL
from qabias.scorers.base import OptionScores, Request, Scorer
from qabias.scorers.batches import RunStats, TokenBudget, option_scores, too_long
from qabias.scorers.causal_rows import (
    Limits,
    Row,
    TokenSequence,
    encode_options,
    make_row,
    padded_size,
    plan_batches,
    split_by_layout,
)
from qabias.scorers.chat import TEMPLATE, ChatTemplate, chat_template, parse_arguments
from qabias.scorers.generation import WriterOptions, asks_of_writers
from qabias.scorers.kind import Loading, ScorerKind, option_field, parse_options
from qabias.support.progress import tell, within
from qabias.support.suggest import first_line

if TYPE_CHECKING:
    from qabias.models.loading import LoadedModel

LAYOUTS = ("auto", "tree", "flat")
CHAT = ("yes", "auto", "no")

# Largest difference per token between the two layouts in the probe; wrong masks show as 0.1 and more in trained models.
PROBE_TOLERANCE = {"float32": 5e-5, "float16": 1e-2, "bfloat16": 5e-2}
# Short on CPUs, where it takes time. The noise of less precise numbers needs an average over more tokens.
PROBE_LENGTH = {"float32": 12, "float16": 32, "bfloat16": 32}


class CausalScorer:
    """Scores options by their log-likelihood after the prefix."""

    name = "causal"

    def __init__(
        self,
        loaded: LoadedModel,
        *,
        batch_tokens: int | None = None,
        layout: str = "auto",
        template: ChatTemplate | None = None,
    ) -> None:
        from qabias.scorers.causal_network import CausalNetwork  # needs torch

        self._budget = TokenBudget(loaded, self.name, batch_tokens)
        self.stats = RunStats()
        self.model_signature = loaded.signature
        self._name = loaded.name
        self._tokenizer = loaded.tokenizer
        self._template = template
        self._network = CausalNetwork(loaded.model, loaded.device)
        self._limits = Limits.read(loaded.model)
        self.layout = self._choose_layout(layout, loaded.dtype)

    def score(self, requests: Sequence[Request]) -> list[OptionScores]:
        """Score every option of every request, in order."""
        if self._template is None:
            encoded = encode_options(self._tokenizer, requests)
        else:
            # Nothing separates an option from the assistant's header.
            requests = [replace(one, options=tuple(map(str.lstrip, one.options))) for one in requests]
            encoded = self._template.encode_options(requests)
        for request, sequences in zip(requests, encoded, strict=True):
            self._check(request, sequences)
        values = self._score_distinct(sorted({sequence for sequences in encoded for sequence in sequences}))
        return [
            option_scores(
                self._name, request, request.options, [values[one] for one in own], [one.n_scored for one in own]
            )
            for request, own in zip(requests, encoded, strict=True)
        ]

    def _check(self, request: Request, sequences: Sequence[TokenSequence]) -> None:
        for option, sequence in zip(request.options, sequences, strict=True):
            if sequence.n_scored == 0:
                raise QabiasError(
                    f"request {request.key!r}: option {option!r} adds no token to its prefix.",
                    "Use another prompt format.",
                )
            n_read = len(sequence.tokens) - 1
            if n_read > self._limits.positions:
                raise too_long(f"request {request.key!r}", n_read, self._limits.positions, f"model {self._name!r}")

    def _score_distinct(self, sequences: list[TokenSequence]) -> dict[TokenSequence, float]:
        short, long = split_by_layout(sequences, self.layout, self._limits)
        share = len(short) / max(1, len(sequences))
        with within(0, share):
            values = self._score_within_memory(short, "tree")
        with within(share, 1):
            return values | self._score_within_memory(long, "flat")

    def _score_within_memory(self, sequences: list[TokenSequence], layout: str) -> dict[TokenSequence, float]:
        values: dict[TokenSequence, float] = {}
        remaining = sequences
        while remaining:
            for batch in plan_batches(remaining, layout, min(self._budget.tokens, self._network.batch_limit)):
                asked = [row.sequences for row in batch]
                results = self._budget.fitting([layout, asked], partial(self._run, batch, layout))
                if results is None:
                    # The sequences of a row can be run apart, unless each is the beginning of the next.
                    self._budget.halve(padded_size(batch), can_split=len(batch) > 1 or not batch[0].is_chain)
                    break
                values.update(zip(chain.from_iterable(asked), results, strict=True))
                tell(len(values) / len(sequences))
            remaining = [sequence for sequence in remaining if sequence not in values]
        return values

    def _run(self, batch: list[Row], layout: str) -> list[float]:
        values = self._network.score(batch, as_trees=layout == "tree")
        self.stats.tokens_run += padded_size(batch)
        self.stats.batches += 1
        return [values[sequence] for row in batch for sequence in row.sequences]

    def _choose_layout(self, wanted: str, dtype: str) -> str:
        if wanted == "flat":
            return "flat"
        problem = self._probe_tree(PROBE_LENGTH[dtype], PROBE_TOLERANCE[dtype])
        if problem is None:
            return "tree"
        if wanted == "tree":
            raise QabiasError(f"causal: model {self._name!r} does not support trees ({problem}).", "Use layout=flat.")
        warnings.warn(
            f"causal: model {self._name!r} does not support trees ({problem}); each option runs separately, slower",
            stacklevel=3,
        )
        return "flat"

    def _probe_tree(self, length: int, tolerance: float) -> str | None:
        """Compare small trees with plain sequences; None if equal, else the problem."""
        length = int(min(length, self._limits.window, self._limits.positions))
        if length < 4:
            return f"its window of {length} tokens is too short"
        special = getattr(self._tokenizer, "all_special_ids", ())
        sequences = _probe_sequences(self._network.vocabulary_size, special, length)
        # Rows of unequal size also test padding.
        batch = [make_row(sequences[:-1]), make_row(sequences[-1:])]

        def compare() -> list[float]:
            values = self._network.score(batch, as_trees=True)
            plain = self._network.score_plainly(sequences)
            return [abs(values[one] - value) / one.n_scored for one, value in zip(sequences, plain, strict=True)]

        try:
            differences = self._budget.fitting("", compare)
        except Exception as error:  # whatever a model that does not know such masks raises
            return f"{type(error).__name__}: {first_line(error)}"
        if differences is None:
            self._budget.halve(padded_size(batch), can_split=False)
        if not (difference := max(differences or ())) <= tolerance:
            return f"its log-likelihoods differ by {difference:.2g} per token from plain sequences"
        return None


def _probe_sequences(vocabulary_size: int, special: Iterable[int], length: int) -> list[TokenSequence]:
    """Make sequences of one length: four that branch after a third and after two thirds, and a separate one."""
    ordinary = np.setdiff1d(np.arange(vocabulary_size), np.fromiter(special, dtype=np.int64))
    rng = np.random.default_rng(0)

    def draw(n: int) -> tuple[int, ...]:
        return tuple(rng.choice(ordinary, size=n).tolist())

    third = length // 3
    trunk = draw(third)
    branches = [trunk + draw(third), trunk + draw(third)]
    tokens = [branch + draw(length + 1 - 2 * third) for branch in branches for _ in range(2)] + [draw(length + 1)]
    return [TokenSequence(sequence, len(sequence) - 1) for sequence in tokens]


@dataclass(frozen=True)
class CausalOptions(WriterOptions):
    """How a causal language model is queried."""

    chat: str = option_field(
        "no", "ask by the model's chat template: yes, no, or auto for models that have one", choices=CHAT
    )
    system: str | None = option_field(None, "system message of the chat, one line")
    layout: str = option_field(LAYOUTS[0], "how options are laid out: tree, flat, or auto", choices=LAYOUTS)
    template: Mapping[str, Any] = option_field(
        None,
        "argument of the chat template, e.g. template.enable_thinking=false",
        prefix=TEMPLATE,
        read=partial(parse_arguments, "causal"),
    )

    def check(self, scorer: str, names: Collection[str]) -> None:
        """Refuse options of the chat without one, and the layout of likelihoods for written answers."""
        if self.chat == "no" and self.system is not None:
            raise QabiasError(f"{scorer}: a system message is for chat.", f"Add {arg('option')} chat=yes.")
        if self.system is not None and (len(self.system.splitlines()) != 1 or "|" in self.system):
            raise QabiasError(
                f"{scorer}: the signature cannot contain this system message.", "Use one line without '|'."
            )
        if self.chat == "no" and self.template:
            name = next(iter(self.template))
            raise QabiasError(f"{scorer}: {TEMPLATE}{name} is for chat.", f"Add {arg('option')} chat=yes.")
        super().check(scorer, names)
        if self.writes and "layout" in names:
            raise QabiasError(f"{scorer}: layout is for likelihoods.", "Remove layout, or mode=generate.")


def _load(loading: Loading) -> Scorer:
    options = parse_options("causal", CausalOptions, loading.options)
    loaded = loading.load_model(CAUSAL)
    template = chat_template(loaded, options.chat, options.system, options.template)
    if options.writes:
        return options.make_writer(loading, loaded, template)
    _warn_of_thinking(loaded.name, template)
    return CausalScorer(loaded, batch_tokens=loading.batch_tokens, layout=options.layout, template=template)


def _warn_of_thinking(model: str, template: ChatTemplate | None) -> None:
    """Warn if likelihoods are asked of a reasoning model."""
    if template is not None and template.thinks:
        instead = f"give {arg('option')} {TEMPLATE}{template.switch}=false, or use" if template.switch else "use"
        warnings.warn(
            f"causal: model {model!r} thinks before it answers, but its likelihoods are computed without reasoning; "
            f"{instead} {arg('ask')} letter",
            stacklevel=3,
        )


KIND = ScorerKind(
    name="causal",
    summary="log-likelihoods of options after a text, or written answers, of a causal language model",
    interfaces=("options", "texts"),
    load=_load,
    options=CausalOptions,
    asks=asks_of_writers({"chat": "auto"}) | {"letter-logprob": {"chat": "auto"}},
    auto_class=CAUSAL.auto_class,
)
