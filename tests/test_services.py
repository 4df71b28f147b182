"""Services of every API: runs with refusals, rate limits and an interruption, batches, cost; and no key anywhere."""

import io
import json
import logging
from dataclasses import replace
from types import SimpleNamespace

import pytest

from qabias.answers.outcomes import outcome
from qabias.answers.services import as_chat, usage_of
from qabias.errors import QabiasError
from qabias.logs.detect import read_log
from qabias.report.content import make_head
from qabias.runs.arguments import Machine, RunArguments
from qabias.runs.folder import read_run
from qabias.runs.run import RunProgress, merge, run
from qabias.runs.scored import cost_in_words
from qabias.scorers.registry import check_options, lasting_options, load_kind, load_scorer
from qabias.scorers.server import pacing
from qabias.scorers.server.apis import APIS
from qabias.scorers.server.client import Client
from qabias.scorers.server.modes import ServerChatScorer, read_message
from qabias.scorers.server.pacing import Pace, seconds_until
from qabias.support.progress import remark, tell

from .batch_service import lines_of, write
from .kit.commands import command
from .loopback_server import KEY, chat_reply, served, written
from .loopback_server import serve as serve
from .loopback_server import surroundings as surroundings
from .services import ANSWERS, PATHS, Service, Window, batch_results, error_of, kind_of, text_of, total_usage

pytestmark = pytest.mark.usefixtures("surroundings")

OTHER_KEY = "gateway-9f8e7d6c5b4a39281706"
each_api = pytest.mark.parametrize("api", ANSWERS)


def counted(texts):
    kinds = [kind_of(text) for text in texts]
    return {name: kinds.count(name) for name in set(kinds)}


def outcomes_in(scores):
    return {name: n for name, n in scores["outcomes"].items() if n}


def content_of(folder):
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


# Runs


@pytest.mark.slow
@each_api
def test_an_interrupted_run_asks_nothing_twice_sums_its_cost_and_shows_no_key(serve, tmp_path, monkeypatch, api):
    service = Service(api, until=90)
    server = serve(service)
    monkeypatch.setenv("GATEWAY_KEY", OTHER_KEY)
    monkeypatch.chdir(tmp_path)
    options = (f"api={api}", "header.x-gateway=env:GATEWAY_KEY", "price_in=3", "price_out=15")
    asked = ["run", "bbq", "--model", "m", "--config", "Age", "--limit", "200", "--output", "run"]
    asked += ["--base-url", server.url, *(word for option in options for word in ("--option", option))]
    first = command(*asked)
    assert first.code == 2
    assert "the key was refused" in first.err
    assert 90 <= service.answered.total() < 150
    service.until = 10**9
    second = command(*asked)
    assert second.code == 0

    texts = list(service.answered)
    assert set(service.answered.values()) == {1}
    scores = json.loads((tmp_path / "run" / "scores.json").read_text("utf-8"))["scores"]
    assert outcomes_in(scores) == counted(texts)
    assert min(counted(texts).values()) > 5
    cost = dict(read_run(tmp_path / "run").cost)
    retries = cost.pop("retries")
    assert 0 < retries <= len(service.limited)
    assert cost == {"requests": len(texts), **total_usage(api, texts), "price_in": 3, "price_out": 15}
    dollars = (3 * cost["prompt_tokens"] + 15 * cost["generated_tokens"]) / 1e6
    said = f"{len(texts)} requests ({retries} retries), {cost['prompt_tokens']:,} tokens in ("
    assert f"\nCost     {said}" in second.out
    assert f", ${dollars:.2f}\n" in second.out
    assert said in (tmp_path / "run" / "report.html").read_text("utf-8")

    # The keys went to the server, and nowhere else.
    name, value = ("x-api-key", KEY) if api == "anthropic" else ("authorization", f"Bearer {KEY}")
    for path, headers in server.received:
        assert path == PATHS[api]
        assert headers[name] == value
        assert headers["x-gateway"] == OTHER_KEY
        assert len({"x-api-key", "authorization"} & set(headers)) == 1
        assert headers.get("anthropic-version") == ("2023-06-01" if api == "anthropic" else None)
    for key in (KEY, OTHER_KEY):
        assert key.encode() not in content_of(tmp_path)
        assert key not in first.out + first.err + second.out + second.err


