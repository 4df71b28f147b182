"""A model without a chat template behind a server gets plain prompts, by itself, and the run says so."""

import json

import pytest

from qabias.errors import QabiasError
from qabias.runs.opened import Run
from qabias.runs.run import run
from qabias.scorers.server.templates import misfit

from .loopback_server import Handler, Server, chat_reply, letter_of, served
from .loopback_server import serve as serve
from .loopback_server import surroundings as surroundings

pytestmark = pytest.mark.usefixtures("surroundings")

CHATML = "{% for message in messages %}{{ '<|im_start|>' + message.role + message.content + '<|im_end|>' }}{% endfor %}"
OWN = "{% for message in messages %}[INST]{{ message.content }}[/INST]{% endfor %}"
NO_TEMPLATE = "default chat template is no longer allowed, so you must provide a chat template"


class Listing(Handler):
    """Also names its kind, its template, and how many tokens a mark has."""

    def do_GET(self):
        self.server.looks.append(self.path)
        owner, template, _ = self.server.about
        models = {"data": [{"id": "m", "owned_by": owner}]}
        found = {"/v1/models": models, "/props": {"chat_template": template}}.get(self.path)
        self._send(404 if found is None else 200, found, {})

    def do_POST(self):
        if self.path == "/tokenize":
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert body["parse_special"]
            self._send(200, {"tokens": list(range(self.server.about[2]))}, {})
        else:
            super().do_POST()


class ListingServer(Server):
    handler = Listing
    about = ("llamacpp", CHATML, 6)

    def __init__(self, *arguments, about=None, **options):
        super().__init__(*arguments, **options)
        self.about, self.looks = about or self.about, []


def plain_reply(path, body):
    """A base model's server: a letter and the beginning of another question."""
    if path != "/v1/completions":
        return 400, {"error": {"message": NO_TEMPLATE}}, {}
    letter = letter_of(body["prompt"])
    top = {f" {letter}": -0.1, " The": -3.0}
    logprobs = {"tokens": [f" {letter}"], "top_logprobs": [top]} if body.get("logprobs") else None
    return {"choices": [{"text": f" {letter}", "finish_reason": "stop", "logprobs": logprobs}]}


@pytest.mark.parametrize("about", [("llamacpp", CHATML, 6), ("vllm", "", 0), ("sglang", "", 0)])
@pytest.mark.parametrize(
    ("options", "mode"),
    [({}, "completions"), ({"mode": "logprobs", "top_logprobs": "5"}, "completions-logprobs")],
)
def test_a_model_without_a_template_gets_plain_prompts(serve, tmp_path, caplog, about, options, mode):
    server = serve(plain_reply, make=ListingServer, about=about)
    arguments = served(server, 8, config="Age", **options)
    if options:
        arguments = type(arguments)(**{**vars(arguments), "format": "letters"})
    result = run(arguments, tmp_path / "run")
    assert f"+mode={mode}+" in result.signature
    assert result.arguments.options["mode"] == mode
    assert result.scores["unparsed_share"] == 0
    assert result.cost["requests"] == 8  # what the journal keeps of the server is no request
    assert f"mode={mode}" in caplog.text
    # The same command resumes, also if the server no longer answers, and looks no second time.
    looks = list(server.looks)
    server.about = ("llamacpp", OWN, 1)
    (tmp_path / "run" / "scores.json").unlink()
    assert run(arguments, tmp_path / "run").signature == result.signature
    assert server.looks == looks


@pytest.mark.parametrize(
    "about", [("llamacpp", CHATML, 1), ("llamacpp", OWN, 6), ("llamacpp", None, 6), ("vllm", CHATML, 6), ("me", "", 6)]
)
def test_a_model_with_a_template_is_asked_by_it(serve, tmp_path, about):
    server = serve(chat_reply, make=ListingServer, about=about)
    result = run(served(server, 8, config="Age"), tmp_path / "run")
    assert "mode=" not in result.signature
    assert "template" not in (tmp_path / "run" / "requests.jsonl").read_text("utf-8")


def test_the_template_of_the_server_can_be_kept_or_avoided(serve, tmp_path):
    server = serve(chat_reply, make=ListingServer)
    kept = run(served(server, 8, config="Age", mode="chat"), tmp_path / "kept")
    assert "|scorer:server+max_new_tokens=256+mode=chat+" in kept.signature
    plain = serve(plain_reply)
    arguments = served(plain, 8, config="Age", mode="completions").resolve(ask="letter")
    signature = run(arguments, tmp_path / "plain").signature
    assert "|scorer:server+max_new_tokens=64+mode=completions+" in signature  # nothing thinks unseen
    assert Run.open(tmp_path / "plain").signature == signature
    for ask in ("letter-logprob", "answer-logprob"):
        with pytest.raises(QabiasError, match=r"contradicts .*mode=completions"):
            arguments.resolve(ask=ask)


def test_a_server_of_no_known_kind_without_a_template_names_the_option(serve, tmp_path):
    with pytest.raises(QabiasError, match="must provide a chat template") as refused:
        run(served(serve(plain_reply), 8, config="Age"), tmp_path / "run")
    assert "mode=completions" in refused.value.args[1]


def test_a_chat_server_that_is_asked_plainly_names_its_field(serve, tmp_path):
    chats = serve(lambda path, body: {"choices": [{"message": {"content": "A"}}]})
    with pytest.raises(QabiasError, match=r"choices\[0\]\.text"):
        run(served(chats, 8, config="Age", mode="completions"), tmp_path / "run")


@pytest.mark.parametrize(
    ("text", "finish", "thinking", "shown"),
    [
        ("A<|im_end|>\n<|im_start|>admin", "stop", "", "<|im_end|>"),
        ("A\nuser\nAnd", "stop", "", "user"),
        ("A [/INST]", "stop", "", "[/INST]"),
        ("A\n### Response", "length", "", "### Response"),
        ("A. Because", "length", "", "did not end"),
        ("", "length", "Let me", ""),
        ("", "length", "", ""),
        ("A", "stop", "", ""),
        ("The user is right: [A]", "", "", ""),
    ],
)
def test_an_answer_shows_whether_the_model_follows_the_template(text, finish, thinking, shown):
    found = misfit(text, finish, thinking)
    assert shown in found
    assert bool(found) == bool(shown)


def test_the_first_answer_that_does_not_end_is_told_before_the_others(serve, tmp_path, caplog):
    def reply(path, body):
        return {"choices": [{"message": {"content": "A<|im_end|>\n<|im_start|>"}, "finish_reason": "length"}]}

    run(served(serve(reply), 8, config="Age"), tmp_path / "run")
    assert "mode=completions" in caplog.text
    assert caplog.text.count("repeats the mark '<|im_end|>'") == 1
