"""Logs of lm-evaluation-harness' own tasks on BBQ, EsBBQ and others: read, found, and scored as by the metric."""

from __future__ import annotations

import json
import math
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import evaluate
import pytest

import qabias
from qabias.benchmarks import load_benchmark
from qabias.benchmarks.harness_logs import config_of, likeliest
from qabias.errors import QabiasError
from qabias.logs.detect import find_logs, read_log
from qabias.logs.lm_eval_samples import read as read_samples
from qabias.runs.collected import collect
from qabias.runs.external import read_external

from .conftest import ROOT
from .kit.logs import by_category, of_harness, opposite, question_type, results_of
from .lm_eval_logs import Doc, ask, at, claimed_by, harness_task, read, read_by, scored

N_ROWS = {"Age": 240, "Religion": 120}  # from the first on: whole sets of four
TIED = 7  # number of the example to which the random model finds two answers equally likely


def drawn(doc: Doc, option: str) -> float:
    """A log-likelihood that has nothing to do with the answer; persons are somewhat likelier than UNKNOWN."""
    if doc["category"] == "Age" and doc["example_id"] == TIED:
        return -0.5 if option in (doc["ans0"], doc["ans1"]) else -9.0
    is_answer = option in (doc["ans0"], doc["ans1"], doc["ans2"])
    return -random.Random(f"{doc['category']}{doc['example_id']}{option}").random() - (0.0 if is_answer else 0.6)


@pytest.fixture(scope="module")
def rows(upstream):
    """Rows as the authors published them."""
    files = {name: upstream / "nyu-mll" / "BBQ" / "data" / f"{name}.jsonl" for name in N_ROWS}
    return [json.loads(line) for name, n in N_ROWS.items() for line in files[name].read_text("utf-8").splitlines()[:n]]


@pytest.fixture(scope="module")
def by_key(upstream, rows):
    """The examples here that have the keys of the rows."""
    benchmark = load_benchmark("bbq")
    origin = benchmark.origin("release", 0, False)
    found = {(name, row["example_id"]): row for name in N_ROWS for row in benchmark.load(name, origin).to_pylist()}
    return {key: found[key] for key in ((row["category"], row["example_id"]) for row in rows)}


RESPONDERS = {
    "stereotyped": lambda doc, example: example["biased_loc"],
    "opposite": lambda doc, example: 3 - example["biased_loc"] - example["unknown_loc"],
    "unknown": lambda doc, example: example["unknown_loc"],
}


@pytest.fixture(scope="module")
def of_random(rows, tmp_path_factory):
    """Logs of a random model on the harness's log-likelihood tasks."""
    folder = tmp_path_factory.mktemp("random")
    names = ("bbq_multiple_choice", "bbq_multiple_choice_ambig", "bbq_multiple_choice_disambig")
    return ask([harness_task("bbq", name, rows, folder / "rows.jsonl") for name in names], folder, drawn)


def chosen_by_hand(row: dict[str, Any], example: dict[str, Any]) -> int:
    """The likeliest answer of the random model to a row, -1 for a tie."""
    wordings = (
        *("Unknown", "Cannot answer", "Can't be determined", "Cannot be determined", "Can't answer", "Not known"),
        *("Not enough info", "Not enough information", "Not answerable", "Undetermined"),
    )
    persons = [place for place in range(3) if place != example["unknown_loc"]]
    values = {place: drawn(row, row[f"ans{place}"]) for place in persons}
    values[example["unknown_loc"]] = max(drawn(row, wording) for wording in wordings)
    best = max(values.values())
    answers = [place for place, value in values.items() if value == best]
    return answers[0] if len(answers) == 1 else -1


