"""BBQ asked by the real inspect_ai and inspect_evals: its log gives the scores of the answers in it."""

import json
import re
from dataclasses import replace
from pathlib import Path

import evaluate
import pyarrow.compute as pc
import pytest

from qabias.answers.outcomes import OUTCOMES
from qabias.benchmarks import load_benchmark
from qabias.benchmarks.bbq import logs as inspect_logs
from qabias.errors import QabiasError
from qabias.logs import Sample
from qabias.logs.detect import read_log
from qabias.runs.collected import check_references, join_answers

from .conftest import ROOT
from .inspect_logs import CATEGORIES, LETTERS, N_EACH, said
from .inspect_logs import evaluate as ask
from .lm_eval_logs import claimed_by

pytestmark = pytest.mark.slow

BBQ = load_benchmark("bbq")
PINNED = {"inspect_ai": "0.3.285", "inspect_evals": "0.26.0"}

pytest.importorskip("inspect_ai", reason='inspect_ai is not installed: pip install ".[inspect]"')
pytest.importorskip("inspect_evals", reason="inspect_evals is not installed")


def read_by_bbq(log):
    return inspect_logs.read(log, BBQ, {})


@pytest.fixture(scope="module")
def examples(upstream):
    """The released examples of the categories that are asked."""
    return BBQ.load(",".join(CATEGORIES), BBQ.origin("release", 0, False))


@pytest.fixture(scope="module")
def patch():
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield monkeypatch


@pytest.fixture(scope="module")
def log(upstream, patch, tmp_path_factory):
    """A whole log."""
    return read_log(Path(ask(upstream, tmp_path_factory.mktemp("logs"), patch)))


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
    with pytest.warns(UserWarning, match="unparseable"):
        return metric.compute(predictions=predictions, references=rows, confidence=None)


def test_scores_and_outcomes_of_a_log_are_those_of_the_same_answers(log, examples):
    logged = read_by_bbq(log)
    table, answers = join_answers(BBQ, examples, logged.answers, "log")
    rows = _rows(examples, N_EACH)
    expected = _scores([_answer(row) for row in rows], rows)
    found = _scores(answers["prediction"].to_pylist(), table.to_pylist())
    assert expected["n"] == len(CATEGORIES) * N_EACH
    assert found == expected
    assert 0 < abs(found["bias_ambig"]) < 1
    check_references(BBQ, examples, logged.references)
    assert set(logged.references.column_names) >= {"context", "question", "ans0", "ans1", "ans2", "label"}
    assert (log.tool, log.version, log.task) == ("inspect_ai", PINNED["inspect_ai"], "inspect_evals/bbq")
    assert log.n_expected == len(rows) == len(list(log.samples())) == logged.answers.num_rows
    assert (logged.source, logged.config) == ("release", "Age,Religion")
    assert log.model == "mockllm/model"
    assert log.notes == logged.notes == ()
    BBQ.check_config(logged.config)
    expected = []
    for row in rows:
        text, stop = said(_prompt(row))
        cut = "truncated" if stop == "max_tokens" else "refused" if text.startswith("I'm sorry") else "unread"
        expected.append("answered" if _answer(row) >= 0 else cut)
    # In the order of the file: categories come in order too.
    answers = logged.answers.sort_by([(name, "ascending") for name in BBQ.key])
    assert answers["outcome"].to_pylist() == expected
    assert set(expected) == set(OUTCOMES) - {"filtered", "repeated"}
    assert answers["outputs"].to_pylist() == [[said(_prompt(row))[0]] for row in rows]


