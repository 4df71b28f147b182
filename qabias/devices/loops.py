"""Plain loops over `transformers` in padded batches: what people write, and with one row at a time the reference.

A loop encodes all questions when it is made, and answers some of them at a time. It shares nothing with the scorers
but where a text is cut: the boundary of an option's tokens, and the place of a subject in a context.

This file imports torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch

from qabias.devices.subjects import NEW_TOKENS, Way
from qabias.scorers.base import MARK, MaskedSentences, Request, SpanQuestions
from qabias.scorers.batches import pad_rows
from qabias.scorers.causal_rows import encode_options
from qabias.scorers.spans import locate

_NO_LABEL = -100


class Loop(Protocol):
    """A plain loop over some questions.

    Attributes:
        lengths: Tokens of each row, as what it is sorted by.
        units: Scored tokens of every figure, 1 for a probability; float64 of shape (n_figures,).
    """

    lengths: list[int]
    units: np.ndarray

    def ask(self, model: Any, device: Any, rows: Sequence[int]) -> list[Any]:
        """The answer to each of some rows: its figures, or its text."""
        ...


def run(loop: Loop, model: Any, device: Any, size: int) -> list[Any]:
    """Answer all rows in batches of so many, sorted by length, the longest first."""
    order = sorted(range(len(loop.lengths)), key=lambda row: -loop.lengths[row])
    found: list[Any] = [None] * len(order)
    with torch.inference_mode():
        for start in range(0, len(order), size):
            rows = order[start : start + size]
            for row, answer in zip(rows, loop.ask(model, device, rows), strict=True):
                found[row] = answer
    return found


def make_loop(way: Way, tokenizer: Any, items: Any) -> Loop:
    """Encode questions for a plain loop."""
    return _LOOPS[way.scorer, way.way](tokenizer, items)


class _Causal:
    """Every option after its prefix is a row."""

    def __init__(self, tokenizer: Any, requests: Sequence[Request]) -> None:
        self._rows = [sequence for own in encode_options(tokenizer, requests) for sequence in own]
        self._pad = tokenizer.pad_token_id
        self.lengths = [len(row.tokens) for row in self._rows]
        self.units = np.array([row.n_scored for row in self._rows], dtype=np.float64)

    def ask(self, model: Any, device: Any, rows: Sequence[int]) -> list[Any]:
        chosen = [self._rows[row] for row in rows]
        tokens, real = pad_rows([row.tokens for row in chosen], self._pad)
        ids = torch.from_numpy(tokens).to(device)
        mask = torch.from_numpy(real.astype(np.int64)).to(device)
        logits = _precise(model(input_ids=ids[:, :-1], attention_mask=mask[:, :-1]).logits)
        values = logits.log_softmax(dim=-1).gather(2, ids[:, 1:, None])[:, :, 0].cpu().double()
        return [
            float(value[len(row.tokens) - 1 - row.n_scored : len(row.tokens) - 1].sum())
            for value, row in zip(values, chosen, strict=True)
        ]


class _Seq2Seq:
    """Every option with the prefix that is read is a row."""

    def __init__(self, tokenizer: Any, requests: Sequence[Request]) -> None:
        self._tokenizer = tokenizer
        self._pairs = [(request.prefix, option.strip()) for request in requests for option in request.options]
        targets = tokenizer(text_target=[option for _, option in self._pairs])["input_ids"]
        sources = tokenizer([prefix for prefix, _ in self._pairs])["input_ids"]
        self.lengths = [len(source) + len(target) for source, target in zip(sources, targets, strict=True)]
        self.units = np.array([len(target) for target in targets], dtype=np.float64)

    def ask(self, model: Any, device: Any, rows: Sequence[int]) -> list[Any]:
        prefixes, options = map(list, zip(*(self._pairs[row] for row in rows), strict=True))
        sources = self._tokenizer(prefixes, padding=True, return_tensors="pt").to(device)
        targets = self._tokenizer(text_target=options, padding=True, return_tensors="pt").to(device)
        labels = targets["input_ids"].masked_fill(targets["attention_mask"] == 0, _NO_LABEL)
        logits = _precise(model(**sources, labels=labels).logits)
        values = logits.log_softmax(dim=-1).gather(2, labels.clamp(min=0)[:, :, None])[:, :, 0].double()
        return values.masked_fill(labels == _NO_LABEL, 0.0).sum(dim=1).tolist()


class Written:
    """Every prompt is a row, answered by `generate`; see `Wrote` for the answers."""

    def __init__(self, tokenizer: Any, items: Sequence[tuple[str, str]], *, reads: bool) -> None:
        self._tokenizer, self._reads = tokenizer, reads
        self._rows = [tuple(tokens) for tokens in tokenizer([prompt for prompt, _ in items])["input_ids"]]
        self.lengths = [len(row) for row in self._rows]
        self.units = np.ones(len(self._rows))

    def ask(self, model: Any, device: Any, rows: Sequence[int]) -> list[Any]:
        """See `Loop`."""
        pad = self._tokenizer.pad_token_id
        tokens, real = pad_rows([self._rows[row] for row in rows], pad, left=not self._reads)
        written = model.generate(
            input_ids=torch.from_numpy(tokens).to(device),
            attention_mask=torch.from_numpy(real.astype(np.int64)).to(device),
            max_new_tokens=NEW_TOKENS,
            do_sample=False,
            pad_token_id=pad,
            eos_token_id=self._tokenizer.eos_token_id,
            output_logits=True,
            return_dict_in_generate=True,
        )
        start = 1 if self._reads else tokens.shape[1]
        best = torch.stack([_precise(logits).log_softmax(dim=-1).topk(2).values for logits in written.logits], dim=1)
        margins = (best[:, :, 0] - best[:, :, 1]).cpu().double().numpy()
        return [
            Wrote(self._tokenizer, own, margin)
            for own, margin in zip(written.sequences[:, start:].tolist(), margins, strict=True)
        ]


class Wrote:
    """A written answer."""

    def __init__(self, tokenizer: Any, tokens: Sequence[int], margins: np.ndarray) -> None:
        self._tokenizer, self._tokens, self._margins = tokenizer, tokens, margins

    def text(self, n: int | None = None) -> str:
        """The text of the first tokens."""
        return str(self._tokenizer.decode(self._tokens[:n], skip_special_tokens=True)).strip()

    def parts_from(self, text: str) -> float:
        """How far the second token was behind the likeliest where another text leaves this one; 0 for equal texts."""
        text = text.strip()
        if text == self.text():
            return 0.0
        kept = next((n for n in range(1, len(self._tokens) + 1) if not text.startswith(self.text(n))), None)
        # A text that goes on where this one ended left it at the last token.
        return float(self._margins[len(self._margins) - 1 if kept is None else min(kept, len(self._margins)) - 1])


class _Spans:
    """Every question with its context is a row."""

    def __init__(self, tokenizer: Any, items: SpanQuestions) -> None:
        self._tokenizer = tokenizer
        self._texts = [
            (items.questions[question], items.contexts[context], items.subjects[context])
            for question, context in zip(items.question_of, items.context_of, strict=True)
        ]
        rows = tokenizer([text[0] for text in self._texts], [text[1] for text in self._texts])["input_ids"]
        self.lengths = [len(row) for row in rows]
        self.units = np.ones(2 * len(rows))

    def ask(self, model: Any, device: Any, rows: Sequence[int]) -> list[Any]:
        questions, contexts, subjects = map(list, zip(*(self._texts[row] for row in rows), strict=True))
        inputs = self._tokenizer(questions, contexts, padding=True, return_tensors="pt", return_offsets_mapping=True)
        offsets = inputs.pop("offset_mapping").tolist()
        owners = [inputs.sequence_ids(row) for row in range(len(rows))]
        answer = model(**inputs.to(device))
        hidden = inputs["attention_mask"] == 0
        ends = [
            _precise(logits).masked_fill(hidden, float("-inf")).log_softmax(dim=-1).cpu().double().numpy()
            for logits in (answer.start_logits, answer.end_logits)
        ]
        found = []
        for row, (context, pair) in enumerate(zip(contexts, subjects, strict=True)):
            for subject, other in (pair, pair[::-1]):
                begin, end = locate(context, subject, other)
                own = [
                    place
                    for place, (first, last) in enumerate(offsets[row])
                    if owners[row][place] == 1 and first < end and last > begin
                ]
                found.append((ends[0][row, own[0]] + ends[1][row, own[-1]]) / 2)
        return np.array(found).reshape(-1, 2).tolist()


class _Masks:
    """Every sentence after its context is a row."""

    def __init__(self, tokenizer: Any, items: MaskedSentences) -> None:
        self._tokenizer = tokenizer
        texts = [items.texts[text].replace(MARK, tokenizer.mask_token) for text in items.text_of]
        if items.context_of is not None:
            contexts = [items.contexts[context] for context in items.context_of]
            texts = [f"{context} {text}" for context, text in zip(contexts, texts, strict=True)]
        self._texts = texts
        words = tokenizer([f" {subject}" for subject in items.subjects], add_special_tokens=False)["input_ids"]
        token_of = [word[0] if len(word) == 1 and word[0] != tokenizer.unk_token_id else -1 for word in words]
        self._subjects = np.array(token_of)[items.subject_of]
        self.lengths = [len(row) for row in tokenizer(texts)["input_ids"]]
        self.units = np.ones(2 * len(texts))

    def ask(self, model: Any, device: Any, rows: Sequence[int]) -> list[Any]:
        inputs = self._tokenizer([self._texts[row] for row in rows], padding=True, return_tensors="pt").to(device)
        at_mask = model(**inputs).logits[inputs["input_ids"] == self._tokenizer.mask_token_id]
        values = _precise(at_mask).log_softmax(dim=-1)
        subjects = torch.from_numpy(self._subjects[list(rows)]).to(device)
        chosen = values.gather(1, subjects.clamp(min=0)).cpu().double()
        return chosen.masked_fill(subjects.cpu() < 0, float("nan")).tolist()


class _Choices:
    """Every question with all its options is a row."""

    def __init__(self, tokenizer: Any, requests: Sequence[Request]) -> None:
        self._tokenizer = tokenizer
        self._texts = [
            ([request.prefix] * len(request.options), [option.strip() for option in request.options])
            for request in requests
        ]
        self.lengths = [max(map(len, tokenizer(*own)["input_ids"])) for own in self._texts]
        self.units = np.ones(sum(len(request.options) for request in requests))

    def ask(self, model: Any, device: Any, rows: Sequence[int]) -> list[Any]:
        chosen = [self._texts[row] for row in rows]
        contexts, endings = ([text for own in chosen for text in own[side]] for side in (0, 1))
        inputs = self._tokenizer(contexts, endings, padding=True, return_tensors="pt").to(device)
        by_question = {name: values.unflatten(0, (len(rows), -1)) for name, values in inputs.items()}
        return _precise(model(**by_question).logits).log_softmax(dim=-1).cpu().double().tolist()


class _Pairs:
    """Every pair is a row."""

    def __init__(self, tokenizer: Any, pairs: Sequence[tuple[str, str]]) -> None:
        self._tokenizer, self._pairs = tokenizer, pairs
        self.lengths = [len(row) for row in tokenizer(*map(list, zip(*pairs, strict=True)))["input_ids"]]
        self.units = np.ones(3 * len(pairs))

    def ask(self, model: Any, device: Any, rows: Sequence[int]) -> list[Any]:
        texts = map(list, zip(*(self._pairs[row] for row in rows), strict=True))
        inputs = self._tokenizer(*texts, padding=True, return_tensors="pt").to(device)
        return _precise(model(**inputs).logits).log_softmax(dim=-1).cpu().double().tolist()


def _precise(logits: torch.Tensor) -> torch.Tensor:
    """Logits in float32 at least."""
    return logits if logits.dtype == torch.float64 else logits.float()


_LOOPS: dict[tuple[str, str], Any] = {
    ("causal", "options"): _Causal,
    ("causal", "texts"): lambda tokenizer, items: Written(tokenizer, items, reads=False),
    ("seq2seq", "options"): _Seq2Seq,
    ("seq2seq", "texts"): lambda tokenizer, items: Written(tokenizer, items, reads=True),
    ("extractive_qa", "spans"): _Spans,
    ("masked_lm", "masks"): _Masks,
    ("multiple_choice", "choices"): _Choices,
    ("nli", "pairs"): _Pairs,
}
