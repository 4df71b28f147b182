"""A model as far as a plan needs it: tokenizer, configuration and size, but no weights."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from qabias.errors import QabiasError
from qabias.models.loading import (
    SMOLLM2,
    LoadedModel,
    _find_smollm2,
    _gguf_read_once,
    _not_loaded,
    default_scorer,
    quiet_transformers,
)
from qabias.scorers.registry import BASELINE_PREFIX

AUTO_CLASSES = {
    "causal": "AutoModelForCausalLM",
    "seq2seq": "AutoModelForSeq2SeqLM",
    "extractive_qa": "AutoModelForQuestionAnswering",
    "masked_lm": "AutoModelForMaskedLM",
    "nli": "AutoModelForSequenceClassification",
    "multiple_choice": "AutoModelForMultipleChoice",
}


@dataclass(frozen=True)
class Shape:
    """Sizes of a transformer that its costs depend on.

    Attributes:
        layers: Number of layers; of a text-to-text model, of each side.
        attention_width: Number of heads times the size of a head.
        cache_width: Numbers that a layer keeps of a token while text is generated: keys and values of all heads.
        hidden_size: Size of a token's state.
        vocabulary_size: Number of tokens that it tells apart.
    """

    layers: int
    attention_width: int
    cache_width: int
    hidden_size: int
    vocabulary_size: int


@dataclass(frozen=True)
class Subject:
    """A model without weights.

    Attributes:
        name: What it is called.
        scorer: The way that it is asked.
        tokenizer: Its tokenizer.
        parameters: Number of its parameters, shared ones once.
        encoder_parameters: Those of the encoder of a text-to-text model; 0 for others.
        model: The model on the meta device, without memory; None where only its size is known.
        shape: Its shape; None where only its size is known.
    """

    name: str
    scorer: str
    tokenizer: Any
    parameters: int
    encoder_parameters: int = 0
    model: Any = None
    shape: Shape | None = None

    @property
    def loaded(self) -> LoadedModel:
        """The model as scorers take it; it cannot be run."""
        return LoadedModel(self.model, self.tokenizer, self.name, "plan", "cpu", "float32")


def load_subject(
    model: str | None,
    *,
    scorer: str | None = None,
    revision: str | None = None,
    parameters: float | None = None,
    tokenizer: str | None = None,
) -> Subject:
    """Find out about a model from its configuration and tokenizer.

    Args:
        model: `"smollm2"`, a folder (weights are not needed) or a Hub id; None where only a size is known.
        scorer: The way of asking it; None for the way that its head is made for.
        revision: Branch, tag or commit on the Hub.
        parameters: Number of parameters, in place of that of the configuration.
        tokenizer: `"smollm2"`, a folder or a Hub id, in place of the model's own tokenizer.

    Raises:
        QabiasError: If the model or tokenizer cannot be had, or there is nothing to tell the size or tokens by.
    """
    if parameters is not None and not 1 <= parameters < float("inf"):
        raise QabiasError(f"parameters is {parameters}; give the number of the model's parameters, such as 70e9")
    with _gguf_read_once() if SMOLLM2 in (model, tokenizer) else nullcontext():
        if model is None:
            return _of_size(scorer or "causal", parameters, tokenizer)
        return _of_model(model, scorer, revision, parameters, tokenizer)


def _of_model(
    model: str, scorer: str | None, revision: str | None, parameters: float | None, tokenizer: str | None
) -> Subject:
    if model.startswith(BASELINE_PREFIX):
        raise QabiasError(f"{model} runs no model and takes no time to speak of; plan for another model")
    scorer = scorer or default_scorer(model, revision)
    if scorer not in AUTO_CLASSES:
        raise QabiasError(f"a plan knows the scorers {', '.join(AUTO_CLASSES)}, not {scorer!r}")
    config = _load("AutoConfig", model, revision)
    empty = _make_empty(model, config, AUTO_CLASSES[scorer])
    encoder = empty.get_encoder() if scorer == "seq2seq" else None
    counted = count_parameters(empty)
    # A given size is shared between the sides as the configuration has it.
    share = count_parameters(encoder) / counted if encoder is not None else 0.0
    total = int(parameters or counted)
    return Subject(
        name=model,
        scorer=scorer,
        tokenizer=_load("AutoTokenizer", tokenizer or model, None if tokenizer else revision),
        parameters=total,
        encoder_parameters=round(share * total),
        model=empty,
        shape=_shape(config),
    )


def count_parameters(model: Any) -> int:
    """Number of a model's parameters; one that two parts share counts once."""
    return sum(parameter.numel() for parameter in model.parameters())


def _of_size(scorer: str, parameters: float | None, tokenizer: str | None) -> Subject:
    if parameters is None or tokenizer is None:
        raise QabiasError("name a model by --model, or give its size and a tokenizer by --parameters and --tokenizer")
    if scorer != "causal":
        raise QabiasError(f"only the scorer causal can be planned by size alone; give --model for {scorer}")
    name = f"{parameters:.4g} parameters, tokenizer of {tokenizer}"
    return Subject(name, scorer, _load("AutoTokenizer", tokenizer, None), int(parameters))


def _load(auto_class: str, name: str, revision: str | None) -> Any:
    """Load a configuration or a tokenizer."""
    import transformers

    source, gguf = _find_smollm2() if name == SMOLLM2 else (name, {})
    with quiet_transformers():
        try:
            return getattr(transformers, auto_class).from_pretrained(source, revision=revision, **gguf)
        except Exception as error:  # from_pretrained raises whatever its readers raise
            raise _not_loaded(name, error) from error


def _make_empty(name: str, config: Any, auto_class: str) -> Any:
    import torch
    import transformers

    try:
        with torch.device("meta"):
            return getattr(transformers, auto_class).from_config(config).eval()
    except (ValueError, KeyError, ImportError) as error:
        raise QabiasError(f"model {name!r} cannot be made a {auto_class}: {str(error).splitlines()[0]}") from error


def _shape(config: Any) -> Shape:
    text = config.get_text_config()
    heads = text.num_attention_heads
    # T5 names its sizes otherwise, and some configurations leave the size of a head to be worked out.
    head_size = getattr(text, "head_dim", None) or getattr(text, "d_kv", None) or text.hidden_size // heads
    key_heads = getattr(text, "num_key_value_heads", None) or heads
    return Shape(
        layers=text.num_hidden_layers,
        attention_width=heads * head_size,
        cache_width=2 * key_heads * head_size,
        hidden_size=text.hidden_size,
        vocabulary_size=text.vocab_size,
    )
