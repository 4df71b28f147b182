"""What a log of another tool holds, whatever the tool."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qabias.answers.outcomes import whole


@dataclass(frozen=True)
class Sample:
    """One question that a tool put to a model, and what came back. The texts that came back are whole, see `whole`.

    Attributes:
        where: What messages call it, such as "line 12".
        asked: What the tool keeps of the example, by its own names: inspect's `metadata` with `input` and `choices`,
            the harness's `doc` and `arguments`, HELM's `instance`.
        answer: What the tool itself read, in its own form, such as the letter "B"; None where it read nothing. Where it
            has several scorers, the first that read something.
        text: What the model wrote; None where it wrote nothing, such as where only log-likelihoods were asked.
        loglikelihoods: Those of the options in the tool's order; () where none were asked.
        finish: Why the text ended, as the tool says it: "stop", "max_tokens", "length", "content_filter", ...; "" where
            it does not.
        error: Why there is no answer, in a line; "" where nothing failed.
        run: Which of several answers to one question it is, from 1 (an epoch of inspect, a repeat of the harness).
        thinking: What the model thought before the text, where the tool keeps it apart.
        answers: What each scorer read, by its name, in the tool's order; None where it scored and read nothing. Empty
            where the tool has no scorers, or none has scored the sample.
    """

    where: str
    asked: Mapping[str, Any]
    answer: Any = None
    text: str | None = None
    loglikelihoods: tuple[float, ...] = ()
    finish: str = ""
    error: str = ""
    run: int = 1
    thinking: str = ""
    answers: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("text", "thinking", "error", "answer"):
            value = getattr(self, name)
            if isinstance(value, str):
                object.__setattr__(self, name, whole(value))


@dataclass(frozen=True)
class Log:
    """One evaluation of one model by another tool.

    Attributes:
        path: The file, or the folder where a log is several.
        tool: Name of the tool, as one installs it: "inspect_ai", "lm-eval", "helm", "openai-batch".
        version: Its version; "" where the log does not say it.
        task: What the tool calls the task.
        model: What it calls the model; "" where the log does not say it.
        about: What else the log says of the whole evaluation, by the tool's own names.
        samples: Reads the samples from the file, one after the other and each time from the beginning. It raises
            `QabiasError` where the file is damaged.
        figures: The scores that the tool printed, by its own names; not a number where it printed none.
        n_expected: How many samples the tool set out to ask, failed ones included; None where the log does not say it.
        notes: What to know of the log, in sentences, such as that the tool stopped before the end.
        beside: Further files of the tool that belong to it; of a folder all its files do.
    """

    path: Path
    tool: str
    version: str
    task: str
    model: str
    about: Mapping[str, Any]
    samples: Callable[[], Iterator[Sample]]
    figures: Mapping[str, float] = field(default_factory=dict)
    n_expected: int | None = None
    notes: tuple[str, ...] = ()
    beside: tuple[Path, ...] = ()

    def owns(self, path: Path) -> bool:
        """Whether a file is read with the log."""
        return path in self.beside or self.path in path.parents

    @property
    def called(self) -> str:
        """What messages call it, e.g. "age.eval (inspect_ai 0.3.285, task inspect_evals/bbq)"."""
        return f"{self.path} ({' '.join(filter(None, (self.tool, self.version)))}, task {self.task})"
