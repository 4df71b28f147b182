"""Train a model to answer by spans on SQuAD or NewsQA, like Li et al. (2020) before UnQover.

Example: python -m lab.finetuning.qa --model FacebookAI/roberta-base --output models/roberta-base-squad; then
qabias run unqover --model models/roberta-base-squad. For NewsQA use --train and --dev. Files have the columns context,
question and answers (an object of the lists text and answer_start). The authors trained on MultiQA's NewsQA, whose
contexts begin with a header; this script adds none. Measure a model trained on such contexts with --option
header=newsqa. Default settings are the authors': batches of 20, rate 3e-5, 2 epochs, seed 3435, and windows of 384
(SQuAD) or 336 tokens (NewsQA). To resume, rerun the command.

A long context is split into overlapping windows, each after the question and a fixed number of tokens behind the
previous one. The training label of a window is its first complete reference answer, or the classification token. The
answer to a question is the span with the largest sum of start and end logit among all its windows.
"""

from __future__ import annotations

import argparse
import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lab.finetuning.rows import Row
from lab.finetuning.training import Task, finetune, input_names, make_parser
from lab.options import explained
from qabias.errors import QabiasError

RECIPES = {"squad": {"max_length": 384, "windows": "answer"}, "newsqa": {"max_length": 336, "windows": "first"}}
"""Settings of Li et al. that differ between data sets (Appendix A.1 and the README of their code)."""
WINDOWS = ("answer", "first", "all")
"""Windows to train on: those with an answer, the first of these per question, or all."""
LONGEST_ANSWER = 30
ENCODED_AT_ONCE = 1000
# F1 in percent on the development set (Li et al. 2020, Table 6), measured in windows that hold the answer.
PUBLISHED_F1 = {
    "squad": {
        "distilbert-base-uncased": 85.1,
        "bert-base-uncased": 88.8,
        "bert-large-uncased-whole-word-masking": 93.2,
        "roberta-base": 90.9,
        "roberta-large": 93.3,
    },
    "newsqa": {
        "distilbert-base-uncased": 65.4,
        "bert-base-uncased": 68.1,
        "bert-large-uncased-whole-word-masking": 74.5,
        "roberta-base": 73.8,
        "roberta-large": 76.2,
    },
}

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


class QAExample(NamedTuple):
    """One question."""

    context: str
    question: str
    answers: tuple[str, ...]
    starts: tuple[int, ...]


@dataclass(frozen=True)
class Window:
    """Tokens that the model reads at once."""

    example: int
    inputs: dict[str, list[int]]
    offsets: np.ndarray
    start: int
    end: int
    holds_answer: bool


def parse(row: Row) -> QAExample:
    """Read a row with the columns `context`, `question` and `answers`, an object of `text` and `answer_start`."""
    context, answers = row.text("context"), row.nested("answers")
    if not isinstance(answers, dict) or not all(isinstance(answers.get(key), list) for key in ("text", "answer_start")):
        raise row.fault("answers", "is not an object of lists", "use {'text': [...], 'answer_start': [...]}")
    texts, starts = answers["text"], answers["answer_start"]
    if not texts or len(texts) != len(starts):
        raise row.fault(
            "answers",
            f"has {len(texts)} texts and {len(starts)} starts",
            "give one start for each text, and at least one",
        )
    for text, start in zip(texts, starts, strict=True):
        if not isinstance(text, str) or not text.strip():
            raise row.fault("answers", f"{text!r} is not an answer", "give a text that is not empty")
        if type(start) is not int or start < 0 or context[start : start + len(text)] != text:
            raise row.fault("answers", f"the context has no {text!r} at answer_start {start!r}", _fix(context, text))
    return QAExample(context, row.text("question"), tuple(texts), tuple(starts))


def _fix(context: str, answer: str) -> str:
    place = context.find(answer)
    return "correct the text, or remove the row" if place < 0 else f"use {place}, its first position"


def make_windows(
    examples: Sequence[QAExample], tokenizer: Any, inputs: Sequence[str], max_length: int, stride: int
) -> list[Window]:
    """Cut the contexts into windows."""
    if not getattr(tokenizer, "is_fast", False):
        raise QabiasError("the tokenizer gives no positions of tokens", "use a model with a fast tokenizer")
    if stride < 1:
        raise QabiasError(f"--stride is {stride}", "use at least 1")
    windows: list[Window] = []
    for first in range(0, len(examples), ENCODED_AT_ONCE):
        part = examples[first : first + ENCODED_AT_ONCE]
        rooms = _rooms(part, tokenizer, max_length, stride)
        # The tokenizer needs the overlap of windows, which depends on the length of the question.
        for room in sorted(set(rooms)):
            alike = [number for number, other in enumerate(rooms) if other == room]
            encoded = tokenizer(
                [part[number].question for number in alike],
                [part[number].context for number in alike],
                truncation="only_second",
                max_length=max_length,
                stride=room - stride,
                return_overflowing_tokens=True,
                return_offsets_mapping=True,
                verbose=False,
            )
            for number, sample in enumerate(encoded["overflow_to_sample_mapping"]):
                of_context = np.array([owner == 1 for owner in encoded.sequence_ids(number)])
                offsets = np.array(encoded["offset_mapping"][number], dtype=np.int32)
                offsets[~of_context] = -1
                taken = {name: encoded[name][number] for name in inputs}
                example = alike[sample]
                windows.append(_label(first + example, part[example], taken, offsets, tokenizer.cls_token_id))
    return sorted(windows, key=lambda window: window.example)


