"""Probabilities of two subjects as the answer to a question about them, by a span-answering model."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from qabias.errors import QabiasError
from qabias.models.loading import ModelKind
from qabias.scorers.base import SpanQuestions
from qabias.scorers.batches import EncoderScorer, Pieces, Template, TokenRows, encode_plain, flatten, in_use, spells
from qabias.scorers.kind import Loading, ScorerKind, option_field, parse_options

if TYPE_CHECKING:
    import torch

    from qabias.models.loading import LoadedModel


SPACE_MARKERS = ("Ġ", "▁")
WORD_END = "</w>"  # XLM's tokenizer marks the end of a word instead of its beginning

ARTICLES = frozenset({"a", "an", "the", "some", "few", "several"})
QUANTITIES = frozenset({"group", "team", "couple"})  # "a group of"
NOUNS = frozenset(
    {"man", "woman", "boy", "girl", "child", "kid", "person", "folk", "people", "couple"}
    | {"men", "women", "boys", "girls", "children", "kids", "persons", "folks"}
    | {"city", "country", "cities", "countries"}
)
FULL_STOP = "."


class CharacterSpan(NamedTuple):
    """Characters `start` to `end` of a text, without `end`."""

    start: int
    end: int

    def is_inside(self, other: CharacterSpan) -> bool:
        """Return whether this span is inside another."""
        return other.start <= self.start and self.end <= other.end


def locate(context: str, subject: str, other: str) -> CharacterSpan:
    """Find a subject in a context that names two."""
    text, name, rival = _fold(context), _fold(subject), _fold(other)
    span = _span(text.find(name), name, context, subject)
    if len(name) >= len(rival):
        return span
    taken = _span(text.find(rival), rival, context, other)
    if span.is_inside(taken):
        span = _span(text.rfind(name), name, context, subject)
    if span.is_inside(taken):
        raise QabiasError(f"context {context!r}: {subject!r} occurs only inside {other!r}.", "Use distinct subjects.")
    return span


def _fold(text: str) -> str:
    """Lower-case a text but keep its length: some characters become two."""
    lower = text.lower()
    return lower if len(lower) == len(text) else "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def _span(start: int, name: str, context: str, subject: str) -> CharacterSpan:
    if not name or start < 0:
        raise QabiasError(f"context {context!r} does not contain the subject {subject!r}.", "Add it to the context.")
    return CharacterSpan(start, start + len(name))


@dataclass(frozen=True)
class TokenSpans:
    """Tokens of the two subjects of some texts, counted from the start of the text."""

    starts: np.ndarray
    ends: np.ndarray


def token_spans(offsets: Sequence[Sequence[tuple[int, int]]], bare: np.ndarray, characters: np.ndarray) -> TokenSpans:
    """Find the first and the last token that overlap each subject."""
    lengths = np.array([len(text) for text in offsets], dtype=np.int64)
    flat = np.array([pair for text in offsets for pair in text], dtype=np.int64).reshape(-1, 2)
    text_of = np.repeat(np.arange(len(offsets)), lengths)
    place = np.arange(len(flat)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    starts = np.full((len(offsets), 2, 1), -1, dtype=np.int64)
    ends = starts.copy()
    for k in range(2):
        wanted = characters[text_of, k]
        overlap = np.flatnonzero((flat[:, 0] < wanted[:, 1]) & (flat[:, 1] > wanted[:, 0]) & ~bare)
        # Of several assignments to one place the last holds.
        starts[text_of[overlap[::-1]], k, 0] = place[overlap[::-1]]
        ends[text_of[overlap], k, 0] = place[overlap]
    return TokenSpans(starts, ends)


def widen(spans: TokenSpans, tokens: Sequence[Sequence[int]], words: WordTable) -> TokenSpans:
    """Include the words around subjects, as the authors' code does."""
    first, last = spans.starts[:, :, 0], spans.ends[:, :, 0]
    rows = np.arange(len(tokens))[:, None]
    longest = max((len(text) for text in tokens), default=0)
    # Three columns before and one behind are outside the text.
    padded = np.full((len(tokens), longest + 4), -1, dtype=np.int64)
    for i, text in enumerate(tokens):
        padded[i, 3 : 3 + len(text)] = text
    before = [padded[rows, first + 3 - distance] for distance in (1, 2, 3)]
    has_article = words.is_in(before[0], ARTICLES)
    has_quantity = words.is_in(before[2], {"a"}) & words.is_in(before[1], QUANTITIES) & words.is_in(before[0], {"of"})
    has_noun = words.is_in(padded[rows, last + 4], NOUNS) | words.is_token(padded[rows, last + 4], FULL_STOP)
    reach = np.where(has_quantity, 3, np.where(has_article, 1, 0))
    return TokenSpans(
        starts=first[:, :, None] - np.minimum(np.arange(4), reach[:, :, None]),
        ends=last[:, :, None] + np.minimum(np.arange(2), has_noun[:, :, None]),
    )


