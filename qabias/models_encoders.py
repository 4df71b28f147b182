"""Loading encoder models: heads for spans, masks, classes of pairs and multiple choice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qabias.errors import QabiasError
from qabias.models import LoadedModel, _first_line, _quiet_transformers, _resolve_device, _resolve_dtype, _version

if TYPE_CHECKING:
    import torch


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


def load_multiple_choice(
    model: str, *, revision: str | None = None, device: str = "auto", dtype: str = "auto"
) -> LoadedModel:
    """Load a model that tells which of several answers fits a context and a question.

    Args:
        model: A folder, or a name on the Hub.
        revision: Branch, tag or commit on the Hub.
        device: A torch device; `"auto"` is CUDA if there is one, else the CPU.
        dtype: One of `qabias.models.DTYPES`; `"auto"` is bfloat16 on CUDA and float32 elsewhere.

    Returns:
        The model with its tokenizer.

    Raises:
        QabiasError: If the model cannot be had, was not trained for multiple choice, or the device or type does not
            exist.
    """
    what = "a model trained for multiple choice, e.g. on RACE"
    return _load(model, "AutoModelForMultipleChoice", what, revision, device, dtype)


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
