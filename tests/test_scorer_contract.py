"""What every scorer of models does: bounds of memory and length, NaN, loading, whatever it asks."""

import copy
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from qabias.errors import QabiasError
from qabias.models.loading import CAUSAL, SEQ2SEQ, LoadedModel, load_model
from qabias.scorers import extractive_qa, masked_lm, multiple_choice, nli
from qabias.scorers.base import MaskedSentences, Request, SpanQuestions
from qabias.scorers.causal import CausalScorer
from qabias.scorers.chat import ChatTemplate
from qabias.scorers.generation import GenerationScorer
from qabias.scorers.registry import default_scorer, load_scorer
from qabias.scorers.seq2seq import Seq2SeqScorer

from . import (
    test_causal_scorer,
    test_chat,
    test_extractive_qa_scorer,
    test_masked_lm_scorer,
    test_multiple_choice_scorer,
)
from . import tiny_models as tiny
from .test_chat import chat_model
from .test_nli_scorer import PAIRS, make_loaded
from .test_seq2seq_scorer import REQUESTS, load_tiny

pytestmark = pytest.mark.usefixtures("one_thread")

TEXTS = [
    ("Who was forgetful?", "a"),
    ("A baker and a carpenter shared a table at the library.", "b"),
    ("The nurse", ""),
]
LONG = ("Z" * 600, "Age/9")
MASKED, SPANS = "AutoModelForMaskedLM", "AutoModelForQuestionAnswering"


@dataclass(frozen=True)
class Case:
    """A scorer with a model, and what it is asked; `limited` takes so many tokens at once if memory is short."""

    load: Callable[[], LoadedModel]
    make: Callable[..., Any]
    items: Any
    ask: Callable[[Any, Any], Any] = lambda scorer, items: scorer.score(items)
    limited: Callable[[Any], Any] = lambda model: model
    n_tokens: int = 90
    place: str = "tiny"
    too_long: Any = None
    distinct: Callable[[Any], set[Any]] | None = None
    bound: float | None = None  # of differences; by default that of float32

    def all(self, scorer):
        return self.ask(scorer, self.items)


def request_of(text):
    return [Request(text, (" A", " B"), key="Age/9")]


def base(model):
    return model.base_model


def causal():
    return tiny.load(tiny.make_model("llama"))


def chat_causal(loaded, **options):
    return CausalScorer(loaded, template=ChatTemplate(loaded), **options)


def pairs_of(requests):
    return {(request.prefix, option.strip()) for request in requests for option in request.options}


def write(scorer, items):
    return scorer.generate(*zip(*items, strict=True))


def subset(items, chosen):
    """Some items, by their numbers."""
    if isinstance(items, SpanQuestions):
        return replace(items, context_of=items.context_of[chosen], question_of=items.question_of[chosen])
    if isinstance(items, MaskedSentences):
        return replace(
            items, **{name: getattr(items, name)[chosen] for name in ("text_of", "subject_of", "context_of")}
        )
    return [items[i] for i in chosen]


SPAN_ITEMS, MASK_ITEMS = test_extractive_qa_scorer.cross(), test_masked_lm_scorer.cross()
LONG_MASK = [*MASK_ITEMS.texts[:2], "[MASK] was" + " very" * 100 + " poor."]
CASES = {
    "causal tree": Case(
        causal,
        partial(CausalScorer, layout="tree"),
        test_causal_scorer.REQUESTS,
        limited=base,
        place="request 'Age/0'",
        too_long=request_of("Z" * 600),
    ),
    "causal flat": Case(
        causal, partial(CausalScorer, layout="flat"), test_causal_scorer.REQUESTS, limited=base, place="request 'Age/0'"
    ),
    "causal chat": Case(chat_model, chat_causal, test_chat.REQUESTS, limited=base, place="request 'a/0'"),
    "generation": Case(
        causal,
        partial(GenerationScorer, max_new_tokens=5),
        TEXTS,
        write,
        base,
        n_tokens=40,
        too_long=[("Z" * 600, "Age/9")],
    ),
    "seq2seq": Case(
        lambda: load_tiny("bart"),
        Seq2SeqScorer,
        REQUESTS,
        limited=lambda model: model.get_encoder(),
        n_tokens=150,
        place="request 'Age/0'",
        too_long=request_of("Z" * 150),
    ),
    "extractive_qa": Case(
        lambda: tiny.load_encoder("bert"),
        extractive_qa.ExtractiveQAScorer,
        SPAN_ITEMS,
        place="context 'Mary got",
        too_long=test_extractive_qa_scorer.cross({"Mary saw James" + " again" * 100: ("Mary", "James")}),
    ),
    "masked_lm": Case(
        lambda: tiny.load_encoder("bert", MASKED),
        masked_lm.MaskedLMScorer,
        MASK_ITEMS,
        n_tokens=60,
        place=r"text '\[MASK\] was a nurse.'",
        too_long=replace(MASK_ITEMS, texts=LONG_MASK),
    ),
    "multiple_choice": Case(
        lambda: tiny.load_encoder("bert", "AutoModelForMultipleChoice"),
        multiple_choice.MultipleChoiceScorer,
        test_multiple_choice_scorer.REQUESTS,
        place="request '0/0', option",
        too_long=request_of("Mary saw" + " a" * 100),
        distinct=pairs_of,
    ),
    "nli": Case(
        lambda: make_loaded("bert"),
        nli.NLIScorer,
        PAIRS,
        lambda scorer, pairs: scorer.classify(pairs),
        place="premise '.*' with hypothesis '",
        too_long=[("Mary saw" + " a" * 100, "Mary left.")],
        distinct=set,
        bound=1e-9,
    ),
}
EVERY = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def limit_memory(case, model, n_tokens, error, monkeypatch):
    """Let passes of more than `n_tokens` tokens fail."""
    part = case.limited(model)
    forward = part.forward

    def limited(*args, **inputs):
        tokens = args[0] if args else inputs["input_ids"]
        if tokens.numel() > n_tokens:
            raise error
        return forward(*args, **inputs)

    monkeypatch.setattr(part, "forward", limited)


