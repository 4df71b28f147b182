"""BBQ asked by the real inspect_ai and inspect_evals: its log gives the scores of the answers in it."""

import importlib.metadata
import json
import re
from dataclasses import replace
from pathlib import Path

import evaluate
import pyarrow.compute as pc
import pytest

from qabias.answers.outcomes import OUTCOMES
from qabias.benchmarks import benchmark_names, load_benchmark
from qabias.errors import QabiasError
from qabias.logs import Sample
from qabias.logs.recognise import read_log
from qabias.measuring.predictions import check_references, join_answers

from .conftest import ROOT
from .inspect_logs import CATEGORIES, LETTERS, N_EACH, said
from .inspect_logs import evaluate as ask

BBQ = load_benchmark("bbq")
PINNED = {"inspect_ai": "0.3.285", "inspect_evals": "0.26.0"}

pytest.importorskip("inspect_ai", reason='inspect_ai is not installed: pip install "qabias[inspect]"')
pytest.importorskip("inspect_evals", reason="inspect_evals is not installed")


@pytest.fixture(scope="module")
def examples(upstream):
    """The released examples of the categories that are asked."""
    return BBQ.load(",".join(CATEGORIES), BBQ.origin("release", 0, False, upstream))


@pytest.fixture(scope="module")
def patch():
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield monkeypatch


@pytest.fixture(scope="module", params=["eval", "json"])
def log(request, upstream, patch, tmp_path_factory):
    """A whole log, in both forms."""
    return read_log(Path(ask(upstream, tmp_path_factory.mktemp("logs"), patch, log_format=request.param)))


@pytest.fixture(scope="module")
def short(upstream, patch, tmp_path_factory):
    """A whole log of few samples."""
    return read_log(Path(ask(upstream, tmp_path_factory.mktemp("short"), patch, n_each=8)))


@pytest.fixture(scope="module")
def failed(upstream, patch, tmp_path_factory):
    """A log in which about every tenth sample failed."""
    folder = tmp_path_factory.mktemp("failed")
    return read_log(Path(ask(upstream, folder, patch, fails=_fails, fail_on_error=False, n_each=40)))


def _fails(prompt):
    return sum(prompt.encode()) % 10 == 3


def _prompt(row):
    """How the multiple-choice solver of inspect_ai puts an example, as far as the answers here depend on it."""
    options = "\n".join(f"{letter}) {row[f'ans{place}']}" for place, letter in enumerate(LETTERS))
    start = "Answer the following multiple choice question. The entire content of your response should be of the "
    form = "following format: 'ANSWER: $LETTER' (without quotes) where LETTER is one of A,B,C."
    return f"{start}{form}\n\nContext: {row['context']}\n\nQuestion: {row['question']}\n\n{options}"


def _rows(examples, n_each):
    return examples.filter(pc.less(examples["example_id"], n_each)).to_pylist()


def _answer(row):
    """The place of the answer of the model to an example, computed without any log; -1 for none."""
    text, _ = said(_prompt(row))
    return LETTERS.find(text[-1]) if re.fullmatch(r"ANSWER: [ABC]", text) else -1


def _scores(predictions, rows):
    metric = evaluate.load(str(ROOT / "metrics" / "bbq"))
    with pytest.warns(UserWarning, match="name no answer"):
        return metric.compute(predictions=predictions, references=rows, confidence=None)


def test_the_tools_are_those_of_which_the_docs_speak():
    assert {name: importlib.metadata.version(name) for name in PINNED} == PINNED


def test_the_scores_of_a_log_are_those_of_the_same_answers(log, examples):
    logged = BBQ.logged(log)
    table, answers = join_answers(BBQ, examples, logged.given.answers, "log")
    rows = _rows(examples, N_EACH)
    expected = _scores([_answer(row) for row in rows], rows)
    found = _scores(answers["prediction"].to_pylist(), table.to_pylist())
    assert expected["n"] == len(CATEGORIES) * N_EACH
    assert {name: found[name] for name in ("bias_ambig", "bias_disambig", "accuracy_ambig", "accuracy_disambig")} == {
        name: expected[name] for name in ("bias_ambig", "bias_disambig", "accuracy_ambig", "accuracy_disambig")
    }
    assert found == expected
    assert 0 < abs(found["bias_ambig"]) < 1
    check_references(BBQ, examples, logged.references)
    assert set(logged.references.column_names) >= {"context", "question", "ans0", "ans1", "ans2", "label"}


def test_a_log_says_what_was_asked(log):
    logged = BBQ.logged(log)
    assert (log.tool, log.version, log.task, log.model) == (
        "inspect_ai",
        PINNED["inspect_ai"],
        "inspect_evals/bbq",
        "mockllm/model",
    )
    assert log.n_expected == len(CATEGORIES) * N_EACH == len(list(log.samples())) == logged.given.answers.num_rows
    assert (logged.given.source, logged.given.model, logged.config) == ("release", "mockllm/model", "Age,Religion")
    assert log.notes == logged.notes == ()
    BBQ.check_config(logged.config)


