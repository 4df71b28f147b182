"""Models that think before they answer: told by their templates, given room, and their thoughts set aside."""

import json

import pyarrow.parquet as pq
import pytest

from qabias.answers import NO_ANSWER, parse_choice
from qabias.answers.outcomes import Written, outcome
from qabias.answers.thinking import marks_thinking, opens_thinking, set_thinking_aside
from qabias.errors import QabiasError
from qabias.runs.arguments import RunArguments
from qabias.runs.run import run
from qabias.scorers.chat import ChatTemplate, parse_arguments
from qabias.scorers.generation import THINKING_TOKENS, GenerationScorer, WrittenDecoder
from qabias.scorers.registry import load_scorer

from .saved_models import save
from .thinking_models import (
    CHANNELS,
    IN_TOKENS,
    IN_WORDS,
    OFF_AT_FIRST,
    OPENED,
    PLAIN,
    SWITCHED,
    TOLD,
    make_chat_model,
    make_scripted,
)

pytestmark = pytest.mark.usefixtures("one_thread")

ANSWERS = ("The grandfather", "The grandson", "Can't be determined")
ON, OFF = {"enable_thinking": True}, {"enable_thinking": False}


# Marks


@pytest.mark.parametrize(
    ("text", "answer", "thinking", "is_open"),
    [
        ("<think>Is it A?</think>\n\nB", "B", "Is it A?", False),
        ("Is it A?</think>B", "B", "Is it A?", False),  # the template opened it
        ("<think>Is it A", "", "Is it A", True),
        ("<think>\n\n</think>\n\nB", "B", "", False),
        ("<think>One.</think><think>Two.</think>B", "B", "One.  Two.", False),
        ("[THINK]Is it A?[/THINK]B", "B", "Is it A?", False),
        ("◁think▷Is it A?◁/think▷B", "B", "Is it A?", False),
        ("<seed:think>Is it A?</seed:think>B", "B", "Is it A?", False),
        ("<|channel>thought\nIs it A?<channel|>B", "B", "Is it A?", False),
        ("<|channel>thought\nIs it A", "", "Is it A", True),
        # Channels, with their tokens and without.
        (
            "<|channel|>analysis<|message|>Is it A?<|end|><|start|>assistant<|channel|>final<|message|>B<|return|>",
            "B",
            "Is it A?",
            False,
        ),
        ("<|channel|>analysis<|message|>Is it A", "", "Is it A", True),
        ("<|channel|>final<|message|>B<|return|>", "B", "", False),
        ("analysisIs it A?assistantfinalB", "B", "Is it A?", False),
        ("analysisWe need to choose A", "", "We need to choose A", True),
        ("Analysis: it is B", "Analysis: it is B", "", False),
        ("analysis of the text: B", "analysis of the text: B", "", False),
    ],
)
def test_thinking_is_set_aside(text, answer, thinking, is_open):
    assert set_thinking_aside(text) == (answer, thinking, is_open)
    if answer in ("", "B"):
        assert parse_choice(text, ANSWERS) == (1 if answer else NO_ANSWER)


def test_an_answer_that_ends_in_its_thinking_is_truncated():
    for text in ("<think>It may be A", Written("", "length", "It may be A"), Written("", "stop", "It may be A")):
        assert parse_choice(text, ANSWERS) == NO_ANSWER
        assert outcome(text, NO_ANSWER) == "truncated"
    assert outcome(Written("", "stop"), NO_ANSWER) == "unread"
    assert outcome(Written("hm", "stop", "It may be A"), NO_ANSWER) == "unread"


@pytest.mark.parametrize(
    ("header", "opened"),
    [
        ("[assistant]\n", None),
        ("[assistant]<think>\n", "<think>"),
        ("[assistant]<think>\n\n</think>\n\n", ""),
        ("[assistant]</think>", ""),
        ("<|channel>thought\n<channel|>", ""),
        ("[THINK]", "[THINK]"),
    ],
)
def test_what_a_header_leaves_open(header, opened):
    assert opens_thinking(header) == opened


def test_marks_are_told_from_other_special_tokens():
    marks = ("<think>", "</think>", "[THINK]", "◁/think▷", "<|channel|>", "<|message|>", "<|channel>", "<channel|>")
    assert all(map(marks_thinking, marks))
    assert not any(map(marks_thinking, ("<|im_start|>", "<|im_end|>", "</s>", "<|return|>", "think", "<|think|>")))


# Templates


