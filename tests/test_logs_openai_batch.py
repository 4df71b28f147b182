"""Results of a batch: every body that services give, failures, and whose answers they are."""

import json

import pytest

from qabias.answers.outcomes import OUTCOMES
from qabias.benchmarks import load_benchmark
from qabias.benchmarks.text_logs import batched
from qabias.errors import QabiasError
from qabias.logs.detect import read_log
from qabias.runs.collected import collect, join_answers
from qabias.runs.external import read_external
from qabias.scorers.journal import request_hash

from .batch_service import failed, result, write

BBQ = load_benchmark("bbq")
LETTERS = "ABC"


def chat(text, finish="stop", **message):
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}
    return {"object": "chat.completion", "model": "gpt-made-up", "choices": [choice]}


def completion(text, finish="stop"):
    return {"object": "text_completion", "model": "gpt-made-up", "choices": [{"text": text, "finish_reason": finish}]}


def response(text, status="completed", reason=None, kind="output_text"):
    thinking = {"type": "reasoning", "summary": []}
    said = {"type": "message", "content": [{"type": kind, kind.removeprefix("output_"): text}]}
    details = {"reason": reason} if reason else None
    output = [thinking, said]
    about = {"object": "response", "model": "gpt-made-up", "status": status, "error": None}
    return {**about, "incomplete_details": details, "output": output}


def write_lines(tmp_path, *lines):
    path = tmp_path / "output.jsonl"
    write(path, lines)
    return path


def read(tmp_path, *lines, benchmark=BBQ, **hints):
    log = read_log(write_lines(tmp_path, *lines))
    return batched(benchmark, log, {"config": "Age", "source": "bundled", "format": "letters"} | hints)


@pytest.mark.parametrize(
    ("body", "text", "finish"),
    [
        (chat("B"), "B", "stop"),
        (chat("", "length"), "", "length"),
        (chat(None, "content_filter"), "", "content_filter"),
        (chat(None, refusal="I'm sorry, but I can't help."), "I'm sorry, but I can't help.", "stop"),
        (chat([{"type": "text", "text": "B"}, {"type": "text", "text": "."}]), "B.", "stop"),
        (completion(" B"), " B", "stop"),
        (response("B"), "B", "completed"),
        (response("", "incomplete", "max_output_tokens"), "", "max_output_tokens"),
        (response("I'm sorry.", kind="refusal"), "I'm sorry.", "refusal"),
    ],
)
def test_the_text_of_every_body_is_read_with_why_it_ended(body, text, finish, tmp_path):
    path = write_lines(tmp_path, failed("Age/1"), result("Age/0", 200, body))
    log = read_log(path)
    assert (log.tool, log.model, log.called) == ("openai-batch", "gpt-made-up", f"{path} (openai-batch, task batch)")
    _, sample = log.samples()
    assert (sample.asked, sample.text, sample.finish, sample.error) == ({"custom_id": "Age/0"}, text, finish, "")
    (bare,) = read_log(write_lines(tmp_path, {"custom_id": "Age/0", "response": body})).samples()
    assert (bare.text, bare.finish) == (text, finish)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (failed("Age/0"), "This request could not"),
        (result("Age/0", 429, {"error": {"message": "too\nmany", "code": "rate"}}), "status 429: too many"),
        (result("Age/0", 500, None), "status 500: no message"),
        (result("Age/0", 200, {"error": {"message": "odd"}}), "status 200: odd"),
        (result("Age/0", 200, chat("B") | {"error": {"message": "cut"}}), "status 200: cut"),
        (result("Age/0", 200, chat("B", "error")), "the model's server failed"),
        (result("Age/0", 200, response("B", "failed")), "the model's server failed"),
        (result("Age/0", 400, {"error": {"message": "no such field", "param": "foo"}}), "status 400: no such"),
        *(
            (result("Age/0", 200, body), "the body")
            for body in (
                *({"data": []}, chat("B") | {"choices": []}, chat(5), completion(5), {"output": 5}),
                *({"choices": {"a": 1}}, {"output": [{"type": "message"}]}),
            )
        ),
    ],
)
def test_a_failure_says_why(line, said, tmp_path):
    (sample,) = read_log(write_lines(tmp_path, line)).samples()
    assert sample.text is None
    assert sample.error.startswith(said)


