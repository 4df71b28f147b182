"""Texts of foreign files in tables: they steer no terminal, start no formula and no command, and cost no output."""

import ast
import csv
import io
import re
import sys
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qabias import cli
from qabias.scores.score import Score
from qabias.support.files import read_json, write_json, write_text
from qabias.support.printable import echo
from qabias.tables.export import export, latex, to_csv, to_latex, to_markdown
from qabias.tables.figures import draw
from qabias.tables.model import Analysis, Column, Figure, Table, write_analysis
from qabias.tables.terminal import Console, print_table

from .conftest import ROOT
from .kit.code import nodes_of

HOSTILE = "\x1b]0;owned\x07 \x1b[2J\x00\r\x9b31m \u202egpj.exe \u2066x\u2069 \ud83d [bold red]x[/] :bug: \\input{x} ^^M"
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
FOREIGN = st.text(alphabet=st.one_of(st.characters(), st.sampled_from("=+-@\t\r\n\"',; \x00\x1b\ud83d\u202e\\{}$%|<")))


def table_of(*texts, title="Title"):
    """A table of texts, each with a number, that is drawn too."""
    columns = (Column("name", f"Name {title}", "text"), Column("bias", f"Bias {title}", "signed"))
    rows = tuple((text, Score(-0.3, -0.5, 0.1)) for text in texts)
    return Table("foreign", title, title, title, columns, rows, Figure("intervals", "name", ("bias",)))


def printed(show):
    text = io.StringIO()
    show(Console(file=text, width=300))
    return text.getvalue()


def test_a_table_in_the_terminal_shows_what_would_steer_it():
    shown = printed(lambda console: print_table(table_of(HOSTILE, title=HOSTILE), console))
    assert STEERING.search(shown) is None
    assert shown.count(r"\x1b]0;owned\x07 \x1b[2J\x00") >= 2
    assert "[bold red]x[/] :bug:" in shown


def test_a_sentence_in_the_terminal_is_no_markup_and_no_emoji(capsys):
    assert printed(lambda console: console.print(f"model {HOSTILE}")).count("[bold red]x[/] :bug:") == 1
    echo(f"model {HOSTILE}")
    echo(HOSTILE, err=True)
    found = capsys.readouterr()
    assert STEERING.search(found.out + found.err) is None
    assert r"\x1b[2J" in found.out
    assert r"\x1b[2J" in found.err


@pytest.mark.slow
def test_everything_is_printed_by_the_one_console_and_the_one_echo():
    """A `Console` of rich, an `echo` of typer or a `print` elsewhere would let a text steer the terminal."""
    others = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in (ROOT / "qabias").rglob("*.py")
        if path.relative_to(ROOT / "qabias").as_posix() not in ("tables/terminal.py", "support/printable.py")
        for node in nodes_of(path)
        if (isinstance(node, ast.Attribute) and node.attr in ("echo", "secho"))
        or (isinstance(node, ast.ImportFrom) and node.module == "rich.console")
        or (isinstance(node, ast.Call) and getattr(node.func, "id", None) == "print")
    ]
    assert others == []


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+1+1", "-2+3+cmd|' /C calc'!A0", "@SUM(1)", '"=1', " =1", "\t=1", "\tx", "'=1", "＝1", "\n=1", "--1"],
)
def test_a_formula_of_a_foreign_text_is_a_text_in_a_spreadsheet(text):
    ((_, *_), (cell, *numbers)) = csv.reader(io.StringIO(to_csv(table_of(text))))
    assert cell == f"'{text}"
    assert numbers == ["-0.3", "-0.5", "0.1"]


@pytest.mark.parametrize("text", ["-0.3", "+12.5 %", "1,234", "-1e-05", "Age", "a-b", "a=b", "−5", "(=x)"])
def test_numbers_and_plain_texts_are_as_they_were(text):
    (_, (cell, *_)) = csv.reader(io.StringIO(to_csv(table_of(text))))
    assert cell == text


def test_a_semicolon_starts_no_cell_where_spreadsheets_part_by_it():
    assert '\n"a;=1+1",-0.3,' in to_csv(table_of("a;=1+1"))


@given(texts=st.lists(FOREIGN, min_size=1, max_size=3))
def test_every_table_is_read_again_from_its_csv(texts):
    written = to_csv(table_of(*texts))
    rows = list(csv.reader(io.StringIO(written, newline="")))
    assert [len(row) for row in rows] == [4] * (1 + len(texts))
    assert not any(re.match("[\t\r=@]", row[0]) for row in rows)
    written.encode("utf-8")


@given(text=FOREIGN)
def test_no_table_has_control_characters_in_latex_and_markdown(text):
    table = table_of(text, title=text)
    for written in (to_latex(table), to_markdown(table)):
        assert STEERING.search(written) is None
        written.encode("utf-8")
    assert "\t" not in latex(text)
    assert "^^" not in latex(text)
    assert len([line for line in to_markdown(table).splitlines() if line.startswith("| ")]) == 3


def test_half_a_surrogate_pair_costs_no_output(tmp_path, monkeypatch, capsys):
    table = table_of(HOSTILE, title=HOSTILE)
    write_analysis(Analysis((table,), notes=(HOSTILE,)), tmp_path / "analysis.json")
    paths = export(tmp_path, tmp_path / "out")
    assert {path.suffix for path in paths} == {".csv", ".md", ".tex", ".svg"}
    assert ElementTree.parse(tmp_path / "out" / "foreign.svg").getroot().tag.endswith("svg")
    ElementTree.fromstring(draw(table).inline("name", "numbers"))
    monkeypatch.setattr(sys, "argv", ["qabias", "show", str(tmp_path)])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 0
    assert STEERING.search(capsys.readouterr().out) is None


def test_json_with_half_a_surrogate_pair_is_read_as_it_was_written(tmp_path):
    content = {"half \ud83d": ["\udcff", "whole 🙂", "\\ud83d"]}
    write_json(tmp_path / "file.json", content)
    assert read_json(tmp_path / "file.json") == content
    write_text(tmp_path / "page.html", "half \ud83d")
    assert (tmp_path / "page.html").read_text("utf-8") == r"half \ud83d"