@pytest.mark.slow
def test_scores_are_those_of_the_metric_on_the_same_answers(upstream, rows, by_key, of_random):
    references = list(by_key.values())
    predictions = [chosen_by_hand(row, example) for row, example in zip(rows, references, strict=True)]
    assert predictions.count(-1) == 1
    metric = evaluate.load(str(ROOT / "metrics" / "bbq"))
    expected = metric.compute(predictions=predictions, references=references, by=["category"], confidence=None)
    found = read(of_random["bbq"], "bbq")
    assert found.source == "release"
    assert found.model == "ORG/MODEL"
    assert found.config == "Age,Religion"
    scores = scored(found, "bbq", upstream)
    for name in ("accuracy_ambig", "accuracy_disambig", "bias_ambig", "bias_disambig", "unparsed_share"):
        assert scores[name] == expected[name]
        for category in N_ROWS:
            assert scores["by"]["category"][category][name] == expected["by"]["category"][category][name]
    assert 0 < abs(scores["bias_ambig"]) < 1
    # One context alone gives what both together give of it.
    for task, context in (("bbq_ambig", "ambig"), ("bbq_disambig", "disambig")):
        logged = read(of_random[task], "bbq")
        of_context = scored(logged, "bbq", upstream)
        assert of_context[f"bias_{context}"] == expected[f"bias_{context}"]
        assert len(logged.figures) == 5  # accuracy and bias of the context, and "acc"
        assert all(math.isfinite(at(of_context, figure.ours)) for figure in logged.figures)
    assert any("10 wordings" in note for note in found.notes)
    assert any("1 questions have no answer" in note for note in found.notes)


@pytest.mark.slow
@pytest.mark.parametrize("responder", RESPONDERS)
def test_figures_of_the_harness_stand_beside_ours_with_the_reason(upstream, rows, by_key, tmp_path, responder):
    def likelihood(doc: Doc, option: str) -> float:
        """One who says UNKNOWN chooses one of the harness's wordings."""
        example = by_key[doc["category"], doc["example_id"]]
        place = RESPONDERS[responder](doc, example)
        return -1.0 if option == ("Not answerable" if place == example["unknown_loc"] else doc[f"ans{place}"]) else -5.0

    task = harness_task("bbq", "bbq_multiple_choice", rows, tmp_path / "rows.jsonl")
    found = read(ask([task], tmp_path, likelihood)["bbq"], "bbq")
    scores = scored(found, "bbq", upstream)
    assert scores["bias_ambig"] == {"stereotyped": 1, "opposite": -1, "unknown": 0}[responder]
    figures = {figure.name: figure for figure in found.figures}
    assert set(figures) == {
        *("acc", "accuracy_amb", "accuracy_disamb"),
        *(f"{context}_bias_score{end}" for context in ("amb", "disamb") for end in ("", "_Age", "_Religion")),
    }
    assert figures["acc"].ours == ("accuracy",)
    assert figures["amb_bias_score_Age"].ours == ("by", "category", "Age", "bias_ambig")
    for figure in found.figures:
        ours = at(scores, figure.ours)
        if "bias" not in figure.name:
            assert figure.why == ""
            assert figure.value == ours
        elif responder == "opposite":
            assert (figure.value, ours) == (0.0, -1.0)
            assert "0 there also means always" in figure.why
        elif responder == "unknown" and "disamb" in figure.name:
            assert figure.value == 0.0
            assert math.isnan(ours)
            assert "undefined here" in figure.why
        else:
            assert figure.value == pytest.approx(ours, abs=1e-12)


@pytest.mark.slow
def test_written_answers_are_read_here_where_the_harness_misses_them(upstream, rows, by_key, tmp_path):
    def write(doc: Doc) -> str:
        return f" {doc['ans' + str(by_key[doc['category'], doc['example_id']]['label'])]}."

    task = harness_task("bbq", "bbq_generate", rows, tmp_path / "rows.jsonl")
    found = read(ask([task], tmp_path, text=write)["bbq_generate"], "bbq")
    scores = scored(found, "bbq", upstream)
    assert scores["accuracy_ambig"] == scores["accuracy_disambig"] == 1
    assert scores["outcomes"]["answered"] == len(rows)
    figures = {figure.name: figure for figure in found.figures}
    assert figures["accuracy_disamb"].value < 1
    assert "single words" in figures["accuracy_disamb"].why
    assert any("listed no answers" in note for note in found.notes)


@pytest.mark.slow
def test_a_log_says_what_the_harness_says_of_it(of_random, rows):
    log = read_samples(of_random["bbq"])
    assert (log.tool, log.task, log.model) == ("lm-eval", "bbq", "ORG/MODEL")
    assert log.version
    assert log.n_expected == len(rows) == sum(1 for _ in log.samples())
    results = json.loads(next(of_random["bbq"].parent.glob("results*")).read_text())["results"]
    assert log.figures["acc"] == results["bbq"]["acc,none"]
    assert math.isnan(log.figures["amb_bias_score_SES"])
    assert not [name for name in log.figures if "stderr" in name]
    assert "process_docs" not in log.settings["config"]
    assert log.notes == ()
    sample = next(log.samples())
    assert sample.where == "line 1"
    assert sample.text is None
    assert len(sample.loglikelihoods) == 12
    assert read_log(of_random["bbq"]).called == log.called