@each_api
def test_a_batch_is_written_read_in_part_completed_and_counted(tmp_path, api):
    folder = tmp_path / "run"

    def ask(batch):
        arguments = RunArguments("bbq", "m", config="Age", backend="server", limit=24)
        return run(replace(arguments, options={"batch": batch, "api": api}), folder)

    def requests(stem):
        (path,) = (folder / "batch").glob(f"{stem}-*")
        lines = json.loads(path.read_bytes())["requests"] if api == "anthropic" else lines_of(path)
        assert api == "anthropic" or {line["url"] for line in lines} == {PATHS[api]}
        return lines

    assert ask("write").n_missing_parts
    asked = requests("requests")
    results = list(batch_results(api, asked))
    found = results[4:]
    if api == "anthropic":
        failed = {"type": "errored", "error": error_of(api, "api_error", "internal")}
        found += [{"custom_id": line["custom_id"], "result": failed} for line in results[:2]]
        found += [{"custom_id": line["custom_id"], "result": {"type": "expired"}} for line in results[2:4]]
    partly = ask(f"read={write(tmp_path / 'out.jsonl', reversed(found))}")
    assert "20 answers taken" in partly.note
    assert partly.n_missing_parts
    if api == "anthropic":
        assert "2 times: internal" in partly.note
        assert "2 times: the request is expired" in partly.note
    left = requests("missing")
    assert left == asked[:4]
    whole = ask(f"read={write(tmp_path / 'more.jsonl', batch_results(api, left))}")
    assert "4 answers taken" in whole.note
    texts = [text_of(line.get("params") or line["body"]) for line in asked]
    assert outcomes_in(whole.scores) == counted(texts)
    assert whole.cost == {"requests": 24, **total_usage(api, texts)}
    assert make_head(whole).facts["Cost"] == cost_in_words(whole.cost)
    samples = list(read_log(tmp_path / "out.jsonl").samples())
    assert [sample.finish != "" for sample in samples].count(True) == 20


@pytest.mark.slow
def test_the_cost_of_merged_shards_is_their_sum(serve, tmp_path):
    server = serve(Service("chat"))
    for shard in (0, 1):
        run(served(server, 600, "Age", price_in="1", price_out="2"), tmp_path / str(shard), Machine(shard=(shard, 2)))
    costs = [read_run(tmp_path / str(shard)).cost for shard in (0, 1)]
    assert all(cost["requests"] > 100 for cost in costs)
    whole = merge([tmp_path / "0", tmp_path / "1"], tmp_path / "whole")
    texts = list(server.reply.answered)
    assert whole.cost.items() >= {"requests": len(texts), **total_usage("chat", texts), "price_out": 2}.items()


# Answers


def anthropic(reason, *content):
    return {"type": "message", "content": list(content), "stop_reason": reason}


def responses(status="completed", *content, reason=None):
    item = {"type": "message", "content": list(content)}
    return {"status": status, "output": [item] * bool(content), "incomplete_details": reason and {"reason": reason}}


TEXT, REFUSAL = {"type": "output_text", "text": "B"}, {"type": "refusal", "refusal": "I would rather not."}


@pytest.mark.parametrize(
    ("answer", "text", "place", "became"),
    [
        (anthropic("end_turn", {"type": "text", "text": "B"}), "B", 1, "answered"),
        (anthropic("end_turn"), "", -1, "unread"),
        (anthropic("refusal", {"type": "text", "text": "B"}), "", -1, "refused"),
        (anthropic("refusal", {"type": "thinking", "thinking": "B"}), "", -1, "refused"),
        (anthropic("max_tokens", {"type": "thinking", "thinking": "B"}), "", -1, "truncated"),
        (anthropic("model_context_window_exceeded", {"type": "text", "text": "So"}), "So", -1, "truncated"),
        (responses("completed", TEXT), "B", 1, "answered"),
        (responses("completed", REFUSAL), "I would rather not.", -1, "refused"),
        (responses("incomplete", reason="max_output_tokens"), "", -1, "truncated"),
        (responses("incomplete", reason="content_filter"), "", -1, "filtered"),
        (responses(), "", -1, "unread"),
    ],
)
def test_stop_reasons_become_outcomes(serve, answer, text, place, became):
    server = serve(lambda path, body: answer)
    api = "responses" if "output" in answer else "anthropic"
    (said,) = written(ServerChatScorer("m", Client(server.url, api=APIS[api])), ["q"])
    assert said == text
    assert outcome(said, place) == became


