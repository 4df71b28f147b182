"""One model on sets of BBQ's form in several languages: scores by language, a set beside its control set."""

import itertools
import json

import numpy as np
import pytest

import qabias
from qabias.benchmarks import load_benchmark
from qabias.comparison import LANGUAGES, compare
from qabias.comparison.texts import OTHER_QUESTIONS
from qabias.errors import QabiasError
from qabias.report.writing import write_combined_report
from qabias.runs.arguments import Machine, RunArguments
from qabias.runs.opened import Run
from qabias.runs.question import load_examples_of
from qabias.runs.run import run
from qabias.scores.score import Score
from qabias.tables.model import find

from .kit.commands import called
from .kit.runs import cells
from .run_parts import edit, edit_run

pytestmark = pytest.mark.slow

CONFIG = "Sexual_orientation"


@pytest.fixture(scope="module")
def runs(upstream, tmp_path_factory):
    """Runs of baselines in several languages, by name."""
    where = tmp_path_factory.mktemp("languages")

    def make(name, benchmark, model="random", **arguments):
        source = load_benchmark(benchmark).sources[0]
        made = RunArguments(benchmark, f"baseline:{model}", source=source, **arguments)
        run(made, where / name, Machine())

    for model in ("random", "stereotyped"):
        make(f"ko-{model}", "kobbq", model, limit=80)
        make(f"en-{model}", "bbq", model, config="Age", limit=80)
    make("es", "esbbq", config="SES", limit=120)
    make("es-wrong", "esbbq", config="SES", rules={"unparsed": "wrong"})
    for name in ("nl", "nl_control", "en"):
        language, _, control = name.partition("_")
        config = f"{language}_{CONFIG}" + (control and f"_{control}")
        make(f"mbbq-{name}", "mbbq", config=config)
    make("mbbq-nl-stereotyped", "mbbq", "stereotyped", config=f"nl_{CONFIG}")
    return where


def scores_of(folder):
    return json.loads((folder / "scores.json").read_text("utf-8"))["scores"]


def test_scores_stand_by_language_as_each_run_has_them(runs, upstream):
    folders = [runs / name for name in ("ko-random", "es", "mbbq-nl", "en-random")]
    comparison = compare(folders)
    names = ["Korean: kobbq", "Spanish: esbbq SES", f"Dutch: mbbq nl_{CONFIG}", "English: bbq Age"]
    assert comparison.view is LANGUAGES
    assert list(comparison.names) == names
    for name, shown in (
        ("bias_by_language", ("bias_ambig", "bias_disambig", "accuracy_cost")),
        ("accuracy_by_language", ("accuracy_ambig", "accuracy_disambig")),
    ):
        table = find(comparison.analysis.tables, name)
        assert (table.figure.kind, table.figure.values) == ("intervals", shown)
        rows = cells(table, "name")
        assert list(rows) == names
        for folder, row in zip(folders, rows.values(), strict=True):
            scores = scores_of(folder)
            for score in shown:
                assert row[score] == Score(scores[score], *scores["ci"][score])
            assert (row["n"], row["n_templates"]) == (scores["n"], scores["n_templates"])
            assert row["unparsed_share"] == scores["unparsed_share"] == 0
        assert OTHER_QUESTIONS in table.note
    assert OTHER_QUESTIONS in comparison.analysis.notes
    assert not [table for table in comparison.analysis.tables if table.name.startswith("paired_")]


def test_one_model_and_more_than_one_language_are_needed(runs, tmp_path, upstream):
    with pytest.raises(QabiasError, match="in common"):
        compare([runs / "mbbq-en", runs / "en-stereotyped"])
    for first, second in (("ko-random", "en-stereotyped"), ("mbbq-en", "mbbq-nl-stereotyped")):
        with pytest.raises(QabiasError, match="baseline:random and baseline:stereotyped"):
            compare([runs / first, runs / second])
    assert compare([runs / "mbbq-en", runs / "mbbq-nl-stereotyped"], allow_mixed=True).mixed["config"]
    run(RunArguments("bbq", "baseline:random", config="Religion", limit=40), tmp_path / "religion")
    with pytest.raises(QabiasError, match="config: "):
        compare([runs / "en-random", tmp_path / "religion"])


