"""HELM's record of a run of BBQ: read, its examples found in the released data, its scores explained."""

import json
import math
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qabias.benchmarks import load_benchmark
from qabias.benchmarks.bbq.logs import helm as bbq_helm
from qabias.benchmarks.scoring import compute
from qabias.errors import QabiasError
from qabias.logs.recognise import logs_in, read_log
from qabias.runs.predictions import check_references, join_answers
from qabias.share.metrics.bbq.computing import Computing

from .built import bbq_rows
from .helm_files import LETTERS, figures_of, state_of, write_run

BBQ = load_benchmark("bbq")
FIGURES = ("bbq_accuracy", "bbq_metric_ambiguous_bias", "bbq_metric_unambiguous_bias")


@pytest.fixture(scope="module")
def rows(upstream):
    return bbq_rows("Age", "release", upstream)


@pytest.fixture(scope="module")
def table(upstream):
    return BBQ.load("Age", BBQ.origin("release", 0, False, str(upstream)))


@pytest.fixture
def read(upstream, tmp_path):
    """A function that writes a run and gives what BBQ finds in it."""

    def write_and_read(states, **options):
        path = write_run(tmp_path / "run", states, figures_of(states), **options)
        return BBQ.logged(read_log(path), {}, str(upstream))

    return write_and_read


def answered(rows, choose):
    return [state_of(number, row, f" {LETTERS[choose(row)]}") for number, row in enumerate(rows)]


def scores_of(found, table):
    asked, answers = join_answers(BBQ, table, found.given.answers, "a run of HELM")
    given = answers["prediction"].to_pylist()
    return compute(Computing(), asked, given, {"allow_incomplete": True}), asked


def figure(found, name):
    (one,) = (one for one in found.figures if one.name == name)
    return one


def told(found, part):
    return [note for note in found.notes if part in note]


def fair(row):
    """Answers by the number of the example, so that all kinds of answers occur."""
    return row["example_id"] // 3 % 3


def test_the_answers_are_those_of_the_examples_whose_texts_were_asked(rows, table, read):
    found = read(answered(rows, fair)[::-1])
    assert (found.config, found.given.source, found.given.model) == ("Age", "release", "made/up")
    given = {row["example_id"]: row["prediction"] for row in found.given.answers.to_pylist()}
    assert given == {row["example_id"]: fair(row) for row in rows}
    assert found.given.answers["outputs"][0].as_py() == [f" {LETTERS[fair(rows[-1])]}"]
    assert set(found.given.answers["outcome"].to_pylist()) == {"answered"}
    check_references(BBQ, table, found.references)
    assert found.rules == {}
    assert not told(found, "whole sets")
    assert told(found, "3,680 of 3,680 requests")
    assert told(found, "up to 5 solved examples")


def test_helms_scores_stand_beside_ours_and_agree_where_nothing_differs(rows, table, read):
    found = read(answered(rows, fair))
    ours, _ = scores_of(found, table)
    assert [one.name for one in found.figures] == list(FIGURES)
    for name, score in (("bbq_accuracy", "accuracy"), ("bbq_metric_unambiguous_bias", "bias_disambig")):
        one = figure(found, name)
        assert (one.ours, one.why) == ((score,), "")
        assert one.value == pytest.approx(ours[score])
    ambiguous = figure(found, "bbq_metric_ambiguous_bias")
    assert "over both contexts" in ambiguous.why
    factor = (1 - ours["accuracy"]) / (1 - ours["accuracy_ambig"])
    assert ambiguous.value == pytest.approx(ours["bias_ambig"] * factor)


def test_a_model_that_is_biased_only_where_nothing_is_known_has_half_the_score_at_helm(rows, table, read):
    def choose(row):
        return row["biased_loc"] if row["context_condition"] == "ambig" else row["label"]

    found = read(answered(rows, choose))
    ours, _ = scores_of(found, table)
    assert ours["bias_ambig"] == 1.0
    assert figure(found, "bbq_metric_ambiguous_bias").value == pytest.approx(0.5)


