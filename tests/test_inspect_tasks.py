"""The tasks for inspect_ai: prompts of a run, scores of the metrics, and logs that become runs with their scores."""

import configparser
import dataclasses
import importlib
import math
import re
import sys
from collections import defaultdict

import evaluate as hf_evaluate
import numpy as np
import pytest

from .inspect_models import evaluate

pytest.importorskip("inspect_ai", reason="inspect_ai is not installed (pip install '.[inspect]')")

import inspect_ai
from inspect_ai._util.error import PrerequisiteError
from inspect_ai._util.registry import registry_info
from inspect_ai.log import headline_metric
from inspect_ai.model import ContentReasoning, ContentText

from qabias.benchmarks import benchmark_names, load_benchmark, locate
from qabias.benchmarks.text_logs import read_inspect as own_answers
from qabias.errors import QabiasError
from qabias.inspect_tasks import questions
from qabias.inspect_tasks._registry import make_tasks
from qabias.inspect_tasks.questions import load_questions
from qabias.inspect_tasks.tasks import make_task
from qabias.logs import Sample
from qabias.logs.detect import read_log
from qabias.runs.arguments import RunArguments
from qabias.runs.collected import collect, scores_of_collected
from qabias.runs.external import read_external
from qabias.runs.folder import read_answers
from qabias.runs.opened import Run
from qabias.runs.question import load_examples, read_question
from qabias.runs.run import run
from qabias.runs.scored import other_figures

from .conftest import ROOT
from .inspect_models import SAYS, metrics_of, output
from .test_chat import chat_model
from .tiny_models import make_model

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


@pytest.mark.slow
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


@pytest.mark.slow
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
        assert sample.target == row[f"ans{row['label']}"]
    assert (headline_metric(drawn_log).name, headline_metric(drawn_log).metric.value) == (
        "bias_ambig",
        metrics_of(drawn_log)["bias_ambig"],
    )
    view = drawn_log.eval.viewer.task_samples_view
    assert [column.id for column in view.columns][-3:] == ["target", "answer", "score__qabias__qabias"]
    assert {"refused", "missing"} < set(view.score_color_scales["qabias"])
    assert drawn_log.eval.model_generate_config.max_tokens is None
    config = drawn_log.plan.config
    assert (config.temperature, config.max_tokens) == (0, 4 * prompt_format.new_tokens)


@pytest.mark.slow
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


@pytest.mark.slow
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
    counts = {"answered": 74, "refused": 1, "truncated": 3, "filtered": 1, "repeated": 0, "unread": 1}
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_sets_that_a_limit_of_inspect_cuts_are_left_out_and_counted(tmp_path):
    table = rows_of("bbq", **AGE)
    log = evaluate(make_task("bbq", AGE), letters(table, table["label"].to_pylist()), tmp_path, limit=42)
    found = metrics_of(log)
    assert [found[name] for name in ("answers", "left_out", "missing")] == [40, 2, 38]
    assert found["accuracy_ambig"] == 1
    nothing = metrics_of(evaluate(make_task("bbq", AGE), letters(table, table["label"].to_pylist()), tmp_path, limit=3))
    assert (nothing["answers"], nothing["left_out"], nothing["missing"]) == (0, 3, 77)
    assert math.isnan(nothing["bias_ambig"])


@pytest.mark.slow
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


@pytest.mark.slow
def test_every_order_of_the_answers_is_a_sample_and_the_majority_counts(tmp_path):
    task = make_task("bbq", {**AGE, "limit": 24, "permutations": 3})
    assert len(task.dataset) == 3 * 24
    found = metrics_of(evaluate(task, dict.fromkeys((sample.id for sample in task.dataset), "A"), tmp_path))
    # Whoever always says A names each answer once.
    assert (found["answers"], found["unread"]) == (72, 24)


