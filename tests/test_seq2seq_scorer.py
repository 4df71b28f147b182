"""The text-to-text scorer gives the log-likelihoods of the training loss, however its work is arranged."""

import json
import logging
from copy import deepcopy
from functools import cache

import numpy as np
import pytest
import torch
import transformers
from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers, processors, trainers
from tokenizers import models as tokenizer_models

from qabias.errors import QabiasError
from qabias.models import loading as models
from qabias.scorers.base import Request
from qabias.scorers.registry import default_scorer
from qabias.scorers.seq2seq import Seq2SeqScorer
from tests.tiny_models import SENTENCES, assert_equal_scores, make_model
from tests.tiny_models import make_tokenizer as make_causal_tokenizer

pytestmark = pytest.mark.usefixtures("one_thread")

# Large weights, so that a wrong mask or position shows in the figures.
T5 = {
    "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "initializer_factor": 1.0,
    "dropout_rate": 0.0, "decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0,
}  # fmt: skip
BART = {
    "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "init_std": 0.2, "max_position_embeddings": 128,
    "pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 3, "decoder_start_token_id": 1, "forced_bos_token_id": None,
    "forced_eos_token_id": None,
}  # fmt: skip
KINDS = ("t5", "bart")
SETTING = "A baker and a carpenter shared a table at the library."
MORE = " The carpenter had forgotten an umbrella while the rain came down outside."
OPTIONS = (" The baker", "\nThe carpenter", "Not enough information")
REQUESTS = [
    Request(f"{question} \n {context}", OPTIONS, key=f"Age/{i}")
    for i, (context, question) in enumerate(
        (context, question)
        for context in (SETTING, SETTING + MORE)
        for question in ("Who was forgetful?", "Who was generous?")
    )
] + [Request("Two neighbours talked.", ("A", "It can't be determined.", " A", "A nurse"), key="Age/4")]


@cache
def make_tokenizer(kind):
    """Train a tokenizer of the manner of each kind: T5's ends a text, BART's begins and ends it."""
    specials = ["<pad>", "</s>", "<unk>", "<s>"]
    if kind == "t5":
        tokenizer = Tokenizer(tokenizer_models.Unigram())
        tokenizer.normalizer = normalizers.Replace("\n", " ")
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        tokenizer.decoder = decoders.Metaspace()
        trainer = trainers.UnigramTrainer(
            vocab_size=150, special_tokens=specials, unk_token="<unk>", show_progress=False
        )
        frame = "$A </s>"
    else:
        tokenizer = Tokenizer(tokenizer_models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(
            vocab_size=400, special_tokens=specials, initial_alphabet=alphabet, show_progress=False
        )
        frame = "<s> $A </s>"
    tokenizer.train_from_iterator(SENTENCES * 4, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single=frame, special_tokens=[("<s>", 3), ("</s>", 1)])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", bos_token="<s>"
    )


@cache
def load_tiny(kind):
    """A model, which no test may change."""
    torch.manual_seed(0)
    tokenizer = make_tokenizer(kind)
    if kind == "t5":
        network = transformers.T5ForConditionalGeneration(transformers.T5Config(vocab_size=len(tokenizer), **T5))
    else:
        network = transformers.BartForConditionalGeneration(transformers.BartConfig(vocab_size=len(tokenizer), **BART))
    return models.LoadedModel(network.eval(), tokenizer, "tiny", "local", "cpu", "float32")


@pytest.fixture
def t5():
    return load_tiny("t5")


def one_at_a_time(loaded, requests):
    """Log-likelihoods as the definition says: the decoder run token by token, its probabilities multiplied."""
    start = loaded.model.config.decoder_start_token_id
    answers = []
    for request in requests:
        source = torch.tensor([loaded.tokenizer.encode(request.prefix)])
        values = []
        for option in request.options:
            total, written = 0.0, [start]
            for token in loaded.tokenizer.encode(option.lstrip()):
                with torch.no_grad():
                    logits = loaded.model(input_ids=source, decoder_input_ids=torch.tensor([written])).logits
                total += float(torch.log(torch.softmax(logits[0, -1].double(), dim=-1)[token]))
                written.append(token)
            assert written[-1] == loaded.tokenizer.eos_token_id
            values.append(total)
        answers.append(np.array(values))
    return answers


