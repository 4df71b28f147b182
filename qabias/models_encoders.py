"""Encoder models: loading them, and running many rows of tokens through them.

A benchmark crosses contexts with questions, so its rows are many and its distinct texts few. `TokenRows` holds every
distinct text once, as tokens, and lays rows out when their batch is due. `EncoderRunner` chooses the batches: rows of
equal or nearly equal length, up to a number of tokens, which it halves when memory runs out.
"""

from __future__ import annotations

import inspect
import itertools
import logging
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from qabias.errors import QabiasError
from qabias.models import LoadedModel, _first_line, _quiet_transformers, _resolve_device, _resolve_dtype, _version
from qabias.scorers.memory import is_out_of_memory

if TYPE_CHECKING:
    import torch

# Tokens of a batch, pads included. A CPU is busy with few tokens and gains from caches that hold them.
CPU_TOKEN_BUDGET = 1024
GPU_TOKEN_BUDGET = 65536
# Rows share a batch with the longest if they have at least this share of its tokens.
NEARLY_EQUAL = 0.9
CHECKED_AT_ONCE = 4096

_log = logging.getLogger(__name__)

Progress = Callable[[int], object]


def load_question_answering(
    model: str, *, revision: str | None = None, device: str = "auto", dtype: str = "auto"
) -> LoadedModel:
    """Load a model that answers a question by a span of its context.

    Args:
        model: A folder, or a name on the Hub.
        revision: Branch, tag or commit on the Hub.
        device: A torch device; `"auto"` is CUDA if there is one, else the CPU.
        dtype: One of `qabias.models.DTYPES`; `"auto"` is bfloat16 on CUDA and float32 elsewhere.

    Returns:
        The model with its tokenizer.

    Raises:
        QabiasError: If the model cannot be had, was not trained for spans, or the device or type does not exist.
    """
    what = "a model trained to answer by spans, e.g. on SQuAD"
    return _load(model, "AutoModelForQuestionAnswering", what, revision, device, dtype)


def load_masked_lm(
    model: str, *, revision: str | None = None, device: str = "auto", dtype: str = "auto"
) -> LoadedModel:
    """Load a masked language model.

    Args:
        model: A folder, or a name on the Hub.
        revision: Branch, tag or commit on the Hub.
        device: A torch device; `"auto"` is CUDA if there is one, else the CPU.
        dtype: One of `qabias.models.DTYPES`; `"auto"` is bfloat16 on CUDA and float32 elsewhere.

    Returns:
        The model with its tokenizer.

    Raises:
        QabiasError: If the model cannot be had, is no masked language model, or the device or type does not exist.
    """
    return _load(model, "AutoModelForMaskedLM", "a complete masked language model", revision, device, dtype)


def load_sequence_classification(
    model: str, *, revision: str | None = None, device: str = "auto", dtype: str = "auto"
) -> LoadedModel:
    """Load a model that puts a text or a pair of texts into a class.

    Args:
        model: A folder, or a name on the Hub.
        revision: Branch, tag or commit on the Hub.
        device: A torch device; `"auto"` is CUDA if there is one, else the CPU.
        dtype: One of `qabias.models.DTYPES`; `"auto"` is bfloat16 on CUDA and float32 elsewhere.

    Returns:
        The model with its tokenizer.

    Raises:
        QabiasError: If the model cannot be had, was not trained to classify, or the device or type does not exist.
    """
    what = "a model trained to classify pairs of texts, e.g. on MNLI"
    return _load(model, "AutoModelForSequenceClassification", what, revision, device, dtype)


def _load(name: str, auto_class: str, what: str, revision: str | None, device: str, dtype: str) -> LoadedModel:
    torch_device = _resolve_device(device)
    torch_dtype = _resolve_dtype(dtype, torch_device)
    model, tokenizer = _load_pair(name, auto_class, what, revision, torch_dtype)
    return LoadedModel(
        model=model.to(torch_device).eval(),
        tokenizer=tokenizer,
        name=name,
        version=_version(name, model.config),
        device=str(torch_device),
        dtype=str(torch_dtype).removeprefix("torch."),
    )


def _load_pair(name: str, auto_class: str, what: str, revision: str | None, dtype: torch.dtype) -> tuple[Any, Any]:
    import transformers

    with _quiet_transformers():
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(name, revision=revision)
            model, info = getattr(transformers, auto_class).from_pretrained(
                name, revision=revision, dtype=dtype, output_loading_info=True
            )
        except ImportError as error:
            raise QabiasError(f"model {name!r} needs a package that is not installed: {_first_line(error)}") from error
        except Exception as error:  # from_pretrained raises whatever its readers raise
            raise QabiasError(
                f"model {name!r} cannot be loaded: {_first_line(error)}; check the name or path, the network for a "
                f"model that is not in the cache, and that it is {what}"
            ) from error
    if info["missing_keys"]:
        missing = ", ".join(sorted(info["missing_keys"])[:3])
        raise QabiasError(f"model {name!r} has no weights for {missing}; random weights would answer: use {what}")
    return model, tokenizer


