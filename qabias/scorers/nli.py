"""Probabilities of contradiction, neutral and entailment, by a classifier of sentence pairs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from qabias.answers.parsing import LABELS
from qabias.errors import QabiasError, arg
from qabias.models.loading import ModelKind
from qabias.scorers.batches import EncoderScorer, TokenRows
from qabias.scorers.kind import Loading, ScorerKind, option_field, parse_options

if TYPE_CHECKING:
    import torch

    from qabias.models.loading import LoadedModel

MODELS = ModelKind("AutoModelForSequenceClassification", "model trained to classify pairs of texts, e.g. on MNLI")
# What models call their outputs.
_LABEL_OF_NAME = {
    **dict.fromkeys(("contradiction", "contradictory", "contradict", "contradicts"), "contradiction"),
    "neutral": "neutral",
    **dict.fromkeys(("entailment", "entail", "entails"), "entailment"),
}


class NLIScorer(EncoderScorer):
    """Returns the probabilities of the three labels of natural language inference."""

    name = "nli"

    def __init__(self, loaded: LoadedModel, *, labels: str = "", batch_tokens: int | None = None) -> None:
        n_outputs = loaded.model.config.num_labels
        if n_outputs != len(LABELS):
            raise QabiasError(
                f"nli: model {loaded.name!r} has {n_outputs} outputs for {len(LABELS)} labels.",
                "Use a model trained on these, e.g. on MNLI.",
            )
        self.labels = parse_labels(labels) or _own_labels(loaded)
        self._places = [self.labels.index(label) for label in LABELS]
        super().__init__(loaded, batch_tokens, row_limit=_row_limit(loaded))

    def classify(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """Classify every pair of a premise and a hypothesis; equal pairs run once."""
        if not pairs:
            return np.empty((0, len(LABELS)))
        numbers = {pair: number for number, pair in enumerate(dict.fromkeys(pairs))}
        pair_of = np.array([numbers[pair] for pair in pairs])
        distinct = list(numbers)
        premises, hypotheses = map(list, zip(*distinct, strict=True))
        encoded = self._tokenizer(premises, hypotheses, truncation=False, padding=False, verbose=False)
        rows = TokenRows.whole(encoded)

        def ask(_: np.ndarray, inputs: dict[str, torch.Tensor]) -> Any:
            return self._model(**inputs).logits.double().softmax(dim=-1)[:, self._places].tolist()

        return self.figures(rows, ask, lambda row: "premise {!r} with hypothesis {!r}".format(*distinct[row]))[pair_of]


def _own_labels(loaded: LoadedModel) -> tuple[str, ...]:
    """Read the labels from the model's names of its outputs."""
    names = [str(name) for _, name in sorted(loaded.model.config.id2label.items())]
    labels = tuple(_LABEL_OF_NAME.get(name.strip().casefold(), "") for name in names)
    if sorted(labels) == sorted(LABELS):
        return labels
    raise QabiasError(
        f"nli: model {loaded.name!r} calls its outputs {', '.join(names)}, which does not name {', '.join(LABELS)}.",
        f"Give their order, e.g. {arg('option')} labels={','.join(LABELS)}.",
    )


def parse_labels(text: str) -> tuple[str, ...]:
    """Read the labels that a user gives; () for an empty text."""
    if not text:
        return ()
    labels = tuple(_LABEL_OF_NAME.get(name.strip().casefold(), name.strip()) for name in text.split(","))
    if sorted(labels) != sorted(LABELS):
        raise QabiasError(
            f"nli: labels is {text!r}.",
            f"Name the model's outputs in order: {', '.join(LABELS)}, each once, separated by commas.",
        )
    return labels


def _row_limit(loaded: LoadedModel) -> int:
    """Maximum rows of a batch: a decoder finds the end of a text by its pads, so 1 without a known pad."""
    pad = loaded.model.config.pad_token_id
    known = pad is not None and loaded.tokenizer.pad_token_id in (None, pad)
    return sys.maxsize if known else 1


@dataclass(frozen=True)
class NLIOptions:
    """How a classifier of pairs is read."""

    labels: str = option_field(
        "",
        "the labels of the model's outputs in order, with commas between, for a model that names none",
        read=lambda text: ",".join(parse_labels(text)),
    )


def _load(loading: Loading) -> NLIScorer:
    options = parse_options("nli", NLIOptions, loading.options)
    return NLIScorer(loading.load_model(MODELS), batch_tokens=loading.batch_tokens, labels=options.labels)


KIND = ScorerKind(
    name="nli",
    summary="probabilities of contradiction, neutral and entailment of a classifier of sentence pairs",
    interfaces=("pairs",),
    load=_load,
    options=NLIOptions,
    auto_class=MODELS.auto_class,
    heads=("ForSequenceClassification",),
    has_lengths=False,
    reads_prompt=False,
    many_at_once=True,
)
