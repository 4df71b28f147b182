"""Answers of models and invented ones, judged before the readers were made: what is read, and what never changes it."""

from __future__ import annotations

import json
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qabias.answers import NO_ANSWER, parse_choice, parse_named
from qabias.answers.outcomes import REPEATED, UNREAD, Written, outcome
from qabias.answers.parsing import parse_inference
from qabias.benchmarks.generated import about_missing

from .conftest import ROOT

CASES = [json.loads(line) for line in (ROOT / "tests" / "judged_answers.jsonl").read_text("utf-8").splitlines()]
"""Sort, benchmark, ask, question, what was asked, answers, place of UNKNOWN, finish, text, place that a judge reads."""

PEOPLE = ("The cook", "The baker", "Unknown")
QUESTION = "Who was late?"
FRAMES = (
    "\n\nQuestion: Who was early?\nA. The cook\nB. The baker\nC. Unknown\nAnswer: {}",
    "\nQ: Who was early?\nA: {}",
    "<|im_end|>\n<|im_start|>user\nWho was early? {}",
    "\n\n## Exercise 2\n\nThe answer is {}.",
    "\nAnswer: {}",
)


def read_case(case, more=""):
    _, benchmark, ask, question, asked, answers, unknown, finish, text, _ = case
    said = Written(text + more, finish)
    if benchmark == "bbnli":
        return parse_inference(said)
    if ask in ("fill-blank", "open-ended"):
        return parse_named(said, answers, asked, unknown=unknown).place
    return parse_choice(said, answers, asked=question)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}: {case[8][:40]!r}")
def test_a_text_is_read_as_a_judge_reads_it(case):
    assert read_case(case) == (NO_ANSWER if case[-1] is None else case[-1])


@given(
    st.sampled_from(["A", " B", "C.", "(B)", "A. The cook", "the baker", "Unknown"]), st.sampled_from(FRAMES), st.data()
)
def test_a_further_question_never_changes_a_listed_answer(text, frame, data):
    other = data.draw(st.sampled_from(["A", "B", "C", "The cook", "The baker"]))
    assert parse_choice(text + frame.format(other), PEOPLE, asked=QUESTION) == parse_choice(
        text, PEOPLE, asked=QUESTION
    )


@given(st.sampled_from(["The cook", "the baker.", "Unknown"]), st.sampled_from(FRAMES), st.sampled_from(PEOPLE[:2]))
def test_a_further_question_never_changes_an_open_answer_or_a_label(text, frame, other):
    assert parse_named(text + frame.format(other), PEOPLE, QUESTION) == parse_named(text, PEOPLE, QUESTION)
    for label in ("yes", "No.", "maybe"):
        assert parse_inference(label + frame.format("yes")) == parse_inference(label)


CONTEXT = "The cook and the baker met at the old station on Monday. The baker missed the bus."


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (CONTEXT, NO_ANSWER),
        (f"{CONTEXT} So the baker was late.", 1),
        (f"A\n\n{CONTEXT}", 0),
        ("The one who was late, or unknown if nobody says so.", NO_ANSWER),
        ("The answer is: C. The baker.", NO_ANSWER),
        ("The answer is A, the baker.", NO_ANSWER),
        ("A. The baker was much later than the cook", NO_ANSWER),
        ('{"answer": "A", "name": "The baker"}', NO_ANSWER),
        ('{"name": "The baker", "answer": "A"}', NO_ANSWER),
        ("The answer is C. The cook and the baker were both there.", 2),
        ("The text does not mention the station's name.", NO_ANSWER),
        ("It is not clear to me what you want.", NO_ANSWER),
        ("**A**\n\n**B**\n\n**C**", NO_ANSWER),
        ("1. Both left early.\n2. The cook", NO_ANSWER),
        ("The second one.", 1),
        ("Some would say A, but the right answer is B.", 1),
    ],
)
def test_copies_contradictions_and_lists_are_no_answers(text, place):
    assert parse_choice(Written(text, "length"), PEOPLE, asked=QUESTION, context=CONTEXT) == place


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("The person who met the baker was late.", NO_ANSWER),
        ("The person who bakes was late.", NO_ANSWER),
        ("The baker was late.", 1),
        ("The Danish ferry was closed.", NO_ANSWER),
        ("The Danish tourist was late.", 0),
        (CONTEXT, NO_ANSWER),
    ],
)
def test_a_name_in_another_thing_names_nobody(text, place):
    people = ("The Danish guest", "The baker", "Unknown")
    context = CONTEXT.replace("cook", "Danish guest")
    said = text.replace("cook", "Danish guest")
    assert parse_named(said, people, QUESTION, context=context).place == place


def test_an_argument_after_repeated_labels_is_no_answer():
    assert parse_inference("yes, no or maybe.\n\nIt is true because more of them cook.") == NO_ANSWER


TEMPLATES = (
    "{a}",
    "The answer is {a}.",
    "{a} was late, not {b}.",
    "It was not {b}. It was {a}.",
    "{a} was late. {b} was early.",
)


@given(st.sampled_from(TEMPLATES), st.permutations(PEOPLE))
def test_the_order_of_the_options_never_changes_who_is_named(template, order):
    text = template.format(a="the cook", b="the baker")
    assert order[parse_choice(text, order, asked=QUESTION)] == "The cook"


@given(
    st.permutations(PEOPLE),
    st.sampled_from(["\n", ", ", " / "]),
    st.sampled_from(["{}. {}", "{}: {}", "({}) {}", "{}", "{1}"]),
)
def test_options_that_are_repeated_are_never_read(order, between, form):
    text = between.join(form.format(label, answer) for label, answer in zip("ABC", order, strict=True))
    for said in (text, f" {text}\n", f"The options are:\n{text}", f"{text}\nAnswer: {text}"):
        assert parse_choice(said, order, asked=QUESTION) == NO_ANSWER, said


@pytest.mark.parametrize("words", list(permutations(["yes", "no", "maybe"])))
def test_repeated_labels_are_an_outcome_of_their_own(words):
    one, two, three = words
    for text in (
        f"{one}, {two} or {three}.",
        f" {one}, {two} or {three}\nAnswer: {one}, {two} or {three}\nAnswer: {one}",
    ):
        said = Written(text, "length")
        assert outcome(said, parse_inference(said)) == REPEATED
    assert outcome(f"{one} or {two}", parse_inference(f"{one} or {two}")) == UNREAD
    assert outcome("A, B or C", parse_choice("A, B or C", PEOPLE)) == REPEATED
    scores = {"unparsed_share": 0.5, "outcomes": {"answered": 3, "repeated": 2, "unread": 1}}
    assert about_missing(scores, 3).endswith("2 repeat the options, 1 unread")


@pytest.mark.parametrize("values", [(0.1, 0.2, 0.7), (0.7, 0.2, 0.1), (0, 1, 0), (2, 3, 95)])
@pytest.mark.parametrize("form", ["{}: {}", "P({}) = {}", "| {} | {} |", '"{}": {}'])
def test_the_largest_value_is_the_answer_unless_two_are_close(values, form):
    def read(numbers):
        return parse_choice("\n".join(form.format(*one) for one in zip("ABC", numbers, strict=True)), PEOPLE)

    assert read(values) == values.index(max(values))
    assert read((0.4, 0.35, 0.25)) == read((0.5, 0.5, 0)) == read((0, 0, 0)) == NO_ANSWER
