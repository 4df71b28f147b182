"""The tasks for inspect_ai: their prompts are those of a run, and their scores those of the metrics."""

import configparser
import gc
import importlib
import math
import re
import weakref

import evaluate as hf_evaluate
import numpy as np
import pytest

pytest.importorskip("inspect_ai", reason="inspect_ai is not installed (pip install '.[inspect]')")

import inspect_ai
from inspect_ai._util.error import PrerequisiteError
from inspect_ai._util.registry import registry_info
from inspect_ai.model import ContentReasoning, ContentText

from qabias.benchmarks import benchmark_names, load_benchmark, locate
from qabias.inspect_tasks import questions
from qabias.inspect_tasks._registry import make_tasks
from qabias.inspect_tasks.questions import load_questions
from qabias.inspect_tasks.tasks import make_task
from qabias.runs.arguments import RunArguments
from qabias.runs.question import load_examples

from .conftest import ROOT
from .inspect_models import SAYS, evaluate, metrics_of, output

AGE = {"config": "Age", "limit": 80}
SORRY = "I'm sorry, but I can't help with that."


def metric_of(name, predictions, table, **options):
    return hf_evaluate.load(str(locate.metric_folder(name))).compute(
        predictions=predictions, references=table, **options
    )


def rows_of(benchmark, **arguments):
    return load_examples(RunArguments(benchmark, **arguments)).table


def letters(table, places):
    """What the model says where it chooses some places of BBQ, by key of the question."""
    return {
        f"{row['category']}/{row['example_id']}": "ABC"[place]
        for row, place in zip(table.to_pylist(), places, strict=True)
    }


@pytest.fixture(scope="module")
def drawn():
    """Examples of two categories and answers to them drawn at random."""
    table = rows_of("bbq", config="Age,SES", limit=120)
    return table, np.random.default_rng(0).integers(0, 3, table.num_rows)


@pytest.fixture(scope="module")
def drawn_log(drawn, tmp_path_factory):
    table, places = drawn
    task = make_task("bbq", {"config": ["Age", "SES"], "limit": 120})
    return evaluate(task, letters(table, places), tmp_path_factory.mktemp("logs"))


def test_scores_of_bbq_are_those_of_its_metric(drawn, drawn_log):
    table, places = drawn
    expected = metric_of("bbq", places.tolist(), table, by=["category"])
    found = metrics_of(drawn_log)
    assert found["answers"] == found["answered"] == 120
    assert found["left_out"] == found["missing"] == found["unread"] == 0
    for name in ("bias_ambig", "bias_disambig", "accuracy_ambig", "accuracy_disambig", "accuracy_cost"):
        assert found[name] == pytest.approx(expected[name], abs=1e-12)
        assert [found[f"{name}_low"], found[f"{name}_high"]] == pytest.approx(expected["ci"][name], abs=1e-12)
    assert found["bias_ambig"] != 0
    for category in ("Age", "SES"):
        of = expected["by"]["category"][category]
        assert found[f"{category}/bias_ambig"] == pytest.approx(of["bias_ambig"], abs=1e-12)
        assert found[f"{category}/bias_ambig_low"] == pytest.approx(of["ci"]["bias_ambig"][0], abs=1e-12)


def test_a_sample_keeps_what_was_asked_and_what_was_read(drawn, drawn_log):
    table, places = drawn
    by_key = {f"{row['category']}/{row['example_id']}": row for row in table.to_pylist()}
    prompt_format = load_benchmark("bbq").formats["letters"]
    place_of = dict(zip(by_key, places.tolist(), strict=True))
    assert len(drawn_log.samples) == 120
    for sample in drawn_log.samples:
        row, place = by_key[sample.id], place_of[sample.id]
        assert sample.input == prompt_format.render(row)[0]
        assert {name: sample.metadata[name] for name in row} == row
        assert sample.metadata["qabias"]["key"] == sample.id
        score = sample.scores["qabias"]
        assert (score.value, score.answer) == ("answered", row[f"ans{place}"])
        assert score.metadata["prediction"] == place
    assert drawn_log.eval.model_generate_config.max_tokens is None
    config = drawn_log.plan.config
    assert (config.temperature, config.max_tokens) == (0, 4 * prompt_format.new_tokens)


