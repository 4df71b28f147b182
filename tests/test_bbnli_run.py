"""BBNLI and BBQ as inference through the whole pipeline: baselines with known scores, and every kind of model."""

import copy
import json

import pyarrow.parquet as pq
import pytest
import torch
import transformers
from markupsafe import escape
from typer.testing import CliRunner

from qabias.benchmarks import load_benchmark
from qabias.cli import app
from qabias.comparison import compare
from qabias.comparison.comparable import differing_fields, read_runs
from qabias.errors import QabiasError
from qabias.report.writing import write_report_of
from qabias.runs.arguments import RunArguments
from qabias.runs.run import run
from qabias.tables.model import read_analysis

from .saved_models import make_t5, save
from .tiny_models import make_model, make_tokenizer

pytestmark = pytest.mark.usefixtures("one_thread")


def _run(folder, benchmark="bbnli", **arguments):
    return run(RunArguments(benchmark=benchmark, **arguments), folder)


@pytest.fixture(scope="module")
def t5(tmp_path_factory):
    return save(tmp_path_factory.mktemp("t5"), make_t5(), make_tokenizer())


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    model = make_model("llama", max_position_embeddings=1024)
    return save(tmp_path_factory.mktemp("llama"), model, make_tokenizer())


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=400,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        pad_token_id=1,
        initializer_range=0.2,
        id2label={0: "entailment", 1: "neutral", 2: "contradiction"},
        label2id={"entailment": 0, "neutral": 1, "contradiction": 2},
    )
    folder = tmp_path_factory.mktemp("classifier")
    tokenizer = copy.deepcopy(make_tokenizer())  # other tests share it
    tokenizer.pad_token = "</s>"
    return save(folder, transformers.BertForSequenceClassification(config), tokenizer)


# Baselines: scores that are known before they are measured.


@pytest.mark.parametrize(
    ("kind", "bias", "accuracy"),
    [
        ("stereotyped", 1, 1),
        ("anti-stereotyped", -1, 1),
        ("unknown", 0, None),
        ("oracle", 0, 1),
        ("first", 0, None),
        ("last", 0, None),
    ],
)
def test_baselines_have_their_known_scores(tmp_path, kind, bias, accuracy):
    scores = _run(tmp_path / "run", model=f"baseline:{kind}").scores
    assert scores["bias_score"] == bias
    assert scores["unparsed_share"] == 0
    if accuracy is not None:
        assert (scores["accuracy_pro"], scores["accuracy_anti"], scores["accuracy_gap"]) == (accuracy, accuracy, 0)
    if kind in ("first", "last", "unknown"):
        label = {"first": "contradiction", "last": "entailment", "unknown": "neutral"}[kind]
        assert scores["label_share"][label] == 1  # one-label collapse shows here, not in the bias score


@pytest.mark.parametrize(("kind", "bias"), [("stereotyped", 1), ("anti-stereotyped", -1), ("oracle", 0)])
def test_baselines_on_bbq_as_inference(tmp_path, kind, bias):
    scores = _run(tmp_path / "run", "bbq_nli", model=f"baseline:{kind}", config="Religion_nli").scores
    assert scores["bias_score_ambig"] == bias
    assert scores["bias_score_disambig"] == bias
    expected = {"stereotyped": (1, 0), "anti-stereotyped": (0, 1), "oracle": (1, 1)}[kind]
    assert (scores["accuracy_pro"], scores["accuracy_anti"]) == expected
    assert set(scores["by"]["name_order"]) == {"original", "swapped"}


def test_random_answers_have_zero_inside_their_interval(tmp_path):
    scores = _run(tmp_path / "run", model="baseline:random").scores
    low, high = scores["ci"]["bias_score"]
    assert low < 0 < high


# Samples keep both forms of a pair together.


def test_a_sample_holds_whole_pairs_of_many_hypotheses(tmp_path):
    result = _run(tmp_path / "run", model="baseline:oracle", limit=200)
    assert result.scores["n"] == 200
    answers = pq.read_table(tmp_path / "run" / "predictions" / "part-00000.parquet")["example_id"].to_pylist()
    pairs = {name.rsplit("-", 1)[0] for name in answers}
    assert len(answers) == 2 * len(pairs)
    assert len(result.scores["by"]["subtopic"]) == 16


# Every kind of model, found out from its own configuration.


def test_a_causal_model_answers_both_forms_and_compare_shows_them(tmp_path, llama):
    for name, prompt_format in (("nli", "can_we_infer"), ("qa", "quoref_answer")):
        result = _run(tmp_path / name, model=llama, limit=40, format=prompt_format)
        assert f"|format:{prompt_format}@1|" in result.signature
        assert result.scores["unparsed_share"] == 0
    output = CliRunner().invoke(app, ["compare", "--allow-mixed", str(tmp_path / "nli"), str(tmp_path / "qa")]).output
    assert "run 1: format:can_we_infer@1" in output
    assert "run 2: format:quoref_answer@1" in output
    assert "bias score [95 % interval]" in output


def test_a_classifier_is_asked_pairs(tmp_path, classifier):
    result = _run(tmp_path / "run", model=classifier, limit=60)
    assert "|format:pair@1|" in result.signature
    assert "|scorer:nli|" in result.signature
    answers = pq.read_table(tmp_path / "run" / "predictions" / "part-00000.parquet")
    assert all(abs(sum(row) - 1) < 1e-9 for row in answers["probabilities"].to_pylist())
    with pytest.raises(QabiasError, match="needs the format pair"):
        _run(tmp_path / "wrong", model=classifier, limit=60, format="gpt3")


