"""Named prompt formats: pure functions from an example to a prompt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from qabias.errors import arg
from qabias.support.suggest import unknown

Example = Mapping[str, Any]


@dataclass(frozen=True)
class PromptFormat:
    """How an example is rendered as a prompt.

    Attributes:
        version: Version of its text.
        render: From an example to the prompt and the options, each with the space or newline before it.
        question_only: Whether it omits the context, which makes every question unanswerable.
        pairs: Whether a model reads the prompt and each option as a pair of texts.
        written: Whether only a model that writes can answer.
        new_tokens: Maximum tokens of a written answer, without thinking.
        lists_answers: Whether the prompt lists the answers, which then have an order.
        reads: How a written answer is parsed: `"choice"` of a listed answer, or the `"person"` it names.
        sources: Sources of texts that it needs; empty for all.
        asks: Ask methods that it serves, see `qabias.scorers.kind.ASK_METHODS`; empty for all.
        orders: Answer orders per question, see `qabias.benchmarks.orders`.
        variants: The prompt variants of a set; the scores of a run are means over them.
    """

    name: str
    version: int
    description: str
    render: Callable[[Example], tuple[str, tuple[str, ...]]]
    question_only: bool = False
    pairs: bool = False
    written: bool = False
    new_tokens: int = 64
    lists_answers: bool = False
    reads: Literal["choice", "person"] = "choice"
    sources: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    orders: int = 1
    variants: tuple[PromptFormat, ...] = ()

    @property
    def signature(self) -> str:
        """Name, version and number of answer orders, e.g. "qa@1" or "letters@1+orders=3"."""
        return f"{self.name}@{self.version}" + (f"+orders={self.orders}" if self.orders > 1 else "")

    def in_orders(self, orders: int) -> PromptFormat:
        """The same format with several answer orders."""
        return replace(self, orders=orders, variants=tuple(variant.in_orders(orders) for variant in self.variants))

    def texts(self, example: Example) -> list[str]:
        """The texts that a model reads: the prompt, or for pairs the prompt with each option."""
        prefix, options = self.render(example)
        return [prefix + option for option in options] if self.pairs else [prefix]


def choose_format(formats: Mapping[str, PromptFormat], name: str) -> PromptFormat:
    """The format of that name."""
    if name not in formats:
        raise unknown("format", name, formats, arg("format"))
    return formats[name]


def complete(question: str, answer: str) -> str:
    """A question followed by an answer, as multiple-choice models are trained."""
    return f"{question} {answer}"
