"""A benchmark and a scorer of other packages work with every command, and nothing in `qabias` names them.

Their scores are worked out by hand: two templates, six pairs of cooks each, both orders of a pair.
"""

import json
import re
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest

from qabias.benchmarks import load_benchmark

from . import tiny_models
from .conftest import ROOT
from .installed_toys import environment, install, run_commands
from .test_docs import SHELL_LANGUAGES, blocks_of, commands_of

pytestmark = pytest.mark.slow

ANSWERS = "example_id,prediction\nkitchen-0,0\nkitchen-1,2\nkitchen-2,0\nkitchen-3,1\n"
LONGEST = ("--backend", "longest", "--model", "none")
COMMANDS = {
    "list": ("list",),
    "list toy": ("list", "toy"),
    "list backends": ("list", "backends"),
    "stereotyped": ("run", "toy", "--model", "baseline:stereotyped", "--output", "stereotyped"),
    "longest": ("run", "toy", *LONGEST, "--output", "longest"),
    "shortest": ("run", "toy", *LONGEST, "--option", "prefer=shortest", "--limit", "20", "--output", "shortest"),
    "again": ("run", "toy", *LONGEST, "--output", "longest"),
    "model": ("run", "toy", "--model", "tiny", "--config", "market", "--output", "model"),
    "written": ("run", "toy", "--model", "tiny", "--option", "mode=generate", "--limit", "4", "--output", "written"),
    "show": ("show", "stereotyped"),
    "show --template": ("show", "stereotyped", "--template", "kitchen"),
    "show --table": ("show", "stereotyped", "--table", "answers"),
    "score": ("score", "answers.csv", "--benchmark", "toy", "--output", "scores.json"),
    "score again": ("score", "longest"),
    "report": ("report", "stereotyped", "longest", "--output", "report.html"),
    "compare": ("compare", "stereotyped", "longest", "--output", "side_by_side"),
    "export": ("export", "stereotyped", "--format", "csv"),
    "build": ("build", "toy", "--config", "market", "--output", "built"),
    "bbq": ("run", "bbq", *LONGEST, "--config", "Religion", "--limit", "200", "--output", "bbq"),
}
PAGES = [ROOT / "docs" / name for name in ("add-a-benchmark.md", "add-a-scorer.md")]
SHOWN = [
    command[1:]
    for page in PAGES
    for block in blocks_of(page)
    if block.language in SHELL_LANGUAGES
    for command in commands_of(block)
    if command[0] == "qabias"
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return install(tmp_path_factory.mktemp("toys"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for part in (tiny_models.make_model("llama"), tiny_models.make_tokenizer()):
        part.save_pretrained(folder / "tiny")
    (folder / "answers.csv").write_text(ANSWERS, "utf-8")
    return folder


@pytest.fixture(scope="module")
def quick(site, folder):
    """What a baseline and the scorer of another package give."""
    names = ("stereotyped", "longest")
    return dict(zip(names, run_commands(site, [COMMANDS[name] for name in names], folder), strict=True))


@pytest.fixture(scope="module")
def done(site, folder):
    results = run_commands(site, [*COMMANDS.values(), *SHOWN], folder)
    return dict(zip([*COMMANDS, *map(" ".join, SHOWN)], results, strict=True))


def scores_of(folder, name):
    return json.loads((folder / name / "scores.json").read_text("utf-8"))


def test_they_are_listed(done):
    assert re.search(r"(?m)^toy +Toy: which of two cooks", done["list"][1])
    lines = dict(re.split(r"  +", line, maxsplit=1) for line in done["list toy"][1].splitlines() if "  " in line)
    assert {"kitchen", "market", "[all]"} == set(lines["--config"].split())
    assert lines["--source"] == "[bundled]"
    assert "longest" in lines["--backend"].split()
    assert "prefers the longest option, without a model" in done["list backends"][1]


def test_the_scores_of_a_baseline(quick, folder):
    assert quick["stereotyped"].code == 0, quick["stereotyped"].output
    scores = scores_of(folder, "stereotyped")["scores"]
    kitchen = scores["by"]["template"]["kitchen"]
    for of, n in ((scores, 24), (kitchen, 12)):
        # Always the first of the two: (n - 0) / (n + 0), and never the right answer.
        assert (of["bias"], of["accuracy"], of["unparsed_share"]) == (1, 0, 0)
        assert (of["n"], of["n_pairs"], of["n_first"], of["n_second"], of["n_unknown"]) == (n, n // 2, n, 0, 0)
        for name, (low, high) in of["ci"].items():
            assert 0 <= low <= of[name] <= high <= 1
            assert 0.2 < high - low < 0.7, "12 or 24 rows that are alike do not claim certainty"


def test_the_longest_option_is_the_right_one_and_the_bias_undefined_for_a_reason(quick, folder):
    assert quick["longest"].code == 0, quick["longest"].output
    content = scores_of(folder, "longest")
    assert content["signature"].startswith("toy|source:bundled@1|config:all|format:qa@1|model:none|scorer:longest|")
    assert content["scores"]["accuracy"] == 1
    assert content["scores"]["bias"] is None
    assert content["reasons"]["/bias"] == "no answer names a cook"
    assert content["reasons"]["/by/template/market/ci/bias"] == "the score is undefined: no answer names a cook"
    assert "undefined" in quick["longest"].output


def test_the_shortest_option_is_the_same_cook_in_both_orders(done, folder):
    assert done["shortest"].code == 0, done["shortest"].output
    scores = scores_of(folder, "shortest")["scores"]
    # A sample of 20 is ten whole pairs; a cook is first in one of their orders and second in the other.
    assert (scores["n"], scores["n_pairs"], scores["n_first"], scores["n_second"]) == (20, 10, 10, 10)
    assert (scores["bias"], scores["accuracy"]) == (0, 0)
    low, high = scores["ci"]["bias"]
    assert low == pytest.approx(-high)
    assert 0.1 < high < 0.5


def test_a_model_answers_by_likelihood_or_in_its_own_words(done, folder):
    assert done["model"].code == done["written"].code == 0, (done["model"].output, done["written"].output)
    answers = pq.read_table(folder / "model" / "predictions")
    best = [int(np.argmax(of)) for of in answers["loglikelihoods"].to_pylist()]
    assert answers["prediction"].to_pylist() == best
    assert answers.num_rows == 12
    assert "format:qa@1" in scores_of(folder, "model")["signature"]
    assert "format:listed@1" in scores_of(folder, "written")["signature"]
    # What a model with random weights writes is none of the options.
    assert scores_of(folder, "written")["scores"]["unparsed_share"] == 1


def test_answers_of_others_are_scored(done, folder):
    assert done["score"].code == 0, done["score"].output
    content = json.loads((folder / "scores.json").read_text("utf-8"))
    # Options rotate by one from example to example: first, first, unknown, second.
    assert [content["scores"][f"n_{kind}"] for kind in ("first", "second", "unknown", "unparsed")] == [2, 1, 1, 0]
    assert content["scores"]["bias"] == 1 / 3
    assert content["scores"]["accuracy"] == 1 / 4
    assert content["signature"].startswith("toy|source:bundled@1|config:all|model:answers|scorer:answers|")


def test_the_scorer_answers_a_benchmark_of_this_package(done, folder):
    assert done["bbq"].code == 0, done["bbq"].output
    bbq = load_benchmark("bbq")
    examples = {row["example_id"]: row for row in bbq.load("Religion", bbq.origin("bundled", 0, False)).to_pylist()}
    answers = pq.read_table(folder / "bbq" / "predictions").to_pylist()
    right = []
    for answer in answers:
        row = examples[answer["example_id"]]
        lengths = [len(row[f"ans{place}"]) for place in range(3)]
        longest = lengths.index(max(lengths)) if lengths.count(max(lengths)) == 1 else -1
        assert answer["prediction"] == longest
        if longest >= 0 and row["context_condition"] == "disambig":
            right.append(longest == row["label"])
    assert 0 < len(right) < len(answers) <= 200
    assert scores_of(folder, "bbq")["scores"]["accuracy_disambig"] == pytest.approx(sum(right) / len(right))


def test_every_command_works(done):
    assert [result for result in done.values() if result.code] == []


def test_the_contract_of_all_benchmarks_holds(site):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_benchmark_contract.py"]
    run = subprocess.run(
        [*command, "-k", "toy"], cwd=ROOT, env=environment(site), capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout
    assert " passed" in run.stdout