@pytest.mark.parametrize(
    ("template", "arguments", "thinks", "opening"),
    [
        (PLAIN, {}, False, ""),
        (SWITCHED, {}, True, ""),
        (SWITCHED, ON, True, ""),
        (SWITCHED, OFF, False, ""),
        (OPENED, {}, True, "<think>"),
        (OFF_AT_FIRST, {}, False, ""),
        (OFF_AT_FIRST, {"thinking": True}, True, "<think>"),
        (IN_WORDS, {}, True, ""),
        (IN_WORDS, ON, True, ""),
        (IN_WORDS, OFF, False, ""),
        (IN_TOKENS, {}, False, ""),
        (IN_TOKENS, ON, True, ""),
        (CHANNELS, {}, True, ""),
        (CHANNELS, {"reasoning_effort": "low"}, True, ""),
        (TOLD, {}, True, ""),
    ],
)
def test_a_template_tells_whether_its_model_thinks(template, arguments, thinks, opening):
    loaded = make_chat_model(template)
    found = ChatTemplate(loaded, arguments=arguments)
    assert (found.thinks, found.opening) == (thinks, opening)
    messages = [{"role": "user", "content": "Who?"}]
    expected = loaded.tokenizer.apply_chat_template(
        messages, add_generation_prompt=True, tokenize=True, return_dict=False, **arguments
    )
    assert list(found.encode_prompts(["Who?"])["Who?"]) == expected


def test_an_argument_that_a_template_does_not_take_is_refused():
    switched, plain = make_chat_model(SWITCHED), make_chat_model(PLAIN)
    with pytest.raises(QabiasError) as error:
        ChatTemplate(switched, arguments={"enable_thinkin": False})
    assert str(error.value) == (
        "chat: the template of model 'tiny' has no argument 'enable_thinkin'; it takes enable_thinking; "
        "did you mean 'enable_thinking'?"
    )
    with pytest.raises(QabiasError, match="'enable_thinking'"):
        ChatTemplate(plain, arguments=OFF)
    for name in ("messages", "add_generation_prompt", "bos_token"):
        with pytest.raises(QabiasError, match=f"has no argument '{name}'"):
            ChatTemplate(switched, arguments={name: "x"})


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("false", False), ("low", "low"), ("3", 3), ("0.5", 0.5), ('"3"', "3"), ("null", None), ("", "")],
)
def test_arguments_are_json_or_text(text, value):
    options = {"chat": "yes", "template.effort": text}
    if text:
        assert parse_arguments("causal", options) == {"effort": value}
    else:
        with pytest.raises(QabiasError, match=r"causal: template\.effort must be one line"):
            parse_arguments("causal", options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"template.enable_thinking": "False"}, "causal: template.enable_thinking is 'False'; write false"),
        ({"template.enable_thinking": "off"}, "causal: template.enable_thinking is 'off'; write true or false"),
        ({"template.thinking": "1"}, "causal: template.thinking is '1'; write true or false"),
        ({"template.effort": "a|b"}, "causal: template.effort must be one line of text without '|'"),
        ({"template.effort": "a\nb"}, "causal: template.effort must be one line of text without '|'"),
        ({"template.": "a"}, "causal: template. names no argument; write template.NAME=VALUE"),
        ({"chat": "no", "template.effort": "low"}, "causal: template.effort is for chat; add --option chat=yes"),
        ({"template.effort": "low"}, "causal: template.effort is for chat; add --option chat=yes"),
    ],
)
def test_bad_arguments_are_named_before_a_model_is_loaded(options, message):
    chat = {} if "for chat" in message else {"chat": "yes"}
    with pytest.raises(QabiasError) as error:
        load_scorer("causal", "nowhere", scorer_options={**chat, **options})
    assert str(error.value).startswith(message)


# Texts


@pytest.mark.parametrize("special", [True, False])
@pytest.mark.parametrize(
    ("template", "written"),
    [(SWITCHED, ("B", "stop", "It be A")), (OPENED, ("B", "stop", "It be A"))],
    ids=["opened by the model", "opened by the template"],
)
def test_what_a_model_thought_is_no_part_of_its_answer(template, written, special):
    loaded = make_scripted(template, special=special)
    scorer = GenerationScorer(loaded, template=ChatTemplate(loaded))
    ((text,),) = scorer.generate(["Who?"], ["a/0"])
    assert (str(text), text.finish, text.thinking) == written
    ((short,),) = GenerationScorer(loaded, template=ChatTemplate(loaded), max_new_tokens=4).generate(["Who?"], ["a/0"])
    assert (str(short), short.finish) == ("", "length")
    assert short.thinking.startswith("It be")
    assert outcome(short, parse_choice(short, ANSWERS)) == "truncated"


def test_without_thinking_the_answer_comes_at_once():
    loaded = make_scripted(SWITCHED)
    scorer = GenerationScorer(loaded, template=ChatTemplate(loaded, arguments=OFF))
    ((text,),) = scorer.generate(["Who?"], ["a/0"])
    assert (str(text), text.finish, text.thinking) == ("B", "stop", "")


