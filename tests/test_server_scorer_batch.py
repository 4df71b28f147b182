"""Batches: the answers of files are those of a server, in any order, with gaps and errors, and nothing is lost."""

import itertools
import json
import random
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import httpx2
import numpy as np
import pytest

from qabias.cli import app
from qabias.errors import QabiasError
from qabias.runs import run as measuring
from qabias.runs.arguments import Machine, RunArguments
from qabias.runs.distributed import Processes
from qabias.runs.run import run
from qabias.scorers.journal import request_hash
from qabias.scorers.server import batch
from qabias.scorers.server.batch import BatchClient, RequestFiles, read_results

from .batch_service import answer_files, failed, lines_of, result, write
from .loopback_server import serve as serve
from .loopback_server import surroundings as surroundings

pytestmark = pytest.mark.usefixtures("surroundings")


def arguments(limit=500, **options):
    return RunArguments("bbq", "m", config="Age", backend="server", limit=limit, options=options)


def requests_in(folder, stem="requests"):
    return [line for path in sorted((folder / "batch").glob(f"{stem}-*.jsonl")) for line in lines_of(path)]


def answered(server, requests):
    """What a batch service makes of requests."""
    with httpx2.Client(base_url=server.url.removesuffix("/v1")) as service, ThreadPoolExecutor(16) as pool:
        return list(pool.map(partial(answered_by, service), requests))


def answered_by(service, request):
    assert set(request) == {"custom_id", "method", "url", "body"}
    response = service.post(request["url"], json=request["body"])
    return result(request["custom_id"], response.status_code, response.json())


def files_of(folder):
    """What a run has found, but for the time at which it was begun."""
    paths = [*folder.glob("predictions/*"), folder / "scores.json", folder / "analysis.json"]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


@pytest.mark.slow
def test_a_batch_with_gaps_and_errors_ends_as_the_asked_run(serve, tmp_path, monkeypatch):
    monkeypatch.setattr(batch, "MOST_REQUESTS", 200)
    server = serve()
    asked = run(arguments(base_url=server.url), tmp_path / "asked")
    asked_for = dict(server.attempts)

    # Three files, and nobody asked.
    folder = tmp_path / "run"
    begun = run(arguments(batch="write"), folder)
    assert dict(server.attempts) == asked_for
    assert begun.n_missing_parts
    assert {path.name for path in folder.iterdir()} - {".lock"} == {"batch", "run.json"}
    names = [f"requests-0000{number}.jsonl" for number in (1, 2, 3)]
    assert sorted(path.name for path in (folder / "batch").iterdir()) == names
    assert [len(lines_of(folder / "batch" / name)) for name in names] == [200, 200, 96]
    requests = requests_in(folder)
    assert all(request["custom_id"] == request_hash(request["body"]) for request in requests)
    assert len({request["custom_id"] for request in requests}) == 496
    assert {request["body"]["messages"][0]["content"] for request in requests} == set(asked_for)

    # Shuffled over three files, 10 % missing, 4 % errors: half of these in their places, half in a file of their own.
    results = answered(server, requests)
    random.Random(0).shuffle(results)
    absent, broken, expired, good = results[:50], results[50:60], results[60:70], results[70:]
    absent, expired = ([line["custom_id"] for line in some] for some in (absent, expired))
    broken = [result(line["custom_id"], 500, {"error": {"message": "the server had an error"}}) for line in broken]
    mixed = [*good, *broken]
    random.Random(1).shuffle(mixed)
    paths = [write(tmp_path / f"out-{part}.jsonl", mixed[part::3]) for part in range(3)]
    paths.append(write(tmp_path / "errors.jsonl", map(failed, expired)))
    before = dict(server.attempts)
    partly = run(arguments(batch=f"read={','.join(paths)}"), folder)
    assert dict(server.attempts) == before
    assert partly.n_missing_parts
    assert partly.n_missing_parts > 0
    assert not (folder / "scores.json").exists()
    for token in (
        "426 answers",
        "50 are missing in all",
        "20 failed",
        "10 times: status 500",
        "10 times: This request",
    ):
        assert token in partly.note
    missing = {*absent, *expired, *(line["custom_id"] for line in broken)}
    named = set(re.findall(r"[0-9a-f]{64}", partly.note))
    assert len(named) == 10
    assert named <= missing
    left = requests_in(folder, "missing")
    assert {request["custom_id"] for request in left} == missing
    assert all(request in requests for request in left)

    # The second file completes the run.
    second = write(tmp_path / "second.jsonl", answered(server, left))
    whole = run(arguments(batch=f"read={second}"), folder)
    assert whole.scores == asked.scores
    assert whole.signature == asked.signature
    assert whole.note == "batch: 70 answers taken from 1 file"
    assert files_of(folder) == files_of(tmp_path / "asked")
    assert not list((folder / "batch").glob("missing-*"))
    assert "batch" not in json.loads((folder / "run.json").read_text("utf-8"))["arguments"]["options"]

    again = run(arguments(batch="write"), folder)
    assert again.scores == asked.scores
    assert not list((folder / "batch").iterdir())