@pytest.mark.parametrize("answer", [{"type": "message"}, {"output": ["x"]}, {"output": [{}]}, {"choices": []}, {}])
def test_an_answer_of_no_known_form_stays(answer):
    assert as_chat(answer) == answer


def test_a_failed_response_is_asked_again_and_a_filtered_one_is_not(serve):
    failed = {"status": "failed", "output": [], "error": {"code": "server_error", "message": "sorry"}}
    answers = [failed, responses("completed", TEXT)]
    server = serve(lambda path, body: answers.pop(0))
    client = Client(server.url, api=APIS["responses"])
    assert written(ServerChatScorer("m", client), ["q"]) == ["B"]
    assert server.attempts["q"] == 2


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ({"prompt_tokens": 5, "completion_tokens": 2}, {"prompt_tokens": 5, "generated_tokens": 2}),
        ({"input_tokens": 0, "output_tokens": None}, {}),
        ({"prompt_tokens": True, "completion_tokens": "2", "prompt_tokens_details": 3}, {}),
        ({"input_tokens": 1, "cache_read_input_tokens": 8}, {"prompt_tokens": 9, "cached_tokens": 8}),
        (None, {}),
    ],
)
def test_only_numbers_are_counted(usage, counts):
    assert usage_of({"usage": usage}) == counts


def test_a_server_that_counts_nothing_costs_its_requests(serve, tmp_path):
    result = run(served(serve(), 8, price_in="1", price_out="1"), tmp_path / "run")
    assert result.cost == {"requests": 8, "price_in": 1, "price_out": 1}
    assert cost_in_words(result.cost) == "8 requests"
    assert cost_in_words({}) == ""


# Requests


def test_conversations_have_the_form_of_their_api():
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "q"}]
    body = {"model": "m", "messages": turns, "max_completion_tokens": 9, "temperature": 0, "top_p": 0.5}
    same = {"model": "m", "temperature": 0, "top_p": 0.5}
    assert APIS["anthropic"].request(body) == {**same, "system": "Be brief.", "messages": turns[1:], "max_tokens": 9}
    assert APIS["responses"].request(body) == {**same, "store": False, "input": turns, "max_output_tokens": 9}
    assert APIS["chat"].request(body) == body


@pytest.mark.parametrize(
    ("options", "sent", "temperature"),
    [
        ({"api": "chat"}, {"temperature": 0, "max_tokens": 256}, "0"),
        ({"api": "responses", "body.reasoning.effort": "low"}, {"reasoning": {"effort": "low"}}, "none"),
        ({"api": "responses", "body.temperature": "0.5"}, {"temperature": 0.5}, "0.5"),
        ({"api": "anthropic"}, {"temperature": 0, "max_tokens": 256}, "0"),
        ({"api": "anthropic", "body.system": "Be brief."}, {"system": "Be brief."}, "0"),
        ({"api": "anthropic", "body.thinking": '{"type": "adaptive"}'}, {"thinking": {"type": "adaptive"}}, "none"),
    ],
)
def test_models_that_reason_get_no_temperature_by_default(serve, options, sent, temperature):
    bodies = []
    server = serve(lambda path, body: bodies.append(body) or ANSWERS[options["api"]](text_of(body)))
    scorer = load_scorer("server", "m", scorer_options={"base_url": server.url, **options})
    scorer.generate(["q"], ["q"])
    assert bodies[0].items() >= sent.items()
    assert ("temperature" in bodies[0]) == (temperature != "none")
    assert scorer.settings["temperature"] == temperature


def test_a_schema_goes_where_the_responses_api_has_it(serve, tmp_path):
    bodies = []
    server = serve(lambda path, body: bodies.append(body) or ANSWERS["responses"](text_of(body)))
    run(served(server, 4, api="responses"), tmp_path / "run", ask="json")
    assert {body["text"]["format"]["type"] for body in bodies} == {"json_schema"}
    assert all("schema" in body["text"]["format"] and "response_format" not in body for body in bodies)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("https://api.anthropic.com", "https://api.anthropic.com/v1/messages"),
        ("https://api.anthropic.com/v1/", "https://api.anthropic.com/v1/messages"),
        ("https://gateway.example/anthropic", "https://gateway.example/anthropic/v1/messages"),
    ],
)
def test_anthropics_address_is_complete_with_and_without_its_version(url, path):
    options = check_options(load_kind("server"), {"base_url": url, "api": "anthropic"})
    assert options.wire.url(options.base_url, options.wire.path) == path


