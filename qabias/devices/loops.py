"""The reference: plain calls of `transformers`, one row at a time, without pads, trees or batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from qabias.devices.cases import NEW_TOKENS, Way
from qabias.scorers.base import MARK, MaskedSentences, Request, SpanQuestions
from qabias.scorers.causal_rows import encode_options
from qabias.scorers.spans import locate


class Reference(NamedTuple):
    """Answers of a plain loop.

    Attributes:
        figures: Logarithms of probabilities, those of options by scored token; none of a writer.
        units: Scored tokens of every figure, 1 for a probability; float64 of shape (n_figures,).
        written: What a writer wrote.
    """

    figures: np.ndarray
    units: np.ndarray
    written: Sequence[Written] = ()


def run(way: Way, tokenizer: Any, items: Any, model: Any) -> Reference:
    """Answer some questions row by row."""
    with torch.inference_mode():
        if way.writes:
            return Reference(np.zeros(0), np.ones(0), [_write(tokenizer, model, text) for text, _ in items])
        rows = _LOOPS[way.way if way.way != "options" else way.scorer](tokenizer, items, model)
    figures, units = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    return Reference(figures / units, units)


def _tensor(model: Any, tokens: Sequence[int]) -> torch.Tensor:
    return torch.tensor([list(tokens)], device=model.device)


def _logarithms(logits: torch.Tensor) -> torch.Tensor:
    """Logarithms of probabilities in float32 at least."""
    precise = logits if logits.dtype == torch.float64 else logits.float()
    return precise.log_softmax(dim=-1).cpu().double()


def _causal(tokenizer: Any, requests: Sequence[Request], model: Any) -> list[tuple[float, int]]:
    rows = []
    for row in (row for own in encode_options(tokenizer, requests) for row in own):
        values = _logarithms(model(input_ids=_tensor(model, row.tokens[:-1])).logits)[0]
        scored = range(len(row.tokens) - row.n_scored, len(row.tokens))
        rows.append((sum(float(values[place - 1, row.tokens[place]]) for place in scored), row.n_scored))
    return rows


def _seq2seq(tokenizer: Any, requests: Sequence[Request], model: Any) -> list[tuple[float, int]]:
    rows = []
    for prefix, option in ((request.prefix, option.strip()) for request in requests for option in request.options):
        source, target = tokenizer(prefix)["input_ids"], tokenizer(text_target=option)["input_ids"]
        values = _logarithms(model(input_ids=_tensor(model, source), labels=_tensor(model, target)).logits)[0]
        rows.append((sum(float(values[place, token]) for place, token in enumerate(target)), len(target)))
    return rows


class Written:
    """A written answer, and how far the second token was behind the likeliest at every place."""

    def __init__(self, tokenizer: Any, tokens: Sequence[int], margins: np.ndarray) -> None:
        self._tokenizer, self._tokens, self._margins = tokenizer, tokens, margins

    def text(self, n: int | None = None) -> str:
        """The text of the first tokens."""
        return str(self._tokenizer.decode(self._tokens[:n], skip_special_tokens=True)).strip()

    def parts_from(self, text: str) -> float:
        """The margin at the place where another text leaves this one; 0 for equal texts."""
        text = text.strip()
        if text == self.text():
            return 0.0
        kept = next((n for n in range(1, len(self._tokens) + 1) if not text.startswith(self.text(n))), None)
        # A text that goes on where this one ended left it at the last token.
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
        # Options of one question are one row, of which the shorter ones are padded.
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
