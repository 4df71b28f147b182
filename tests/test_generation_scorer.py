"""Generated answers are those of the definition, and drawn ones depend on seed, key and number only."""

from functools import cache

import numpy as np
import pytest
import torch
import transformers

from qabias.errors import QabiasError
from qabias.models import loading as models
from qabias.scorers.base import TextScorer
from qabias.scorers.generation import GenerationScorer, GumbelNoise
from qabias.scorers.registry import check_options, load_kind, load_scorer
from tests import tiny_models
from tests.test_seq2seq_scorer import load_tiny as load_seq2seq

pytestmark = pytest.mark.usefixtures("one_thread")

KINDS = {"llama": "causal", "gpt2": "causal", "t5": "seq2seq", "bart": "seq2seq"}
PROMPTS = (
    "Who was forgetful?",
    "A baker and a carpenter shared a table at the library. Who was generous?",
    "The nurse",
    "Two neighbours, an engineer and a nurse, talked about the weather.",
)
KEYS = ("a/0", "a/1", "a/2", "a/3")
# What a model may recommend and what must not show in its answers.
RECOMMENDED = {
    "do_sample": True, "temperature": 0.3, "top_k": 3, "num_beams": 4, "repetition_penalty": 1.8, "min_length": 30,
    "no_repeat_ngram_size": 2, "max_length": 40,
}  # fmt: skip


@cache
def load_tiny(kind):
    return tiny_models.load(tiny_models.make_model(kind)) if KINDS[kind] == "causal" else load_seq2seq(kind)


@pytest.fixture
def llama():
    return load_tiny("llama")


def one_at_a_time(loaded, prompts, n_new):
    return generated_one_at_a_time(loaded, map(loaded.tokenizer.encode, prompts), n_new)


def generated_one_at_a_time(loaded, prompts, n_new):
    """The likeliest answers to encoded prompts by the definition: the model run once for every token."""
    answers = []
    for prompt_tokens in prompts:
        is_causal = not loaded.model.config.is_encoder_decoder
        written = [] if is_causal else [loaded.model.config.decoder_start_token_id]
        for _ in range(n_new):
            if is_causal:
                inputs = {"input_ids": torch.tensor([prompt_tokens + written]), "logits_to_keep": 1}
            else:
                inputs = {"input_ids": torch.tensor([prompt_tokens]), "decoder_input_ids": torch.tensor([written])}
            with torch.no_grad():
                written.append(int(loaded.model(**inputs).logits[0, -1].argmax()))
            if written[-1] == loaded.tokenizer.eos_token_id:
                break
        answers.append((loaded.tokenizer.decode(written, skip_special_tokens=True),))
    return answers


# The likeliest answer


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_likeliest_answer_is_that_of_one_prompt_at_a_time(kind):
    loaded = load_tiny(kind)
    expected = one_at_a_time(loaded, PROMPTS, 8)
    assert len(set(expected)) > 1
    for budget in (1, 60, 10_000):
        scorer = GenerationScorer(loaded, max_new_tokens=8, batch_tokens=budget)
        assert scorer.generate(PROMPTS, KEYS) == expected
        assert scorer.generate(PROMPTS[::-1], KEYS) == expected[::-1]
    assert isinstance(scorer, TextScorer)
    assert (scorer.name, scorer.model_signature, scorer.samples) == (KINDS[kind], "local/float32", 1)


@pytest.mark.parametrize("kind", ["llama", "bart"])
def test_what_a_model_recommends_is_set_aside_and_kept(kind):
    loaded = load_tiny(kind)
    own = loaded.model.generation_config
    expected = one_at_a_time(loaded, PROMPTS, 12)
    loaded.model.generation_config = transformers.GenerationConfig(**{**own.to_dict(), **RECOMMENDED})
    try:
        recommended = loaded.model.generation_config.to_dict()
        assert GenerationScorer(loaded, max_new_tokens=12).generate(PROMPTS, KEYS) == expected
        assert loaded.model.generation_config.to_dict() == recommended
    finally:
        loaded.model.generation_config = own


def test_equal_prompts_are_asked_once(llama, monkeypatch):
    scorer = GenerationScorer(llama)
    generate, n_asked = llama.model.generate, []

    def counting(input_ids, **options):
        n_asked.append(len(input_ids))
        return generate(input_ids=input_ids, **options)

    monkeypatch.setattr(llama.model, "generate", counting)
    answers = scorer.generate(PROMPTS * 2, KEYS * 2)
    assert sum(n_asked) == len(PROMPTS)
    assert answers[:4] == answers[4:]
    assert scorer.generate([], []) == []


def test_an_answer_ends_at_the_end_token(llama, monkeypatch):
    """The end token, which random models hardly write, made the likeliest one from the third token on."""
    bias = torch.zeros(tiny_models.VOCABULARY_SIZE)
    bias[1] = 1e4
    scorer = GenerationScorer(llama)
    forward = type(llama.model).forward

    def ending(self, *args, **options):
        output = forward(self, *args, **options)
        if options["past_key_values"].get_seq_length() >= n_prompt + 2:
            output.logits = output.logits + bias
        return output

    ((whole,),) = scorer.generate(PROMPTS[:1], KEYS[:1])
    n_prompt = len(llama.tokenizer.encode(PROMPTS[0]))
    monkeypatch.setattr(type(llama.model), "forward", ending)
    ((short,),) = scorer.generate(PROMPTS[:1], KEYS[:1])
    assert 0 < len(llama.tokenizer.encode(short)) <= 2
    assert whole.startswith(short)
    assert whole != short
    # It says of each answer whether it met the end or the limit.
    assert [text.finish for text in (whole, short)] == ["length", "stop"]


