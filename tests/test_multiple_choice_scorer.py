"""The scorer of multiple choice gives the model's own choice probabilities, however its work is arranged."""

import json
from functools import cache

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
import transformers
from typer.testing import CliRunner

from qabias.benchmarks.bbq.benchmark import BENCHMARK
from qabias.cli import app
from qabias.errors import QabiasError
from qabias.models.loading import LoadedModel, load_model
from qabias.runs.arguments import RunArguments
from qabias.runs.question import load_examples
from qabias.scorers.base import Request
from qabias.scorers.batches import Template
from qabias.scorers.multiple_choice import MODELS, MultipleChoiceScorer

from .tiny_models import (
    CONTEXTS,
    ENCODER_CONFIGS,
    ENCODER_SMALL,
    QUESTIONS,
    first_of,
    inputs_of,
    load_encoder,
    make_encoder,
    make_encoder_tokenizer,
)

pytestmark = pytest.mark.usefixtures("one_thread")

HEAD = "AutoModelForMultipleChoice"
KINDS = first_of("bert", "deberta-v2", *sorted({*ENCODER_CONFIGS} - {"bert", "deberta-v2", "gpt2"}), n=2)
# Three answers to most questions, two or four to others; the same context, ending or pair occurs several times.
ANSWERS = {
    QUESTIONS[0]: ("Mary", "James", "She can't be determined"),
    QUESTIONS[1]: ("a man", "a group of African people", "Zbigniewa", "Ann"),
    QUESTIONS[2]: ("Somalia", "Mali"),
    QUESTIONS[3]: ("the person", "the African-American man", "nobody"),
}
REQUESTS = [
    Request(context, tuple(f" {question} {answer}" for answer in answers), key=f"{i}/{j}")
    for i, context in enumerate(CONTEXTS)
    for j, (question, answers) in enumerate(ANSWERS.items())
]


def load(kind, **changes):
    return load_encoder(kind, HEAD, **changes)


def one_at_a_time(loaded, requests):
    """The definition: all options of one request as the model takes them, by its own tokenizer."""
    probabilities = []
    for request in requests:
        logits = []
        for option in request.options:
            encoded = inputs_of(loaded, request.prefix, option.strip())
            with torch.no_grad():
                logits.append(float(loaded.model(**{name: row[None] for name, row in encoded.items()}).logits))
        shares = np.exp(np.array(logits))
        probabilities.append(shares / shares.sum())
    return probabilities


def assert_same(scores, expected):
    assert len(scores) == len(expected)
    for score, shares in zip(scores, expected, strict=True):
        assert score.loglikelihoods.dtype == np.float64
        np.testing.assert_allclose(np.exp(score.loglikelihoods), shares, rtol=0, atol=1e-5)


@cache
def reference(kind):
    return one_at_a_time(load(kind), REQUESTS)


@pytest.mark.parametrize("kind", KINDS)
def test_probabilities_are_those_of_one_option_at_a_time(kind):
    scores = MultipleChoiceScorer(load(kind)).score(REQUESTS)
    assert_same(scores, reference(kind))
    assert [len(score.loglikelihoods) for score in scores[:4]] == [3, 4, 2, 3]
    for request, score in zip(REQUESTS, scores, strict=True):
        assert abs(np.exp(score.loglikelihoods).sum() - 1) < 1e-12
        options = [option.strip() for option in request.options]
        assert score.n_bytes.tolist() == [len(option.encode()) for option in options]
        assert score.n_tokens.tolist() == [len(load(kind).tokenizer.tokenize(option)) for option in options]
        assert (score.n_tokens.dtype, score.n_bytes.dtype) == (np.int32, np.int32)
    assert np.std([score.loglikelihoods[0] for score in scores]) > 1e-3  # the model has an opinion


def test_a_model_that_cannot_have_pads_on_the_right_is_asked_row_by_row():
    """XLNet's pads stand on the left, and its summary is the last token's."""
    torch.manual_seed(0)
    config = transformers.XLNetConfig(**ENCODER_SMALL, d_model=32, n_layer=2, n_head=4, d_inner=48)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=make_encoder_tokenizer("wordpiece").backend_tokenizer,
        pad_token="[PAD]",
        padding_side="left",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )
    model = transformers.AutoModelForMultipleChoice.from_config(config).eval()
    loaded = LoadedModel(model, tokenizer, "tiny", "local", "cpu", "float32")
    scorer = MultipleChoiceScorer(loaded)
    assert_same(scorer.score(REQUESTS[:8]), one_at_a_time(loaded, REQUESTS[:8]))
    assert scorer.stats.batches == 24
    assert scorer.stats.pads_run == 0


# Nothing but the request matters


def test_a_tokenizer_that_puts_the_context_last_is_asked_pair_by_pair():
    tokenizer = make_encoder_tokenizer("wordpiece", pair="[CLS] $B [SEP] $A:1 [SEP]:1")
    assert Template.read(tokenizer, 2) is None
    loaded = load("bert", tokenizer=tokenizer)
    assert_same(MultipleChoiceScorer(loaded).score(REQUESTS), one_at_a_time(loaded, REQUESTS))


# Runs


@pytest.fixture(scope="module")
def saved_model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("race")
    make_encoder("roberta", HEAD, max_position_embeddings=513).save_pretrained(folder)
    make_encoder_tokenizer("bytes").save_pretrained(folder)
    return folder


def test_a_model_of_multiple_choice_answers_bbq(tmp_path, saved_model):
    command = ["run", "bbq", "--model", str(saved_model), "--config", "Age", "--limit", "16"]
    result = CliRunner().invoke(app, [*command, "--output", str(tmp_path / "run"), "--device", "cpu"])
    assert result.exit_code == 0, result.output
    signature = json.loads((tmp_path / "run" / "run.json").read_text("utf-8"))["signature"]
    assert "|format:pair@1|" in signature
    assert "|scorer:multiple_choice|" in signature
    answers = pq.read_table(tmp_path / "run" / "predictions")
    loaded = load_model(MODELS, str(saved_model), device="cpu")
    examples = load_examples(RunArguments("bbq", config="Age", limit=16)).table.to_pylist()
    options = [[f"{row['question']} {row[f'ans{i}']}" for i in range(3)] for row in examples]
    requests = [Request(row["context"], tuple(own)) for row, own in zip(examples, options, strict=True)]
    expected = np.array(one_at_a_time(loaded, requests))
    np.testing.assert_allclose(np.exp(answers["loglikelihoods"].to_pylist()), expected, rtol=0, atol=1e-5)
    assert np.diff(np.sort(expected, axis=1)).min() > 1e-5  # no ties, so the answers are those of the argmax
    assert answers["prediction"].to_pylist() == expected.argmax(axis=1).tolist()


def test_a_writer_is_not_given_a_context_without_a_question(saved_model):
    class Writer:
        name, model_signature, samples = "writer", "", 1

        def generate(self, prompts, keys):
            raise AssertionError("asked")

    part = load_examples(RunArguments("bbq", config="Age", limit=4)).table
    with pytest.raises(QabiasError, match="format pair"):
        BENCHMARK.answer(part, Writer(), BENCHMARK.formats["pair"], "none")


def test_equal_options_have_equal_scores():
    (score,) = MultipleChoiceScorer(load("roberta")).score(
        [Request("Mary left.", (" Who? Mary", "Who? Mary", " Who?"))]
    )
    assert score.loglikelihoods[0] == score.loglikelihoods[1] != score.loglikelihoods[2]
