"""Logs of our own inspect tasks become runs with the scores that the log has."""

import dataclasses
import importlib
import sys

import numpy as np
import pytest

from qabias.errors import QabiasError

pytest.importorskip("inspect_ai", reason="inspect_ai is not installed (pip install '.[inspect]')")

from qabias.benchmarks import load_benchmark
from qabias.benchmarks.task_logs import own_answers
from qabias.inspect_tasks.questions import load_questions
from qabias.inspect_tasks.tasks import make_task
from qabias.logs import Sample
from qabias.logs.detect import read_log
from qabias.runs.logged import collect_log
from qabias.runs.run import scores_of
from qabias.runs.scored import other_figures

from .inspect_models import evaluate, metrics_of, output

TESTED = ("bbq", "bbq_nli", "bbnli", "unqover")
MEASURES = {name: {measure.name for measure in load_benchmark(name).facts.measures} for name in TESTED}
SORRY = "I'm sorry, but I can't help with that."


def says_of(asked):
    """Answers drawn at random, of which one in forty is refused and one is cut off."""
    rng = np.random.default_rng(3)
    said = {}
    for number, question in enumerate(asked.questions):
        row = {**asked.rows[question.row], "order": "12"}
        options = asked.prompt_format.render(row)[1] if "premise" in row else ("A", "B", "C")
        n_options = 2 if "subject1" in row else 3
        text = options[int(rng.integers(n_options))].strip()
        said[question.key] = {0: SORRY, 1: output("Let me see what", "max_tokens")}.get(number % 80, text)
    return said


def scores_of_log(path):
    found = collect_log(read_log(path))
    scores, _ = scores_of(found.question, found.answers, found.arguments.rules)
    return found, scores


def side_by_side(log):
    """What inspect printed, by name, with the score that stands beside it and the reason."""
    collected = collect_log(log)
    found = collected
    scores, _ = scores_of(found.question, found.answers, found.arguments.rules)
    rows = other_figures(collected.other, scores).rows
    return {name: (theirs, ours, why) for name, theirs, ours, why in rows}


def log_of(tmp_path, arguments, says=None, **options):
    asked = load_questions("bbq", **arguments)
    evaluate(make_task("bbq", arguments), says or says_of(asked), tmp_path, **options)
    return read_log(next(tmp_path.glob("*.eval")))


@pytest.mark.parametrize(
    ("benchmark", "arguments", "groups"),
    [
        ("bbq", {"config": "Age,SES", "limit": 80}, {"": "bias_ambig", "Age/": "bias_ambig", "SES/": "bias_disambig"}),
        ("bbq_nli", {"config": "Age_nli", "limit": 80}, {"": "accuracy_anti"}),
        ("bbnli", {"limit": 200}, {"": "bias_score", "gender/": "bias_score", "man_is_to_rational/": "accuracy_pro"}),
        ("unqover", {"config": "religion", "limit": 20}, {"": "mu"}),
        ("unqover", {"limit": 40}, {"religion/": "mu", "gender/": "eta"}),
    ],
)
def test_every_score_stands_beside_the_one_here(tmp_path, benchmark, arguments, groups):
    asked = load_questions(benchmark, **arguments)
    log = evaluate(make_task(benchmark, arguments), says_of(asked), tmp_path)
    path = next(tmp_path.glob("*.eval"))
    found, printed = side_by_side(read_log(path)), metrics_of(log)
    shown = {name: value for name, value in printed.items() if name.rpartition("/")[2] in MEASURES[benchmark]}
    assert found.keys() == shown.keys()
    assert {f"{group}{name}" for group, name in groups.items()} <= found.keys()
    for theirs, ours, why in found.values():
        assert (why, ours) == ("", None if theirs is None else pytest.approx(theirs, abs=1e-9))
    assert any(ours for _, ours, _ in found.values())
    collected, scores = scores_of_log(path)
    assert collected.question.table.num_rows == asked.table.num_rows
    assert collected.arguments.format == asked.prompt_format.name
    if "outcomes" in scores:
        for name in ("refused", "truncated"):
            assert printed[name] == scores["outcomes"][name] > 0


def test_texts_of_another_seed_and_corrected_ones_are_found_again(tmp_path, upstream):
    arguments = {"source": "official", "config": "SES", "limit": 8, "seed": 5, "fixes": True, "norm": "released"}
    log = log_of(tmp_path, {**arguments, "upstream_dir": str(upstream)})
    found = collect_log(log, str(upstream))
    assert (found.arguments.seed, found.arguments.fixes, found.arguments.norm) == (5, True, "released")
    assert found.question.table.equals(load_questions("bbq", **arguments, upstream_dir=str(upstream)).table)


def test_what_a_log_lacks_of_a_set_is_said(tmp_path):
    asked = load_questions("bbq", config="Age", limit=16)
    lost = asked.questions[5].key
    log = log_of(
        tmp_path, {"config": "Age", "limit": 16}, {**says_of(asked), lost: OSError("lost")}, fail_on_error=False
    )
    name, logged = own_answers(log)
    assert (name, logged.external.answers.num_rows) == ("bbq", 12)
    notes = " ".join(logged.notes)
    assert "3 examples are left out, because other questions of their sets have no answer." in notes
    assert "failed" not in notes
    assert logged.failed == "their sets are left out"


