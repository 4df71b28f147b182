"""Where subjects stand in a context, in characters and in tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from qabias.errors import QabiasError

SPACE_MARKERS = ("Ġ", "▁")
# XLM's tokenizer marks the end of a word instead of its beginning.
WORD_END = "</w>"

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
        """Return whether the span lies within another."""
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
        raise QabiasError(f"context {context!r}: {subject!r} occurs only inside {other!r}")
    return span


def _fold(text: str) -> str:
    """Lower-case a text without moving its characters: some become two."""
    lower = text.lower()
    return lower if len(lower) == len(text) else "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def _span(start: int, name: str, context: str, subject: str) -> CharacterSpan:
    if not name or start < 0:
        raise QabiasError(f"context {context!r} does not hold the subject {subject!r}")
    return CharacterSpan(start, start + len(name))


@dataclass(frozen=True)
class TokenSpans:
    """Tokens of the two subjects of some texts, counted from the beginning of the text."""

    starts: np.ndarray
    ends: np.ndarray


def token_spans(offsets: Sequence[Sequence[tuple[int, int]]], bare: np.ndarray, characters: np.ndarray) -> TokenSpans:
    """Find the first and the last token that overlap with each subject."""
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
    """Let the words around subjects count as theirs, as the authors do."""
    first, last = spans.starts[:, :, 0], spans.ends[:, :, 0]
    rows = np.arange(len(tokens))[:, None]
    longest = max((len(text) for text in tokens), default=0)
    # Three columns before and one behind stand for what is outside of the text.
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
    """The words that tokens stand for."""

    def __init__(self, tokenizer: Any, tokens: np.ndarray) -> None:
        self._tokens = np.unique(tokens)
        self._texts: list[str] = tokenizer.convert_ids_to_tokens(self._tokens.tolist())
        marked = has_space_marker(tokenizer)
        self._words = [_word(text, marked) for text in self._texts]

    def is_in(self, tokens: np.ndarray, words: frozenset[str] | set[str]) -> np.ndarray:
        """Tell which tokens are one of some words, whole and, where there is a space marker, with it."""
        return self._known(tokens, [word in words for word in self._words])

    def is_token(self, tokens: np.ndarray, text: str) -> np.ndarray:
        """Tell which tokens are a text, without any marker."""
        return self._known(tokens, [own.removesuffix(WORD_END) == text for own in self._texts])

    def is_bare(self, tokens: np.ndarray) -> np.ndarray:
        """Tell which tokens are nothing but a space marker."""
        return self._known(tokens, [own in SPACE_MARKERS for own in self._texts])

    def _known(self, tokens: np.ndarray, values: list[bool]) -> np.ndarray:
        return np.isin(tokens, self._tokens[np.array(values, dtype=bool)])


def has_space_marker(tokenizer: Any) -> bool:
    """Tell whether the tokens of a tokenizer say that a space stands before them."""
    tokens = tokenizer.convert_ids_to_tokens(tokenizer("the man", add_special_tokens=False)["input_ids"])
    return any(token.startswith(SPACE_MARKERS) for token in tokens[1:])


def _word(token: str, marked: bool) -> str:
    """The word of a token, in lower case where there is a marker; nothing for a token that lacks that of the others."""
    if not marked:
        return token.removesuffix(WORD_END)
    return token[1:].lower() if token.startswith(SPACE_MARKERS) else ""
