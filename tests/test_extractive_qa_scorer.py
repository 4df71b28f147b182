"""The span scorer gives the probabilities of the definition, however its work is arranged."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from qabias.errors import QabiasError
from qabias.scorers.base import SpanQuestions
from qabias.scorers.batches import EncoderScorer, Pieces, Template, TokenRows
from qabias.scorers.extractive_qa import NEWSQA_HEADER, ExtractiveQAScorer, locate
from qabias.scorers.registry import check_options, load_kind

from .tiny_models import CONTEXTS, QUESTIONS, first_of
from .tiny_models import ENCODER_CONFIGS as CONFIGS
from .tiny_models import load_encoder as load
from .tiny_models import make_encoder_tokenizer as make_tokenizer

pytestmark = pytest.mark.usefixtures("one_thread")


def cross(contexts=CONTEXTS, questions=QUESTIONS):
    """Ask every question about every context."""
    return SpanQuestions(
        contexts=list(contexts),
        questions=list(questions),
        subjects=[contexts[context] for context in contexts],
        context_of=np.repeat(np.arange(len(contexts)), len(questions)),
        question_of=np.tile(np.arange(len(questions)), len(contexts)),
    )


# The definition, one example at a time

NOUNS = (
    *("man", "woman", "boy", "girl", "child", "kid", "person", "folk", "people", "couple"),
    *("men", "women", "boys", "girls", "children", "kids", "persons", "folks"),
    *("city", "country", "cities", "countries"),
)


def characters(context, subject, other):
    """The first place of a subject that does not touch the other, longer one."""
    text, subject, other = context.lower(), subject.lower(), other.lower()
    if len(other) > len(subject):
        text = text.replace(other, "#" * len(other))
    assert text.count(subject) >= 1
    return text.index(subject), text.index(subject) + len(subject)


def one_at_a_time(loaded, items, span="exact", header=""):
    return np.array(
        [
            scores_of_one(loaded, items.questions[q], header + items.contexts[c], len(header), items.subjects[c], span)
            for c, q in zip(items.context_of, items.question_of, strict=True)
        ]
    )


def scores_of_one(loaded, question, text, n_header, subjects, span):
    encoded = loaded.tokenizer(question, text, return_offsets_mapping=True)
    names = [name for name in loaded.tokenizer.model_input_names if name != "attention_mask"]
    if type(loaded.model).__name__.startswith("DistilBert"):
        names.remove("token_type_ids")
    with torch.no_grad():
        answer = loaded.model(**{name: torch.tensor([encoded[name]]) for name in names})
    p_start = torch.softmax(answer.start_logits[0].double(), dim=-1).numpy()
    p_end = torch.softmax(answer.end_logits[0].double(), dim=-1).numpy()
    scores = []
    for subject, other in (subjects, subjects[::-1]):
        begin, end = (n_header + place for place in characters(text[n_header:], subject, other))
        starts, ends = places_of(loaded.tokenizer, encoded, text, begin, end, span)
        scores.append(np.sqrt(max(p_start[starts]) * max(p_end[ends])))
    return scores


def places_of(tokenizer, encoded, text, begin, end, span):
    """Tokens that count as the first and as the last of some characters."""
    tokens, owners, offsets = encoded.tokens(), encoded.sequence_ids(0), encoded["offset_mapping"]
    own = [
        i
        for i, (a, b) in enumerate(offsets)
        if owners[i] == 1 and max(a, begin) < min(b, end) and tokens[i] not in ("Ġ", "▁")
    ]
    starts, ends = [own[0]], [own[-1]]
    if span == "released":
        words = [
            released_word(tokenizer, token, text[a:b]) if owner == 1 else None
            for token, (a, b), owner in zip(tokens, offsets, owners, strict=True)
        ]
        if words[own[0] - 1] in ("a", "an", "the", "some", "few", "several"):
            starts.append(own[0] - 1)
        if words[own[0] - 3 : own[0]] in (["a", kind, "of"] for kind in ("group", "team", "couple")):
            starts += [own[0] - 1, own[0] - 2, own[0] - 3]
        if words[own[-1] + 1] in NOUNS or tokens[own[-1] + 1] == ".":
            ends.append(own[-1] + 1)
    return starts, ends


def released_word(tokenizer, token, text):
    """The word of a token as the authors' lists know it; for RoBERTa there must be a space before it.

    That for BERT has lower-case tokens, and those are compared as they are.
    """
    vocabulary = tokenizer.get_vocab()
    if not any(mark in other for mark in "Ġ▁" for other in vocabulary):
        return token
    if token.startswith("Ġ") or all("Ġ" not in other for other in vocabulary):
        return text.strip().lower()
    return None


def assert_close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", first_of("bert", "deberta-v2", *sorted({*CONFIGS} - {"bert", "deberta-v2"}), n=2))
def test_scores_are_those_of_one_example_at_a_time(kind):
    loaded, items = load(kind), cross()
    scores = ExtractiveQAScorer(loaded).score(items)
    assert scores.dtype == np.float32
    assert scores.shape == (len(items.context_of), 2)
    assert_close(scores, one_at_a_time(loaded, items))
    assert scores.std() > 1e-3  # the model has an opinion


@pytest.mark.parametrize("header", ["", NEWSQA_HEADER])
@pytest.mark.parametrize("span", ["exact", "released"])
@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_spans_and_header(kind, span, header):
    loaded, items = load(kind, max_position_embeddings=80), cross()
    scores = ExtractiveQAScorer(loaded, span=span, header=header).score(items)
    assert_close(scores, one_at_a_time(loaded, items, span, header))


# Nothing but the item matters


def test_contexts_that_nobody_asks_about_are_not_read():
    items = cross()
    items.contexts[0] = "Nobody is here."
    fewer = replace(items, context_of=items.context_of[8:12], question_of=items.question_of[8:12])
    assert ExtractiveQAScorer(load("bert")).score(fewer).shape == (4, 2)


# Rows


def released_row(tokenizer, question, context):
    """Tokens of a row as the authors put it together."""
    first, last = tokenizer.bos_token, tokenizer.eos_token
    if first is None:
        first, last = tokenizer.cls_token, tokenizer.sep_token
    return [first, *tokenizer.tokenize(question), last, *tokenizer.tokenize(context), last]


@pytest.mark.parametrize("header", ["", NEWSQA_HEADER])
@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert"])
def test_the_released_layout_has_one_separator_and_no_token_types(kind, header):
    loaded, items = load(kind, **({} if kind == "distilbert" else {"max_position_embeddings": 80})), cross()
    scorer = ExtractiveQAScorer(loaded, layout="released", header=header)
    prepared = scorer.prepare(items)
    tokens, types, real = prepared.rows.lay_out(np.arange(len(items.context_of)), pad=0)
    assert not types.any()
    for row, there, context, question in zip(tokens, real, items.context_of, items.question_of, strict=True):
        expected = released_row(loaded.tokenizer, items.questions[question], header + items.contexts[context])
        assert loaded.tokenizer.convert_ids_to_tokens(row[there]) == expected
    own = ExtractiveQAScorer(loaded, header=header).score(items)
    # DistilBERT knows no token types and has one separator anyway.
    assert (np.abs(scorer.score(items) - own).max() > 1e-3) == (kind != "distilbert")


def test_a_tokenizer_without_special_tokens_has_no_released_layout():
    tokenizer = copy.deepcopy(make_tokenizer("wordpiece"))  # other tests have the same one
    tokenizer.cls_token = None
    with pytest.raises(QabiasError, match="layout=released"):
        ExtractiveQAScorer(load("bert", tokenizer=tokenizer), layout="released")


def test_a_tokenizer_that_puts_the_context_first_is_asked_pair_by_pair():
    loaded = load("bert", tokenizer=make_tokenizer("wordpiece", pair="[CLS] $B [SEP] $A:1 [SEP]:1"))
    for span in ("exact", "released"):
        with pytest.warns(UserWarning, match="slower"):
            scores = ExtractiveQAScorer(loaded, span=span).score(cross())
        assert_close(scores, one_at_a_time(loaded, cross(), span))


def test_pairs_that_rows_do_not_spell_are_found_out(monkeypatch):
    loaded = load("bert")
    framed = Pieces.framed.__func__

    def wrong(cls, sequences, template, text, **sides):
        return framed(cls, [[*sequence[:-1], 7] for sequence in sequences], template, text, **sides)

    monkeypatch.setattr(Pieces, "framed", classmethod(wrong))
    with pytest.warns(UserWarning, match="each pair is encoded on its own"):
        assert_close(ExtractiveQAScorer(loaded).score(cross()), one_at_a_time(loaded, cross()))


@given(st.lists(st.integers(1, 40), min_size=1, max_size=60), st.integers(1, 200))
@settings(max_examples=100, deadline=None)
def test_batches_hold_every_row_once_and_few_pads(lengths, budget):
    pieces = Pieces.join([[9] * n for n in lengths])
    nothing = Pieces.join([()])
    rows = TokenRows(nothing, pieces, np.zeros(len(lengths), dtype=np.int64), np.arange(len(lengths)))
    runner = EncoderScorer(load("bert"), budget)
    seen = []

    def ask(chosen, inputs):
        sizes = [lengths[i] for i in chosen]
        assert inputs["input_ids"].shape == (len(chosen), max(sizes))
        mask = inputs.get("attention_mask", torch.ones_like(inputs["input_ids"]))
        assert mask.sum(dim=1).tolist() == sizes
        assert len(chosen) * max(sizes) <= budget or len(chosen) == 1
        assert min(sizes) >= 0.9 * max(sizes)
        seen.extend(chosen.tolist())
        return chosen.tolist()

    assert runner.run(rows, ask, str) == list(range(len(lengths)))
    assert sorted(seen) == list(range(len(lengths)))
    assert runner.stats.pads_run <= 0.1 * runner.stats.tokens_run


# Where subjects are


@pytest.mark.parametrize(
    ("context", "subject", "other", "expected"),
    [
        ("Mary saw James.", "James", "Mary", (9, 14)),
        ("MARY saw James. Mary left.", "mary", "James", (0, 4)),
        ("From Somalia to Mali.", "Mali", "Somalia", (16, 20)),
        ("From Somalia to Mali.", "Somalia", "Mali", (5, 12)),
        ("From Mali to Somalia.", "Mali", "Somalia", (5, 9)),
        ("An African-American man and an African man.", "African", "African-American", (31, 38)),
        ("An African-American man and an African man.", "African-American", "African", (3, 19)),
        ("A Caucasian man and an Asian man.", "Asian", "Caucasian", (23, 28)),
        ("İ met Mary and Ann.", "Ann", "Mary", (15, 18)),  # a letter that is two in lower case
    ],
)
def test_subjects_are_located_as_the_authors_do(context, subject, other, expected):
    assert locate(context, subject, other) == expected


def test_subjects_that_cannot_be_located_are_named():
    with pytest.raises(QabiasError, match=r"'Only Somalia.': 'Mali' occurs only inside 'Somalia'"):
        locate("Only Somalia.", "Mali", "Somalia")
    with pytest.raises(QabiasError, match=r"'Mary left.' does not contain the subject 'James'"):
        locate("Mary left.", "James", "Mary")
    with pytest.raises(QabiasError, match="does not contain the subject ''"):
        locate("Mary left.", "", "Mary")


def test_capitals_before_a_subject_do_not_count_for_a_cased_bert():
    """Against scores computed one at a time: the authors' list for BERT has no "A", "The" or "Some"."""
    contexts = {
        "A Sikh man had a fierce fight with an Orthodox woman.": ("Sikh", "Orthodox"),
        "The Sikh man met the Orthodox woman.": ("Sikh", "Orthodox"),
        "A group of Asian people met the Caucasian team.": ("Asian", "Caucasian"),
    }
    items = cross(contexts)
    reach = {}
    for lowercase in (False, True):
        loaded = load("bert", tokenizer=make_tokenizer("wordpiece", lowercase=lowercase))
        scorer = ExtractiveQAScorer(loaded, span="released")
        assert_close(scorer.score(items), one_at_a_time(loaded, items, "released"))
        starts = scorer.prepare(items).spans.starts
        reach[lowercase] = (starts[:, :, 0] - starts.min(axis=2)).tolist()
    assert reach == {False: [[0, 1], [0, 1], [0, 1]], True: [[1, 1], [1, 1], [3, 1]]}