def test_the_accuracy_of_inspect_is_ours_where_all_is_read(log, examples):
    logged = read_by_bbq(log)
    figures = {figure.name: figure for figure in logged.figures}
    assert set(figures) == {"choice/accuracy", "choice/stderr"}
    rows = _rows(examples, N_EACH)
    wrong = sum(_answer(row) != row["label"] for row in rows)
    assert figures["choice/accuracy"].value == pytest.approx(1 - wrong / len(rows))
    assert figures["choice/accuracy"].ours == ("accuracy",)
    assert "wrong" in figures["choice/accuracy"].why
    assert figures["choice/stderr"].ours == ()
    read = [sample for sample in log.samples() if sample.answer in tuple(LETTERS)]
    whole = replace(log, samples=lambda: iter(read), n_expected=len(read))
    assert _why(whole) == ""
    assert _why(replace(whole, n_expected=len(read) + 1)) == "samples that are not in the log may count there"


def _why(log):
    """Why the accuracy of inspect is another one."""
    return {figure.name: figure.why for figure in read_by_bbq(log).figures}["choice/accuracy"]


def test_samples_that_only_inspect_counts_are_a_reason(short):
    read = [sample for sample in short.samples() if sample.answer in tuple(LETTERS)]
    counted = "scored samples that failed or are invalid count only there"

    def why(**changes):
        first, *others = read
        return _why(replace(short, samples=lambda: iter([replace(first, **changes), *others]), n_expected=len(read)))

    assert why() == ""
    assert why(error="marked as invalid") == counted
    assert why(error="overloaded", answers={}) == "both exclude samples without a score"
    assert why(answers={"choice": None}) == "samples whose score names no answer count only there"


def test_samples_that_failed_are_told_and_stay(failed, examples):
    rows = _rows(examples, 40)
    n_failed = sum(_fails(_prompt(row)) for row in rows)
    assert 0.05 < n_failed / len(rows) < 0.2
    logged = read_by_bbq(failed)
    answers = logged.answers
    assert answers.num_rows == failed.n_expected == len(rows)
    assert answers["outcome"].null_count == n_failed
    without = answers.filter(pc.is_null(answers["outcome"]))
    assert set(without["prediction"].to_pylist()) == {-1}
    assert logged.notes == ()  # what failed is counted and told by `measuring`
    assert _why(failed).endswith("; both exclude samples without a score")
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
    assert log.settings["status"] == "error"
    (note,) = log.notes
    assert "status error (RuntimeError(" in note
    assert f"inspect eval-retry {log.path.name}" in note
    assert read_by_bbq(log).notes == ()
    # The one that failed, and those that were cancelled with it.
    assert any("RuntimeError('overloaded" in sample.error for sample in log.samples())


def test_several_epochs_and_answers_without_a_score_are_refused(upstream, patch, tmp_path):
    log = read_log(Path(ask(upstream, tmp_path / "epochs", patch, n_each=4, epochs=2)))
    assert log.n_expected == 2 * 2 * 4
    assert {sample.run for sample in log.samples()} == {1, 2}
    with pytest.raises(QabiasError, match="--epochs 1"):
        read_by_bbq(log)
    log = read_log(Path(ask(upstream, tmp_path / "unscored", patch, n_each=4, score=False)))
    with pytest.raises(QabiasError, match="Age_00000: not scored"):
        read_by_bbq(log)


def test_only_bbq_claims_a_log_of_bbq(short):
    assert claimed_by(short) == ["bbq"]


TASKS = {
    **dict.fromkeys(("bbq", "inspect_evals/bbq", "bbq:Age"), True),
    **dict.fromkeys(("openbench/bbq_age", "company/bbq", "bbq_grilling", "inspect_evals/bbh", "bbqx"), False),
}


@pytest.mark.parametrize("task", TASKS)
def test_a_log_of_another_task_is_none_of_bbq(short, task):
    assert read_by_bbq(_renamed(short, task)) is not None  # known by its metadata
    for metadata in (None, {"category": "Age"}, {"category": "ribs", "question_polarity": "neg"}):
        log = _renamed(_with(short, asked={"input": "", "metadata": metadata}), task)
        other = replace(log, samples=lambda log=log: iter(list(log.samples())[1:]))
        if TASKS[task]:
            with pytest.raises(QabiasError, match="source_id"):
                read_by_bbq(other)
        else:
            assert read_by_bbq(other) is None
    assert TASKS[task] or read_by_bbq(_renamed(replace(short, samples=lambda: iter(())), task)) is None
    assert read_by_bbq(replace(short, task="my evaluation")) is not None  # known by the registry