# Equality with the definition


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_one_token_at_a_time(kind):
    loaded = load_tiny(kind)
    expected = one_at_a_time(loaded, REQUESTS)
    assert_equal_scores(Seq2SeqScorer(loaded).score(REQUESTS), expected)
    assert np.ptp(expected[0]) > 1  # options differ, and so do prefixes
    assert np.abs(expected[0] - expected[1]).max() > 0.1


def test_every_distinct_prefix_is_encoded_once(t5):
    read = []
    encoder = t5.model.get_encoder()
    handle = encoder.register_forward_hook(
        lambda _, inputs, options, output: read.extend(options["attention_mask"].sum(dim=1).tolist()), with_kwargs=True
    )
    Seq2SeqScorer(t5).score(REQUESTS * 3)
    handle.remove()
    assert sorted(read) == sorted(len(t5.tokenizer.encode(request.prefix)) for request in REQUESTS)


@pytest.mark.parametrize(("kind", "n_special"), [("t5", 1), ("bart", 2)])
def test_scores_have_the_promised_form(kind, n_special):
    loaded = load_tiny(kind)
    (score,) = Seq2SeqScorer(loaded).score(REQUESTS[:1])
    assert score.loglikelihoods.dtype == np.float64
    assert (score.loglikelihoods < 0).all()
    assert score.n_tokens.dtype == score.n_bytes.dtype == np.int32
    options = [option.lstrip() for option in OPTIONS]
    plain = [loaded.tokenizer.encode(option, add_special_tokens=False) for option in options]
    assert score.n_tokens.tolist() == [len(tokens) + n_special for tokens in plain]
    assert score.n_bytes.tolist() == [len(option) for option in options]
    assert Seq2SeqScorer(loaded).score([]) == []


def test_a_tokenizer_that_ends_no_text_gets_the_end_and_loses_the_start(t5):
    """As T5Gemma's does, whose decoder starts from the token that the tokenizer puts before every text."""
    tokenizer = deepcopy(t5.tokenizer)
    frame = processors.TemplateProcessing(single="<pad> $A", special_tokens=[("<pad>", 0)])
    tokenizer.backend_tokenizer.post_processor = frame
    scorer = Seq2SeqScorer(models.LoadedModel(t5.model, tokenizer, "tiny", "local", "cpu", "float32"))
    (score,) = scorer.score([Request("Who?", ("A nurse",))])
    source, written = tokenizer.encode("Who?"), t5.tokenizer.encode("A nurse")
    assert source[0] == 0
    assert score.n_tokens.tolist() == [len(written)]
    with torch.no_grad():
        loss = float(t5.model(input_ids=torch.tensor([source]), labels=torch.tensor([written])).loss)
    assert score.loglikelihoods[0] == pytest.approx(-loss * len(written), abs=1e-4)


# Limits


def test_too_long_or_empty_an_option_is_named(t5):
    loaded = load_tiny("bart")
    scorer = Seq2SeqScorer(loaded)
    longest = [Request("Who", ("Z" * 126,), key="Age/9")]
    assert_equal_scores(scorer.score(longest), one_at_a_time(loaded, longest))
    with pytest.raises(QabiasError, match=r"129 tokens .* 128 .* decoder"):
        scorer.score([Request("Who", ("Z" * 127,), key="Age/9")])
    with pytest.raises(QabiasError, match=r"request 'Age/9': 202 tokens .* 128 .* decoder"):
        scorer.score([Request("Who", ("Z" * 200,), key="Age/9")])
    with pytest.raises(QabiasError, match=r"request 'Age/7': option ' ' is empty"):
        scorer.score([Request("Who", ("A", " "), key="Age/7")])
    with pytest.raises(QabiasError, match="LlamaForCausalLM"):
        Seq2SeqScorer(models.LoadedModel(make_model("llama"), make_causal_tokenizer(), "tiny", "", "cpu", "float32"))


