"""The scorers with their models left out: they arrange their batches as in a run and count instead of computing.

Texts, tokens, order, batches and pads are the scorers' own; only the forward pass is replaced. So a plan and a run
agree to the token, but for memory that runs out (which halves batches) and for texts that end before they must.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from qabias.errors import QabiasError
from qabias.planning.outline import Subject
from qabias.scorers import causal, generates, refuse_options
from qabias.scorers.base import OptionScores, Request, Scorer
from qabias.scorers.causal import Limits, TokenSequence, encode_options, padded_size, plan_batches, split_by_layout
from qabias.scorers.chat import ChatGenerationScorer, ChatTemplate, chat_template, take_chat
from qabias.scorers.generation import GenerationScorer, parse_options
from qabias.scorers.masked_lm import LOGITS_PER_BATCH, MaskedLMScorer, MaskedSentences, distinct_rows
from qabias.scorers.seq2seq import Seq2SeqScorer, Tokens

if TYPE_CHECKING:
    import torch

# Configurations whose logits are more than the output embeddings of the last states; their batches are kept smaller.
_SCALED_LOGITS = ("final_logit_softcapping", "logits_scaling", "logit_scale")


@dataclass
class Work:
    """What a model has to do. Numbers of a sample are estimates, so all may be fractions.

    Attributes:
        requests: Distinct texts that are scored or written.
        tokens: Tokens run through the model, pads included; of a text-to-text model, through its encoder.
        tokens_flat: The same without pads, and with one sequence for every option of a causal model.
        decoder_tokens: Tokens run through a decoder with an encoder, or written, pads included; 0 for others.
        attention: Pairs of tokens that attend to each other, masked ones included, within one layer.
        batches: Forward passes; written texts count as one.
    """

    requests: float = 0
    tokens: float = 0
    tokens_flat: float = 0
    decoder_tokens: float = 0
    attention: float = 0
    batches: float = 0

    def add(self, n_rows: int, length: int) -> None:
        """Count a forward pass over rows that are padded to a length."""
        self.tokens += n_rows * length
        self.attention += n_rows * length**2
        self.batches += 1


class CausalCounter:
    """Counts what `CausalScorer` would run.

    Args:
        encode: Turns requests into token sequences.
        limits: What the model can read.
        token_budget: Most tokens of a batch.
        layout: `"tree"` or `"flat"`.
    """

    name = "causal"
    model_signature = ""

    def __init__(
        self,
        encode: Callable[[Sequence[Request]], list[list[TokenSequence]]],
        limits: Limits,
        token_budget: int,
        layout: str,
    ) -> None:
        self.work = Work()
        self._encode = encode
        self._limits, self._budget, self._layout = limits, token_budget, layout

    def score(self, requests: Sequence[Request]) -> list[OptionScores]:
        """Count the tokens of every option of every request; all options score alike."""
        encoded = self._encode(requests)
        distinct = sorted({sequence for sequences in encoded for sequence in sequences})
        for layout, chosen in zip(("tree", "flat"), split_by_layout(distinct, self._layout, self._limits), strict=True):
            for batch in plan_batches(chosen, layout, self._budget):
                self.work.add(len(batch), padded_size(batch) // len(batch))
        self.work.requests += len(distinct)
        self.work.tokens_flat += sum(len(sequence.tokens) - 1 for sequences in encoded for sequence in sequences)
        return [_even_scores(len(request.options)) for request in requests]


class Seq2SeqCounter(Seq2SeqScorer):
    """Counts what `Seq2SeqScorer` would run; see there."""

    def __init__(self, subject: Subject, token_budget: int) -> None:
        super().__init__(subject.loaded, token_budget=token_budget)
        self.work = Work()

    def _encode(self, sources: Sequence[Tokens]) -> Any:
        length = max(map(len, sources))
        self.work.add(len(sources), length)
        self.work.tokens_flat += sum(map(len, sources))
        return SimpleNamespace(length=length)

    def _decode(self, encoded: Any, rows: Sequence[int], targets: Sequence[Tokens]) -> list[float]:
        length = max(map(len, targets))
        self.work.requests += len(targets)
        self.work.decoder_tokens += len(targets) * length
        self.work.attention += len(targets) * length * (length + encoded.length)
        self.work.batches += 1
        return [0.0] * len(targets)


class _GenerationCounting:
    """Counts what a writing scorer would run, every answer as long as it may be."""

    work: Work
    _config: Any

    def _run(self, prompts: Sequence[Tokens], streams: Sequence[str]) -> list[str]:
        n_new = self._config.max_new_tokens
        length = max(map(len, prompts))
        self.work.add(len(prompts), length)
        self.work.requests += len(prompts)
        self.work.tokens_flat += sum(map(len, prompts))
        self.work.decoder_tokens += len(prompts) * n_new
        self.work.attention += len(prompts) * n_new * (length + n_new)
        return [""] * len(prompts)


class GenerationCounter(_GenerationCounting, GenerationScorer):
    """Counts what `GenerationScorer` would run; see there."""

    def __init__(self, subject: Subject, **options: Any) -> None:
        super().__init__(subject.loaded, **options)
        self.work = Work()


class ChatGenerationCounter(_GenerationCounting, ChatGenerationScorer):
    """Counts what `ChatGenerationScorer` would run; see there."""

    def __init__(self, subject: Subject, template: ChatTemplate, **options: Any) -> None:
        super().__init__(subject.loaded, template, **options)
        self.work = Work()


class SilentModel:
    """A model without weights that counts what it is given and answers with zeros, for scorers that ask encoders.

    Args:
        model: The model on the meta device; everything else is looked up there.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self.work = Work()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def __call__(self, input_ids: torch.Tensor, **inputs: torch.Tensor) -> Any:
        """Count a batch."""
        import torch

        length = input_ids.shape[-1]
        n_rows = input_ids.numel() // length
        self.work.requests += n_rows
        self.work.add(n_rows, length)
        mask = inputs.get("attention_mask")
        self.work.tokens_flat += n_rows * length if mask is None else int(mask.sum())
        nothing = torch.zeros(n_rows, length)
        return SimpleNamespace(
            logits=torch.zeros(n_rows, self._model.config.num_labels), start_logits=nothing, end_logits=nothing
        )


