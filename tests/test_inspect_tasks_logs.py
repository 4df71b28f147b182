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


@pytest.mark.parametrize(
    ("benchmark", "arguments", "names"),
    [
        ("bbq", {"config": "Age", "limit": 80}, ("bias_ambig", "bias_disambig", "accuracy_disambig", "accuracy_cost")),
        ("bbnli", {"limit": 80}, ("bias_score", "accuracy_pro", "accuracy_anti", "unparsed_share")),
        ("unqover", {"config": "religion", "limit": 20}, ("mu", "eta", "delta", "epsilon")),
    ],
)
def test_a_log_has_the_scores_that_it_shows(tmp_path, benchmark, arguments, names):
    asked = load_questions(benchmark, **arguments)
    log = evaluate(make_task(benchmark, arguments), says_of(asked), tmp_path)
    shown = metrics_of(log)
    found, scores = scores_of_log(next(tmp_path.glob("*.eval")))
    whole = scores["sets"]["religion"] if benchmark == "unqover" else scores
    assert found.question.table.num_rows == asked.table.num_rows
    assert {name: shown[name] for name in names} == {name: pytest.approx(whole[name], abs=1e-12) for name in names}
    assert shown["refused"] == whole["outcomes"]["refused"] == 1
    assert shown["truncated"] == whole["outcomes"]["truncated"] == 1
    assert found.arguments.format == asked.prompt_format.name


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
    log = evaluate(make_task(benchmark, arguments), says_of(load_questions(benchmark, **arguments)), tmp_path)
    found = side_by_side(read_log(next(tmp_path.glob("*.eval"))))
    shown = {name: value for name, value in metrics_of(log).items() if name.rpartition("/")[2] in MEASURES[benchmark]}
    assert found.keys() == shown.keys()
    assert {f"{group}{name}" for group, name in groups.items()} <= found.keys()
    for theirs, ours, why in found.values():
        assert (why, ours) == ("", None if theirs is None else pytest.approx(theirs, abs=1e-9))
    assert any(ours for _, ours, _ in found.values())


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


def test_of_several_epochs_the_first_counts_and_the_others_are_named(tmp_path):
    log = log_of(tmp_path, {"config": "Age", "limit": 8}, epochs=2)
    _, logged = own_answers(log)
    assert logged.external.answers.num_rows == 8
    assert any("8 of further epochs are left out" in note for note in logged.notes)


def test_figures_of_several_epochs_say_why_they_differ(tmp_path):
    asked = load_questions("bbq", config="Age", limit=8)
    says = {question.key: ["A", "B"] for question in asked.questions}
    found = side_by_side(log_of(tmp_path, {"config": "Age", "limit": 8}, says, epochs=2))
    assert {why for _, _, why in found.values()} == {"the mean over 2 epochs there, the first one here"}
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


def test_samples_that_were_marked_as_invalid_later_are_a_reason(tmp_path):
    log = log_of(tmp_path, {"config": "Age", "limit": 8})

    def samples():
        first, *others = log.samples()
        return iter([dataclasses.replace(first, error="marked as invalid"), *others])

    found = side_by_side(dataclasses.replace(log, samples=samples))
    assert all(why.startswith("of 8 answers there, of 4 here, where samples that failed") for *_, why in found.values())


def test_a_log_says_all_that_was_chosen(tmp_path):
    arguments = {"config": "Age", "source": "bundled", "format": "letters_cot", "norm": "released", "orders": 3}
    name, logged = own_answers(log_of(tmp_path, {**arguments, "limit": 8}))
    given = logged.external
    assert (name, logged.config, given.source, given.format, given.norm) == (
        *("bbq", "Age", "bundled", "letters_cot", "released"),
    )


def changed(log, **facts):
    """The log with other facts in its samples; None takes one away."""

    def samples():
        for sample in log.samples():
            metadata = sample.asked["metadata"]
            kept = {name: value for name, value in {**metadata["qabias"], **facts}.items() if value is not None}
            yield dataclasses.replace(sample, asked={**sample.asked, "metadata": {**metadata, "qabias": kept}})

    return dataclasses.replace(log, samples=samples)


def test_what_is_not_as_it_was_is_refused(tmp_path):
    log = log_of(tmp_path, {"config": "Age", "limit": 8})
    for facts, message in (
        ({"format": "letters@0"}, "its format have changed since"),
        ({"texts": "bundled@0"}, "its texts have changed since"),
        ({"norm": None}, "its samples lack norm in their metadata"),
        ({"key": "Age/none"}, "no question 'Age/none' in the configuration Age"),
    ):
        with pytest.raises(QabiasError, match=message):
            own_answers(changed(log, **facts))
    with pytest.raises(QabiasError, match="no set of examples in it is answered as a whole"):
        own_answers(dataclasses.replace(log, samples=lambda: iter(list(log.samples())[:1])))
    other = dataclasses.replace(log, samples=lambda: iter([Sample("sample 1", {"metadata": {}})]))
    assert own_answers(other) is None


WRONG = {
    "benchmark": ["bbq"],
    "config": 5,
    "source": None,
    "texts": {},
    "fixes": "false",
    "format": 3,
    "norm": ["none"],
    "orders": "2",
    "seed": True,
    "options": ["a"],
    "key": ["Age/0"],
}


def test_facts_of_another_kind_are_refused_with_the_sample(tmp_path):
    log = log_of(tmp_path, {"config": "Age", "limit": 8})
    first = next(log.samples())
    for name, value in {**WRONG, "options": {"part": 1}}.items():
        for wrong in (value, WRONG[name]):
            broken = changed(log, **{name: wrong}) if wrong is not None else replaced(log, qabias_fact=name)
            with pytest.raises(QabiasError, match=rf"{first.where}: {name} in its metadata 'qabias' is "):
                own_answers(broken)


def replaced(log, qabias_fact=None, later=None, **metadata):
    """The log with other metadata in its samples, a fact that is None, or with metadata of another kind from later."""

    def samples():
        for number, sample in enumerate(log.samples()):
            found = {**sample.asked["metadata"], **metadata}
            if qabias_fact:
                found["qabias"] = {**found["qabias"], qabias_fact: None}
            found = later if later is not None and number else found
            yield dataclasses.replace(sample, asked={**sample.asked, "metadata": found})

    return dataclasses.replace(log, samples=samples)


def test_metadata_of_another_form_are_refused_with_the_sample(tmp_path):
    log = log_of(tmp_path, {"config": "Age", "limit": 8})
    second = list(log.samples())[1].where
    for metadata in (["a"], "a", 5, {}, {"qabias": ["a"]}, {"qabias": {}}):
        with pytest.raises(QabiasError, match=f"{second} does not name its question in the metadata"):
            own_answers(replaced(log, later=metadata))
    with pytest.raises(
        QabiasError, match=r"sample Age/\d+: example_id in its metadata is \[1\], which names no example"
    ):
        own_answers(replaced(log, example_id=[1]))
    other = dataclasses.replace(log, samples=lambda: iter([Sample("sample 1", {"metadata": ["a"]})]))
    assert own_answers(other) is None


def test_without_inspect_ai_one_line_names_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    monkeypatch.delitem(sys.modules, "qabias.inspect_tasks.tasks")
    with pytest.raises(QabiasError, match=r'pip install "qabias\[inspect\]"'):
        importlib.import_module("qabias.inspect_tasks.tasks")
