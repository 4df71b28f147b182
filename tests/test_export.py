"""Exports: the numbers come back as they were, special characters print as they are, and files are what they claim."""

import csv
import io
import re
import sys
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from qabias import cli
from qabias.errors import QabiasError
from qabias.scores.score import Score
from qabias.tables.export import export, latex, to_csv, to_latex, to_markdown
from qabias.tables.model import Analysis, Column, Figure, Table, find, flat, read_analysis, write_analysis

from .kit.commands import command

TABLE = Table(
    "bias_by_category",
    "Bias & more: 100 %",
    "Figure 3",
    "How_to read #1",
    (
        Column("category", "Category|group", "text"),
        Column("bias", "Bias $s$", "signed"),
        Column("p", "p", "p"),
        Column("n", "Examples", "count"),
    ),
    (
        ('A, "quoted" & 50 %\nx_1', Score(1 / 3, -0.1, 2 / 3), 0.0001, 1234),
        ("=B", Score(-0.25), 0.5, 10),
        ("All", Score(None), None, 0),
    ),
    Figure("intervals", "category", ("bias",)),
)
PLAIN = Table("plain", "Plain", "", "", (Column("name", "Name", "text"),), (("a",),))


@pytest.fixture
def folder(tmp_path):
    write_analysis(Analysis((TABLE, PLAIN)), tmp_path / "run" / "analysis.json")
    return tmp_path / "run"


def test_csv_has_every_digit_and_no_zero_for_what_is_undefined():
    header, *rows = csv.reader(io.StringIO(to_csv(TABLE)))
    assert header == ["category", "bias", "bias_low", "bias_high", "p", "n"]
    assert [row[0] for row in rows] == [TABLE.rows[0][0], "'=B", "All"]
    assert [float(value) for value in rows[0][1:]] == [1 / 3, -0.1, 2 / 3, 0.0001, 1234]
    assert rows[1][1:] == ["-0.25", "", "", "0.5", "10"]
    assert rows[2][1:] == ["", "", "", "", "0"]


def test_latex_tables_fit_the_class_article_and_sizes_are_numbers(compared_runs):
    analysis = read_analysis(compared_runs / "bbq-all" / "analysis.json")
    for table in analysis.tables:
        text = to_latex(table)
        widths = [float(width) for width in re.findall(r"p\{([\d.]+)pt\}", text)]
        assert 0 < len(widths) <= 8
        assert sum(widths) + 6 * len(widths) <= 346, table.name
        assert ("longtable}{" in text) == (len(table.rows) > 30), table.name
        assert len(re.search(r"\\caption\{(.*)\}\\label", text)[1].split()) < 25
    sizes = flat(find(analysis.tables, "bias_by_category"))
    place = [column.name for column in sizes.columns].index("mde_bias_ambig")
    assert all(row[place] is None or isinstance(row[place], float) for row in sizes.rows)


def test_latex_sets_the_size_where_the_text_is():
    """A float starts anew in the size of the page; a long table does not."""
    long = replace(TABLE, rows=TABLE.rows * 20)
    for table, float_ in ((TABLE, True), (long, False)):
        text = to_latex(table)
        begin = text.index(r"\begin{table}" if float_ else r"\begin{longtable}")
        assert (text.index(r"\footnotesize") > begin) == float_
        assert text.index(r"\footnotesize") < text.index(r"\toprule")
        assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")


def test_no_two_columns_of_a_table_have_the_same_title(compared_runs):
    for run in ("bbq-all", "unqover-random", "bbnli-random", "nli"):
        for table in map(flat, read_analysis(compared_runs / run / "analysis.json").tables):
            titles = [column.title for column in table.columns]
            assert len(set(titles)) == len(titles), (table.name, titles)


def test_the_command_writes_one_file_per_table(folder):
    written = command("export", folder).out.splitlines()
    assert sorted(path.name for path in (folder / "export").iterdir()) == ["bias_by_category.csv", "plain.csv"]
    assert len(written) == 2
    assert len(command("export", folder, "--format", "all").out.splitlines()) == 7


def test_latex_prints_special_characters():
    assert latex(r"50 % & $x_1$ #2 {a} ~ ^ \ [b]") == (
        r"50 \% \& \$x\_1\$ \#2 \{a\} \textasciitilde{} \textasciicircum{} \textbackslash{} {[}b{]}"
    )
    text = to_latex(TABLE)
    assert r"\toprule" in text
    assert text.count(r" \\") == 4
    assert all(line.count(" & ") == 3 for line in text.splitlines() if line.endswith(r"\\"))
    assert "−" not in text
    assert "\u00a0" not in text
    assert r"+33.3~\% {[}$-$10.0, +66.7{]}" in text


def test_markdown_keeps_its_columns():
    lines = [line for line in to_markdown(TABLE).splitlines() if line.startswith("|")]
    assert len(lines) == 2 + len(TABLE.rows)
    assert all(line.replace(r"\|", "").count("|") == 5 for line in lines)
    assert "+33.3" in lines[2]
    assert "<\u00a00.001" in lines[2].replace("\\", "")


def test_all_formats_are_valid_files(folder):
    files = {path.name: path for path in export(folder)}
    assert set(files) == {
        *(f"bias_by_category.{suffix}" for suffix in ("csv", "md", "tex", "svg")),
        *(f"plain.{suffix}" for suffix in ("csv", "md", "tex")),
    }
    assert {path.parent for path in files.values()} == {folder / "export"}
    assert files["bias_by_category.csv"].read_text("utf-8") == to_csv(TABLE)
    assert ElementTree.parse(files["bias_by_category.svg"]).getroot().tag.endswith("svg")
    (path,) = export(folder, kind="pdf")
    assert path.read_bytes().startswith(b"%PDF-")
    assert path.read_bytes().rstrip().endswith(b"%%EOF")


def test_one_table_in_one_format(folder, tmp_path):
    (path,) = export(folder, tmp_path / "out", "latex", "bias_by_category")
    assert path == tmp_path / "out" / "bias_by_category.tex"
    assert export(folder, tmp_path / "again", "svg") == [tmp_path / "again" / "bias_by_category.svg"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "svvg"}, "Did you mean 'svg'"),
        ({"name": "bias_by_categry"}, "Did you mean 'bias_by_category'"),
        ({"name": "plain", "kind": "png"}, "has no figure"),
    ],
)
def test_what_is_not_there_is_refused(folder, arguments, message):
    with pytest.raises(QabiasError, match=message):
        export(folder, **arguments)


def test_a_mistyped_folder_is_one_line_with_a_suggestion(folder, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["qabias", "export", str(folder.parent / "rnu")])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 2
    assert f"Did you mean {folder.name!r}?" in error
