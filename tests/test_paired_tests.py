"""The statistics of comparisons against exhaustive and independent computation."""

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qabias.benchmarks import load_benchmark
from qabias.benchmarks.pairs import pair_of_counts
from qabias.comparison.paired import differences, p_value
from qabias.runs.arguments import RunArguments
from qabias.runs.means import measures_of
from qabias.runs.question import load_examples
from qabias.scores.judge import holm
from qabias.scores.score import Score
from qabias.share.metrics.bbq import scores as bbq_scores
from qabias.share.metrics.unqover.scores import SCORE_COLUMNS
from qabias.support.arrow import column_codes

MEAN = {"mean": 2.0}
"""The score that is compared, and how far apart two of it can be."""


def mean(counts):
    """The mean of answers from their sum and number, columns of the last axis."""
    counts = np.asarray(counts, dtype=np.float64)
    return {"mean": counts[..., 0] / counts[..., 1]}


def pair_of(first, second):
    """Two runs from the sums of clusters of ten answers each."""
    return pair_of_counts(
        [np.stack([np.asarray(sums), np.full(len(sums), 10)], axis=1) for sums in (first, second)], mean
    )


# p-values


def test_the_exact_p_value_is_that_of_all_exchanges():
    first, second = [1, 4, 2, 0, 3], [5, 3, 6, 2, 9]
    found = differences(pair_of(first, second), MEAN)["mean"]
    gaps = [b - a for a, b in zip(first, second, strict=True)]
    totals = [
        sum(sign * gap for sign, gap in zip(signs, gaps, strict=True)) for signs in itertools.product((1, -1), repeat=5)
    ]
    assert found.value == pytest.approx(sum(gaps) / 50, abs=1e-15)
    assert found.p == sum(abs(total) >= sum(gaps) for total in totals) / 32


def test_random_exchanges_count_the_observed_difference():
    assert p_value(5.0, np.array([1.0, -2.0, 3.0]), exact=False) == 1 / 4
    assert p_value(3.0, np.array([1.0, -3.0, 3.0, np.nan]), exact=False) == 3 / 4
    assert differences(pair_of([0] * 40, [10] * 40), MEAN)["mean"].p == 1 / 10_001


# Properties

SUMS = st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), min_size=2, max_size=8)


@given(SUMS)
@settings(max_examples=30, deadline=None)
def test_exchanging_the_runs_turns_the_difference_round_and_the_same_run_has_none(sums):
    first, second = zip(*sums, strict=True)
    one, other = (differences(pair_of(*runs), MEAN)["mean"] for runs in ((first, second), (second, first)))
    assert one.value == -other.value
    assert one.p == other.p
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low), abs=1e-12)
    same = differences(pair_of(first, first), MEAN)["mean"]
    assert (same.value, same.p) == (0.0, 1.0)
    assert same.low == pytest.approx(-same.high, abs=1e-12)
    assert same.high > 0  # few clusters do not prove that no other would tell the models apart


def test_a_single_cluster_has_no_interval_and_an_undefined_score_no_difference():
    found = differences(pair_of([3], [8]), MEAN)["mean"]
    assert (found.low, found.high, found.p) == (None, None, 1.0)

    def undefined(weights):
        return {"mean": np.full(len(weights), np.nan)}

    pair = pair_of_counts([np.ones((3, 1))] * 2, undefined)
    assert differences(pair, MEAN)["mean"] == Score(None)


def test_few_differing_clusters_leave_the_detectable_effect_unknown():
    first = [3, 5] * 10
    for n, reason in ((0, ""), (1, "the runs differ in only 1 of 20"), (4, "the runs differ in only 4 of 20"), (8, "")):
        one = differences(pair_of(first, [value + 1 for value in first[:n]] + first[n:]), MEAN)["mean"]
        assert (one.reason, one.mde is None) == (reason, reason != "")
    assert not differences(pair_of(first[:4], [value + 1 for value in first[:4]]), MEAN)["mean"].reason  # all differ


def test_few_clusters_have_no_small_p_value():
    for n in range(1, 6):
        assert differences(pair_of([0] * n, [10] * n), MEAN)["mean"].p == 2.0 ** (1 - n)


