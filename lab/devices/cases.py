"""The cases of a device: a scorer with a model in a precision, the most important first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import torch
import transformers

from lab.devices import models, questions
from lab.devices.models import Shape, make_tokenizer
from qabias.answers.parsing import LABELS
from qabias.models.loading import DTYPES, LoadedModel, quiet_transformers
from qabias.scorers.registry import load_scorer

SIZES = ("tiny", "small", "all")

NEW_TOKENS = 16
"""Tokens of a written answer."""

EXAMPLES = 4000
"""Maximum number of examples of a benchmark."""

TINY_PROBABILITY = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True, eq=False)
class Way:
    """A scorer with its benchmark and query."""

    name: str
    scorer: str
    way: str
    auto_class: str
    options: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def writes(self) -> bool:
        """Whether the model writes its answers."""
        return self.way == "texts"


@dataclass(frozen=True, eq=False)
class Case:
    """A scorer with a shape in a precision; only the usual precision is timed."""

    way: Way
    shape: Shape
    dtype: str
    timed: bool

    @property
    def name(self) -> str:
        """Readable name."""
        return f"{self.way.name}, {self.shape.name}, {self.dtype}"


_WRITE = {"mode": "generate", "max_new_tokens": str(NEW_TOKENS)}
_NAMES = dict(enumerate(LABELS))
_LABELLED = {"num_labels": len(LABELS), "id2label": _NAMES, "label2id": {name: i for i, name in _NAMES.items()}}
CAUSAL = Way("causal", "causal", "options", "AutoModelForCausalLM")
CAUSAL_WRITTEN = Way("causal, written", "causal", "texts", "AutoModelForCausalLM", _WRITE)
SEQ2SEQ = Way("seq2seq", "seq2seq", "options", "AutoModelForSeq2SeqLM")
SEQ2SEQ_WRITTEN = Way("seq2seq, written", "seq2seq", "texts", "AutoModelForSeq2SeqLM", _WRITE)
SPANS = Way("extractive_qa", "extractive_qa", "spans", "AutoModelForQuestionAnswering")
MASKS = Way("masked_lm", "masked_lm", "masks", "AutoModelForMaskedLM")
CHOICES = Way("multiple_choice", "multiple_choice", "choices", "AutoModelForMultipleChoice")
PAIRS = Way("nli", "nli", "pairs", "AutoModelForSequenceClassification", config=_LABELLED)
HEADS = (SPANS, MASKS, CHOICES, PAIRS)
WAYS = (CAUSAL, CAUSAL_WRITTEN, SEQ2SEQ, SEQ2SEQ_WRITTEN, *HEADS)

_FAMILIES = ("bert", "roberta", "deberta", "roberta")


def _asked(causal: Shape, seq2seq: Shape, encoders: Sequence[Shape]) -> list[tuple[Way, Shape]]:
    """Every way of asking with a model of one size."""
    return list(zip(WAYS, (causal, causal, seq2seq, seq2seq, *encoders), strict=True))


_TINY = _asked(models.TINY_CAUSAL, models.TINY_T5, [models.TINY_ENCODERS[family] for family in _FAMILIES])
_SMALL = _asked(models.SMALL_CAUSAL, models.SMALL_T5, [models.SMALL_ENCODER] * 4)
_LARGE = [
    (CAUSAL, models.MIDDLE_CAUSAL),
    (SEQ2SEQ, models.LARGE_T5),
    *((way, models.LARGE_ENCODERS[family]) for way, family in zip(HEADS, _FAMILIES, strict=True)),
    (CAUSAL, models.LARGE_CAUSAL),
    (CAUSAL_WRITTEN, models.MIDDLE_CAUSAL),
    (SEQ2SEQ_WRITTEN, models.LARGE_T5),
]


def cases(sizes: str, usual: str) -> list[Case]:
    """All cases: models of every size in the usual precision, then the same in the others."""
    pairs = [*_TINY, *(_SMALL if sizes != "tiny" else []), *(_LARGE if sizes == "all" else [])]
    timed = [Case(way, shape, shape.only or usual, timed=True) for way, shape in pairs]
    others = [dtype for dtype in DTYPES if dtype != usual]
    return timed + [Case(*pair, dtype, timed=False) for dtype in others for pair in pairs if not pair[1].only]


@cache
def questions_of(way: Way) -> Any:
    """The questions of a way of asking, loaded once."""
    return questions.questions(way.scorer, way.way, EXAMPLES)


def make_model(shape: Shape, way: Way, dtype: str, device: Any) -> LoadedModel:
    """Make a model of a shape with random weights, identical on each kind of device."""
    torch.manual_seed(0)
    with quiet_transformers(), torch.device(device):
        make: Callable[..., Any] = getattr(transformers, way.auto_class).from_config
        model = make(shape.config(**way.config), dtype=getattr(torch, dtype)).eval()
        if shape.config_class == "T5Config":  # scales its output layer down to logits of size 1
            model.get_output_embeddings().weight.data.mul_(shape.width**-0.5)
    tokenizer = tokenizer_of(shape.tokenizer, shape.vocabulary_size, way.scorer, way.way)
    return LoadedModel(model.to(device), tokenizer, shape.name, "random", str(device), dtype)


@cache
def tokenizer_of(kind: str, size: int, scorer: str, way: str) -> Any:
    """A tokenizer of a family, trained once on the questions of a way of asking."""
    own = next(one for one in WAYS if (one.scorer, one.way) == (scorer, way))
    return make_tokenizer(kind, questions.texts(questions_of(own)), size)


def make_scorer(way: Way, loaded: LoadedModel, batch_tokens: int | None = None) -> Any:
    """The scorer of a way of asking with a model in memory, as in a run."""
    return load_scorer(
        way.scorer, loaded.name, scorer_options=way.options, handed_over=loaded, batch_tokens=batch_tokens
    )


def answers(scorer: Any, way: Way, items: Any) -> Any:
    """A scorer's answers: texts of a writer, otherwise logarithms, float64 of shape (n_figures,)."""
    if way.writes:
        prompts, keys = zip(*items, strict=True)
        return [str(text) for (text,) in scorer.generate(prompts, keys)]
    if way.way == "pairs":
        return _logarithms(scorer.classify(items))
    scores: Sequence[Any] = scorer.score(items)
    if way.way in ("spans", "masks"):
        return _logarithms(scores)
    return np.concatenate([score.loglikelihoods for score in scores])


def _logarithms(probabilities: Any) -> np.ndarray:
    """Natural logarithms of probabilities, flat; a probability too small for float32 becomes the smallest one."""
    return np.log(np.maximum(np.asarray(probabilities, dtype=np.float64), TINY_PROBABILITY)).ravel()
