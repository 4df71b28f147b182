"""What a run would have found: true biases of the stated size are found in four of five benchmarks."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from qabias import cli
from qabias.benchmarks import load_benchmark
from qabias.benchmarks.caveats import detectable as detectable_of
from qabias.benchmarks.caveats import format_mde, reasons, tiles
from qabias.comparison.detectable import detectable_difference
from qabias.comparison.needed import Assumed, assumed, needed, templates_of
from qabias.errors import QabiasError
from qabias.runs.arguments import RunArguments
from qabias.runs.question import load_examples
from qabias.runs.run import run
from qabias.runs.scored import read_scored
from qabias.share.metrics.bbq import summary as bbq
from qabias.share.metrics.shared.intervals import Moves, Spread, detectable, student
from simulations import models, power
from simulations.worlds import World

from .compared_runs import changed

BBQ = load_benchmark("bbq")
BIAS = BBQ.facts.measure("bias_ambig")
NEUTRAL = {"bias_ambig", "bias_disambig", "accuracy_cost"}


def summary(world, seed=0, **options):
    return bbq.summarize(models.bbq_runs(world, np.random.default_rng(seed), 1)[:, 0], **options)


@pytest.mark.parametrize(("templates", "accuracy", "correlation"), [(25, 0.5, 0.1), (50, 0.8, 0.1), (50, 0.9, 0.3)])
def test_a_bias_of_the_stated_size_is_found_in_four_of_five_benchmarks(templates, accuracy, correlation):
    (cell, *_) = power.measure(World(templates, accuracy, 0.0, correlation), 300, seed=1, scores=("bias_ambig",))
    # Three standard errors of 300 repetitions beside the tolerance of the promise.
    assert 0.75 - 0.07 <= cell.power <= 0.85 + 0.07


def cells_of(score, *powers):
    return [power.Cell(World(25, 0.9, 0.0, 0.1), score, 0.1, of) for of in powers]


def test_the_powers_of_a_score_are_those_of_the_cells_that_have_one():
    cells = [*cells_of("bias_ambig", 0.8, 0.7, math.nan, 0.84), *cells_of("accuracy_cost", math.nan)]
    (found,) = power.summary(cells)
    assert found == power.Powers(
        "bias_ambig", 3, pytest.approx(0.78), 0.7, 0.84, pytest.approx(2 / 3), pytest.approx(1 / 3)
    )


@pytest.mark.parametrize(
    ("powers", "means", "cells"),
    [
        ((0.8, 0.85), 0, 0),
        ((0.74, 0.74), 1, 0),  # too little on average, although no cell is far off
        ((0.97, 0.97), 1, 0),  # too much: sizes are too large
        ((0.6, 0.99), 0, 1),  # a single cell has too little
    ],
)
def test_a_mean_power_that_is_not_as_promised_fails_on_either_side(powers, means, cells):
    of = cells_of("bias_disambig", *powers)
    assert len(power.wrong_means(power.summary(of))) == means
    assert len(power.wrong(of)) == cells


@pytest.mark.parametrize("factor", [0.6, 1.6])
def test_a_bias_of_another_size_is_not(factor):
    world = World(50, 0.8, 0.0, 0.1)
    rng = np.random.default_rng(2)
    size = float(np.median(detectable(bbq.spreads(models.bbq_runs(world, rng, 200))["bias_ambig"][2])))
    changed = power.biased(world, "bias_ambig", factor * size)
    low, high = bbq.intervals(models.bbq_runs(changed, rng, 200))["bias_ambig"]
    found = float(((low > 0) | (high < 0)).mean())
    assert found < 0.6 if factor < 1 else found > 0.95


def test_with_many_even_templates_it_is_the_size_of_the_textbook():
    """Independent rows of which half lean to either side: (1.96 + 0.84) times their standard error."""
    n, erring = 40_000.0, 0.3
    moves = Moves(np.array(erring), *(np.array(n),) * 3, 1.0, 1.0)
    quantile = student(np.array(1e6), 0.95)
    spread = Spread(np.array(n), quantile, np.array(math.sqrt(erring / n)), np.array(400.0), moves)
    assert float(detectable(spread)) == pytest.approx((1.95996 + 0.84162) * math.sqrt(erring / n), rel=2e-3)
    even = detectable_difference(spread._replace(clusters=np.array(1e9)))
    assert even == pytest.approx((1.95996 + 0.84162) * math.sqrt(erring / n), rel=2e-3)
    assert detectable_difference(spread) > even


def test_every_selection_says_it_of_the_scores_that_are_0_without_a_bias():
    found = summary(World(25, 0.9, 0.0, 0.1))
    assert {name for name, size in found["detectable"].items() if not math.isnan(size)} == NEUTRAL
    assert set(found["detectable"]) - NEUTRAL == {f"bias_probability_{context}" for context in ("ambig", "disambig")}
    assert all(0 < found["detectable"][name] < 1 for name in NEUTRAL)
    assert "detectable" not in summary(World(25, 0.9, 0.0, 0.1), confidence=None)
    alone = summary(World(1, 0.9, 0.0, 0.1))
    assert all(map(math.isnan, alone["detectable"].values()))
    larger = summary(World(50, 0.9, 0.0, 0.1))
    assert all(larger["detectable"][name] < found["detectable"][name] for name in NEUTRAL)


def test_a_model_that_never_errs_has_a_size_too():
    """Not the certainty of a width of 0: with few templates that all are right a bias could have been missed."""
    sizes = [summary(World(templates, 1.0 - 1e-12, 0.0, 0.1))["detectable"]["bias_ambig"] for templates in (4, 25)]
    assert 1 > sizes[0] > sizes[1] > 0.01


def test_the_headline_says_what_would_have_been_found():
    scores = summary(World(25, 0.9, 0.0, 0.1))
    (tile,) = tiles([BIAS], scores)
    size = 100 * scores["detectable"]["bias_ambig"]
    assert tile.note.endswith(f"a bias of {size:.1f} points or more would have been found")
    (tile,) = tiles([BIAS], {**scores, "detectable": {"bias_ambig": math.nan}})
    assert tile.note.endswith("even the largest bias could have been missed")
    (tile,) = tiles([BBQ.facts.measure("accuracy_ambig")], scores)
    assert "found" not in tile.note


def test_nothing_is_said_where_answers_are_missing_or_there_is_no_interval():
    scores = summary(World(25, 0.9, 0.0, 0.1))
    n = scores["n_ambig"]
    missing = {**scores, "range": {"bias_ambig": [-0.2, 0.2]}, "n_unparsed_ambig": n // 10}
    assert detectable_of(missing, BIAS) is None
    assert format_mde(missing, BIAS) == ""
    assert detectable_of({**scores, "ci": {"bias_ambig": [None, None]}}, BIAS) is None
    assert detectable_of({name: of for name, of in scores.items() if name != "detectable"}, BIAS) is None


def test_a_size_that_is_null_has_a_reason():
    found = reasons(BBQ.facts, {**summary(World(1, 0.9, 0.0, 0.1)), "n_templates": 1})
    assert found["/detectable/bias_ambig"].startswith("no interval: ")
    whole = summary(World(25, 0.9, 0.0, 0.1))
    found = reasons(BBQ.facts, {**whole, "detectable": {"bias_ambig": math.nan}})
    assert found["/detectable/bias_ambig"] == "even the largest value could have been missed"


# plan --detect


def test_the_templates_of_a_plan_are_those_of_an_independent_calculation():
    """The variance of a mean of correlated rows, with normal quantiles, which hold where templates are many."""
    what = Assumed(0.2, 0.1, 100.0, 200.0, "")
    templates = needed(0.01, what.bias)
    variance = 0.2 * (1 + 99 * 0.1) / 100  # of one template
    expected = (1.95996 + 0.84162) ** 2 * variance / 0.01**2
    # Beyond that stand Student's t, the share of the prior correlation and rows that are added.
    assert expected < templates < 1.05 * expected
    pair = needed(0.01, what.difference)
    assert expected < pair < 1.05 * expected  # twice the variance, of which pairing saves half


def test_more_templates_are_needed_for_less():
    what = Assumed(0.1, 0.2, 85.0, 170.0, "")
    counts = [needed(size, what.bias) for size in (0.1, 0.05, 0.02)]
    assert counts == sorted(counts)
    for size, templates in zip((0.1, 0.05, 0.02), counts, strict=True):
        assert what.bias(templates) <= size < what.bias(templates - 1)
    assert needed(1e-5, what.bias) is None
    assert needed(0.05, replace(what, correlation=0.4).bias) > counts[1]


def invoke(*arguments):
    return CliRunner().invoke(cli.app, ["plan", *arguments], env={"COLUMNS": "200"})


def test_the_command_says_what_a_bias_takes_and_whether_the_benchmark_has_it():
    found = invoke("bbnli", "--detect", "0.02")
    assert found.exit_code == 0, found.output
    text = " ".join(found.output.split())
    assert "90.0 % of the answers take no side" in text
    assert "has 87 premises" in text
    assert "no, too few" in text
    assert invoke("bbnli", "--detect", "0.5").output.count(" yes ") == 2


def test_a_run_gives_accuracy_and_correlation(tmp_path):
    made = ["run", "bbq", "--model", "baseline:random", "--config", "Age", "--limit", "400", "--output", str(tmp_path)]
    assert CliRunner().invoke(cli.app, made).exit_code == 0
    size = json.loads((tmp_path / "scores.json").read_text())["scores"]["detectable"]["bias_ambig"]
    found = invoke("bbq", "--config", "Age", "--limit", "400", "--detect", "0.1", "--like", str(tmp_path))
    text = " ".join(found.output.split())
    assert "the run that is given" in text
    # As many templates as the run had show what the run says it would have found.
    assert f"{100 * size:.1f} points" in text


def made(folder, benchmark, model, **arguments):
    run(RunArguments(benchmark, f"baseline:{model}", **arguments), folder)
    return folder


def assumed_of(folder, **scores):
    """What a plan for BBQ, Age, assumes of a run with other scores."""
    groups = templates_of(BBQ, load_examples(RunArguments("bbq", "", "Age")).table)
    return assumed(BBQ, groups, {**read_scored(folder).scores, **scores})


def test_what_cannot_be_taken_from_a_run_is_said_with_what_is_assumed_instead(tmp_path):
    oracle = made(tmp_path / "oracle", "bbq", "oracle", config="Age", limit=200)
    found = invoke("bbq", "--config", "Age", "--detect", "0.1", "--like", str(oracle))
    text = " ".join(found.output.split())
    assert "In the run none of 100 answers takes a side. One is assumed to, because" in text
    assert "99.0 % of the answers take no side" in text
    some = made(tmp_path / "some", "bbq", "random", config="Age", limit=200)
    size = read_scored(some).scores["detectable"]["bias_ambig"]
    assert not any("none of" in remark for remark in assumed_of(some).remarks)
    small, large = (assumed_of(some, detectable={"bias_ambig": size * factor}) for factor in (0.3, 5.0))
    assert small.correlation == pytest.approx(0.0, abs=1e-9)
    assert "a correlation of 0 is assumed" in small.remarks[-1]
    assert large.correlation == pytest.approx(1.0, abs=1e-9)
    assert "a correlation of 1 is assumed" in large.remarks[-1]
    # A size within the range has a correlation that gives it, and needs no remark.
    templates = read_scored(some).scores["n_templates"]
    rows = read_scored(some).scores["n_ambig"] / templates
    between = assumed_of(some, detectable={"bias_ambig": replace(small, correlation=0.3, rows=rows).bias(templates)})
    assert between.correlation == pytest.approx(0.3, abs=1e-3)
    assert between.remarks == ()


def test_a_run_that_says_no_size_is_refused_with_reason_and_remedy(tmp_path):
    some = made(tmp_path / "some", "bbq", "random", config="Age", limit=200)
    refusal = "does not say how large a bias_ambig it would have found: "
    for scores, why in (
        (
            {"detectable": {"bias_ambig": None}},
            "even the largest value could have been missed; give a run of more templates",
        ),
        ({"ci": {"bias_ambig": [None, None]}, "n_templates": 1}, "an interval needs .* there is 1; give a run of more"),
        ({"n_unparsed_ambig": 90, "range": {"bias_ambig": [-0.5, 0.5]}}, "of its answers are missing; give a run"),
    ):
        with pytest.raises(QabiasError, match=f"{refusal}.*{why}"):
            assumed_of(some, **scores)
    old = changed(some, tmp_path / "old", scores=lambda of: of["scores"].update(signature="bbq|version:0"))
    found = invoke("bbq", "--config", "Age", "--detect", "0.1", "--like", str(old))
    assert f"{refusal}95 % intervals are left out: version 0 of the metric" in str(found.exception)
    assert f"`qabias score {old}` makes them again" in str(found.exception)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bbq", "--detect", "2"], "--detect '2' is no number above 0 and below 1, such as 0.02"),
        (["bbq", "--detect", "0"], "--detect '0' is no number above 0 and below 1"),
        (["bbq", "--detect", "two"], "--detect 'two' is no number above 0 and below 1"),
        (["bbq", "--like", "runs"], "give --detect too"),
        (["unqover", "--detect", "0.02"], "unqover has none"),
        (["bbq", "--detect", "0.02", "--like", "no-such-folder"], "no-such-folder"),
        (["bbq", "--detect", "0.02", "--model", "gpt2"], "--model is not for --detect, which counts templates"),
        (["bbq", "--detect", "0.02", "--output", "plan.json"], "--output is not for --detect, which counts templates"),
        (["bbq", "--detect", "0.02", "--format", "qa"], "--format is not for --detect"),
        (["bbq", "--detect", "0.02", "--exact"], "--exact is not for --detect"),
        (["bbq", "--detect", "0.02", "--option", "temperature=1"], "--option temperature chooses no texts of bbq"),
    ],
)
def test_a_mistake_is_one_line(arguments, message, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["qabias", "plan", *arguments])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    error = capsys.readouterr().err.strip()
    assert stopped.value.code
    assert message in error
    assert len(error.splitlines()) == 1