# Texts to rows of tokens


class Template(NamedTuple):
    """What a tokenizer puts around one or two texts.

    Attributes:
        specials: Special tokens before the first text, between the two, and after the last.
        special_types: Token types of the special tokens.
        types: Token type of each text's own tokens.
    """

    specials: tuple[tuple[int, ...], ...]
    special_types: tuple[tuple[int, ...], ...]
    types: tuple[int, ...]

    @classmethod
    def of(cls, tokenizer: Any, n_texts: int) -> Template | None:
        """Read the template off an example; None if the texts do not follow each other in order."""
        encoded = tokenizer(*("a", "b")[:n_texts])
        tokens = encoded["input_ids"]
        types = encoded.get("token_type_ids") or [0] * len(tokens)
        owners = encoded.sequence_ids(0)
        text_types: dict[int, int] = {}
        specials: list[list[int]] = [[]]
        special_types: list[list[int]] = [[]]
        for token, token_type, owner in zip(tokens, types, owners, strict=True):
            if owner is None:
                specials[-1].append(token)
                special_types[-1].append(token_type)
            elif owner not in text_types:
                text_types[owner] = token_type
                specials.append([])
                special_types.append([])
        if list(text_types) != list(range(n_texts)):
            return None
        return cls(tuple(map(tuple, specials)), tuple(map(tuple, special_types)), tuple(text_types.values()))


@dataclass(frozen=True)
class Pieces:
    """Sequences of tokens, end to end.

    Attributes:
        tokens: int64 array, the tokens of all sequences.
        types: int64 array, parallel to `tokens`; their token types.
        lengths: int64 array, tokens of each sequence.
    """

    tokens: np.ndarray
    types: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, sequences: Sequence[Sequence[int]], types: Sequence[Sequence[int]] | None = None) -> Pieces:
        """Join sequences; without types all tokens are of type 0."""
        tokens = flatten(sequences)
        return cls(
            tokens=tokens,
            types=np.zeros_like(tokens) if types is None else flatten(types),
            lengths=np.array([len(sequence) for sequence in sequences], dtype=np.int64),
        )

    @classmethod
    def framed(
        cls, sequences: Sequence[Sequence[int]], template: Template, text: int, *, before: bool, after: bool
    ) -> Pieces:
        """Join sequences of the text number `text` of a template, with the special tokens before or after it."""
        left, left_types = (template.specials[text], template.special_types[text]) if before else ((), ())
        right, right_types = (template.specials[text + 1], template.special_types[text + 1]) if after else ((), ())
        own_type = (template.types[text],)
        return cls.of(
            [(*left, *sequence, *right) for sequence in sequences],
            [left_types + own_type * len(sequence) + right_types for sequence in sequences],
        )

    @property
    def starts(self) -> np.ndarray:
        """int64 array; where each sequence starts in `tokens`."""
        return np.cumsum(self.lengths) - self.lengths


