"""Probabilities of two subjects at a mask, by a masked language model."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from qabias.errors import QabiasError, arg
from qabias.models.loading import ModelKind
from qabias.scorers.base import MARK, MaskedSentences
from qabias.scorers.batches import EncoderScorer, Pieces, Template, TokenRows, encode_plain, in_use, nan_error, spells
from qabias.scorers.kind import Loading, ScorerKind, option_field, parse_options

if TYPE_CHECKING:
    import torch

    from qabias.models.loading import LoadedModel

MODELS = ModelKind("AutoModelForMaskedLM", "masked language model")
# Largest difference between logits of the two ways through the head in the probe.
PROBE_TOLERANCE = {"float32": 1e-3, "float16": 5e-2, "bfloat16": 2e-1}


class MaskedLMScorer(EncoderScorer):
    """Scores two subjects by their probability at the mask of a sentence."""

    name = "masked_lm"

    def __init__(
        self,
        loaded: LoadedModel,
        *,
        topk: int | None = None,
        pronouns: Mapping[str, str] | None = None,
        batch_tokens: int | None = None,
    ) -> None:
        from qabias.scorers.masked_network import MaskedNetwork  # needs torch

        self._network = MaskedNetwork(loaded.model, loaded.device, PROBE_TOLERANCE[loaded.dtype])
        self.gathers = self._network.gathers  # only the states at the mask go through the head
        super().__init__(loaded, batch_tokens, row_limit=self._network.row_limit, token_limit=self._network.token_limit)
        if self._tokenizer.mask_token is None:
            raise QabiasError(f"masked_lm: model {self._name!r} has no mask token.", "Use another model.")
        if topk is not None and not 1 <= topk <= self._network.vocabulary_size:
            raise QabiasError(f"masked_lm: topk is {topk}.", f"Give 1 to {self._network.vocabulary_size}.")
        self._topk = topk
        self._spellings = None if topk is None else _spellings(self._tokenizer)
        self._pronouns = {cluster: self._pronoun_tokens(pronoun) for cluster, pronoun in (pronouns or {}).items()}

    def score(self, items: MaskedSentences) -> np.ndarray:
        """Score both subjects of every item."""
        tokens = self._single_tokens(items.subjects)
        answerable = np.array([token is not None for token in tokens], dtype=bool)[items.subject_of]
        asked = np.flatnonzero(answerable.any(axis=1))
        scores = np.full(items.subject_of.shape, np.nan, dtype=np.float32)
        if asked.size:
            accepted = self._accepted_tokens(items, tokens)
            scores[asked] = self._score_asked(items, asked, accepted)
            scores[~answerable] = np.nan
            unanswered = np.flatnonzero((np.isnan(scores) & answerable).any(axis=1))
            if unanswered.size:
                text = items.texts[items.text_of[unanswered[0]]]
                raise nan_error(self._name, f"text {text!r}")
        return scores

    def _score_asked(self, items: MaskedSentences, asked: np.ndarray, accepted: np.ndarray) -> np.ndarray:
        """Score the asked items; every distinct row runs once."""
        distinct, row_of = distinct_rows(items, asked)
        masked = self._make_rows(distinct)
        by_row = np.argsort(row_of, kind="stable")
        counts = np.bincount(row_of, minlength=len(masked.rows))
        first = np.cumsum(counts) - counts
        scores = np.empty((len(asked), 2), dtype=np.float32)

        def ask(chosen: np.ndarray, inputs: dict[str, torch.Tensor]) -> list[Any]:
            ends = np.cumsum(counts[chosen])
            row = np.repeat(np.arange(len(chosen)), counts[chosen])
            nth = np.arange(len(row)) - (ends - counts[chosen])[row]
            tail, before = masked.rows.tails(chosen)
            subjects = accepted[items.subject_of[asked[by_row[first[chosen][row] + nth]]]]
            values = self._network.probabilities(inputs, masked.masks[tail] + before, row, subjects, self._topk)
            return [own.tolist() for own in np.split(values, ends[:-1])]

        by_text = self.run(masked.rows, ask, lambda row: f"text {distinct.text(row)!r}")
        scores[by_row] = list(chain.from_iterable(by_text))
        return scores

    def _make_rows(self, texts: _Texts) -> _MaskedRows:
        """Encode texts; contexts and sentences once each if the tokenizer allows separate encoding."""
        if not texts.contexts:
            return self._join_nothing(texts.sentences, texts.sentence_of)
        masked = self._join(texts)
        if masked is None:
            warnings.warn(
                f"masked_lm: the tokenizer of model {self._name!r} encodes two sentences differently than each apart; "
                "each text is encoded on its own, slower",
                stacklevel=5,
            )
            whole = [texts.text(row) for row in range(len(texts.sentence_of))]
            masked = self._join_nothing(whole, np.arange(len(whole)))
        return masked

    def _join_nothing(self, sentences: Sequence[str], sentence_of: np.ndarray) -> _MaskedRows:
        encoded = self._encode(sentences)
        tails = Pieces.join(encoded["input_ids"])
        return _MaskedRows(TokenRows.whole(encoded, sentence_of), self._find_masks(tails, sentences))

    def _join(self, texts: _Texts) -> _MaskedRows | None:
        """Make rows of a context and a sentence; None if the tokenizer encodes the whole differently."""
        template = Template.read(self._tokenizer, 1)
        if template is None:
            return None
        sentences = [self._with_mask(f" {sentence}") for sentence in texts.sentences]
        heads = Pieces.framed(encode_plain(self._tokenizer, texts.contexts), template, 0, before=True, after=False)
        tails = Pieces.framed(encode_plain(self._tokenizer, sentences), template, 0, before=False, after=True)

        def encode_pairs(context_of: np.ndarray, sentence_of: np.ndarray) -> Any:
            pairs = _Texts(texts.contexts, texts.sentences, context_of, sentence_of)
            return self._encode([pairs.text(row) for row in range(len(context_of))])

        if not spells(heads, tails, encode_pairs):
            return None
        if (heads.tokens == self._tokenizer.mask_token_id).any():
            raise QabiasError("masked_lm: a context contains the mask token of the model.", "Remove it there.")
        rows = TokenRows(heads, tails, texts.context_of, texts.sentence_of)
        return _MaskedRows(rows, self._find_masks(tails, texts.sentences))

    def _encode(self, texts: Sequence[str]) -> Any:
        return self._tokenizer([self._with_mask(text) for text in texts], return_attention_mask=False, verbose=False)

    def _with_mask(self, text: str) -> str:
        return text.replace(MARK, self._tokenizer.mask_token)

    def _find_masks(self, tails: Pieces, sentences: Sequence[str]) -> np.ndarray:
        """Position of the mask in each tail; int64 array of shape (n_tails,)."""
        masks = np.flatnonzero(tails.tokens == self._tokenizer.mask_token_id)
        tail_of = np.repeat(np.arange(len(sentences)), tails.lengths)[masks]
        wrong = np.flatnonzero(np.bincount(tail_of, minlength=len(sentences)) != 1)
        if wrong.size:
            raise QabiasError(
                f"text {sentences[wrong[0]]!r}: the tokenizer of model {self._name!r} does not make one mask of it.",
                "Put exactly one mask into every text.",
            )
        return masks - tails.starts

    def _single_tokens(self, words: Sequence[str]) -> list[int | None]:
        """The token of each word inside a sentence; None if it has several or is unknown."""
        encoded = encode_plain(self._tokenizer, [f" {word}" for word in words])
        unknown = self._tokenizer.unk_token_id
        return [tokens[0] if len(tokens) == 1 and tokens[0] != unknown else None for tokens in encoded]

    def _pronoun_tokens(self, pronoun: str) -> tuple[int, ...]:
        forms = list(dict.fromkeys((pronoun, pronoun.capitalize())))
        tokens = {token for token in self._single_tokens(forms) if token is not None}
        if not tokens:
            raise QabiasError(f"masked_lm: pronoun {pronoun!r} is not one token of {self._name!r}.", "Use pronouns=no.")
        return self._all_spellings(pronoun, tokens)

    def _all_spellings(self, word: str, tokens: set[int]) -> tuple[int, ...]:
        """Tokens that count as a word: with `topk`, all with its spelling."""
        return tuple(sorted(tokens.union(self._spellings.get(word.lower(), ()) if self._spellings else ())))

    def _accepted_tokens(self, items: MaskedSentences, tokens: Sequence[int | None]) -> np.ndarray:
        """Tokens whose largest probability is a subject's score; int64 array (n_subjects, k), some repeated."""
        accepted = [
            (0,) if token is None else self._all_spellings(subject, {token})
            for subject, token in zip(items.subjects, tokens, strict=True)
        ]
        if self._pronouns:
            if not items.clusters:
                raise QabiasError(
                    "masked_lm: pronouns need the clusters of the subjects.", f"Use {arg('option')} pronouns=no."
                )
            accepted = [own + self._pronouns.get(name, ()) for own, name in zip(accepted, items.clusters, strict=True)]
        longest = max(map(len, accepted))
        return np.array([own + own[:1] * (longest - len(own)) for own in accepted], dtype=np.int64)


