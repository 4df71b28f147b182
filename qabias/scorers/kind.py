"""What is known of a scorer before any model is loaded: one `ScorerKind` for each, in the scorer's own file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qabias.errors import QabiasError
from qabias.models.loading import LoadedModel, ModelKind, check_kind, load_model
from qabias.models.memory import check_head, config_of

if TYPE_CHECKING:
    from qabias.scorers.base import Scorer

INTERFACES = ("options", "texts", "choices", "pairs", "spans", "masks")
"""Ways of asking, each with a Protocol in `qabias.scorers.base`.

    options   how likely each option is after a text (`OptionScorer`)
    texts     what the model writes (`TextScorer`)
    choices   which option the model prefers, each read together with the text (`OptionScorer`)
    pairs     how the model classifies pairs of texts (`PairScorer`)
    spans     how likely spans of a context are the answer (`SpanScorer`)
    masks     how likely words are at a mask (`MaskScorer`)
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


@dataclass(frozen=True)
class Loading:
    """What a scorer is loaded from.

    Attributes:
        model: A name or path that the scorer can load.
        options: Options of the scorer by name, as texts; all of them known.
        revision: Branch, tag or commit of a Hub model.
        device: A torch device, or `"auto"`.
        dtype: Precision of the model, or `"auto"`.
        batch_tokens: Tokens of a batch; None for the scorer's default.
        seed: Of random baselines and sampled answers.
        journal: File that keeps what a server or a function answers.
        handed_over: What a caller hands over in place of a name: a model in memory, or what a scorer of its own takes.
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
        """Load a model of a kind, see `qabias.models.loading.load_model`; one in memory is taken as it is."""
        if isinstance(self.handed_over, LoadedModel):
            ignored = self.chosen("revision", "dtype", "device")
            ignored += ["device_map"] if "device_map" in self.options else []
            if ignored:
                raise QabiasError(
                    f"model {self.model!r} is in memory already, where it is taken as it is.",
                    f"Leave out {', '.join(ignored)}.",
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
        """Return which of some attributes are not the default."""
        return [name for name in names if getattr(self, name) != getattr(Loading, name)]


@dataclass(frozen=True)
class ScorerKind:
    """A scorer before it is loaded.

    Attributes:
        name: Name on the command line and in signatures.
        summary: One line for people.
        interfaces: Which of `INTERFACES` it has; a benchmark that has one of them can be asked by it.
        load: Loads a model and the way of asking it.
        options: Options by name, each with one line for people.
        open_options: Options of which only the beginning of the name is fixed, such as `template.`, each with one line
            for people.
        asks: Which of `ASK_METHODS` it has, each with the options that it sets.
        default_mode: What the option `mode` is where it is not given; "" for a scorer that has none.
        parse_options: Reads known options from texts; raises `QabiasError` where a value is wrong. It needs no model,
            so that a plan refuses what a run refuses.
        auto_class: Class of `transformers` that loads its models; "" if it loads none.
        heads: Endings of the classes, as a model's configuration names them, that the scorer is made for.
        made_for: Tells from a configuration whether the scorer is made for a model, where `heads` cannot.
        passing_options: Options that do not determine answers; a run may go on with other values of them.
        lists_options: Whether the options of a question must stand in its text, because the model is trained to see
            them.
        chats: Whether a model that writes is asked in the form of a chat, and so by letters rather than texts.
        has_lengths: Whether scores are likelihoods of texts, which a length can normalise.
        counts_tokens: Whether that length may be in tokens; one that does not know them has bytes alone.
        reads_prompt: Whether it reads what a prompt format renders; encoders read the texts themselves.
        many_at_once: Whether it gains from being asked thousands of questions in one call.
    """

    name: str
    summary: str
    interfaces: tuple[str, ...]
    load: Callable[[Loading], Scorer]
    options: Mapping[str, str] = field(default_factory=dict)
    open_options: Mapping[str, str] = field(default_factory=dict)
    asks: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: {ASK_METHODS[0]: {}})
    default_mode: str = ""
    parse_options: Callable[[Mapping[str, str]], Any] = dict
    auto_class: str = ""
    heads: tuple[str, ...] = ()
    made_for: Callable[[Any], bool] | None = None
    passing_options: tuple[str, ...] = ()
    lists_options: bool = False
    chats: bool = False
    has_lengths: bool = True
    counts_tokens: bool = True
    reads_prompt: bool = True
    many_at_once: bool = False
