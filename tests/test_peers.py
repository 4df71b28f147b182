"""The packages that `benchmarks/peers.py` compares speeds with give the same figures, and it shows where they do not."""

import argparse

import numpy as np
import pytest

from benchmarks import peers

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("least_size", [peers.PROBABILITY, peers.LOGLIKELIHOOD])
def test_peers_agree_only_if_figures_agree_by_their_own_size(least_size):
    theirs = np.array([1e-9, 3e-5, 0.7]) if least_size == peers.PROBABILITY else np.array([-1e-9, -3.0, -70.0])
    for place in range(3):
        step = np.zeros(3)
        step[place] = max(abs(theirs[place]), least_size)
        assert peers._difference(theirs + 2e-3 * step, theirs, least_size) == pytest.approx(2e-3)
        assert peers._difference(theirs + 1e-4 * step, theirs, least_size) == pytest.approx(1e-4)
    assert peers.TOLERANCE <= 1e-4
    assert peers._difference(theirs, np.full(3, np.nan), least_size) == np.inf
    assert peers._difference(theirs[:2], theirs, least_size) == np.inf


@pytest.mark.parametrize("scorer", ["seq2seq", "multiple_choice", "masked_lm"])
def test_a_padded_loop_in_batches_is_among_the_peers_and_gives_the_same_figures(scorer):
    comparison = peers.COMPARISONS[scorer](argparse.Namespace(quick=True, questions=12))
    ours = comparison.ours()
    assert f"transformers, batches of {peers.BATCH}" in comparison.peers
    for ask_peer in comparison.peers.values():
        assert peers._difference(ours, ask_peer(), comparison.least_size) < peers.TOLERANCE
    assert peers._difference(ours, ours * 1.01, comparison.least_size) > peers.TOLERANCE
