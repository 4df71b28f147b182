"""Logs of inspect_ai, whole and damaged, in both forms; the real tool makes those of test_logs_inspect_evals.py."""

import json
import subprocess
import sys
import tracemalloc
import zipfile

import pytest

from qabias.errors import QabiasError
from qabias.logs import inspect_eval
from qabias.logs.detect import read_log

from .conftest import ROOT

FIRST = {
    "id": "one",
    "epoch": 1,
    "input": "attachment://a1",
    "choices": ["Yes", "No"],
    "target": "A",
    "output": {
        "choices": [
            {
                "message": {
                    "role": "assistant",
                    "content": [{"type": "reasoning", "reasoning": "Hm."}, {"type": "text", "text": "ANSWER: B"}],
                },
                "stop_reason": "stop",
            }
        ],
        "completion": "ANSWER: B",
    },
    "scores": {"choice": {"value": "I", "answer": "B"}},
    "metadata": {"known": 1},
    "attachments": {"a1": "A long question?"},
}
SECOND = {"id": 2, "epoch": 2, "input": "?", "target": "B", "error": {"message": "no luck\nat all"}, "scores": {}}


def spec(**changes):
    dataset = {"name": "toy", "samples": 2, "sample_ids": ["one", 2]}
    config = {"epochs": 2, "log_samples": True}
    packages = {"inspect_ai": "0.3.285"}
    named = {"task": "toys/toy", "model": "a/model"}
    return {**named, "dataset": dataset, "config": config, "packages": packages, **changes}


def results(*scorers):
    metrics = {"accuracy": {"name": "accuracy", "value": 0.5}}
    return {"total_samples": 4, "scores": [{"name": name, "scorer": name, "metrics": metrics} for name in scorers]}


def document(samples=(FIRST, SECOND), **changes):
    head = {"version": 2, "status": "success", "eval": spec(), "results": results("choice")}
    return {**head, **changes, "samples": list(samples), "reductions": []}


def write_json(path, samples=(FIRST, SECOND), indent=2, **changes):
    path.write_text(json.dumps(document(samples, **changes), indent=indent), "utf-8")
    return path


def write_eval(path, samples=(FIRST, SECOND), *, finished=True, compression=zipfile.ZIP_DEFLATED, **changes):
    """As inspect writes it: what it knows at the start first, and what it knows at the end last."""
    whole = document(samples, **changes)
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("_journal/start.json", json.dumps({"version": 2, "eval": whole["eval"]}))
        for sample in samples:
            archive.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample))
        archive.writestr("_journal/summaries/1.json", "[]")
        if finished:
            header = {name: value for name, value in whole.items() if name not in ("samples", "reductions")}
            archive.writestr("header.json", json.dumps(header))
    return path


WRITERS = {"eval": write_eval, "json": write_json}


@pytest.fixture(params=WRITERS)
def write(request, tmp_path):
    """Writes a log in either form, under a name that says nothing."""
    return lambda **changes: WRITERS[request.param](tmp_path / "log.bin", **changes)


def test_what_a_log_holds(write):
    log = read_log(write())
    assert (log.tool, log.version, log.task, log.model) == ("inspect_ai", "0.3.285", "toys/toy", "a/model")
    assert (log.figures, log.n_expected, log.notes) == ({"choice/accuracy": 0.5}, 4, ())
    assert log.settings["status"] == "success"
    assert "dataset" not in log.settings
    first, second = log.samples()
    assert (first.where, second.where) == ("sample one", "sample 2, epoch 2")
    assert (first.answer, first.text, first.finish, first.thinking) == ("B", "ANSWER: B", "stop", "Hm.")
    asked = {name: FIRST[name] for name in ("id", "choices", "target", "metadata")}
    assert first.asked == {**asked, "input": "A long question?"}
    assert (second.answer, second.text, second.finish, second.error) == (None, None, "", "no luck")
    assert (first.run, second.run) == (1, 2)
    assert list(log.samples()) == [first, second]


