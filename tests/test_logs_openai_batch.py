"""Results of a batch: every body that services give, failures, and whose answers they are."""

import pytest

from qabias.answers.outcomes import OUTCOMES
from qabias.benchmarks import load_benchmark
from qabias.benchmarks.batched import batched
from qabias.errors import QabiasError
from qabias.logs.detect import logs_in, read_log
from qabias.runs.collected import join_answers
from qabias.runs.logged import collect_log
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


def samples(tmp_path, *lines):
    return list(read_log(write_lines(tmp_path, *lines)).samples())


def write_lines(tmp_path, *lines):
    path = tmp_path / "output.jsonl"
    write(path, lines)
    return path


def read(tmp_path, *lines, benchmark=BBQ, **hints):
    log = read_log(write_lines(tmp_path, *lines))
    return batched(benchmark, log, {"config": "Age", "source": "bundled", "format": "letters"} | hints, None)


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
        (response("I'm sorry.", kind="refusal"), "I'm sorry.", "completed"),
    ],
)
def test_the_text_of_every_body_is_read_with_why_it_ended(body, text, finish, tmp_path):
    (sample,) = samples(tmp_path, result("Age/0", 200, body))
    assert (sample.asked, sample.text, sample.finish, sample.error) == ({"custom_id": "Age/0"}, text, finish, "")
    (bare,) = samples(tmp_path, {"custom_id": "Age/0", "response": body})
    assert (bare.text, bare.finish) == (text, finish)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (failed("Age/0"), "This request could not be executed in time."),
        (result("Age/0", 429, {"error": {"message": "too\nmany", "code": "rate"}}), "status 429: too many"),
        (result("Age/0", 500, None), "status 500: no message"),
        (result("Age/0", 200, {"error": {"message": "odd"}}), "status 200: odd"),
        (result("Age/0", 200, {"data": []}), "a body that is no answer of chat/completions, completions or responses"),
        (result("Age/0", 200, chat("B") | {"choices": []}), "a body that is no answer"),
    ],
)
def test_a_failure_says_why(line, said, tmp_path):
    (sample,) = samples(tmp_path, line)
    assert sample.text is None
    assert sample.error.startswith(said)


def test_a_prompt_that_the_filter_refused_has_that_as_its_answer(tmp_path):
    error = {"error": {"message": "The response was filtered", "code": "content_filter"}}
    (sample,) = samples(tmp_path, result("Age/0", 400, error))
    assert (sample.text, sample.finish, sample.error) == ("", "content_filter", "")


def test_the_model_is_that_of_the_first_answer(tmp_path):
    path = write_lines(tmp_path, failed("Age/0"), result("Age/1", 200, chat("A")))
    log = read_log(path)
    assert (log.tool, log.model, log.called) == ("openai-batch", "gpt-made-up", f"{path} (openai-batch, task batch)")


@pytest.mark.parametrize("form", ["Age/{}", "Age-{}", "Age_{}", "bbq/Age/{}", "BBQ:age.{}", "{}"])
def test_a_custom_id_is_the_key_of_an_example(form, tmp_path):
    lines = [result(form.format(number), 200, chat(LETTERS[number % 3])) for number in range(7, 0, -1)]
    found = read(tmp_path, *lines)
    table = BBQ.load("Age", BBQ.origin("bundled", 0, False, None))
    asked, answers = join_answers(BBQ, table, found.external.answers, "a batch")
    assert asked["example_id"].to_pylist() == [1, 2, 3, 4, 5, 6, 7]
    assert answers["prediction"].to_pylist() == [number % 3 for number in range(1, 8)]
    assert (found.config, found.external.source, found.external.format, found.external.model) == (
        *("Age", "bundled", "letters", "gpt-made-up"),
    )


def test_categories_with_the_same_numbers_are_told_apart(tmp_path):
    lines = [result(f"{category}_3", 200, chat("A")) for category in ("Race_x_SES", "SES", "Race_x_gender")]
    found = read(tmp_path, *lines, config="all")
    assert sorted(found.external.answers["category"].to_pylist()) == ["Race_x_SES", "Race_x_gender", "SES"]
    with pytest.raises(QabiasError, match=r"no example of this configuration and source has the custom_id '3' \(1 in"):
        read(tmp_path, result("3", 200, chat("A")), config="all")


