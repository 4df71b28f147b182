"""Description of a scorer before a model is loaded: a `ScorerKind` in each scorer's file, and its typed options."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

from qabias.errors import QabiasError, arg
from qabias.models.loading import LoadedModel, ModelKind, check_kind, load_model
from qabias.models.memory import check_head, config_of
from qabias.support.suggest import unknown

if TYPE_CHECKING:
    from qabias.scorers.base import Scorer

INTERFACES = ("options", "texts", "choices", "pairs", "spans", "masks")
"""Ways of querying, each with a Protocol in `qabias.scorers.base`.

options   likelihood of each option after a text (`OptionScorer`)
texts     what the model writes (`TextScorer`)
choices   which option the model prefers, each read together with the text (`OptionScorer`)
pairs     classification of pairs of texts (`PairScorer`)
spans     likelihood of spans of a context as the answer (`SpanScorer`)
masks     likelihood of words at a mask (`MaskScorer`)
"""


ASK_METHODS = ("answer-logprob", "letter-logprob", "letter", "cot", "fill-blank", "open-ended", "json")
"""What a model is asked to give.

    answer-logprob  the likelihood of each answer's text
    letter-logprob  the likelihood of each answer's letter, in the model's chat template if it has one
    letter          it writes the letter of its answer
    cot             it reasons first (chain of thought), then it writes the letter
    fill-blank      it fills the blank in a statement, without answers to choose from
    open-ended      it answers the question, without answers to choose from
    json            a server makes it write one letter, as JSON by a schema
