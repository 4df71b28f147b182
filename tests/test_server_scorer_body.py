"""Fields of a user's own in the body of requests, and what models think."""

import pyarrow.parquet as pq
import pytest

from qabias.answers.outcomes import outcome
from qabias.errors import QabiasError
from qabias.planning.server import estimate_run
from qabias.runs.arguments import RunArguments
from qabias.runs.asking import asked
from qabias.runs.run import run
from qabias.scorers.base import ConfiguredScorer, GeneratingScorer, Request
from qabias.scorers.registry import load_scorer
from qabias.scorers.server.body import parse_body

from .echo_model import EchoModel
from .loopback_server import chat, digest, letter_of, written
from .loopback_server import serve as serve
from .loopback_server import surroundings as surroundings

pytestmark = pytest.mark.usefixtures("surroundings", "one_thread")


@pytest.mark.parametrize(
    ("options", "body"),
    [
        ({"body.reasoning_effort": "low", "url": "http://h/v1"}, {"reasoning_effort": "low"}),
        ({"body.seed": "1", "body.top_p": "0.9"}, {"seed": 1, "top_p": 0.9}),
        ({"body.chat_template_kwargs.enable_thinking": "false"}, {"chat_template_kwargs": {"enable_thinking": False}}),
        ({"body.a": '{"b": [1, null]}', "body.a.c": '"1"'}, {"a": {"b": [1, None], "c": "1"}}),
        ({"body.a": "NaN and more", "body.b": "{torn", "body.c": ""}, {"a": "NaN and more", "b": "{torn", "c": ""}),
        ({"body.a": '"Infinity"', "body.b": "1e308"}, {"a": "Infinity", "b": 1e308}),
        ({"body.a.model": "x"}, {"a": {"model": "x"}}),
    ],
)
def test_values_are_json_where_they_can_be_and_dots_lead_into_objects(options, body):
    assert parse_body(options, may_set_temperature=False) == body


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(({f"body.{name}": "1"}, f"body.{name} is not yours to set: ") for name in ("model", "messages", "prompt")),
        *(({f"body.{name}": "1"}, "max_new_tokens=N") for name in ("max_tokens", "max_completion_tokens")),
        *(({f"body.{name}": "1"}, "not yours to set") for name in ("logprobs", "top_logprobs", "echo", "stream", "n")),
        ({"body.temperature": "0.6"}, "temperature=none first"),
        ({"body.temperature": "0.6", "mode": "logprobs", "temperature": "none"}, "probabilities have none"),
        ({"body.temperature": "0.6", "mode": "echo"}, "probabilities have none"),
        ({"body.extra_body": '{"top_k": 1}'}, "a word of the Python client; give what stands in it by itself"),
        ({"body.extra_body.top_k": "1"}, "a word of the Python client"),
        ({"body.": "1"}, "names no field"),
        ({"body.a..b": "1"}, "names no field"),
        ({"body.a b": "1"}, "names no field"),
        ({"body.a": "x|limit:none"}, "the signature cannot"),
        ({"body.a": "x\ny"}, "the signature cannot"),
        ({"body.a": "1", "body.a.b": "2"}, "leads into a, which is no object"),
        ({"body.a": '{"b": 1}', "body.a.b": "2"}, "given twice"),
        *(
            ({"body.top_p": value}, "body.top_p is .*finite numbers only; give a text by quotation marks")
            for value in ("1e999", "-1e999", "NaN", "-Infinity", "[1, 1e999]", '{"a": {"b": [NaN]}}')
        ),
    ],
)
def test_fields_that_cannot_be_are_refused(options, message):
    with pytest.raises(QabiasError, match=message):
        load_scorer("server", "m", scorer_options={"url": "http://h/v1", **options})


def test_sampling_may_be_asked_for_in_place_of_the_temperature(serve):
    bodies = []
    server = serve(lambda path, body: bodies.append(body) or {"choices": [{"message": {"content": "A"}}]})
    options = {"url": server.url, "temperature": "none", "body.temperature": "0.6", "max_new_tokens": "9"}
    load_scorer("server", "m", scorer_options=options).generate(["q"], ["q"])
    messages = [{"role": "user", "content": "q"}]
    assert bodies == [{"model": "m", "messages": messages, "max_tokens": 9, "temperature": 0.6}]


def test_an_echo_takes_fields_too(serve):
    model, bodies = EchoModel(), []
    server = serve(lambda path, body: bodies.append(body) or model(path, body))
    options = {"url": server.url, "mode": "echo", "body.add_special_tokens": "false"}
    load_scorer("server", "m", scorer_options=options).score([Request("Who?", (" A baker",))])
    assert bodies[0]["add_special_tokens"] is False
    assert "option_length" not in bodies[0]


def test_a_field_of_an_echo_does_not_take_the_place_of_the_length_of_an_option(serve):
    model, bodies = EchoModel(), []
    server = serve(lambda path, body: bodies.append(body) or model(path, body))
    options = {"url": server.url, "mode": "echo"}
    request = Request("Who?", (" A baker", " The cook of the house"))
    (plain,) = load_scorer("server", "m", scorer_options=options).score([request])
    (found,) = load_scorer("server", "m", scorer_options={**options, "body.option_length": "3"}).score([request])
    assert found.loglikelihoods.tolist() == plain.loglikelihoods.tolist()
    assert found.n_tokens.tolist() == plain.n_tokens.tolist()
    assert [body.get("option_length") for body in bodies] == [None, None, 3, 3]
    assert not any("option length" in body for body in bodies)