def test_what_became_of_the_answers_is_kept(tmp_path):
    texts = {
        0: chat("B"),
        1: chat("I'm sorry, but I can't help with that."),
        2: chat("Well, let me see", "length"),
        3: chat("", "content_filter"),
        4: chat("Who knows, who cares"),
    }
    lines = [result(f"Age/{number}", 200, body) for number, body in texts.items()]
    answers = read(tmp_path, *lines, failed("Age/5")).external.answers
    assert answers["outcome"].to_pylist() == [*OUTCOMES, None]
    assert answers["prediction"].to_pylist() == [1, -1, -1, -1, -1, -1]
    assert answers["outputs"].to_pylist()[3:] == [[""], ["Who knows, who cares"], None]


def test_what_only_thought_ended_too_early(tmp_path):
    line = result("Age/0", 200, chat(None, "stop", reasoning_content="Let me see: ..."))
    assert read(tmp_path, line).external.answers["outcome"].to_pylist() == ["truncated"]


def test_failures_are_answers_that_are_missing_and_a_later_answer_replaces_one(tmp_path):
    lines = [result(f"Age/{number}", 200, chat("A")) for number in range(8)]
    broken = [failed(f"Age/{number}") for number in (8, 9)] + [result("Age/10", 500, None)]
    found = read(tmp_path, failed("Age/0"), *lines, *broken)
    assert found.external.answers["prediction"].to_pylist() == [0] * 8 + [-1] * 3
    assert found.external.answers["outcome"].to_pylist() == ["answered"] * 8 + [None] * 3
    with pytest.raises(QabiasError, match="no answer in it; the first of 3 requests that failed: This request"):
        read(tmp_path, *broken)


def test_a_question_has_one_answer(tmp_path):
    one, two = result("Age/1", 200, chat("A")), result("Age-1", 200, chat("B"))
    with pytest.raises(QabiasError, match="line 2: a second answer to 'Age-1'"):
        read(tmp_path, one, two)
    several = chat("A")
    several["choices"] *= 2
    with pytest.raises(QabiasError, match="line 1: a second answer to 'Age/1'"):
        read(tmp_path, result("Age/1", 200, several))


def test_a_custom_id_that_is_no_key_is_named(tmp_path):
    lines = [result(f"Age/{number}", 200, chat("A")) for number in (1, 99999, 99998)]
    with pytest.raises(QabiasError, match=r"custom_id 'Age/99999', 'Age/99998' \(2 in all\).* such as 'age/0'"):
        read(tmp_path, *lines)


def test_the_answers_to_requests_of_a_run_are_read_by_the_run(tmp_path):
    line = result(request_hash({"model": "m"}), 200, chat("A"))
    with pytest.raises(QabiasError, match=r"--option batch=read=.*output.jsonl"):
        read(tmp_path, line)


def test_a_benchmark_that_needs_numbers_has_no_written_answers(tmp_path):
    unqover = load_benchmark("unqover")
    log = read_log(write_lines(tmp_path, result("gender/1", 200, chat("A"))))
    with pytest.raises(QabiasError, match="unqover needs s1_"):
        batched(unqover, log, {"config": "gender"}, None)


def test_the_answers_of_other_benchmarks_are_texts_too(tmp_path):
    bbnli = load_benchmark("bbnli")
    table = bbnli.load(bbnli.configs[0], bbnli.origin("bundled", 0, False, None))
    names = table["example_id"].to_pylist()[:3]
    lines = [result(f"bbnli-{name}", 200, chat(text)) for name, text in zip(names, ("Yes", "No", "Maybe"), strict=True)]
    found = batched(bbnli, read_log(write_lines(tmp_path, *lines)), {"config": bbnli.configs[0]}, None)
    answers = found.external.answers.to_pydict()
    assert answers["example_id"] == names
    assert answers["outputs"] == [["Yes"], ["No"], ["Maybe"]]
    assert answers["prediction"] == [2, 0, 1]  # entailment, contradiction, neutral
    assert answers["outcome"] == ["answered"] * 3
    assert found.notes == (
        "Results do not say which texts were asked; they are taken as answers to the source bundled.",
    )


@pytest.mark.parametrize(("name", "value"), [("config", "Agee"), ("source", "bundle"), ("format", "leters")])
def test_a_hint_that_is_no_name_is_refused(name, value, tmp_path):
    with pytest.raises(QabiasError, match="did you mean"):
        read(tmp_path, result("Age/0", 200, chat("A")), **{name: value})