class _Texts(NamedTuple):
    """Texts with marks: sentences, each after a context if there are contexts."""

    contexts: Sequence[str]
    sentences: Sequence[str]
    context_of: np.ndarray
    sentence_of: np.ndarray

    def text(self, row: int) -> str:
        sentence = self.sentences[self.sentence_of[row]]
        return f"{self.contexts[self.context_of[row]]} {sentence}" if self.contexts else sentence


class _MaskedRows(NamedTuple):
    """Rows, and the position of the mask in each tail."""

    rows: TokenRows
    masks: np.ndarray


def _spellings(tokenizer: Any) -> dict[str, tuple[int, ...]]:
    """All tokens by their spelling, in lower case and without surrounding spaces."""
    tokens = sorted(tokenizer.get_vocab().values())
    words = tokenizer.batch_decode([[token] for token in tokens])
    spellings: dict[str, list[int]] = {}
    for token, word in zip(tokens, words, strict=True):
        spellings.setdefault(word.strip().lower(), []).append(token)
    return {word: tuple(own) for word, own in spellings.items()}


def distinct_rows(items: MaskedSentences, asked: np.ndarray) -> tuple[_Texts, np.ndarray]:
    """The distinct texts of the asked items, and the number of each item's text."""
    used, sentence_of = in_use(items.text_of[asked], len(items.texts))
    sentences = [items.texts[i] for i in used]
    if items.context_of is None:
        everything = np.arange(len(sentences))
        return _Texts((), sentences, everything, everything), sentence_of
    used, context_of = in_use(items.context_of[asked], len(items.contexts))
    contexts = [items.contexts[i] for i in used]
    keys = context_of.astype(np.int64) * len(sentences) + sentence_of
    distinct, row_of = np.unique(keys, return_inverse=True)
    return _Texts(contexts, sentences, distinct // len(sentences), distinct % len(sentences)), row_of


@dataclass(frozen=True)
class MaskedOptions:
    """What counts as a subject at the mask."""

    topk: int | None = option_field(
        None,
        "score 0 for subjects outside this number of likeliest tokens; all: no limit",
        none="all",
        wanted="a whole number such as 10, or all",
    )
    pronouns: Mapping[str, str] | None = option_field(
        None,
        "count she and he as subjects of their gender: yes or no",
        choices={"no": None, "yes": {"female": "she", "male": "he"}},
    )


def _load(loading: Loading) -> MaskedLMScorer:
    options = parse_options("masked_lm", MaskedOptions, loading.options)
    return MaskedLMScorer(loading.load_model(MODELS), batch_tokens=loading.batch_tokens, **vars(options))


KIND = ScorerKind(
    name="masked_lm",
    summary="probabilities of two subjects at the mask of a sentence",
    interfaces=("masks",),
    load=_load,
    options=MaskedOptions,
    auto_class=MODELS.auto_class,
    heads=("ForMaskedLM",),
    has_lengths=False,
    reads_prompt=False,
    many_at_once=True,
)