def test_a_text_to_text_model_scores_options_and_writes(tmp_path, t5):
    likely = _run(tmp_path / "likely", model=t5, limit=40)
    assert "|scorer:seq2seq|" in likely.signature
    written = _run(tmp_path / "written", model=t5, limit=40, options={"mode": "generate"})
    answers = pq.read_table(tmp_path / "written" / "predictions" / "part-00000.parquet")
    assert all(len(texts) == 1 for texts in answers["outputs"].to_pylist())
    assert written.scores["n"] == likely.scores["n"] == 40


def test_several_samples_count_as_so_many_answers(tmp_path, t5):
    options = {"mode": "generate", "samples": "3", "temperature": "1"}
    one = _run(tmp_path / "one", model=t5, limit=20, options=options)
    two = _run(tmp_path / "two", model=t5, limit=20, options=options)
    assert one.scores["n"] == 60
    assert json.dumps(one.scores) == json.dumps(two.scores)


@pytest.mark.parametrize("rule", ["none", "released"])
def test_a_text_to_text_model_answers_bbq_in_the_formats_of_unifiedqa(tmp_path, t5, rule):
    result = _run(
        tmp_path / "run", "bbq", model=t5, config="Religion", limit=24, norm=rule, options={"mode": "generate"}
    )
    assert "|format:race@1|" in result.signature
    assert f"|norm:{rule}|" in result.signature
    answers = pq.read_table(tmp_path / "run" / "predictions" / "part-00000.parquet")
    assert answers.num_rows == 24
    assert set(answers["prediction"].to_pylist()) <= {-1, 0, 1, 2}


class _Echo:
    """Writes the lettered answer that a prompt lists at a place that depends on nothing else."""

    name, model_signature, samples = "seq2seq", "", 1

    def __init__(self, place):
        self._place = place

    def generate(self, prompts, keys):
        letters = ("(a)", "(b)", "(c)", "\n")
        start, end = letters[self._place], letters[self._place + 1]
        return [(prompt.split(start, 1)[1].split(end, 1)[0].strip() + ".",) for prompt in prompts]


@pytest.mark.parametrize("prompt_format", ["race", "arc"])
@pytest.mark.parametrize("rule", ["none", "released"])
def test_written_answers_of_bbq_are_read_by_exact_match(prompt_format, rule):
    benchmark = load_benchmark("bbq")
    table = benchmark.load("Age", benchmark.origin("bundled", 0, False, None)).slice(0, 200)
    for place in range(3):
        answers = benchmark.answer(table, _Echo(place), benchmark.formats[prompt_format], rule)
        assert set(answers["prediction"].to_pylist()) == {place}


def test_a_causal_model_writes_too(tmp_path, llama):
    result = _run(tmp_path / "run", model=llama, limit=20, options={"mode": "generate", "max_new_tokens": "4"})
    assert "|scorer:causal+max_new_tokens=4+mode=generate+samples=1+temperature=0|" in result.signature
    assert sum(result.scores["label_share"].values()) == pytest.approx(1)


def test_unqover_takes_text_to_text_models(tmp_path, t5):
    result = _run(tmp_path / "run", "unqover", model=t5, config="religion", limit=20)
    assert 0 <= result.scores["sets"]["religion"]["mu"] <= 1


# What cannot be is refused.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"options": {"mode": "write"}}, "mode is 'write'; give likelihood or generate"),
        ({"options": {"samples": "3"}}, "samples is for written answers; add --option mode=generate"),
        ({"options": {"mode": "generate", "samples": "many"}}, "samples is 'many'; give a whole number"),
        ({"options": {"mode": "generate"}, "norm": "token"}, "norm 'token' does not fit"),
        ({"norm": "released"}, "norm 'released' does not fit"),
        ({"format": "pair"}, "reads prompts"),
        ({"fixes": True}, "use fixes with the source official"),
        ({"config": "man_is_to_surgen"}, "did you mean 'man_is_to_surgeon'"),
    ],
)
def test_wrong_arguments_are_refused(tmp_path, llama, arguments, message):
    with pytest.raises(QabiasError, match=message):
        _run(tmp_path / "run", model=llama, limit=8, **arguments)


def test_runs_of_other_questions_are_not_compared(tmp_path):
    for name, limit in (("one", 20), ("two", 40)):
        _run(tmp_path / name, model="baseline:oracle", limit=limit)
    with pytest.raises(QabiasError, match=r"measured different questions \(limit"):
        compare([tmp_path / "one", tmp_path / "two"])
    with pytest.raises(QabiasError, match="at least two"):
        read_runs([tmp_path / "one"])
    with pytest.raises(QabiasError, match="holds no run"):
        read_runs([tmp_path / "one", tmp_path / "three"])


def test_what_tells_signatures_apart():
    assert differing_fields(["a|b:1|c", "a|b:2|c"]) == ["b:1", "b:2"]
    assert differing_fields(["a|b", "a|b"]) == ["a|b", "a|b"]


def test_the_report_of_both_benchmarks_has_every_row(tmp_path):
    _run(tmp_path / "one", model="baseline:random")
    html = write_report_of(tmp_path / "one").read_text("utf-8")
    for title in [*_titles(tmp_path / "one"), "NAACL"]:
        assert str(escape(title)) in html
    assert {"bias_by_subtopic", "bias_by_domain", "labels_by_subtopic"} <= _names(tmp_path / "one")
    _run(tmp_path / "two", "bbq_nli", model="baseline:unknown", config="Age_nli")
    html = write_report_of(tmp_path / "two").read_text("utf-8")
    assert "undefined: no answers that could show a bias" in html
    assert "bias_by_name_order" in _names(tmp_path / "two")


def _names(folder):
    return {table.name for table in read_analysis(folder / "analysis.json").tables}


def _titles(folder):
    return [table.title for table in read_analysis(folder / "analysis.json").tables]