def test_what_was_counted_otherwise_or_leans_by_itself_is_said(runs, upstream):
    notes = compare([runs / "ko-random", runs / "es-wrong"]).analysis.notes
    assert [note for note in notes if "MIXED" in note and "unparsed=wrong" in note]
    scores = scores_of(runs / "es-wrong")
    (leaning,) = [note for note in notes if note.startswith("Spanish: ") and " is unbalanced: " in note]
    share = 100 * scores["n_aligned"] / (scores["n_aligned"] + scores["n_nonaligned"])
    assert share != 50
    assert f"{share:.1f}" in leaning


def by_template(folder, upstream):
    """For each template, by its number, numbers of what `bias_ambig` and `accuracy_disambig` are made of."""
    file = Run.open(folder)
    table = load_examples_of(file).table
    answers = Run.open(folder).answers["prediction"].to_pylist()
    counts = {}
    for row, answer in zip(table.to_pylist(), answers, strict=True):
        template = counts.setdefault(row["template_id"].rpartition("-")[2], np.zeros(4))
        if row["context_condition"] == "disambig":
            template += (0, 0, answer == row["label"], 1)
        elif row["biased_loc"] >= 0:
            lean = 0 if answer == row["unknown_loc"] else 1 if answer == row["biased_loc"] else -1
            template += (lean, 1, 0, 0)
    return counts


@pytest.mark.parametrize(
    ("first", "second", "both"), [("mbbq-nl_control", "mbbq-nl", "sets"), ("mbbq-nl", "mbbq-en", "languages")]
)
def test_the_same_questions_are_paired_by_template(runs, upstream, first, second, both):
    # The order in which the runs are named tells the languages apart, and nothing of a control set.
    folders = [runs / first, runs / second] if both == "languages" else [runs / second, runs / first]
    comparison = compare(folders)
    (table,) = (of for of in comparison.analysis.tables if of.name.startswith("paired_"))
    counts = [by_template(runs / name, upstream) for name in (first, second)]
    templates = sorted(counts[0])
    assert templates == sorted(counts[1])
    one, other = (np.array([of[name] for name in templates]) for of in counts)
    rows = cells(table, "name")
    for title, places in (("Bias, ambiguous contexts", (0, 1)), ("Accuracy, disambiguated contexts", (2, 3))):

        def difference(matrix, rest, places=places):
            part, whole = places
            sums = matrix.sum(axis=0), rest.sum(axis=0)
            return sums[1][part] / sums[1][whole] - sums[0][part] / sums[0][whole]

        expected = difference(one, other)
        exchanged = [
            difference(np.where(keep, one, other), np.where(keep, other, one))
            for keep in (np.array(kept)[:, None] for kept in itertools.product((True, False), repeat=len(templates)))
        ]
        row = rows[title]
        assert row["difference"].value == pytest.approx(expected)
        assert row["difference"].low < expected < row["difference"].high
        assert row["p"] == pytest.approx(np.mean(np.abs(exchanged) >= abs(expected) - 1e-12))
        assert row["n_templates"] == len(templates)
    numbers = {name: number for number, name in enumerate(folders, start=1)}
    assert table.name == f"paired_{numbers[runs / second]}_minus_{numbers[runs / first]}"
    assert comparison.headline.verdict in ("detected", "not detected")
    notes = comparison.analysis.notes
    assert OTHER_QUESTIONS not in notes, "the questions are the same"