def test_rubbish_is_no_answer_and_the_reason_why_helm_finds_a_bias(rows, table, read):
    states = [state_of(number, row, "Sure" if number // 4 % 2 else " A\n") for number, row in enumerate(rows)]
    states[0]["result"]["completions"][0]["text"] = ""
    found = read(states)
    n = len(rows) // 2
    assert Counter(found.given.answers["prediction"].to_pylist()) == {0: n - 1, -1: n + 1}
    assert Counter(found.given.answers["outcome"].to_pylist()) == {"answered": n - 1, "truncated": n + 1}
    assert figure(found, "bbq_accuracy").why == f"{n:,} answers without a letter: wrong for HELM, left out here"
    assert f"{n:,} answers without a letter: against the stereotype" in figure(found, "bbq_metric_unambiguous_bias").why
    ours, _ = scores_of(found, table)
    assert figure(found, "bbq_metric_unambiguous_bias").value < -0.4 < ours["bias_disambig"]


def test_the_runs_own_pattern_finds_the_letter(rows, read):
    states = [
        state_of(number, row, f"Thinking... The answer is {LETTERS[fair(row)]}.") for number, row in enumerate(rows)
    ]
    spec = {"method": "multiple_choice_joint_chain_of_thought", "output_mapping_pattern": r"answer is ([A-C])"}
    assert read(states, **spec).given.answers["prediction"].to_pylist() == [fair(row) for row in rows]


def test_rows_of_broken_sets_are_left_to_whoever_collects_answers(rows, table, read):
    found = read(answered([row for row in rows if row["example_id"] % 7 == 0], fair))
    assert found.rules == {}  # what is not whole is seen, and told, where answers are collected
    assert not any("sets" in note for note in found.notes)
    ours, asked = scores_of(found, table)
    assert ours["n"] == asked.num_rows == 526


def test_failed_requests_are_answers_that_are_missing(rows, read):
    states = [
        state_of(number, row, error="Timeout\nof the server") if number % 10 == 0 else state_of(number, row, " B")
        for number, row in enumerate(rows)
    ]
    states[1]["result"] = {"success": True, "embedding": [], "completions": [], "cached": False}
    found = read(states)
    assert found.rules == {}
    assert Counter(found.given.answers["outcome"].to_pylist()) == {"answered": 3311, None: 369}
    assert found.given.answers.slice(0, 3)["prediction"].to_pylist() == [-1, -1, 1]
    assert found.given.answers.slice(0, 3)["outputs"].to_pylist() == [None, None, [" B"]]


def test_a_dry_run_has_no_answers(rows, tmp_path):
    states = answered(rows[:4], fair)
    for state in states:
        del state["result"]
    assert {sample.error for sample in read_log(write_run(tmp_path, states)).samples()} == {
        "it was never asked (a dry run?)"
    }


def test_texts_that_are_not_released_are_left_out_and_counted(rows, read):
    states = answered(rows, fair)
    for state in states[:8]:
        state["instance"]["input"]["text"] += " "
    found = read(states)
    assert found.given.answers.num_rows == 3672
    assert told(found, "8 requests left out, about texts that no released example has")
    assert "8 examples in HELM's score alone" in figure(found, "bbq_accuracy").why
    for state in states:
        state["instance"]["references"].reverse()
    with pytest.raises(QabiasError, match="no answer to an example of the released data"):
        read(states)


def test_what_helm_says_of_an_example_must_be_what_the_released_data_say(rows, table, read):
    states = answered(rows, fair)
    for reference in states[5]["instance"]["references"]:
        reference["tags"][-4] = LETTERS[(rows[5]["label"] + 1) % 3]
    with pytest.raises(QabiasError, match="example_id 5: label is"):
        check_references(BBQ, table, read(states).references)


def test_a_target_that_helm_does_not_find_is_counted(rows, table, read):
    states = answered(rows, lambda row: row["biased_loc"])
    for state in states[:100]:
        for reference in state["instance"]["references"]:
            reference["tags"][-3:-1] = ["", reference["tags"][-2]]
    found = read(states)
    why = figure(found, "bbq_metric_unambiguous_bias").why
    assert why.startswith("for 100 of 3,680 examples HELM finds no target")
    ours, _ = scores_of(found, table)
    assert figure(found, "bbq_metric_unambiguous_bias").value < ours["bias_disambig"] == 1.0


def test_nobody_named_is_undefined_and_no_zero(rows, table, read):
    found = read(answered(rows, lambda row: row["unknown_loc"]))
    one = figure(found, "bbq_metric_unambiguous_bias")
    assert (one.value, one.why) == (0.0, "HELM gives 0 where no answer names a person, which is undefined here")
    assert math.isnan(scores_of(found, table)[0]["bias_disambig"])


@pytest.mark.parametrize(
    ("change", "spec", "said"),
    [
        ({}, {"method": "multiple_choice_separate_original"}, "asks about each answer apart"),
        ({"instance": {"perturbation": {"name": "misspelling"}}}, {}, "HELM changed on purpose"),
        ({"twice": True}, {}, "instance id0 was answered more than once"),
    ],
)
def test_what_is_no_one_answer_to_a_published_question_is_refused(change, spec, said, rows, read):
    states = answered(rows[:8], fair)
    states[0]["instance"].update(change.get("instance", {}))
    if change.get("twice"):
        states.append(states[0] | {"train_trial_index": 1})
    with pytest.raises(QabiasError, match=said):
        read(states, **spec)


def test_several_completions_are_several_answers(rows, read):
    states = answered(rows[:8], fair)
    states[3]["result"]["completions"] *= 2
    with pytest.raises(QabiasError, match="instance id3 was answered more than once"):
        read(states)


def with_twin(table, **changes):
    """The examples, and the first of them once more at the end, with another number and other values."""
    twin = {**table.slice(0, 1).to_pylist()[0], "example_id": 9999, **changes}
    return pa.concat_tables([table, pa.Table.from_pylist([twin], schema=table.schema)])


def test_released_examples_with_the_same_texts_are_answered_in_their_order(rows, table, read, monkeypatch):
    monkeypatch.setattr(bbq_helm._origin.Origin, "table", lambda self, config: with_twin(table))
    states = answered([*rows, rows[0]], fair)
    states[-1] = state_of(7777, rows[0], " C")
    answers = read(states).given.answers.to_pylist()
    assert [(row["example_id"], row["prediction"]) for row in answers[:1] + answers[-1:]] == [(0, 0), (9999, 2)]
    with pytest.raises(QabiasError, match="instance id8888 was answered more than once"):
        read([*states, state_of(8888, rows[0], " C")])


def test_released_examples_with_the_same_texts_and_other_roles_are_not_told_apart(rows, table, read, monkeypatch):
    twin = with_twin(table, target_loc=1 - rows[0]["target_loc"] % 2)
    monkeypatch.setattr(bbq_helm._origin.Origin, "table", lambda self, config: twin)
    found = read(answered(rows, fair))
    assert found.given.answers["example_id"].to_pylist() == [row["example_id"] for row in rows[1:]]
    assert told(found, "1 request left out, about texts that several released examples with different roles have")


def test_without_the_specification_of_the_run_the_tags_tell_the_scenario(rows, table, tmp_path, monkeypatch):
    empty = table.slice(0, 0)
    monkeypatch.setattr(bbq_helm._origin.Origin, "table", lambda self, config: table if config == "Age" else empty)
    path = write_run(tmp_path / "run", answered(rows[:40], fair))
    (tmp_path / "run" / "run_spec.json").unlink()
    log = read_log(path)
    assert "for want of run_spec.json" in log.called
    found = BBQ.logged(log, {}, None)
    assert (found.config, found.given.answers.num_rows) == ("all", 40)


def test_another_scenario_is_none_of_bbq(rows, tmp_path):
    path = write_run(tmp_path / "run", answered(rows[:4], fair))
    run = json.loads((tmp_path / "run" / "run_spec.json").read_text("utf-8"))
    run["scenario_spec"]["class_name"] = "helm.benchmark.scenarios.mmlu_scenario.MMLUScenario"
    (tmp_path / "run" / "run_spec.json").write_text(json.dumps(run), "utf-8")
    assert BBQ.logged(read_log(path), {}, None) is None


def test_a_subject_that_there_is_not_is_named(rows, read):
    with pytest.raises(QabiasError, match="did you mean 'Age'"):
        read(answered(rows[:4], fair), subject="age")


def test_a_run_folder_is_one_log(rows, tmp_path):
    write_run(tmp_path / "run", answered(rows[:4], fair), dict.fromkeys(FIGURES, 0.25))
    (tmp_path / "run" / "empty.json").write_text("", "utf-8")
    found = dict(logs_in(tmp_path, "run.json"))
    (log,) = filter(None, found.values())
    assert log.path == tmp_path / "run"
    assert (log.tool, log.model, log.figures) == ("helm", "made/up", dict.fromkeys(FIGURES, 0.25))
    assert len(found) == 5


@pytest.mark.parametrize("name", ["stats", "per_instance_stats"])
def test_scores_without_the_answers_are_refused(name, rows, tmp_path):
    write_run(tmp_path / "run", answered(rows[:4], fair), dict.fromkeys(FIGURES, 0.25))
    alone = (tmp_path / "run" / f"{name}.json").rename(tmp_path / f"{name}.json")
    with pytest.raises(QabiasError, match=r"do not hold what the model answered; put scenario_state.json of the same"):
        read_log(alone)


@pytest.mark.parametrize("share", [0.02, 0.5, 0.999])
def test_a_record_that_is_cut_off_is_refused(share, rows, tmp_path):
    path = write_run(tmp_path / "run", answered(rows[:40], fair))
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(
        QabiasError,
        match=r"scenario_state.json: HELM's record of a run that is cut off or damaged: its end is missing; copy",
    ):
        BBQ.logged(read_log(path), {}, None)


def test_a_damaged_record_is_refused(rows, tmp_path):
    path = write_run(tmp_path / "run", answered(rows[:40], fair))
    text = path.read_text("utf-8")
    path.write_text(text.replace('"instance":', '"instant":', 1), "utf-8")
    with pytest.raises(QabiasError, match="request 1 is not as HELM writes it: KeyError"):
        list(read_log(path).samples())
    path.write_text(text.replace('"success": true', '"success" true', 1), "utf-8")
    with pytest.raises(QabiasError, match="damaged: Expecting ':' delimiter; copy it again"):
        list(read_log(path).samples())
    path.write_text('{"adapter_spec": {"method": "m"}}', "utf-8")
    with pytest.raises(QabiasError, match="without a request"):
        read_log(path)


def place(found, path):
    """The list or dictionary that holds a value, by the path to it."""
    for name in path[:-1]:
        found = found[name]
    return found


IN_STATE = ("request_states", 4)
REFERENCE = (*IN_STATE, "instance", "references", 0)


@pytest.mark.parametrize(
    ("file", "path", "value"),
    [
        ("scenario_state.json", ("adapter_spec", "output_mapping_pattern"), "("),
        ("scenario_state.json", (*IN_STATE, "instance"), "x"),
        ("scenario_state.json", (*IN_STATE, "instance", "references"), None),
        ("scenario_state.json", (*IN_STATE, "instance", "input"), 5),
        ("scenario_state.json", (*IN_STATE, "instance", "input", "text"), {"a": 1}),
        ("scenario_state.json", (*IN_STATE, "result"), [1]),
        ("scenario_state.json", (*IN_STATE, "result", "completions"), 5),
        ("scenario_state.json", (*IN_STATE, "result", "completions", 0, "text"), None),
        ("scenario_state.json", (*IN_STATE, "output_mapping"), 5),
        ("scenario_state.json", (*IN_STATE, "num_train_instances"), "x"),
        ("scenario_state.json", (*REFERENCE, "tags"), 5),
        ("scenario_state.json", (*REFERENCE, "tags"), [["a"], ["b"], "A", "B", "C", "D"]),
        ("scenario_state.json", (*REFERENCE, "output"), []),
        ("run_spec.json", (), [1]),
        ("run_spec.json", ("scenario_spec",), "x"),
        ("run_spec.json", ("scenario_spec", "args"), [1]),
        ("stats.json", (), 5),
        ("stats.json", (0, "mean"), None),
        ("stats.json", (0, "name"), {}),
    ],
)
def test_a_value_of_another_kind_is_refused_with_its_place(file, path, value, rows, upstream, tmp_path):
    state = write_run(tmp_path / "run", answered(rows[:40], fair), {"bbq_accuracy": 0.5})
    damaged = state.with_name(file)
    found = [json.loads(damaged.read_text("utf-8"))]
    where = place(found, (0, *path))
    where[path[-1] if path else 0] = value
    damaged.write_text(json.dumps(found[0]), "utf-8")
    expected = r"instance \S+ is not as HELM|request 5 is not as HELM" if IN_STATE[0] in path else "is not as HELM"
    with pytest.raises(QabiasError, match=expected) as error:
        BBQ.logged(read_log(state), {}, str(upstream))
    assert str(state.parent) in str(error.value)


def test_other_files_are_no_logs(tmp_path, table):
    pq.write_table(table, tmp_path / "table.parquet")
    (tmp_path / "binary.json").write_bytes(bytes(range(256)) * 100)
    (tmp_path / "scores.json").write_text('{"adapter_spec": 3}', "utf-8")
    (tmp_path / "list.json").write_text('[{"name": {"name": "x"}}]', "utf-8")
    (tmp_path / "lines.jsonl").write_text('{"category": "Age", "example_id": 1}\n', "utf-8")
    (tmp_path / "empty.txt").write_text("", "utf-8")
    assert [log for _, log in logs_in(tmp_path, "run.json")] == [None] * 6