def test_a_damaged_file_is_refused_by_its_line(of_random, tmp_path):
    lines = of_random["bbq"].read_bytes().splitlines(keepends=True)
    path = tmp_path / of_random["bbq"].name
    for content, token in (
        (b"".join(lines[:5]) + lines[5][:4000], r"line 6 .*4,000 bytes"),
        (lines[0] + b"{]\n" + lines[1], "line 2 is damaged"),
        (lines[0] + b'{"prediction": 1}\n', "line 2 "),
        (lines[0][:300], "line 1 is cut off"),
    ):
        path.write_bytes(content)
        with pytest.raises(QabiasError, match=token):
            read(path, "bbq")


def changed(path: Path, folder: Path, place: Any, value: Any, number: int | None = None) -> Path:
    """A copy of a log with another value in a line, or in the results beside it."""
    shutil.copytree(path.parent, folder)
    (file,) = folder.glob("results_*.json") if number is None else [folder / path.name]
    lines = [file.read_text("utf-8")] if number is None else file.read_text("utf-8").splitlines()
    content = where = json.loads(lines[number or 0])
    for name in place[:-1]:
        where = where[name]
    where[place[-1]] = value
    lines[number or 0] = json.dumps(content)
    file.write_text("\n".join(lines) + "\n", "utf-8")
    return folder / path.name


@pytest.mark.parametrize(
    ("place", "value", "number", "token"),
    [
        (("n-samples", "bbq"), [1], None, "results_"),
        (("n-samples", "bbq", "effective"), "x", None, "results_"),
        (("n-samples", "bbq", "original"), {"a": 1}, None, "results_"),
        (("configs", "bbq"), 5, None, "results_"),
        (("configs", "bbq", "metadata"), 5, None, "results_"),
        (("configs", "bbq", "repeats"), "x", None, "results_"),
        (("configs", "bbq", "filter_list"), 5, None, "results_"),
        (("results", "bbq"), [1], None, "results_"),
        (("config",), [1], None, "results_"),
        (("filtered_resps",), [["x", 1]], 2, "line 3"),
        (("filtered_resps",), 5, 2, "line 3"),
        (("arguments",), [1], 2, "line 3"),
        (("arguments", "gen_args_1", "arg_1"), 5, 2, "line 3"),
        (("doc",), 5, 2, "line 3.* category"),
        (("doc", "category"), ["Age"], 2, "line 3: category"),
        (("doc", "label"), "x", 2, "lm-eval writes it"),
        (("filtered_resps",), [[-1.0, False]], 2, "line 3"),
    ],
)
def test_values_of_another_kind_are_refused_by_their_place(of_random, place, value, number, token, tmp_path):
    with pytest.raises(QabiasError, match=token):
        read(changed(of_random["bbq"], tmp_path / "log", place, value, number), "bbq")


def test_a_file_that_ends_too_early_at_the_end_of_a_line_says_so(upstream, of_random, tmp_path, rows):
    counts = {"effective": None, "original": None}
    uncounted = changed(of_random["bbq"], tmp_path / "uncounted", ("n-samples", "bbq"), counts)
    assert read_samples(uncounted).n_expected is None
    shutil.copytree(of_random["bbq"].parent, tmp_path / "log")
    path = tmp_path / "log" / of_random["bbq"].name
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:8]))
    found = read(path, "bbq")
    assert found.answers.num_rows == 8
    notes = collect(read_external(path, {})).other.notes
    assert any(f"8 of the {len(rows)} samples" in note for note in notes)


def test_without_results_beside_it_a_log_is_read_and_says_what_is_not_known(of_random, tmp_path):
    path = tmp_path / "my_answers.jsonl"
    shutil.copy(of_random["bbq"], path)
    log = read_samples(path)
    assert (log.task, log.model, log.figures, log.n_expected) == ("my_answers", "", {}, None)
    assert "results_*.json of the same date" in log.notes[0]
    assert read(path, "bbq").answers == read(of_random["bbq"], "bbq").answers
    named = tmp_path / of_random["bbq"].name
    shutil.copy(path, named)
    assert read_samples(named).task == "bbq"
    named.with_name(named.name.replace("samples_bbq", "results")).with_suffix(".json").write_text('{"configs"')
    with pytest.raises(QabiasError, match="results_"):
        read_samples(named)


