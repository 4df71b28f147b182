"""A model of multiple choice as a run of BBQ asks it."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from qabias.benchmarks.bbq.benchmark import BENCHMARK
from qabias.cli import app
from qabias.errors import QabiasError
from qabias.models.loading import load_model
from qabias.runs.arguments import RunArguments
from qabias.runs.question import load_examples
from qabias.runs.run import run
from qabias.scorers.base import Request
from qabias.scorers.multiple_choice import MODELS

from .test_multiple_choice_scorer import HEAD, one_at_a_time
from .tiny_models import make_encoder, make_encoder_tokenizer

pytestmark = pytest.mark.usefixtures("one_thread")


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


@pytest.mark.parametrize("norm", ["token", "byte", "released"])
def test_norms_are_refused(norm, tmp_path, saved_model):
    arguments = RunArguments("bbq", model=str(saved_model), config="Age", limit=4, norm=norm)
    with pytest.raises(QabiasError, match=f"norm '{norm}' does not fit the scorer multiple_choice; choose none"):
        run(arguments, tmp_path / "run")


def test_a_writer_is_not_given_a_context_without_a_question(saved_model):
    class Writer:
        name, model_signature, samples = "writer", "", 1

        def generate(self, prompts, keys):
            raise AssertionError("asked")

    part = load_examples(RunArguments("bbq", config="Age", limit=4)).table
    with pytest.raises(QabiasError, match="the format pair asks a writer no question; leave --format out"):
        BENCHMARK.answer(part, Writer(), BENCHMARK.formats["pair"], "none")


def test_other_benchmarks_refuse_the_scorer(tmp_path, saved_model):
    with pytest.raises(QabiasError, match="unqover cannot be asked by the scorer multiple_choice"):
        run(RunArguments("unqover", model=str(saved_model), config="religion", limit=4), tmp_path / "run")