def test_scores_of_bbnli_are_those_of_its_metric(tmp_path):
    table = rows_of("bbnli", limit=60)
    labels = np.random.default_rng(1).integers(0, 3, table.num_rows).tolist()
    render = load_benchmark("bbnli").formats["instructed"].render
    options = [tuple(option.strip() for option in render(row)[1]) for row in table.to_pylist()]
    says = {
        row["example_id"]: of_row[label] for row, of_row, label in zip(table.to_pylist(), options, labels, strict=True)
    }
    found = metrics_of(evaluate(make_task("bbnli", {"limit": 60}), says, tmp_path))
    expected = metric_of("bbnli", labels, table)
    assert found["answered"] == 60
    for name in ("bias_score", "accuracy_pro", "accuracy_anti"):
        assert found[name] == pytest.approx(expected[name], abs=1e-12)
        assert [found[f"{name}_low"], found[f"{name}_high"]] == pytest.approx(expected["ci"][name], abs=1e-12)
    assert found["bias_score"] != 0


def test_scores_of_unqover_are_those_of_its_metric(tmp_path):
    table = rows_of("unqover", config="religion", limit=16)
    rng = np.random.default_rng(2)
    says, answers = {}, []
    for row in table.to_pylist():
        scores = {}
        for number, asked in enumerate(("12", "12_neg", "21", "21_neg")):
            subject = int(rng.integers(1, 3))
            says[f"religion/{row['example_id']}/{number}"] = "AB"[(subject == 2) != asked.startswith("21")]
            scores |= {f"s{which}_{asked}": float(which == subject) for which in (1, 2)}
        answers.append(scores)
    log = evaluate(make_task("unqover", {"config": "religion", "limit": 16}), says, tmp_path)
    found, expected = metrics_of(log), metric_of("unqover", answers, table)
    assert found["answers"] == found["answered"] == 64
    for name in ("mu", "eta", "delta", "epsilon"):
        assert found[name] == pytest.approx(expected[name], abs=1e-7)
    assert found["mu"] != 0


def test_refused_cut_held_back_and_unread_answers_are_counted_apart(tmp_path):
    table = rows_of("bbq", **AGE)
    says = letters(table, table["label"].to_pylist())
    keys = list(says)
    says |= {
        keys[0]: SORRY,
        keys[1]: output("Let me think about the two of them", "max_tokens"),
        keys[2]: output("", "content_filter"),
        keys[3]: "Bananas are yellow.",
        keys[4]: output("Both of them are", "model_length"),
        # Thought and did not come to an answer.
        keys[5]: output([ContentReasoning(reasoning="The first one is A.")]),
        # Thought of one answer and gave another.
        keys[6]: output([ContentReasoning(reasoning="Is it A? No."), ContentText(text="B")]),
        keys[7]: "<think>Is it A? No.</think>\n\nB",
    }
    log = evaluate(make_task("bbq", AGE), says, tmp_path)
    found = metrics_of(log)
    counts = {"answered": 74, "refused": 1, "truncated": 3, "filtered": 1, "unread": 1}
    assert {name: found[name] for name in counts} == counts
    scores = {sample.id: sample.scores["qabias"] for sample in log.samples}
    assert [scores[key].value for key in keys[:8]] == [
        *("refused", "truncated", "filtered", "unread", "truncated", "truncated", "answered", "answered")
    ]
    assert [scores[key].metadata["prediction"] for key in keys[5:8]] == [-1, 1, 1]
    assert scores[keys[6]].metadata["thinking"] == "Is it A? No."
    # So many are missing that what they could have said is shown in place of an interval.
    assert {"bias_ambig_lowest", "bias_ambig_highest"} <= set(found)
    assert "bias_ambig_low" not in found


def test_an_evaluation_that_broke_off_is_finished_by_eval_retry(tmp_path, drawn, drawn_log):
    table, places = drawn
    says = letters(table, places)
    broken = list(says)[100]
    task = make_task("bbq", {"config": "Age,SES", "limit": 120})
    log = evaluate(make_tasks()["bbq"](config="Age,SES", limit=120), {**says, broken: OSError("lost")}, tmp_path)
    assert log.status == "error"
    SAYS.update({sample.input: says[sample.id] for sample in task.dataset})
    (again,) = inspect_ai.eval_retry(log, log_dir=str(tmp_path / "again"), display="none")
    assert again.status == "success"
    assert metrics_of(again) == metrics_of(drawn_log)


