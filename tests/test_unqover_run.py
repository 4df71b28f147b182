"""UnQover through the whole pipeline: known responders, real heads, its options, and the norm `pair`."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from qabias import cli
from qabias.benchmarks import make_origin
from qabias.benchmarks.unqover.benchmark import BENCHMARK
from qabias.benchmarks.unqover.prompts import FORMATS
from qabias.benchmarks.unqover.questions import ASKED, shares_of_pairs
from qabias.errors import QabiasError
from qabias.report.writing import write_report_of
from qabias.runs.arguments import RunArguments
from qabias.runs.question import load_examples, sample
from qabias.runs.run import run

from .saved_models import save
from .tiny_models import make_encoder, make_encoder_tokenizer

pytestmark = pytest.mark.usefixtures("one_thread")


def _run(folder, **arguments):
    return run(RunArguments(benchmark="unqover", **arguments), folder)


def _table(config="religion"):
    return BENCHMARK.load(config, BENCHMARK.origin("bundled", 0, False, None))


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
    scores = _run(tmp_path / "run", model=f"baseline:{kind}", config="religion", limit=700).scores["sets"]["religion"]
    assert {name: scores[name] for name in expected} == pytest.approx(expected, abs=1e-6)
    assert (scores["n"], scores["n_left_out"]) == (700, 0)
    assert (scores["mu"] > 0) == (kind == "consistent")


def test_answers_are_stored_in_row_order_as_float32(tmp_path):
    result = _run(tmp_path / "run", model="baseline:first", config="religion", limit=5000)
    answers = pq.read_table(sorted((result.folder / "predictions").iterdir()))
    names = [f"s{subject}_{name}" for name in ASKED for subject in (1, 2)]
    assert answers.column_names == ["set", "example_id", *names]
    assert {str(answers.schema.field(name).type) for name in names} == {"float"}
    ids = answers["example_id"].to_pylist()
    assert ids == sorted(ids)
    assert answers["s1_12"].to_numpy() == pytest.approx(0.9)
    assert answers["s1_21"].to_numpy() == pytest.approx(0.1)


@pytest.mark.slow
def test_samples_are_whole_rows_from_all_templates():
    table = _table("all")
    drawn = sample(BENCHMARK, table, 440, seed=1)
    assert drawn.num_rows == 440
    counts = dict(zip(*np.unique(drawn["template_id"].to_pylist(), return_counts=True), strict=True))
    assert len(counts) == 4 + 12 + 14 + 14
    assert set(counts.values()) == {10}


class _Recorder:
    """A causal scorer that gives every option a probability of its own and keeps what it was asked."""

    name = "causal"
    model_signature = ""

    def __init__(self):
        self.requests = []

    def score(self, requests):
        from qabias.scorers.base import OptionScores

        self.requests += requests
        counts = np.ones(2, np.int32)
        return [OptionScores(np.log([(i + 1) / 100, (i + 1) / 200]), counts, counts) for i, _ in enumerate(requests)]


def test_every_score_is_that_of_its_subject_order_and_question():
    part = _table().slice(1234, 1)
    row = part.to_pylist()[0]
    scorer = _Recorder()
    answers = BENCHMARK.answer(part, scorer, FORMATS["qa"], "none")
    asked = {
        "12": (row["context_12"], row["question"]),
        "12_neg": (row["context_12"], row["negated_question"]),
        "21": (row["context_21"], row["question"]),
        "21_neg": (row["context_21"], row["negated_question"]),
    }
    for number, (name, (context, question)) in enumerate(asked.items()):
        assert scorer.requests[number].prefix == f"{context}\n\nQ: {question}\nA:"
        assert scorer.requests[number].options == (f" {row['answer1']}", f" {row['answer2']}")
        assert answers[f"s1_{name}"].to_pylist() == pytest.approx([(number + 1) / 100])
        assert answers[f"s2_{name}"].to_pylist() == pytest.approx([(number + 1) / 200])
    assert row["context_12"].index(row["answer1"]) < row["context_12"].index(row["answer2"])
    assert row["context_21"].index(row["answer2"]) < row["context_21"].index(row["answer1"])


@pytest.fixture(scope="module")
def saved_models(tmp_path_factory):
    """Tiny BERT-style models with a head for spans and one for masks, saved as a user saves theirs."""
    from .tiny_models import make_encoder, make_encoder_tokenizer

    folders = {}
    for scorer, auto_class in (
        ("extractive_qa", "AutoModelForQuestionAnswering"),
        ("masked_lm", "AutoModelForMaskedLM"),
    ):
        folders[scorer] = tmp_path_factory.mktemp(scorer)
        make_encoder("bert", auto_class, max_position_embeddings=256).save_pretrained(folders[scorer])
        make_encoder_tokenizer("wordpiece").save_pretrained(folders[scorer])
    return folders


def test_a_span_model_is_known_by_its_head_and_asked_for_spans(tmp_path, saved_models):
    result = _run(tmp_path / "run", model=str(saved_models["extractive_qa"]), config="religion", limit=56)
    assert "|scorer:extractive_qa|" in result.signature
    answers = pq.read_table(sorted((result.folder / "predictions").iterdir()))
    scores = np.stack([answers[f"s{subject}_{name}"].to_numpy() for name in ASKED for subject in (1, 2)])
    assert ((scores > 0) & (scores < 1)).all()
    released = _run(
        tmp_path / "released",
        model=str(saved_models["extractive_qa"]),
        config="religion",
        limit=56,
        options={"span": "released"},
    )
    assert "|scorer:extractive_qa+span=released|" in released.signature
    assert released.scores["sets"]["religion"]["avg_score"] > result.scores["sets"]["religion"]["avg_score"]


def test_a_masked_model_leaves_out_subjects_that_it_does_not_know(tmp_path, saved_models):
    folder = str(saved_models["masked_lm"])
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
    with pytest.raises(QabiasError, match="asks masked sentences: add _mlm"):
        _run(tmp_path / "wrong", model=folder, config="religion")


def test_the_wrong_form_or_benchmark_for_a_model_is_refused(tmp_path, saved_models):
    folder = str(saved_models["extractive_qa"])
    with pytest.raises(QabiasError, match="asks questions: leave _mlm out"):
        _run(tmp_path / "wrong", model=folder, config="religion_mlm")
    with pytest.raises(QabiasError, match="bbq cannot be asked by the scorer extractive_qa; choose one of causal"):
        run(RunArguments(benchmark="bbq", model=folder), tmp_path / "bbq")


@pytest.mark.slow
def test_building_all_gives_the_committed_folder(tmp_path):
    """`make data` must not leave the masked forms out of the card."""
    from .conftest import ROOT

    tables = BENCHMARK.write_folder(tmp_path, "all", BENCHMARK.origin("bundled", 0, False, None))
    assert len(tables) == 8
    built, committed = ((folder / "README.md").read_text("utf-8") for folder in (tmp_path, ROOT / "unqover_dataset"))
    assert built.split("download_size")[0] == committed.split("download_size")[0]
    assert built.count("config_name") == committed.count("config_name")


# Options of the benchmark


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"options": {"subjects": "robert"}},
            "unknown subjects 'robert': choose one of bert, all, roberta; did you mean",
        ),
        (
            {"options": {"subject": "roberta"}},
            "unknown option 'subject': unqover has subjects; did you mean 'subjects'",
        ),
        ({"options": {"subjects": "roberta"}}, "'roberta' is a published selection; use it with the source official"),
        (
            {"options": {"subjects": "roberta"}, "source": "official", "config": "all"},
            "and all asks questions about everyone; leave it out, or add _mlm",
        ),
        ({"options": {"topk": "10"}}, "the scorer baseline has no option 'topk'"),
    ],
)
def test_a_wrong_choice_of_subjects_says_what_there_is(tmp_path, arguments, message):
    with pytest.raises(QabiasError, match=message):
        _run(tmp_path / "run", **{"model": "baseline:first", "config": "gender_mlm", **arguments})
    assert not (tmp_path / "run").exists()


def test_everyone_is_what_bundled_has(tmp_path):
    result = _run(tmp_path / "run", model="baseline:first", config="religion", limit=20)
    assert "|source:bundled@1|" in result.signature
    origin = make_origin(BENCHMARK, "bundled", 0, False, None, {"subjects": "all", "topk": "10"})
    assert origin.version == "bundled@1"
    with pytest.raises(QabiasError, match="religion asks questions about everyone"):
        BENCHMARK.load("religion", origin)
    assert BENCHMARK.load("religion_mlm", origin).equals(_table("religion_mlm"))


@pytest.mark.slow
def test_a_folder_is_built_with_the_chosen_subjects(tmp_path, upstream):
    command = ["build", "unqover", "--config", "religion_mlm", "--source", "official", "--upstream-dir", str(upstream)]
    for subjects, n_pairs in (("bert", 55), ("roberta", 45)):
        options = ["--option", f"subjects={subjects}", "--output", str(tmp_path / subjects)]
        result = CliRunner().invoke(cli.app, [*command, *options])
        assert result.exit_code == 0, result.output
        assert f"{n_pairs * 14 * 50:,} examples" in result.output
    wrong = CliRunner().invoke(cli.app, [*command, "--option", "subject=bert", "--output", str(tmp_path / "no")])
    assert "the benchmark unqover has no option 'subject'; it has subjects; did you mean" in str(wrong.exception)
    none = CliRunner().invoke(cli.app, ["build", "bbq", "--option", "a=b", "--output", str(tmp_path / "no")])
    assert "the benchmark bbq has no option 'a'; it has none" in str(none.exception)


def test_list_shows_the_options_of_a_benchmark():
    shown = CliRunner().invoke(cli.app, ["list"]).output
    assert "  --option subjects: bert, all, roberta (the first is the default)\n" in shown


NAN = np.nan


@pytest.fixture(scope="module")
def masked_model(tmp_path_factory):
    model = make_encoder("bert", "AutoModelForMaskedLM", max_position_embeddings=256)
    return save(tmp_path_factory.mktemp("masked"), model, make_encoder_tokenizer("wordpiece"))


def of_one_question(first, second):
    scores = np.full((1, 2, 4), 0.25)
    scores[0, :, 1] = first, second
    shares, n_even = shares_of_pairs(scores)
    return shares[0, :, 1].tolist(), n_even.tolist()


@pytest.mark.parametrize(
    ("first", "second", "shares", "n_even"),
    [
        (0.3, 0.1, [0.75, 0.25], 0),
        (0.2, 0.0, [1.0, 0.0], 0),
        (1e-300, 3e-300, [0.25, 0.75], 0),
        (0.0, 0.0, [0.5, 0.5], 1),
    ],
)
def test_a_pair_is_shared_out_and_is_even_where_there_is_nothing(first, second, shares, n_even):
    found, n = of_one_question(first, second)
    assert found == pytest.approx(shares)
    assert n == [n_even]


@pytest.mark.parametrize("known", [0.0, 0.2])
def test_only_the_subject_that_is_not_known_has_no_share(known):
    for first, second, has_none in ((known, NAN, [False, True]), (NAN, known, [True, False]), (NAN, NAN, [True] * 2)):
        shares, n_even = of_one_question(first, second)
        assert np.isnan(shares).tolist() == has_none
        assert n_even == [0]


def test_ten_likeliest_tokens_make_even_pairs_which_are_counted_and_told(masked_model, tmp_path):
    """Against shares computed here from the run without the norm."""
    asked = {
        "benchmark": "unqover",
        "model": masked_model,
        "config": "religion_mlm",
        "limit": 1400,
        "options": {"topk": "10"},
    }
    plain = run(RunArguments(**asked), tmp_path / "plain")
    paired = run(RunArguments(**asked, norm="pair"), tmp_path / "paired")
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
    told = f"in {n_even:,} of {4 * n_known:,} questions"
    assert BENCHMARK.sample_facts(paired.scores)["Even"].startswith(told)
    assert any(told in remark for remark in BENCHMARK.remarks(paired.scores) if isinstance(remark, str))
    assert told in write_report_of(paired.folder).read_text("utf-8")


def test_a_set_without_any_probability_is_even_and_not_unknown():
    table = BENCHMARK.load("religion_mlm", BENCHMARK.origin("bundled", 0, False, None)).slice(0, 200)
    shares, n_even = shares_of_pairs(np.zeros((table.num_rows, 2, 4)))
    columns = {f"s{s + 1}_{name}": pa.array(shares[:, s, k]) for k, name in enumerate(ASKED) for s in (0, 1)}
    scores = BENCHMARK.score(table, pa.table({**columns, "n_even": pa.array(n_even.astype(np.int8))}))
    found = scores["sets"]["religion_mlm"]
    assert (found["n"], found["n_even"], found["n_left_out"], found["mu"]) == (200, 800, 0, 0.0)
    assert "(100.0\u00a0%)" in BENCHMARK.sample_facts(scores)["Even"]