def test_holm_by_hand():
    # Sorted 0.01, 0.02, 0.03, 0.04 times 4, 3, 2, 1 is 0.04, 0.06, 0.06, 0.04; never falling: the last is 0.06 too.
    assert holm([0.04, 0.01, None, 0.03, 0.02]) == pytest.approx([0.06, 0.04, None, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


# The metrics' own scores of exchanged answers

LOADED = {"bbq": "Gender_identity", "bbnli": "gender", "bbq_nli": "Age_nli", "bbq_qa": "Age_qa"}
LOADED |= {"unqover": "religion"}


def loaded(name, limit=120):
    """Examples of a benchmark, and the number of the cluster of every row."""
    table = load_examples(RunArguments(benchmark=name, config=LOADED[name], limit=limit)).table
    if name in ("bbq", "unqover"):  # templates in the order of the file
        return table, np.unique(column_codes(table["template_id"]), return_inverse=True)[1]
    columns = ("subtopic", "premise_id") if name == "bbnli" else ("category", "template_id")
    keys = list(zip(*(table[column].to_pylist() for column in columns), strict=True))
    place = {key: number for number, key in enumerate(sorted(set(keys)))}
    return table, np.array([place[key] for key in keys])


def random_answers(name, n, rng):
    if name != "unqover":
        return pa.table({"prediction": pa.array(rng.integers(-1, 3, n), pa.int8())})
    columns = SCORE_COLUMNS
    return pa.table({column: pa.array(rng.random(n), pa.float32()) for column in columns})


@pytest.mark.filterwarnings("ignore:bb")
@pytest.mark.parametrize("name", sorted(LOADED))
def test_exchanged_scores_are_those_of_exchanged_answers(name):
    rng = np.random.default_rng(2)
    table, cluster = loaded(name)
    ours, theirs = (random_answers(name, table.num_rows, rng) for _ in range(2))
    n = cluster.max() + 1
    kept = np.stack([np.ones(n), np.zeros(n), rng.integers(0, 2, n)]).astype(float)
    assert 0 < kept[2].sum() < n
    group = "religion" if name == "unqover" else "All"
    pair = load_benchmark(name).pair_up(table, ours, theirs)[group]
    assert pair.n_clusters == n
    found = pair.exchanged(kept)
    for turn, keeps in enumerate(kept.astype(bool)):
        for run_number, (one, other) in enumerate(((ours, theirs), (theirs, ours))):
            mask = pa.array(keeps[cluster])
            mixed = pa.table({column: pc.if_else(mask, one[column], other[column]) for column in one.column_names})
            expected = load_benchmark(name).score(table, mixed)
            expected = expected["sets"][group] if name == "unqover" else expected
            for measure in measures_of(load_benchmark(name)):
                assert found[run_number][measure.name][turn] == pytest.approx(expected[measure.name], abs=1e-9)
    once = np.ones((1, n))
    for measure in measures_of(load_benchmark(name)):
        turned = pair.again(pair.counted[1], pair.counted[0]).first(once)
        assert turned[measure.name][0] == pytest.approx(pair.second(once)[measure.name][0], abs=1e-12)
        for run_number, scores in enumerate((pair.first(once), pair.second(once))):
            assert found[run_number][measure.name][0] == pytest.approx(scores[measure.name][0], abs=1e-12)
            assert found[1 - run_number][measure.name][1] == pytest.approx(scores[measure.name][0], abs=1e-12)


def test_a_run_of_many_samples_weighs_no_more_than_one_of_a_single_sample():
    rng = np.random.default_rng(4)
    table, cluster = loaded("bbnli")
    single, other = (random_answers("bbnli", table.num_rows, rng) for _ in range(2))
    five = pa.table({"predictions": pa.array(np.repeat(single["prediction"].to_numpy()[:, None], 5, 1).tolist())})
    kept = rng.integers(0, 2, (20, cluster.max() + 1)).astype(float)
    plain, sampled = (
        load_benchmark("bbnli").pair_up(table, answers, other)["All"].exchanged(kept) for answers in (single, five)
    )
    for one, of_samples in zip(plain, sampled, strict=True):
        for measure in measures_of(load_benchmark("bbnli")):
            np.testing.assert_allclose(of_samples[measure.name], one[measure.name], atol=1e-12)


def test_an_exact_p_value_of_a_ratio_score_is_that_of_all_exchanges():
    rng = np.random.default_rng(3)
    clusters = np.repeat(np.arange(6), 8)
    unknown, target, other = np.zeros(48, int), np.ones(48, int), np.full(48, 2)
    biased = np.where(np.arange(48) % 2, target, other)
    ambiguous = np.zeros(48, bool)

    def count(answers):
        return bbq_scores.count(answers, unknown, target, biased, unknown, ambiguous, clusters, 6)

    def bias(answers):  # independent of the metric: +1, -1 and 0 of every answer
        return np.mean(np.where(answers == 0, 0, np.where(answers == biased, 1, -1)))

    one, two = rng.integers(0, 3, 48), np.where(rng.random(48) < 0.5, biased, 0)
    found = differences(pair_of_counts([count(one), count(two)], bbq_scores.scores_from_counts), {"bias_ambig": 2.0})
    observed = bias(two) - bias(one)
    as_far = 0
    for exchanged in itertools.product((False, True), repeat=6):
        mask = np.array(exchanged)[clusters]
        gap = bias(np.where(mask, one, two)) - bias(np.where(mask, two, one))
        as_far += abs(gap) >= abs(observed) - 1e-12
    assert found["bias_ambig"].value == pytest.approx(observed, abs=1e-12)
    assert found["bias_ambig"].p == as_far / 64


def test_a_large_difference_has_a_small_p_value_and_an_interval_that_covers_it():
    rng = np.random.default_rng(5)
    covered = []
    for _ in range(100):
        cluster = rng.normal(0, 3, 30)
        found = differences(pair_of(cluster, cluster + 2 + rng.normal(0, 1, 30)), MEAN)["mean"]
        covered.append(found.low <= 0.2 <= found.high)
        assert found.p < 0.001
    assert np.mean(covered) >= 0.85
