"""From written tokens to an answer: marks of thinking are kept while other special tokens are dropped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qabias.answers.outcomes import Written
from qabias.answers.thinking import marks_thinking, set_thinking_aside


class WrittenDecoder:
    """Decodes what a model wrote, and sets the thinking before an answer aside."""

    def __init__(self, tokenizer: Any, opening: str = "") -> None:
        self._tokenizer = tokenizer
        self._opening = opening
        added = getattr(tokenizer, "added_tokens_decoder", {})  # tokenizers of other packages do not tell them
        special = {token for token, content in added.items() if content.special} | {*tokenizer.all_special_ids}
        self._marks = {token for token in special if marks_thinking(tokenizer.convert_ids_to_tokens(token))}
        self._dropped = special - self._marks

    def decode(self, tokens: Sequence[int], finish: str) -> Written:
        """The answer that tokens say."""
        if self._marks:
            tokens = [token for token in tokens if token not in self._dropped]
        text: str = self._tokenizer.decode(tokens, skip_special_tokens=not self._marks)
        said = set_thinking_aside(self._opening + text)
        return Written(text, finish) if said.answer == text.strip() else Written(said.answer, finish, said.thinking)
