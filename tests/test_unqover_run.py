"""UnQover through the whole pipeline: known responders, real heads, its options, and the norm `pair`."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from qabias import cli
from qabias.benchmarks import make_origin
from qabias.benchmarks.unqover import benchmark
from qabias.benchmarks.unqover.benchmark import BENCHMARK
from qabias.benchmarks.unqover.questions import ASKED, FORMATS, shares_of_pairs
from qabias.errors import QabiasError
from qabias.report.writing import write_report_of
from qabias.runs.arguments import RunArguments
from qabias.runs.question import load_examples
from qabias.runs.run import run
from qabias.scorers.base import OptionScores

from .saved_models import save
from .tiny_models import make_encoder, make_encoder_tokenizer

pytestmark = pytest.mark.usefixtures("one_thread")


def _run(folder, **arguments):
    return run(RunArguments(benchmark="unqover", **arguments), folder)


def _table(config="religion"):
    return BENCHMARK.load(config, BENCHMARK.origin("bundled", 0, False))


@pytest.fixture(scope="module")
def saved_models(tmp_path_factory):
    """Tiny BERT-style models with a head for spans and one for masks, saved as a user saves theirs."""
    heads = {"spans": "AutoModelForQuestionAnswering", "masks": "AutoModelForMaskedLM"}
    return {
        name: save(
            tmp_path_factory.mktemp(name),
            make_encoder("bert", auto_class, max_position_embeddings=256),
            make_encoder_tokenizer("wordpiece"),
        )
        for name, auto_class in heads.items()
    }


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        # At probabilities .9 and .1.
        ("first", {"delta": 0.8, "epsilon": 0.8, "mu": 0, "eta": 0}),
        ("negation-blind", {"delta": 0, "epsilon": 0.8, "mu": 0, "eta": 0}),
        ("consistent", {"delta": 0, "epsilon": 0}),
        ("uniform", {"delta": 0, "epsilon": 0, "mu": 0, "eta": 0}),
    ],
)
def test_known_responders_score_what_they_must(tmp_path, kind, expected):
    result = _run(tmp_path / "run", model=f"baseline:{kind}", config="religion", limit=700)
    scores = result.scores["sets"]["religion"]
    assert {name: scores[name] for name in expected} == pytest.approx(expected, abs=1e-6)
    assert (scores["n"], scores["n_left_out"]) == (700, 0)
    assert (scores["mu"] > 0) == (kind == "consistent")
    answers = pq.read_table(result.folder / "predictions")
    names = [f"s{subject}_{name}" for name in ASKED for subject in (1, 2)]
    assert answers.column_names == ["set", "example_id", *names]
    assert {str(answers.schema.field(name).type) for name in names} == {"float"}
    ids = answers["example_id"].to_pylist()
    assert ids == sorted(ids)


def test_every_score_is_that_of_its_subject_order_and_question():
    part = _table().slice(1234, 1)
    (row,) = part.to_pylist()
    requests = []

    def score(asked):
        requests.extend(asked)
        counts = np.ones(2, np.int32)
        return [OptionScores(np.log([(i + 1) / 100, (i + 1) / 200]), counts, counts) for i, _ in enumerate(asked)]

    scorer = SimpleNamespace(name="causal", model_signature="", score=score)
    answers = BENCHMARK.answer(part, scorer, FORMATS["qa"], "none")
    asked = {
        "12": (row["context_12"], row["question"]),
        "12_neg": (row["context_12"], row["negated_question"]),
        "21": (row["context_21"], row["question"]),
        "21_neg": (row["context_21"], row["negated_question"]),
    }
    for number, (name, (context, question)) in enumerate(asked.items()):
        assert requests[number].prefix == f"{context}\n\nQ: {question}\nA:"
        assert requests[number].options == (f" {row['answer1']}", f" {row['answer2']}")
        assert answers[f"s1_{name}"].to_pylist() == pytest.approx([(number + 1) / 100])
        assert answers[f"s2_{name}"].to_pylist() == pytest.approx([(number + 1) / 200])
    assert row["context_12"].index(row["answer1"]) < row["context_12"].index(row["answer2"])
    assert row["context_21"].index(row["answer2"]) < row["context_21"].index(row["answer1"])


def test_a_span_model_is_known_by_its_head_and_asked_for_spans(tmp_path, saved_models):
    model = saved_models["spans"]
    result = _run(tmp_path / "run", model=model, config="religion", limit=56)
    assert "|scorer:extractive_qa|" in result.signature
    answers = pq.read_table(result.folder / "predictions")
    scores = np.stack([answers[f"s{subject}_{name}"].to_numpy() for name in ASKED for subject in (1, 2)])
    assert ((scores > 0) & (scores < 1)).all()
    with pytest.raises(QabiasError, match="Remove _mlm"):
        _run(tmp_path / "wrong", model=model, config="religion_mlm")
    with pytest.raises(QabiasError, match="extractive_qa"):
        run(RunArguments(benchmark="bbq", model=model), tmp_path / "bbq")


def test_a_masked_model_leaves_out_subjects_that_it_does_not_know(tmp_path, saved_models):
    folder = saved_models["masks"]
    asked = RunArguments("unqover", folder, "religion_mlm", limit=1400)
    scores = run(asked, tmp_path / "run").scores["sets"]["religion_mlm"]
    # Of the 11 religions the tokenizer was trained on two: one pair of 55.
    known = {"Sikh", "Orthodox"}
    rows = load_examples(asked).table.select(["subject1", "subject2"]).to_pylist()
    n_known = sum(set(row.values()) == known for row in rows)
    assert 0 < n_known < 100
    assert (scores["n"], scores["n_left_out"], scores["n_subjects"]) == (n_known, 1400 - n_known, 2)
    assert len(scores["subjects_left_out"]) == 9
    assert not known & set(scores["subjects_left_out"])
    with pytest.raises(QabiasError, match="Add _mlm"):
        _run(tmp_path / "wrong", model=folder, config="religion")


def test_all_is_built_with_its_masked_forms(tmp_path, monkeypatch):
    """`make data` must not leave them out of the card."""
    monkeypatch.setattr(benchmark._folder, "write_folder", lambda output, origin, names: tuple(names))
    origin = BENCHMARK.origin("bundled", 0, False)
    assert len(BENCHMARK.write_folder(tmp_path, "all", origin)) == 8
    assert BENCHMARK.write_folder(tmp_path, "religion", origin) == ("religion",)


# Options of the benchmark


WRONG = [
    ({"options": {"subjects": "robert"}}, "Did you mean"),
    ({"options": {"subject": "roberta"}}, "Use option subjects"),
    ({"options": {"subjects": "roberta"}}, "use --source official"),
    ({"options": {"subjects": "roberta"}, "source": "official", "config": "all"}, "add _mlm"),
    ({"options": {"topk": "10"}}, "unknown option 'topk'"),
]


@pytest.mark.parametrize(("arguments", "token"), WRONG)
def test_a_wrong_choice_of_subjects_says_what_there_is(tmp_path, arguments, token):
    with pytest.raises(QabiasError, match=token):
        _run(tmp_path / "run", **{"model": "baseline:first", "config": "gender_mlm", **arguments})
    assert not (tmp_path / "run").exists()


def test_an_option_that_a_benchmark_lacks_is_refused_when_it_is_built(tmp_path):
    for name, known in (("unqover", "--option subjects"), ("bbq", "Remove --option")):
        words = ["build", name, "--option", "subject=bert", "--output", str(tmp_path / "no")]
        assert known in str(CliRunner().invoke(cli.app, words).exception)


def test_everyone_is_what_bundled_has(tmp_path):
    result = _run(tmp_path / "run", model="baseline:first", config="religion", limit=20)
    assert "|source:bundled@1|" in result.signature
    origin = make_origin(BENCHMARK, "bundled", 0, False, {"subjects": "all", "topk": "10"})
    assert origin.version == "bundled@1"
    with pytest.raises(QabiasError, match="religion has questions"):
        BENCHMARK.load("religion", origin)
    assert BENCHMARK.load("religion_mlm", origin).equals(_table("religion_mlm"))


# The norm `pair`


def test_a_pair_is_shared_out_and_is_even_where_there_is_nothing():
    nan = np.nan
    cases = [
        ((0.3, 0.1), (0.75, 0.25), 0),
        ((0.2, 0.0), (1.0, 0.0), 0),
        ((1e-300, 3e-300), (0.25, 0.75), 0),
        ((0.0, 0.0), (0.5, 0.5), 1),
        # A subject that is not known has no share, and the other one all.
        ((0.2, nan), (1.0, nan), 0),
        ((nan, 0.2), (nan, 1.0), 0),
        ((nan, nan), (nan, nan), 0),
    ]
    for pair, expected, even in cases:
        scores = np.full((1, 2, 4), 0.25)
        scores[0, :, 1] = pair
        shares, n_even = shares_of_pairs(scores)
        assert shares[0, :, 1] == pytest.approx(expected, nan_ok=True)
        assert n_even.tolist() == [even]
    for pair in ((0.0, nan), (nan, 0.0)):
        scores[0, :, 1] = pair
        shares, n_even = shares_of_pairs(scores)
        assert np.isnan(shares[0, :, 1]).tolist() == np.isnan(pair).tolist()
        assert n_even.tolist() == [0]


@pytest.mark.slow
def test_ten_likeliest_tokens_make_even_pairs_which_are_counted_and_told(saved_models, tmp_path):
    """Against shares computed here from the run without the norm."""
    asked = {
        "benchmark": "unqover",
        "model": saved_models["masks"],
        "config": "religion_mlm",
        "limit": 1400,
        "options": {"topk": "10"},
    }
    plain = run(RunArguments(**asked), tmp_path / "plain")
    paired = run(RunArguments(**asked, length_norm="pair"), tmp_path / "paired")
    given, shares = (pq.read_table(folder / "predictions") for folder in (plain.folder, paired.folder))
    n_even, n_known = 0, 0
    for row, of_row in zip(given.to_pylist(), shares.to_pylist(), strict=True):
        if any(row[f"s{subject}_{name}"] != row[f"s{subject}_{name}"] for subject in (1, 2) for name in ASKED):
            continue
        n_known += 1
        for name in ASKED:
            first, second = row[f"s1_{name}"], row[f"s2_{name}"]
            n_even += first == second == 0
            expected = (0.5, 0.5) if first == second == 0 else (first / (first + second), second / (first + second))
            assert (of_row[f"s1_{name}"], of_row[f"s2_{name}"]) == pytest.approx(expected, abs=1e-6)
    before, after = (of.scores["sets"]["religion_mlm"] for of in (plain, paired))
    assert n_even > 0
    assert (after["n"], after["n_even"]) == (before["n"], n_even) == (n_known, n_even)
    assert "n_even" not in before
    assert (after["n_left_out"], after["subjects_left_out"]) == (before["n_left_out"], before["subjects_left_out"])
    told = f"{n_even:,} of {4 * n_known:,} questions"
    assert BENCHMARK.sample_facts(paired.scores)["Even"].startswith(told)
    assert any(told in remark for remark in BENCHMARK.remarks(paired.scores) if isinstance(remark, str))
    assert told in write_report_of(paired.folder).read_text("utf-8")


def test_a_sample_has_all_templates_of_a_pair_and_attribute_so_that_eta_says_something():
    arguments = RunArguments("unqover", "baseline:random", "gender", limit=222).resolve()
    rows = load_examples(arguments).table.select(["subject1", "subject2", "attribute"]).to_pylist()
    counts = Counter(map(str, rows))
    assert sorted(counts.values()) == [2] + [4] * 55
