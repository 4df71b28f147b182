"""Simulated benchmarks: intervals keep their bounds, wrong ones do not, and the worlds are what they say."""

import dataclasses

import numpy as np
import pytest

from metrics.bbq import scores as bbq
from simulations import coverage, models, page
from simulations.worlds import World, two_points

SATURATED = World(12, 0.97, 0.5, 0.4)


def drawn(world, *kinds, method="qabias", repetitions=200):
    return [cell for kind in kinds for cell in coverage.cells(kind, world, repetitions, method)]


def test_the_intervals_keep_the_bounds_where_a_model_is_nearly_always_right():
    found = drawn(SATURATED, "BBQ", "BBNLI", "two models")
    assert coverage.failures(found, coverage.QUICK_LEAST, coverage.QUICK_LEAST, most=1.0) == []


@pytest.mark.parametrize("kind", ["BBQ", "BBNLI", "two models"])
def test_the_t_interval_fails_the_same_bounds(kind):
    found = drawn(World(7, 0.97, 0.5, 0.4), kind, method="t")
    assert any("covers 0." in line for line in coverage.failures(found, coverage.QUICK_LEAST, coverage.QUICK_LEAST))


def test_intervals_of_width_0_fail():
    narrow = drawn(World(4, 0.99, 0.5, 0.4), "BBQ", method="t")
    assert any("width 0" in line for line in coverage.failures(narrow, 0.0, 0.0))


def test_intervals_that_hold_everything_fail():
    found = drawn(SATURATED, "BBQ", repetitions=20)
    wide = [dataclasses.replace(cell, coverage=1.0) for cell in found]
    assert any("is not between 0.94 and 0.98" in line for line in coverage.failures(wide))
    lacking = [dataclasses.replace(cell, undefined=0.5) for cell in found]
    assert any("is without interval in 0.500" in line for line in coverage.failures(lacking))


def test_mu_and_eta_are_held_at_their_mean_for_as_many_templates():
    found = {cell.score: cell for cell in drawn(World(14, 0.8, 0.0, 0.1), "UnQover", repetitions=100)}
    assert found["mu"].coverage >= 0.9
    assert found["eta"].coverage >= 0.9


def test_a_world_without_preferences_has_a_mu_above_0_that_shrinks_with_more_templates():
    means = [
        np.mean(coverage.of_unqover(World(n, 0.8, 0.0, 0.1), np.random.default_rng(1), 20).values["mu"])
        for n in (4, 50)
    ]
    assert means[0] > 2 * means[1] > 0


@pytest.mark.parametrize("mean", [0.03, 0.5, 0.9])
@pytest.mark.parametrize("correlation", [0.1, 0.4])
@pytest.mark.parametrize("kind", ["beta", "two-point"])
def test_templates_have_the_mean_and_the_correlation_of_their_world(mean, correlation, kind):
    shares = World(1, mean, 0.0, correlation, kind).shares(np.random.default_rng(2), mean, (200_000,))
    assert shares.min() >= 0
    assert shares.max() <= 1
    assert shares.mean() == pytest.approx(mean, abs=0.005)
    assert shares.var() / (mean * (1 - mean)) == pytest.approx(correlation, abs=0.02)


def test_two_points_are_two():
    assert len(np.unique(two_points(np.random.default_rng(0), 0.97, 0.2, (1000,)))) == 2


def test_many_templates_give_the_scores_that_are_called_true():
    world = World(4000, 0.8, 0.5, 0.1)
    found = bbq.mean_over_runs(models.bbq_runs(world, np.random.default_rng(3), 1).sum(axis=0))
    truth = models.bbq_truth(world, np.random.default_rng(4))
    for name in coverage.BBQ_SCORES:
        assert float(found[name][0]) == pytest.approx(truth[name], abs=0.01), name
    assert truth["accuracy_ambig"] == pytest.approx(0.8, abs=0.005)
    assert truth["bias_ambig"] == pytest.approx(0.2 * 0.5, abs=0.01)


def test_the_true_differences_are_those_of_many_templates():
    world = World(4000, 0.8, 0.5, 0.1)
    pair = models.bbq_pairs(world, np.random.default_rng(5), 1)
    first, second = (bbq.mean_over_runs(each.sum(axis=0)) for each in pair)
    truth = models.bbq_true_differences(world, np.random.default_rng(6))
    for name in coverage.DIFFERENCES:
        assert float(second[name][0] - first[name][0]) == pytest.approx(truth[name], abs=0.015), name


def test_the_page_gets_the_table_and_the_picture(tmp_path):
    (tmp_path / "images").mkdir()
    text = f"before\n{page.BEGIN}\nold\n{page.END}\nafter\n"
    (tmp_path / "intervals.md").write_text(text)
    found = drawn(World(4, 0.9, 0.5, 0.1), "BBQ", repetitions=20) + drawn(SATURATED, "BBQ", repetitions=20)
    page.write(found, 20, tmp_path)
    written = (tmp_path / "intervals.md").read_text()
    assert "old" not in written
    assert written.startswith("before\n")
    assert written.endswith("after\n")
    assert "| BBQ: bias_ambig |" in written
    assert (tmp_path / page.PICTURE).stat().st_size > 1000
    (tmp_path / "intervals.md").write_text("no marks")
    with pytest.raises(SystemExit, match="has no <!-- coverage"):
        page.write(found, 20, tmp_path)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--write", "--quick"], "--write is for the whole grid"),
        (["--repetitions", "0"], "--repetitions is 1 or more"),
        (["--benchmark", "BBX"], "invalid choice: 'BBX'"),
    ],
)
def test_wrong_arguments_are_told(arguments, told, capsys):
    with pytest.raises(SystemExit):
        coverage.main(arguments)
    assert told in capsys.readouterr().err
