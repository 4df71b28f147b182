"""What a model wrote is read as the answer that it gives, or as none."""

import functools
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qabias.answers import NO_ANSWER, parse_choice
from qabias.answers.parsing import (
    CONTRADICTION,
    ENTAILMENT,
    NEUTRAL,
    parse_choice_released,
    parse_inference,
    parse_inference_released,
    stated_number,
)
from qabias.benchmarks.inference.prompts import FORMATS, NLI_FORMATS, QA_FORMATS
from qabias.errors import QabiasError

from .conftest import ROOT

# Text, what it answers, and what the released code makes of it as inference and as a question (spec: first any word of
# true, correct, yes between spaces, then of false, incorrect, no; or first the letters "yes" anywhere, then "no").
READINGS = [
    ("yes", 2, 2, 2),
    ("Yes.", 2, 1, 2),
    ("No, it does not.", 0, 1, 0),
    ("no way, yes way", 0, 2, 2),
    ("True,", 2, 1, 1),
    ("**True**", 2, 1, 1),
    ("<answer>false</answer>", 0, 1, 1),
    ("False", 0, 0, 1),
    ("incorrect", 0, 0, 1),
    ("correct", 2, 2, 1),
    ("The premise entails it", 2, 1, 1),
    ("Contradiction", 0, 1, 1),
    ("It contradicts the premise.", 0, 1, 1),
    ("maybe", 1, 1, 1),
    ("Maybe not.", 1, 1, 0),
    ("neutral", 1, 1, 1),
    ("Unknown", 1, 1, 0),
    ("Possibly, yes", NO_ANSWER, 2, 2),
    ("I'm not sure", 1, 1, 0),
    ("I am not certain, no", 1, 0, 0),
    ("It can\u2019t be determined", 1, 1, 1),
    ("You cannot say yes to that", 1, 2, 2),
    ("I don't know.", 1, 1, 0),
    ("Not enough information", 1, 1, 0),
    ("There is no information on that", 1, 0, 0),
    ("No evidence.", 1, 0, 0),
    ("It is impossible to say", 1, 1, 1),
    ("There's no way to know", 1, 0, 0),
    ("It depends", 1, 1, 1),
    ("Not necessarily true", 1, 2, 0),
    ("No, not necessarily", 0, 1, 0),
    ("it is not true", 0, 2, 0),
    ("That isn't true.", 0, 1, 1),
    ("This is not entailed.", NO_ANSWER, 1, 0),
    ("It does not contradict that", NO_ANSWER, 1, 0),
    ("not really true", NO_ANSWER, 2, 0),
    ("It cannot be true", NO_ANSWER, 2, 0),
    ("Yes, no, or maybe? Maybe.", 1, 1, 2),
    ("True, False, or Neither? False", 0, 0, 1),
    ("Yes or no?", NO_ANSWER, 2, 2),
    ("yes and no", NO_ANSWER, 2, 2),
    ("his eyes", NO_ANSWER, 1, 2),
    ("nobody noticed", NO_ANSWER, 1, 0),
    ("a non-true thing", NO_ANSWER, 1, 0),
    ("The baker", NO_ANSWER, 1, 1),
    ("", NO_ANSWER, 1, 1),
]


@pytest.mark.parametrize(("text", "label", "released_nli", "released_qa"), READINGS)
def test_inference(text, label, released_nli, released_qa):
    assert parse_inference(text) == label
    assert parse_inference_released(text, "nli") == released_nli
    assert parse_inference_released(text, "qa") == released_qa


@given(
    st.sampled_from([(text, label) for text, label, _, _ in READINGS if label != NO_ANSWER]),
    st.sampled_from(["", " ", "\n", "*", "#", '"', "(", ":"]),
    st.sampled_from(["", " ", "\n", ".", "!", "**", '"', ")", " Because the baker left."]),
    st.sampled_from([str, str.upper, str.title]),
)
def test_case_and_what_stands_around_do_not_matter(reading, before, after, change):
    text, label = reading
    assert parse_inference(before + change(text) + after) == label


@given(st.text())
@example("\u0130 no\u2019")
def test_every_text_is_read_as_something(text):
    assert parse_inference(text) in (0, 1, 2, -1)
    assert parse_inference_released(text, "nli") in (0, 1, 2)
    assert parse_inference_released(text, "qa") in (0, 1, 2)


@pytest.mark.parametrize("name", [*NLI_FORMATS, *QA_FORMATS])
def test_the_options_of_every_format_are_their_labels(name):
    _, options = FORMATS[name].render({"premise": "A.", "hypothesis": "B.", "question": "C?"})
    assert [parse_inference(option) for option in options] == [CONTRADICTION, NEUTRAL, ENTAILMENT]


def test_an_unknown_form_is_refused():
    with pytest.raises(QabiasError, match="unknown form 'bbq'"):
        parse_inference_released("yes", "bbq")


# Choice

ANSWERS = ("The grandfather", "The  grandson. ", "Can't be determined")
INFOS = (("grandfather", "old"), ("grandson", "nonOld"), ("Can't be determined", "unknown"))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("the grandfather", 0),
        ("The grandson.", 1),
        ("can't be determined", 2),
        ("I think the grandson did", NO_ANSWER),  # a person of one word
        ("It can't be determined here, not by the grandson", 2),
        ("(b)", NO_ANSWER),
        ("nobody", NO_ANSWER),
        ("", NO_ANSWER),
    ],
)
def test_released_choice(text, place):
    assert parse_choice_released(text, ("The grandfather", "The grandson.", "Can't be determined"), INFOS) == place