def test_the_api_is_that_of_the_address():
    for url, api in (("https://api.anthropic.com", "anthropic"), ("https://api.openai.com/v1", "chat")):
        assert check_options(load_kind("server"), {"base_url": url}).wire is APIS[api]
    options = {"base_url": "https://api.anthropic.com/v1", "api": "chat"}
    assert check_options(load_kind("server"), options).wire is APIS["chat"]
    assert lasting_options("server", {**options, "header.x": "env:X", "body.a": "1"}) == {"body.a": "1"}


def test_azures_key_and_version_are_sent_and_openais_key_is_not(serve, tmp_path, monkeypatch, caplog):
    monkeypatch.delenv("QABIAS_API_KEY")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("AZURE_KEY", OTHER_KEY)
    server = serve(lambda path, body: chat_reply(path.split("?")[0].replace("/deployments/d", ""), body))
    server.url += "/deployments/d?api-version=2024-10-21"
    result = run(served(server, 4, **{"header.api-key": "env:AZURE_KEY"}), tmp_path / "run")
    for path, headers in server.received:
        assert path == "/v1/deployments/d/chat/completions?api-version=2024-10-21"
        assert headers["api-key"] == OTHER_KEY
        assert "authorization" not in headers
    for text in (KEY, OTHER_KEY, "AZURE_KEY", "api-version"):
        assert text.encode() not in content_of(tmp_path)
        assert text not in result.signature + caplog.text


def test_a_header_that_a_server_repeats_is_redacted(serve, tmp_path, monkeypatch):
    monkeypatch.setenv("GATEWAY", f"Token {OTHER_KEY}")
    scorer_options = {"header.X-Gateway": "env:GATEWAY"}
    server = serve(lambda path, body: (403, {"error": {"message": f"no {OTHER_KEY}, {KEY}, Token {OTHER_KEY}"}}, {}))
    with pytest.raises(QabiasError, match=r"no \[key\], \[key\]") as refused:
        run(served(server, 4, **scorer_options), tmp_path / "run")
    assert OTHER_KEY not in str(refused.value)
    server.reply = lambda path, body: {"choices": [{"message": {"content": f"A {OTHER_KEY}"}}]}
    run(served(server, 4, **scorer_options), tmp_path / "run")
    assert OTHER_KEY.encode() not in content_of(tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"header.api-key": "hunter2-hunter2"}, "history of commands"),
        ({"header.api-key": "$hunter2"}, "history of commands"),
        ({"header.api-key": "env:hunter2-hunter2"}, "history of commands"),
        ({"header.api-key": "env:hunter2"}, "the variable of the header api-key has no ASCII text"),
        ({"header.Host": "env:X"}, "no header that you can set"),
        ({"header.a b": "env:X"}, "no header that you can set"),
        ({"header.": "env:X"}, "no header that you can set"),
        ({"header.a": "env:X", "header.A": "env:X"}, "given twice"),
        ({"api": "gemini"}, "unknown api"),
        ({"api": "anthropic", "mode": "logprobs"}, "no log-probabilities"),
        ({"api": "responses", "mode": "echo"}, "no log-probabilities"),
        ({"api": "anthropic", "body.response_format": "{}"}, "response_format"),
        ({"body.max_output_tokens": "9"}, "body.max_output_tokens"),
        ({"body.input": "9"}, "body.input"),
        ({"body.background": "true"}, "body.background"),
    ],
)
def test_wrong_options_are_refused_without_their_values(options, message):
    with pytest.raises(QabiasError, match=message) as refused:
        load_scorer("server", "m", scorer_options={"base_url": "http://h/v1", **options})
    assert "hunter2" not in str(refused.value)
    assert len(str(refused.value).splitlines()) == 2


@pytest.mark.parametrize(
    ("message", "fix"),
    [
        ("`temperature` is deprecated for this model.", "body.temperature=null"),
        ("Unsupported value: 'temperature' does not support 0 with this model.", "body.temperature=null"),
        ("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'.", "body.max_completion_tokens=4096"),
    ],
)
def test_a_model_that_rejects_a_field_names_the_option(serve, message, fix):
    server = serve(lambda path, body: (400, {"error": {"message": message}}, {}))
    with pytest.raises(QabiasError, match=f"fix: Add option {fix}"):
        written(ServerChatScorer("m", Client(server.url)), ["q"])


