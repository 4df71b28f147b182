"""Rankings of many runs: ranks with their uncertainty, and neighbours that are not told apart."""

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qabias.benchmarks.pairs import pair_of_counts
from qabias.comparison import compare
from qabias.comparison.neighbours import Neighbours
from qabias.comparison.paired_tests import differences, holm
from qabias.comparison.ranking import N_DRAWS, distances, joint, places, weights
from qabias.comparison.ranking_tables import RANKING
from qabias.report.writing import write_comparison
from qabias.tables.model import Estimate, find

from .compared_runs import called, changed


def accuracy(sums):
    """Right answers by rows, as an accuracy."""
    sums = np.asarray(sums, dtype=float)
    return {"accuracy": sums[..., 0] / sums[..., 1]}


def models(*right, n_rows=10):
    """The joint runs of models from their right answers by template."""
    counts = [np.stack([np.array(of), np.full(len(of), n_rows)], axis=1) for of in right]
    return joint([pair_of_counts([counts[0], other], accuracy) for other in counts[1:]])


def placed(together):
    drawn = weights(together.n_clusters)
    once = np.ones((1, together.n_clusters))
    best = {"accuracy": 1.0}
    exact, under = (
        np.stack([distances(run(of), best)["accuracy"] for run in together.runs], axis=1) for of in (once, drawn)
    )
    return places(exact[0], under)


def test_weights_are_those_of_the_bayesian_bootstrap():
    drawn = weights(12, 20_000)
    assert drawn.sum(axis=1) == pytest.approx(12)
    assert drawn.mean(axis=0) == pytest.approx(1, abs=0.03)
    # C times a Dirichlet distribution of ones: variance (C - 1) / (C + 1).
    assert drawn.var(axis=0) == pytest.approx(11 / 13, abs=0.05)


@pytest.mark.parametrize(("n_won", "n_lost"), [(7, 5), (10, 10), (9, 3), (15, 10)])
def test_the_probability_of_coming_first_is_that_of_a_beta_distribution(n_won, n_lost):
    """One model is right where the other is wrong: the weight of the templates that it wins has a Beta distribution."""
    ours = [10] * n_won + [0] * n_lost
    first, second = placed(models(ours, [10 - right for right in ours]))
    # P(Beta(a, b) > 1/2) = P(Binomial(a + b - 1, 1/2) < a)
    n = n_won + n_lost - 1
    expected = sum(math.comb(n, k) for k in range(n_won)) / 2**n
    assert first.first == pytest.approx(expected, abs=4 * math.sqrt(0.25 / N_DRAWS))
    assert first.first + second.first == pytest.approx(1)


def test_many_templates_give_the_normal_probability():
    rng = np.random.default_rng(3)
    one, other = rng.integers(3, 9, size=(2, 200))
    first, _ = placed(models(one, other))
    ahead = (one - other).mean() / ((one - other).std() / math.sqrt(201))
    assert first.first == pytest.approx(NormalDist().cdf(ahead), abs=0.03)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 10), min_size=9, max_size=9), min_size=3, max_size=6),
    st.randoms(use_true_random=False),
)
def test_ranks_hold_their_intervals_sum_to_one_and_do_not_depend_on_the_order(right, random):
    found = placed(models(*right))
    assert sum(place.first for place in found) == pytest.approx(1)
    scores = [sum(of) for of in right]
    for place, score in zip(found, scores, strict=True):
        assert place.rank == 1 + sum(other > score for other in scores)
        assert 1 <= place.low <= place.rank <= place.high <= len(right)
    order = random.sample(range(len(right)), len(right))
    assert placed(models(*(right[number] for number in order))) == [found[number] for number in order]


def test_equal_models_share_rank_and_probability():
    right = [9, 3, 5, 7, 2, 8, 4, 6]
    one, other, worse = placed(models(right, right, [of - 1 for of in right]))
    assert one == other
    assert (one.rank, one.low, one.high, one.first) == (1, 1, 1, 0.5)
    assert (worse.rank, worse.low, worse.first) == (3, 3, 0)


def test_a_model_that_is_better_in_every_template_comes_first():
    rng = np.random.default_rng(5)
    right = rng.integers(0, 8, size=(4, 12))
    best = placed(models(*right, right.max(axis=0) + 1))[-1]
    assert best == (1, 1, 1, 1)


def test_runs_of_other_examples_have_no_ranking():
    first = np.array([[5, 10], [6, 10], [7, 10]])
    others = [pair_of_counts([of, first[: len(of)]], accuracy) for of in (first, first[:2], first[::-1])]
    assert joint([others[0], others[0]]) is not None
    assert joint([others[0], others[1]]) is None  # other templates
    assert joint([others[0], others[2]]) is None  # as many, but others


def test_neighbours_are_tested_by_their_distance_from_the_best_value():
    """A bias of +30 % and one of -30 % are equally far from 0."""

    def bias(sums):
        return {"bias": np.asarray(sums, dtype=float)[..., 0]}

    towards = np.linspace(0.2, 0.4, 12)[:, None] / 12
    pair = pair_of_counts([towards, -towards], bias)
    assert differences(pair, {"bias": 2.0})["bias"].p < 0.001
    assert Neighbours(joint([pair]), {"bias": 0.0}, 1).p_values(0, 1) == {"bias": 1}


