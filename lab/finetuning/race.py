"""Train a model for multiple choice on RACE (Lai et al. 2017), like Parrish et al. (2022) before BBQ.

Example: python -m lab.finetuning.race --model FacebookAI/roberta-base --output models/roberta-base-race; then
qabias run bbq --model models/roberta-base-race. Files have the columns article, question, options (a list) and answer
(A to D). Settings follow the paper (3 epochs, rate 1e-5, batches of 16) and the recipe that its repository
links to (github.com/zphang/lrqa): 512 tokens, warmup over a tenth of the steps, the answer after the question, and the
best checkpoint on the validation split. To resume, rerun the command.

A multiple-choice model reads one pair of texts per answer: the passage, then question and answer, like the scorer
`multiple_choice`. Many questions of RACE have a gap. The answer comes after these too, as in the recipe of BBQ's
authors, unless it fills the gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lab.finetuning.rows import Row
from lab.finetuning.training import Task, finetune, input_names, make_parser
from lab.options import explained
from qabias.benchmarks.prompt_format import complete

LETTERS = "ABCD"
GAP = "_"
"""Position of the answer in a question with a gap."""
GAPS = ("append", "fill")
"""Position of the answer to a question with a gap: after it, or in it."""


class RaceExample(NamedTuple):
    """One question."""

    article: str
    candidates: tuple[str, ...]
    label: int


def parse(row: Row, gaps: str = GAPS[0]) -> RaceExample:
    """Read a row with the columns `article`, `question`, `options` and `answer`."""
    question = row.text("question")
    options = row.nested("options")
    if not isinstance(options, list) or not all(isinstance(option, str) for option in options):
        fix = "use a list of texts, e.g. ['a hat', 'a coat', 'a dog', 'a cat']"
        raise row.fault("options", "is not a list of texts", fix)
    if len(options) != len(LETTERS):
        raise row.fault("options", f"has {len(options)} options, not {len(LETTERS)}", "correct or remove the row")
    answer = row.text("answer")
    if answer not in tuple(LETTERS):
        raise row.fault("answer", f"{answer!r} is not one of {', '.join(LETTERS)}", "use the right option's letter")
    return RaceExample(
        article=row.text("article"),
        candidates=tuple(
            question.replace(GAP, option) if gaps == "fill" and GAP in question else complete(question, option)
            for option in options
        ),
        label=LETTERS.index(answer),
    )


class RaceCollator:
    """Makes a batch of examples; a row that is too long loses the end of its longer text, usually the passage."""

    def __init__(self, tokenizer: Any, inputs: Sequence[str], max_length: int) -> None:
        self._tokenizer, self._inputs, self._max_length = tokenizer, inputs, max_length

    def __call__(self, examples: Sequence[RaceExample]) -> dict[str, Any]:
        """Tensors of shape (n_examples, n_options, n_tokens) by name, and `labels` of shape (n_examples,)."""
        import torch

        encoded = self._tokenizer(
            [example.article for example in examples for _ in example.candidates],
            [candidate for example in examples for candidate in example.candidates],
            truncation="longest_first",
            max_length=self._max_length,
            padding=True,
            return_tensors="pt",
        )
        batch = {name: encoded[name].view(len(examples), len(LETTERS), -1) for name in self._inputs}
        return {**batch, "labels": torch.tensor([example.label for example in examples])}


def accuracy(logits: np.ndarray, examples: Sequence[RaceExample]) -> float:
    """Share of examples whose right answer has the largest logit, in [0, 1]."""
    return float(np.mean(logits.argmax(axis=1) == [example.label for example in examples]))


def make_task(
    model: Any, tokenizer: Any, train: Sequence[RaceExample], dev: Sequence[RaceExample], max_length: int
) -> Task:
    """Combine training data, and accuracy as their score."""
    collate = RaceCollator(tokenizer, input_names(model, tokenizer), max_length)
    return Task(train, dev, collate, lambda logits: {"accuracy": accuracy(logits, dev), "n": len(dev)}, "accuracy")


def main() -> None:
    """Train and print the accuracy on the development rows."""
    parser = make_parser(
        __doc__,
        "FacebookAI/roberta-base",
        "ehovy/race",
        "all",
        epochs=3,
        learning_rate=1e-5,
        batch_size=16,
        max_length=512,
        warmup_ratio=0.1,
        keep="best",
        save_steps=1000,
    )
    parser.add_argument(
        "--gaps",
        choices=GAPS,
        default=GAPS[0],
        help="position of the answer to a question with a gap: after the question, or in the gap",
    )
    arguments = parser.parse_args()
    noted = {"gaps": arguments.gaps}
    with explained():
        score = finetune(
            arguments,
            "race",
            "AutoModelForMultipleChoice",
            partial(parse, gaps=arguments.gaps),
            make_task,
            noted,
        )
    print(f"{arguments.output}: accuracy {100 * score['accuracy']:.1f} % on {score['n']:,} questions")


if __name__ == "__main__":
    main()