def test_t5_reads_texts_of_any_length(t5):
    request = Request("Z" * 700, ("A", "nurse"), key="Age/9")
    assert_equal_scores(Seq2SeqScorer(t5).score([request]), one_at_a_time(t5, [request]))


def test_batches_of_the_decoder_shrink_when_memory_runs_out(t5, caplog, monkeypatch):
    """For the encoder see `test_scorer_contract`."""
    expected = [score.loglikelihoods for score in Seq2SeqScorer(t5).score(REQUESTS)]
    forward = t5.model.forward

    def limited(**inputs):
        tokens = inputs["decoder_input_ids"]
        if len(tokens) * (inputs["attention_mask"].shape[1] + tokens.shape[1]) > 150:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return forward(**inputs)

    monkeypatch.setattr(t5.model, "forward", limited)
    with caplog.at_level(logging.WARNING):
        assert_equal_scores(Seq2SeqScorer(t5).score(REQUESTS), expected)
    assert "seq2seq: out of memory" in caplog.text


# Loading


def save_config(folder, **values):
    (folder / "config.json").write_text(json.dumps(values))
    return str(folder)


def test_the_old_name_of_t5_is_known(tmp_path):
    load_tiny("t5").model.save_pretrained(tmp_path)
    make_tokenizer("t5").save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    save_config(tmp_path, **{**config, "architectures": ["T5WithLMHeadModel"]})
    assert default_scorer(str(tmp_path)) == "seq2seq"
    assert models.load_model(models.SEQ2SEQ, str(tmp_path), device="cpu").model.config.model_type == "t5"


@pytest.mark.parametrize(
    ("config", "found"),
    [
        ({"model_type": "llama", "architectures": ["LlamaForCausalLM"]}, "a LlamaForCausalLM"),
        ({"model_type": "bart", "architectures": ["BartForSequenceClassification"]}, "a BartForSequenceClassification"),
        ({"model_type": "t5", "architectures": ["T5EncoderModel"]}, "a T5EncoderModel"),
        ({"model_type": "bert"}, "a model of type bert"),
        # In the library's list of text-to-text models, but a decoder that listens.
        ({"model_type": "qwen2_audio", "architectures": ["Qwen2AudioForConditionalGeneration"]}, "a Qwen2Audio"),
    ],
)
def test_models_of_another_kind_are_refused(config, found, tmp_path):
    with pytest.raises(QabiasError, match=f"is {found}"):
        models.load_model(models.SEQ2SEQ, save_config(tmp_path, **config))


@pytest.mark.parametrize(
    ("config", "scorer"),
    [
        ({"model_type": "bert", "architectures": ["BertForSequenceClassification"]}, "nli"),
        ({"model_type": "bart", "architectures": ["BartForSequenceClassification"]}, "nli"),
        ({"model_type": "bert", "architectures": ["BertForMaskedLM"]}, "masked_lm"),
        ({"model_type": "bart", "architectures": ["BartForQuestionAnswering"]}, "extractive_qa"),
        ({"model_type": "llama", "architectures": ["LlamaForCausalLM"]}, "causal"),
        ({"model_type": "gemma3", "architectures": ["Gemma3ForConditionalGeneration"]}, "causal"),
        ({"model_type": "qwen2_audio", "architectures": ["Qwen2AudioForConditionalGeneration"]}, "causal"),
        ({"model_type": "t5"}, "seq2seq"),
        ({"model_type": "gpt2"}, "causal"),
    ],
)
def test_the_head_tells_the_scorer(config, scorer, tmp_path):
    assert default_scorer(save_config(tmp_path, **config)) == scorer


def test_the_causal_loader_refuses_text_to_text_models(tmp_path):
    load_tiny("t5").model.save_pretrained(tmp_path)
    with pytest.raises(QabiasError, match="T5ForConditionalGeneration"):
        models.load_model(models.CAUSAL, str(tmp_path))