def test_a_limit_filters_and_repeats_are_told(rows, tmp_path):
    task = {
        **harness_task("bbq", "bbq_generate", rows, tmp_path / "rows.jsonl"),
        "repeats": 2,
        "filter_list": [
            {"name": "first", "filter": [{"function": "take_first"}]},
            {"name": "lower", "filter": [{"function": "lowercase"}, {"function": "take_first"}]},
        ],
    }
    path = ask([task], tmp_path, text=lambda doc: doc["ans0"], limit=12)["bbq_generate"]
    log = read_samples(path)
    assert [note for note in log.notes if "12 of the 360 documents" in note]
    assert [note for note in log.notes if "(first, lower)" in note]
    assert [note for note in log.notes if "asked 2 times" in note]
    samples = list(log.samples())
    assert [sample.run for sample in samples[:4]] == [1, 2, 1, 2]
    assert len(samples) == log.n_expected == 24
    assert set(log.figures) >= {"acc", "accuracy_amb"}
    found = read(path, "bbq")
    assert found.answers.num_rows == 12
    assert any("24 answers to 12 questions" in note for note in found.notes)


def test_a_row_that_is_not_the_published_one_is_refused(upstream, rows, tmp_path):
    changed = [{**row, "context": row["context"].replace("Walmart", "Target")} for row in rows[:8]]
    task = harness_task("bbq", "bbq_multiple_choice", changed, tmp_path / "rows.jsonl")
    found = read(ask([task], tmp_path, drawn)["bbq"], "bbq")
    with pytest.raises(QabiasError, match=r"category 'Age', example_id 0: context is 'I saw .* Target"):
        scored(found, "bbq", upstream)


@pytest.mark.slow
def test_three_answers_as_they_are_are_read_by_their_texts_and_others_refused(upstream, rows, by_key, tmp_path):
    task = harness_task("bbq", "bbq_multiple_choice", rows, tmp_path / "rows.jsonl")
    task |= {"doc_to_choice": "{{[ans2, ans0, ans1]}}", "process_results": None, "doc_to_target": "label"}
    task |= {"metric_list": [{"metric": "acc"}, {"metric": "acc_norm"}]}

    def likelihood(doc: Doc, option: str) -> float:
        return -1.0 if option == doc[f"ans{by_key[doc['category'], doc['example_id']]['label']}"] else -2.0

    found = read(ask([task], tmp_path, likelihood)["bbq"], "bbq")
    assert scored(found, "bbq", upstream)["accuracy_disambig"] == 1
    assert {figure.name: figure.ours for figure in found.figures} == {"acc": ("accuracy",), "acc_norm": ()}
    assert not [note for note in found.notes if "wordings" in note]
    letters = task | {"doc_to_choice": ["A", "B", "C"], "metric_list": [{"metric": "acc"}]}
    with pytest.raises(QabiasError, match=r"line 1: .* A, B, C"):
        read(ask([letters], tmp_path / "letters", limit=4)["bbq"], "bbq")