def test_what_is_no_log_is_none(tmp_path):
    with zipfile.ZipFile(tmp_path / "book.zip", "w") as archive:
        archive.writestr("mimetype", "text")
    with zipfile.ZipFile(tmp_path / "header.zip", "w") as archive:
        archive.writestr("header.json", json.dumps({"eval": "none"}))
    (tmp_path / "cut.zip").write_bytes((tmp_path / "book.zip").read_bytes()[:40])
    (tmp_path / "other.json").write_text('{"version": 1, "status": "fine", "eval": {"score": 3}}', "utf-8")
    (tmp_path / "results.json").write_text('{"results": {}}', "utf-8")
    (tmp_path / "empty.json").write_bytes(b"")
    assert [read_log(path) for path in tmp_path.iterdir()] == [None] * 6


def test_a_log_that_was_cut_off_is_an_error_wherever_it_was(tmp_path):
    whole = write_eval(tmp_path / "whole.eval").read_bytes()
    cut = tmp_path / "cut.eval"
    for size in (0, *range(60, len(whole) - 1, 5), len(whole) - 2):
        cut.write_bytes(whole[:size])
        with pytest.raises(QabiasError, match=rf"cut.eval: .*{size:,} bytes"):
            read_log(cut)


def test_json_that_was_cut_off_or_damaged_is_an_error(tmp_path):
    whole = write_json(tmp_path / "whole.json", indent=None).read_bytes()
    path = tmp_path / "cut.json"
    texts = [whole[:size] for size in (*range(80, len(whole), 9), len(whole) - 1)]
    for intact, damaged in (
        (b'"epoch": 1', b'"epoch": !'),
        (b'"choices": [', b'"choices" ['),
        (b"A long question", b"A long \xff question"),
        (b'"a/model"', b"1" * 5000),  # more digits than Python reads
        (b'"a/model"', b"[" * 99999),  # nested deeper than Python reads
    ):
        assert intact in whole
        texts.append(whole.replace(intact, damaged, 1))
    for text in texts:
        path.write_bytes(text)
        with pytest.raises(QabiasError, match=r"cut.json: .*damaged"):
            read_log(path)
    with pytest.raises(QabiasError, match="number 2 "):
        list(read_log(write_json(path, samples=[FIRST, 5])).samples())


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_damaged_sample_is_named(tmp_path):
    path = write_eval(tmp_path / "log.eval", compression=zipfile.ZIP_STORED)
    path.write_bytes(path.read_bytes().replace(b"no luck", b"no duck"))
    log = read_log(path)
    with pytest.raises(QabiasError, match=r"samples/2_epoch_2.json .*damaged"):
        list(log.samples())
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("samples/3_epoch_1.json", "[" * 99999)
        archive.writestr("samples/2_epoch_2.json", json.dumps(SECOND))
    with pytest.raises(QabiasError, match=r"samples/3_epoch_1.json .*damaged"):
        list(read_log(path).samples())


def test_a_small_log_that_unpacks_to_very_much_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(inspect_eval, "_MOST_BYTES", 100_000)
    log = read_log(write_eval(tmp_path / "log.eval", samples=[{**FIRST, "pad": "a" * 5_000_000}]))
    tracemalloc.start()
    try:
        with pytest.raises(QabiasError, match="more than 100,000"):
            list(log.samples())
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 1e6


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_of_a_sample_that_was_asked_again_the_last_answer_counts(tmp_path):
    again = {**FIRST, "scores": {"choice": {"value": "C", "answer": "A"}}}
    log = read_log(write_eval(tmp_path / "log.eval", samples=(FIRST, SECOND, again)))
    assert [sample.answer for sample in log.samples()] == ["A", None]


def test_a_log_without_an_end_says_so_and_why(tmp_path):
    log = read_log(write_eval(tmp_path / "log.eval", finished=False))
    assert (log.settings["status"], log.n_expected, log.figures) == ("started", 4, {})
    assert "inspect eval-retry log.eval" in log.notes[0]
    assert len(list(log.samples())) == 2
    changes = {"status": "error", "error": {"message": "no credit\n"}, "results": None}
    for name, writer in WRITERS.items():
        (note,) = read_log(writer(tmp_path / name, **changes)).notes
        assert "error (no credit)" in note


