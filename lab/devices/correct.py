"""How far a scorer's figures differ from a reference, and between batches.

Figures are logarithms: log-likelihoods per scored token, and logarithms of probabilities. The bound is

    SAFETY x u x sqrt(2 x layers + 2) x size

u is the unit roundoff of the precision. Each layer adds two rounded sums to the states; the embeddings and the output
layer add two more. Their errors are nearly independent and grow with the square root of their number (Higham and Mary,
"A new approach to probabilistic rounding error analysis", SIAM Journal on Scientific Computing 41, 2019). The size is
the size of the rounded numbers: logits of size 1, and the logarithm of the vocabulary, which is subtracted in float32.
`SAFETY` covers the rest: several roundings inside a layer, and the largest of many figures.

This file imports torch.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch

from lab.devices import questions
from lab.devices.cases import NEW_TOKENS, Case, Way, answers, questions_of
from qabias.models.loading import LoadedModel
from qabias.scorers.base import MARK, MaskedSentences, Request, SpanQuestions
from qabias.scorers.causal_rows import encode_options
from qabias.scorers.extractive_qa import locate


class Reference(NamedTuple):
    """Answers of a plain loop: logarithms of probabilities, their scored tokens, and written texts."""

    figures: np.ndarray
    units: np.ndarray
    written: Sequence[Written] = ()


def run_plainly(way: Way, tokenizer: Any, items: Any, model: Any) -> Reference:
    """Answer questions row by row."""
    with torch.inference_mode():
        if way.writes:
            return Reference(np.zeros(0), np.ones(0), [_write(tokenizer, model, text) for text, _ in items])
        rows = _LOOPS[way.way if way.way != "options" else way.scorer](tokenizer, items, model)
    figures, units = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    return Reference(figures / units, units)


def _tensor(model: Any, tokens: Sequence[int]) -> torch.Tensor:
    return torch.tensor([list(tokens)], device=model.device)


def _logarithms(logits: torch.Tensor) -> torch.Tensor:
    """Logarithms of probabilities in float64."""
    return logits.cpu().double().log_softmax(dim=-1)


def _causal(tokenizer: Any, requests: Sequence[Request], model: Any) -> list[tuple[float, int]]:
    rows = []
    for row in (row for own in encode_options(tokenizer, requests) for row in own):
        values = _logarithms(model(input_ids=_tensor(model, row.tokens[:-1])).logits[0, -row.n_scored :])
        scored = row.tokens[-row.n_scored :]
        rows.append((sum(float(values[place, token]) for place, token in enumerate(scored)), row.n_scored))
    return rows


def _seq2seq(tokenizer: Any, requests: Sequence[Request], model: Any) -> list[tuple[float, int]]:
    rows = []
    for prefix, option in ((request.prefix, option.strip()) for request in requests for option in request.options):
        source, target = tokenizer(prefix)["input_ids"], tokenizer(text_target=option)["input_ids"]
        values = _logarithms(model(input_ids=_tensor(model, source), labels=_tensor(model, target)).logits)[0]
        rows.append((sum(float(values[place, token]) for place, token in enumerate(target)), len(target)))
    return rows


class Written:
    """A written answer, and at each token the margin of the likeliest over the second."""

    def __init__(self, tokenizer: Any, tokens: Sequence[int], margins: np.ndarray) -> None:
        self._tokenizer, self._tokens, self._margins = tokenizer, tokens, margins

    def text(self, n: int | None = None) -> str:
        """The text of the first tokens."""
        return str(self._tokenizer.decode(self._tokens[:n], skip_special_tokens=True)).strip()

    def parts_from(self, text: str) -> float:
        """The margin at the first difference to another text; 0 for equal texts."""
        text = text.strip()
        if text == self.text():
            return 0.0
        kept = next((n for n in range(1, len(self._tokens) + 1) if not text.startswith(self.text(n))), None)
        # A longer text with the same beginning differs at the last token.
        return float(self._margins[len(self._margins) - 1 if kept is None else min(kept, len(self._margins)) - 1])


def _write(tokenizer: Any, model: Any, prompt: str) -> Written:
    tokens = _tensor(model, tokenizer(prompt)["input_ids"])
    answer = model.generate(
        input_ids=tokens,
        attention_mask=torch.ones_like(tokens),
        max_new_tokens=NEW_TOKENS,
        do_sample=False,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        output_logits=True,
        return_dict_in_generate=True,
    )
    best = torch.stack([_logarithms(logits)[0].topk(2).values for logits in answer.logits]).numpy()
    start = 1 if model.config.is_encoder_decoder else tokens.shape[1]
    return Written(tokenizer, answer.sequences[0, start:].tolist(), best[:, 0] - best[:, 1])


def _spans(tokenizer: Any, items: SpanQuestions, model: Any) -> list[tuple[float, int]]:
    rows = []
    for number, place in zip(items.question_of, items.context_of, strict=True):
        context, pair = items.contexts[place], items.subjects[place]
        inputs = tokenizer(items.questions[number], context, return_tensors="pt", return_offsets_mapping=True)
        offsets, owners = inputs.pop("offset_mapping")[0].tolist(), inputs.sequence_ids(0)
        answer = model(**inputs.to(model.device))
        starts, ends = (_logarithms(logits)[0].numpy() for logits in (answer.start_logits, answer.end_logits))
        for subject, other in (pair, pair[::-1]):
            begin, end = locate(context, subject, other)
            own = [
                token
                for token, (first, last) in enumerate(offsets)
                if owners[token] == 1 and first < end and last > begin
            ]
            rows.append(((starts[own[0]] + ends[own[-1]]) / 2, 1))
    return rows


def _masks(tokenizer: Any, items: MaskedSentences, model: Any) -> list[tuple[float, int]]:
    words = tokenizer([f" {subject}" for subject in items.subjects], add_special_tokens=False)["input_ids"]
    rows = []
    for row, subjects in enumerate(items.subject_of):
        text = items.texts[items.text_of[row]].replace(MARK, tokenizer.mask_token)
        if items.context_of is not None:
            text = f"{items.contexts[items.context_of[row]]} {text}"
        inputs = tokenizer(text, return_tensors="pt").to(model.device)
        values = _logarithms(model(**inputs).logits[inputs["input_ids"] == tokenizer.mask_token_id])[0]
        for word in (words[subject] for subject in subjects):
            is_one = len(word) == 1 and word[0] != tokenizer.unk_token_id
            rows.append((float(values[word[0]]) if is_one else float("nan"), 1))
    return rows


def _choices(tokenizer: Any, requests: Sequence[Request], model: Any) -> list[tuple[float, int]]:
    rows = []
    for request in requests:
        # Options of one question are one row; shorter ones are padded.
        options = [option.strip() for option in request.options]
        inputs = tokenizer([request.prefix] * len(options), options, padding=True, return_tensors="pt")
        values = _logarithms(model(**{name: value[None] for name, value in inputs.to(model.device).items()}).logits)
        rows += [(float(value), 1) for value in values[0]]
    return rows


def _pairs(tokenizer: Any, pairs: Sequence[tuple[str, str]], model: Any) -> list[tuple[float, int]]:
    rows = []
    for pair in pairs:
        values = _logarithms(model(**tokenizer(*pair, return_tensors="pt").to(model.device)).logits)
        rows += [(float(value), 1) for value in values[0]]
    return rows


_LOOPS: dict[str, Any] = {
    "causal": _causal,
    "seq2seq": _seq2seq,
    "spans": _spans,
    "masks": _masks,
    "choices": _choices,
    "pairs": _pairs,
}


HOLDS, FAILS, MEASURED, NOT_MEASURED = "holds", "fails", "measured", "not measured"

QUESTIONS, QUESTIONS_OF_LARGE = 8, 3
"""Number of questions compared with the reference; fewer for a large model."""

LARGE = 400e6
"""Parameters of the smallest large model, whose reference is computed on the device in float32."""

SMALL_BUDGET = 64
"""Tokens of a batch in the second measurement: few, to form different batches."""

UNIT_ROUNDOFF = {"float32": 2.0**-24, "bfloat16": 2.0**-8 / 2, "float16": 2.0**-11}
SAFETY = 16.0


@dataclass(frozen=True)
class Outcome:
    """The result of one measure: `holds`, `fails`, `measured` or `not measured`."""

    state: str
    why: str = ""
    figures: Mapping[str, Any] = field(default_factory=dict)


def bound(dtype: str, layers: int, reference: np.ndarray) -> float:
    """Largest allowed difference of a figure to the reference."""
    rounding = UNIT_ROUNDOFF[dtype] * math.sqrt(2 * layers + 2)
    # Logarithms are computed in float32 for every precision of the model.
    logarithm = UNIT_ROUNDOFF["float32"] * float(np.nanmax(np.abs(reference), initial=1.0))
    return SAFETY * (rounding + logarithm)


class Correctness:
    """Compares the figures of one case."""

    def __init__(self, case: Case, loaded: LoadedModel, scorer: Any) -> None:
        is_large = case.shape.parameters > LARGE
        self._case = case
        self._items = questions.take(questions_of(case.way), QUESTIONS_OF_LARGE if is_large else QUESTIONS)
        wider: dict[str, Any] = {"dtype": torch.float32} if is_large else {"dtype": torch.float64, "device": "cpu"}
        self._where = "float32 on the device" if is_large else "float64 on the CPU"
        model = copy.deepcopy(loaded.model).to(**wider)
        self._reference = run_plainly(case.way, loaded.tokenizer, self._items, model)
        self._bound = bound(case.dtype, case.shape.layers, self._reference.figures)
        self._answers = answers(scorer, case.way, self._items)

    def equality(self) -> Outcome:
        """Compare a scorer with the reference."""
        return self._judged(self._difference(self._answers), {"reference": self._where})

    def invariance(self, other: Any) -> Outcome:
        """Compare the figures of two token budgets; texts are compared with the reference."""
        again = answers(other, self._case.way, self._items)
        if self._case.way.writes:
            equal = sum(map(str.__eq__, self._answers, again)) / len(again)
            return self._judged(max(map(self._difference, (self._answers, again))), {"equal_texts": equal})
        return self._judged(_largest(self._by_token(self._answers), self._by_token(again)), {})

    def _difference(self, ours: Any) -> float:
        """Largest difference to the reference; for texts the margin at the first difference."""
        if self._case.way.writes:
            return max(one.parts_from(text) for one, text in zip(self._reference.written, ours, strict=True))
        return _largest(self._by_token(ours), self._reference.figures)

    def _by_token(self, figures: np.ndarray) -> np.ndarray:
        units = self._reference.units
        return figures / units if len(figures) == len(units) else figures

    def _judged(self, difference: float, figures: dict[str, Any]) -> Outcome:
        common = {"questions": questions.count(self._items), "difference": difference, "bound": self._bound}
        if difference <= self._bound:
            return Outcome(HOLDS, figures=common | figures)
        why = f"the largest difference is {difference:.1e}, above the rounding bound {self._bound:.1e}"
        return Outcome(FAILS, why, common | figures)


def _largest(first: np.ndarray, second: np.ndarray) -> float:
    """Largest difference; infinite if only one has a figure."""
    known = ~np.isnan(second)
    if first.shape != second.shape or not np.array_equal(~np.isnan(first), known) or not known.any():
        return float("inf")
    return float(np.abs(first - second)[known].max())