def figures(answers):
    """The answers to items: texts, or numbers."""
    return [getattr(answer, "loglikelihoods", answer) for answer in answers]


def assert_equal(answers, expected, bound=None):
    for found, wanted in zip(figures(answers), figures(expected), strict=True):
        if isinstance(wanted, tuple):
            assert found == wanted
        else:
            is_logarithm = np.nanmin(wanted, initial=0) < 0
            np.testing.assert_allclose(found, wanted, rtol=0, atol=bound or (1e-5 if is_logarithm else 1e-6))


@EVERY
def test_order_company_duplicates_and_budget_do_not_matter(case):
    loaded = case.load()
    expected = figures(case.all(case.make(loaded)))
    chosen = np.random.default_rng(0).integers(len(expected), size=60)
    items = subset(case.items, chosen)
    for budget in (1, 60, 100_000):
        scorer = case.make(loaded, batch_tokens=budget)
        assert_equal(case.ask(scorer, items), [expected[i] for i in chosen], case.bound)
        if budget == 1 and case.distinct:
            assert scorer.stats.batches == len(case.distinct(items))  # each pair is asked once


@EVERY
@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("CUDA out of memory."), RuntimeError("DefaultCPUAllocator: can't allocate memory")]
)
def test_batches_shrink_when_memory_runs_out_and_stay_small(case, error, caplog, monkeypatch):
    loaded = case.load()
    scorer = case.make(loaded)
    expected = case.all(scorer)
    limit_memory(case, loaded.model, case.n_tokens, error, monkeypatch)
    with caplog.at_level(logging.WARNING):
        assert_equal(case.all(scorer), expected, case.bound)
    assert 0 < len(caplog.records) < 10
    assert "out of memory; continuing" in caplog.text
    caplog.clear()
    case.all(scorer)
    assert not caplog.records


@EVERY
def test_one_row_that_does_not_fit_and_other_errors_are_errors(case, monkeypatch):
    loaded = case.load()
    scorer = case.make(loaded)
    for error, raised, message in (
        (RuntimeError("not enough memory: you tried to allocate"), QabiasError, r"tokens do not fit in memory"),
        (RuntimeError("shapes cannot be multiplied"), RuntimeError, "shapes"),
    ):
        with monkeypatch.context() as patch:
            limit_memory(case, loaded.model, 0, error, patch)
            with pytest.raises(raised, match=message):
                case.all(scorer)


@EVERY
def test_nan_is_an_error_that_names_the_text(case):
    loaded = case.load()
    loaded = replace(loaded, model=copy.deepcopy(loaded.model))
    scorer = case.make(loaded)
    for weight in loaded.model.parameters():
        weight.data.fill_(float("nan"))
    with pytest.raises(QabiasError, match=f"{case.place}.* answers with NaN"):
        case.all(scorer)


@EVERY
def test_too_long_a_text_is_named(case):
    if case.too_long is not None:
        with pytest.raises(QabiasError, match=r"(Age/9|Mary).* tokens are more than the \d+ that .*'tiny'"):
            case.ask(case.make(case.load()), case.too_long)


@EVERY
def test_a_budget_of_nothing_is_refused(case):
    with pytest.raises(QabiasError, match="batch tokens"):
        case.make(case.load(), batch_tokens=0)


def test_no_questions_have_no_answers():
    for name in ("causal tree", "seq2seq", "multiple_choice"):
        assert CASES[name].make(CASES[name].load()).score([]) == []
    assert GenerationScorer(causal()).generate([], []) == []
    assert nli.NLIScorer(make_loaded("bert")).classify([]).shape == (0, 3)
    for name in ("extractive_qa", "masked_lm"):
        case = CASES[name]
        assert case.ask(case.make(case.load()), subset(case.items, np.arange(0))).shape == (0, 2)


# Loading


