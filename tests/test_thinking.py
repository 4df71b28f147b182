"""Models that think before they answer: told by their templates, given room, and their thoughts set aside."""

import pyarrow.parquet as pq
import pytest

from qabias.answers import NO_ANSWER, parse_choice
from qabias.answers.outcomes import Written, marks_thinking, opens_thinking, outcome, set_thinking_aside
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
        ("first <think>then", "first", "then", True),
        ("<think>Is it A?</think>\nB<|im_end|>", "B", "Is it A?", False),
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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"template.enable_thinking": "False"}, "Write false"),
        ({"template.enable_thinking": "off"}, "Write true or false"),
        ({"template.thinking": "1"}, "Write true or false"),
        *(({"template.effort": text}, "template.effort") for text in ("a|b", "a\nb", "")),
        ({"template.": "a"}, "template.NAME"),
        ({"chat": "no", "template.effort": "low"}, "chat=yes"),
    ],
)
def test_bad_arguments_are_named_before_a_model_is_loaded(options, message):
    with pytest.raises(QabiasError, match=message):
        load_scorer("causal", "nowhere", scorer_options={"chat": "yes", **options})


@pytest.mark.parametrize(
    ("template", "name", "message"),
    [
        (SWITCHED, "enable_thinkin", "Did you mean 'enable_thinking'"),
        (PLAIN, "enable_thinking", "'enable_thinking'"),
        *((SWITCHED, name, name) for name in ("messages", "add_generation_prompt", "bos_token")),
    ],
)
def test_an_argument_that_a_template_does_not_take_is_refused(template, name, message):
    with pytest.raises(QabiasError, match=message):
        ChatTemplate(make_chat_model(template), arguments={name: False})


def test_arguments_are_json_or_text():
    texts = ("true", "false", "low", "3", "0.5", '"3"', "null")
    values = [parse_arguments("causal", {"chat": "yes", "template.effort": text})["effort"] for text in texts]
    assert values == [True, False, "low", 3, 0.5, "3", None]


# Texts


@pytest.mark.parametrize("special", [True, False])
@pytest.mark.parametrize("template", [SWITCHED, OPENED], ids=["opened by the model", "opened by the template"])
def test_thoughts_that_are_cut_off_are_no_answer(template, special):
    loaded = make_scripted(template, special=special)
    ((short,),) = GenerationScorer(loaded, template=ChatTemplate(loaded), max_new_tokens=4).generate(["Who?"], ["a/0"])
    assert (str(short), short.finish) == ("", "length")
    assert short.thinking.startswith("It be")
    assert outcome(short, parse_choice(short, ANSWERS)) == "truncated"


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
    decoder = WrittenDecoder(make_chat_model(PLAIN).tokenizer)
    tokens = decoder._tokenizer.encode(" B\n and", add_special_tokens=False)
    assert str(decoder.decode([*tokens, 1, 1], "stop")) == " B\n and"  # as it is


# Runs


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Saved models that say what they think."""
    saved = {}
    for name, template in (("switched", SWITCHED), ("opened", OPENED)):
        loaded = make_scripted(template)
        saved[name] = save(tmp_path_factory.mktemp(name), loaded.model, loaded.tokenizer)
    return saved


def ask(model, folder, word="letter", **options):
    """Run eight examples; returns what was answered, the signature and the scores."""
    options = {name.replace("__", "."): value for name, value in options.items()}
    arguments = RunArguments("bbq", model, config="Age", limit=8, backend="causal", options=options)
    result = run(arguments.resolve(ask=word), folder)
    return pq.read_table(folder / "predictions").to_pylist(), result.signature, result.scores


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options", "thinking", "signed"),
    [
        ("switched", {}, "It be A", "+thinking=yes"),
        ("opened", {}, "It be A", "+thinking=yes"),
        ("switched", {"template__enable_thinking": "true"}, "It be A", "+template.enable_thinking=true"),
        ("switched", {"template__enable_thinking": "false"}, "", "+template.enable_thinking=false"),
    ],
)
def test_a_run_keeps_thoughts_reads_the_answer_and_signs_the_switch(name, options, thinking, signed, folders, tmp_path):
    rows, signature, scores = ask(folders[name], tmp_path / "run", **options)
    assert len(rows) == 8
    for row in rows:
        assert (row["outputs"], row["prediction"], row["outcome"]) == (["B"], 1, "answered")
        assert row.get("thinking", "") == thinking
    assert f"+max_new_tokens={THINKING_TOKENS if thinking else 64}+" in signature
    assert ("+thinking=yes" in signature) == bool(thinking)
    assert signed in signature
    assert scores["share_position_1"] == 1


def test_likelihoods_of_a_model_that_would_think_are_warned_of(folders, tmp_path):
    with pytest.warns(UserWarning, match="enable_thinking=false"):
        _, on, _ = ask(folders["switched"], tmp_path / "on", "letter-logprob")
    rows, off, _ = ask(folders["switched"], tmp_path / "off", "letter-logprob", template__enable_thinking="false")
    assert {row["prediction"] for row in rows} == {1}
    assert on != off
    with pytest.warns(UserWarning, match="use ask letter"):
        ask(folders["opened"], tmp_path / "opened", "letter-logprob")