@pytest.mark.parametrize("form", ["Age/{}", "Age-{}", "Age_{}", "bbq/Age/{}", "BBQ:age.{}", "{}"])
def test_a_custom_id_is_the_key_of_an_example(form, tmp_path):
    lines = [result(form.format(number), 200, chat(LETTERS[number % 3])) for number in range(7, 0, -1)]
    found = read(tmp_path, *lines)
    table = BBQ.load("Age", BBQ.origin("bundled", 0, False))
    asked, answers = join_answers(BBQ, table, found.answers, "a batch")
    assert asked["example_id"].to_pylist() == [1, 2, 3, 4, 5, 6, 7]
    assert answers["prediction"].to_pylist() == [number % 3 for number in range(1, 8)]
    assert (found.config, found.source, found.format) == ("Age", "bundled", "letters")


def test_categories_with_the_same_numbers_are_told_apart(tmp_path):
    lines = [result(f"{category}_3", 200, chat("A")) for category in ("Race_x_SES", "SES", "Race_x_gender")]
    answers = read(tmp_path, *lines, config="all").answers
    assert sorted(answers["category"].to_pylist()) == ["Race_x_SES", "Race_x_gender", "SES"]


def test_what_became_of_the_answers_is_kept(tmp_path):
    bodies = [
        *(chat("B"), chat("I'm sorry, but I can't help with that."), chat("Well, let me see", "length")),
        *(chat("", "content_filter"), chat("A, B or C"), chat("Who cares")),
        chat(None, "stop", reasoning_content="Let me see: ..."),
    ]
    lines = [result(f"Age/{number}", 200, body) for number, body in enumerate(bodies)]
    refused = {"error": {"message": "The response was filtered", "code": "content_filter"}}
    too_long = {"error": {"message": "This prompt is longer than the context", "code": "context_length_exceeded"}}
    lines += [failed("Age/7"), result("Age/8", 400, refused), result("Age/9", 400, too_long)]
    answers = read(tmp_path, *lines).answers
    assert answers["outcome"].to_pylist() == [*OUTCOMES, "truncated", None, "filtered", "truncated"]
    assert answers["prediction"].to_pylist() == [1, *[-1] * 9]
    assert answers["outputs"].to_pylist()[3:] == [[""], ["A, B or C"], ["Who cares"], [""], None, [""], [""]]


def test_choices_are_told_apart_by_their_index(tmp_path):
    body = chat("B")
    body["choices"] = [body["choices"][0] | {"index": 1}, chat("C")["choices"][0]]
    samples = read_log(write_lines(tmp_path, result("Age/0", 200, body))).samples()
    assert [(sample.run, sample.text) for sample in samples] == [(1, "C"), (2, "B")]


def test_a_later_answer_replaces_a_failure(tmp_path):
    found = read(tmp_path, failed("Age/0"), result("Age/0", 200, chat("A")), failed("Age/1"))
    assert found.answers["prediction"].to_pylist() == [0, -1]
    assert found.answers["outcome"].to_pylist() == ["answered", None]


TWO = chat("A") | {"choices": chat("A")["choices"] * 2}


@pytest.mark.parametrize(
    ("lines", "hints", "token"),
    [
        ([result("Age/1", 200, chat("A")), result("Age-1", 200, chat("B"))], {}, "'Age-1'"),
        ([result("Age/1", 200, TWO)], {}, "'Age/1'"),
        ([result(f"Age/{number}", 200, chat("A")) for number in (1, 99999, 99998)], {}, r"\(2 in all\)(?s:.*)99998'"),
        ([result("3", 200, chat("A"))], {"config": "all"}, r"\(1 in all\)(?s:.*)'3'"),
        ([failed("Age/8"), result("Age/9", 500, None)], {}, "all 2 requests"),
        ([result(request_hash({"model": "m"}), 200, chat("A"))], {}, "batch=read"),
        ([{"custom_id": "Age/1", "method": "POST", "url": "/v1/chat/completions", "body": {}}], {}, "requests"),
        *(
            ([result("Age/0", 200, chat("A"))], hint, token)
            for hint, token in (
                *(({"config": "Agee"}, "'Age'"), ({"source": "bundle"}, "'bundled'")),
                ({"format": "leters"}, "'letters'"),
            )
        ),
    ],
)
def test_what_cannot_be_told_apart_is_refused(lines, hints, token, tmp_path):
    with pytest.raises(QabiasError, match=token):
        read(tmp_path, *lines, **hints)