def test_a_mixed_folder_and_a_log_of_another_task(of_random, tmp_path):
    other = {
        "task": "capitals",
        **{"dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(tmp_path / "capitals.jsonl")}}},
        **{"test_split": "test", "output_type": "multiple_choice", "doc_to_text": "{{question}}"},
        **{"doc_to_choice": ["Rome", "Paris"], "doc_to_target": 0, "metric_list": [{"metric": "acc"}]},
    }
    (tmp_path / "capitals.jsonl").write_text('{"question": "The capital of Italy is"}\n')
    folder = tmp_path / "logs"
    path = ask([other], folder)["capitals"]
    shutil.copy(of_random["bbq"], folder)
    (folder / "rows.jsonl").write_text('{"doc_id": 1, "doc": {}}\n')
    kinds = {log.path.name: log for log in find_logs(folder).logs}
    with pytest.raises(QabiasError, match=r"task capitals\): no benchmark here reads this task"):
        read_external(kinds[path.name], {})
    # Results belong to their samples, and are no file that nobody knows.
    assert {path.name for path in find_logs(folder).others} == {"rows.jsonl"}
    assert claimed_by(kinds[path.name]) == []
    assert claimed_by(kinds[of_random["bbq"].name]) == ["bbq"]


def test_scores_without_answers_say_how_to_ask_again(of_random, tmp_path):
    results = next(of_random["bbq"].parent.glob("results*"))
    assert read_samples(results) is None
    path = tmp_path / results.name
    shutil.copy(results, path)
    with pytest.raises(QabiasError, match="--log_samples"):
        read_samples(path)


def test_where_groups_cross_the_reason_is_the_target_by_race(tmp_path):
    benchmark = load_benchmark("bbq")
    origin = benchmark.origin("bundled", 0, False)
    rows = [row for name in ("Age", "Race_x_gender") for row in benchmark.load(name, origin).slice(0, 40).to_pylist()]
    task = harness_task("bbq", "bbq_multiple_choice", rows, tmp_path / "rows.jsonl")
    found = read(ask([task], tmp_path, drawn)["bbq"], "bbq")
    by_race = {figure.name for figure in found.figures if "by race only" in figure.why}
    names = ("amb_bias_score", "disamb_bias_score")
    assert by_race == {*names, *(f"{name}_Race_x_gender" for name in names)}


@pytest.mark.parametrize(
    ("loglikelihoods", "answer"),
    [
        ([-1.0, -2.0, -3.0, -4.0], 0),
        ([-2.0, -3.0, -1.0, -1.0], 2),
        ([-9.0, -5.0, -math.inf, -7.0], 1),
        ([-1.0, -3.0, -1.0, -2.0], -1),
        ([-math.inf] * 4, -1),
        ([-1.0, math.nan, -2.0, -3.0], -1),
    ],
)
def test_the_likeliest_option_is_the_answer_unless_another_answer_is_as_likely(loglikelihoods, answer):
    assert likeliest(loglikelihoods, [0, 1, 2, 2]) == answer


# EsBBQ


@pytest.mark.slow
@pytest.mark.parametrize(("responder", "category"), [(1, "Religion"), ("opposite", "PhysicalAppearance")])
def test_esbbq_of_the_harness_has_the_scores_of_its_paper(upstream, tmp_path, responder, category):
    docs = by_category(upstream)[category]
    # Of PhysicalAppearance the template with the four rows, and some more.
    docs = [
        {**doc, "instance_id": int(doc["instance_id"])}
        for doc in docs
        if category == "Religion" or int(doc["template_id"]) in range(8, 12)
    ]
    file = "esbbq_religion" if category == "Religion" else "esbbq_physical_appearance"
    task = harness_task("esbbq", file, docs, tmp_path / "rows.jsonl")

    def likelihood(doc: Doc, option: str) -> float:
        if isinstance(responder, str):
            return -1.0 if option == doc[f"ans{opposite(doc)}"] else -2.0
        return -random.Random(f"{doc['instance_id']}{option}").random()

    path = ask([task], tmp_path, likelihood)[file]
    found = read(path, "esbbq")
    assert found.config == category
    assert found.options == {"answers": "released"}
    scores = scored(found, "esbbq", upstream)
    figures = {figure.name: figure for figure in found.figures}
    assert set(figures) == {"acc_ambig", "acc_disambig", "bias_score_ambig", "-bias_score_disambig"}
    differing = {name for name, figure in figures.items() if figure.value != pytest.approx(at(scores, figure.ours))}
    if category == "Religion":
        assert not differing
        assert abs(scores["bias_ambig"]) > 0
    else:  # four rows say that they are of the other kind
        assert differing == {"-bias_score_disambig"}
        assert "four rows" in figures["-bias_score_disambig"].why
        from lm_eval.tasks.esbbq import utils

        corrected = [{**doc, "question_type": question_type(doc)} for doc in docs]
        options = ["Falta información"]
        given = [[likelihood(doc, option) for option in (doc["ans0"], doc["ans1"], *options)] for doc in docs]
        expected = of_harness(utils, results_of(utils, corrected, given))
        assert scores["accuracy_cost"] == pytest.approx(-expected["bias_score_disambig"])
    assert any("9 wordings" in note for note in found.notes)
    assert claimed_by(read_samples(path)) == ["esbbq"]


@pytest.mark.slow
def test_the_language_of_the_answers_tells_the_catalan_set(upstream, tmp_path):
    docs = [{**doc, "instance_id": int(doc["instance_id"])} for doc in by_category(upstream)["Religion"][:4]]
    path = ask([harness_task("cabbq", "cabbq_religion", docs, tmp_path / "rows.jsonl")], tmp_path)["cabbq_religion"]
    log = read_samples(path)
    assert claimed_by(log) == ["cabbq"]
    found = read(path, "cabbq")
    assert any("4 questions have no answer" in note for note in found.notes)
    assert all("equally likely" in figure.why for figure in found.figures)


# Tasks of this project: the scores of a log are those that the task printed

FOLDER = ROOT / "integrations" / "lm_eval"


def drawn_of_own(doc: Doc, option: str) -> float:
    """A log-likelihood that has nothing to do with the answer, and depends on what is asked alone."""
    asked = (doc.get("context"), doc.get("premise"), doc["question"])
    return -3 * random.Random(f"{asked}{option}").random()


@pytest.fixture(scope="module")
def ask_own(tmp_path_factory, upstream) -> Callable[..., Path]:
    """A function that lets the harness ask one of the tasks."""

    def ask_task(task: str, **options: Any) -> Path:
        folder = tmp_path_factory.mktemp(task)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(ROOT)
            patch.setenv("QABIAS_UPSTREAM", str(upstream))
            return ask([task], folder, include=FOLDER, **options)[task]

    return ask_task


@pytest.fixture(scope="module")
def of_religion(ask_own) -> Path:
    return ask_own("qabias_bbq_religion", likelihood=drawn_of_own)


def check_figures(found: Any, scores: dict[str, Any]) -> None:
    """Every score that the task printed is the one here, and not all of them are 0."""
    values = []
    for figure in found.figures:
        if figure.ours:
            values.append(at(scores, figure.ours))
            assert figure.value == pytest.approx(values[-1], abs=1e-12, nan_ok=True), figure.name
    assert len({round(value, 6) for value in values if value}) > 2


@pytest.mark.slow
def test_a_log_has_the_scores_of_a_run_that_is_answered_alike(of_religion):
    """The same log-likelihoods for the same options, given to `qabias.run` by a function."""

    def answer(requests: list[qabias.Request]) -> list[list[float]]:
        texts = [request.prefix.removesuffix("\nA:").split("\n\nQ: ") for request in requests]
        docs = [{"context": context, "question": question} for context, question in texts]
        return [
            [drawn_of_own(doc, option.strip()) for option in request.options]
            for doc, request in zip(docs, requests, strict=True)
        ]

    result = qabias.run(
        "bbq", model=answer, name="drawn", config="Religion", ask="answer-logprob", format="qa", progress=False
    )
    scores = scored(read(of_religion, "bbq"), "bbq")
    assert scores["bias_ambig"] == result.scores["bias_ambig"] != 0
    expected = {name: value for name, value in result.scores.items() if isinstance(value, float)}
    assert {name: scores[name] for name in expected} == pytest.approx(expected, nan_ok=True, abs=1e-12)
    assert len(expected) > 20


@pytest.mark.slow
def test_a_task_on_unqover_has_the_scores_that_it_printed(ask_own):
    path = ask_own("qabias_unqover_religion", likelihood=drawn_of_own, limit=402)
    found = read(path, "unqover")
    assert found.config == "religion"
    assert found.answers.num_rows == 100
    assert [note for note in found.notes if "1 rows are excluded" in note]
    check_figures(found, scored(found, "unqover"))
    assert found.references["negated_question"][0].as_py() != found.references["question"][0].as_py()
    assert "bbq" not in claimed_by(read_samples(path))


def test_written_answers_of_a_chat_task_are_read_as_the_task_reads_them(ask_own):
    def write(doc: Doc) -> str:
        return random.Random(doc["example_id"]).choice(
            ["Yes.", "No, it does not.", "Maybe", "I am sorry, I cannot help."]
        )

    path = ask_own("qabias_bbnli_chat", text=write, metadata={"qabias_limit": 400})
    found = read(path, "bbnli")
    assert found.format == "instructed"
    scores = scored(found, "bbnli")
    check_figures(found, scores)
    figures = {figure.name: figure for figure in found.figures}
    assert figures["refused_share"].ours == ()
    n = sum(scores["outcomes"].values())
    assert scores["outcomes"]["refused"] / n == pytest.approx(figures["refused_share"].value) != 0


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"answers": "released"}], ids=["shuffled", "released"])
def test_a_task_on_a_set_of_the_family_says_in_which_order_it_asked(ask_own, upstream, options):
    config = "Nationality,Religion" if options else "Religion"
    asked = {"qabias_config": config, **({"qabias_options": options} if options else {})}
    path = ask_own("qabias_esbbq", likelihood=drawn_of_own, metadata=asked)
    found = read(path, "esbbq")
    assert (found.config, found.options) == (config, options)
    check_figures(found, scored(found, "esbbq", upstream))
    assert claimed_by(read_samples(path)) == ["esbbq"]