def _rooms(examples: Sequence[QAExample], tokenizer: Any, max_length: int, stride: int) -> list[int]:
    """Tokens of the context per window, for each question; refuses questions with less room than a stride."""
    questions = [example.question for example in examples]
    encoded = tokenizer(questions, add_special_tokens=False, return_attention_mask=False, verbose=False)
    rooms = []
    for question, tokens in zip(questions, encoded["input_ids"], strict=True):
        rooms.append(max_length - len(tokens) - tokenizer.num_special_tokens_to_add(pair=True))
        if rooms[-1] < stride:
            raise QabiasError(
                f"question {question[:60]!r}: its {len(tokens)} tokens leave less than {stride} of {max_length} tokens "
                "for the context",
                "use a larger --max-length or a smaller --stride",
            )
    return rooms


def _label(
    number: int, example: QAExample, inputs: dict[str, list[int]], offsets: np.ndarray, cls_token: int | None
) -> Window:
    spans = [
        find_tokens(offsets, start, start + len(answer))
        for answer, start in zip(example.answers, example.starts, strict=True)
    ]
    tokens = inputs["input_ids"]
    nowhere = tokens.index(cls_token) if cls_token in tokens else 0
    start, end = next((span for span in spans if span), (nowhere, nowhere))
    return Window(number, inputs, offsets, start, end, any(spans))


def find_tokens(offsets: np.ndarray, start: int, end: int) -> tuple[int, int] | None:
    """Find the tokens of a span of characters."""
    holds_first = np.flatnonzero((offsets[:, 0] <= start) & (start < offsets[:, 1]))
    holds_last = np.flatnonzero((offsets[:, 0] < end) & (end <= offsets[:, 1]))
    return (int(holds_first[0]), int(holds_last[-1])) if holds_first.size and holds_last.size else None


