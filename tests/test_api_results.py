"""`Result` and `ComparedResults`: what was found and what is missing, on paper, in notebooks and on the Hub."""

import gc
import json
import math
import re
import shutil
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import qabias
from qabias.benchmarks import load_benchmark
from qabias.cli import app
from qabias.errors import QabiasError
from qabias.runs.arguments import RunArguments
from qabias.runs.run import run as run_benchmark

from .kit.hub import USER, Hub
from .kit.pages import Page


@pytest.fixture(scope="module")
def result():
    return qabias.run("bbq", model="baseline:stereotyped", config="Age", limit=200, progress=False)


@pytest.fixture(scope="module")
def whole():
    return qabias.run("bbq", model="baseline:stereotyped", limit=40, progress=False)


@pytest.fixture(scope="module")
def half_read():
    """Answers of which every third refuses."""
    rows = qabias.load("bbq", "Age", limit=120)
    texts = [row[f"ans{row['label']}"] if number % 3 else "I'm sorry, but no." for number, row in enumerate(rows)]
    return qabias.score(texts, rows, model="<b>one</b> & another")


def printed(*arguments):
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    return result.output


# What was found


def test_what_is_undefined_is_nan_and_has_its_reason():
    result = qabias.run("bbq", model="baseline:unknown", config="Age", limit=40, progress=False)
    assert math.isnan(result.scores["bias_disambig"])
    assert result.reasons["/bias_disambig"] == "no answer other than UNKNOWN"
    assert dict(result.reasons) == json.loads((result.folder / "scores.json").read_text("utf-8"))["reasons"]


def test_outcomes_are_those_of_written_answers_and_nothing_is_made_up(result, half_read):
    assert half_read.outcomes == {
        "answered": 80,
        "refused": 40,
        "truncated": 0,
        "filtered": 0,
        "repeated": 0,
        "unread": 0,
    }
    assert result.outcomes == {}
    assert "40 outputs named no answer" in half_read.sample["Unparsed"]
    assert "0 outputs named no answer" in result.sample["Unparsed"]


def test_it_prints_what_the_command_line_prints(tmp_path):
    result = qabias.run("bbq", model="baseline:random", config="Age", limit=40, output=tmp_path / "r", progress=False)
    sampled, command = printed("score", tmp_path / "r").split("More ")[0].split("\n", 1)
    assert sampled.startswith("Sample: 40 of 3,680 ")
    assert " ".join(str(result).split()) == " ".join(command.split())
    assert "(-33.3 to 33.3)" not in str(result)


# Examples and predictions


def test_examples_are_those_of_the_report_with_their_prompts(result):
    examples = result.examples()
    there = json.loads((result.folder / "analysis.json").read_text("utf-8"))
    assert len(examples) == len(there["examples"]) > 0
    assert list(examples["example_id"]) == [row["example_id"] for row in there["examples"]]
    assert examples["options"].map(len).eq(3).all()
    assert all(row.question in row.prompt for row in examples.itertuples())
    assert examples.attrs["how_chosen"] == there["how_chosen"] != ""


@pytest.mark.parametrize(
    ("benchmark", "arguments"),
    [
        ("bbq", {"config": "Age", "limit": 40}),
        ("bbq", {"config": "Age", "limit": 40, "permutations": 3, "format": "letters"}),
        ("bbnli", {"config": "gender", "limit": 40}),
        ("unqover", {"config": "religion", "limit": 280}),
    ],
)
def test_predictions_are_the_rows_with_the_answers_to_them(benchmark, arguments, tmp_path):
    result = qabias.run(benchmark, model="baseline:random", progress=False, **arguments)
    rows = qabias.load(benchmark, arguments["config"], limit=arguments["limit"])
    found = result.predictions()
    assert found.num_rows == rows.num_rows
    for column in rows.column_names:
        assert list(found[column]) == list(rows[column])
    answers = load_benchmark(benchmark).answer_columns
    assert set(answers) <= set(found.column_names) - set(rows.column_names)
    assert {name: found.features[name] for name in rows.features} == rows.features
    assert found.info.dataset_name == benchmark
    kept = result.save(tmp_path / "kept")
    del result
    assert kept.predictions()[:] == found[:]
    # The same answers, as somebody would have collected them, have the same scores.
    again = qabias.score(found.select_columns([*load_benchmark(benchmark).key, *answers]), rows)
    for name in ("bias_ambig", "bias_score", "bias_score_ambig"):
        if name in kept.scores and benchmark != "unqover":
            assert again.scores[name] == kept.scores[name]


