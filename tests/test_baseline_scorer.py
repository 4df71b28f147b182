"""Baselines answer as their names say."""

import math

import numpy as np
import pytest

from qabias.errors import QabiasError
from qabias.scorers.base import Request
from qabias.scorers.baseline import KINDS, BaselineScorer
from qabias.scorers.registry import load_scorer

ROLES = {"biased": 0, "counter_biased": 1, "unknown": 2, "gold": 2}
OPTIONS = (" The baker", " Zoë", " Not enough info")


def ask(kind: str, roles: dict[str, int] | None = None, **options: int) -> np.ndarray:
    request = Request("Who?", OPTIONS, ROLES if roles is None else roles, "Age/0")
    return BaselineScorer(kind, **options).score([request])[0].loglikelihoods


@pytest.mark.parametrize(
    ("kind", "choice"), [("stereotyped", 0), ("anti-stereotyped", 1), ("unknown", 2), ("oracle", 2)]
)
def test_the_option_of_the_role_has_nine_tenths(kind, choice):
    expected = np.full(3, 0.05)
    expected[choice] = 0.9
    np.testing.assert_allclose(np.exp(ask(kind)), expected, rtol=1e-12)


def test_an_undefined_role_and_the_uniform_baseline_give_a_tie():
    np.testing.assert_array_equal(ask("stereotyped", {"biased": -1}), [math.log(1 / 3)] * 3)
    np.testing.assert_array_equal(ask("uniform"), [math.log(1 / 3)] * 3)


def test_a_kind_of_another_benchmark_is_refused():
    with pytest.raises(QabiasError, match=r"'first'"):
        ask("first")


def test_tokens_are_words_and_bytes_are_utf8():
    scores = BaselineScorer("oracle").score([Request("Who?", OPTIONS, ROLES)])[0]
    assert scores.n_tokens.tolist() == [2, 1, 3]
    assert scores.n_bytes.tolist() == [10, 5, 16]
    assert scores.n_tokens.dtype == scores.n_bytes.dtype == np.int32
    assert scores.loglikelihoods.dtype == np.float64


def test_random_depends_on_seed_and_key_but_not_on_order():
    requests = [Request("Who?", OPTIONS, ROLES, f"Age/{i}") for i in range(300)]

    def choices(asked, seed):
        return [int(score.loglikelihoods.argmax()) for score in BaselineScorer("random", seed).score(asked)]

    first = choices(requests, 0)
    assert choices(requests[::-1], 0) == first[::-1]
    assert choices(requests, 1) != first
    # 300 uniform draws: each count is within 4 standard deviations (8.2) of 100.
    assert all(67 <= count <= 133 for count in np.bincount(first, minlength=3))


def test_random_is_the_same_on_every_machine():
    requests = [Request("Who?", OPTIONS, ROLES, f"Age/{i}") for i in range(8)]
    choices = [int(score.loglikelihoods.argmax()) for score in BaselineScorer("random", 7).score(requests)]
    # sha256 of '7/Age/0', '7/Age/1', ... as a number, modulo 3
    assert choices == [1, 1, 0, 0, 0, 1, 1, 1]


def test_an_unknown_kind_lists_the_kinds():
    with pytest.raises(QabiasError, match=f"{KINDS[0]}, .* all {len(KINDS)}"):
        BaselineScorer("biased")


def test_baselines_load_by_name():
    scorer = load_scorer(None, "baseline:random", seed=3, device="cpu")
    assert (scorer.name, scorer.kind, scorer.seed) == ("baseline", "random", 3)


def test_the_scorer_of_baselines_takes_no_model():
    with pytest.raises(QabiasError, match="smollm2"):
        load_scorer("baseline", "smollm2")
    with pytest.raises(QabiasError, match="'chat'"):
        load_scorer(None, "baseline:random", scorer_options={"chat": "yes"})