def test_other_fields_are_another_run_and_other_requests(serve, tmp_path):
    bodies = []
    server = serve(
        lambda path, body: (
            bodies.append(body) or {"choices": [{"message": {"content": letter_of(body["messages"][0]["content"])}}]}
        )
    )

    def ask(value, folder):
        options = {"url": server.url, "body.reasoning_effort": value}
        arguments = RunArguments("bbq", "m", config="SES", scorer="server", limit=4, options=options)
        return run(arguments, tmp_path / folder).signature

    assert "+body.reasoning_effort=low+" in ask("low", "run")
    with pytest.raises(QabiasError, match="holds another run"):
        ask("high", "run")
    ask("high", "other")
    assert [body["reasoning_effort"] for body in bodies] == ["low"] * 4 + ["high"] * 4


# The room for an answer


@pytest.mark.parametrize(("word", "tokens"), [("write", 4 * 64), ("reason", 4 * 1024)])
def test_an_answer_has_four_times_the_room_that_its_format_needs(serve, tmp_path, word, tokens):
    bodies = []
    server = serve(lambda path, body: bodies.append(body) or {"choices": [{"message": {"content": "ANSWER: A"}}]})
    arguments = RunArguments("bbq", "m", config="SES", scorer="server", limit=4, options={"url": server.url})
    arguments = asked(arguments, word)
    estimate = estimate_run(arguments)
    signature = run(arguments, tmp_path / "run").signature
    assert {body["max_tokens"] for body in bodies} == {tokens}
    assert f"|scorer:server+max_new_tokens={tokens}+temperature=0|" in signature
    assert estimate.generated_tokens == 4 * tokens


def test_a_number_that_is_given_stays(serve):
    server = serve()
    scorer = chat(server)
    assert isinstance(scorer, GeneratingScorer)
    assert isinstance(scorer, ConfiguredScorer)
    scorer.limit_new_tokens(100)
    assert (scorer.new_tokens, scorer.settings["max_new_tokens"]) == (400, "400")
    given = load_scorer("server", "m", scorer_options={"url": server.url, "max_new_tokens": "7"})
    given.limit_new_tokens(100)
    assert (given.new_tokens, given.settings["max_new_tokens"]) == (7, "7")


# Thinking


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "chunks"])
def test_thinking_stands_in_a_column_of_its_own_and_is_not_read(serve, tmp_path, field):
    def reply(path, body):
        prompt = body["messages"][0]["content"]
        is_cut = digest(prompt) % 4 == 0
        thought = f"It may be {'ABC'['ABC'.index(letter_of(prompt)) - 1]}. The answer is A."
        said = "" if is_cut else letter_of(prompt)
        if field == "chunks":
            message = {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": thought}]}]}
            message["content"] += [{"type": "text", "text": said}] if said else []
        else:
            message = {"content": said, field: thought}
        return {"choices": [{"message": message, "finish_reason": "length" if is_cut else "stop"}]}

    server = serve(reply)
    arguments = RunArguments("bbq", "m", config="SES", scorer="server", limit=40, options={"url": server.url})
    scores = run(arguments, tmp_path / "run").scores
    rows = pq.read_table(tmp_path / "run" / "predictions").to_pylist()
    assert all(row["thinking"].startswith("It may be ") for row in rows)
    prompts = list(server.answered)
    cut = [prompt for prompt in prompts if digest(prompt) % 4 == 0]
    assert len(cut) > 2
    assert scores["outcomes"]["truncated"] == len(cut) == [row["outcome"] for row in rows].count("truncated")
    assert scores["outcomes"]["answered"] == 40 - len(cut)
    assert all((row["outputs"], row["prediction"]) == ([""], -1) for row in rows if row["outcome"] == "truncated")
    letters = ["ABC"[row["prediction"]] for row in rows if row["outcome"] == "answered"]
    assert sorted(letters) == sorted(letter_of(prompt) for prompt in prompts if prompt not in cut)


@pytest.mark.parametrize(
    ("message", "text", "thinking", "place", "became"),
    [
        # Channels of a model whose server does not part them, and servers that leave the answer out.
        (
            {"content": "<|channel|>analysis<|message|>A or B?<|end|><|start|>assistant<|channel|>final<|message|>B"},
            "<|channel|>analysis<|message|>A or B?<|end|><|start|>assistant<|channel|>final<|message|>B",
            "",
            1,
            "answered",
        ),
        ({"content": "<think>It is A"}, "<think>It is A", "", -1, "truncated"),
        ({"reasoning": "It is A"}, "", "It is A", -1, "truncated"),
        ({"content": None, "reasoning_content": "It is A"}, "", "It is A", -1, "truncated"),
        ({"content": None, "reasoning": None, "refusal": "I can't help."}, "I can't help.", "", -1, "truncated"),
    ],
)
def test_thinking_comes_in_many_ways(serve, message, text, thinking, place, became):
    from qabias.answers import parse_choice

    server = serve(lambda path, body: {"choices": [{"message": message, "finish_reason": "length"}]})
    (found,) = written(chat(server), ["q"])
    assert (str(found), found.thinking, found.finish) == (text, thinking, "length")
    assert parse_choice(found, ("x", "y", "z")) == place
    assert outcome(found, place) == became
