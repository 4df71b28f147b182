"""Loading encoder models: heads for spans, masks, classes of pairs and multiple choice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qabias.errors import QabiasError
from qabias.models.loading import LoadedModel, checkpoint_version, first_line, quiet_transformers, resolve_device, resolve_dtype

if TYPE_CHECKING:
    import torch


# What stands on the encoder: the class that loads it, and what a fitting model is, for messages.
HEADS = {
    "question_answering": ("AutoModelForQuestionAnswering", "a model trained to answer by spans, e.g. on SQuAD"),
    "masked_lm": ("AutoModelForMaskedLM", "a complete masked language model"),
    "sequence_classification": (
        "AutoModelForSequenceClassification",
        "a model trained to classify pairs of texts, e.g. on MNLI",
    ),
    "multiple_choice": ("AutoModelForMultipleChoice", "a model trained for multiple choice, e.g. on RACE"),
}


def load_encoder(
    model: str, head: str, *, revision: str | None = None, device: str = "auto", dtype: str = "auto"
) -> LoadedModel:
    """Load an encoder with a head.

    Args:
        model: A folder, or a name on the Hub.
        head: One of `HEADS`.
        revision: Branch, tag or commit on the Hub.
        device: A torch device; `"auto"` is CUDA if there is one, else the CPU.
        dtype: One of `qabias.models.loading.DTYPES`; `"auto"` is bfloat16 on CUDA and float32 elsewhere.

    Returns:
        The model with its tokenizer.

    Raises:
        QabiasError: If the model cannot be had, was not trained with that head, or the device or type does not exist.
    """
    auto_class, what = HEADS[head]
    torch_device = resolve_device(device)
    torch_dtype = resolve_dtype(dtype, torch_device)
    loaded, tokenizer = _load_pair(model, auto_class, what, revision, torch_dtype)
    return LoadedModel(
        model=loaded.to(torch_device).eval(),
        tokenizer=tokenizer,
        name=model,
        version=checkpoint_version(model, loaded.config),
        device=str(torch_device),
        dtype=str(torch_dtype).removeprefix("torch."),
    )


def _load_pair(name: str, auto_class: str, what: str, revision: str | None, dtype: torch.dtype) -> tuple[Any, Any]:
    import transformers

    with quiet_transformers():
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(name, revision=revision)
            model, info = getattr(transformers, auto_class).from_pretrained(
                name, revision=revision, dtype=dtype, output_loading_info=True
            )
        except ImportError as error:
            raise QabiasError(f"model {name!r} needs a package that is not installed: {first_line(error)}") from error
        except Exception as error:  # from_pretrained raises whatever its readers raise
            raise QabiasError(
                f"model {name!r} cannot be loaded: {first_line(error)}; check the name or path, the network for a "
                f"model that is not in the cache, and that it is {what}"
            ) from error
    if info["missing_keys"]:
        missing = ", ".join(sorted(info["missing_keys"])[:3])
        raise QabiasError(f"model {name!r} has no weights for {missing}; random weights would answer: use {what}")
    return model, tokenizer
