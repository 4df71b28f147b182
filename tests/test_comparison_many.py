"""Comparisons of so many runs that their scores stand below each other."""

import json

import pytest

from qabias.comparison import compare, tables
from qabias.comparison.ranking_tests import RANKING
from qabias.errors import QabiasError
from qabias.report.card import comparison_card
from qabias.report.writing import write_comparison
from qabias.tables.model import find

from .compared_runs import called, changed

BBQ = ("stereotyped", "random", "unknown")


@pytest.fixture
def two_are_many(monkeypatch):
    """Runs stand below each other from three on."""
    monkeypatch.setattr("qabias.comparison.MOST_BESIDE", 2)


def folders_of(compared_runs, benchmark, names):
    return [compared_runs / f"{benchmark}-{name}" for name in names]


def cells(table):
    """The values of a table by row and title of the column."""
    titles = [column.title for column in table.columns]
    return {row[0]: dict(zip(titles[1:], row[1:], strict=True)) for row in table.rows}


@pytest.mark.parametrize(
    ("benchmark", "names"),
    [("bbq", BBQ), ("bbnli", ("stereotyped", "random", "random")), ("unqover", ("random", "consistent", "random"))],
)
def test_every_score_is_that_of_the_tables_side_by_side(compared_runs, benchmark, names, monkeypatch):
    folders = folders_of(compared_runs, benchmark, names)
    beside = compare(folders)
    assert not beside.are_many
    monkeypatch.setattr("qabias.comparison.MOST_BESIDE", 2)
    below = compare(folders)
    assert below.are_many
    assert below.names == beside.names
    for measure in beside.measures:
        ours, theirs = (cells(find(of.analysis.tables, measure.name)) for of in (below, beside))
        assert list(ours) == list(below.names)
        for run, scores in ours.items():
            scores.pop("Examples", None)
            assert scores == {group: row[run] for group, row in theirs.items()}
    rankings = [[(of.name, of.rows) for of in one.analysis.tables if of.section == RANKING] for one in (below, beside)]
    assert rankings[0] == rankings[1] != []
    assert below.findings == beside.findings


def test_there_are_no_figures_and_no_differences_and_a_note_says_so(compared_runs, two_are_many):
    comparison = compare(folders_of(compared_runs, "bbq", BBQ))
    assert not [
        table.name for table in comparison.analysis.tables if table.figure or table.name.startswith("difference_")
    ]
    assert comparison.analysis.notes == tuple(tables.many_notes(3))
    assert comparison.by_run == ()


def test_what_the_tables_count_is_said(compared_runs, two_are_many):
    table = find(compare(folders_of(compared_runs, "bbq", BBQ)).analysis.tables, "accuracy_ambig")
    assert table.columns[-1].title == "Examples"
    assert {row[-1] for row in table.rows} == {100}


def test_missing_answers_stand_beside_the_score(compared_runs, tmp_path, two_are_many):
    def lose(content):
        scores = content["scores"]
        scores["n_unparsed_ambig"] = scores["n_ambig"] // 2
        scores["range"] = {"bias_ambig": [-0.5, 0.5]}

    few = changed(compared_runs / "bbq-again", tmp_path / "few", scores=lose)
    folders = [*folders_of(compared_runs, "bbq", BBQ[:2]), few]
    table = find(compare(folders).analysis.tables, "bias_ambig")
    found = cells(table)
    named = [column.title for column in table.columns]
    assert named.index("Possible, All") == named.index("All") + 1
    values = [of["Possible, All"] for of in found.values()]
    assert values == [None, None, "−50.0 to +50.0\u00a0%"]
    (lost,) = [of for of in found.values() if of["Possible, All"]]
    assert (lost["All"].low, lost["All"].high) == (None, None)
    assert "more than 2 % of its examples lack an answer" in table.note


def test_a_note_of_several_runs_stands_once(compared_runs, tmp_path, two_are_many):
    def remark(content):
        content["notes"] = ["The log was cut off."]

    copies = [
        changed(folder, tmp_path / folder.name, analysis=remark) for folder in folders_of(compared_runs, "bbq", BBQ)
    ]
    notes = compare(copies).analysis.notes
    assert notes[-1] == "baseline:stereotyped, baseline:random and baseline:unknown: The log was cut off."
    names = [f"run {number}" for number in range(1200)]
    assert tables.notes_by_run(names, [["Cut."]] * 1200) == ["1,200 runs (run 0, run 1, run 2, ...): Cut."]
    assert tables.notes_by_run(["one", "other"], [["A.", "B."], ["B."]]) == ["one: A.", "one and other: B."]


def test_many_runs_that_lack_answers_are_counted():
    notes = [f"run {number}: only 50.0 % of 20 answered." for number in range(400)]
    assert tables.missing_by_run(notes[:10]) == notes[:10]
    *first, last = tables.missing_by_run(notes)
    assert first == notes[:10]
    assert last == "390 runs more with less than 98 % answered; the table of written answers has all."


def test_many_runs_of_other_questions_are_refused_in_a_line_that_can_be_read(compared_runs):
    folders = folders_of(compared_runs, "bbq", (*BBQ * 20, "more"))
    with pytest.raises(QabiasError) as refused:
        compare(folders)
    assert f"limit: '200' (60 runs, such as {folders[0]}), '400' (1 run, such as {folders[-1]})" in str(refused.value)
    assert len(str(refused.value)) < 700


def test_other_samples_are_marked_and_not_ranked(compared_runs, two_are_many):
    folders = folders_of(compared_runs, "bbq", ("random", "more", "stereotyped", "all"))
    comparison = compare(folders, allow_mixed=True)
    assert comparison.analysis.notes[0].startswith("MIXED: the runs differ in config, limit")
    assert not [of for of in comparison.analysis.tables if of.section == RANKING]
    assert any(note.startswith("No ranking of All: ") for note in comparison.analysis.notes)
    assert "not asked in this run" in find(comparison.analysis.tables, "accuracy_ambig").note


def test_the_page_has_all_runs_and_the_terminal_the_first_ones(
    compared_runs, tmp_path, capsys, monkeypatch, two_are_many
):
    folders = folders_of(compared_runs, "bbq", BBQ)
    comparison = compare(folders)
    html = write_comparison(comparison, tmp_path / "out").read_text(encoding="utf-8")
    assert "<dt>Run 1</dt>" not in html
    assert "<svg" not in html.split("<main", 1)[-1]
    assert all(name in html for name in comparison.names)
    content = json.loads((tmp_path / "out" / "analysis.json").read_text("utf-8"))
    assert [row[0] for row in find_named(content, "accuracy_ambig")["rows"]] == list(comparison.names)
    monkeypatch.setattr("qabias.report.terminal.MOST_COMPARED", 2)
    output = called(capsys, monkeypatch, "compare", *folders, "--output", tmp_path / "out")
    assert "Ranking: Accuracy, ambiguous contexts" in output
    assert "1 more in analysis.json and on the page (--output)" in output
    assert comparison.findings[0] in output
    card = comparison_card(comparison)
    assert "3 runs" in card
    monkeypatch.setattr("qabias.report.card.MOST_ROWS", 2)
    assert "1 run more in table(" in comparison_card(comparison)


def find_named(content, name):
    (table,) = [of for of in content["tables"] if of["name"] == name]
    return table