def test_a_key_for_one_service_is_named_when_another_gets_it(serve, monkeypatch, caplog):
    monkeypatch.delenv("QABIAS_API_KEY")
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    server = serve(lambda path, body: ANSWERS["anthropic"](text_of(body)))
    with caplog.at_level(logging.WARNING):
        written(ServerChatScorer("m", Client(server.url, api=APIS["anthropic"])), ["q"])
    assert "ANTHROPIC_API_KEY is sent to 127.0.0.1" in caplog.text
    assert KEY not in caplog.text


# Rate limits


@pytest.mark.parametrize("api", ["chat", "anthropic"])
def test_a_limit_that_the_headers_name_is_never_reached(serve, api):
    window = Window(api, requests=8, seconds=0.3)
    server = serve(window)
    client = Client(server.url, api=APIS[api], concurrency=4)
    prompts = [f"question {number}" for number in range(20)]
    assert len(written(ServerChatScorer("m", client), prompts)) == 20
    assert window.rejected == 0
    assert set(server.attempts.values()) == {1}


@pytest.mark.parametrize(
    ("reset", "seconds"),
    [
        *(("6m0s", 360), ("120ms", 0.12), ("1h2m3.5s", 3723.5), ("7", 7), ("0", 0), ("1000000030", 30)),
        *(("2001-09-09T01:47:10Z", 30), ("2001-09-09T01:46:00+00:00", 0)),
        *(("soon", 0), ("", 0), ("nan", 0), ("inf", 0), ("-5", 0), ("5 s", 0)),
    ],
)
def test_the_seconds_until_a_reset_are_read(reset, seconds):
    assert seconds_until(reset, now=1e9) == pytest.approx(seconds)


@pytest.fixture
def clock(monkeypatch):
    now = SimpleNamespace(seconds=1000.0)
    monkeypatch.setattr(pacing, "time", SimpleNamespace(monotonic=lambda: now.seconds, time=lambda: now.seconds))
    return now


def left(n, reset="20s", what="requests"):
    return {f"x-ratelimit-remaining-{what}": str(n), f"x-ratelimit-reset-{what}": reset}


def test_requests_under_way_count_against_what_is_left(clock):
    pace = Pace()
    assert pace.begin() == 0
    pace.end(left(2))
    assert [pace.begin() for _ in range(3)] == [0, 0, 20]
    pace.end(left(1))
    pace.end(left(2))  # of the same window, and older
    assert [pace.begin() for _ in range(2)] == [0, 20]
    clock.seconds += 19
    assert pace.begin() == 1
    clock.seconds += 1
    assert [pace.begin() for _ in range(9)] == [0] * 9


def test_tokens_are_those_of_the_longest_answer_so_far(clock):
    pace = Pace()
    pace.begin()
    pace.end(left(1000, what="tokens"), tokens=400)
    assert [pace.begin() for _ in range(3)] == [0, 0, 20]


def test_no_wait_exceeds_a_minute_and_odd_headers_are_ignored(clock):
    pace = Pace()
    pace.begin()
    pace.end(left(0, "6h"))
    assert pace.begin() == 60
    pace = Pace()
    for headers in (left("many"), left("nan"), {"x-ratelimit-remaining-requests": "0"}, left(0, "whenever")):
        pace.begin()
        pace.end(headers)
        assert pace.begin(again=True) == 0
        pace.end({})


def test_a_pause_holds_all_but_the_request_that_has_had_it(clock):
    pace = Pace()
    pace.pause(5)
    assert pace.begin() == 5
    assert pace.begin(again=True) == 0
    clock.seconds += 5
    assert pace.begin() == 0


def test_the_progress_shows_why_nothing_is_under_way():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream, now = io.StringIO(), [0.0]
    for one in (Terminal(), stream):
        progress = RunProgress("bbq", 10, 0, one, lambda: now[0])
        with progress.part(10):
            now[0] += 61
            remark("waiting 12 s for the rate limit")
            assert "waiting 12 s for the rate limit" in one.getvalue()
            one.truncate(0)
            now[0] += 61
            tell(0.5)
        progress.close()
        assert "waiting" not in one.getvalue().rpartition("\r")[2]


def test_a_refusal_in_a_chat_completion_is_read_as_before():
    answer = {"choices": [{"message": {"content": None, "refusal": "No."}, "finish_reason": "stop"}]}
    assert read_message(as_chat(answer)) == {"text": "No.", "finish": "stop", "thinking": ""}