class WordTable:
    """Words by token."""

    def __init__(self, tokenizer: Any, tokens: np.ndarray) -> None:
        self._tokens = np.unique(tokens)
        self._texts: list[str] = tokenizer.convert_ids_to_tokens(self._tokens.tolist())
        marked = has_space_marker(tokenizer)
        self._words = [_word(text, marked) for text in self._texts]

    def is_in(self, tokens: np.ndarray, words: frozenset[str] | set[str]) -> np.ndarray:
        """Which tokens are whole words of a set, with the space marker if there is one."""
        return self._known(tokens, [word in words for word in self._words])

    def is_token(self, tokens: np.ndarray, text: str) -> np.ndarray:
        """Which tokens equal a text without any marker."""
        return self._known(tokens, [own.removesuffix(WORD_END) == text for own in self._texts])

    def is_bare(self, tokens: np.ndarray) -> np.ndarray:
        """Which tokens are only a space marker."""
        return self._known(tokens, [own in SPACE_MARKERS for own in self._texts])

    def _known(self, tokens: np.ndarray, values: list[bool]) -> np.ndarray:
        return np.isin(tokens, self._tokens[np.array(values, dtype=bool)])


def has_space_marker(tokenizer: Any) -> bool:
    """Return whether tokens of a tokenizer contain the space before them."""
    tokens = tokenizer.convert_ids_to_tokens(tokenizer("the man", add_special_tokens=False)["input_ids"])
    return any(token.startswith(SPACE_MARKERS) for token in tokens[1:])


def _word(token: str, marked: bool) -> str:
    """A token's word, lower-cased if tokens mark spaces; "" for a token without the others' marker."""
    if not marked:
        return token.removesuffix(WORD_END)
    return token[1:].lower() if token.startswith(SPACE_MARKERS) else ""


MODELS = ModelKind("AutoModelForQuestionAnswering", "model trained to answer by spans, e.g. on SQuAD")
SPANS = ("exact", "released")
LAYOUTS = ("tokenizer", "released")
# What the authors put before every context for models trained on NewsQA.
NEWSQA_HEADER = "[aug] yes no  [text] (CNN) --  "


@dataclass(frozen=True)
class SpanRows:
    """Rows, and spans to read there."""

    rows: TokenRows
    spans: TokenSpans


