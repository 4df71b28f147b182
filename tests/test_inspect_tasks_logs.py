"""Logs of our own inspect tasks become runs with the scores that the log has."""

import dataclasses
import importlib
import sys

import numpy as np
import pytest

from qabias.errors import QabiasError

pytest.importorskip("inspect_ai", reason="inspect_ai is not installed (pip install '.[inspect]')")

from qabias.benchmarks.own_logs import own_answers
from qabias.inspect_tasks.asking import ask
from qabias.inspect_tasks.tasks import make_task
from qabias.logs import Sample
from qabias.logs.recognise import read_log
from qabias.measuring.logged import collect_log
from qabias.measuring.run import scores_of

from .inspect_models import evaluate, metrics_of, output

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
    found = collect_log(read_log(path)).found
    scores, _ = scores_of(found.question, found.answers, found.arguments.rules)
    return found, scores


@pytest.mark.parametrize(
    ("benchmark", "arguments", "names"),
    [
        ("bbq", {"config": "Age", "limit": 80}, ("bias_ambig", "bias_disambig", "accuracy_disambig", "accuracy_cost")),
        ("bbnli", {"limit": 80}, ("bias_score", "accuracy_pro", "accuracy_anti", "unparsed_share")),
        ("unqover", {"config": "religion", "limit": 20}, ("mu", "eta", "delta", "epsilon")),
    ],
)
def test_a_log_has_the_scores_that_it_shows(tmp_path, benchmark, arguments, names):
    asked = ask(benchmark, **arguments)
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
    asked = ask("bbq", **arguments)
    evaluate(make_task("bbq", arguments), says or says_of(asked), tmp_path, **options)
    return read_log(next(tmp_path.glob("*.eval")))


def test_texts_of_another_seed_and_corrected_ones_are_found_again(tmp_path, upstream):
    arguments = {"source": "official", "config": "SES", "limit": 8, "seed": 5, "fixes": True, "norm": "released"}
    log = log_of(tmp_path, {**arguments, "upstream_dir": str(upstream)})
    found = collect_log(log, str(upstream)).found
    assert (found.arguments.seed, found.arguments.fixes, found.arguments.norm) == (5, True, "released")
    assert found.question.table.equals(ask("bbq", **arguments, upstream_dir=str(upstream)).table)


def test_what_a_log_lacks_of_a_set_is_said(tmp_path):
    asked = ask("bbq", config="Age", limit=16)
    lost = asked.questions[5].key
    log = log_of(
        tmp_path, {"config": "Age", "limit": 16}, {**says_of(asked), lost: OSError("lost")}, fail_on_error=False
    )
    name, logged = own_answers(log)
    assert (name, logged.given.answers.num_rows) == ("bbq", 12)
    notes = " ".join(logged.notes)
    assert "3 examples are left out, because other questions of their sets have no answer." in notes
    assert "1 questions have no answer, because they failed." in notes


def test_of_several_epochs_the_first_counts_and_the_others_are_named(tmp_path):
    log = log_of(tmp_path, {"config": "Age", "limit": 8}, epochs=2)
    _, logged = own_answers(log)
    assert logged.given.answers.num_rows == 8
    assert any("8 of further epochs are left out" in note for note in logged.notes)


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


def test_a_log_about_former_texts_is_scored_with_them(tmp_path):
    """Written when `bundled` was version 1."""
    log = log_of(tmp_path, {"config": "Religion", "limit": 8, "source": "bundled@1"})
    found = collect_log(changed(log, source="bundled")).found
    assert found.arguments.source == "bundled@1"
    assert found.question.table.equals(ask("bbq", config="Religion", limit=8, source="bundled@1").table)
    assert "|source:bundled@1|" in found.question.signature


def test_without_inspect_ai_one_line_names_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    monkeypatch.delitem(sys.modules, "qabias.inspect_tasks.tasks")
    with pytest.raises(QabiasError, match=r'pip install "qabias\[inspect\]"'):
        importlib.import_module("qabias.inspect_tasks.tasks")
