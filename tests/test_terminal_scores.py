"""Scores in the terminal: the groups, counts and measures that the page has, and nothing cut off."""

import io
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from lab.reproduce.__main__ import print_side_by_side
from qabias.benchmarks import load_benchmark
from qabias.report.terminal import print_scores
from qabias.runs.arguments import RunArguments
from qabias.runs.means import measures_of
from qabias.runs.question import load_examples
from qabias.tables.model import Column, Table
from qabias.tables.terminal import Console, print_table

BENCHMARK = load_benchmark("bbq")


@pytest.fixture(scope="module")
def scores():
    table = load_examples(RunArguments("bbq", config="Gender_identity", limit=120)).table
    answers = np.random.default_rng(1).integers(0, 3, table.num_rows)
    return BENCHMARK.score(table, pa.table({"prediction": pa.array(answers, pa.int8())}))


def printed(show, *arguments, **options):
    """What is printed to a wide terminal, in lines of words."""
    text = io.StringIO()
    show(*arguments, Console(file=text, width=160), **options)
    return [line.split() for line in text.getvalue().splitlines()]


def row_of(lines, group):
    (row,) = (line for line in lines if line[: len(group.split())] == group.split() and "[" in "".join(line))
    return row[len(group.split()) :]


def test_scores_are_printed_by_the_groups_of_the_page(scores):
    lines = printed(print_scores, BENCHMARK, scores)
    assert list(BENCHMARK.groups(scores)) == ["Gender_identity", "Gender_identity (names)", "All"]
    for name, of in list(BENCHMARK.groups(scores).items())[1:]:
        assert row_of(lines, name)[0] == str(of["n"])
        assert row_of(lines, name)[1] == f"{100 * of['accuracy_ambig']:.1f}"


def test_a_single_group_is_not_printed_twice(scores):
    one = {**scores, "by": {"paper_category": {"Age": scores}}}
    words = [line[0] for line in printed(print_scores, BENCHMARK, one) if line]
    assert words.count("Age") == 1
    assert "All" not in words


def test_a_run_without_a_context_shows_ambiguous_examples_only(scores):
    text = " ".join(" ".join(line) for line in printed(print_scores, BENCHMARK, scores, question_only=True))
    assert "no context" in text
    assert "disambig" not in text
    assert "alignment" not in text
    row = row_of(printed(print_scores, BENCHMARK, scores, question_only=True), "All")
    assert row[0] == str(scores["n_ambig"]) != str(scores["n"])
    assert "disambig" in " ".join(" ".join(line) for line in printed(print_scores, BENCHMARK, scores))


def test_many_runs_with_long_names_are_not_cut(scores):
    names = [f"organisation-of-some-name-{number}-instruct" for number in range(9)]
    measures = measures_of(BENCHMARK)
    runs = [SimpleNamespace(signature="format:x")] * 9
    lines = printed(print_side_by_side, BENCHMARK, measures, runs, names, [scores] * 9)
    text = " ".join(" ".join(line) for line in lines)
    assert all(f"run {number}" in text for number in range(1, 10))
    assert not any("…" in word for line in lines for word in line)


def test_columns_are_dropped_before_lines_are_wider_than_the_terminal(scores):
    columns = tuple(Column(f"c{number}", f"Column {number}", "share") for number in range(12))
    table = Table("t", "", "", "", (Column("name", "Name", "text"), *columns), (("row", *[0.5] * 12),))
    for width, n_shown in ((80, 7), (60, 5), (40, 3)):
        text = io.StringIO()
        print_table(table, Console(file=text, width=width))
        lines, _, hidden = text.getvalue().partition("more columns not shown: ")
        assert max(map(len, lines.splitlines())) <= width
        assert lines.count("50.0") == n_shown
        # Those that are left out are named.
        assert " ".join(hidden.split()).split("; ") == [column.title for column in columns[n_shown:]]
    text = io.StringIO()
    print_table(table, Console(file=text, width=60), whole=True)
    assert max(map(len, text.getvalue().splitlines())) <= 60
    assert text.getvalue().count("50.0") == 12
    assert "not shown" not in text.getvalue()