def test_a_task_of_this_package_is_read_elsewhere(short):
    def samples():
        for sample in short.samples():
            yield replace(sample, asked={**sample.asked, "metadata": {**sample.asked["metadata"], "qabias": {}}})

    assert read_by_bbq(_renamed(replace(short, samples=samples), "qabias/bbq")) is None


def _renamed(log, task):
    return replace(log, task=task, settings={**log.settings, "task_registry_name": task})


def _with(log, **changes):
    """A log whose second sample is another one."""

    def samples():
        first, second = list(log.samples())[:2]
        return iter([first, replace(second, **changes)])

    return replace(log, samples=samples, n_expected=2)


DROPPED = {"category": "Age", "question_polarity": "neg", "context_condition": "ambig"}
CHANGES = [
    ({"asked": {"input": "", "metadata": DROPPED}}, "source_id None"),
    ({"asked": {"input": ""}}, "category None"),
    *(({"answers": {"choice": answer}}, f"'{answer}'") for answer in ("D", "AB", "The grandfather")),
    *(({"choices": value}, "choices") for value in (None, "ABC", ["a", "b"], ["a", "b", "c", "d"], ["a", "b", 3])),
    ({"metadata": {"category": "Ages"}}, "'Ages'"),
    ({"metadata": {"source_id": 10**30}}, "source_id 10{30}"),
    ({"metadata": {"source_id": -1}}, "source_id -1"),
    ({"metadata": {"source_id": True}}, "source_id True"),
]


@pytest.mark.parametrize(("change", "token"), CHANGES)
def test_a_sample_of_another_kind_is_refused_by_its_name(short, change, token):
    asked = list(short.samples())[1].asked
    if "metadata" in change:
        change = {"asked": {**asked, "metadata": {**asked["metadata"], **change["metadata"]}}}
    elif "choices" in change:
        change = {"asked": {**asked, **change}}
    with pytest.raises(QabiasError, match=f"sample Age_00001.*{token}"):
        read_by_bbq(_with(short, **change))


def test_of_several_scorers_that_of_letters_counts(short, examples):
    figures = {"grader/accuracy": 1.0, **short.figures}

    def samples():
        for sample in short.samples():
            yield replace(sample, answer="said it", answers={"grader": "said it", **sample.answers})

    log = replace(short, samples=samples, figures=figures)
    logged, alone = read_by_bbq(log), read_by_bbq(short)
    assert logged.answers == alone.answers
    (note,) = logged.notes
    assert "scorer choice of grader, choice" in note
    assert alone.notes == ()
    (other, *same) = logged.figures
    assert (other.name, other.value, other.ours, other.why) == ("grader/accuracy", 1.0, (), "a score of another scorer")
    assert tuple(same) == alone.figures
    assert {figure.name: figure.ours for figure in same} == {"choice/accuracy": ("accuracy",), "choice/stderr": ()}


def _scored_by(log, *names, **changes):
    def samples():
        for sample in log.samples():
            yield replace(sample, answers=dict.fromkeys(names, sample.answer))

    return replace(log, samples=samples, **changes)


