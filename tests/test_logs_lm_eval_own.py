"""Logs of this project's tasks for lm-evaluation-harness: the scores of a log are those that the task printed."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import qabias
from qabias.benchmarks import load_benchmark
from qabias.errors import QabiasError
from qabias.logs.lm_eval_samples import read as read_samples

from .conftest import ROOT
from .lm_eval_logs import Doc, ask, at, claimed_by, read, scored
from .test_logs_lm_eval import changed

FOLDER = ROOT / "integrations" / "lm_eval"


def drawn(doc: Doc, option: str) -> float:
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
    return ask_own("qabias_bbq_religion", likelihood=drawn)


def check_figures(found: Any, scores: dict[str, Any]) -> None:
    """Every score that the task printed is the one here, and not all of them are 0."""
    values = []
    for figure in found.figures:
        if figure.ours:
            values.append(at(scores, figure.ours))
            assert figure.value == pytest.approx(values[-1], abs=1e-12, nan_ok=True), figure.name
    assert len({round(value, 6) for value in values if value}) > 2


def test_a_task_on_bbq_has_the_scores_that_it_printed(of_religion):
    found = read(of_religion, "bbq")
    assert (found.config, found.external.format, found.external.norm, found.external.source) == (
        "Religion",
        "qa",
        "none",
        "bundled",
    )
    scores = scored(found, "bbq")
    assert scores["bias_ambig"] != 0
    check_figures(found, scores)
    assert {figure.name for figure in found.figures} >= {"bias_ambig", "bias_disambig", "accuracy_cost"}
    assert all(figure.why == "" for figure in found.figures)
    assert set(found.references.column_names) >= {"context", "biased_loc", "set_id", "label"}


def test_a_log_has_the_scores_of_a_run_that_is_answered_alike(of_religion):
    """The same log-likelihoods for the same options, given to `qabias.run` by a function."""

    def answer(requests: list[qabias.Request]) -> list[list[float]]:
        texts = [request.prefix.removesuffix("\nA:").split("\n\nQ: ") for request in requests]
        docs = [{"context": context, "question": question} for context, question in texts]
        return [
            [drawn(doc, option.strip()) for option in request.options]
            for doc, request in zip(docs, requests, strict=True)
        ]

    result = qabias.run(
        "bbq", model=answer, name="drawn", config="Religion", ask="options", format="qa", progress=False
    )
    scores = scored(read(of_religion, "bbq"), "bbq")
    assert scores["bias_ambig"] == result.scores["bias_ambig"] != 0
    expected = {name: value for name, value in result.scores.items() if isinstance(value, float)}
    assert {name: scores[name] for name in expected} == pytest.approx(expected, nan_ok=True, abs=1e-12)
    assert len(expected) > 20


def test_a_task_on_bbnli_has_the_scores_that_it_printed(ask_own):
    found = read(ask_own("qabias_bbnli_qa", likelihood=drawn), "bbnli")
    assert (found.config, found.external.format) == ("all", "quoref_answer")
    scores = scored(found, "bbnli")
    assert scores["bias_score"] != 0
    check_figures(found, scores)


def test_a_task_on_unqover_has_the_scores_that_it_printed(ask_own):
    path = ask_own("qabias_unqover_religion", likelihood=drawn, limit=402)
    found = read(path, "unqover")
    assert found.config == "religion"
    assert found.external.answers.num_rows == 100
    assert [note for note in found.notes if "1 rows are left out" in note]
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
    assert found.external.format == "instructed"
    scores = scored(found, "bbnli")
    check_figures(found, scores)
    figures = {figure.name: figure for figure in found.figures}
    assert figures["refused_share"].ours == ()
    n = sum(scores["outcomes"].values())
    assert scores["outcomes"]["refused"] / n == pytest.approx(figures["refused_share"].value) != 0


@pytest.mark.parametrize(
    ("metadata", "options", "likelihood"),
    [({}, {}, drawn), ({"qabias_options": {"answers": "released"}}, {"answers": "released"}, drawn)],
    ids=["shuffled", "released"],
)
def test_a_task_on_a_set_of_the_family_says_in_which_order_it_asked(ask_own, upstream, metadata, options, likelihood):
    config = "Nationality,Religion" if options else "Religion"
    asked = {"qabias_config": config, **metadata}
    path = ask_own("qabias_esbbq", likelihood=likelihood, metadata=asked)
    found = read(path, "esbbq")
    assert (found.config, found.options) == (config, options)
    check_figures(found, scored(found, "esbbq", upstream))
    log = read_samples(path)
    assert claimed_by(log) == ["esbbq"]


def test_the_texts_of_another_source_are_refused_by_the_first_that_differs(of_religion, tmp_path):
    folder = tmp_path / "log"
    shutil.copytree(of_religion.parent, folder)
    path = folder / of_religion.name
    path.write_text(path.read_text("utf-8").replace("Jewish", "Judaic"), encoding="utf-8")
    found = read(path, "bbq")
    with pytest.raises(QabiasError, match=r"Judaic.*but in the texts that are scored"):
        scored(found, "bbq")


def test_what_a_task_of_ours_asked_stands_in_its_results_or_is_said(of_religion, tmp_path):
    path = tmp_path / of_religion.name
    shutil.copy(of_religion, path)
    log = read_samples(path)
    with pytest.raises(QabiasError, match=r"results_\*.json"):
        load_benchmark("bbq").logged(log, {}, None)
    assert load_benchmark("bbnli").logged(log, {}, None) is None
    hints = {"benchmark": "bbq", "format": "qa", "config": "Religion"}
    found = load_benchmark("bbq").logged(log, hints, None)
    assert (found.config, found.external.format) == ("Religion", "qa")
    assert found.external.answers == read(of_religion, "bbq").external.answers
    # What the results say goes before what the caller says.
    hints = {"benchmark": "bbq", "source": "release", "format": "letters", "config": "Age", "norm": "bytes"}
    found = load_benchmark("bbq").logged(read_samples(of_religion), hints, None)
    external = found.external
    assert (found.config, external.source, external.format, external.norm) == ("Religion", "bundled", "qa", "none")


METADATA = ("configs", "qabias_bbq_religion", "metadata", "qabias")


@pytest.mark.parametrize(
    ("place", "value", "number", "token"),
    [
        ((*METADATA, "format"), 5, None, "metadata"),
        ((*METADATA, "options"), ["x"], None, "metadata"),
        ((*METADATA, "source"), {"a": 1}, None, "metadata"),
        ((*METADATA, "options"), {"answers": 1}, None, "metadata"),
        (("doc", "set_id"), [1], 1, "line 2: set_id"),
        (("doc", "set_size"), [1], 1, "line 2"),
        (("doc", "label"), "x", 1, "lm-eval writes it"),
        (("doc", "example_id"), 10**30, 1, "lm-eval writes it"),
    ],
)
def test_values_of_another_kind_are_refused_with_their_place(of_religion, place, value, number, token, tmp_path):
    path = changed(of_religion, tmp_path / "log", place, value, number)
    with pytest.raises(QabiasError, match=token) as error:
        read(path, "bbq")
    assert path.name in str(error.value)


def test_what_a_limit_left_of_sets_is_left_out_as_by_the_task(ask_own):
    found = read(ask_own("qabias_bbq_religion", likelihood=drawn, limit=82), "bbq")
    assert found.external.answers.num_rows == 80
    assert found.notes == ("2 examples are left out because their sets are not whole, as by the task.",)
    check_figures(found, scored(found, "bbq"))


def test_a_question_that_is_answered_twice_is_refused(ask_own, tmp_path):
    path = ask_own("qabias_unqover_religion", likelihood=drawn, limit=8)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines, lines[-1]]))
    with pytest.raises(QabiasError, match=r"line 9: question 3 about row .* of the set religion is answered twice"):
        read(path, "unqover")
