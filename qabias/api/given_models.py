"""What a caller may pass as a model, and what scorers get."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from qabias.errors import QabiasError
from qabias.models.loading import LoadedModel, check_name
from qabias.scorers.registry import BASELINE_PREFIX, FUNCTION, FUNCTION_PREFIX

if TYPE_CHECKING:
    from transformers import Pipeline, PreTrainedModel, PreTrainedTokenizerBase

    from qabias.scorers.base import Request
    from qabias.scorers.server.asking import ChatClient, CompletionClient

Answers: TypeAlias = "Callable[[list[str]], Sequence[str] | Awaitable[Sequence[str]]]"
"""A function from prompts to answers, parallel to them; it may be async."""

Likelihoods: TypeAlias = "Callable[[list[Request]], Sequence[Sequence[float]] | Awaitable[Sequence[Sequence[float]]]]"
"""A function from requests to one list of option log-likelihoods each; it may be async."""

Client: TypeAlias = "ChatClient | CompletionClient"
"""A client of an OpenAI-compatible API, such as `openai.OpenAI` and `openai.AsyncOpenAI`."""

Model: TypeAlias = "str | Path | PreTrainedModel | Pipeline | Answers | Likelihoods | Client"

_OFFER = (
    "Give a name or folder, a model of transformers with its tokenizer, a pipeline, a function from prompts to "
    "answers, or an OpenAI-compatible client"
)
_TAKEN = (BASELINE_PREFIX, FUNCTION_PREFIX)

# Settings of a pipeline that its maker may have given, in the versions of transformers that have them.
_PIPELINE_SETTINGS = ("_preprocess_params", "_forward_params", "_postprocess_params", "_generate_kwargs")


class GivenModel(NamedTuple):
    """A model as runs take it: name, inferred scorer, and the object passed instead of a name."""

    name: str
    scorer: str | None = None
    handed_over: object = None


def given_model(model: Model, tokenizer: PreTrainedTokenizerBase | None, name: str | None) -> GivenModel:
    """Return the caller's model as runs take it."""
    if name is not None:
        check_given(name)
    if isinstance(model, str | Path):
        for what, value in (("name", name), ("tokenizer", tokenizer)):
            if value is not None:
                raise QabiasError(
                    f"{what} is for a model in memory or a function, not for {str(model)!r}.", f"Remove {what}."
                )
        return GivenModel(str(model))
    if isinstance(model, type):
        raise QabiasError(f"model is the class {model.__name__}, not an object of it.", f"{_OFFER}.")
    if _is_a(model, "PreTrainedTokenizerBase"):
        raise QabiasError("model is a tokenizer.", "Give the model as model=... and this as tokenizer=...")
    if _is_a(model, "Pipeline"):
        return _of_pipeline(model, tokenizer, name)
    if _is_a(model, "PreTrainedModel") or hasattr(model, "get_base_model"):
        return _in_memory(model, tokenizer, name)
    if _is_a(model, "Module", package="torch"):
        raise QabiasError(
            f"model is a {type(model).__name__}, not a model of transformers.",
            'Wrap it in a function (ask="answer-logprob" for log-likelihoods), and give it a name.',
        )
    return _asked_elsewhere(model, tokenizer, name)


def _asked_elsewhere(model: Any, tokenizer: object, name: str | None) -> GivenModel:
    """A client or a function, known only by the caller's name for it."""
    from qabias.scorers.server.asking import is_client

    is_of_client = is_client(model)
    if not is_of_client and not callable(model):
        raise QabiasError(f"model is a {type(model).__name__}.", f"{_OFFER}.")
    what = "client" if is_of_client else "function"
    if tokenizer is not None:
        raise QabiasError(f"tokenizer is for a model in memory, but model is a {what}.", "Remove tokenizer.")
    if name is None:
        called = "the server's name of the model" if is_of_client else "its name in results"
        raise QabiasError(f"model is a {what} without a name.", f"Give name=..., {called}.")
    return GivenModel(name, "server", model) if is_of_client else GivenModel(FUNCTION_PREFIX + name, FUNCTION, model)


def check_given(name: str, argument: str = "name") -> None:
    """Refuse a model name that a signature cannot hold, or that has another meaning."""
    check_name(name, argument)
    if name.startswith(_TAKEN):
        raise QabiasError(f"{argument} is {name!r}.", f"Choose one that does not begin with {' or '.join(_TAKEN)}.")


def _of_pipeline(pipeline: Any, tokenizer: PreTrainedTokenizerBase | None, name: str | None) -> GivenModel:
    """The pipeline's model and tokenizer; warns about settings that differ from qabias's."""
    if tokenizer is not None:
        raise QabiasError("tokenizer is for a model in memory, and a pipeline has its own.", "Remove tokenizer.")
    if not type(pipeline).__module__.startswith("transformers."):
        raise QabiasError(
            f"model is a {type(pipeline).__name__}, a pipeline whose own code would not run.",
            "Give its model and tokenizer, or a function that calls it.",
        )
    usual = [*type(pipeline)._sanitize_parameters(pipeline), {}]
    settings: dict[str, object] = {}
    for attribute, known in zip(_PIPELINE_SETTINGS, usual, strict=True):
        values = getattr(pipeline, attribute, {})
        settings |= {key: value for key, value in values.items() if repr(known.get(key)) != repr(value)}
    if settings:
        warnings.warn(
            f"qabias does not use the pipeline's settings {', '.join(sorted(settings))}. Set them by option={{...}}, "
            "or give a function that calls the pipeline",
            stacklevel=5,
        )
    return _in_memory(pipeline.model, pipeline.tokenizer, name)


def _in_memory(model: Any, tokenizer: PreTrainedTokenizerBase | None, name: str | None) -> GivenModel:
    from qabias.models.memory import from_memory

    loaded = from_memory(model, tokenizer, name)
    check_given(loaded.name)
    return GivenModel(loaded.name, handed_over=loaded)


def _is_a(model: object, name: str, package: str = "transformers") -> bool:
    """Whether an object's class comes from a package, without importing the package."""
    return any(base.__name__ == name and base.__module__.partition(".")[0] == package for base in type(model).__mro__)


@contextmanager
def ready(model: GivenModel) -> Iterator[None]:
    """Prepare a model in memory for questions, and restore its state afterwards."""
    from qabias.models.memory import evaluating

    if not isinstance(model.handed_over, LoadedModel):
        yield
        return
    with evaluating(model.handed_over.model):
        yield