def test_another_scorer_counts_where_it_is_the_only_one(short):
    figures = {"mine/accuracy": 0.3, "choice/accuracy": 0.5, "mine/Age": 0.1}
    logged = read_by_bbq(_scored_by(short, "mine", figures=figures))
    assert logged.answers == read_by_bbq(short).answers
    ours = {figure.name: figure.ours for figure in logged.figures}
    assert ours == {"mine/accuracy": ("accuracy",), "choice/accuracy": (), "mine/Age": ()}
    with pytest.raises(QabiasError, match="mine, yours"):
        read_by_bbq(_scored_by(short, "mine", "yours"))
    # What made several epochs one is no other scorer.
    settings = {**short.settings, "config": {"epochs": 1, "epochs_reducer": ["mean"]}}
    log = replace(short, settings=settings, figures={"choice/mean/accuracy": 0.3, "choice/Age/accuracy": 0.1})
    assert [(figure.ours, figure.why != "") for figure in read_by_bbq(log).figures] == [
        *((("accuracy",), True), ((), False)),
    ]


def test_samples_without_a_score_are_told(short):
    log = _with(short, answers={})
    (note,) = read_by_bbq(log).notes
    assert "1 sample without a score" in note
    assert "Age_00001" in note


def test_what_one_sample_does_not_say_is_still_compared_in_the_others(short, examples):
    first, second, *others = list(short.samples())

    def log(*samples):
        return replace(short, samples=lambda: iter(samples), n_expected=len(samples))

    silent = replace(first, asked={**first.asked, "input": [{"role": "user"}], "target": ["A", "B"]})
    silent.asked["metadata"] = {**first.asked["metadata"], "question_index": None}
    logged = read_by_bbq(log(silent, second, *others))
    check_references(BBQ, examples, logged.references)
    assert "1 sample without question_index, context, question, label" in logged.notes[0]
    check_references(BBQ, examples, read_by_bbq(log(silent)).references)  # whole columns are null
    for changes in ({"input": "Context: Once.\n\nQuestion: Who?"}, {"target": "C"}):
        changed = replace(second, asked={**second.asked, **changes})
        with pytest.raises(QabiasError, match=r"example_id 1: (context|label) is "):
            check_references(BBQ, examples, read_by_bbq(log(silent, changed)).references)


@pytest.mark.parametrize("column", ["context", "ans0", "label", "question_polarity"])
def test_other_texts_are_refused(short, examples, column):
    second = list(short.samples())[1].asked
    changed = {
        "context": {**second, "input": second["input"].replace("Context: ", "Context: Once ")},
        "ans0": {**second, "choices": [second["choices"][place] for place in (1, 0, 2)]},
        "label": {**second, "target": "C"},
        "question_polarity": {**second, "metadata": {**second["metadata"], "question_polarity": "nonneg"}},
    }[column]
    logged = read_by_bbq(_with(short, asked=changed))
    with pytest.raises(QabiasError, match=rf"example_id 1: {column} is "):
        check_references(BBQ, examples, logged.references)


def test_what_all_categories_are_called(short):
    def samples():
        first = next(iter(short.samples()))
        for name in reversed(BBQ.configs[:-1]):
            asked = {**first.asked, "metadata": {**first.asked["metadata"], "category": name}}
            yield replace(first, asked=asked)

    assert read_by_bbq(replace(short, samples=samples)).config == "all"


def test_a_log_without_any_sample_is_refused(short):
    with pytest.raises(QabiasError, match="no samples"):
        read_by_bbq(replace(short, samples=lambda: iter(())))
    broken = Sample("sample 1", next(iter(short.samples())).asked, error="overloaded")
    with pytest.raises(QabiasError, match="no sample has an answer; the first: sample 1: overloaded"):
        read_by_bbq(replace(short, samples=lambda: iter([broken])))


def test_both_forms_of_a_log_hold_the_same(upstream, patch, tmp_path):
    from inspect_ai.log import read_eval_log, write_eval_log

    path = Path(ask(upstream, tmp_path, patch, n_each=8))
    other = tmp_path / "copy.json"
    write_eval_log(read_eval_log(str(path)), str(other))
    first, second = read_log(path), read_log(other)
    assert list(first.samples()) == list(second.samples())
    assert (first.figures, first.settings, first.n_expected) == (second.figures, second.settings, second.n_expected)
    assert json.loads(other.read_text("utf-8"))["status"] == "success"
