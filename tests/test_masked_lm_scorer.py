"""The masked scorer gives the probabilities of the definition, however its work is arranged."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

from qabias.errors import QabiasError
from qabias.scorers import batches, masked_lm
from qabias.scorers.base import MaskedSentences
from qabias.scorers.masked_lm import MaskedLMScorer
from qabias.scorers.registry import check_options, load_kind

from .tiny_models import RARE, first_of, inputs_of
from .tiny_models import load_encoder as load
from .tiny_models import make_encoder_tokenizer as make_tokenizer

pytestmark = pytest.mark.usefixtures("one_thread")

KINDS = first_of("bert", "deberta-v2", "distilbert", "electra", "albert", "roberta", "modernbert", n=2)
PAIRS = (("Mary", "James"), ("James", "Mary"), ("Mary", RARE), ("Ann", "James"))
CONTEXTS = [f"{x} got off the flight to visit {y}." for x, y in PAIRS]
SENTENCES = ["[MASK] was a nurse.", "The [MASK] can never be a senator.", "[MASK]?"]
SUBJECTS = ["Mary", "James", RARE, "Ann"]
CLUSTERS = ["female", "male", "female", "female"]
PRONOUNS = {"female": "she", "male": "he"}


def cross():
    """Every sentence after every context, contexts and sentences apart."""
    context_of = np.repeat(np.arange(len(CONTEXTS)), len(SENTENCES))
    return MaskedSentences(
        texts=SENTENCES,
        subjects=SUBJECTS,
        text_of=np.tile(np.arange(len(SENTENCES)), len(CONTEXTS)),
        subject_of=np.array([[SUBJECTS.index(x) for x in PAIRS[c]] for c in context_of]),
        contexts=CONTEXTS,
        context_of=context_of,
        clusters=CLUSTERS,
    )


def whole(items):
    """The same items as whole texts."""
    texts = [texts_of(items, i) for i in range(len(items.text_of))]
    return replace(items, texts=texts, text_of=np.arange(len(texts)), contexts=(), context_of=None)


def texts_of(items, i):
    text = items.texts[items.text_of[i]]
    return text if items.context_of is None else f"{items.contexts[items.context_of[i]]} {text}"


# The definition, one example at a time


def one_at_a_time(loaded, items, topk=None, pronouns=None):
    scores = np.full(items.subject_of.shape, np.nan)
    for i, subjects in enumerate(items.subject_of):
        for k, number in enumerate(subjects):
            subject = items.subjects[number]
            tokens = loaded.tokenizer.tokenize(f" {subject}")
            if len(tokens) != 1 or tokens == ["[UNK]"]:
                continue
            words = [subject, *([pronouns[items.clusters[number]]] if pronouns else [])]
            scores[i, k] = max(one_score(loaded, texts_of(items, i), word, topk, word != subject) for word in words)
    return scores


def one_score(loaded, text, word, topk, is_pronoun):
    tokenizer = loaded.tokenizer
    encoded = inputs_of(loaded, text.replace("[MASK]", tokenizer.mask_token))
    with torch.no_grad():
        logits = loaded.model(**encoded).logits[0]
    (place,) = np.flatnonzero(encoded["input_ids"][0] == tokenizer.mask_token_id)
    probabilities = torch.softmax(logits[place].double(), dim=-1)
    if topk is not None:
        for token in probabilities.argsort(descending=True)[:topk].tolist():
            if tokenizer.decode([token]).strip().lower() == word.lower():
                return float(probabilities[token])
        return 0.0
    forms = [word, word.capitalize()] if is_pronoun else [word]
    tokens = [tokenizer.convert_tokens_to_ids(tokenizer.tokenize(f" {form}")) for form in forms]
    return max(float(probabilities[own[0]]) for own in tokens if len(own) == 1)


def assert_close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("form", [cross, lambda: whole(cross())], ids=["apart", "whole"])
@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_one_example_at_a_time(kind, form):
    loaded, items = load(kind, "AutoModelForMaskedLM"), form()
    scores = MaskedLMScorer(loaded).score(items)
    assert scores.dtype == np.float32
    assert_close(scores, one_at_a_time(loaded, items))
    assert np.nanstd(scores) > 1e-4  # the model has an opinion


@pytest.mark.parametrize("kind", ["bert", "roberta"])
@pytest.mark.parametrize("topk", [None, 10, 200])
@pytest.mark.parametrize("pronouns", [None, PRONOUNS])
def test_topk_and_pronouns(kind, topk, pronouns):
    loaded = load(kind, "AutoModelForMaskedLM")
    scores = MaskedLMScorer(loaded, topk=topk, pronouns=pronouns).score(cross())
    assert_close(scores, one_at_a_time(loaded, cross(), topk, pronouns))


def test_pronouns_need_clusters():
    scorer = MaskedLMScorer(load("bert", "AutoModelForMaskedLM"), pronouns=PRONOUNS)
    with pytest.raises(QabiasError, match="pronouns need the clusters"):
        scorer.score(replace(cross(), clusters=()))
    with pytest.raises(QabiasError, match="'zhezhe'"):
        MaskedLMScorer(load("bert", "AutoModelForMaskedLM"), pronouns={"female": "zhezhe"})


@pytest.mark.parametrize("kind", ["bert", "roberta", "deberta-v2"])
def test_subjects_of_several_tokens_score_nan(kind):
    subjects = [*SUBJECTS, "Afro-Sikh", "Жанна"]
    pairs = np.arange(len(subjects)).reshape(-1, 2)
    items = MaskedSentences(["[MASK] was a nurse."], subjects, np.zeros(len(pairs), dtype=int), pairs)
    scores = MaskedLMScorer(load(kind, "AutoModelForMaskedLM")).score(items)
    assert np.isnan(scores.ravel()).tolist() == [subject not in ("Mary", "James", "Ann") for subject in subjects]
    # Rows that only ask for them are not run.
    scorer = MaskedLMScorer(load(kind, "AutoModelForMaskedLM"))
    assert np.isnan(scorer.score(replace(items, subject_of=np.full_like(pairs, SUBJECTS.index(RARE))))).all()
    assert scorer.stats.batches == 0


# Nothing but the item matters


def test_a_tokenizer_that_joins_sentences_is_asked_text_by_text():
    tokenizer = make_tokenizer("unsplit")
    # Without pre-tokens hardly a word is a token of its own; this one is.
    items = replace(cross(), subjects=["Ann"], subject_of=np.zeros_like(cross().subject_of), clusters=())
    loaded = load("deberta-v2", "AutoModelForMaskedLM", tokenizer=tokenizer)
    scorer = MaskedLMScorer(loaded)
    with pytest.warns(UserWarning, match="slower"):
        apart = scorer.score(items)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_close(apart, scorer.score(whole(items)))
    assert_close(apart, one_at_a_time(loaded, items))


# The head


@pytest.mark.parametrize("kind", KINDS)
def test_the_head_runs_at_the_mask_only_and_gives_the_same(kind, monkeypatch):
    loaded = load(kind, "AutoModelForMaskedLM")
    scorer = MaskedLMScorer(loaded)
    assert scorer.gathers
    expected = scorer.score(cross())
    monkeypatch.setitem(masked_lm.PROBE_TOLERANCE, "float32", -1.0)  # no difference is small enough
    scorer = MaskedLMScorer(loaded)
    assert not scorer.gathers
    assert_close(scorer.score(cross()), expected)


def centred(logits):
    return logits - logits.mean(dim=1, keepdim=True)


def several(logits):
    if logits.shape[1] == 1:
        raise ValueError("one position is not enough")
    return logits


@pytest.mark.parametrize("change", [centred, several])
def test_a_head_that_needs_all_positions_gets_them(change):
    loaded = load("bert", "AutoModelForMaskedLM")
    handle = loaded.model.cls.register_forward_hook(lambda _, inputs, output: change(output))
    try:
        scorer = MaskedLMScorer(loaded, batch_tokens=1)  # no pads, which would count in the mean
        assert not scorer.gathers
        assert_close(scorer.score(cross()), one_at_a_time(loaded, cross()))
    finally:
        handle.remove()


def test_batches_keep_the_logits_small(monkeypatch):
    loaded = load("bert", "AutoModelForMaskedLM")
    monkeypatch.setattr(batches, "LOGITS_PER_BATCH", 2 * loaded.model.config.vocab_size)
    scorer = MaskedLMScorer(loaded, batch_tokens=10_000)
    scorer.score(cross())
    assert scorer.stats.batches >= len(cross().text_of) / 2


# Limits


@pytest.mark.parametrize("text", ["She was.", "[MASK] and [MASK]."])
def test_a_text_without_one_mask_is_refused(text):
    with pytest.raises(QabiasError, match="mask"):
        MaskedLMScorer(load("bert", "AutoModelForMaskedLM")).score(replace(cross(), texts=[text, *SENTENCES[1:]]))


def test_the_neutral_mark_becomes_the_tokenizers_mask_and_another_one_in_a_text_is_an_error():
    tokenizer = make_tokenizer("bytes", mask="<mask>")
    loaded = load("roberta", "AutoModelForMaskedLM", tokenizer=tokenizer)
    assert_close(MaskedLMScorer(loaded).score(cross()), one_at_a_time(loaded, cross()))
    items = replace(cross(), texts=["[MASK] was <mask>.", *SENTENCES[1:]])
    with pytest.raises(QabiasError, match=r"\[MASK\] was <mask>"):
        MaskedLMScorer(loaded).score(items)
    items = replace(cross(), contexts=["Mary <mask>.", *CONTEXTS[1:]])
    with pytest.raises(QabiasError, match="the mask token"):
        MaskedLMScorer(loaded).score(items)


def test_options_are_read_from_texts_and_wrong_ones_named():
    kind = load_kind("masked_lm")
    assert check_options(kind, {}) == check_options(kind, {"topk": "all", "pronouns": "no"})
    assert vars(check_options(kind, {"topk": "10", "pronouns": "yes"})) == {"topk": 10, "pronouns": PRONOUNS}
    with pytest.raises(QabiasError, match="topk"):
        check_options(kind, {"topk": "0"})
    for topk in (0, 9999):
        with pytest.raises(QabiasError, match=f"topk is {topk}"):
            MaskedLMScorer(load("bert", "AutoModelForMaskedLM"), topk=topk)
    tokenizer = make_tokenizer("wordpiece", pair="[CLS] $A [SEP] $B [SEP]")
    tokenizer.mask_token = None
    with pytest.raises(QabiasError, match="no mask token"):
        MaskedLMScorer(load("bert", "AutoModelForMaskedLM", tokenizer=tokenizer))


def test_one_text_can_be_asked_for_several_pairs():
    loaded = load("bert", "AutoModelForMaskedLM")
    items = MaskedSentences(
        ["[MASK] was a nurse."], SUBJECTS, np.zeros(3, dtype=int), np.array([[0, 1], [1, 3], [3, 3]])
    )
    scorer = MaskedLMScorer(loaded)
    scores = scorer.score(items)
    assert_close(scores, one_at_a_time(loaded, items))
    assert scorer.stats.batches == 1
    assert scores[0, 1] == scores[1, 0]