"""


FORCED_CHOICE = "forced-choice"
"""Ask method of some benchmarks: the usual way of a backend, without an option to abstain."""


T = TypeVar("T")


def option_field(
    default: Any,
    text: str,
    *,
    choices: Iterable[str] | Mapping[str, Any] = (),
    least: float = 1,
    wanted: str = "",
    none: str | None = None,
    read: Callable[[Any], Any] | None = None,
    prefix: str = "",
    passing: bool = False,
) -> Any:
    """A field that is an option, with its help.

    `choices` are words, or the value of each. A number is at least `least`; if it is wrong, the error says what is
    `wanted`. `none` is the word for None. `read` reads other texts; with the `prefix` of free names, such as
    `template.`, it reads all options. A `passing` option does not affect answers.
    """
    shown = {"choices": choices, "least": least, "wanted": wanted, "none": none, "read": read, "prefix": prefix}
    shown |= {"help": text, "passing": passing}
    return field(default_factory=dict, metadata=shown) if prefix else field(default=default, metadata=shown)


@dataclass(frozen=True)
class NoOptions:
    """Of a backend without options."""


def parse_options(scorer: str, kind: type[T], texts: Mapping[str, str]) -> T:
    """Read the options of a backend without its model; its method `check(scorer, names)` sees all of them."""
    hints = get_type_hints(kind)
    values: dict[str, Any] = {}
    for each in fields(kind):  # type: ignore[arg-type]  # a type of dataclasses has no name
        if each.metadata["prefix"]:
            values[each.name] = each.metadata["read"](texts)
        elif each.name in texts:
            values[each.name] = _read(scorer, each.name, hints[each.name], texts[each.name], each.metadata)
    options = kind(**values)
    getattr(options, "check", lambda *_: None)(scorer, texts.keys())
    return options


def _read(scorer: str, name: str, kind: Any, text: str, how: Mapping[str, Any]) -> Any:
    choices = how["choices"]
    if how["read"]:
        return how["read"](text)
    if choices and text not in choices:
        raise unknown(f"{name} of {scorer}", text, choices, f"{arg('option')} {name}=")
    if choices:
        return choices[text] if isinstance(choices, Mapping) else text
    if kind is str or str in get_args(kind):
        return text
    if text == how["none"]:
        return None
    number = math.nan
    with suppress(ValueError):
        number = float(text) if kind is float or float in get_args(kind) else int(text)
    if not how["least"] <= number < math.inf:
        raise QabiasError(f"{scorer}: {name} is {text!r}.", f"Give {how['wanted']}.")
    return number


@dataclass(frozen=True)
class Loading:
    """What a scorer is loaded from.

    Attributes:
        model: A name or path that the scorer can load.
        options: Known options of the scorer by name, as texts.
        revision: Branch, tag or commit of a Hub model.
        device: A torch device, or `"auto"`.
        dtype: Precision of the model, or `"auto"`.
        batch_tokens: Tokens per batch; None for the scorer's default.
        seed: Seed of random baselines and sampled answers.
        journal: File for the answers of a server or a function.
        handed_over: A model in memory instead of a name, or another object that the scorer takes.
    """

    model: str
    options: Mapping[str, str] = field(default_factory=dict)
    revision: str | None = None
    device: str = "auto"
    dtype: str = "auto"
    batch_tokens: int | None = None
    seed: int = 0
    journal: Path | None = None
    handed_over: object = None

    def load_model(self, models: ModelKind) -> LoadedModel:
        """Load a model of a kind, see `qabias.models.loading.load_model`; a model in memory is used directly."""
        if isinstance(self.handed_over, LoadedModel):
            ignored = self.chosen("revision", "dtype", "device")
            ignored += ["device_map"] if "device_map" in self.options else []
            if ignored:
                raise QabiasError(
                    f"model {self.model!r} is in memory, and loading options do not apply.",
                    f"Remove {', '.join(ignored)}.",
                )
            check_kind(models, self.model, config_of(self.handed_over))
            check_head(models, self.handed_over)
            return self.handed_over
        return load_model(
            models,
            self.model,
            revision=self.revision,
            device=self.device,
            dtype=self.dtype,
            device_map=self.options.get("device_map"),
        )

    def chosen(self, *names: str) -> list[str]:
        """Return which of some attributes differ from their defaults."""
        return [name for name in names if getattr(self, name) != getattr(Loading, name)]


@dataclass(frozen=True)
class ScorerKind:
    """A scorer before it is loaded.

    Attributes:
        name: Name on the command line and in signatures.
        summary: One line of help.
        interfaces: Its `INTERFACES`; it can answer benchmarks that use one of them.
        load: Loads a model and returns the scorer.
        options: Dataclass of its options, see `option_field`.
        asks: Its `ASK_METHODS`, each with the options that it sets.
        auto_class: Class of `transformers` that loads its models; "" for none.
        heads: Endings of the model classes, as a configuration names them, that the scorer is made for.
        made_for: Decides from a configuration whether the scorer is made for a model, if `heads` cannot.
        lists_options: Whether the prompt must list the options, because the model is trained to see them.
        chats: Whether a model that writes is queried as a chat, and so by letters rather than texts.
        has_lengths: Whether scores are likelihoods of texts, which a length can normalize.
        counts_tokens: Whether that length may be in tokens, not only in bytes.
        reads_prompt: Whether it reads the rendered prompt; encoders read the texts themselves.
        variants: For modes that `asks` does not name the mode whose ask methods they have.
        many_at_once: Whether it is faster with thousands of questions per call.
    """

    name: str
    summary: str
    interfaces: tuple[str, ...]
    load: Callable[[Loading], Scorer]
    options: type[Any] = NoOptions
    asks: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: {ASK_METHODS[0]: {}})
    auto_class: str = ""
    heads: tuple[str, ...] = ()
    made_for: Callable[[Any], bool] | None = None
    lists_options: bool = False
    chats: bool = False
    has_lengths: bool = True
    counts_tokens: bool = True
    reads_prompt: bool = True
    many_at_once: bool = False
    variants: Mapping[str, str] = field(default_factory=dict)

    @property
    def known_options(self) -> dict[str, Mapping[str, Any]]:
        """What describes each option, by its name, or by the beginning of its names, such as `template.`."""
        return {each.metadata["prefix"] or each.name: each.metadata for each in fields(self.options)}

    @property
    def default_mode(self) -> str:
        """Default of the option `mode`; "" for a scorer without modes."""
        return getattr(self.options, "mode", "")