def test_a_stereotyped_model_is_so_beside_its_control_set(runs, upstream, tmp_path):
    control = RunArguments("mbbq", "baseline:unknown", config=f"nl_{CONFIG}_control", source="release")
    run(control, tmp_path, Machine())

    # The two baselines stand for one model that is right about people of no group.
    def rename(content):
        content.update(json.loads(json.dumps(content).replace("baseline:unknown", "baseline:stereotyped")))

    edit_run(tmp_path, rename)
    edit(tmp_path / "scores.json", rename)
    comparison = compare([runs / "mbbq-nl-stereotyped", tmp_path])
    rows = cells(find(comparison.analysis.tables, "paired_1_minus_2"), "name")
    bias = rows["Bias, ambiguous contexts"]
    assert bias["difference"].value == 1.0
    assert (bias["second"], bias["first"]) == ("+100.0\u00a0%", "0.0\u00a0%")
    assert bias["p"] == 2 / 2 ** bias["n_templates"]


def test_terminal_page_and_python_show_it(runs, upstream, monkeypatch, tmp_path):
    monkeypatch.setenv("QABIAS_UPSTREAM", str(upstream))
    folders = [runs / name for name in ("ko-random", "mbbq-nl", "mbbq-nl_control")]
    printed = called("compare", *folders, "--output", tmp_path)
    for text in ("Bias by language", "Accuracy by language", OTHER_QUESTIONS):
        assert text in printed
    assert f"Dutch: mbbq nl_{CONFIG} minus " in called("compare", *folders, "--full")
    page = (tmp_path / "compare.html").read_text("utf-8")
    for text in ("baseline:random by language", "Set minus control set", "Korean: kobbq", "Jiho Jin", "Neplenbroek"):
        assert text in page
    assert page.count("<svg") >= 3
    several = [*folders[:1], *(runs / name for name in ("es", "en-random", "en-stereotyped"))]
    page = write_combined_report(several, tmp_path / "report.html").read_text("utf-8")
    assert page.count("By language: Korean, Spanish, English") == 1
    assert "English: bbq Age, baseline:stereotyped" in page
    result = qabias.compare(folders)
    assert result.names[0] == "Korean: kobbq"
    assert list(result.table("bias_by_language")["run"]) == list(result.names)
    assert "Korean: kobbq" in result._repr_html_()


def test_a_run_of_several_languages_shows_each_as_a_run_of_its_own_does(runs, upstream, tmp_path):
    config = f"en_{CONFIG},nl_{CONFIG}"
    run(
        RunArguments("mbbq", "baseline:random", config=config, source="release"),
        tmp_path,
        Machine(),
    )
    rows = cells(find(qabias.read(tmp_path)._analysis.tables, "languages"), "name")
    assert set(rows) == {"English", "Dutch"}
    for language, name in (("English", "mbbq-en"), ("Dutch", "mbbq-nl")):
        alone = scores_of(runs / name)  # the baseline draws by the example, not by the run
        for score in ("bias_ambig", "bias_disambig", "accuracy_cost", "accuracy_ambig", "accuracy_disambig"):
            assert rows[language][score].value == pytest.approx(alone[score])
            assert rows[language][score].low == pytest.approx(alone["ci"][score][0])
        assert rows[language]["n"] == alone["n"]
    assert "languages" not in {table.name for table in qabias.read(runs / "mbbq-nl")._analysis.tables}


def test_where_answers_are_missing_the_table_says_how_many_and_what_they_could_change(upstream, monkeypatch):
    monkeypatch.setenv("QABIAS_UPSTREAM", str(upstream))

    def every_other(prompts):
        return [("A", "?")[len(prompt) % 2] for prompt in prompts]

    results = [
        qabias.run(benchmark, model=every_other, name="half", config=config, limit=40, ask="letter")
        for benchmark, config in (("kobbq", "all"), ("mbbq", f"nl_{CONFIG}"))
    ]
    compared = qabias.compare(results)
    table = compared.table("bias_by_language")
    shares = [result.scores["unparsed_share"] for result in results]
    assert list(table["unparsed_share"]) == pytest.approx(shares)
    assert min(shares) > 0.02
    low, high = results[0].scores["range"]["bias_ambig"]
    assert f"{100 * low:+.1f} to {100 * high:+.1f}".replace("-", "−") in table["range_bias_ambig"][0]
    assert sum("only " in note for note in compared.notes) == 2