def test_results_become_a_run_of_the_benchmark_that_is_named(tmp_path):
    lines = [result(f"Age/{number}", 200, chat(LETTERS[number % 3])) for number in range(8)]
    log = read_log(write_lines(tmp_path, *lines))
    with pytest.raises(QabiasError, match="do not say what was asked; name it by --benchmark"):
        collect_log(log)
    hints = {"benchmark": "bbq", "config": "Age", "source": "bundled", "format": "letters"}
    collected = collect_log(log, hints=hints)
    assert collected.question.table["example_id"].to_pylist() == list(range(8))
    assert collected.answers["prediction"].to_pylist() == [number % 3 for number in range(8)]
    assert collected.coverage.startswith("8 of ")


def test_requests_are_no_answers(tmp_path):
    request = {"custom_id": "Age/1", "method": "POST", "url": "/v1/chat/completions", "body": {}}
    with pytest.raises(QabiasError, match="give the file that the service gave back"):
        read_log(write_lines(tmp_path, request))


@pytest.mark.parametrize("torn", ['{"id": "x", "custom_id": "Age/2", "respon', '{"response": {}}', "[1]", "7"])
def test_a_file_that_is_cut_off_is_refused(torn, tmp_path):
    path = write_lines(tmp_path, result("Age/1", 200, chat("A")))
    path.write_text(path.read_text("utf-8") + "\n" + torn, "utf-8")
    with pytest.raises(QabiasError, match=r"output.jsonl: line 3 is no result of a batch; is the file cut off\?"):
        batched(BBQ, read_log(path), {"config": "Age"}, None)


@pytest.mark.parametrize("response", [[1], "x", 5, {"status_code": "abc"}, {"status_code": [], "body": {}}])
@pytest.mark.parametrize("n_before", [0, 1])
def test_a_response_of_another_kind_is_named_by_its_line(response, n_before, tmp_path):
    line = {"custom_id": "Age/2", "response": response, "error": None}
    path = write_lines(tmp_path, *[result("Age/1", 200, chat("A"))] * n_before, line)
    with pytest.raises(QabiasError, match=rf"output.jsonl: line {n_before + 1} is no result of a batch"):
        batched(BBQ, read_log(path), {"config": "Age"}, None)


def test_a_body_of_another_kind_is_a_failure(tmp_path):
    bodies = [chat(5), completion(5), {"output": 5}, {"choices": {"a": 1}}, {"output": [{"type": "message"}]}]
    found = samples(tmp_path, *[result(f"Age/{number}", 200, body) for number, body in enumerate(bodies)])
    assert [sample.error[:21] for sample in found] == ["a body that is no ans"] * len(bodies)


def test_texts_of_a_seed_and_of_own_options_are_answered(tmp_path, upstream):
    esbbq = load_benchmark("esbbq")
    options = {"answers": "released"}
    texts = esbbq.load("Religion", esbbq.origin("release", 3, False, str(upstream), **options))
    numbers = texts["example_id"].to_pylist()[:12]
    path = write_lines(tmp_path, *[result(f"Religion/{number}", 200, chat("A")) for number in numbers])
    hints = {"config": "Religion", "source": "release", "format": "letters", "seed": "3", "option.answers": "released"}
    found = batched(esbbq, read_log(path), hints, str(upstream))
    assert (found.seed, found.fixes, found.options) == (3, False, options)
    for name, value, said in (("seed", "x", "whole number"), ("fixes", "maybe", "unknown value of fixes")):
        with pytest.raises(QabiasError, match=said):
            batched(esbbq, read_log(path), {**hints, name: value}, str(upstream))


def test_drawn_and_corrected_texts_are_those_that_the_hints_say(tmp_path, upstream):
    mirror = str(upstream)
    path = write_lines(tmp_path, *[result(f"Age/{number}", 200, chat("A")) for number in range(4)])
    found = batched(BBQ, read_log(path), {"config": "Age", "source": "official", "seed": "3", "fixes": "yes"}, mirror)
    assert (found.seed, found.fixes) == (3, True)


def test_other_files_are_no_batches(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"category": "Age", "example_id": 1}\n', "utf-8")
    (tmp_path / "b.jsonl").write_text('{"custom_id": "Age/1", "answer": "A"}\n', "utf-8")
    (tmp_path / "c.json").write_text('{\n "custom_id": "Age/1"}\n', "utf-8")
    (tmp_path / "d.json").write_bytes(b'{"custom_id":\xff\xfe')
    (tmp_path / "e").write_bytes(b"")
    assert [log for _, log in logs_in(tmp_path, "run.json")] == [None] * 5