class ExtractiveQAScorer(EncoderScorer):
    """Scores the two subjects of a context by the probabilities of their spans."""

    name = "extractive_qa"

    def __init__(
        self,
        loaded: LoadedModel,
        *,
        span: str = "exact",
        header: str = "",
        layout: str = "tokenizer",
        batch_tokens: int | None = None,
    ) -> None:
        self.span = span
        self.layout = layout
        self._header = header
        super().__init__(loaded, batch_tokens)
        self._released = _released_template(loaded) if layout == "released" else None

    def score(self, items: SpanQuestions) -> np.ndarray:
        """Score both subjects of every item."""
        # A part of a run contains all contexts and questions of the run.
        contexts, context_of = in_use(items.context_of, len(items.contexts))
        questions, question_of = in_use(items.question_of, len(items.questions))
        used = _pick(items, contexts, questions, context_of, question_of)
        prepared = self.prepare(used)
        if prepared is None:
            warnings.warn(
                f"extractive_qa: the tokenizer of model {self._name!r} encodes a pair of texts differently than the "
                "texts apart; each pair is encoded on its own, slower",
                stacklevel=2,
            )
            number = np.arange(len(items.context_of))
            each = _pick(items, items.context_of, items.question_of, number, number)
            scores = self._run(each, self._prepare_pairs(each))
        else:
            scores = self._run(used, prepared)
        self.refuse_nan(scores, lambda item: f"context {items.contexts[items.context_of[item]]!r}")
        return scores

    def prepare(self, items: SpanQuestions) -> SpanRows | None:
        """Encode every context and question once, for rows of a question and a context."""
        template = self._released or Template.read(self._tokenizer, 2)
        if template is None:
            return None
        contexts = [self._header + context for context in items.contexts]
        encoded = self._encode(contexts, add_special_tokens=False)
        heads = Pieces.framed(encode_plain(self._tokenizer, items.questions), template, 0, before=True, after=True)
        tails = Pieces.framed(encoded["input_ids"], template, 1, before=False, after=True)

        def encode_pairs(head_of: np.ndarray, tail_of: np.ndarray) -> Any:
            pairs = [items.questions[i] for i in head_of], [contexts[i] for i in tail_of]
            return self._tokenizer(*pairs, verbose=False)

        if self._released is None and not spells(heads, tails, encode_pairs):
            return None
        spans = self._find_spans(items, encoded["input_ids"], encoded["offset_mapping"])
        return SpanRows(TokenRows(heads, tails, items.question_of, items.context_of), spans)

    def _prepare_pairs(self, items: SpanQuestions) -> SpanRows:
        """Make rows without heads, whose tails are whole pairs; item i asks question i about context i."""
        contexts = [self._header + context for context in items.contexts]
        encoded = self._encode(list(items.questions), contexts)
        # Only tokens of the context count for spans and for the words around them.
        tokens, offsets = [], []
        for i, (row, characters) in enumerate(zip(encoded["input_ids"], encoded["offset_mapping"], strict=True)):
            owners = encoded.sequence_ids(i)
            tokens.append([token if owner == 1 else -1 for token, owner in zip(row, owners, strict=True)])
            offsets.append([pair if owner == 1 else (0, 0) for pair, owner in zip(characters, owners, strict=True)])
        return SpanRows(TokenRows.whole(encoded), self._find_spans(items, tokens, offsets))

    def _encode(self, *texts: list[str], **more: bool) -> Any:
        if not texts[0]:
            return {"input_ids": [], "offset_mapping": []}
        return self._tokenizer(*texts, return_offsets_mapping=True, return_attention_mask=False, verbose=False, **more)

    def _find_spans(
        self, items: SpanQuestions, tokens: Sequence[Sequence[int]], offsets: Sequence[Sequence[tuple[int, int]]]
    ) -> TokenSpans:
        """Find the subjects of every context; token -1 is outside the context."""
        characters = np.array(
            [
                (locate(context, first, second), locate(context, second, first))
                for context, (first, second) in zip(items.contexts, items.subjects, strict=True)
            ],
            dtype=np.int64,
        ).reshape(-1, 2, 2)
        flat = flatten(tokens)
        words = WordTable(self._tokenizer, flat[flat >= 0])
        spans = token_spans(offsets, words.is_bare(flat), characters + len(self._header))
        lost = np.argwhere(spans.starts[:, :, 0] < 0)
        if lost.size:
            context, subject = lost[0]
            raise QabiasError(
                f"context {items.contexts[context]!r}: the tokenizer of model {self._name!r} makes no token of "
                f"{items.subjects[context][subject]!r}.",
                "Use another model.",
            )
        return widen(spans, tokens, words) if self.span == "released" else spans

    def _run(self, items: SpanQuestions, prepared: SpanRows) -> np.ndarray:
        rows, spans = prepared.rows, prepared.spans

        def ask(chosen: np.ndarray, inputs: dict[str, torch.Tensor]) -> Any:
            tail, before = rows.tails(chosen)
            answer = self._model(**inputs)
            mask = inputs.get("attention_mask")
            starts = _largest(answer.start_logits, mask, spans.starts[tail] + before[:, None, None])
            ends = _largest(answer.end_logits, mask, spans.ends[tail] + before[:, None, None])
            # The root of each, because the product of two small ones may vanish.
            return (starts.sqrt() * ends.sqrt()).tolist()

        probabilities = self.run(rows, ask, lambda row: f"context {items.contexts[items.context_of[row]]!r}")
        return np.array(probabilities, dtype=np.float32).reshape(-1, 2)


