"""Means of paired differences at equal covariates: against written-out sums and simulation."""

import itertools

import numpy as np
import pytest

from qabias.comparison.adjusted import adjusted_means, groups_of


def one_group(values, covariates=None):
    values = np.asarray(values, dtype=np.float64)
    covariates = np.empty((len(values), 0)) if covariates is None else covariates
    (found,) = adjusted_means(values, covariates, np.zeros(len(values), dtype=np.int64), 1)
    return found


def test_without_covariates_it_is_the_mean_with_all_exchanges():
    values = [0.4, -0.1, 0.3, 0.7, 0.2]
    found = one_group(values)
    assert found.value == pytest.approx(0.3)
    # HC3 divides every residual by 1 - 1/5.
    error = sum((value - 0.3) ** 2 for value in values) ** 0.5 / 4
    assert found.high - found.value == pytest.approx(2.776 * error, rel=1e-3)
    sums = [
        abs(sum(s * v for s, v in zip(signs, values, strict=True))) for signs in itertools.product((1, -1), repeat=5)
    ]
    assert found.p == sum(of >= 1.5 - 1e-9 for of in sums) / 32


def test_a_difference_that_is_all_length_is_none_at_equal_length():
    rng = np.random.default_rng(0)
    length = rng.normal(1.0, 0.5, 40)
    noise = rng.normal(0, 0.1, 40)
    found = one_group(0.8 * length + noise, length[:, None])
    assert one_group(0.8 * length + noise).p < 0.001
    assert found.low < 0 < found.high
    assert found.p > 0.05
    # The intercept of a line through points, from the sums of the textbook.
    values = 0.8 * length + noise
    slope = ((length - length.mean()) * (values - values.mean())).sum() / ((length - length.mean()) ** 2).sum()
    assert found.value == pytest.approx(values.mean() - slope * length.mean())


def test_groups_have_intercepts_of_their_own_and_one_slope():
    rng = np.random.default_rng(1)
    groups = np.repeat([0, 1, 2], [20, 20, 1])
    length = rng.normal(size=41)
    values = np.array([1.0, -2.0, 5.0])[groups] + 3 * length
    first, second, alone = adjusted_means(values, length[:, None], groups, 3)
    assert (first.value, second.value) == (pytest.approx(1), pytest.approx(-2))
    assert first.p < 0.001
    # One stereotype has neither interval nor test.
    assert tuple(alone) == (None,) * 5


def test_equal_differences_have_no_interval():
    found = one_group([0.0] * 8)
    assert tuple(found) == (0, None, None, 1, None)


@pytest.mark.parametrize("spread", ["equal", "unequal"])
def test_intervals_cover_and_tests_do_not_cry_wolf(spread):
    """400 simulated benchmarks of 25 stereotypes, half of them longer in one form."""
    rng = np.random.default_rng(2)
    covered = rejected = 0
    for _ in range(400):
        covariates = rng.normal([0.3, -0.5], 1.0, size=(25, 2))
        size = 1.0 if spread == "equal" else 0.2 + np.abs(covariates[:, 0])
        values = covariates @ [0.5, 0.2] + size * rng.standard_t(5, 25)
        found = one_group(values, covariates)
        covered += found.low <= 0 <= found.high
        rejected += found.p < 0.05
    # Within three standard errors of the nominal 95 % and 5 %, or better.
    assert covered / 400 > 0.917
    assert rejected / 400 < 0.083


def test_names_are_numbered_by_their_first_occurrence():
    codes, names = groups_of(["b", "a", "b"])
    assert (codes.tolist(), names) == ([0, 1, 0], ["b", "a"])
