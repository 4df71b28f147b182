"""Log-likelihoods of options under an encoder-decoder model, such as T5."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from qabias.errors import QabiasError
from qabias.models.loading import SEQ2SEQ
from qabias.scorers.base import OptionScores, Request, Scorer
from qabias.scorers.batches import TokenBudget, Tokens, check_length, encode_each, option_scores, pad_rows
from qabias.scorers.generation import WriterOptions, asks_of_writers
from qabias.scorers.kind import Loading, ScorerKind, parse_options

if TYPE_CHECKING:
    import torch

    from qabias.models.loading import LoadedModel

NO_LABEL = -100  # what the library's models take for a label without a token


class Seq2SeqScorer:
    """Scores options by the log-likelihood that the model writes exactly them after reading the prefix."""

    name = "seq2seq"

    def __init__(self, loaded: LoadedModel, *, batch_tokens: int | None = None) -> None:
        if not hasattr(loaded.model, "prepare_decoder_input_ids_from_labels"):
            raise QabiasError(
                f"seq2seq: model {loaded.name!r}, a {type(loaded.model).__name__}, does not prepare "
                "decoder inputs from labels.",
                "Use a model such as T5 or BART.",
            )
        self.model_signature = loaded.signature
        self._loaded = loaded
        self._budget = TokenBudget(loaded, self.name, batch_tokens)

    def score(self, requests: Sequence[Request]) -> list[OptionScores]:
        """Score every option of every request, in order."""
        options = [[option.lstrip() for option in request.options] for request in requests]
        sources = encode_each(self._loaded.tokenizer, (request.prefix for request in requests))
        targets = self._encode_targets(option for row in options for option in row)
        asked: dict[str, dict[str, None]] = {}
        for request, row in zip(requests, options, strict=True):
            self._check(request, sources[request.prefix], [targets[option] for option in row])
            asked.setdefault(request.prefix, {}).update(dict.fromkeys(row))
        # Sorted: batches do not depend on the order of the requests.
        pairs = {prefix: sorted(asked[prefix]) for prefix in sorted(asked)}
        values = self._score_distinct(pairs, sources, targets)
        return [
            option_scores(
                self._loaded.name,
                request,
                row,
                [values[request.prefix, option] for option in row],
                [len(targets[option]) for option in row],
            )
            for request, row in zip(requests, options, strict=True)
        ]

    def _encode_targets(self, options: Iterable[str]) -> dict[str, Tokens]:
        """Encode options as outputs: with an end token, without the decoder's start token."""
        end = self._loaded.tokenizer.eos_token_id
        start = _start_token(self._loaded, 0 if end is None else end)
        distinct = list(dict.fromkeys(options))
        encoded = self._loaded.tokenizer(text_target=distinct, verbose=False)["input_ids"] if distinct else []
        targets = {}
        for option, tokens in zip(distinct, encoded, strict=True):
            own = tokens[1:] if tokens[:1] == [start] else tokens
            targets[option] = (*own,) if end is None or end in own else (*own, end)
        return targets

    def _check(self, request: Request, source: Tokens, targets: Sequence[Tokens]) -> None:
        if not source:
            raise QabiasError(f"request {request.key!r} has no prefix for the encoder.", "Give it a prefix.")
        for option, target in zip(request.options, targets, strict=True):
            if not option.strip():
                raise QabiasError(f"request {request.key!r}: option {option!r} is empty.", "Give it a text.")
            check_length(request.key, len(target), self._loaded, "decoder")
        check_length(request.key, len(source), self._loaded, "encoder")

    def _score_distinct(
        self, asked: dict[str, list[str]], sources: dict[str, Tokens], targets: dict[str, Tokens]
    ) -> dict[tuple[str, str], float]:
        """Score pairs of prefix and option: a batch of prefixes, then the batches of their options."""
        prefixes = list(asked)

        def read(chosen: np.ndarray) -> list[Any]:
            batch = [prefixes[i] for i in chosen]
            output, mask = self._encode([sources[prefix] for prefix in batch])
            pairs = [(row, option) for row, prefix in enumerate(batch) for option in asked[prefix]]

            def write(chosen: np.ndarray) -> list[float]:
                here = [pairs[i] for i in chosen]
                return self._decode(output, mask, [row for row, _ in here], [targets[option] for _, option in here])

            lengths = [mask.shape[1] + len(targets[option]) for _, option in pairs]
            scored = iter(self._budget.run([batch, pairs], lengths, write))
            return [[next(scored) for _ in asked[prefix]] for prefix in batch]

        by_prefix = self._budget.run(asked, [len(sources[prefix]) for prefix in prefixes], read)
        return {
            (prefix, option): value
            for prefix, values in zip(prefixes, by_prefix, strict=True)
            for option, value in zip(asked[prefix], values, strict=True)
        }

    def _encode(self, sources: Sequence[Tokens]) -> tuple[Any, torch.Tensor]:
        import torch

        model, device = self._loaded.model, self._loaded.device
        tokens, real = pad_rows(sources, 0)
        mask = torch.from_numpy(real.astype(np.int64)).to(device)
        with torch.inference_mode():
            output = model.get_encoder()(input_ids=torch.from_numpy(tokens).to(device), attention_mask=mask)
        return output, mask

    def _decode(self, output: Any, mask: torch.Tensor, rows: Sequence[int], targets: Sequence[Tokens]) -> list[float]:
        """Log-likelihoods of targets, each after the encoded text of its row."""
        import torch

        model, device = self._loaded.model, self._loaded.device
        labels = torch.from_numpy(pad_rows(targets, NO_LABEL)[0]).to(device)
        # The encoder's last layer may be on another device than the first of a model on several.
        states = output.last_hidden_state.to(device)
        chosen = torch.tensor(rows, device=device)
        with torch.inference_mode():
            logits = (
                model(
                    encoder_outputs=replace(output, last_hidden_state=states[chosen]),
                    attention_mask=mask[chosen],
                    decoder_input_ids=model.prepare_decoder_input_ids_from_labels(labels=labels),
                    use_cache=False,
                )
                .logits.float()
                .to(device)
            )
            scored = logits.gather(2, labels.clamp(min=0)[:, :, None])[:, :, 0] - logits.logsumexp(dim=-1)
            return scored.double().masked_fill(labels == NO_LABEL, 0.0).sum(dim=1).tolist()


def _start_token(loaded: LoadedModel, written: int) -> int:
    """First token that the decoder reads; models name it differently, so this asks the model."""
    import torch

    labels = torch.tensor([[written]], device=loaded.device)
    return int(loaded.model.prepare_decoder_input_ids_from_labels(labels=labels)[0, 0])


def _load(loading: Loading) -> Scorer:
    options = parse_options("seq2seq", WriterOptions, loading.options)
    loaded = loading.load_model(SEQ2SEQ)
    if options.writes:
        return options.make_writer(loading, loaded)
    return Seq2SeqScorer(loaded, batch_tokens=loading.batch_tokens)


KIND = ScorerKind(
    name="seq2seq",
    summary="log-likelihoods of options, or written answers, of a text-to-text model such as T5",
    interfaces=("options", "texts"),
    load=_load,
    options=WriterOptions,
    asks=asks_of_writers() | {"letter-logprob": {}},
    auto_class=SEQ2SEQ.auto_class,
    made_for=SEQ2SEQ.made_for,
    lists_options=True,
)
