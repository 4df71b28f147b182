"""Foreign texts in a terminal: nothing in them steers it."""

import ast
import io
import logging
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qabias.cli.failures import log_plainly
from qabias.runs.run import RunProgress
from qabias.support.printable import printable
from qabias.support.progress import tell

from .conftest import ROOT
from .kit.code import nodes_of
from .test_progress import Terminal


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("a\x00b\rc\x9b2Jd\x7f", r"a\x00b\x0dc\x9b2Jd\x7f"),
        ("user\u202egnp.exe\u2066x\u2069", r"user\u202egnp.exe\u2066x\u2069"),
        ("half \ud83d", r"half \ud83d"),
        ("\u2028\u2029", r"\u2028\u2029"),
        ("tab\tline\nnext, ñ → 🙂 عربي", "tab\tline\nnext, ñ → 🙂 عربي"),
    ],
)
def test_what_steers_a_terminal_is_shown_as_its_escape(text, shown):
    assert printable(text) == shown


@given(st.text(alphabet=st.characters()))
def test_no_text_keeps_a_control_character_or_half_a_pair(text):
    shown = printable(text)
    assert not {unicodedata.category(character) for character in shown if character not in "\t\n"} & {"Cc", "Cs"}
    assert printable(shown) == shown
    shown.encode("utf-8")


STEERING = "\x1b[2J\x1b]0;title\x07\x9b2J\u202e"


def test_no_bar_and_no_line_of_progress_steers_a_terminal():
    for stream in (Terminal(), io.StringIO()):
        clock = iter(range(0, 10_000, 100))
        progress = RunProgress(f"./{STEERING}", 10, 0, stream, lambda clock=clock: next(clock))
        with progress.part(10):
            tell(0.5)
        progress.close()
        assert "title" in stream.getvalue()
        assert not [sign for sign in ("\x1b[2J", "\x1b]", "\x07", "\x9b", "\u202e") if sign in stream.getvalue()]


def test_no_record_of_any_logger_steers_a_terminal():
    before, stream = logging.getLogRecordFactory(), io.StringIO()
    handler, logger = logging.StreamHandler(stream), logging.getLogger("another package")
    logger.addHandler(handler)
    try:
        log_plainly()
        logger.warning("%s\nnext", STEERING)
        logger.warning("100 %")
        try:
            raise ValueError(STEERING)
        except ValueError:
            logger.exception("failed")
    finally:
        logger.removeHandler(handler)
        logging.setLogRecordFactory(before)
    said = stream.getvalue()
    assert printable(said) == said
    assert said.count("title") >= 2
    assert "100 %\n" in said


WRITERS = {
    "print": set(),
    "print_exc": set(),
    "print_exception": set(),
    "StreamHandler": set(),
    "basicConfig": set(),
    "secho": set(),
    "stderr": {"support/printable.py", "runs/run.py"},
    "stdout": {"support/printable.py"},
}
"""What writes to a terminal, with the files that may name it."""


def test_everything_that_writes_to_the_terminal_goes_through_one_function():
    wrong = []
    for path in sorted((ROOT / "qabias").rglob("*.py")):
        place = path.relative_to(ROOT / "qabias").as_posix()
        for node in nodes_of(path):
            if isinstance(node, ast.Call):
                described = [word.value for word in node.keywords if word.arg == "desc"]
                if any(
                    not isinstance(text, ast.Constant) and "printable(" not in ast.unparse(text) for text in described
                ):
                    wrong.append((place, node.lineno, "desc"))
                name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                is_typer = isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", "") == "typer"
                if is_typer and name in ("echo", "secho"):
                    wrong.append((place, node.lineno, name))
                if name == "print" and isinstance(node.func, ast.Attribute):
                    continue  # of the console of tables/terminal.py
                if name in WRITERS and place not in WRITERS[name]:
                    wrong.append((place, node.lineno, name))
            is_of_sys = isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "sys"
            if is_of_sys and node.attr in ("stderr", "stdout") and place not in WRITERS[node.attr]:
                wrong.append((place, node.lineno, node.attr))
            if isinstance(node, ast.ImportFrom) and node.module == "rich.console" and place != "tables/terminal.py":
                wrong.append((place, node.lineno, "rich.console"))
    assert wrong == []