def test_results_are_read_in_any_order_and_what_is_odd_is_named(serve, tmp_path):
    server = serve()
    run(arguments(12, batch="write"), tmp_path / "run")
    requests = requests_in(tmp_path / "run")
    results = answered(server, requests)
    names = [request["custom_id"] for request in requests]
    other = json.loads(json.dumps(results[1]))
    other["response"]["body"]["choices"][0]["message"]["content"] = "another answer"
    first = tmp_path / "first.jsonl"
    write(first, [failed(names[0]), *results[1:6], other, failed(names[1]), result("stranger", 200, {"choices": []})])
    text = first.read_text("utf-8").replace("\n", "\r\n\r\n") + json.dumps(results[6])[:-20]
    first.write_text(text + '\n{"custom_id": "alone"}\n[1]\n7\n', "utf-8", newline="")
    second = tmp_path / "second.jsonl"
    # Without status and body, as some give it.
    bare = {"custom_id": names[0], "response": results[0]["response"]["body"]}
    write(second, [*results[7:], bare, {**requests[6]}])
    found = run(arguments(12, batch=f"read={first},{second}"), tmp_path / "run")
    assert found.n_missing_parts == 1
    lines = "first.jsonl:19, first.jsonl:20, ", f", second.jsonl:{len(names) - 5}"
    for token in (f"{len(names) - 1} answers", names[6], "stranger", "5 lines", *lines):
        assert token in found.note
    assert "failed" not in found.note  # an answer in another line or file goes before a failure
    journal = (tmp_path / "run" / "requests.jsonl").read_text("utf-8")
    assert "another answer" not in journal
    replies = read_results([second, first]).replies
    assert replies[names[0]].is_answer
    assert replies[names[1]].is_answer


def test_a_rejected_prompt_has_its_outcome_and_what_is_no_answer_has_failed(serve, tmp_path):
    server = serve()
    run(arguments(8, batch="write"), tmp_path / "run")
    requests = requests_in(tmp_path / "run")
    names = [request["custom_id"] for request in requests]
    results = answered(server, requests)
    results[0] = result(names[0], 400, {"error": {"code": "content_filter", "message": "no"}})
    results[1] = failed(names[1], "content_policy_violation")
    results[2] = result(names[2], 200, {"choices": []})
    results[3] = result(names[3], 200, {"error": {"message": "busy", "code": 503}})
    results[4] = result(names[4], 200, "no object")
    results[5] = result(names[5], 429, None)
    results[6] = result(names[6], 400, {"error": {"code": "context_length_exceeded", "message": "too long"}})
    results[7]["response"]["body"]["choices"][0]["finish_reason"] = "error"
    found = run(arguments(8, batch=f"read={write(tmp_path / 'out.jsonl', results)}"), tmp_path / "run")
    assert "5 failed: " in found.note
    for message in ("no choices[0].message.content", "status 200: busy", "status 200: no object", "status 429: "):
        assert message in found.note
    more = write(tmp_path / "more.jsonl", answered(server, requests_in(tmp_path / "run", "missing")))
    scores = run(arguments(8, batch=f"read={more}"), tmp_path / "run").scores
    assert scores["outcomes"]["filtered"] == 2
    assert scores["outcomes"]["truncated"] == 1
    assert scores["outcomes"]["answered"] == 5


def test_request_files_keep_to_the_limits_of_the_service(tmp_path, monkeypatch):
    monkeypatch.setattr(batch, "MOST_BYTES", 1000)
    (tmp_path / "requests-00009.jsonl").write_text("old", "utf-8")
    (tmp_path / "other-00001.jsonl").write_text("of somebody else", "utf-8")
    files = RequestFiles(tmp_path, "requests")
    bodies = [{"text": "ä" * (40 * number)} for number in range(12)] + [{"text": "x" * 2000}, {"text": ""}]
    for number, body in enumerate(bodies):
        files.add(f"name-{number}", body)
    written = files.close()
    paths = sorted(tmp_path.glob("requests-*.jsonl"))
    assert [path for path, _ in written] == paths
    assert [line["body"] for path in paths for line in lines_of(path)] == bodies
    for path, n_requests in written:
        assert len(lines_of(path)) == n_requests
        assert path.stat().st_size <= 1000 or n_requests == 1
    pairs = itertools.pairwise(path.read_bytes().splitlines(keepends=True) for path in paths)
    sizes = [sum(map(len, lines)) + len(following[0]) for lines, following in pairs]
    assert min(sizes) > 1000  # no file is begun before the one before is full
    assert (tmp_path / "other-00001.jsonl").exists()
    assert RequestFiles(tmp_path, "requests").close() == []
    assert not list(tmp_path.glob("requests-*"))


