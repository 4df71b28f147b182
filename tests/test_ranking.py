"""Comparisons of three runs and more: ranks, neighbors without a detected difference, and many runs as rows."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qabias.benchmarks.pairs import mean_of_pairs, pair_of_counts
from qabias.comparison import compare, ranking_tests, tables
from qabias.comparison.paired import N_PERMUTATIONS, differences
from qabias.comparison.ranking_tests import RANKING, NeighborTests, joint, rank_ranges, ranks
from qabias.errors import QabiasError
from qabias.report.page import comparison_card
from qabias.report.writing import write_comparison
from qabias.scores.judge import holm
from qabias.tables.model import find, flat, read_analysis

from .kit.commands import called
from .kit.runs import cells, changed


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
    wordings = np.random.default_rng(2).integers(0, 10, (2, 2, 6, 1)) * 1.0

    def score(sums):
        return {"sum": np.asarray(sums)[..., 0]}

    pair = mean_of_pairs([pair_of_counts(list(one), score) for one in wordings])
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


@pytest.mark.slow
def test_three_runs_are_ranked_and_two_are_not(compared_runs, tmp_path):
    folders = [compared_runs / f"bbq-{name}" for name in ("stereotyped", "random", "again")]
    table = ranking(folders, "bias_ambig")
    assert [row[2] for row in table.rows] == [1, 1, 3]
    assert "stereotyped" in table.rows[-1][0]
    assert [row[-2] for row in table.rows] == ["not detected", "detected", None]
    assert [row[-1] for row in table.rows] == ["1 to 2 of 3", "1 to 2 of 3", "3 of 3"]
    assert "guesses" in table.rows[0][4]
    assert "Nearest to 0" in table.note
    assert "highest" in ranking(folders, "accuracy_ambig").note
    assert not [table for table in compare(folders[:2]).analysis.tables if table.section == RANKING]
    html = write_comparison(compare(folders), tmp_path / "out").read_text(encoding="utf-8")
    assert html.index(RANKING) < html.index("Scores by run")
    output = called("compare", "--full", *folders)
    assert "Ranking: Accuracy, ambiguous contexts" in output
    assert "Difference: Accuracy, ambiguous contexts" in output


def test_p_values_of_neighbours_are_adjusted(compared_runs):
    comparison = compare([compared_runs / f"bbq-{name}" for name in ("stereotyped", "random", "unknown")])
    rows = find(comparison.analysis.tables, "ranking_accuracy_disambig").rows
    assert [row[0] for row in rows] == ["baseline:stereotyped", "baseline:random", "baseline:unknown"]
    # An accuracy has its best value at its end, so that its distance from it is the score the other way round.
    difference = find(comparison.analysis.tables, "difference_accuracy_disambig")
    raw = cells(difference, "name")["All"]
    first, last, second = holm([raw[f"p_run_{pair}"] for pair in ("2_minus_1", "3_minus_1", "3_minus_2")])
    assert [row[3] for row in rows] == [first, second, None]
    assert last < 0.05


def test_what_cannot_be_ranked_says_why(compared_runs, tmp_path):
    few = changed(compared_runs / "bbq-again", tmp_path / "few", scores=lose_half)
    folders = [compared_runs / "bbq-stereotyped", compared_runs / "bbq-unknown", few]
    *ranked, lost = cells(ranking(folders, "bias_ambig"), "name").values()
    assert [row["rank"] for row in ranked] == [1, 2]
    assert lost["rank"] is None
    assert "50.0" in lost["next"]
    assert lost["range_bias_ambig"] == "−50.0 to +50.0\u00a0%"
    undefined = ranking([compared_runs / "bbq-random", *folders[:2]], "bias_disambig").rows[-1]
    assert undefined[0] == "baseline:unknown"
    assert undefined[-2:] == ("not ranked: undefined", None)


def test_groups_without_common_scores_are_ranked_one_by_one_and_magnitudes_not_at_all(compared_runs):
    folders = [compared_runs / f"unqover-{name}" for name in ("random", "consistent", "random")]
    tables = [table for table in compare(folders).analysis.tables if table.section == RANKING]
    assert [table.name for table in tables] == ["ranking_delta_religion", "ranking_epsilon_religion"]
    assert [row[2] for row in tables[0].rows] == [1, 2, 2]


BBQ = ("stereotyped", "random", "unknown")


@pytest.fixture
def two_are_many(monkeypatch):
    """Runs stand below each other from three on."""
    monkeypatch.setattr("qabias.comparison.MOST_BESIDE", 2)


def folders_of(compared_runs, benchmark, names):
    return [compared_runs / f"{benchmark}-{name}" for name in names]


def lose_half(content):
    """Half of the answers to ambiguous contexts are missing."""
    scores = content["scores"]
    scores["n_unparsed_ambig"] = scores["n_ambig"] // 2
    scores["range"] = {"bias_ambig": [-0.5, 0.5]}


@pytest.mark.parametrize(
    ("benchmark", "names"),
    [("bbq", BBQ), ("bbnli", ("stereotyped", "random", "random")), ("unqover", ("random", "consistent", "random"))],
)
def test_every_score_is_that_of_the_tables_side_by_side(compared_runs, benchmark, names, monkeypatch):
    folders = folders_of(compared_runs, benchmark, names)
    beside = compare(folders)
    assert beside.view.has_columns
    monkeypatch.setattr("qabias.comparison.MOST_BESIDE", 2)
    below = compare(folders)
    assert not below.view.has_columns
    assert below.names == beside.names
    for measure in beside.measures:
        ours, theirs = (cells(find(of.analysis.tables, measure.name)) for of in (below, beside))
        assert list(ours) == list(below.names)
        for run, scores in ours.items():
            scores.pop("Examples", None)
            assert scores == {group: row[run] for group, row in theirs.items()}
    rankings = [[(of.name, of.rows) for of in one.analysis.tables if of.section == RANKING] for one in (below, beside)]
    assert rankings[0] == rankings[1] != []
    assert below.headline == beside.headline


def test_there_are_no_figures_and_no_differences_and_a_note_says_so(compared_runs, two_are_many):
    comparison = compare(folders_of(compared_runs, "bbq", BBQ))
    for table in comparison.analysis.tables:
        assert table.figure is None
        assert not table.name.startswith("difference_")
    assert tables.MANY.format(n=3) in comparison.analysis.notes
    assert all("Sample: 200" in note for note in comparison.analysis.notes[1:])
    assert comparison.by_run == ()
    table = find(comparison.analysis.tables, "accuracy_ambig")
    assert table.columns[-1].title == "Examples"
    assert {row[-1] for row in table.rows} == {100}


def test_missing_answers_stand_beside_the_score(compared_runs, tmp_path, two_are_many):
    few = changed(compared_runs / "bbq-again", tmp_path / "few", scores=lose_half)
    table = flat(find(compare([*folders_of(compared_runs, "bbq", BBQ[:2]), few]).analysis.tables, "bias_ambig"))
    rows = list(cells(table).values())
    titles = [column.title for column in table.columns]
    assert titles.index("Possible, All") == titles.index("All") + 1
    assert [row["Possible, All"] for row in rows] == [None, None, "−50.0 to +50.0\u00a0%"]
    assert (rows[-1]["All"].low, rows[-1]["All"].high) == (None, None)
    assert "lack" in table.note


def test_a_note_of_several_runs_stands_once(compared_runs, tmp_path, two_are_many):
    def remark(content):
        content["notes"] = ["Cut."]

    folders = folders_of(compared_runs, "bbq", BBQ)
    copies = [changed(folder, tmp_path / folder.name, analysis=remark) for folder in folders]
    assert compare(copies).analysis.notes[-1] == "baseline:stereotyped, baseline:random and baseline:unknown: Cut."
    names = [f"run {number}" for number in range(1200)]
    assert tables.notes_by_run(names, [["Cut."]] * 1200) == ["1,200 runs (run 0, run 1, run 2, ...): Cut."]
    assert tables.notes_by_run(["one", "other"], [["A.", "B."], ["B."]]) == ["one: A.", "one and other: B."]


def test_many_runs_that_lack_answers_are_counted():
    notes = [f"run {number}" for number in range(400)]
    assert tables.missing_by_run(notes[:10]) == notes[:10]
    *first, last = tables.missing_by_run(notes)
    assert first == notes[:10]
    assert "390" in last


def test_many_runs_of_other_questions_are_refused_in_a_line_that_can_be_read(compared_runs):
    folders = folders_of(compared_runs, "bbq", (*BBQ * 20, "more"))
    with pytest.raises(QabiasError, match=r"59 more: '200', .*: '400'") as refused:
        compare(folders)
    assert len(str(refused.value)) < 700


@pytest.mark.parametrize("most_beside", [2, 30])
def test_other_samples_are_marked_and_not_ranked(compared_runs, monkeypatch, most_beside):
    monkeypatch.setattr("qabias.comparison.MOST_BESIDE", most_beside)
    folders = folders_of(compared_runs, "bbq", ("random", "more", "stereotyped", "all"))
    comparison = compare(folders, allow_mixed=True)
    assert comparison.view.has_columns == (most_beside != 2)
    assert comparison.analysis.notes[0].startswith("Caution: these runs also differ in config, limit")
    assert not [table for table in comparison.analysis.tables if table.section == RANKING]
    assert any(note.startswith("No ranking of All: ") for note in comparison.analysis.notes)
    assert "not asked" in find(comparison.analysis.tables, "accuracy_ambig").note


def test_the_page_has_all_runs_and_the_terminal_the_first_ones(
    compared_runs, tmp_path, capsys, monkeypatch, two_are_many
):
    folders = folders_of(compared_runs, "bbq", BBQ)
    comparison = compare(folders)
    html = write_comparison(comparison, tmp_path / "out").read_text(encoding="utf-8")
    assert "<dt>Run 1</dt>" not in html
    assert "<svg" not in html.split("<main", 1)[-1]
    assert all(name in html for name in comparison.names)
    written = find(read_analysis(tmp_path / "out" / "analysis.json").tables, "accuracy_ambig")
    assert [row[0] for row in written.rows] == list(comparison.names)
    monkeypatch.setattr("qabias.report.terminal.MOST_COMPARED", 2)
    output = called("compare", *folders, "--output", tmp_path / "out")
    assert "1 more row" in output
    assert comparison.headline.text in output
    assert "Ranking: Accuracy, ambiguous contexts" in called("compare", *folders, "--full")
    assert "3 runs" in comparison_card(comparison)
    monkeypatch.setattr("qabias.report.page.MOST_ROWS", 2)
    assert "1 run more" in comparison_card(comparison)


def test_a_larger_sample_is_not_ranked_with_smaller_ones_that_it_contains(compared_runs):
    comparison = compare(folders_of(compared_runs, "bbq", ("random", "stereotyped", "more")), allow_mixed=True)
    assert not [table for table in comparison.analysis.tables if table.section == RANKING]
    assert sum(note.startswith("No ranking of All: ") for note in comparison.analysis.notes) == 1


# Ranges of ranks


@settings(max_examples=60, deadline=None)
@given(st.permutations(range(6)), st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=15))
def test_a_range_has_the_rank_and_all_orders_that_keep_what_is_detected(order, drawn):
    """By brute force: the ranks of a run in every order that puts the better run of a detected pair first."""
    place = {run: number for number, run in enumerate(order)}
    detected = [pair for pair in drawn if place[pair[0]] < place[pair[1]]]
    # As with intervals, detected differences are transitive.
    detected = list(_closure(detected))
    ranges = rank_ranges(order, detected)
    allowed = [one for one in itertools.permutations(order) if all(one.index(a) < one.index(b) for a, b in detected)]
    for run in order:
        possible = {one.index(run) + 1 for one in allowed}
        first, last = min(possible), max(possible)
        assert ranges[run] == (f"{first} of 6" if first == last else f"{first} to {last} of 6")
        assert first <= place[run] + 1 <= last


def _closure(pairs):
    known = set(pairs)
    while True:
        more = {(a, d) for a, b in known for c, d in known if b == c} - known
        if not more:
            return known
        known |= more


def test_all_pairs_tell_two_groups_of_models_apart():
    """Eight models in two groups: neighbors inside a group do not differ, and those at the gap hardly."""
    rng = np.random.default_rng(4)
    n_clusters = 40
    rights = [rng.binomial(10, 0.6 + 0.12 * (model >= 4), n_clusters) for model in range(8)]
    together = runs_of(*rights)
    tests = NeighborTests(together, {"mean": 1.0}, 28)
    values = [right.sum() for right in rights]
    order = sorted(range(8), key=lambda model: -values[model])
    pairs = list(itertools.combinations(order, 2))
    adjusted = holm([tests.p_values(*pair)["mean"] for pair in pairs])
    ranges = rank_ranges(order, [pair for pair, p in zip(pairs, adjusted, strict=True) if p < 0.05])
    between = [pair for pair, p in zip(pairs, adjusted, strict=True) if p < 0.05 and (pair[0] >= 4) != (pair[1] >= 4)]
    assert len(between) >= 8
    assert ranges[order[-1]].startswith(("4", "5", "6", "7", "8"))