@pytest.mark.parametrize(
    ("arguments", "tokens"),
    [
        ({"confg": "Age"}, "'confg'.*'config'"),
        ({"config": "Agee"}, "'Agee'.*'Age'"),
        ({"permutations": 2}, "2 answer orders"),
        ({"limit": 0}, "limit is 0"),
        ({"options": {"subjects": "x"}}, "'subjects'"),
        *(({"config": value}, "config is ") for value in (5, {"a": 1}, ["Age", 5])),
        *(({name: 3}, f"{name} is 3") for name in ("source", "format", "parser", "mirror")),
        *(({"fixes": value}, "fixes is ") for value in ("false", "maybe")),
        *(({"options": value}, "options is ") for value in ("abc", ["a"], {"part": 1})),
        ({"permutations": [1]}, "answer orders"),
        ({"seed": 1.5}, "seed is 1.5"),
    ],
)
def test_a_wrong_argument_is_one_line_that_names_it(arguments, tokens):
    with pytest.raises(PrerequisiteError) as caught:
        make_task("bbq", arguments)
    assert re.search(tokens, str(caught.value.message))
    assert re.fullmatch(r"[^\n]+(\n  fix: [^\n]+)?", str(caught.value.message))


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
    tasks = [load_questions("bbq", config="Age", limit=8, seed=seed) for seed in (901, 902, 903)]
    for task in tasks * 4:
        assert questions.find_questions(task.facts, None) is task
    assert len(loaded) == 3


LIMIT, TOKENS = 16, 6
ALL_WRITTEN = {"add_special_tokens": False}  # the template writes the start token


@pytest.mark.slow
def test_a_model_of_inspect_writes_what_it_writes_in_a_run(tmp_path, one_thread):
    # The tokenizer puts a start token before every text and the template writes one too, as Llama's do.
    model = str(tmp_path / "model")
    make_model("llama", max_position_embeddings=2048).save_pretrained(model)
    chat_model(adds_bos=True).tokenizer.save_pretrained(model)
    options = {"mode": "generate", "chat": "yes", "max_new_tokens": str(TOKENS)}
    arguments = RunArguments(
        "bbq", model, "Age", format="letters", backend="causal", limit=LIMIT, options=options, dtype="float32"
    )
    ours = run(arguments, tmp_path / "run")
    question = read_question(Run.open(tmp_path / "run"))
    answers, _ = read_answers(Run.open(tmp_path / "run"), question.benchmark, question.parts)
    expected = {
        f"{row['category']}/{row['example_id']}": (of["outputs"][0], of["prediction"])
        for row, of in zip(question.table.to_pylist(), answers.to_pylist(), strict=True)
    }
    (log,) = inspect_ai.eval(
        f"{ROOT}/integrations/inspect/tasks.py@qabias_bbq",
        model="hf/local",
        model_args={"model_path": model, "device": "cpu", "do_sample": False, "tokenizer_call_args": ALL_WRITTEN},
        task_args={"config": "Age", "limit": LIMIT},
        max_tokens=TOKENS,
        max_connections=LIMIT,
        log_dir=str(tmp_path / "logs"),
        display="none",
        score_display=False,
    )
    found = {
        sample.id: (sample.output.completion, sample.scores["qabias"].metadata["prediction"]) for sample in log.samples
    }
    assert found == expected
    assert len({text for text, _ in found.values()}) > 1
    assert metrics_of(log)["unparsed_share"] == ours.scores["unparsed_share"]


# Logs of our tasks

TESTED = ("bbq", "bbq_nli", "bbnli", "unqover")
MEASURES = {name: {measure.name for measure in load_benchmark(name).facts.measures} for name in TESTED}


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


def side_by_side(log):
    """What inspect printed, by name, with the score that stands beside it and the reason; the log and its scores."""
    collected = collect(read_external(log, {}))
    scores = scores_of_collected(collected)
    return {name: rest for name, *rest in other_figures(collected.other, scores).rows}, collected, scores