class TokenRows:
    """Rows of tokens, each a head followed by a tail.

    Args:
        heads: Distinct heads.
        tails: Distinct tails.
        head_of: int array of shape (n_rows,); the head of each row.
        tail_of: int array of shape (n_rows,); the tail of each row.

    Attributes:
        lengths: int32 array of shape (n_rows,); tokens of each row.
        max_type: Largest token type.
    """

    def __init__(self, heads: Pieces, tails: Pieces, head_of: np.ndarray, tail_of: np.ndarray) -> None:
        self._head_of, self._tail_of = head_of, tail_of
        self._head_lengths, self._head_starts = heads.lengths, heads.starts
        self._tail_starts = len(heads.tokens) + tails.starts
        # One more token stands for all pads.
        self._tokens = np.concatenate([heads.tokens, tails.tokens, [0]])
        self._types = np.concatenate([heads.types, tails.types, [0]])
        self.lengths = heads.lengths.astype(np.int32)[head_of] + tails.lengths.astype(np.int32)[tail_of]
        self.max_type = int(self._types.max())

    def __len__(self) -> int:
        return len(self.lengths)

    def tails(self, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Number of the tail of each chosen row, and how many tokens stand before it."""
        return self._tail_of[chosen], self._head_lengths[self._head_of[chosen]]

    def lay_out(self, chosen: np.ndarray, pad: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Lay chosen rows out as a batch.

        Args:
            chosen: Numbers of the rows.
            pad: Token that fills rows up to the longest.

        Returns:
            Tokens, token types and which of them are no pads, arrays of shape (len(chosen), longest row).
        """
        lengths = self.lengths[chosen]
        columns = np.arange(int(lengths.max()))
        head = self._head_of[chosen]
        head_lengths = self._head_lengths[head][:, None]
        head_starts = self._head_starts[head][:, None]
        tail_starts = self._tail_starts[self._tail_of[chosen]][:, None]
        where = np.where(columns < head_lengths, head_starts, tail_starts - head_lengths) + columns
        real = columns < lengths[:, None]
        where[~real] = len(self._tokens) - 1
        tokens = self._tokens[where]
        tokens[~real] = pad
        return tokens, self._types[where], real


def spells(rows: TokenRows, encode: Callable[[np.ndarray], Any]) -> bool:
    """Tell whether rows are what a tokenizer makes of the whole texts.

    Args:
        rows: The rows.
        encode: Given numbers of rows, the tokenizer's answer for their texts, with special tokens.
    """
    for start in range(0, len(rows), CHECKED_AT_ONCE):
        chosen = np.arange(start, min(start + CHECKED_AT_ONCE, len(rows)))
        tokens, types, real = rows.lay_out(chosen, pad=0)
        whole = encode(chosen)
        if not _same(tokens[real], real, whole["input_ids"]):
            return False
        if "token_type_ids" in whole and not _same(types[real], real, whole["token_type_ids"]):
            return False
    return True


def _same(values: np.ndarray, real: np.ndarray, whole: Sequence[Sequence[int]]) -> bool:
    lengths = [len(row) for row in whole]
    return bool(np.array_equal(real.sum(axis=1), lengths) and np.array_equal(values, flatten(whole)))


def flatten(sequences: Sequence[Sequence[int]]) -> np.ndarray:
    """Join sequences of integers to one int64 array."""
    return np.fromiter(itertools.chain.from_iterable(sequences), dtype=np.int64)


def encode_plain(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    """Encode texts without special tokens."""
    if not texts:
        return []
    return tokenizer(list(texts), add_special_tokens=False, return_attention_mask=False, verbose=False)["input_ids"]


def check_index(scorer: str, name: str, index: np.ndarray, n_values: int) -> None:
    """Refuse an index that points outside of what it numbers."""
    if index.size and not (index.min() >= 0 and index.max() < n_values):
        wrong = index[(index < 0) | (index >= n_values)][0]
        raise QabiasError(f"{scorer}: {name} holds {wrong}, which is not one of the {n_values} given")


def in_use(index: np.ndarray, n_values: int) -> tuple[np.ndarray, np.ndarray]:
    """Number what an index uses anew.

    Returns:
        The values in use, ascending, and the index into these.
    """
    used = np.flatnonzero(np.bincount(index, minlength=n_values))
    renumbered = np.zeros(n_values, dtype=np.int32)
    renumbered[used] = np.arange(len(used), dtype=np.int32)
    return used, renumbered[index]


# Running rows


@dataclass
class RunStats:
    """What a scorer has done since it was made.

    Attributes:
        tokens_run: Tokens run through the model, pads included.
        pads_run: Pads among them.
        batches: Forward passes.
        seconds: Time spent in `score`.
    """

    tokens_run: int = 0
    pads_run: int = 0
    batches: int = 0
    seconds: float = 0.0


class EncoderRunner:
    """Runs rows through a model, batch by batch.

    Args:
        loaded: The model.
        scorer: Name of the scorer, for messages.
        token_budget: Most tokens of one forward pass, pads included; a longer row runs alone. It is halved when memory
            runs out. None for a default by device.
        token_limit: Most tokens of a forward pass whatever the budget.
        row_limit: Most rows of a forward pass.

    Attributes:
        stats: Counts for reports.

    Raises:
        QabiasError: If the tokenizer is a slow one or the budget is not positive.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        scorer: str,
        token_budget: int | None = None,
        *,
        token_limit: int = sys.maxsize,
        row_limit: int = sys.maxsize,
    ) -> None:
        if token_budget is not None and token_budget < 1:
            raise QabiasError(f"{scorer}: token budget {token_budget} is less than one token")
        if not getattr(loaded.tokenizer, "is_fast", False):
            raise QabiasError(
                f"{scorer}: the tokenizer of model {loaded.name!r} does not tell where its tokens lie in a text; "
                "use a model with a fast tokenizer"
            )
        self.stats = RunStats()
        self._longest = _longest_row(loaded.model, loaded.tokenizer)
        self._row_limit = row_limit
        self._scorer, self._name, self._device = scorer, loaded.name, loaded.device
        default_budget = CPU_TOKEN_BUDGET if loaded.device == "cpu" else GPU_TOKEN_BUDGET
        self._token_budget = min(token_budget or default_budget, token_limit)
        self._takes_types = "token_type_ids" in inspect.signature(loaded.model.forward).parameters
        self._takes_types &= "token_type_ids" in loaded.tokenizer.model_input_names
        self._n_types = getattr(loaded.model.config, "type_vocab_size", sys.maxsize)
        self._pad = next(
            (pad for pad in (loaded.tokenizer.pad_token_id, loaded.model.config.pad_token_id) if pad is not None), 0
        )

    def find_too_long(self, rows: TokenRows) -> tuple[int, str] | None:
        """Find a row that the model cannot read: its number and what to say of it; None if all are short enough."""
        if not len(rows) or rows.lengths.max() <= self._longest:
            return None
        row = int(np.argmax(rows.lengths > self._longest))
        return row, (
            f"{rows.lengths[row]} tokens are more than the {self._longest} that model {self._name!r} can read; use "
            "shorter texts or another model"
        )

    def make_inputs(self, rows: TokenRows, chosen: np.ndarray) -> dict[str, torch.Tensor]:
        """Make the model's inputs of chosen rows; without pads there is no attention mask, and none to compute with."""
        import torch

        tokens, types, real = rows.lay_out(chosen, self._pad)
        inputs = {"input_ids": tokens}
        if not real.all():
            inputs["attention_mask"] = real.astype(np.int64)
        if self._takes_types and rows.max_type < self._n_types:
            inputs["token_type_ids"] = types
        return {name: torch.from_numpy(values).to(self._device) for name, values in inputs.items()}

    def run(
        self,
        rows: TokenRows,
        ask: Callable[[np.ndarray, dict[str, torch.Tensor]], None],
        progress: Progress | None = None,
    ) -> None:
        """Run all rows, the longest first so that memory runs out early.

        Args:
            rows: What to run.
            ask: Given numbers of rows and the inputs made of them, asks the model and keeps its answers. Called again
                for the same rows with fewer at a time when memory runs out.
            progress: Called after every batch with the number of rows done so far.

        Raises:
            QabiasError: If one row alone does not fit in memory.
        """
        import torch

        longest = int(rows.lengths.max(initial=0))
        # Sorting 16-bit numbers takes a tenth of the time.
        keys = (-rows.lengths).astype(np.int16) if longest < 2**15 else -rows.lengths
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        done = 0
        while done < len(order):
            chosen = order[done : self._cut(keys, done)]
            with torch.inference_mode():
                fits = self._try(rows, chosen, ask)
            if not fits:
                self._retreat(len(chosen), int(rows.lengths[chosen[0]]))
                continue
            size = len(chosen) * int(rows.lengths[chosen[0]])
            done += len(chosen)
            self.stats.tokens_run += size
            self.stats.pads_run += size - int(rows.lengths[chosen].sum())
            self.stats.batches += 1
            if progress is not None:
                progress(done)

    def _try(
        self, rows: TokenRows, chosen: np.ndarray, ask: Callable[[np.ndarray, dict[str, torch.Tensor]], None]
    ) -> bool:
        try:
            ask(chosen, self.make_inputs(rows, chosen))
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            return False
        return True

    def _cut(self, keys: np.ndarray, start: int) -> int:
        """End of the batch that begins at `start`: no pads where rows of one length make half a batch.

        Args:
            keys: int array, ascending; lengths of the rows, negated.
            start: Number of the first row.
        """
        longest = -int(keys[start])
        n_rows = max(1, min(self._token_budget // longest, self._row_limit))

        def end_of(length: int) -> int:
            # A key of another type would have all keys copied.
            return int(np.searchsorted(keys, keys.dtype.type(-length), side="right"))

        end = end_of(longest)
        if 2 * (end - start) < n_rows:
            end = end_of(math.ceil(NEARLY_EQUAL * longest))
        return min(start + n_rows, end)

    def _retreat(self, n_rows: int, longest: int) -> None:
        """Halve the token budget after a batch did not fit in memory."""
        import torch

        if n_rows == 1:
            raise QabiasError(
                f"model {self._name!r}: {longest} tokens do not fit in memory; use a smaller model, --dtype bfloat16 "
                "or a larger device"
            )
        self._token_budget = max(1, min(self._token_budget, n_rows * longest) // 2)
        if self._device.startswith("cuda"):
            torch.cuda.empty_cache()
        _log.warning("%s: out of memory; going on with batches of %d tokens", self._scorer, self._token_budget)


def _longest_row(model: Any, tokenizer: Any) -> float:
    """Most tokens that a model can read; RoBERTa and its kin count positions from the pad token's on."""
    n_positions = getattr(model.config.get_text_config(), "max_position_embeddings", None) or 0
    if n_positions <= 0:
        return tokenizer.model_max_length
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None:
            return module.num_embeddings - module.padding_idx - 1
    return n_positions