class MaskedLMCounter(MaskedLMScorer):
    """Counts what `MaskedLMScorer` would run; its vocabulary is not computed."""

    def __init__(self, subject: Subject, silent: SilentModel, token_budget: int) -> None:
        # Its own way in, because the scorer's tries the model out.
        from qabias.scorers.encoder_runner import EncoderRunner

        loaded = subject.loaded
        if loaded.tokenizer.mask_token is None:
            raise QabiasError(f"masked_lm: the tokenizer of model {subject.name!r} has no mask token")
        row_limit = max(1, LOGITS_PER_BATCH // silent.get_input_embeddings().weight.shape[0])
        self._runner = EncoderRunner(loaded, self.name, token_budget, row_limit=row_limit)
        self._silent = silent
        self._name, self._tokenizer = loaded.name, loaded.tokenizer
        self._topk, self._spellings, self._pronouns = None, None, {}
        self.model_signature = ""

    def _score_asked(self, items: MaskedSentences, asked: np.ndarray, *_: Any) -> np.ndarray:
        rows = self._make_rows(distinct_rows(items, asked)[0]).rows
        self._runner.run(rows, lambda chosen, inputs: self._silent(**inputs))
        return np.zeros((len(asked), 2), dtype=np.float32)


def make_counter(
    subject: Subject, options: Mapping[str, str], token_budget: int | None, on_cpu: bool, seed: int = 0
) -> tuple[Scorer, Work]:
    """The counting form of a scorer, and the numbers that it adds to.

    Args:
        subject: The model.
        options: Options of the scorer, as `qabias run --option` takes them.
        token_budget: Most tokens of a batch; None for the default of the device.
        on_cpu: Whether the device is a CPU.
        seed: Of generated texts.

    Raises:
        QabiasError: If an option is unknown or wrong.
    """
    make = {
        "causal": _make_causal,
        "seq2seq": _make_seq2seq,
        "nli": _make_encoder,
        "extractive_qa": _make_encoder,
        "multiple_choice": _make_encoder,
        "masked_lm": _make_encoder,
    }[subject.scorer]
    return make(subject, dict(options), token_budget, on_cpu, seed)


def _make_causal(
    subject: Subject, options: dict[str, str], token_budget: int | None, on_cpu: bool, seed: int
) -> tuple[Scorer, Work]:
    budget = token_budget or (causal.CPU_TOKEN_BUDGET if on_cpu else causal.GPU_TOKEN_BUDGET)
    chat, system = take_chat(options)
    if generates("causal", options):
        return _make_generation(subject, options, budget, seed, chat, system)
    refuse_options("causal", options, ("chat", "system", "layout", "mode"))
    layout = options.get("layout", "auto")
    if layout not in causal.LAYOUTS:
        raise QabiasError(f"causal: unknown layout {layout!r}; choose one of {', '.join(causal.LAYOUTS)}")
    template = chat_template(subject.loaded, chat, system)

    def encode(requests: Sequence[Request]) -> list[list[TokenSequence]]:
        if template is None:
            return encode_options(subject.tokenizer, requests)
        return template.encode_options(
            [Request(request.prefix, tuple(option.lstrip() for option in request.options)) for request in requests]
        )

    limits = Limits.of(subject.model) if subject.model is not None else Limits(float("inf"), float("inf"))
    counter = CausalCounter(encode, limits, min(budget, _logits_limit(subject)), "flat" if layout == "flat" else "tree")
    return counter, counter.work


def _logits_limit(subject: Subject) -> int:
    """Most tokens of a batch of a model whose head is not plain, as far as its configuration tells."""
    if subject.model is None:
        return sys.maxsize
    config = subject.model.config.get_text_config()
    scaled = any(getattr(config, name, None) not in (None, 1, 1.0) for name in _SCALED_LOGITS)
    vocabulary_size = subject.model.get_input_embeddings().weight.shape[0]
    return max(1, causal.LOGITS_PER_BATCH // vocabulary_size) if scaled else sys.maxsize


def _make_seq2seq(
    subject: Subject, options: dict[str, str], token_budget: int | None, on_cpu: bool, seed: int
) -> tuple[Scorer, Work]:
    from qabias.scorers import memory

    budget = token_budget or (memory.CPU_TOKEN_BUDGET if on_cpu else memory.GPU_TOKEN_BUDGET)
    if generates("seq2seq", options):
        return _make_generation(subject, options, budget, seed, "no", None)
    refuse_options("seq2seq", options, ("mode",))
    counter = Seq2SeqCounter(subject, budget)
    return counter, counter.work


def _make_generation(
    subject: Subject, options: dict[str, str], budget: int, seed: int, chat: str, system: str | None
) -> tuple[Scorer, Work]:
    if subject.model is None:
        raise QabiasError("generated answers need a model's configuration; give --model, or leave mode=generate out")
    chosen = parse_options(options)
    template = chat_template(subject.loaded, chat, system)
    counter: GenerationCounter | ChatGenerationCounter
    if template is None:
        counter = GenerationCounter(subject, name=subject.scorer, seed=seed, token_budget=budget, **chosen)
    else:
        counter = ChatGenerationCounter(subject, template, seed=seed, token_budget=budget, **chosen)
    return counter, counter.work


def _make_encoder(
    subject: Subject, options: dict[str, str], token_budget: int | None, on_cpu: bool, seed: int
) -> tuple[Scorer, Work]:
    from qabias.scorers import encoder_runner
    from qabias.scorers.extractive_qa import NEWSQA_HEADER, ExtractiveQAScorer
    from qabias.scorers.multiple_choice import MultipleChoiceScorer
    from qabias.scorers.nli import NLIScorer

    budget = token_budget or (encoder_runner.CPU_TOKEN_BUDGET if on_cpu else encoder_runner.GPU_TOKEN_BUDGET)
    silent = SilentModel(subject.model)
    loaded = Subject(**{**vars(subject), "model": silent}).loaded
    if subject.scorer == "masked_lm":
        refuse_options("masked_lm", options, ("topk", "pronouns"))
        return MaskedLMCounter(subject, silent, budget), silent.work
    if subject.scorer == "multiple_choice":
        refuse_options("multiple_choice", options, ())
        return MultipleChoiceScorer(loaded, token_budget=budget), silent.work
    if subject.scorer == "nli":
        refuse_options("nli", options, ("labels",))
        return NLIScorer(loaded, token_budget=budget, **options), silent.work
    refuse_options("extractive_qa", options, ("span", "header"))
    header = NEWSQA_HEADER if options.get("header") == "newsqa" else options.get("header", "")
    span: Any = options.get("span", "exact")
    return ExtractiveQAScorer(loaded, span=span, header=header, token_budget=budget), silent.work


def _even_scores(n_options: int) -> OptionScores:
    ones = np.ones(n_options, dtype=np.int32)
    return OptionScores(np.zeros(n_options), ones, ones)