def test_the_answers_of_other_benchmarks_are_texts_too(tmp_path):
    bbnli = load_benchmark("bbnli")
    table = bbnli.load(bbnli.configs[0], bbnli.origin("bundled", 0, False))
    names = table["example_id"].to_pylist()[:3]
    lines = [result(f"bbnli-{name}", 200, chat(text)) for name, text in zip(names, ("Yes", "No", "Maybe"), strict=True)]
    found = batched(bbnli, read_log(write_lines(tmp_path, *lines)), {"config": bbnli.configs[0]})
    answers = found.answers.to_pydict()
    assert answers["example_id"] == names
    assert answers["outputs"] == [["Yes"], ["No"], ["Maybe"]]
    assert answers["prediction"] == [2, 0, 1]  # entailment, contradiction, neutral
    assert answers["outcome"] == ["answered"] * 3
    assert "bundled" in found.notes[0]
    unqover = load_benchmark("unqover")
    log = read_log(write_lines(tmp_path, result("gender/1", 200, chat("A"))))
    with pytest.raises(QabiasError, match="unqover needs s1_"):
        batched(unqover, log, {"config": "gender"})


def test_results_become_a_run_of_the_benchmark_that_is_named(tmp_path):
    lines = [result(f"Age/{number}", 200, chat(LETTERS[number % 3])) for number in range(8)]
    log = read_log(write_lines(tmp_path, *lines))
    with pytest.raises(QabiasError, match="benchmark"):
        read_external(log, {})
    hints = {"benchmark": "bbq", "config": "Age", "source": "bundled", "format": "letters"}
    collected = collect(read_external(log, hints))
    assert collected.question.table["example_id"].to_pylist() == list(range(8))
    assert collected.answers["prediction"].to_pylist() == [number % 3 for number in range(8)]
    assert collected.arguments.model == "gpt-made-up"
    assert collected.coverage.startswith("8 of ")


ODD = [
    json.dumps({"custom_id": "Age/2", "response": response, "error": None})
    for response in ([1], "x", 5, {"status_code": "abc"}, {"status_code": [], "body": {}})
]


@pytest.mark.parametrize("line", ['{"id": "x", "custom_id": "Age/2", "respon', '{"response": {}}', "[1]", "7", *ODD])
def test_a_damaged_line_is_named(line, tmp_path):
    path = write_lines(tmp_path, result("Age/1", 200, chat("A")))
    path.write_text(path.read_text("utf-8") + "\n" + line, "utf-8")
    with pytest.raises(QabiasError, match=r"output.jsonl: line 3 "):
        batched(BBQ, read_log(path), {"config": "Age"})
    if line in ODD:
        path.write_text(line, "utf-8")
        with pytest.raises(QabiasError, match="line 1 "):
            read_log(path)


@pytest.mark.slow
def test_texts_and_options_are_those_that_the_hints_say(tmp_path, upstream):
    esbbq, options = load_benchmark("esbbq"), {"answers": "released"}
    texts = esbbq.load("Religion", esbbq.origin("release", 3, False, **options))
    numbers = texts["example_id"].to_pylist()[:12]
    path = write_lines(tmp_path, *[result(f"Religion/{number}", 200, chat("A")) for number in numbers])
    hints = {"config": "Religion", "source": "release", "format": "letters", "seed": 3, "options": options}
    logged = batched(esbbq, read_log(path), hints)
    assert (logged.seed, logged.fixes, logged.options) == (3, False, options)
    path = write_lines(tmp_path, *[result(f"Age/{number}", 200, chat("A")) for number in range(4)])
    hints = {"config": "Age", "source": "official", "seed": 3, "fixes": True}
    logged = batched(BBQ, read_log(path), hints)
    assert (logged.seed, logged.fixes) == (3, True)


def test_other_files_are_no_batches(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"category": "Age", "example_id": 1}\n', "utf-8")
    (tmp_path / "b.jsonl").write_text('{"custom_id": "Age/1", "answer": "A"}\n', "utf-8")
    (tmp_path / "c.json").write_text('{\n "custom_id": "Age/1"}\n', "utf-8")
    (tmp_path / "d.json").write_bytes(b'{"custom_id":\xff\xfe')
    (tmp_path / "e").write_bytes(b"")
    assert [read_log(path) for path in tmp_path.iterdir()] == [None] * 5