# Limits


def test_options_are_read_from_texts_before_a_model_is_loaded():
    kind = load_kind("extractive_qa")
    assert vars(check_options(kind, {})) == {"span": "exact", "header": "", "layout": "tokenizer"}
    released = vars(check_options(kind, {"span": "released", "header": "newsqa", "layout": "released"}))
    assert released == {"span": "released", "header": NEWSQA_HEADER, "layout": "released"}
    assert check_options(kind, {"header": "(CNN)"}).header == "(CNN)"


def test_offsets_with_spaces_make_no_difference():
    loose = load("roberta", tokenizer=make_tokenizer("bytes", trim_offsets=False))
    for span in ("exact", "released"):
        assert_close(
            ExtractiveQAScorer(loose, span=span).score(cross()),
            ExtractiveQAScorer(load("roberta"), span=span).score(cross()),
        )


def test_template_knows_what_stands_around_texts():
    assert Template.read(make_tokenizer("bytes"), 2) == (((2,), (3, 3), (3,)), ((0,), (0, 0), (0,)), (0, 0))
    assert Template.read(make_tokenizer("wordpiece"), 2) == (((2,), (3,), (3,)), ((0,), (0,), (1,)), (0, 1))
    assert Template.read(make_tokenizer("wordpiece"), 1) == (((2,), (3,)), ((0,), (0,)), (0,))
