"""A client of an OpenAI-compatible API is asked with the requests that a server would get, and gives the same run."""

import asyncio
import functools
import json
import threading

import pyarrow.parquet as pq
import pytest

import qabias
from qabias.runs.arguments import DEFAULT_MACHINE, RunArguments
from qabias.runs.run import run

from .echo_model import EchoModel
from .loopback_server import KEY, chat_reply
from .loopback_server import serve as serve
from .loopback_server import surroundings as surroundings

LIMIT = 24
MODES = {
    "chat": ({"ask": "letter"}, {"body.top_k": 5, "body.seed": 3}),
    "logprobs": ({"ask": "letter-logprob"}, {"top_logprobs": 5}),
    "echo": ({"ask": "answer-logprob"}, {"body.top_k": 5}),
}


class StatusError(Exception):
    """As clients raise it where a server refuses."""

    def __init__(self, status_code, body, message=f"it failed with {KEY}"):
        super().__init__(message)
        self.status_code = status_code
        self.body = body


class Model:
    """An answer as a model of pydantic."""

    def __init__(self, answer):
        self.answer = answer

    def model_dump(self, *, exclude_unset=False):
        return self.answer if exclude_unset else {**self.answer, "error": None, "not_sent": None}


class Client:
    """Has the endpoints of `openai.OpenAI`; counts what it sends, and may fail or wrap its answers."""

    def __init__(self, reply=None, wrap=Model, fails=lambda number: None):
        self.api_key = KEY
        self.reply, self.wrap, self.fails = reply or reply_of(), wrap, fails
        self.sent, self.lock = [], threading.Lock()
        self.active = self.most_active = 0
        self.chat = Namespace(completions=Namespace(create=self.create_chat))
        self.completions = Namespace(create=self.create)

    def create_chat(
        self, *, messages, model, max_tokens=None, temperature=None, logprobs=None, top_logprobs=None, seed=None,
        extra_body=None,
    ):  # fmt: skip
        named = {"max_tokens": max_tokens, "temperature": temperature, "logprobs": logprobs}
        named |= {"top_logprobs": top_logprobs, "seed": seed, "messages": messages, "model": model}
        return self.send("/v1/chat/completions", named, extra_body)

    def create(self, *, model, prompt, max_tokens=None, temperature=None, echo=None, logprobs=None, extra_body=None):
        named = {"max_tokens": max_tokens, "temperature": temperature, "logprobs": logprobs, "echo": echo}
        return self.send("/v1/completions", {**named, "model": model, "prompt": prompt}, extra_body)

    def send(self, path, named, extra_body):
        body = {name: value for name, value in named.items() if value is not None} | (extra_body or {})
        with self.lock:
            number = len(self.sent)
            self.sent.append((path, body))
        error = self.fails(number)
        if error is not None:
            raise error
        return self.wrap(self.reply(path, body))


class AsyncClient(Client):
    """The same, asynchronous."""

    async def _later(self, make):
        self.active += 1
        self.most_active = max(self.most_active, self.active)
        await asyncio.sleep(0.005)
        self.active -= 1
        return make()

    @functools.wraps(Client.create_chat)
    async def create_chat(self, **fields):
        return await self._later(lambda: Client.create_chat(self, **fields))

    @functools.wraps(Client.create)
    async def create(self, **fields):
        return await self._later(lambda: Client.create(self, **fields))


class Namespace:
    def __init__(self, **names):
        self.__dict__.update(names)


def reply_of():
    echo = EchoModel()
    return lambda path, body: chat_reply(path, body) if "chat" in path else echo(path, body)


def measure(client, mode="chat", **more):
    arguments, options = MODES[mode]
    more = {"name": "m", "option": {**options, **more.pop("option", {})}, **arguments, **more}
    return qabias.run("bbq", model=client, config="Age", limit=LIMIT, progress=False, **more)


def predictions(folder):
    return pq.read_table(folder / "predictions")


# The same requests, answers and signature


@pytest.mark.slow
@pytest.mark.usefixtures("surroundings")
@pytest.mark.parametrize("make", [Client, AsyncClient])
@pytest.mark.parametrize("mode", MODES)
def test_a_client_is_asked_as_its_server_would_be(mode, make, serve, tmp_path):
    received = []
    reply = reply_of()
    server = serve(lambda path, body: received.append((path, body)) or reply(path, body))
    arguments, options = MODES[mode]
    over_http = qabias.run(
        "bbq", model="m", backend="server", config="Age", limit=LIMIT, progress=False, output=tmp_path / "http",
        option={**options, "base_url": server.url}, **arguments,
    )  # fmt: skip
    client = make(reply)
    result = measure(client, mode, output=tmp_path / "client")
    asked, over_wire = (sorted(json.dumps(sent, sort_keys=True) for sent in of) for of in (client.sent, received))
    assert asked == over_wire
    assert result.signature == over_http.signature
    assert "|model:m|scorer:server" in result.signature
    assert predictions(result.folder).equals(predictions(over_http.folder))
    journals = [sorted((tmp_path / name / "requests.jsonl").read_text().splitlines()) for name in ("http", "client")]
    assert journals[0] == journals[1]
    # The run of the one goes on with the other.
    measure(client, mode, output=tmp_path / "http")
    assert len(client.sent) == len(received)


