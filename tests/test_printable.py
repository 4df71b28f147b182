"""Foreign texts in a terminal: nothing in them steers it."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qabias.support.printable import printable


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
