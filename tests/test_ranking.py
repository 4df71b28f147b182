"""Rankings of many runs: ranks with their uncertainty, and neighbours that are not told apart."""

import numpy as np

from qabias.benchmarks.pairs import mean_of_pairs, pair_of_counts
from qabias.comparison import compare, ranking_tests
from qabias.comparison.paired_tests import N_PERMUTATIONS, differences, holm
from qabias.comparison.ranking_tests import RANKING, NeighborTests, joint, ranks
from qabias.report.writing import write_comparison
from qabias.tables.model import find

from .compared_runs import called, changed


def mean(sums):
    """The mean of the answers to the rows of a cluster."""
    sums = np.asarray(sums, dtype=float)
    return {"mean": sums[..., 0] / sums[..., 1]}


def runs_of(*sums):
    """The joint runs of models from the sums of ten answers to each cluster."""
    counts = [np.stack([np.asarray(of_run, dtype=float), np.full(len(of_run), 10.0)], axis=1) for of_run in sums]
    return joint([pair_of_counts([counts[0], other], mean) for other in counts[1:]])


def test_equal_values_share_a_rank():
    assert ranks([0.3, 0.1 + 0.2, 0.1, 0.5]) == [2, 2, 1, 4]


def test_runs_of_other_examples_have_no_ranking():
    first = np.array([[5, 10], [6, 10], [7, 10]])
    others = [pair_of_counts([of, first[: len(of)]], mean) for of in (first, first[:2], first[::-1])]
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
    assert NeighborTests(joint([pair]), {"bias": 0.0}, 1).p_values(0, 1) == {"bias": 1}


def test_a_pair_of_two_other_runs_is_made_of_their_counts():
    rng = np.random.default_rng(1)
    sums = rng.integers(0, 10, (3, 9))
    drawn, kept = rng.random((4, 9)), rng.integers(0, 2, (4, 9)).astype(float)
    found = runs_of(*sums).pair(1, 2)
    expected = runs_of(*sums[1:]).pair(0, 1)
    for ours, theirs in ((found.first(drawn), expected.first(drawn)), (found.second(drawn), expected.second(drawn))):
        np.testing.assert_array_equal(ours["mean"], theirs["mean"])
    for ours, theirs in zip(found.exchanged(kept), expected.exchanged(kept), strict=True):
        np.testing.assert_array_equal(ours["mean"], theirs["mean"])


def test_a_mean_of_wordings_is_made_of_the_counts_of_all():
    rng = np.random.default_rng(2)
    wordings = rng.integers(0, 10, (2, 2, 6, 1)) * 1.0

    def score(sums):
        return {"sum": np.asarray(sums)[..., 0]}

    pair = mean_of_pairs([pair_of_counts(list(of), score) for of in wordings])
    turned = pair.again(pair.counted[1], pair.counted[0])
    once = np.ones((1, 6))
    assert turned.first(once)["sum"] == pair.second(once)["sum"] == wordings[:, 1].sum(axis=(1, 2)).mean()


def test_with_few_tests_p_values_are_those_of_the_differences():
    rng = np.random.default_rng(3)
    sums = rng.integers(0, 10, (2, 20))
    tested = NeighborTests(runs_of(*sums), {"mean": 1.0}, 5).p_values(0, 1)["mean"]
    pair = runs_of(*sums).pair(0, 1)
    assert tested == differences(pair, {"mean": 1.0})["mean"].p


def test_among_a_thousand_neighbours_those_that_differ_are_told_apart():
    """10,000 exchanges give no p-value below 0.0001, which adjusted for 999 tests is 0.1."""
    better = runs_of([4] * 30, [8] * 30)
    adjusted = [NeighborTests(better, {"mean": 1.0}, n).p_values(0, 1)["mean"] * n for n in (1, 250, 999, 5000)]
    assert adjusted[0] == 1 / (N_PERMUTATIONS + 1)
    assert all(p <= 0.0251 for p in adjusted)
    assert holm([adjusted[2] / 999, *[1.0] * 998])[0] < 0.05


def test_a_small_p_value_that_is_computed_anew_is_as_rare_as_it_says(monkeypatch):
    monkeypatch.setattr(ranking_tests, "_SMALL", 0.3)
    monkeypatch.setattr(ranking_tests, "_N_FIRST", 100)
    monkeypatch.setattr(ranking_tests, "N_PERMUTATIONS", 50)
    rng = np.random.default_rng(4)
    found = []
    for _ in range(400):
        cluster = rng.normal(5, 3, 20)
        one, other = cluster + rng.normal(0, 1, (2, 20))
        found.append(NeighborTests(runs_of(one, other), {"mean": 10.0}, 5).p_values(0, 1)["mean"])
    for share in (0.05, 0.1, 0.3):
        assert np.mean(np.array(found) <= share) <= share + 3 * np.sqrt(share * (1 - share) / 400)


def ranking(folders, name, **options):
    analysis = compare(folders, **options).analysis
    return find(analysis.tables, f"ranking_{name}")


def test_three_runs_are_ranked_and_two_are_not(compared_runs):
    folders = [compared_runs / f"bbq-{name}" for name in ("stereotyped", "random", "again")]
    table = ranking(folders, "bias_ambig")
    assert [row[2] for row in table.rows] == [1, 1, 3]
    assert "stereotyped" in table.rows[-1][0]
    assert [row[4] for row in table.rows] == ["not told apart", "told apart", None]
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
    assert [row[3] for row in rows] == [*holm(p_values), None]


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
    assert [row[places_of.index("rank")] for row in ranked] == [1, 2]
    assert lost[places_of.index("rank")] is None
    assert lost[places_of.index("next")] == "not ranked: 50.0\u00a0% of the answers are missing"
    assert lost[places_of.index("range_bias_ambig")] == "−50.0 to +50.0\u00a0%"
    undefined = ranking([compared_runs / "bbq-random", *folders[:2]], "bias_disambig").rows[-1]
    assert undefined[0] == "baseline:unknown"
    assert undefined[-1] == "not ranked: undefined"


def test_groups_without_common_scores_are_ranked_one_by_one_and_magnitudes_not_at_all(compared_runs):
    folders = [compared_runs / f"unqover-{name}" for name in ("random", "consistent", "random")]
    tables = [of for of in compare(folders).analysis.tables if of.section == RANKING]
    assert [of.name for of in tables] == ["ranking_delta_religion", "ranking_epsilon_religion"]
    assert [row[2] for row in tables[0].rows] == [1, 2, 2]


def test_other_samples_are_not_ranked(compared_runs):
    folders = [compared_runs / f"bbq-{name}" for name in ("random", "more", "stereotyped", "all")]
    comparison = compare(folders, allow_mixed=True)
    assert not [of for of in comparison.analysis.tables if of.section == RANKING]
    assert any(note.startswith("No ranking of All: ") for note in comparison.analysis.notes)


def test_the_page_and_the_terminal_show_it(compared_runs, tmp_path, capsys, monkeypatch):
    folders = [compared_runs / f"bbq-{name}" for name in ("stereotyped", "random", "unknown")]
    html = write_comparison(compare(folders), tmp_path / "out").read_text(encoding="utf-8")
    assert html.index(RANKING) < html.index("Scores by run")
    output = called(capsys, monkeypatch, "compare", *folders)
    assert "Ranking: Accuracy, ambiguous contexts" in output
