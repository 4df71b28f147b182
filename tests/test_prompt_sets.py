"""A set of prompts: one run asks in every wording, its scores are the means, and the spread stands beside them."""

import io
import json
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

from qabias.benchmarks import load_benchmark
from qabias.benchmarks.base import External
from qabias.benchmarks.bbq.prompts import FIVE, FORMATS
from qabias.comparison import compare
from qabias.errors import QabiasError
from qabias.pooling import pool
from qabias.report.terminal import show_template
from qabias.report.writing import write_report_of
from qabias.runs.arguments import RunArguments
from qabias.runs.collected import collect
from qabias.runs.question import load_examples
from qabias.runs.run import run, score_run
from qabias.tables.terminal import Console

from .kit.pages import read_page
from .test_chat import folders as folders

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]

WORDINGS = [wording.name for wording in FORMATS[FIVE].variants]
SCORES = ("accuracy_ambig", "accuracy_disambig", "bias_ambig", "bias_disambig")


def arguments(model, prompt_format=FIVE, **others):
    return RunArguments("bbq", model, config="Age", format=prompt_format, limit=24, options={"chat": "yes"}, **others)


@pytest.fixture(scope="module")
def runs(folders, tmp_path_factory):
    """One run of the set, and one of every wording by itself."""
    folder = tmp_path_factory.mktemp("runs")
    return {name: run(arguments(folders["chat"], name), folder / name) for name in (FIVE, *WORDINGS)}


def test_the_scores_are_the_means_of_the_runs_of_the_wordings(runs):
    found = runs[FIVE].scores
    assert list(found["wordings"]) == WORDINGS
    by_wording = [runs[name].scores for name in WORDINGS]
    assert len({scores["accuracy_ambig"] for scores in by_wording}) > 1  # else the means would show nothing
    for name in SCORES:
        values = [scores[name] for scores in by_wording]
        assert [of[name] for of in found["wordings"].values()] == values
        assert found[name] == pytest.approx(np.mean(values))
        assert found["spread"][name] == pytest.approx(np.std(values, ddof=1))
    assert found["wordings"]["letters"]["ci"] == runs["letters"].scores["ci"]
    low, high = found["ci"]["accuracy_disambig"]
    assert low <= found["accuracy_disambig"] <= high


def test_the_run_is_the_pool_of_the_runs_of_the_wordings(runs):
    pooled = pool([runs[name].folder for name in WORDINGS])
    for name in SCORES:
        assert runs[FIVE].scores[name] == pytest.approx(pooled.scores[name])
        assert runs[FIVE].scores["ci"][name] == pytest.approx(pooled.scores["ci"][name])


def test_the_folder_says_what_was_asked(runs):
    folder = runs[FIVE].folder
    assert "|format:five@1|" in runs[FIVE].signature
    analysis = json.loads((folder / "analysis.json").read_text(encoding="utf-8"))
    first = analysis["tables"][0]
    assert [column["title"] for column in first["columns"]][1:3] == ["Mean", "Spread"]
    assert [column["title"] for column in first["columns"]][3:] == WORDINGS
    assert any("average of 5 wordings" in note for note in analysis["notes"])
    assert analysis["how_chosen"].endswith("All are of the wording letters.")
    report = read_page(write_report_of(folder))
    assert "mean over 5 wordings" in report.flat
    examples = report.examples
    assert {example["run"] for example in examples} == set(WORDINGS)
    asked = {
        example["run"]: example["prompt"] for example in examples if example["example_id"] == examples[0]["example_id"]
    }
    assert len(set(asked.values())) == len(WORDINGS)
    assert any("Answer with the letter only" in prompt for prompt in asked.values())


def test_a_run_goes_on_where_it_stopped(runs, folders):
    folder = runs[FIVE].folder
    parts = sorted((folder / "predictions").iterdir())
    assert len(parts) == 5
    whole = [pq.read_table(part) for part in parts]
    parts[3].unlink()
    run(arguments(folders["chat"]), folder)
    assert [pq.read_table(part).equals(before) for part, before in zip(parts, whole, strict=True)] == [True] * 5
    again = score_run(folder)
    np.testing.assert_equal(again.scores["wordings"], runs[FIVE].scores["wordings"])


def test_runs_of_a_set_are_compared_by_their_means(runs, folders, tmp_path):
    given = arguments(folders["chat"])
    other = run(replace(given, options={**given.options, "system": "Be brief."}), tmp_path / "brief")
    found = compare([runs[FIVE].folder, other.folder], allow_mixed=True)
    tables = {table.name: table for table in found.analysis.tables if table.name.startswith("difference")}
    assert len(tables) == 9
    for name in (
        *SCORES,
        "abstention_gap",
        "bias_ambig_among_errors",
        "bias_probability_ambig",
        "bias_probability_disambig",
    ):
        (table,) = (table for key, table in tables.items() if key.endswith(name))
        # The last is what would have been found, before it the number of templates and two p-values.
        assert table.rows[0][-5].value == pytest.approx(other.scores[name] - runs[FIVE].scores[name])
    mixed = compare([runs[FIVE].folder, runs["letters"].folder], allow_mixed=True)
    assert not [table for table in mixed.analysis.tables if table.name.startswith("difference") and table.rows]


def test_the_items_of_a_template_are_those_of_one_wording(runs):
    console = Console(file=io.StringIO(), width=200)
    template = load_examples(runs["letters"].arguments).table["template_id"][0].as_py()
    show_template(runs[FIVE].folder, template, console)
    alone = Console(file=io.StringIO(), width=200)
    show_template(runs["letters"].folder, template, alone)
    first, rest = console.file.getvalue().split("\n", 1)
    assert first == "wording letters; the same was asked in 4 others"
    assert rest == alone.file.getvalue()


def test_every_wording_draws_by_itself(tmp_path):
    found = run(RunArguments("bbq", "baseline:random", config="Age", format=FIVE, limit=80), tmp_path / "run")
    assert found.scores["spread"]["accuracy_ambig"] > 0
    facts = load_benchmark("bbq").sample_facts(found.scores)
    assert facts["Sample"].startswith("80 examples (40 ambiguous, 40 disambiguated)")
    assert facts["Sample"].endswith("each asked in 5 wordings")


def test_a_mean_is_not_pooled_again(runs, tmp_path):
    with pytest.raises(QabiasError, match="already an average"):
        pool([runs[FIVE].folder, runs["letters"].folder])


def test_answers_of_others_name_one_wording():
    table = load_benchmark("bbq").load("Age", load_benchmark("bbq").origin("bundled", 0, False))
    given = table.select(["category", "example_id"]).append_column("prediction", table["label"])
    with pytest.raises(QabiasError, match=r"(?s)five is a set.*: letters, letters_task"):
        collect(External(given, "bbq", config="Age", source="bundled", format=FIVE))


def test_a_set_is_asked_in_several_orders(tmp_path):
    found = run(
        RunArguments("bbq", "baseline:oracle", config="Age", format=FIVE, limit=8, permutations=3), tmp_path / "run"
    )
    assert "|format:five@1+orders=3|" in found.signature
    assert found.scores["order_consistency"] == 1
    assert {of["order_consistency"] for of in found.scores["wordings"].values()} == {1}