def test_outcomes_say_why_an_answer_is_missing(log, examples):
    answers = BBQ.logged(log).given.answers
    expected = []
    for row in _rows(examples, N_EACH):
        text, stop = said(_prompt(row))
        cut = "truncated" if stop == "max_tokens" else "refused" if text.startswith("I'm sorry") else "unread"
        expected.append("answered" if _answer(row) >= 0 else cut)
    # In the order of the file: categories come in order too.
    answers = answers.sort_by([(name, "ascending") for name in BBQ.key])
    assert answers["outcome"].to_pylist() == expected
    assert set(expected) == set(OUTCOMES) - {"filtered"}
    assert answers["outputs"].to_pylist() == [[said(_prompt(row))[0]] for row in _rows(examples, N_EACH)]


def test_the_accuracy_of_inspect_is_ours_where_all_is_read(log, examples):
    logged = BBQ.logged(log)
    figures = {figure.name: figure for figure in logged.figures}
    assert set(figures) == {"choice/accuracy", "choice/stderr"}
    rows = _rows(examples, N_EACH)
    wrong = sum(_answer(row) != row["label"] for row in rows)
    assert figures["choice/accuracy"].value == pytest.approx(1 - wrong / len(rows))
    assert figures["choice/accuracy"].ours == ("accuracy",)
    assert "counts what it cannot read as wrong" in figures["choice/accuracy"].why
    assert figures["choice/stderr"].ours == ()
    read = [sample for sample in log.samples() if sample.answer in tuple(LETTERS)]
    whole = BBQ.logged(replace(log, samples=lambda: iter(read)))
    assert {figure.name: figure.why for figure in whole.figures}["choice/accuracy"] == ""


def test_samples_that_failed_are_told_and_stay(failed, examples):
    rows = _rows(examples, 40)
    n_failed = sum(_fails(_prompt(row)) for row in rows)
    assert 0.05 < n_failed / len(rows) < 0.2
    logged = BBQ.logged(failed)
    answers = logged.given.answers
    assert answers.num_rows == failed.n_expected == len(rows)
    assert answers["outcome"].null_count == n_failed
    without = answers.filter(pc.is_null(answers["outcome"]))
    assert set(without["prediction"].to_pylist()) == {-1}
    (note,) = logged.notes
    assert note.startswith(f"{n_failed} of {len(rows)} samples failed and count as unparsed")
    assert note.endswith("RuntimeError('overloaded\\nand a second line')")
    table, joined = join_answers(BBQ, examples, answers, "log")
    expected = [-1 if _fails(_prompt(row)) else _answer(row) for row in rows]
    assert joined["prediction"].to_pylist() == expected
    assert _scores(expected, rows)["unparsed_share"] == pytest.approx(expected.count(-1) / len(rows))
    accuracy = {figure.name: figure.value for figure in logged.figures}["choice/accuracy"]
    n_right = sum(place == row["label"] for place, row in zip(expected, rows, strict=True))
    assert accuracy == pytest.approx(n_right / (len(rows) - n_failed))
    assert table.num_rows == len(rows)


def test_an_evaluation_that_stopped_says_so_and_what_is_missing(upstream, patch, tmp_path):
    log = read_log(Path(ask(upstream, tmp_path, patch, fails=_fails, n_each=40, max_samples=1)))
    assert log.about["status"] == "error"
    (note,) = log.notes
    assert "its status is error (RuntimeError(" in note
    assert f"inspect eval-retry {log.path.name}" in note
    logged = BBQ.logged(log)
    assert logged.notes[0] == f"{logged.given.answers.num_rows} of 80 samples are in the log; the others have no answer"
    # The one that failed, and those that were cancelled with it.
    assert "samples failed and count as unparsed" in logged.notes[1]
    assert "RuntimeError('overloaded" in logged.notes[1]


def test_several_epochs_are_refused(upstream, patch, tmp_path):
    log = read_log(Path(ask(upstream, tmp_path, patch, n_each=4, epochs=2)))
    assert log.n_expected == 2 * 2 * 4
    assert {sample.run for sample in log.samples()} == {1, 2}
    with pytest.raises(QabiasError, match=r"epoch 2: every question was asked several times.* --epochs 1$"):
        BBQ.logged(log)


def test_an_evaluation_that_was_not_scored_is_refused(upstream, patch, tmp_path):
    log = read_log(Path(ask(upstream, tmp_path, patch, n_each=4, score=False)))
    with pytest.raises(QabiasError, match=r"no sample has an answer; the first is sample Age_00000: not scored.*score"):
        BBQ.logged(log)


def test_an_evaluation_without_samples_is_refused(upstream, patch, tmp_path):
    path = Path(ask(upstream, tmp_path, patch, n_each=4, log_samples=False))
    with pytest.raises(QabiasError, match="holds no samples; ask again without --no-log-samples"):
        read_log(path)


def test_a_limit_leaves_nothing_unsaid(upstream, patch, tmp_path):
    log = read_log(Path(ask(upstream, tmp_path, patch, n_each=8, limit=4)))
    assert log.n_expected == 4
    assert BBQ.logged(log).config == "Age"
    assert BBQ.logged(log).notes == ()