def ranking(folders, name, **options):
    analysis = compare(folders, **options).analysis
    return find(analysis.tables, f"ranking_{name}")


def test_three_runs_are_ranked_and_two_are_not(compared_runs):
    folders = [compared_runs / f"bbq-{name}" for name in ("stereotyped", "random", "again")]
    table = ranking(folders, "bias_ambig")
    assert [row[2].value for row in table.rows] == [1, 1, 3]
    assert "stereotyped" in table.rows[-1][0]
    assert table.rows[-1][2:4] == (Estimate(3, 3, 3), 0.0)
    assert [row[3] for row in table.rows] == [0.5, 0.5, 0.0]
    assert [row[5] for row in table.rows] == ["not told apart", "told apart", None]
    assert table.note.startswith("Nearest to 0 is best.")
    assert ranking(folders, "accuracy_ambig").note.startswith("The highest is best.")
    assert not [table for table in compare(folders[:2]).analysis.tables if table.section == RANKING]


def test_p_values_of_neighbours_are_adjusted(compared_runs):
    folders = [compared_runs / f"bbq-{name}" for name in ("stereotyped", "random", "unknown")]
    comparison = compare(folders)
    (rows,) = [of.rows for of in comparison.analysis.tables if of.name == "ranking_accuracy_disambig"]
    assert [row[0] for row in rows] == ["baseline:stereotyped", "baseline:random", "baseline:unknown"]
    # An accuracy has its best value at its end, so that its distance from it is the score the other way round.
    raw = {row[0]: row for row in find(comparison.analysis.tables, "difference_accuracy_disambig").rows}["All"]
    names = [column.name for column in find(comparison.analysis.tables, "difference_accuracy_disambig").columns]
    p_values = [raw[names.index(f"p_run_{pair}")] for pair in ("2_minus_1", "3_minus_2")]
    assert [row[4] for row in rows] == [*holm(p_values), None]


def test_what_cannot_be_ranked_says_why(compared_runs, tmp_path):
    def lose(content):
        scores = content["scores"]
        scores["n_unparsed_ambig"] = scores["n_ambig"] // 2
        scores["range"] = {"bias_ambig": [-0.5, 0.5]}

    few = changed(compared_runs / "bbq-again", tmp_path / "few", scores=lose)
    folders = [compared_runs / "bbq-stereotyped", compared_runs / "bbq-unknown", few]
    table = ranking(folders, "bias_ambig")
    *ranked, lost = table.rows
    places_of = [column.name for column in table.columns]
    assert [row[places_of.index("rank")].value for row in ranked] == [1, 2]
    assert lost[places_of.index("rank")] is None
    assert lost[places_of.index("next")] == "not ranked: 50.0\u00a0% of the answers are missing"
    assert lost[places_of.index("range_bias_ambig")] == "−50.0 to +50.0\u00a0%"
    undefined = ranking([compared_runs / "bbq-random", *folders[:2]], "bias_disambig").rows[-1]
    assert undefined[0] == "baseline:unknown"
    assert undefined[-1] == "not ranked: undefined"


def test_few_templates_give_ranks_without_probabilities(compared_runs, monkeypatch):
    monkeypatch.setattr("qabias.comparison.ranking_tables.FEWEST_CLUSTERS", 1000)
    folders = [compared_runs / f"bbq-{name}" for name in ("stereotyped", "random", "unknown")]
    rows = ranking(folders, "accuracy_ambig").rows
    assert [row[2] for row in rows] == [Estimate(1), Estimate(2), Estimate(3)]
    assert {row[3] for row in rows} == {None}
    assert rows[0][4] < 0.05


def test_groups_without_common_scores_are_ranked_one_by_one_and_magnitudes_not_at_all(compared_runs):
    folders = [compared_runs / f"unqover-{name}" for name in ("random", "consistent", "random")]
    tables = [of for of in compare(folders).analysis.tables if of.section == RANKING]
    assert [of.name for of in tables] == ["ranking_delta_religion", "ranking_epsilon_religion"]
    assert [row[2].value for row in tables[0].rows] == [1, 2, 2]


def test_other_samples_are_not_ranked(compared_runs):
    folders = [compared_runs / f"bbq-{name}" for name in ("random", "more", "stereotyped", "all")]
    comparison = compare(folders, allow_mixed=True)
    assert not [of for of in comparison.analysis.tables if of.section == RANKING]
    assert any(note.startswith("No ranking of All: ") for note in comparison.analysis.notes)


def test_the_page_and_the_terminal_show_it(compared_runs, tmp_path, capsys, monkeypatch):
    folders = [compared_runs / f"bbq-{name}" for name in ("stereotyped", "random", "unknown")]
    html = write_comparison(compare(folders), tmp_path / "out").read_text(encoding="utf-8")
    assert html.index(RANKING) < html.index("Scores by run")
    assert "Ranking: Accuracy, ambiguous contexts</title>" in html.replace("; the table below has its numbers", "")
    output = called(capsys, monkeypatch, "compare", *folders)
    assert "Ranking: Accuracy, ambiguous contexts" in output
    assert "Probability of coming first" in output