def test_scorers_and_reducers_are_kept_apart(write):
    two = {**FIRST, "scores": {"match": {"value": "I"}, "choice": {"value": "C", "answer": "A"}}}
    invalid = {**FIRST, "id": 4, "invalidation": {"author": "me", "reason": "wrong model"}}
    figures = results("match", "choice", "choice")
    figures["scores"][1]["reducer"], figures["scores"][2]["reducer"] = "mean", "at_least_1"
    log = read_log(write(samples=(two, SECOND, invalid), results=figures))
    samples = list(log.samples())
    assert [sample.answer for sample in samples] == ["A", None, "B"]
    assert [sample.answers for sample in samples[:2]] == [{"match": None, "choice": "A"}, {}]
    assert samples[2].error == "marked as invalid: wrong model"
    assert set(log.figures) == {"match/accuracy", "choice/mean/accuracy", "choice/at_least_1/accuracy"}
    assert log.notes == ()


HEADERS = [
    {"eval": spec(config="x")},
    {"eval": spec(packages=["a"])},
    {"eval": spec(dataset=3)},
    {"eval": spec(config={"epochs": "x"})},
    {"results": 3},
    {"results": {"total_samples": "x"}},
    {"results": {"scores": [{"name": "c", "metrics": {"accuracy": 0.5}}]}},
    {"results": {"scores": [{"name": "c", "metrics": {"accuracy": {"value": "x"}}}]}},
    {"results": {"scores": [{"metrics": {}}]}},
    {"status": "error", "error": {"message": 3}},
]


@pytest.mark.parametrize("changes", HEADERS)
def test_a_header_of_another_kind_is_named(write, changes):
    with pytest.raises(QabiasError, match=r"log.bin: the header"):
        read_log(write(**changes))


SAMPLES = [
    {"epoch": "x"},
    {"output": "x"},
    {"output": {"choices": {"a": 1}}},
    {"output": {"choices": ["x"]}},
    {"output": {"choices": [{"message": "x"}]}},
    {"output": {"choices": [{"message": {"content": ["x"]}}]}},
    {"scores": ["x"]},
    {"scores": {"choice": "B"}},
    {"attachments": ["x"]},
    {"error": "x"},
    {"invalidation": True},
]


@pytest.mark.parametrize("changes", SAMPLES)
def test_a_sample_of_another_kind_is_named(write, changes):
    path = write(samples=(FIRST, {**FIRST, "id": 2, "epoch": 1, **changes}))
    samples = read_log(path).samples()
    assert next(samples).answer == "B"
    with pytest.raises(QabiasError, match=r": (samples/2_epoch_\w+.json|sample number 2) "):
        next(samples)


def test_a_log_kept_without_samples_is_an_error(write):
    config = {"epochs": 1, "log_samples": False}
    with pytest.raises(QabiasError, match="--no-log-samples"):
        read_log(write(samples=(), eval=spec(config=config)))


def test_json_without_samples_has_none(tmp_path):
    path = tmp_path / "log.json"
    whole = document()
    del whole["samples"]
    for content in (whole, {**whole, "samples": None}):
        path.write_text(json.dumps(content), "utf-8")
        assert list(read_log(path).samples()) == []


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="Python reads Zstandard itself from 3.14 on")
def test_what_reads_zstandard_is_named_where_it_is_missing(tmp_path):
    pytest.importorskip("zipfile_zstd")
    path = write_eval(tmp_path / "log.eval", compression=zipfile.ZIP_ZSTANDARD)
    assert len(list(read_log(path).samples())) == 2
    code = (
        "import sys; from pathlib import Path; from qabias.logs.detect import read_log;"
        "sys.modules['zipfile_zstd'] = None; read_log(Path(sys.argv[1]))"
    )
    asked = subprocess.run([sys.executable, "-c", code, path], cwd=ROOT, capture_output=True, text=True)
    assert "QabiasError: " in asked.stderr
    assert 'pip install "qabias[inspect]"' in asked.stderr


def test_memory_does_not_grow_with_a_log(tmp_path):
    long = {**FIRST, "messages": ["x" * 200] * 100}
    samples = [{**long, "id": number} for number in range(600)]
    log = read_log(write_eval(tmp_path / "log", samples=samples))
    tracemalloc.start()
    try:
        n_samples = sum(1 for _ in log.samples())
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert n_samples == 600
    assert sum(len(json.dumps(sample)) for sample in samples) > 12e6
    assert most < 6e6