def test_a_set_of_wordings_has_its_rows_once_for_each(tmp_path):
    arguments = RunArguments("bbq", "baseline:random", "Age", limit=8, format="five")
    folder = run_benchmark(arguments, tmp_path / "run").folder
    found = qabias.read(folder).predictions()
    assert len(set(found["run"])) == 5
    assert found.num_rows == 5 * 8
    assert all(isinstance(name, str) for name in found["run"])


def test_predictions_of_answers_that_others_collected_are_the_answered_rows(half_read):
    found = half_read.predictions()
    assert found.num_rows == 120
    assert found["outcome"][:3] == ["refused", "answered", "answered"]
    assert found["prediction"][0] == -1


def test_predictions_find_published_texts_where_the_run_did(upstream, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    given = {"config": "Age", "limit": 40, "source": "release"}
    result = qabias.run("bbq", model="baseline:random", mirror=upstream, progress=False, **given)
    assert result.predictions().num_rows == 40


# Folders


def test_a_temporary_folder_lives_as_long_as_what_is_in_it():
    runs = [
        qabias.run("bbq", model=f"baseline:{kind}", config="Age", limit=40, progress=False)
        for kind in ("random", "stereotyped")
    ]
    folders = [run.folder for run in runs]
    compared = qabias.compare(runs)
    del runs
    gc.collect()
    assert all((folder / "scores.json").exists() for folder in folders)
    assert len(compared.results[0].predictions()) == 40
    del compared
    gc.collect()
    assert not any(folder.parent.exists() for folder in folders)


@pytest.mark.parametrize(
    ("file", "what"), [("compare.html", "a comparison"), ("pool.json", "an average"), ("x", "holds no run")]
)
def test_folders_of_a_comparison_and_of_a_pool_are_told_from_runs(tmp_path, file, what):
    (tmp_path / file).touch()
    with pytest.raises(QabiasError, match=what):
        qabias.read(tmp_path)


# In a notebook


def test_a_card_has_scores_with_intervals_or_ranges_findings_figure_and_signature(result, half_read):
    card = Page(result._repr_html_())
    low, high = (100 * end for end in result.scores["ci"]["bias_ambig"])
    for text in ("+100.0 %", f"95% CI [+{low:.1f}, +{high:.1f}]", result.signature, "200 examples"):
        assert text in card.flat
    assert result.headline in card.flat
    assert result.verdict == "detected"
    assert "svg" in card.tags
    card = Page(half_read._repr_html_())
    assert "33.3 % missing, possible −33.3 to +33.3 %" in card.flat
    assert "95% CI [" not in card.flat
    assert "40 outputs named no answer (33.3 %): 40 refused" in card.flat
    assert "<b>one</b> & another" in card.flat


def test_cards_run_nothing_load_nothing_and_share_no_id_in_one_page(half_read, result):
    cards = [one._repr_html_() for one in (half_read, result, result, qabias.compare([result, result]))]
    assert not any("url(http" in html or "@import" in html for html in cards)
    page = Page("".join(cards))
    assert not set(page.tags) & {"script", "link", "img", "iframe", "b", "object", "embed"}
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    assert not [value for _, name, value in page.attributes if name in ("src", "href") and not value.startswith("#")]
    assert len(page.ids) == len(set(page.ids)) > 0
    referenced = {value[1:] for _, name, value in page.attributes if name == "href"}
    assert referenced | set(re.findall(r"url\(#([^)]+)\)", "".join(cards))) <= set(page.ids)


def test_the_card_of_a_comparison_has_all_runs_and_how_they_differ(compared_runs):
    compared = qabias.compare([compared_runs / f"bbq-{name}" for name in ("random", "stereotyped", "unknown")])
    card = Page(compared._repr_html_())
    assert {"table", "svg"} <= set(card.tags)
    for sentence in (*compared.names, compared.headline, *(run.signature for run in compared.results)):
        assert " ".join(sentence.replace("\u00a0", " ").split()) in card.flat
    assert compared.headline
    assert len(compared.by_run) == 3


# The Hub


@pytest.fixture
def hub(monkeypatch):
    hub = Hub(monkeypatch)
    yield hub
    hub.stop()


MODEL, DATASET = f"{USER}/model", f"{USER}/bbq"


def test_a_plan_is_the_one_of_the_command_line_and_asks_the_hub_nothing(hub, whole):
    plan = whole.push(MODEL, DATASET, sample=True, dry_run=True)
    command = printed("push", "results", whole.folder, "--to", MODEL, "--dataset", DATASET, "--sample", "--dry-run")
    assert command == f"{plan}\ndry run: the Hub was neither asked nor changed\n"
    assert hub.calls == []


def test_results_are_sent_without_asking_and_once(hub, whole):
    hub.create("model", MODEL)
    address = whole.push(MODEL, DATASET, sample=True)
    assert address.endswith(f"/{MODEL}/discussions/1")
    assert whole.push(MODEL, DATASET, sample=True) == address  # nothing to do
    (request,) = hub.repositories["model", MODEL].pull_requests
    assert request.title == "Results on bbq by qabias"
    direct = whole.push(MODEL, DATASET, sample=True, create_pr=False)
    assert "/commit/" in direct
    assert any(path.startswith(".eval_results/") for path in hub.repositories["model", MODEL].files)


def test_a_sample_and_a_missing_model_are_refused(hub, whole):
    with pytest.raises(QabiasError, match="sample"):
        whole.push(MODEL, DATASET)
    with pytest.raises(QabiasError, match="no such model"):
        whole.push(MODEL, DATASET, sample=True)


# What is imported


def test_nothing_heavy_is_imported_before_it_is_used():
    code = (
        "import sys, qabias\n"
        "names = dir(qabias)\n"
        "assert {'run', 'score', 'compare', 'load', 'read', 'Result'} <= set(names)\n"
        "heavy = {'torch', 'transformers', 'datasets', 'evaluate', 'numpy', 'pandas', 'pyarrow'}\n"
        "print(sorted(heavy & set(sys.modules)), sorted(name for name in sys.modules if name.startswith('qabias')))\n"
        "qabias.QabiasError\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert first == "[] ['qabias', 'qabias.support', 'qabias.support.version']"
    assert second == "[]"


def test_saved_results_are_copies(result, tmp_path):
    kept = result.save(tmp_path / "kept")
    assert kept.scores == result.scores
    assert kept.scratch is None
    with pytest.raises(QabiasError, match="exists already"):
        result.save(tmp_path / "kept")
    shutil.rmtree(tmp_path / "kept")
    assert (result.folder / "scores.json").exists()


def test_a_comparison_reads_published_texts_where_its_runs_did(tmp_path, upstream, monkeypatch):
    monkeypatch.delenv("QABIAS_UPSTREAM", raising=False)
    monkeypatch.setenv("QABIAS_OFFLINE", "1")
    monkeypatch.setenv("QABIAS_CACHE", str(tmp_path))
    given = {"config": "Religion", "source": "official", "limit": 8, "mirror": upstream, "progress": False}
    runs = [qabias.run("bbq", model=f"baseline:{kind}", **given) for kind in ("first", "last")]
    assert "difference_bias_ambig" in qabias.compare(runs).tables
