"""Batches that are submitted and fetched: nothing is sent twice, whatever is lost, and the key is in no file."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest

from qabias.errors import QabiasError
from qabias.runs.arguments import RunArguments
from qabias.runs.run import run
from qabias.scorers.server import batch

from .batch_service import failed
from .kit.commands import command
from .loopback_server import KEY, served
from .loopback_server import serve as serve
from .loopback_server import surroundings as surroundings
from .services import ANSWERS, BatchServer, Service, batch_results

pytestmark = pytest.mark.usefixtures("surroundings")

each_api = pytest.mark.parametrize("api", ANSWERS)


def ask(server, folder, what, limit=24):
    options = {"batch": what, "api": server.api, "base_url": server.url}
    return run(RunArguments("bbq", "m", config="Age", backend="server", limit=limit, options=options), folder)


def names_in(folder, pattern="*"):
    return sorted(path.name for path in (folder / "batch").glob(pattern))


def sent(server):
    """The names of the requests of all batches."""
    return [request["custom_id"] for one in server.batches.values() for request in one["requests"]]


@each_api
def test_a_batch_is_submitted_once_fetched_when_it_has_ended_and_scored_as_the_asked_run(
    serve, tmp_path, monkeypatch, api
):
    monkeypatch.setattr(batch, "MOST_REQUESTS", 10)
    server, folder = serve(api, make=BatchServer), tmp_path / "run"
    note = ask(server, folder, "submit").note
    assert "24 requests are submitted\n" in note
    assert "batch=fetch" in note
    assert len(server.batches) == 3
    assert ask(server, folder, "submit").note.startswith("batch: 0 requests are submitted")
    note = ask(server, folder, "fetch").note
    assert "3 batches with 24 requests still running" in note
    server.ended.add("batch_001")
    partly = ask(server, folder, "fetch")
    assert partly.n_missing_parts
    assert "10 answers taken from 1 file" in partly.note
    assert "2 batches with 14 requests still running" in partly.note
    ask(server, folder, "submit")
    assert len(sent(server)) == len(set(sent(server))) == 24
    server.ended |= set(server.batches)
    whole = ask(server, folder, "fetch")
    assert not whole.n_missing_parts
    asked = run(served(serve(Service(api)), 24, "Age", api=api), tmp_path / "asked")
    assert whole.scores == asked.scores
    assert whole.cost["requests"] == 24

    name, value = ("x-api-key", KEY) if api == "anthropic" else ("authorization", f"Bearer {KEY}")
    assert {headers[name] for _, headers in server.received} == {value}
    assert KEY.encode() not in b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    n = len(server.received)
    assert "still" not in ask(server, folder, "fetch").note
    assert len(server.received) == n


@each_api
def test_what_a_batch_has_not_answered_is_submitted_again(serve, tmp_path, api):
    server, folder = serve(api, make=BatchServer), tmp_path / "run"

    def some(requests):
        *good, first, second = requests
        bad = [failed(first["custom_id"]), failed(second["custom_id"])]
        if api == "anthropic":
            bad = [{"custom_id": one["custom_id"], "result": {"type": "expired"}} for one in (first, second)]
        return [*batch_results(api, good), *bad]

    server.made, made = some, server.made
    ask(server, folder, "submit")
    server.ended.add("batch_000")
    partly = ask(server, folder, "fetch")
    assert "22 answers taken" in partly.note
    assert "2 failed" in partly.note
    assert "2 requests have no answer and no batch" in partly.note
    server.made = made
    assert "2 requests are submitted" in ask(server, folder, "submit").note
    assert sent(server)[24:] == sent(server)[22:24]
    server.ended.add("batch_001")
    assert not ask(server, folder, "fetch").n_missing_parts


@each_api
@pytest.mark.parametrize("fault", ["lost", 500])
def test_a_batch_that_was_not_confirmed_is_never_created_again(serve, tmp_path, api, fault):
    server, folder = serve(api, make=BatchServer), tmp_path / "run"
    server.fault = lambda method, path: fault if (method, path) == ("POST", server.prefix) else None
    with pytest.raises(QabiasError, match=r"\n  fix: Rerun the command"):
        ask(server, folder, "submit")
    assert server.asked["POST", server.prefix] == 1
    assert len(names_in(folder, "sending-*")) == 1
    server.fault = lambda method, path: None
    n_created = int(fault == "lost")
    if api == "anthropic":
        for what in ("submit", "fetch"):
            with pytest.raises(QabiasError, match="may be a batch already"):
                ask(server, folder, what)
        (sending,) = (folder / "batch").glob("sending-*")
        sending.rename(sending.with_name("submitted-batch_000.json")) if n_created else sending.unlink()
    note = ask(server, folder, "submit").note
    assert note.startswith(f"batch: {24 * (1 - n_created)} requests are submitted")
    assert len(server.batches) == 1
    server.ended.add("batch_000")
    assert not ask(server, folder, "fetch").n_missing_parts


def test_a_batch_of_the_same_requests_that_ended_is_not_taken_for_an_unconfirmed_one(serve, tmp_path):
    server, folder = serve("chat", make=BatchServer), tmp_path / "run"
    server.made = lambda requests: []
    ask(server, folder, "submit")
    server.ended.add("batch_000")
    assert "24 requests have no answer and no batch" in ask(server, folder, "fetch").note
    server.fault = lambda method, path: "lost" if (method, path) == ("POST", server.prefix) else None
    with pytest.raises(QabiasError, match="the batch may exist"):
        ask(server, folder, "submit")
    server.fault = lambda method, path: None
    assert "1 batch with 24 requests still running" in ask(server, folder, "submit").note
    assert sorted(server.batches) == ["batch_000", "batch_001"]
    assert names_in(folder, "submitted-*") == ["submitted-batch_000.jsonl", "submitted-batch_001.jsonl"]


@each_api
def test_refused_and_busy_services_leave_nothing_in_doubt(serve, tmp_path, api):
    server, folder = serve(api, make=BatchServer), tmp_path / "run"
    server.fault = lambda method, path: 400 if (method, path) == ("POST", server.prefix) else None
    with pytest.raises(QabiasError, match="status 400: spoiled"):
        ask(server, folder, "submit")
    assert names_in(folder) == [f"requests-00001.json{'l' * (api != 'anthropic')}"]
    for status in (429, 503, 529):
        server.fault = lambda method, path, status=status: status if (method, path) == ("POST", server.prefix) else None
        with pytest.raises(QabiasError, match=f"status {status}: "):
            ask(server, folder, "submit")
        assert names_in(folder, "sending-*") == []
    left = [429, 503] * (api != "anthropic")  # at the upload of the file
    server.fault = lambda method, path: left.pop() if method == "POST" and left else None
    assert "24 requests are submitted" in ask(server, folder, "submit").note
    assert len(server.batches) == 1
    server.ended.add("batch_000")
    left = [500, 429, 503]
    server.fault = lambda method, path: left.pop() if left else None
    assert not ask(server, folder, "fetch").n_missing_parts


def test_a_service_that_repeats_the_key_does_not_bring_it_into_a_file(serve, tmp_path):
    server, folder = serve("chat", make=BatchServer), tmp_path / "run"

    def leaking(requests):
        text = json.dumps(list(batch_results("chat", requests))).replace("ANSWER: ", f"{KEY} ANSWER: ")
        return json.loads(text)

    server.made = leaking
    ask(server, folder, "submit")
    server.ended.add("batch_000")
    ask(server, folder, "fetch")
    content = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert b"[key] ANSWER" in content
    assert KEY.encode() not in content


def test_an_address_is_needed_and_a_failed_batch_says_why(serve, tmp_path):
    with pytest.raises(QabiasError, match="No server URL"):
        run(RunArguments("bbq", "m", config="Age", backend="server", limit=8, options={"batch": "submit"}), tmp_path)
    server, folder = serve("chat", make=BatchServer), tmp_path / "run"
    ask(server, folder, "submit")
    state = {"id": "batch_000", "status": "failed", "errors": {"data": [{"message": f"no {KEY} such\nmodel"}]}}
    server._state = lambda name: state
    note = ask(server, folder, "fetch").note
    assert "batch_000 failed: " in note
    assert "no [key] such" in note
    assert "24 requests have no answer and no batch" in note
    server._state = lambda name: {"id": "../x"}
    with pytest.raises(QabiasError, match="has no id"):
        ask(server, folder, "submit")
    assert len(names_in(folder, "sending-*")) == 1


def test_the_command_says_how_to_continue(serve, tmp_path, monkeypatch):
    server = serve("anthropic", make=BatchServer)
    monkeypatch.chdir(tmp_path)
    asked = ["run", "bbq", "--model", "m", "--config", "Age", "--limit", "8", "--output", "run", "--no-report"]
    asked += ["--base-url", server.url, "--option", "api=anthropic", "--option"]
    ended = command(*asked, "batch=submit")
    assert ended.code == 0
    assert "batch: 8 requests are submitted\n  batch_000 (8 requests)\n" in ended.out
    assert "--option batch=fetch" in ended.out
    server.ended.add("batch_000")
    ended = command(*asked, "batch=fetch")
    assert ended.out.startswith("batch: 8 answers taken from 1 file\n")
    assert "Cost     8 requests" in ended.out


@pytest.mark.slow
def test_a_command_that_is_killed_between_upload_and_confirmation_has_one_batch(serve, tmp_path):
    server, killed = serve("chat", make=BatchServer), []

    def fault(method, path):
        if (method, path) == ("POST", server.prefix) and not server.batches:
            os.kill(killed[0].pid, signal.SIGKILL)
        return None

    server.fault = fault
    asked = [sys.executable, "-m", "qabias", "run", "bbq", "--model", "m", "--config", "Age", "--limit", "24"]
    asked += ["--no-report", "--output", str(tmp_path / "run"), "--base-url", server.url, "--option"]
    killed.append(subprocess.Popen([*asked, "batch=submit"], stderr=subprocess.DEVNULL))
    assert killed[0].wait() == -signal.SIGKILL
    assert re.fullmatch(r"sending-\w{16}\.jsonl", *names_in(tmp_path / "run"))
    again = subprocess.run([*asked, "batch=submit"], check=True, capture_output=True, text=True)
    assert "1 batch with 24 requests still running" in again.stdout
    assert len(server.batches) == 1
    server.ended.add("batch_000")
    subprocess.run([*asked, "batch=fetch"], check=True, capture_output=True)
    assert (tmp_path / "run" / "scores.json").exists()
