"""Probabilities of a request's options, by a model trained for multiple choice, e.g. on RACE."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from qabias.errors import QabiasError
from qabias.models.loading import ModelKind
from qabias.scorers.base import OptionScores, Request
from qabias.scorers.batches import EncoderScorer, Pieces, Template, TokenRows, encode_plain
from qabias.scorers.kind import Loading, ScorerKind

if TYPE_CHECKING:
    import torch

    from qabias.models.loading import LoadedModel

MODELS = ModelKind("AutoModelForMultipleChoice", "model trained for multiple choice, e.g. on RACE")


class MultipleChoiceScorer(EncoderScorer):
    """Scores options by their probability among the options of a request."""

    name = "multiple_choice"

    def __init__(self, loaded: LoadedModel, *, batch_tokens: int | None = None) -> None:
        super().__init__(loaded, batch_tokens, row_limit=_row_limit(loaded))
        self._template = Template.read(loaded.tokenizer, 2)

    def score(self, requests: Sequence[Request]) -> list[OptionScores]:
        """Score every option of every request, in order; equal pairs of context and option run once."""
        if not requests:
            return []
        pairs = _distinct_pairs(requests)
        endings = encode_plain(self._tokenizer, pairs.endings)
        rows = self._make_rows(pairs, endings)

        def ask(_: np.ndarray, inputs: dict[str, torch.Tensor]) -> Any:
            # These models take all options of a question at once; a row here is a question of one option.
            answer = self._model(**{name: values[:, None] for name, values in inputs.items()})
            return answer.logits[:, 0].double().tolist()

        logits = self.figures(rows, ask, lambda row: _describe(requests, pairs, row))
        n_tokens = np.array([len(tokens) for tokens in endings], dtype=np.int32)
        n_bytes = np.array([len(ending.encode()) for ending in pairs.endings], dtype=np.int32)
        return [
            OptionScores(
                loglikelihoods=logits[own] - np.logaddexp.reduce(logits[own]),
                n_tokens=n_tokens[pairs.ending_of[own]],
                n_bytes=n_bytes[pairs.ending_of[own]],
            )
            for own in pairs.rows_of
        ]

    def _make_rows(self, pairs: _Pairs, endings: Sequence[Sequence[int]]) -> TokenRows:
        """Encode pairs; every context once if the tokenizer puts it first, else pair by pair."""
        if self._template is None:
            whole = self._tokenizer(
                [pairs.contexts[i] for i in pairs.context_of],
                [pairs.endings[i] for i in pairs.ending_of],
                truncation=False,
                padding=False,
                verbose=False,
            )
            return TokenRows.whole(whole)
        contexts = encode_plain(self._tokenizer, pairs.contexts)
        heads = Pieces.framed(contexts, self._template, 0, before=True, after=True)
        tails = Pieces.framed(endings, self._template, 1, before=False, after=True)
        return TokenRows(heads, tails, pairs.context_of, pairs.ending_of)


class _Pairs(NamedTuple):
    """Distinct pairs of a context and an ending, the question with an answer."""

    contexts: list[str]
    endings: list[str]
    context_of: np.ndarray
    ending_of: np.ndarray
    rows_of: list[np.ndarray]


def _distinct_pairs(requests: Sequence[Request]) -> _Pairs:
    contexts: dict[str, int] = {}
    endings: dict[str, int] = {}
    pairs: dict[tuple[int, int], int] = {}
    rows_of = []
    for request in requests:
        context = contexts.setdefault(request.prefix, len(contexts))
        rows = []
        for option in request.options:
            if not option.strip():
                raise QabiasError(f"request {request.key!r}: option {option!r} is empty.", "Give it a text.")
            pair = context, endings.setdefault(option.strip(), len(endings))
            rows.append(pairs.setdefault(pair, len(pairs)))
        rows_of.append(np.array(rows, dtype=np.int64))
    context_of, ending_of = np.array(list(pairs), dtype=np.int64).reshape(-1, 2).T
    return _Pairs(list(contexts), list(endings), context_of, ending_of, rows_of)


def _describe(requests: Sequence[Request], pairs: _Pairs, row: int) -> str:
    """Name the first request with a pair among its options."""
    number = next(number for number, own in enumerate(pairs.rows_of) if row in own)
    return f"request {requests[number].key!r}, option {pairs.endings[pairs.ending_of[row]]!r}"


def _row_limit(loaded: LoadedModel) -> int:
    """Maximum rows of a batch: 1 if a model reads pads like words, or wants them on the left."""
    reads_mask = "attention_mask" in inspect.signature(loaded.model.forward).parameters
    return sys.maxsize if reads_mask and loaded.tokenizer.padding_side == "right" else 1


def _load(loading: Loading) -> MultipleChoiceScorer:
    return MultipleChoiceScorer(loading.load_model(MODELS), batch_tokens=loading.batch_tokens)


KIND = ScorerKind(
    name="multiple_choice",
    summary="probabilities among the options of a question, of a model trained for multiple choice",
    interfaces=("choices",),
    load=_load,
    auto_class=MODELS.auto_class,
    heads=("ForMultipleChoice",),
    has_lengths=False,
    many_at_once=True,
)