def test_several_requests_are_under_way_at_once_also_where_a_loop_is_running():
    client = AsyncClient()

    async def notebook():
        return measure(client, option={"max_connections": 4})

    asyncio.run(notebook())
    assert client.most_active == 4


def test_a_client_whose_create_takes_any_field_gets_all_of_them_and_may_give_mappings():
    sent = []

    def create(**fields):
        sent.append(fields)
        return chat_reply("/v1/chat/completions", fields)

    result = measure(Namespace(chat=Namespace(completions=Namespace(create=create))))
    assert set(predictions(result.folder)["prediction"].to_pylist()) <= {0, 1, 2}
    assert all(fields["top_k"] == 5 and "extra_body" not in fields for fields in sent)
    assert len(sent) == LIMIT


# Stopped, and gone on


@pytest.mark.parametrize("make", [Client, AsyncClient])
def test_after_a_failure_the_same_call_goes_on_and_nothing_is_asked_twice(make, tmp_path):
    client = make(fails=lambda number: ConnectionError(f"no route, {KEY}") if number == 9 else None)
    with pytest.raises(qabias.QabiasError, match=r"ConnectionError: no route, \[key\]") as e:
        measure(client, output=tmp_path / "run", option={"max_connections": 1})
    assert KEY not in str(e.value)
    assert e.value.__cause__ is None
    assert e.value.__suppress_context__
    assert len(client.sent) == 10
    measure(client, output=tmp_path / "run")
    assert len(client.sent) == LIMIT + 1  # the one that failed is sent again
    assert KEY not in (tmp_path / "run" / "requests.jsonl").read_text()


# Failures


def test_what_a_filter_refuses_is_filtered():
    body = {"error": {"message": "no", "code": "content_filter"}}
    client = Client(fails=lambda number: StatusError(400, body["error"] if number % 2 else body))
    with pytest.warns(UserWarning, match="24 of 24"):
        result = measure(client)
    assert predictions(result.folder)["outcome"].unique().to_pylist() == ["filtered"]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (StatusError(429, {"message": "no", "code": "insufficient_quota"}), "429: no$"),
        (StatusError(401, {"message": f"wrong key {KEY}"}), r"401: wrong key \[key\]"),
        (StatusError(404, None), r"404: it failed with \[key\]"),
        (StatusError(429, {"message": "slow"}), "429: .*max_retries"),
        (StatusError(503, {}), "503"),
        (TypeError("unexpected"), "TypeError: unexpected"),
    ],
)
def test_failures_are_told_in_one_line_without_the_key(error, message):
    with pytest.raises(qabias.QabiasError, match=message) as caught:
        measure(Client(fails=lambda number: error))
    assert KEY not in str(caught.value)
    assert len(caught.value.args[0].splitlines()) == 1


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("text", "a str"),
        (None, "None"),
        ({"error": {"message": "overloaded"}}, "overloaded"),
        ({"choices": [{"message": {"content": "A"}, "finish_reason": "error"}]}, "finish reason"),
    ],
)
def test_answers_that_are_none_are_refused(answer, message):
    with pytest.raises(qabias.QabiasError, match=message):
        measure(Client(reply=lambda path, body: answer, wrap=lambda given: given))


def test_a_mode_needs_its_endpoint():
    only_chat = Namespace(chat=Client().chat)
    with pytest.raises(qabias.QabiasError, match=r"no completions\.create"):
        measure(only_chat, "echo")
    only_completions = Namespace(completions=Client().completions)
    assert measure(only_completions, "echo").model == "m"


# What makes no sense with a client


@pytest.mark.parametrize(
    ("more", "message"),
    [
        *(({"option": {name: "1"}}, f"the client sets {name}") for name in ("base_url", "timeout", "batch")),
        ({"dtype": "float16"}, "dtype"),
        ({"backend": "causal"}, "causal"),
        ({"tokenizer": str}, "client"),
        ({"name": None}, "name="),
    ],
)
def test_what_makes_no_sense_with_a_client_is_refused(more, message):
    client = Client()
    with pytest.raises(qabias.QabiasError, match=message):
        measure(client, **more)
    assert client.sent == []


def test_a_refusal_is_that_of_a_server_so_that_fallbacks_work():
    def fails(number):
        return StatusError(400, {"message": "max_tokens must be at least 1, got 0"}) if number == 0 else None

    refusing = Client(EchoModel(), fails=fails)
    with pytest.warns(UserWarning, match="max_tokens 0"):
        measure(refusing, "echo", option={"max_connections": 1})
    assert [body["max_tokens"] for _, body in refusing.sent[:3]] == [0, 1, 1]


def test_what_is_too_long_is_truncated_and_the_others_have_their_answers():
    error = StatusError(400, {"message": "too long", "code": "context_length_exceeded"})
    result = measure(Client(fails=lambda number: error if number == 3 else None))
    assert predictions(result.folder)["outcome"].to_pylist().count("truncated") == 1


def test_the_scorer_server_takes_a_client_from_python_only(tmp_path):
    arguments = RunArguments("bbq", "m", "Age", backend="server", limit=8)
    with pytest.raises(qabias.QabiasError, match="base_url"):
        run(arguments, tmp_path / "run")
    done = run(arguments, tmp_path / "run", DEFAULT_MACHINE, handed_over=Client())
    assert done.scores["n"] == 8