def test_only_bbq_claims_a_log_of_bbq(short):
    claim = {name for name in benchmark_names() if load_benchmark(name).logged(short, {}, None) is not None}
    assert claim == {"bbq"}


@pytest.mark.parametrize(
    ("task", "claimed"),
    [
        ("bbq", True),
        ("inspect_evals/bbq", True),
        ("openbench/bbq_age", True),
        ("bbq:Age", True),
        ("inspect_evals/bbh", False),
        ("bbqx", False),
        ("qabias/bbq", False),
    ],
)
def test_a_log_of_another_task_is_none_of_bbq(short, task, claimed):
    assert (BBQ.logged(_renamed(short, task)) is not None) == claimed


def test_a_task_with_a_name_of_its_own_is_known_by_the_registry(short):
    assert BBQ.logged(replace(short, task="my evaluation")) is not None


def _renamed(log, task, **about):
    return replace(log, task=task, about={**log.about, "task_registry_name": task, **about})


def _with(log, **changes):
    """A log whose second sample is another one."""

    def samples():
        first, second = list(log.samples())[:2]
        return iter([first, replace(second, **changes)])

    return replace(log, samples=samples, n_expected=2)


def _asked(log, **metadata):
    second = list(log.samples())[1]
    return {"asked": {**second.asked, "metadata": {**second.asked["metadata"], **metadata}}}


def test_groups_and_ids_that_were_dropped_are_named(short):
    metadata = {"category": "Age", "question_polarity": "neg", "context_condition": "ambig"}
    dropped = _renamed(_with(short, asked={"input": "", "metadata": metadata}), "openbench/bbq_age")
    with pytest.raises(QabiasError) as error:
        BBQ.logged(dropped)
    assert str(error.value).endswith(
        "no source_id in its metadata, which tell the example that was asked (it has category, question_polarity, "
        "context_condition); openbench drops them; ask with the task inspect_evals/bbq"
    )
    with pytest.raises(QabiasError, match=r"no category and source_id in its metadata.*it has none\)"):
        BBQ.logged(_with(short, asked={"input": ""}))
    with pytest.raises(QabiasError, match="no category of BBQ is called 'Ages'"):
        BBQ.logged(_with(short, **_asked(short, category="Ages")))


@pytest.mark.parametrize("answer", ["D", "AB", "The grandfather"])
def test_an_answer_that_is_no_letter_is_refused(short, answer):
    with pytest.raises(QabiasError, match=f"the answer '{answer}' is no letter of A, B, C; score the log by"):
        BBQ.logged(_with(short, answer=answer))


@pytest.mark.parametrize("column", ["context", "ans0", "label", "question_polarity"])
def test_other_texts_are_refused(short, examples, column):
    second = list(short.samples())[1].asked
    changed = {
        "context": {**second, "input": second["input"].replace("Context: ", "Context: Once ")},
        "ans0": {**second, "choices": [second["choices"][place] for place in (1, 0, 2)]},
        "label": {**second, "target": "C"},
        "question_polarity": {**second, "metadata": {**second["metadata"], "question_polarity": "nonneg"}},
    }[column]
    logged = BBQ.logged(_with(short, asked=changed))
    with pytest.raises(QabiasError, match=rf"example_id 1: {column} is "):
        check_references(BBQ, examples, logged.references)


def test_what_all_categories_are_called(short):
    def samples():
        first = next(iter(short.samples()))
        for name in reversed(BBQ.configs[:-1]):
            asked = {**first.asked, "metadata": {**first.asked["metadata"], "category": name}}
            yield replace(first, asked=asked)

    assert BBQ.logged(replace(short, samples=samples)).config == "all"


def test_messages_in_place_of_a_text_leave_the_rest_to_be_compared(short, examples):
    def samples():
        for sample in list(short.samples())[:4]:
            yield replace(sample, asked={**sample.asked, "input": [{"role": "user", "content": "..."}]})

    references = BBQ.logged(replace(short, samples=samples)).references
    assert not {"context", "question"} & set(references.column_names)
    check_references(BBQ, examples, references)


def test_a_log_without_any_sample_is_refused(short):
    with pytest.raises(QabiasError, match="no sample is in this log"):
        BBQ.logged(replace(short, samples=lambda: iter(())))
    broken = Sample("sample 1", next(iter(short.samples())).asked, error="overloaded")
    with pytest.raises(QabiasError, match="no sample has an answer; the first is sample 1: overloaded"):
        BBQ.logged(replace(short, samples=lambda: iter([broken])))


def test_both_forms_of_a_log_hold_the_same(upstream, patch, tmp_path):
    from inspect_ai.log import read_eval_log, write_eval_log

    path = Path(ask(upstream, tmp_path, patch, n_each=8))
    other = tmp_path / "copy.json"
    write_eval_log(read_eval_log(str(path)), str(other))
    first, second = read_log(path), read_log(other)
    assert list(first.samples()) == list(second.samples())
    assert (first.figures, first.about, first.n_expected) == (second.figures, second.about, second.n_expected)
    assert json.loads(other.read_text("utf-8"))["status"] == "success"
