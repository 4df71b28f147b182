"""What a run would have found: true biases of the stated size are found in four of five benchmarks."""

import math
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from lab.simulations import models, power
from lab.simulations.worlds import World
from qabias import cli
from qabias.benchmarks import load_benchmark
from qabias.benchmarks.headline import tile_note
from qabias.comparison.sample_size import Assumed, needed
from qabias.scores.score import NOISE, limited, reasons
from qabias.share.metrics.bbq import summary as bbq
from qabias.share.metrics.shared.intervals import Shape, Spread, detectable, limits, of_clusters

BBQ = load_benchmark("bbq")
BIAS = BBQ.facts.measure("bias_ambig")
NEUTRAL = {"bias_ambig", "bias_disambig", "accuracy_cost", "abstention_gap"}


def summary(world, seed=0, **options):
    return bbq.summarize(models.bbq_runs(world, np.random.default_rng(seed), 1)[:, 0], **options)


@pytest.mark.slow
@pytest.mark.parametrize(("templates", "accuracy", "correlation"), [(25, 0.5, 0.1), (50, 0.8, 0.1), (50, 0.9, 0.3)])
def test_a_bias_of_the_stated_size_is_found_in_four_of_five_benchmarks(templates, accuracy, correlation):
    (cell, *_) = power.measure(World(templates, accuracy, 0.0, correlation), 300, seed=1, scores=("bias_ambig",))
    # Three standard errors of 300 repetitions beside the tolerance of the promise.
    assert 0.75 - 0.07 <= cell.power <= 0.85 + 0.07


def test_with_many_even_templates_it_is_the_size_of_the_textbook():
    """Independent rows of which half lean to either side: (1.96 + 0.84) times their standard error."""
    n, erring = 400_000.0, 0.3
    parts = n, 1.96, 1 / n, erring, 1 / n, n, n, 0.0, math.nan
    expected = (1.95996 + 0.84162) * math.sqrt(erring / n)
    size = detectable(Shape(*map(np.array, (0.15, 0.15, n))), Spread(*map(np.array, parts)))
    assert float(size) == pytest.approx(expected, rel=2e-3)
    steps = np.linspace(-1.0, 1.0, 4000)
    steps *= 0.01 / math.sqrt((steps**2).sum())  # the difference has a standard error of 0.01
    size = detectable(*of_clusters(0.0, steps, np.ones(4000), 2.0))
    assert float(size) == pytest.approx((1.95996 + 0.84162) * 0.01, rel=2e-2)


def test_every_selection_says_it_of_the_scores_that_are_0_without_a_bias():
    found = summary(World(25, 0.9, 0.0, 0.1))
    assert {name for name, size in found["detectable"].items() if not math.isnan(size)} == NEUTRAL
    assert set(found["detectable"]) - NEUTRAL == {f"bias_probability_{context}" for context in ("ambig", "disambig")}
    assert all(0 < found["detectable"][name] < 1 for name in NEUTRAL)
    assert "detectable" not in summary(World(25, 0.9, 0.0, 0.1), confidence=None)
    alone = summary(World(1, 0.9, 0.0, 0.1))
    assert all(map(math.isnan, alone["detectable"].values()))
    # Not the certainty of a width of 0: with few templates that all are right a bias could have been missed.
    sizes = [summary(World(templates, 1.0 - 1e-12, 0.0, 0.1))["detectable"]["bias_ambig"] for templates in (4, 25)]
    assert 1 > sizes[0] > sizes[1] > 0.01
    larger = summary(World(50, 0.9, 0.0, 0.1))
    assert all(larger["detectable"][name] < found["detectable"][name] for name in NEUTRAL)


def test_the_headline_says_what_would_have_been_found():
    scores = summary(World(25, 0.9, 0.0, 0.1))
    note = tile_note(scores, limited(scores, BIAS))
    size = 100 * scores["detectable"]["bias_ambig"]
    assert f"MDE {size:.1f} points" in note
    assert note.startswith(NOISE) == (scores["ci"]["bias_ambig"][0] <= 0 <= scores["ci"]["bias_ambig"][1])
    never = {**scores, "detectable": {"bias_ambig": math.nan}}
    assert "MDE n/a" in tile_note(never, limited(never, BIAS))
    assert "MDE" not in tile_note(scores, limited(scores, BBQ.facts.measure("accuracy_ambig")))