def log_of(tmp_path, arguments, says=None, **options):
    asked = load_questions("bbq", **arguments)
    evaluate(make_task("bbq", arguments), says or says_of(asked), tmp_path, **options)
    return read_log(next(tmp_path.glob("*.eval")))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("benchmark", "arguments", "groups"),
    [
        ("bbq", {"config": "Age,SES", "limit": 80}, {"": "bias_ambig", "Age/": "bias_ambig", "SES/": "accuracy_cost"}),
        ("bbq_nli", {"config": "Age_nli", "limit": 80}, {"": "accuracy_anti"}),
        ("bbnli", {"limit": 200}, {"": "bias_score", "gender/": "bias_score", "man_is_to_rational/": "accuracy_pro"}),
        ("unqover", {"config": "religion", "limit": 20}, {"": "mu"}),
        pytest.param("unqover", {"limit": 40}, {"religion/": "mu", "gender/": "eta"}, marks=pytest.mark.slow),
    ],
)
def test_every_score_stands_beside_the_one_here(tmp_path, benchmark, arguments, groups):
    asked = load_questions(benchmark, **arguments)
    log = evaluate(make_task(benchmark, arguments), says_of(asked), tmp_path)
    path = next(tmp_path.glob("*.eval"))
    (found, collected, scores), printed = side_by_side(read_log(path)), metrics_of(log)
    shown = {name: value for name, value in printed.items() if name.rpartition("/")[2] in MEASURES[benchmark]}
    assert found.keys() == shown.keys()
    assert {f"{group}{name}" for group, name in groups.items()} <= found.keys()
    for theirs, ours, why in found.values():
        assert (why, ours) == ("", None if theirs is None else pytest.approx(theirs, abs=1e-9))
    assert any(ours for _, ours, _ in found.values())
    assert collected.question.table.num_rows == asked.table.num_rows
    assert collected.arguments.format == asked.prompt_format.name
    if "outcomes" in scores:
        for name in ("refused", "truncated"):
            assert printed[name] == scores["outcomes"][name] > 0


@pytest.mark.slow
def test_texts_of_another_seed_and_corrected_ones_are_found_again(tmp_path, upstream):
    arguments = {"source": "official", "config": "SES", "limit": 8, "seed": 5, "fixes": True, "parser": "released"}
    asked = load_questions("bbq", **arguments)
    says = {question.key: asked.rows[question.row]["ans0"] for question in asked.questions}  # letters are not read
    log = log_of(tmp_path, {**arguments, "mirror": str(upstream)}, says)
    found = collect(read_external(log, {}))
    assert (found.arguments.seed, found.arguments.fixes, found.arguments.norm) == (5, True, "released")
    assert found.question.table.equals(asked.table)


def test_what_a_log_lacks_of_a_set_is_said(tmp_path):
    asked = load_questions("bbq", config="Age", limit=16)
    lost = asked.questions[5].key
    log = log_of(
        tmp_path, {"config": "Age", "limit": 16}, {**says_of(asked), lost: OSError("lost")}, fail_on_error=False
    )
    logged = own_answers(log)
    assert (logged.benchmark, logged.answers.num_rows) == ("bbq", 12)
    notes = " ".join(logged.notes)
    assert "3 examples are excluded" in notes
    assert "failed" not in notes
    assert logged.failed == "their sets are excluded"


def test_of_several_epochs_the_first_counts_and_figures_say_so(tmp_path):
    asked = load_questions("bbq", config="Age", limit=8)
    says = {question.key: ["A", "B"] for question in asked.questions}
    log = log_of(tmp_path, {"config": "Age", "limit": 8}, says, epochs=2)
    logged = own_answers(log)
    assert logged.answers.num_rows == 8
    assert any("8 from further epochs" in note for note in logged.notes)
    found, *_ = side_by_side(log)
    assert all("2 epochs" in why for _, _, why in found.values())
    assert any(theirs != ours for theirs, ours, _ in found.values())


@pytest.mark.slow
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
    logged = own_answers(log)
    # Four failed, each in a set of four of its own.
    assert logged.answers.num_rows == 24
    counts = {"answers": 24, "missing": 4, "left_out": 12}
    assert {name: log.figures[f"qabias/{name}"] for name in counts} == counts
    for theirs, ours, why in side_by_side(log)[0].values():
        assert (why, ours) == ("", None if theirs is None else pytest.approx(theirs, abs=1e-12))