def test_of_several_epochs_the_first_counts_and_figures_say_so(tmp_path):
    asked = load_questions("bbq", config="Age", limit=8)
    says = {question.key: ["A", "B"] for question in asked.questions}
    log = log_of(tmp_path, {"config": "Age", "limit": 8}, says, epochs=2)
    _, logged = own_answers(log)
    assert logged.external.answers.num_rows == 8
    assert any("8 of further epochs" in note for note in logged.notes)
    found = side_by_side(log)
    assert all("2 epochs" in why for _, _, why in found.values())
    assert any(theirs != ours for theirs, ours, _ in found.values())


@pytest.mark.parametrize("score_on_error", [False, True])
def test_failed_samples_are_left_out_there_and_here(tmp_path, score_on_error):
    asked = load_questions("bbq", config="Age", limit=40)
    lost = dict.fromkeys([question.key for question in asked.questions][::11], OSError("overloaded"))
    log = log_of(
        tmp_path,
        {"config": "Age", "limit": 40},
        {**says_of(asked), **lost},
        fail_on_error=False,
        score_on_error=score_on_error,
    )
    _, logged = own_answers(log)
    # Four failed, each in a set of four of its own.
    assert logged.external.answers.num_rows == 24
    counts = {"answers": 24, "missing": 4, "left_out": 12}
    assert {name: log.figures[f"qabias/{name}"] for name in counts} == counts
    for theirs, ours, why in side_by_side(log).values():
        assert (why, ours) == ("", None if theirs is None else pytest.approx(theirs, abs=1e-12))


def test_where_all_samples_failed_scores_are_undefined(tmp_path):
    asked = load_questions("bbq", config="Age", limit=8)
    says = {question.key: OSError("overloaded") for question in asked.questions}
    log = log_of(tmp_path, {"config": "Age", "limit": 8}, says, fail_on_error=False, score_on_error=True)
    assert {name: log.figures[f"qabias/{name}"] for name in ("answers", "missing")} == {"answers": 0, "missing": 8}
    assert np.isnan(log.figures["qabias/bias_ambig"])


def test_samples_that_were_marked_as_invalid_later_are_a_reason(short):
    def samples():
        first, *others = short.samples()
        return iter([dataclasses.replace(first, error="marked as invalid"), *others])

    found = side_by_side(dataclasses.replace(short, samples=samples))
    assert all(why.startswith("of 8 answers there, of 4 here") for *_, why in found.values())


def test_a_log_says_all_that_was_chosen(tmp_path):
    arguments = {"config": "Age", "source": "bundled", "format": "letters_cot", "norm": "released", "orders": 3}
    name, logged = own_answers(log_of(tmp_path, {**arguments, "limit": 8}))
    given = logged.external
    assert (name, logged.config, given.source, given.format, given.norm) == (
        *("bbq", "Age", "bundled", "letters_cot", "released"),
    )


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    """A log of two sets."""
    return log_of(tmp_path_factory.mktemp("short"), {"config": "Age", "limit": 8})


def replaced(log, change):
    """The log with other metadata in its samples, from what each has and its number."""

    def samples():
        for number, sample in enumerate(log.samples()):
            metadata = change(sample.asked["metadata"], number)
            yield dataclasses.replace(sample, asked={**sample.asked, "metadata": metadata})

    return dataclasses.replace(log, samples=samples)


def without(facts, name):
    return {key: value for key, value in facts.items() if key != name}


WRONG = {
    **{"benchmark": ["bbq"], "config": 5, "source": None, "texts": {}, "fixes": "false", "format": 3},
    **{"norm": ["none"], "orders": "2", "seed": True, "options": ["a"], "key": ["Age/0"]},
}


@pytest.mark.parametrize(
    ("change", "token"),
    [
        (lambda facts: {**facts, "format": "letters@0"}, "format"),
        (lambda facts: {**facts, "texts": "bundled@0"}, "texts"),
        (lambda facts: without(facts, "norm"), "lack norm"),
        (lambda facts: {**facts, "key": "Age/none"}, "'Age/none'"),
        (lambda facts: {**facts, "options": {"part": 1}}, r"sample Age/\d+: options"),
        *(
            (lambda facts, name=name, value=value: {**facts, name: value}, rf"sample Age/\d+: {name} ")
            for name, value in WRONG.items()
        ),
    ],
)
def test_facts_that_are_not_as_they_were_are_refused(short, change, token):
    log = replaced(short, lambda metadata, _: {**metadata, "qabias": change(metadata["qabias"])})
    with pytest.raises(QabiasError, match=token):
        own_answers(log)


def test_metadata_of_another_form_are_refused_with_the_sample(short):
    second = list(short.samples())[1].where
    for wrong in (["a"], "a", 5, {}, {"qabias": ["a"]}, {"qabias": {}}):
        log = replaced(short, lambda metadata, number, wrong=wrong: wrong if number else metadata)
        with pytest.raises(QabiasError, match=second):
            own_answers(log)
    with pytest.raises(QabiasError, match=r"sample Age/\d+: example_id"):
        own_answers(replaced(short, lambda metadata, _: {**metadata, "example_id": [1]}))
    with pytest.raises(QabiasError, match="no set"):
        own_answers(dataclasses.replace(short, samples=lambda: iter(list(short.samples())[:1])))
    for metadata in ({}, ["a"]):
        other = [Sample("sample 1", {"metadata": metadata})]
        assert own_answers(dataclasses.replace(short, samples=lambda other=other: iter(other))) is None


def test_without_inspect_ai_one_line_names_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    monkeypatch.delitem(sys.modules, "qabias.inspect_tasks.tasks")
    with pytest.raises(QabiasError, match=r'pip install "qabias\[inspect\]"'):
        importlib.import_module("qabias.inspect_tasks.tasks")
