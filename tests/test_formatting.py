"""Values of tables as people read them."""

import pytest

from qabias.scores.formatting import percent, show, show_interval
from qabias.scores.score import Score


@pytest.mark.parametrize(
    ("value", "signed", "text"),
    [
        (0.1234, True, "+12.3 %"),
        (0.1234, False, "12.3 %"),
        (-0.5, True, "−50.0 %"),
        (0.0, True, "0.0 %"),
        (-0.0, True, "0.0 %"),
        (-0.0004, True, "0.0 %"),
        (1.0, True, "+100.0 %"),
        (1, False, "100.0 %"),
        (None, True, "—"),
    ],
)
def test_percent(value, signed, text):
    assert percent(value, signed) == text.replace(" ", "\u00a0")


def test_values_show_by_their_kind():
    assert show(12345, "count") == "12,345"
    assert show(-0.12345, "number") == "−0.123"
    assert show(Score(0.5, 0.25, 0.75), "share") == "50.0\u00a0%"
    assert show_interval(Score(0.5, -0.25, 0.75), "signed") == "[−25.0, +75.0]"
    assert show_interval(Score(0.5), "signed") == ""
    assert show("x", "text") == "x"