# Drawn answers


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_drawn_answers_do_not_depend_on_batch_and_order(kind):
    def make(**options):
        options = {"samples": 3, "temperature": 1.5, "max_new_tokens": 6, **options}
        return GenerationScorer(load_tiny(kind), **options)

    expected = make().generate(PROMPTS, KEYS)
    assert all(len(answers) == 3 for answers in expected)
    assert len({answer for answers in expected for answer in answers}) > 6
    assert make(batch_tokens=1).generate(PROMPTS, KEYS) == expected
    assert make().generate(PROMPTS[::-1], KEYS[::-1]) == expected[::-1]
    assert make().generate(PROMPTS[2:], KEYS[2:]) == expected[2:]
    # A run with more samples begins with those of a run with fewer.
    assert make(samples=1).generate(PROMPTS, KEYS) == [answers[:1] for answers in expected]
    assert make(seed=1).generate(PROMPTS, KEYS) != expected
    assert make().generate(PROMPTS, [f"other/{key}" for key in KEYS]) != expected


def test_a_small_temperature_gives_the_likeliest_answer(llama):
    likeliest = GenerationScorer(llama).generate(PROMPTS, KEYS)
    drawn = GenerationScorer(llama, samples=2, temperature=1e-6).generate(PROMPTS, KEYS)
    assert drawn == [answers * 2 for answers in likeliest]


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_tokens_are_drawn_from_the_softmax(temperature):
    logits = torch.tensor([2.0, 0.0, -1.0, 1.0, float("-inf")])
    n = 20_000
    noise = GumbelNoise([f"0/{i}/0" for i in range(n)], temperature)
    for _ in range(2):  # the second token of a stream is as random as the first
        drawn = noise(torch.zeros(n, 1), logits.repeat(n, 1)).argmax(dim=-1)
        counts = torch.bincount(drawn, minlength=5).numpy()
        expected = n * torch.softmax(logits.double() / temperature, dim=-1).numpy()
        assert counts[4] == expected[4] == 0
        # 16.27 is the 99.9 % point of chi-square with 3 degrees of freedom.
        assert ((counts - expected)[:4] ** 2 / expected[:4]).sum() < 16.27


# Limits


def test_too_long_prompts_are_named(llama):
    with pytest.raises(QabiasError, match="request 'a/9': 664 tokens are more than the 512 that the decoder of model"):
        GenerationScorer(llama).generate(["Z" * 600], ["a/9"])
    bart = load_tiny("bart")
    with pytest.raises(QabiasError, match="request 'a/9': 302 tokens are more than the 128 that the encoder of model"):
        GenerationScorer(bart).generate(["Z" * 300], ["a/9"])
    with pytest.raises(QabiasError, match="request 'a/9': 151 tokens are more than the 128 that the decoder of model"):
        GenerationScorer(bart, max_new_tokens=150).generate(["Z"], ["a/9"])


def test_a_tokenizer_without_pad_and_end_is_enough():
    model = tiny_models.make_model("llama")
    model.generation_config = transformers.GenerationConfig()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=tiny_models.make_tokenizer().backend_tokenizer)
    bare = models.LoadedModel(model, tokenizer, "tiny", "local", "cpu", "float32")
    assert tokenizer.pad_token_id is tokenizer.eos_token_id is None
    found = GenerationScorer(bare, max_new_tokens=4).generate(PROMPTS, KEYS)
    assert found == one_at_a_time(bare, PROMPTS, 4)


# Options


def test_options_are_read_from_texts_after_the_mode():
    texts = {"mode": "generate", "samples": "5", "temperature": "0.7", "max_new_tokens": "3"}
    options = check_options(load_kind("seq2seq"), texts)
    assert (options.samples, options.temperature, options.max_new_tokens) == (5, 0.7, 3)
    with pytest.raises(QabiasError, match="mode=generate"):
        check_options(load_kind("causal"), {"samples": "5"})


def test_wrong_options_are_named():
    # Five samples at temperature 0 would all be equal.
    for option, text in (("samples", "1.5"), ("samples", "5"), ("temperature", "-1"), ("temperature", "inf")):
        with pytest.raises(QabiasError, match=option):
            load_scorer("seq2seq", "nowhere", scorer_options={"mode": "generate", option: text})


def test_samples_are_independent_of_each_other():
    """Pairs of samples of one question fall on every pair of tokens as often as independent ones."""
    n = 8000
    logits = torch.tensor([1.0, 0.0, -0.5])
    first, second = (
        GumbelNoise([f"0/{i}/{number}" for i in range(n)], 1.0)(torch.zeros(n, 1), logits.repeat(n, 1)).argmax(dim=-1)
        for number in (0, 1)
    )
    counts = torch.bincount(3 * first + second, minlength=9).numpy()
    p = torch.softmax(logits.double(), dim=-1).numpy()
    expected = n * np.outer(p, p).ravel()
    # 26.12 is the 99.9 % point of chi-square with 8 degrees of freedom.
    assert ((counts - expected) ** 2 / expected).sum() < 26.12