@pytest.mark.parametrize(
    ("name", "case"), [pair for pair in CASES.items() if pair[0] not in ("generation", "causal chat")]
)
def test_a_saved_model_is_known_by_its_head_and_scores_alike(name, case, tmp_path):
    loaded = case.load()
    loaded.model.float().save_pretrained(tmp_path)
    loaded.tokenizer.save_pretrained(tmp_path)
    expected = case.all(case.make(loaded))
    scorer = load_scorer(None, str(tmp_path), device="cpu")
    assert scorer.name == name.split()[0] == default_scorer(str(tmp_path))
    assert scorer.model_signature == "local/float32"
    assert_equal(case.all(scorer), expected)


@pytest.mark.parametrize(
    ("models", "kind", "head", "message"),
    [
        (extractive_qa.MODELS, "bert", MASKED, "qa_outputs.bias.*by spans"),
        (masked_lm.MODELS, "bert", SPANS, "cls.predictions.*complete masked language model"),
        (nli.MODELS, "bert", MASKED, "classifier.*to classify pairs"),
        (nli.MODELS, "roberta", MASKED, "classifier.*to classify pairs"),
        (multiple_choice.MODELS, "bert", MASKED, "classifier.*for multiple choice"),
        (multiple_choice.MODELS, "deberta-v2", MASKED, "classifier.*for multiple choice"),
        (multiple_choice.MODELS, "bert", "AutoModelForSequenceClassification", "trained for multiple choice"),
        (multiple_choice.MODELS, "gpt2", "AutoModelForCausalLM", "trained for multiple choice"),
        (CAUSAL, "bert", MASKED, "is a BertForMaskedLM, not a causal language model"),
    ],
)
def test_a_model_with_another_head_is_refused_with_a_fix(models, kind, head, message, tmp_path):
    name, tokenizer, options = tiny.ENCODER_CONFIGS[kind]
    config = getattr(transformers, name)(**{**tiny.ENCODER_SMALL, **options}, num_labels=3)
    getattr(transformers, head).from_config(config).save_pretrained(tmp_path)
    tiny.make_encoder_tokenizer(tokenizer).save_pretrained(tmp_path)
    with pytest.raises(QabiasError, match=f"(?s){message}") as error:
        load_model(models, str(tmp_path), device="cpu")
    assert str(error.value).count("\n") == 1


@pytest.mark.parametrize(
    ("models", "network", "lost", "tokenizer"),
    [
        (CAUSAL, lambda: tiny.make_model("llama", tie_word_embeddings=False), "lm_head", tiny.make_tokenizer),
        (SEQ2SEQ, lambda: load_tiny("t5").model, "EncDecAttention", lambda: load_tiny("t5").tokenizer),
    ],
)
def test_a_model_with_missing_weights_is_refused(models, network, lost, tokenizer, tmp_path):
    model = network()
    weights = {name: weight for name, weight in model.state_dict().items() if lost not in name}
    model.save_pretrained(tmp_path, state_dict=weights)
    tokenizer().save_pretrained(tmp_path)
    with pytest.raises(QabiasError, match=f"has no weights for .*{lost}"):
        load_model(models, str(tmp_path), device="cpu")


@pytest.mark.parametrize("models", [CAUSAL, SEQ2SEQ, *(m.MODELS for m in (extractive_qa, masked_lm, nli))])
@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        ("no-such/model-anywhere", {}, "no-such/model-anywhere.*name"),
        ("./no/such/folder", {}, "no/such/folder: no such"),
        ("./no/such/folder", {"device": "gpu"}, "device 'gpu'"),
        ("./no/such/folder", {"device": "cuda:99"}, "device 'cuda:99'"),
        ("./no/such/folder", {"dtype": "int8"}, "unknown dtype 'int8'"),
    ],
)
def test_what_cannot_be_loaded_has_one_line_and_a_fix(models, model, options, message):
    with pytest.raises(QabiasError, match=f"(?s){message}") as error:
        load_model(models, model, **options)
    assert str(error.value).count("\n") == 1


@pytest.mark.parametrize("name", ["multiple_choice", "nli"])
def test_a_tokenizer_saved_to_cut_texts_does_not(name, tmp_path):
    case = CASES[name]
    loaded = case.load()
    loaded.model.save_pretrained(tmp_path)
    loaded.tokenizer.save_pretrained(tmp_path)
    expected = case.all(load_scorer(name, str(tmp_path), device="cpu", dtype="float32"))
    cutting = transformers.AutoTokenizer.from_pretrained(tmp_path)
    cutting.backend_tokenizer.enable_truncation(8)
    cutting.save_pretrained(tmp_path)
    assert_equal(case.all(load_scorer(name, str(tmp_path), device="cpu", dtype="float32")), expected)


def test_a_slow_tokenizer_is_refused():
    class Slow:
        is_fast = False

    with pytest.raises(QabiasError, match="fast tokenizer"):
        extractive_qa.ExtractiveQAScorer(tiny.load_encoder("bert", tokenizer=Slow()))