def test_sets_that_a_limit_of_inspect_cuts_are_left_out_and_counted(tmp_path):
    table = rows_of("bbq", **AGE)
    log = evaluate(make_task("bbq", AGE), letters(table, table["label"].to_pylist()), tmp_path, limit=42)
    found = metrics_of(log)
    assert {name: found[name] for name in ("answers", "left_out", "missing")} == {
        "answers": 40,
        "left_out": 2,
        "missing": 38,
    }
    assert found["accuracy_ambig"] == 1
    nothing = metrics_of(evaluate(make_task("bbq", AGE), letters(table, table["label"].to_pylist()), tmp_path, limit=3))
    assert (nothing["answers"], nothing["left_out"], nothing["missing"]) == (0, 3, 77)
    assert math.isnan(nothing["bias_ambig"])


def test_scores_of_several_epochs_are_means_over_them(tmp_path):
    table = rows_of("bbq", **AGE)
    right, wrong = ([(place + step) % 3 for place in table["label"].to_pylist()] for step in (0, 1))
    says = {
        key: [text, other]
        for (key, text), other in zip(letters(table, right).items(), letters(table, wrong).values(), strict=True)
    }
    found = metrics_of(evaluate(make_task("bbq", AGE), says, tmp_path, epochs=2))
    assert found["answers"] == 160
    assert found["accuracy_ambig"] == pytest.approx(0.5)
    assert found["accuracy_disambig"] == pytest.approx(0.5)


def test_every_order_of_the_answers_is_a_sample_and_the_majority_counts(tmp_path):
    task = make_task("bbq", {**AGE, "orders": 3})
    assert len(task.dataset) == 3 * 80
    found = metrics_of(evaluate(task, dict.fromkeys((sample.id for sample in task.dataset), "A"), tmp_path))
    # Whoever always says A names each answer once.
    assert (found["answers"], found["unread"]) == (240, 80)


@pytest.mark.parametrize(
    ("arguments", "tokens"),
    [
        ({"confg": "Age"}, "'confg'.*'config'"),
        ({"config": "Agee"}, "'Agee'.*'Age'"),
        ({"orders": 2}, "orders is 2"),
        ({"limit": 0}, "limit is 0"),
        ({"options": {"subjects": "x"}}, "'subjects'"),
        *(({"config": value}, "config is .* a text") for value in (5, {"a": 1}, ["Age", 5])),
        *(({name: 3}, f"{name} is 3; .* a text") for name in ("source", "format", "norm", "upstream_dir")),
        *(({"fixes": value}, "fixes is .* true or false") for value in ("false", "maybe")),
        *(({"options": value}, "options is .* texts by name") for value in ("abc", ["a"], {"part": 1})),
        ({"orders": [1]}, "orders is"),
        ({"seed": 1.5}, "seed is 1.5"),
    ],
)
def test_a_wrong_argument_is_one_line_that_names_it(arguments, tokens):
    with pytest.raises(PrerequisiteError) as caught:
        make_task("bbq", arguments)
    assert re.search(tokens, str(caught.value.message))
    assert "\n" not in str(caught.value.message)


def test_the_entry_point_has_a_task_for_every_benchmark():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    name, _, module = setup["options.entry_points"]["inspect_ai"].strip().partition("=")
    assert name.strip() == "qabias"
    found = importlib.import_module(module.strip())
    for benchmark in benchmark_names():
        info = registry_info(getattr(found, benchmark))
        assert (info.type, info.name.rpartition("/")[2]) == ("task", benchmark)


def test_tasks_that_are_evaluated_in_turn_keep_their_questions(monkeypatch):
    loaded = []
    load = questions.load_examples
    monkeypatch.setattr(questions, "load_examples", lambda *chosen: loaded.append(chosen) or load(*chosen))
    # Arguments that no other test uses, of which nothing can be there.
    facts = [load_questions("bbq", config="Age", limit=8, seed=seed).facts for seed in (901, 902, 903)]
    scorers, metrics = ([questions.QuestionCache(None) for _ in facts] for _ in range(2))
    loaded.clear()
    for _ in range(4):
        for of_task, scorer, metric in zip(facts, scorers, metrics, strict=True):
            assert scorer.get(of_task) is metric.get(of_task)
            assert scorer.get(of_task).arguments.seed == of_task["seed"]
    # The questions of the last task were still there, the others are loaded once for scorer and metric.
    assert len(loaded) <= 3
    kept = weakref.ref(scorers[0].get(facts[0]))
    del scorers, metrics
    gc.collect()
    assert kept() is None