def test_where_all_samples_failed_scores_are_undefined(tmp_path):
    asked = load_questions("bbq", config="Age", limit=8)
    says = {question.key: OSError("overloaded") for question in asked.questions}
    log = log_of(tmp_path, {"config": "Age", "limit": 8}, says, fail_on_error=False, score_on_error=True)
    assert {name: log.figures[f"qabias/{name}"] for name in ("answers", "missing")} == {"answers": 0, "missing": 8}
    assert np.isnan(log.figures["qabias/bias_ambig"])


def test_a_log_says_all_that_was_chosen(tmp_path):
    arguments = {"config": "Age", "source": "bundled", "format": "letters_cot", "parser": "released", "permutations": 3}
    logged = external = own_answers(log_of(tmp_path, {**arguments, "limit": 8}))
    name = logged.benchmark
    chosen = {"config": logged.config, "source": external.source, "format": external.format, "parser": external.norm}
    assert (name, chosen | {"permutations": 3}) == ("bbq", arguments)


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
    **{"norm": ["none"], "orders": "2", "options": ["a"], "key": ["Age/0"]},
}


@pytest.mark.parametrize(
    ("change", "token"),
    [
        (lambda facts: {**facts, "format": "letters@0"}, "format"),
        (lambda facts: {**facts, "texts": "bundled@0"}, "texts"),
        (lambda facts: without(facts, "norm"), "'norm'"),
        (lambda facts: {**facts, "key": "Age/none"}, "'Age/none'"),
        *((lambda facts, name=name, value=one: {**facts, name: value}, f"eval|{name}") for name, one in WRONG.items()),
    ],
)
def test_facts_that_are_not_as_they_were_are_refused(short, change, token):
    log = replaced(short, lambda metadata, _: {**metadata, "qabias": change(metadata["qabias"])})
    with pytest.raises(QabiasError, match=token):
        collect(read_external(log, {}))


def test_metadata_of_another_form_are_refused_with_the_sample(short):
    second = list(short.samples())[1].where
    for wrong in (["a"], "a", 5, {}, {"qabias": ["a"]}, {"qabias": {}}):
        log = replaced(short, lambda metadata, number, wrong=wrong: wrong if number else metadata)
        with pytest.raises(QabiasError, match=second):
            own_answers(log)
    with pytest.raises(QabiasError, match="inspect_ai writes it"):
        read_external(replaced(short, lambda metadata, _: {**metadata, "example_id": [1]}), {})
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


pytest.importorskip("inspect_ai", reason="inspect_ai is not installed (pip install '.[inspect]')")


@pytest.mark.slow
def test_a_clear_case_is_decided_after_some_samples_and_the_others_are_skipped(tmp_path):
    task = make_task("bbq", {"config": "Religion", "limit": 400, "until": "bias_ambig<0.5"})
    log = evaluate(task, defaultdict(lambda: "A"), tmp_path, max_samples=1)
    stopped = log.results.early_stopping
    n_asked = log.results.completed_samples
    assert stopped.metadata["verdicts"][0].startswith("Pass")
    low, high = (log.results.scores[0].metrics[f"bias_ambig_{end}"].value for end in ("low", "high"))
    ends = re.search(r"\[([^,]+), ([^\]]+)\]", stopped.metadata["verdicts"][0])
    inner = [float(end.replace("−", "-")) / 100 for end in ends.groups()]
    assert low < inner[0] < inner[1] < high, "a verdict errs on one side, the repeated interval on two"
    assert 0 < n_asked < 300
    assert n_asked + len(stopped.early_stops) == len(task.dataset)


def test_a_task_without_conditions_has_no_early_stopping():
    assert make_task("bbq", {"config": "Religion", "limit": 40}).early_stopping is None


@pytest.mark.parametrize("conditions", [{"until": "bias<0.1"}, {"until": "bias_ambig<0.1", "by": "categry"}])
def test_a_wrong_condition_is_refused_before_any_sample(conditions):
    with pytest.raises(PrerequisiteError, match="unknown"):
        make_task("bbq", {"config": "Religion", "limit": 40, **conditions})
