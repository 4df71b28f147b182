"""Written answers by the paged continuous batching of `transformers`: prompts enter and leave a batch token by token.

Beginnings that prompts share are kept once, and nobody waits for the longest answer of a batch. It is for greedy
decoding only. A model whose attention does not know pages would answer wrongly without an error, so that a few tokens
are compared with the model asked in the plainest way first.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from qabias.errors import QabiasError
from qabias.scorers.padded_rows import Tokens
from qabias.support.suggest import first_line

if TYPE_CHECKING:
    from qabias.models.loading import LoadedModel

PAGED_OPTION = {"paged": "write answers in pages (continuous batching of transformers): yes, or no (default)"}

PROBED, PROBED_TOKENS = 3, 4
"""Prompts that are asked both ways first, and how many tokens of their answers."""

TOLERANCE = {"float32": 1e-3, "bfloat16": 0.2, "float16": 0.05}
"""Largest difference of a token's log-probability that is rounding, by precision."""

_PAGE = 256


def parse_paged(options: Mapping[str, str], writes: bool, temperature: float) -> bool:
    """Read from the options of a scorer whether answers are written in pages."""
    value = options.get("paged", "no")
    if value not in ("yes", "no"):
        raise QabiasError(f"causal: paged is {value!r}; give yes or no")
    if "paged" in options and not writes:
        raise QabiasError("causal: paged is for written answers; add --option mode=generate")
    if value == "yes" and temperature > 0:
        raise QabiasError("causal: paged=yes takes the likeliest token; leave temperature out, or paged")
    return value == "yes"


class _NoPagesError(Exception):
    """Why a model cannot be asked in pages."""


class PagedWriter:
    """Lets a model write in pages, where it can."""

    def __init__(
        self, loaded: LoadedModel, tokens: int, decoding: Callable[[Any, Any], AbstractContextManager[None]]
    ) -> None:
        self._loaded, self._tokens, self._decoding = loaded, tokens, decoding
        self._is_probed = self._gave_up = False

    def write(self, prompts: Sequence[Tokens], config: Any) -> list[list[int]] | None:
        """Go on with every prompt."""
        if self._gave_up:
            return None
        written, problem = None, ""
        try:
            problem = "" if self._is_probed else self._probe(prompts, config)
            self._is_probed = True
            if not problem:
                written = [tokens for tokens, _ in self._ask(prompts, config)]
        except _NoPagesError as error:
            problem = str(error)
        if problem:
            self._gave_up = True
            warnings.warn(
                f"causal: model {self._loaded.name!r} cannot write in pages ({problem}); it writes batch by batch",
                stacklevel=2,
            )
        return written

    def _ask(self, prompts: Sequence[Tokens], config: Any) -> list[tuple[list[int], list[float]]]:
        """The tokens that follow every prompt, with their log-probabilities."""
        import torch
        from transformers.generation.configuration_utils import ContinuousBatchingConfig

        model, on_cpu = self._loaded.model, self._loaded.device == "cpu"
        limits = {}
        if on_cpu:
            longest = max(map(len, prompts)) + config.max_new_tokens
            limits = {"num_blocks": math.ceil(max(self._tokens, longest) / _PAGE), "max_batch_tokens": self._tokens}
        batching = ContinuousBatchingConfig(page_size=_PAGE, return_logprobs=True, **limits)
        given = list(map(list, prompts))
        try:
            with torch.inference_mode(), self._decoding(model, config):
                found = model.generate_batch(given, config, continuous_batching_config=batching, warmup=not on_cpu)
        except (RuntimeError, ValueError) as error:  # of layers that know no pages, or memory that ran out
            raise _NoPagesError(f"{type(error).__name__}: {first_line(error)}") from error
        answers = [found[name] for name in sorted(found, key=lambda name: int(name.rpartition("_")[2]))]
        errors = [str(answer.error) for answer in answers if answer.error]
        if errors or len(answers) != len(prompts):
            raise _NoPagesError(errors[0] if errors else f"{len(prompts) - len(answers)} prompts have no answer")
        if any(math.isnan(value) for answer in answers for value in answer.logprobs):
            raise QabiasError(f"model {self._loaded.name!r} answers with NaN; try --dtype float32 or bfloat16")
        return [(list(answer.generated_tokens), list(answer.logprobs)) for answer in answers]

    def _probe(self, prompts: Sequence[Tokens], config: Any) -> str:
        """Compare the first tokens of some answers with the model asked one by one; "" where they agree."""
        import torch

        chosen = sorted(set(prompts), key=len)[:PROBED]
        few = copy.deepcopy(config)
        few.max_new_tokens = min(PROBED_TOKENS, config.max_new_tokens)
        largest = 0.0
        for prompt, (tokens, values) in zip(chosen, self._ask(chosen, few), strict=True):
            read = torch.tensor([[*prompt, *tokens[:-1]]], device=self._loaded.device)
            with torch.inference_mode():
                logits = self._loaded.model(input_ids=read).logits[0, len(prompt) - 1 :].float()
            expected = logits.log_softmax(dim=-1)[range(len(tokens)), tokens].tolist()
            largest = max([largest, *(abs(one - other) for one, other in zip(values, expected, strict=True))])
        if largest <= TOLERANCE.get(self._loaded.dtype, TOLERANCE["bfloat16"]):
            return ""
        return f"its log-probabilities differ by {largest:.2g} from one prompt at a time"
