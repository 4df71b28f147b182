"""Answers in a model's own words."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from qabias.answers.outcomes import Written, marks_thinking, set_thinking_aside
from qabias.errors import QabiasError, arg
from qabias.models.loading import DEVICE_MAPS, LoadedModel
from qabias.scorers.batches import TokenBudget, Tokens, check_length, encode_each, n_positions, nan_error, pad_rows
from qabias.scorers.chat import ChatTemplate
from qabias.scorers.kind import ASK_METHODS, Loading, option_field

if TYPE_CHECKING:
    import torch


MODES = ("likelihood", "generate")
# What is kept of the way of decoding that a model recommends.
SPECIAL_TOKENS = ("bos_token_id", "eos_token_id", "decoder_start_token_id", "forced_bos_token_id")
THINKING_TOKENS = 4096  # maximum tokens of a reasoning model's answer, including the reasoning

_DEFAULT_TOKENS = 64


@dataclass(frozen=True)
class WriterOptions:
    """How a model answers that also writes."""

    mode: str = option_field(MODES[0], "likelihood, or generate for answers that the model writes", choices=MODES)
    samples: int = option_field(1, "written answers to each question", wanted="a whole number such as 5")
    temperature: float = option_field(
        0.0,
        "of written answers; 0 takes the likeliest token",
        least=0,
        wanted="0 (the likeliest answer) or a number such as 0.7",
    )
    max_new_tokens: int | None = option_field(
        None,
        "most tokens of a written answer; by default what the prompt format needs, 4096 to think first",
        wanted="a whole number such as 16",
    )
    device_map: str | None = option_field(
        None,
        "for a model larger than one device: auto, or another layout of accelerate",
        choices=DEVICE_MAPS,
        passing=True,
    )

    def check(self, scorer: str, names: Collection[str]) -> None:
        """Refuse options of written answers for likelihoods, and equal samples."""
        written = [name for name in ("samples", "temperature", "max_new_tokens") if name in names]
        if written and not self.writes:
            raise QabiasError(f"{scorer}: {written[0]} is for written answers.", f"Add {arg('option')} mode=generate.")
        if self.samples > 1 and self.temperature == 0:
            raise QabiasError(
                f"{scorer}: {self.samples} samples at temperature 0 would all be equal.",
                "Give a temperature such as 1, or samples=1.",
            )

    @property
    def writes(self) -> bool:
        """Whether the model writes answers."""
        return self.mode == "generate"

    def make_writer(
        self, loading: Loading, loaded: LoadedModel, template: ChatTemplate | None = None
    ) -> GenerationScorer:
        """The scorer of written answers."""
        return GenerationScorer(
            loaded,
            samples=self.samples,
            temperature=self.temperature,
            max_new_tokens=self.max_new_tokens,
            seed=loading.seed,
            batch_tokens=loading.batch_tokens,
            template=template,
        )


def asks_of_writers(options: Mapping[str, str] = MappingProxyType({})) -> dict[str, dict[str, str]]:
    """Options for each of the `ASK_METHODS` of a model that writes."""
    return {ASK_METHODS[0]: {}} | {word: {**options, "mode": "generate"} for word in ASK_METHODS[2:-1]}


class GenerationScorer:
    """Lets a model write answers to prompts."""

    def __init__(
        self,
        loaded: LoadedModel,
        *,
        samples: int = 1,
        temperature: float = 0.0,
        max_new_tokens: int | None = None,
        seed: int = 0,
        batch_tokens: int | None = None,
        template: ChatTemplate | None = None,
    ) -> None:
        self.name = "seq2seq" if loaded.model.config.is_encoder_decoder else "causal"
        self.model_signature = loaded.signature
        self.samples = samples
        self._temperature = temperature
        self._seed = seed
        self._loaded = loaded
        self._template = template
        self._decoder = WrittenDecoder(loaded.tokenizer, template.opening if template else "")
        self._is_limited = max_new_tokens is not None
        self._config = _decoding(loaded, max_new_tokens or self._limit(_DEFAULT_TOKENS))
        self._ends = {*np.atleast_1d(self._config.eos_token_id).tolist()}  # none is {None}, which no token is
        self._budget = TokenBudget(loaded, "generation", batch_tokens)

    @property
    def settings(self) -> dict[str, str]:
        """Sampling, maximum length and reasoning, for the signature."""
        settings = {
            "samples": str(self.samples),
            "temperature": f"{self._temperature:g}",
            "max_new_tokens": str(self._config.max_new_tokens),
        }
        return settings | ({"thinking": "yes"} if self._thinks else {})

    def limit_new_tokens(self, new_tokens: int) -> None:
        """Set the maximum tokens of an answer, unless an option did; reasoning models get `THINKING_TOKENS`."""
        if not self._is_limited:
            self._config.max_new_tokens = self._limit(new_tokens)

    @property
    def _thinks(self) -> bool:
        return self._template is not None and self._template.thinks

    def _limit(self, new_tokens: int) -> int:
        positions = n_positions(self._loaded, "decoder")
        return int(min(THINKING_TOKENS if self._thinks else new_tokens, positions // 2))

    def generate(self, prompts: Sequence[str], keys: Sequence[str]) -> list[tuple[str, ...]]:
        """Write `samples` answers to every prompt."""
        encoded = self._encode_each(prompts)
        for prompt, key in zip(prompts, keys, strict=True):
            self._check(key, encoded[prompt])
        asked = [
            [
                (prompt, f"{self._seed}/{key}/{number}" if self._temperature > 0 else "")
                for number in range(self.samples)
            ]
            for prompt, key in zip(prompts, keys, strict=True)
        ]
        answers = self._answer_distinct(sorted({row for rows in asked for row in rows}), encoded)
        return [tuple(answers[row] for row in rows) for rows in asked]

    def _encode_each(self, prompts: Sequence[str]) -> dict[str, Tokens]:
        if self._template is not None:
            return self._template.encode_prompts(prompts)
        return encode_each(self._loaded.tokenizer, prompts)

    def _check(self, key: str, tokens: Tokens) -> None:
        if not tokens:
            raise QabiasError(f"request {key!r} has an empty prompt.", "Give it a prompt.")
        n_new = self._config.max_new_tokens
        if self.name == "seq2seq":
            check_length(key, len(tokens), self._loaded, "encoder")
            check_length(key, 1 + n_new, self._loaded, "decoder")
        else:
            check_length(key, len(tokens) + n_new, self._loaded, "decoder")

    def _answer_distinct(
        self, rows: Sequence[tuple[str, str]], encoded: dict[str, Tokens]
    ) -> dict[tuple[str, str], Written]:
        def ask(chosen: np.ndarray) -> list[Any]:
            prompts, streams = zip(*(rows[i] for i in chosen), strict=True)
            texts = self._run([encoded[prompt] for prompt in prompts], streams)
            return [(str(text), text.finish, text.thinking) for text in texts]

        lengths = [len(encoded[prompt]) + self._config.max_new_tokens for prompt, _ in rows]
        return {row: Written(*text) for row, text in zip(rows, self._budget.run(rows, lengths, ask), strict=True)}

    def _run(self, prompts: Sequence[Tokens], streams: Sequence[str]) -> list[Written]:
        import torch
        from transformers import LogitsProcessorList

        model, device = self._loaded.model, self._loaded.device
        is_causal = self.name == "causal"
        tokens, real = pad_rows(prompts, self._config.pad_token_id, left=is_causal)
        processors: list[Any] = [_refuse_nan(self._loaded.name)]
        if self._temperature > 0:
            processors.append(GumbelNoise(streams, self._temperature))
        with torch.inference_mode(), _set_aside(model, self._config):
            written = model.generate(
                input_ids=torch.from_numpy(tokens).to(device),
                attention_mask=torch.from_numpy(real.astype(np.int64)).to(device),
                generation_config=self._config,
                logits_processor=LogitsProcessorList(processors),
            )
        # A decoder-only model repeats the prompt; one with an encoder begins with its start token.
        n_given = tokens.shape[1] if is_causal else 1
        answers = written[:, n_given:].tolist()  # one without an end token stopped at the limit
        return [self._decoder.decode(new, "length" if self._ends.isdisjoint(new) else "stop") for new in answers]


class WrittenDecoder:
    """Decodes what a model wrote, and separates its reasoning from the answer."""

    def __init__(self, tokenizer: Any, opening: str = "") -> None:
        self._tokenizer = tokenizer
        self._opening = opening
        added = getattr(tokenizer, "added_tokens_decoder", {})  # tokenizers of other packages do not tell them
        special = {token for token, content in added.items() if content.special} | {*tokenizer.all_special_ids}
        self._marks = {token for token in special if marks_thinking(tokenizer.convert_ids_to_tokens(token))}
        self._dropped = special - self._marks

    def decode(self, tokens: Sequence[int], finish: str) -> Written:
        """Decode an answer and separate its reasoning."""
        if self._marks:
            tokens = [token for token in tokens if token not in self._dropped]
        text: str = self._tokenizer.decode(tokens, skip_special_tokens=not self._marks)
        said = set_thinking_aside(self._opening + text)
        return Written(text, finish) if said.answer == text.strip() else Written(said.answer, finish, said.thinking)


class GumbelNoise:
    """Turns the largest logit into a sample, as a logits processor of `transformers`."""

    def __init__(self, streams: Sequence[str], temperature: float) -> None:
        digests = [hashlib.sha256(stream.encode()).digest() for stream in streams]
        self._generators = [np.random.default_rng(int.from_bytes(digest, "big")) for digest in digests]
        self._temperature = temperature

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Add the noise of the next token to logits of shape (n_rows, n_vocabulary)."""
        import torch

        # The negative logarithm of an exponential variable is a Gumbel variable.
        noise = np.stack([-np.log(generator.standard_exponential(scores.shape[1])) for generator in self._generators])
        return scores / self._temperature + torch.from_numpy(noise).to(scores)


def _refuse_nan(name: str) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    def check(input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        if scores.isnan().any():
            raise nan_error(name)
        return scores

    return check


def _decoding(loaded: LoadedModel, max_new_tokens: int) -> Any:
    """Make the only decoding: greedy, one token after the other, until the end token."""
    from transformers import GenerationConfig

    recommended = loaded.model.generation_config
    tokens = {name: getattr(recommended, name) for name in SPECIAL_TOKENS}
    if tokens["eos_token_id"] is None:
        tokens["eos_token_id"] = loaded.tokenizer.eos_token_id
    ends = np.atleast_1d(tokens["eos_token_id"]).tolist()
    pads = (loaded.tokenizer.pad_token_id, recommended.pad_token_id, *ends, 0)
    return GenerationConfig(
        do_sample=False,
        num_beams=1,
        max_new_tokens=max_new_tokens,
        pad_token_id=next(pad for pad in pads if pad is not None),
        **tokens,
    )


@contextmanager
def _set_aside(model: Any, config: Any) -> Iterator[None]:
    """Replace the recommended configuration, which `generate` fills gaps from."""
    recommended = model.generation_config
    model.generation_config = config
    try:
        yield
    finally:
        model.generation_config = recommended