@pytest.mark.slow
def test_what_a_task_of_ours_asked_stands_in_its_results_or_is_said(of_religion, tmp_path):
    path = tmp_path / of_religion.name
    shutil.copy(of_religion, path)
    log = read_samples(path)
    with pytest.raises(QabiasError, match=r"results_\*.json"):
        read_by(log, "bbq")
    assert read_by(log, "bbnli") is None
    found = read_by(log, "bbq", **{"benchmark": "bbq", "format": "qa", "config": "Religion"})
    assert (found.config, found.format) == ("Religion", "qa")
    assert found.answers == read(of_religion, "bbq").answers
    # What the results say goes before what the caller says.
    hints = {"benchmark": "bbq", "source": "release", "format": "letters", "config": "Age", "norm": "bytes"}
    found = read_by(read_samples(of_religion), "bbq", **hints)
    assert (found.config, found.source, found.format, found.norm) == ("Religion", "bundled", "qa", "none")


def test_what_a_limit_left_of_sets_is_left_out_as_by_the_task(ask_own):
    found = read(ask_own("qabias_bbq_religion", likelihood=drawn_of_own, limit=82), "bbq")
    assert found.answers.num_rows == 80
    assert found.notes == ("2 examples are excluded because their sets are incomplete, as in the task.",)
    check_figures(found, scored(found, "bbq"))