def test_channels_keep_their_tokens_where_others_are_dropped():
    tokenizer = make_chat_model(CHANNELS).tokenizer
    names = ("<|start|>", "<|end|>", "<|channel|>", "<|message|>", "<|return|>")
    tokenizer.add_special_tokens({"additional_special_tokens": [*names]})
    said = (
        "<|channel|>analysis<|message|>It can be A.<|end|><|start|>assistant<|channel|>final<|message|>B<|return|></s>"
    )
    tokens = tokenizer.encode(said, add_special_tokens=False)
    assert "<|" not in tokenizer.decode(tokens, skip_special_tokens=True)
    decoder = WrittenDecoder(tokenizer)
    written = decoder.decode(tokens, "stop")
    assert (str(written), written.thinking, written.finish) == ("B", "It can be A.", "stop")
    first = tokens.index(tokenizer.convert_tokens_to_ids("<|message|>"))
    cut = decoder.decode(tokens[: first + 4], "length")
    assert (str(cut), outcome(cut, parse_choice(cut, ANSWERS))) == ("", "truncated")


def test_a_text_without_thinking_stays_as_it_is():
    decoder = WrittenDecoder(make_chat_model(PLAIN).tokenizer)
    tokens = decoder._tokenizer.encode(" B\n and", add_special_tokens=False)
    assert str(decoder.decode([*tokens, 1, 1], "stop")) == " B\n and"


# Runs


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Saved models that say what they think."""
    found = {}
    for name, template, make in (
        ("switched", SWITCHED, make_scripted),
        ("opened", OPENED, make_scripted),
    ):
        loaded = make(template)
        found[name] = save(tmp_path_factory.mktemp(name), loaded.model, loaded.tokenizer)
    return found


def ask(model, folder, word="write", **options):
    """Run eight examples; returns what was answered, the signature and the scores."""
    arguments = RunArguments(
        "bbq",
        model,
        config="Age",
        limit=8,
        scorer="causal",
        options={n.replace("__", "."): v for n, v in options.items()},
    )
    result = run(arguments.resolve(ask=word), folder)
    return pq.read_table(folder / "predictions").to_pylist(), result.signature, result.scores


@pytest.mark.parametrize("name", ["switched", "opened"])
def test_a_run_keeps_thoughts_and_reads_the_answer(name, folders, tmp_path):
    rows, signature, scores = ask(folders[name], tmp_path / "run")
    assert len(rows) == 8
    for row in rows:
        assert (row["outputs"], row["thinking"], row["prediction"], row["outcome"]) == (["B"], "It be A", 1, "answered")
    assert f"+max_new_tokens={THINKING_TOKENS}+" in signature
    assert "+thinking=yes" in signature
    assert scores["share_position_1"] == 1
    assert json.loads((tmp_path / "run" / "run.json").read_text())["signature"] == signature


def test_the_switch_changes_prompt_budget_and_signature(folders, tmp_path):
    thought, on, _ = ask(folders["switched"], tmp_path / "on", template__enable_thinking="true")
    direct, off, _ = ask(folders["switched"], tmp_path / "off", template__enable_thinking="false")
    assert [row["prediction"] for row in thought] == [row["prediction"] for row in direct] == [1] * 8
    assert all(row["thinking"] for row in thought)
    assert all("thinking" not in row for row in direct)
    assert f"+max_new_tokens={THINKING_TOKENS}+" in on
    assert "+template.enable_thinking=true" in on
    assert "+thinking=yes" in on
    assert "+max_new_tokens=64+" in off
    assert "+template.enable_thinking=false" in off
    assert "thinking=yes" not in off


@pytest.mark.parametrize("name", ["switched", "opened"])
def test_thoughts_that_are_cut_off_are_truncated(name, folders, tmp_path):
    rows, signature, scores = ask(folders[name], tmp_path / "run", max_new_tokens="4")
    for row in rows:
        assert (row["outputs"], row["prediction"], row["outcome"]) == ([""], NO_ANSWER, "truncated")
        assert row["thinking"].startswith("It be")
    assert "+max_new_tokens=4+" in signature
    assert scores["outcomes"]["truncated"] == 8


def test_likelihoods_of_a_model_that_would_think_are_warned_of(folders, tmp_path):
    with pytest.warns(UserWarning, match="enable_thinking=false"):
        _, on, _ = ask(folders["switched"], tmp_path / "on", "letter")
    rows, off, _ = ask(folders["switched"], tmp_path / "off", "letter", template__enable_thinking="false")
    assert {row["prediction"] for row in rows} == {1}
    assert on != off
    with pytest.warns(UserWarning, match="use --ask write"):
        ask(folders["opened"], tmp_path / "opened", "letter")