def _largest(logits: torch.Tensor, mask: torch.Tensor | None, places: np.ndarray) -> torch.Tensor:
    """Probabilities of tokens within their rows, the largest of equivalent ones."""
    import torch

    visible = logits.float() if mask is None else logits.float().masked_fill(mask == 0, float("-inf"))
    probabilities = visible.softmax(dim=-1)
    index = torch.from_numpy(places.reshape(len(places), -1)).to(logits.device)
    return probabilities.gather(1, index).view(places.shape).amax(dim=-1)


def _released_template(loaded: LoadedModel) -> Template:
    """Special tokens around question and context in the authors' code, for any tokenizer."""
    tokenizer = loaded.tokenizer
    first, last = tokenizer.bos_token_id, tokenizer.eos_token_id
    if first is None:
        first, last = tokenizer.cls_token_id, tokenizer.sep_token_id
    if first is None or last is None:
        raise QabiasError(
            f"extractive_qa: the tokenizer of model {loaded.name!r} has no special tokens for layout=released.",
            "Remove the option.",
        )
    return Template(specials=((first,), (last,), (last,)), special_types=((0,), (0,), (0,)), types=(0, 0))


def _pick(items: SpanQuestions, contexts: np.ndarray, questions: np.ndarray, *numbers: np.ndarray) -> SpanQuestions:
    """Some contexts and questions, and the number of each item's context and question among them."""
    chosen = [items.contexts[i] for i in contexts]
    subjects = [items.subjects[i] for i in contexts]
    return SpanQuestions(chosen, [items.questions[i] for i in questions], subjects, *numbers)


@dataclass(frozen=True)
class SpanOptions:
    """How contexts, questions and subjects become tokens."""

    span: str = option_field(
        SPANS[0], "tokens of a subject: exact, or released (as in the authors' code)", choices=SPANS
    )
    header: str = option_field(
        "",
        "text before every context; newsqa for models trained on NewsQA",
        read=lambda text: NEWSQA_HEADER if text == "newsqa" else text,
    )
    layout: str = option_field(
        LAYOUTS[0],
        "special tokens around question and context: tokenizer, or released (as in the authors' code)",
        choices=LAYOUTS,
    )


def _load(loading: Loading) -> ExtractiveQAScorer:
    options = parse_options("extractive_qa", SpanOptions, loading.options)
    return ExtractiveQAScorer(loading.load_model(MODELS), batch_tokens=loading.batch_tokens, **vars(options))


KIND = ScorerKind(
    name="extractive_qa",
    summary="probabilities of two subjects as the answering span of a context",
    interfaces=("spans",),
    load=_load,
    options=SpanOptions,
    auto_class=MODELS.auto_class,
    heads=("ForQuestionAnswering",),
    has_lengths=False,
    reads_prompt=False,
    many_at_once=True,
)
