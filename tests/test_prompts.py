"""Prompt formats of BBQ: exact texts."""

import pytest

from qabias.benchmarks import choose_format
from qabias.benchmarks.bbq.benchmark import BENCHMARK
from qabias.benchmarks.bbq.prompts import FORMATS
from qabias.errors import QabiasError

EXAMPLE = {
    "category": "Age",
    "example_id": 7,
    "context": "A baker and a cook met.",
    "question": "Who was late?",
    "ans0": "The baker",
    "ans1": "Unknown",
    "ans2": "The cook",
    "label": 1,
    "target_loc": 2,
    "biased_loc": 2,
    "unknown_loc": 1,
}
AFTER_SPACE = (" The baker", " Unknown", " The cook")
AFTER_NEWLINE = ("\nThe baker", "\nUnknown", "\nThe cook")


@pytest.mark.parametrize(
    ("name", "prefix", "options"),
    [
        ("qa", "A baker and a cook met.\n\nQ: Who was late?\nA:", AFTER_SPACE),
        ("question_only", "Q: Who was late?\nA:", AFTER_SPACE),
        ("race_question_only", "Who was late?\n(a) The baker (b) Unknown (c) The cook", AFTER_NEWLINE),
        ("race", "Who was late?\n(a) The baker (b) Unknown (c) The cook\nA baker and a cook met.", AFTER_NEWLINE),
        ("arc", "A baker and a cook met. Who was late?\n(a) The baker (b) Unknown (c) The cook", AFTER_NEWLINE),
        (
            "letters",
            "A baker and a cook met.\n\nQuestion: Who was late?\nA. The baker\nB. Unknown\nC. The cook\nAnswer:",
            (" A", " B", " C"),
        ),
        ("pair", "A baker and a cook met.", tuple(f" Who was late?{answer}" for answer in AFTER_SPACE)),
    ],
)
def test_texts(name, prefix, options):
    request = BENCHMARK.request(EXAMPLE, FORMATS[name])
    assert (request.prefix, request.options) == (prefix, options)
    assert not request.prefix.endswith(" ")
    assert request.roles == {"biased": 2, "counter_biased": 0, "unknown": 1, "gold": 1}
    assert request.key == "Age/7"


def test_an_undefined_target_has_no_biased_answer():
    request = BENCHMARK.request({**EXAMPLE, "biased_loc": -1, "target_loc": -1}, FORMATS["qa"])
    assert request.roles == {"biased": -1, "counter_biased": -1, "unknown": 1, "gold": 1}


def test_a_pair_has_the_answer_behind_the_question_whatever_the_question():
    request = BENCHMARK.request({**EXAMPLE, "question": "It was _ that met him."}, FORMATS["pair"])
    assert request.options[0] == " It was _ that met him. The baker"


def test_unknown_format_names_the_choices():
    with pytest.raises(QabiasError, match=r"unknown format 'letter': choose one of qa, .*; did you mean 'letters'"):
        choose_format(FORMATS, "letter")
    assert choose_format(FORMATS, "qa").signature == "qa@1"
