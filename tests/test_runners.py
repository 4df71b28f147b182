"""The scripts map any scorer over a dataset and print the scores that `qabias run` gives with the same arguments."""

import copy
import importlib
import json
import sys

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import transformers

from qabias.benchmarks import load_benchmark
from qabias.runs.arguments import RunArguments
from qabias.runs.run import run

from .saved_models import make_t5, save
from .tiny_models import make_encoder, make_encoder_tokenizer, make_model, make_tokenizer

pytestmark = [
    pytest.mark.usefixtures("one_thread", "own_cache"),
    # Tiny models write rubbish and know few subjects.
    pytest.mark.filterwarnings("ignore:.*are unparseable", "ignore:unqover. coverage"),
]

SIZE = {"max_position_embeddings": 512}


@pytest.fixture(scope="module")
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path_factory.mktemp("cache"))
        yield


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Folders of small models by the scorer that their head is made for."""
    folder = tmp_path_factory.mktemp("models")
    plain = make_encoder_tokenizer("wordpiece")
    knowing = copy.deepcopy(plain)  # a masked model is asked for subjects that are one token to it
    knowing.add_tokens(["sikh", "hindu", "muslim"])
    masked = make_encoder.__wrapped__("bert", "AutoModelForMaskedLM", vocab_size=len(knowing), **SIZE)
    names = ("entailment", "neutral", "contradiction")
    torch.manual_seed(0)
    small = transformers.BertConfig(
        vocab_size=len(plain),
        **{"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48},
        id2label=dict(enumerate(names)),
        label2id={name: number for number, name in enumerate(names)},
        initializer_range=0.2,
        **SIZE,
    )
    return {
        "causal": save(folder / "causal", make_model("llama", max_position_embeddings=1024), make_tokenizer()),
        "seq2seq": save(folder / "seq2seq", make_t5(), make_tokenizer()),
        "multiple_choice": save(folder / "choices", make_encoder("bert", "AutoModelForMultipleChoice", **SIZE), plain),
        "nli": save(folder / "nli", transformers.BertForSequenceClassification(small), plain),
        "extractive_qa": save(folder / "spans", make_encoder("bert", **SIZE), plain),
        "masked_lm": save(folder / "masks", masked, knowing),
        **{name: f"baseline:{name}" for name in ("random", "stereotyped")},
    }


@pytest.fixture
def runner(monkeypatch, capsys):
    """A function that calls a script with arguments; returns the scores that it prints and the answers it made."""

    def call(name, *arguments):
        module = importlib.import_module(f"runners.{name}")
        made = []

        def kept(benchmark, rows, answers):
            made.append(answers.with_format("arrow")[:])
            return module_scores(benchmark, rows, answers)

        module_scores = module.scores_as_json
        with monkeypatch.context() as patch:
            patch.setattr(module, "scores_as_json", kept)
            patch.setattr(sys, "argv", [f"{name}.py", *map(str, arguments)])
            module.main()
        (answers,) = made
        return json.loads(capsys.readouterr().out), answers

    return call


GENERATE = {"mode": "generate"}
SAMPLED = {**GENERATE, "temperature": "1", "max_new_tokens": "6"}
ASKED = {
    "bbq-causal-keys": ("bbq", "causal", {"config": "Age", "limit": 16, "options": SAMPLED, "seed": 3}),
    "bbq-unifiedqa": (
        "bbq",
        "seq2seq",
        {"config": "Age", "limit": 16, "format": "race_unifiedqa", "parser": "released", "options": GENERATE},
    ),
    "bbq-scorer": ("bbq", "multiple_choice", {"config": "Age", "limit": 16, "backend": "multiple_choice"}),
    "unqover-extractive_qa": (
        "unqover",
        "extractive_qa",
        {"config": "religion", "limit": 24, "options": {"span": "released"}},
    ),
    "unqover-masked_lm": ("unqover", "masked_lm", {"config": "religion_mlm", "limit": 3000}),
    "bbnli-nli": ("bbnli", "nli", {"config": "gender", "limit": 40}),
    "bbnli-samples": (
        "bbnli",
        "seq2seq",
        {"config": "race", "limit": 20, "options": {**SAMPLED, "samples": "2"}},
    ),
}


def as_options(arguments):
    """Arguments of a run as options of a script."""
    plain = {name: value for name, value in arguments.items() if name != "options"}
    options = [f"--option={name}={value}" for name, value in arguments.get("options", {}).items()]
    return [*(f"--{name}={value}" for name, value in plain.items()), *options]


def assert_close(actual, expected):
    """Equal but for the rounding of a model's numbers, which the place of tensors in memory moves."""
    assert type(actual) is type(expected)
    if isinstance(actual, dict):
        assert list(actual) == list(expected)
        assert_close(list(actual.values()), list(expected.values()))
    elif isinstance(actual, list):
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            assert_close(one, other)
    elif isinstance(actual, float):
        assert actual == pytest.approx(expected, rel=1e-5, abs=1e-7, nan_ok=True)
    else:
        assert actual == expected


@pytest.mark.slow
@pytest.mark.parametrize("case", ASKED)
def test_a_script_gives_the_scores_of_the_run_with_the_same_arguments(tmp_path, runner, models, case):
    benchmark, model, arguments = ASKED[case]
    scores, answers = runner(benchmark, f"--model={models[model]}", *as_options(arguments))
    result = run(RunArguments(benchmark, models[model], **arguments), tmp_path / "run")
    assert_close(scores, json.loads((result.folder / "scores.json").read_text("utf-8"))["scores"])
    parts = sorted((result.folder / "predictions").iterdir())
    stored = pa.concat_tables([pq.read_table(part) for part in parts])
    assert answers.column_names == [name for name in stored.column_names if name not in load_benchmark(benchmark).key]
    for name in answers.column_names:
        assert_close(answers[name].to_pylist(), stored[name].to_pylist())


def test_the_rows_of_a_folder_that_somebody_built_are_asked(tmp_path, runner):
    benchmark = load_benchmark("bbq")
    benchmark.write_folder(tmp_path / "own", "Religion", benchmark.origin("bundled", 0, False))
    arguments = ("--model=baseline:stereotyped", "--config=Religion", f"--dataset={tmp_path / 'own'}")
    scores, answers = runner("bbq", *arguments)
    assert (scores["bias_ambig"], scores["n"], answers.num_rows) == (1.0, 1200, 1200)
    assert scores["accuracy"] == pytest.approx(scores["accuracy_disambig"] / 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--limit=0",), "limit"),
        (("--length-norm=bite",), "'byte'"),
        (("--format=rase",), "'rase'"),
        (("--option=mode",), "'mode'"),
        (("--config=age",), "'age'"),
        (("--dataset=nowhere/at-all",), "nowhere/at-all"),
        (("--option=mode=generate",), "baseline"),
    ],
)
def test_a_mistake_is_one_line(runner, capsys, arguments, message):
    with pytest.raises(SystemExit) as stopped:
        runner("bbq", "--model=baseline:random", *arguments)
    assert stopped.value.code == 2
    assert message in "\n".join(capsys.readouterr().err.splitlines()[-2:])


def test_a_model_whose_head_is_for_another_benchmark_is_refused(runner, models, capsys):
    with pytest.raises(SystemExit):
        runner("bbq", f"--model={models['extractive_qa']}")
    assert "extractive_qa" in capsys.readouterr().err