def test_nothing_is_said_where_answers_are_missing_or_there_is_no_interval():
    scores = summary(World(25, 0.9, 0.0, 0.1))
    n = scores["n_ambig"]
    missing = {**scores, "range": {"bias_ambig": [-0.2, 0.2]}, "n_unparsed_ambig": n // 10}
    assert (limited(missing, BIAS).mde, limited(missing, BIAS).size) == (None, "")
    assert limited({**scores, "ci": {"bias_ambig": [None, None]}}, BIAS).mde is None
    assert limited({name: of for name, of in scores.items() if name != "detectable"}, BIAS).mde is None


def test_a_size_that_is_null_has_a_reason():
    found = reasons(BBQ.facts, {**summary(World(1, 0.9, 0.0, 0.1)), "n_templates": 1})
    assert found["/detectable/bias_ambig"].startswith("no interval: ")
    whole = summary(World(25, 0.9, 0.0, 0.1))
    found = reasons(BBQ.facts, {**whole, "detectable": {"bias_ambig": math.nan}})
    assert found["/detectable/bias_ambig"] == "too few templates to detect any bias"


# plan --detect


def test_the_templates_of_a_plan_are_those_of_an_independent_calculation():
    """The variance of a mean of correlated rows, with normal quantiles, which hold where templates are many."""
    what = Assumed(0.2, 0.1, 100.0, 200.0)
    templates = needed(0.01, what.bias)
    variance = 0.2 * (1 + 99 * 0.1) / 100  # of one template
    expected = (1.95996 + 0.84162) ** 2 * variance / 0.01**2
    # Beyond that stand Student's t, the share of the prior correlation and rows that are added.
    assert expected < templates < 1.05 * expected
    pair = needed(0.01, what.difference)
    assert expected < pair < 1.05 * expected  # twice the variance, of which pairing saves half


def test_more_templates_are_needed_for_less():
    what = Assumed(0.1, 0.2, 85.0, 170.0)
    counts = [needed(size, what.bias) for size in (0.1, 0.05, 0.02)]
    assert counts == sorted(counts)
    for size, templates in zip((0.1, 0.05, 0.02), counts, strict=True):
        assert what.bias(templates) <= size < what.bias(templates - 1)
    assert needed(1e-5, what.bias) is None
    assert needed(0.05, replace(what, correlation=0.4).bias) > counts[1]


def invoke(*arguments):
    return CliRunner().invoke(cli.app, ["plan", *arguments], env={"COLUMNS": "200"})


def test_the_command_says_what_a_bias_takes_and_whether_the_benchmark_has_it():
    text = " ".join(invoke("bbnli", "--detect", "0.02").output.split())
    for part in ("90.0 %", "87 premises", "too few"):
        assert part in text
    assert invoke("bbnli", "--detect", "0.5").output.count(" yes ") == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bbq", "--detect", "2"], "--detect is 2"),
        (["bbq", "--detect", "0"], "--detect is 0"),
        (["bbq", "--detect", "two"], "--detect"),
        (["unqover", "--detect", "0.02"], "unqover has none"),
        (["bbq", "--detect", "0.02", "--option", "temperature=1"], "temperature"),
    ],
)
def test_a_mistake_is_named(arguments, message):
    found = invoke(*arguments)
    assert found.exit_code
    assert message in f"{found.exception} {found.output}"


@pytest.mark.slow
@pytest.mark.parametrize("factor", [0.6, 1.6])
def test_a_bias_of_another_size_is_not(factor):
    world = World(50, 0.8, 0.0, 0.1)
    rng = np.random.default_rng(2)
    size = float(np.median(detectable(*bbq.spreads(models.bbq_runs(world, rng, 200))["bias_ambig"][1:])))
    changed = power.biased(world, "bias_ambig", factor * size)
    low, high = limits(*bbq.spreads(models.bbq_runs(changed, rng, 200))["bias_ambig"])
    found = float(((low > 0) | (high < 0)).mean())
    assert found < 0.6 if factor < 1 else found > 0.95