@pytest.mark.parametrize("option", ["batch=write", "batch=read"])
def test_a_batch_is_not_shared_out(tmp_path, monkeypatch, option):
    run(arguments(600, batch="write"), tmp_path / "run")
    out = write(tmp_path / "out.jsonl", [])
    batched = arguments(600, batch={"batch=write": "write", "batch=read": f"read={out}"}[option])
    for folder in ("run", "other"):
        with pytest.raises(QabiasError, match=r"shard"):
            run(batched, tmp_path / folder, Machine(shard=(1, 2)))
        with monkeypatch.context() as launched:
            launched.setattr(measuring, "launched_processes", lambda: Processes(rank=0, count=2))
            launched.setattr(Processes, "_gather", lambda self, content: [content, None])
            with pytest.raises(QabiasError, match="launcher"):
                run(batched, tmp_path / folder)
    assert not (tmp_path / "run" / "predictions").exists()
    assert not (tmp_path / "other").exists()


def test_a_batch_without_a_run_folder_or_with_a_file_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(QabiasError, match="needs a run folder"):
        BatchClient(None)
    with pytest.raises(QabiasError, match="cannot be read"):
        read_results([tmp_path])


def test_the_command_line_says_what_to_do(tmp_path, monkeypatch, capsys):
    named = ["--model", "m", "--config", "Age", "--limit", "8", "--output", "run"]
    command = ["run", "bbq", "--backend", "server", *named]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["qabias", *command, "--option", "batch=write"])
    with pytest.raises(SystemExit) as left:
        app()
    assert not left.value.code
    printed = capsys.readouterr().out
    assert "run/batch/requests-00001.jsonl (8 requests" in printed
    answer_files(sorted((tmp_path / "run" / "batch").iterdir()), tmp_path / "out.jsonl")
    monkeypatch.setattr("sys.argv", ["qabias", *command, "--option", "batch=read=out.jsonl"])
    with pytest.raises(SystemExit):
        app()
    printed = capsys.readouterr().out
    assert "8 answers" in printed


def test_what_a_batch_has_not_answered_can_be_asked_and_the_other_way_round(serve, tmp_path):
    server = serve()
    run(arguments(40, batch="write"), tmp_path / "run")
    requests = requests_in(tmp_path / "run")
    half = write(tmp_path / "half.jsonl", answered(server, requests[::2]))
    run(arguments(40, batch=f"read={half}"), tmp_path / "run")
    before = sum(server.attempts.values())
    asked = run(arguments(40, base_url=server.url), tmp_path / "run")
    assert not asked.n_missing_parts
    assert sum(server.attempts.values()) == before + 20

    # What has been asked is in no request file.
    (tmp_path / "run" / "predictions" / "part-00000.parquet").unlink()
    journal = tmp_path / "run" / "requests.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:30]))
    run(arguments(40, batch="write"), tmp_path / "run")
    assert len(requests_in(tmp_path / "run")) == 10


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limit", "changes", "options"),
    [(8, {"permutations": 3}, {}), (8, {"format": "five"}, {}), (300, {"format": "letters"}, {"mode": "logprobs"})],
)
def test_orders_wordings_and_letter_probabilities_go_into_one_batch(serve, tmp_path, limit, changes, options):
    server = serve()

    def ask(folder, **more):
        return run(replace(arguments(limit, **options, **more), **changes), tmp_path / folder)

    asked = ask("asked", base_url=server.url)
    assert ask("run", batch="write").n_missing_parts
    requests = requests_in(tmp_path / "run")
    assert len(requests) == len(server.attempts) > 16
    # Parts whose answers are there are written, and what belongs to them belongs to the run.
    results = answered(server, requests)
    partly = ask("run", batch=f"read={write(tmp_path / 'out.jsonl', results[:-1])}")
    assert partly.n_missing_parts == 1
    assert (tmp_path / "run" / "predictions").exists() or limit == 8
    whole = ask("run", batch=f"read={write(tmp_path / 'out.jsonl', results)}")
    assert "1 answers" in whole.note
    np.testing.assert_equal(whole.scores, asked.scores)
    assert files_of(tmp_path / "run") == files_of(tmp_path / "asked")