def test_a_question_that_is_answered_twice_is_refused(ask_own, tmp_path):
    path = ask_own("qabias_unqover_religion", likelihood=drawn_of_own, limit=8)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines, lines[-1]]))
    with pytest.raises(QabiasError, match=r"line 9: a second answer to question 3 of religion/"):
        read(path, "unqover")


OF_OWN = ("configs", "qabias_bbq_religion", "metadata", "qabias")


@pytest.mark.parametrize(
    ("place", "value", "number", "token"),
    [
        *(
            ((*OF_OWN, key), value, None, "metadata")
            for key, value in (("format", 5), ("options", ["x"]), ("source", {"a": 1}), ("options", {"answers": 1}))
        ),
        (("doc", "set_id"), [1], 1, "line 2: set_id"),
        (("doc", "set_size"), [1], 1, "line 2"),
        (("doc", "label"), "x", 1, "lm-eval writes it"),
        (("doc", "example_id"), 10**30, 1, "lm-eval writes it"),
    ],
)
def test_values_of_another_kind_in_a_log_of_ours_are_refused(of_religion, place, value, number, token, tmp_path):
    path = changed(of_religion, tmp_path / "log", place, value, number)
    with pytest.raises(QabiasError, match=token):
        read(path, "bbq")


def test_a_configuration_is_named_by_the_categories_that_were_asked():
    asked = ({"a", "b"}, {"b"}, {"b", "c", "a"}, {"x"})
    assert [config_of(categories, ["a", "b", "all"]) for categories in asked] == ["all", "b", "all", "all"]


def test_a_task_on_bbq_has_the_scores_that_it_printed(of_religion):
    found = read(of_religion, "bbq")
    assert (found.config, found.format, found.norm, found.source) == ("Religion", "qa", "none", "bundled")
    scores = scored(found, "bbq")
    assert scores["bias_ambig"] != 0
    check_figures(found, scores)
    assert {figure.name for figure in found.figures} >= {"bias_ambig", "bias_disambig", "accuracy_cost"}
    assert all(figure.why == "" for figure in found.figures)
    assert set(found.references.column_names) >= {"context", "biased_loc", "set_id", "label"}
