"""What is asked on a device: a scorer with a shape in a precision, its random model and its questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from qabias.answers.parsing import LABELS
from qabias.devices import questions as asked
from qabias.devices.shapes import Shape
from qabias.models.loading import LoadedModel, quiet_transformers
from qabias.scorers.registry import load_scorer

NEW_TOKENS = 16
"""Tokens of a written answer."""

EXAMPLES = 4000
"""Most examples of a benchmark whose questions are asked."""

TINY_PROBABILITY = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True, eq=False)
class Way:
    """A scorer, and what it is asked."""

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


@cache
def questions_of(way: Way) -> Any:
    """The questions of a way of asking; loaded once."""
    return asked.questions(way.scorer, way.way, EXAMPLES)


def make_model(shape: Shape, way: Way, dtype: str, device: Any) -> LoadedModel:
    """Make a model of a shape with random weights, the same every time on one kind of device."""
    import torch
    import transformers

    torch.manual_seed(0)
    with quiet_transformers(), torch.device(device):
        make: Callable[..., Any] = getattr(transformers, way.auto_class).from_config
        model = make(shape.config(**way.config), dtype=getattr(torch, dtype)).eval()
        if shape.scales_head:
            model.get_output_embeddings().weight.data.mul_(shape.width**-0.5)
    return LoadedModel(model.to(device), tokenizer_of(shape, way), shape.name, "random", str(device), dtype)


def tokenizer_of(shape: Shape, way: Way) -> Any:
    """The tokenizer of a shape, trained on the questions of a way of asking; trained once."""
    return _tokenizer(shape.tokenizer, shape.vocabulary_size, way.scorer, way.way)


@cache
def _tokenizer(kind: str, size: int, scorer: str, way: str) -> Any:
    from qabias.devices.vocabulary import make_tokenizer

    asking = next(one for one in WAYS if (one.scorer, one.way) == (scorer, way))
    return make_tokenizer(kind, asked.texts(questions_of(asking)), size)


def make_scorer(way: Way, loaded: LoadedModel, token_budget: int | None = None) -> Any:
    """The scorer of a way of asking with a model in memory, as a run makes it."""
    return load_scorer(
        way.scorer, loaded.name, scorer_options=way.options, handed_over=loaded, token_budget=token_budget
    )


def answers(scorer: Any, way: Way, items: Any) -> Any:
    """What a scorer answers: texts of a writer, else logarithms, float64 of shape (n_figures,)."""
    if way.writes:
        prompts, keys = zip(*items, strict=True)
        return [str(text) for (text,) in scorer.generate(prompts, keys)]
    if way.way == "pairs":
        return logarithms(scorer.classify(items))
    found = scorer.score(items)
    if way.way in ("spans", "masks"):
        return logarithms(found)
    return np.concatenate([score.loglikelihoods for score in found])


def logarithms(probabilities: Any) -> np.ndarray:
    """Natural logarithms of probabilities, flat; a probability too small for float32 counts as the smallest."""
    return np.log(np.maximum(np.asarray(probabilities, dtype=np.float64), TINY_PROBABILITY)).ravel()


MakeScorer = Callable[[Way, LoadedModel, int | None], Any]
