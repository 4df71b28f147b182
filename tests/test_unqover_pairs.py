"""The norm `pair` of UnQover, the share of each subject in what the two have: also where they have nothing."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qabias.benchmarks import load_benchmark
from qabias.benchmarks.unqover.questions import ASKED, shares_of_pairs
from qabias.report.writing import write_report_of
from qabias.runs.arguments import RunArguments
from qabias.runs.run import run
from qabias.runs.scored import read_scored

from .run_parts import parts_of, rewrite
from .saved_models import save
from .tiny_models import make_encoder, make_encoder_tokenizer

pytestmark = pytest.mark.usefixtures("one_thread")

NAN = np.nan
BENCHMARK = load_benchmark("unqover")


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
        "limit": 2800,
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


def test_a_run_that_an_older_version_began_is_finished(monkeypatch, tmp_path):
    """It counted no questions in which neither subject has a probability."""
    arguments = RunArguments("unqover", "baseline:random", "religion", limit=200, norm="pair")
    monkeypatch.setattr(type(BENCHMARK), "units_per_part", lambda self, kind: 64)
    begun = run(arguments, tmp_path / "run").folder
    rewrite(begun, lambda table: table.drop_columns(["n_even"]) if "n_even" in table.column_names else table)
    first, second, *_ = parts_of(begun)
    expected = read_scored(begun).scores
    second.unlink()
    again = run(arguments, begun)
    assert ["n_even" in pq.read_schema(part).names for part in (first, second)] == [False, True]
    assert again.scores == expected
