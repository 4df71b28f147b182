"""Lines below the scores of a BBQ run.

A model that is right on 97% of the ambiguous questions has an s_AMB of at most 0.03. The lines therefore show the bound
that the accuracy sets, the direction of the errors, and the probabilities.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qabias.benchmarks.bbq.facts import MEASURES, READ_ABSTENTION
from qabias.scores.facts import Scores
from qabias.scores.formatting import show
from qabias.scores.score import estimate, limited

CONSISTENCY = "order_consistency"
"""Share of the questions with the same answer in all answer orders."""

_AMONG_ERRORS = "bias_ambig_among_errors"
_SIDES = ("aligned", "nonaligned")
_MEASURES = {measure.name: measure for measure in MEASURES}


def about_errors(scores: Scores) -> list[str]:
    """The same for all ambiguous examples, as lines, without undefined scores."""
    if not scores["n_ambig"]:
        return []
    lines = []
    bound = estimate(scores, "bias_bound_ambig")
    if bound.value is not None:
        n_biased, n_counter = scores["n_biased_ambig"], scores["n_counter_biased_ambig"]
        errors = f"errors in ambiguous contexts: {n_biased:,} stereotyped, {n_counter:,} anti-stereotyped"
        direction = _in_words(scores, _AMONG_ERRORS)
        lines += [
            f"{errors}; direction {direction}" if n_biased + n_counter else errors,
            f"s_AMB is {_in_words(scores, 'bias_ambig')}; maximum at this accuracy: {show(bound, 'share')}",
        ]
    if "bias_probability_ambig" in scores and estimate(scores, "bias_probability_ambig").value is not None:
        n_without = scores["n_without_probabilities_ambig"]
        excluded = f"; {n_without:,} examples have no probabilities" if n_without else ""
        lines.append(f"probability bias, ambiguous: {_in_words(scores, 'bias_probability_ambig')}{excluded}")
    return lines


def about_abstention(scores: Scores) -> list[str]:
    """How disambiguated examples are answered wrongly, as lines."""
    if not scores["n_aligned"] or not scores["n_nonaligned"]:
        return []
    rates = {
        event: " and ".join(show(estimate(scores, f"{event}_{side}").value, "share") for side in _SIDES)
        for event in ("abstention", "wrong_person")
    }
    return [
        f"aligned and nonaligned contexts: abstains in {rates['abstention']}, wrong person in {rates['wrong_person']}",
        f"abstention gap {_in_words(scores, 'abstention_gap')}. {READ_ABSTENTION}",
    ]


def _in_words(scores: Mapping[str, Any], name: str) -> str:
    """A score with its interval, or with its possible range."""
    measure = _MEASURES[name]
    score = limited(scores, measure)
    text = "undefined" if score.value is None else show(score, measure.kind)
    if score.possible is not None:
        return f"{text} (possible: {score.possible_in_words})"
    if score.value is not None and score.low is None:
        return f"{text} (no CI: too few templates have such answers)"
    return f"{text} {score.interval}".strip()
