"""Named prompt formats: pure functions from an example to what a model is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from qabias.support.suggest import unknown

Example = Mapping[str, Any]


@dataclass(frozen=True)
class PromptFormat:
    """A way of putting an example to a model.

    Attributes:
        name: Name of the format.
        version: Version of its text.
        description: One line for people.
        render: Gives the text before the options, and the options with the space or newline that goes before them.
        question_only: Whether it leaves the context out, so that nobody can know the answer.
        pairs: Whether a model reads each option by itself as a text that goes with the first one.
        written: Whether only a model that writes can answer.
        new_tokens: Most tokens of a written answer, where no option says otherwise and the model does not think first.
        lists_answers: Whether the prompt lists the answers, so that their order can be changed.
        reads: How a written answer is read: `"choice"` as one of the listed answers, `"person"` as whom it names.
        sources: Sources of texts that have what it asks with; empty for all of them.
        asks: Ways of asking that it is made for, see `qabias.scorers.kind.ASK_METHODS`; empty for any.
        orders: Orders of the answers in which every question is asked, see `qabias.benchmarks.orders`.
        wordings: The formats of a set, each asked by itself; the scores of a run are means over them.
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
    wordings: tuple[PromptFormat, ...] = ()

    @property
    def signature(self) -> str:
        """Name and version, e.g. "qa@1", and the number of orders if there are several, e.g. "letters@1+orders=3"."""
        return f"{self.name}@{self.version}" + (f"+orders={self.orders}" if self.orders > 1 else "")

    def in_orders(self, orders: int) -> PromptFormat:
        """The same, asked in so many orders of the answers."""
        return replace(self, orders=orders, wordings=tuple(wording.in_orders(orders) for wording in self.wordings))

    def texts(self, example: Example) -> list[str]:
        """What a model reads of an example: the prompt, or the prompt with each option where these are pairs."""
        prefix, options = self.render(example)
        return [prefix + option for option in options] if self.pairs else [prefix]


def choose_format(formats: Mapping[str, PromptFormat], name: str) -> PromptFormat:
    """The format of that name."""
    if name not in formats:
        raise unknown("format", name, formats, "--format")
    return formats[name]


def complete(question: str, answer: str) -> str:
    """A question with an answer behind it, as models for multiple choice are trained and asked."""
    return f"{question} {answer}"