class WindowCollator:
    """Makes a batch of windows, padded to the longest."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def __call__(self, windows: Sequence[Window]) -> dict[str, Any]:
        """Tensors of shape (n_windows, n_tokens) by name, `start_positions` and `end_positions` of (n_windows,)."""
        import torch

        batch = self._tokenizer.pad(
            {name: [window.inputs[name] for window in windows] for name in windows[0].inputs}, return_tensors="pt"
        )
        return {
            **batch,
            "start_positions": torch.tensor([window.start for window in windows]),
            "end_positions": torch.tensor([window.end for window in windows]),
        }


def best_answers(
    examples: Sequence[QAExample], windows: Iterable[Window], start_logits: np.ndarray, end_logits: np.ndarray
) -> list[str]:
    """Answer every question by the span with the largest sum of logits among its windows."""
    answers = [""] * len(examples)
    best = np.full(len(examples), -np.inf)
    for window, starts, ends in zip(windows, start_logits, end_logits, strict=True):
        score, first, last = _best_span(starts, ends, np.flatnonzero(window.offsets[:, 1] > window.offsets[:, 0]))
        if score > best[window.example]:
            best[window.example] = score
            context = examples[window.example].context
            answers[window.example] = context[window.offsets[first, 0] : window.offsets[last, 1]].strip()
    return answers


def _best_span(starts: np.ndarray, ends: np.ndarray, tokens: np.ndarray) -> tuple[float, int, int]:
    """Score, first and last token of the best span of at most `LONGEST_ANSWER` of the given tokens."""
    sums = starts[tokens, None].astype(np.float64) + ends[None, tokens]
    # From the diagonal (spans of one token) upwards.
    allowed = np.triu(np.ones(sums.shape, dtype=bool)) & ~np.triu(np.ones(sums.shape, dtype=bool), LONGEST_ANSWER)
    sums[~allowed] = -np.inf
    first, last = np.unravel_index(sums.argmax(), sums.shape)
    return float(sums[first, last]), int(tokens[first]), int(tokens[last])


def data_set(data: str) -> str | None:
    """Return the training data set of the paper in a name: "squad" or "newsqa", otherwise None."""
    # A file name can contain both, for NewsQA in SQuAD's form.
    return next((name for name in ("newsqa", "squad") if name in data.lower()), None)


def published_f1(model: str, data: str) -> tuple[str, float] | None:
    """Return the published F1 of Li et al. for a model and training data."""
    name = data_set(data)
    score = None if name is None else PUBLISHED_F1[name].get(model.rstrip("/").rsplit("/", 1)[-1])
    return None if name is None or score is None else (name, score)


def with_answers(windows: Sequence[Window], which: str) -> list[Window]:
    """The windows with an answer, or for `which` = "first" only the first of these for each question."""
    holding = [window for window in windows if window.holds_answer]
    if which != "first":
        return holding
    first: dict[int, Window] = {}
    for window in holding:
        first.setdefault(window.example, window)
    return list(first.values())


def make_task(
    model: Any,
    tokenizer: Any,
    train: Sequence[QAExample],
    dev: Sequence[QAExample],
    max_length: int,
    stride: int,
    windows: str,
) -> Task:
    """Combine training data and scores."""
    inputs = input_names(model, tokenizer)
    for_training = make_windows(train, tokenizer, inputs, max_length, stride)
    if windows != "all":
        for_training = with_answers(for_training, windows)
    for_dev = make_windows(dev, tokenizer, inputs, max_length, stride)
    references = [example.answers for example in dev]

    def evaluate(logits: tuple[np.ndarray, np.ndarray]) -> dict[str, float]:
        answers = best_answers(dev, for_dev, *logits)
        chosen = with_answers(for_dev, windows)
        places = {id(window): place for place, window in enumerate(for_dev)}
        held = [places[id(window)] for window in chosen]
        informed = best_answers(dev, chosen, logits[0][held], logits[1][held])
        return {
            "exact_match": average(exact_match, answers, references),
            "f1": average(f1, answers, references),
            "f1_answer_windows": average(f1, informed, references),
            "n": len(dev),
        }

    return Task(for_training, for_dev, WindowCollator(tokenizer), evaluate, "f1")


def normalise(answer: str) -> str:
    """Remove case, punctuation, articles and repeated spaces."""
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split())


def exact_match(prediction: str, reference: str) -> float:
    """1.0 if both are equal once normalized, otherwise 0.0."""
    return float(normalise(prediction) == normalise(reference))


def f1(prediction: str, reference: str) -> float:
    """Harmonic mean of the precision and the recall of words, in [0, 1]; 0.0 if no word is shared."""
    predicted, right = normalise(prediction).split(), normalise(reference).split()
    n_shared = (Counter(predicted) & Counter(right)).total()
    return 2 * n_shared / (len(predicted) + len(right)) if n_shared else 0.0


def average(
    score: Callable[[str, str], float], predictions: Sequence[str], references: Sequence[Sequence[str]]
) -> float:
    """Mean over questions of the score against the best reference, in [0, 1]."""
    best = [
        max(score(prediction, reference) for reference in right)
        for prediction, right in zip(predictions, references, strict=True)
    ]
    return sum(best) / len(best)


def _make_parser() -> argparse.ArgumentParser:
    """The options with the settings for SQuAD as defaults."""
    parser = make_parser(
        __doc__,
        "FacebookAI/roberta-base",
        "rajpurkar/squad",
        "plain_text",
        epochs=2,
        learning_rate=3e-5,
        batch_size=20,
        seed=3435,
    )
    parser.add_argument(
        "--recipe",
        choices=sorted(RECIPES),
        help="recipe for the default window length and rule [inferred from the name of the data]",
    )
    parser.add_argument("--stride", type=int, default=128, help="tokens between the starts of two windows of a context")
    parser.add_argument(
        "--windows",
        choices=WINDOWS,
        help="windows to train on: those with an answer, the first of these per question, or all",
    )
    parser.set_defaults(**RECIPES["squad"])
    return parser


def main() -> None:
    """Train, and print exact match and F1 on the development rows with the published F1, if any."""
    parser = _make_parser()
    first = parser.parse_args()
    data = first.recipe or str(first.train or first.dataset)
    recipe = data_set(data)
    if recipe is None:
        with explained():
            raise QabiasError(f"{data} contains neither squad nor newsqa.", "Add --recipe squad or --recipe newsqa.")
    parser.set_defaults(**RECIPES[recipe])
    arguments = parser.parse_args()
    how = "from --recipe" if first.recipe else f"from the name {data}; change it with --recipe"
    print(
        f"recipe {recipe} ({how}): windows of {arguments.max_length} tokens that begin {arguments.stride} apart, "
        f"trained on: {arguments.windows}"
    )
    choices = {"stride": arguments.stride, "windows": arguments.windows}
    with explained():
        score = finetune(arguments, "qa", "AutoModelForQuestionAnswering", parse, make_task, **choices)
    print(
        f"{arguments.output}: exact match {100 * score['exact_match']:.1f}, F1 {100 * score['f1']:.1f} "
        f"on {score['n']:,} questions"
    )
    published = published_f1(arguments.model, data)
    reference = f" (Li et al. 2020, {published[0]}: {published[1]})" if published else ""
    print(f"F1 in the windows that hold the answer: {100 * score['f1_answer_windows']:.1f}{reference}")


if __name__ == "__main__":
    main()