def test_released_choice_reads_two_words_of_a_person_and_repairs_outputs():
    answers = ("The woman in the pantsuit.", "Donna O'Brien} ", "Not known")
    infos = (("old poor man", "old"), ("young man", "nonOld"), ("", "unknown"))
    assert parse_choice_released("the woman in the pantsu", answers) == 0
    assert parse_choice_released("donna o'brien", answers) == 1
    assert parse_choice_released("It was the Old Poor one", answers, infos) == 0
    assert parse_choice_released("a young man, not the old poor man", answers, infos) == 0  # the first answer's
    assert parse_choice_released("It was the Old Poor one", answers) == NO_ANSWER
    assert parse_choice_released("an old man", answers, infos) == NO_ANSWER  # an empty person names nobody
    assert parse_choice_released("the same", ("The same", "the same", "Unknown")) == 0


# The authors' released predictions of UnifiedQA-11B


@functools.cache
def released_rows(upstream, category):
    """The rows with predictions; each with its answers and what is known of them. No test may change them."""
    path = upstream / "nyu-mll" / "BBQ" / "results" / "UnifiedQA" / f"preds_{category}.jsonl"
    if not path.exists():
        pytest.skip(f"no {path.name} in the mirror {upstream} (set QABIAS_UPSTREAM)")
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    places = [f"ans{place}" for place in range(3)]
    return [(row, [row[name] for name in places], [row["answer_info"][name] for name in places]) for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("category", "prompt", "condition", "parsed", "right"),
    [
        ("Age", "qonly", "ambig", 1839, 558),
        ("Religion", "qonly", "ambig", 600, 348),
        # Accuracies of 54.67, 33.88, 93.48, 89.62, 65.00, 43.83, 88.00 and 85.17 percent.
        ("Age", "race", "ambig", 1840, 1006),
        ("Age", "arc", "ambig", 1839, 623),
        ("Age", "race", "disambig", 1840, 1720),
        ("Age", "arc", "disambig", 1840, 1649),
        ("Religion", "race", "ambig", 600, 390),
        ("Religion", "arc", "ambig", 600, 263),
        ("Religion", "race", "disambig", 600, 528),
        ("Religion", "arc", "disambig", 600, 511),
    ],
)
def test_released_predictions_give_the_published_counts(category, prompt, condition, parsed, right, upstream):
    asked = [
        (row[f"unifiedqa-t5-11b_pred_{prompt}"], answers, infos, row["label"])
        for row, answers, infos in released_rows(upstream, category)
        if row["context_condition"] == condition
    ]
    released = [(parse_choice_released(text, answers, infos), label) for text, answers, infos, label in asked]
    strict = [(parse_choice(text, answers), label) for text, answers, _, label in asked]
    for places in (released, strict):
        assert sum(place >= 0 for place, _ in places) == parsed
        assert sum(place == label for place, label in places) == right


@pytest.mark.slow
@pytest.mark.parametrize("category", ["Age", "Nationality", "Religion"])
def test_released_answers_are_parsed_as_themselves(category, upstream):
    path = upstream / "nyu-mll" / "BBQ" / "data" / f"{category}.jsonl"
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    for answers in {tuple(row[f"ans{place}"] for place in range(3)) for row in rows}:
        assert [parse_choice(answer, answers) for answer in answers] == [0, 1, 2]
        assert [parse_choice_released(answer, answers) for answer in answers] == [0, 1, 2]
        lettered = [f"({'abc'[place]}) {answers[place]}" for place in range(3)]
        assert [parse_choice(text, answers) for text in lettered] == [0, 1, 2]


# Numbers of answers

STATED = r"""2| 2 |2.|(2)|**2**|2.0|"2"|02|２|#2|<answer>2</answer>|\boxed{2}|ans2|ANS 2|Option 2|option_2|label=2
|My answer is option 2.|{"answer": 2}|{"label": "2"}|{"pick": 2}|{'answer': 2}|{"reason": "1 of them", "answer": "ans2"}
|정답: 2|答案：2|Answer: 2~because of 1|2~Why: 1 fell|Label: 2. Explanation: one|Label: 2 / Explanation: one
|It is so.~Label: 2|The answer is 2 because he is.|Answer: 2) the boy|<think>0 or 1</think>2|I choose 2|**Answer:** 2"""
NOT_STATED = """-1|Answer: -1|1.5|0.5|2%|$2|1/2|2:30|1 or 2|Answer: 1 and 2|1e0|2nd|two|72-year-old|the 2 boys|2 boys
|Answer: 2 boys|Answer: 2-year-old|I have 2 reasons|Answer: B|Answer: B. Confidence: 2|1~2~3|Step 1: think
|1. The boy~2. The man|Option 0: a~Option 1: b|Label: 1~Label: 2|Option 2 is wrong. Option 1 is right."""


def test_a_number_that_a_text_states_as_its_answer():
    """The lines of a text end with "~" here."""
    texts = [text.replace("~", "\n") for text in STATED.replace("\n", "").split("|")]
    assert [text for text in texts if stated_number(text) != 2] == []
    texts = [text.replace("~", "\n") for text in NOT_STATED.replace("\n", "").split("|")]
    assert [text for text in [*texts, "", "9" * 5000] if stated_number(text) is not None] == []


def test_no_written_answer_of_the_samples_states_a_number():
    lines = (ROOT / "tests" / "written_answers.jsonl").read_text("utf-8").splitlines()
    texts = [one for line in lines for one in json.loads(line) if isinstance(one, str)]
    assert [text for text in texts if stated_number(text) is not None] == []
