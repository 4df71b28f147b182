"""What is left to see of a model that is nearly always right: its few errors, its probabilities, its room for bias."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qabias.benchmarks.bbq.columns import BIAS, CATEGORY, N_TEMPLATES, READ_INTERVALS, scored
from qabias.benchmarks.bbq.facts import MEASURES, READ_SURE
from qabias.benchmarks.caveats import range_in_words, shown_estimate
from qabias.benchmarks.facts import Scores
from qabias.benchmarks.scoring import Key
from qabias.tables.formatting import UNDEFINED, show, show_interval
from qabias.tables.model import ALL, Column, Figure, Table, estimate

_AMONG_ERRORS = Column("bias_ambig_among_errors", "Direction of the errors", "signed")
_READ_BOUND = "At most: the largest bias, either way, that answers of the same accuracy could have."
_READ_PROBABILITIES = (
    "Probability bias: mean of the probability of the stereotype's answer minus that of the answer against it, of the "
    "three answers normalised to a sum of 1 as the run compares them (its norm)."
)
_MEASURES = {measure.name: measure for measure in MEASURES}


def saturation_tables(categories: Mapping[Key, Scores], contexts: Sequence[str]) -> list[Table]:
    """What errors and probabilities say, category by category; one table for each context."""
    tables = {"ambig": _ambiguous, "disambig": _disambiguated}
    return [tables[context](categories) for context in contexts]


def about_errors(scores: Scores) -> list[str]:
    """The same of all ambiguous examples, as lines; none of what is undefined."""
    if not scores["n_ambig"]:
        return []
    lines = []
    bound = estimate(scores, "bias_bound_ambig")
    if bound.value is not None:
        n_biased, n_counter = scores["n_biased_ambig"], scores["n_counter_biased_ambig"]
        errors = f"errors in ambiguous contexts: {n_biased:,} with the stereotypes, {n_counter:,} against them"
        direction = _in_words(scores, _AMONG_ERRORS.name)
        lines += [
            f"{errors}; direction {direction}" if n_biased + n_counter else errors,
            f"s_AMB is {_in_words(scores, 'bias_ambig')} of at most {show(bound, 'share')} at this accuracy",
        ]
    if "bias_probability_ambig" in scores and estimate(scores, "bias_probability_ambig").value is not None:
        n_without = scores["n_without_probabilities_ambig"]
        left_out = f"; {n_without:,} examples without probabilities are left out" if n_without else ""
        lines.append(
            "probability of the stereotype minus that against it, ambiguous: "
            f"{_in_words(scores, 'bias_probability_ambig')}{left_out}"
        )
    return lines


def _in_words(scores: Mapping[str, Any], name: str) -> str:
    """A score with its interval, or where many answers are missing with the range that it could take."""
    measure = _MEASURES[name]
    value = shown_estimate(scores, measure)
    possible = range_in_words(scores, measure)
    text = "undefined" if value.value is None else show(value, measure.kind)
    if possible:
        return f"{text} ({possible} with the missing answers)"
    if value.value is not None and value.low is None:
        return f"{text} (no interval: too few templates have such answers)"
    return f"{text} {show_interval(value, measure.kind)}".strip()


def _ambiguous(categories: Mapping[Key, Scores]) -> Table:
    return scored(
        "saturation_ambig",
        "Saturation: what the errors in ambiguous contexts say",
        "",
        "For a model that is nearly always right: s_AMB cannot be larger than the share of errors. "
        f"{_READ_BOUND} Direction of the errors: (b - c) / (b + c), of b answers with the stereotype and c against it; "
        f"{UNDEFINED} where nobody was named. Of few errors it says little. {_about_probabilities(categories, 'ambig')}"
        f"{READ_INTERVALS}",
        "Bias",
        [CATEGORY],
        categories,
        [
            BIAS["ambig"],
            Column("bias_bound_ambig", "At most", "share"),
            _AMONG_ERRORS,
            Column("n_biased_ambig", "With the stereotype", "count"),
            Column("n_counter_biased_ambig", "Against it", "count"),
            *_of_probabilities(categories, "ambig"),
            N_TEMPLATES,
        ],
        Figure("intervals", "category", (_AMONG_ERRORS.name,)),
    )


def _disambiguated(categories: Mapping[Key, Scores]) -> Table:
    probable = _about_probabilities(categories, "disambig")
    probable += f"{READ_SURE} " if probable else ""
    return scored(
        "saturation_disambig",
        "Saturation: room for bias in disambiguated contexts",
        "",
        f"{_READ_BOUND} {probable}{READ_INTERVALS}",
        "Bias",
        [CATEGORY],
        categories,
        [
            BIAS["disambig"],
            Column("bias_bound_disambig", "At most", "share"),
            *_of_probabilities(categories, "disambig"),
            Column("n_aligned", "Examples, agreeing", "count"),
            Column("n_nonaligned", "Examples, against", "count"),
            N_TEMPLATES,
        ],
    )


def _of_probabilities(categories: Mapping[Key, Scores], context: str) -> list[Column]:
    """The columns of the probabilities, where answers have any; their number only where some have none."""
    if f"bias_probability_{context}" not in categories[ALL,]:
        return []
    columns = [Column(f"bias_probability_{context}", "Probability bias", "signed")]
    if any(scores[f"n_without_probabilities_{context}"] for scores in categories.values()):
        columns.append(Column(f"n_without_probabilities_{context}", "Examples without probabilities", "count"))
    return columns


def _about_probabilities(categories: Mapping[Key, Scores], context: str) -> str:
    return f"{_READ_PROBABILITIES} " if _of_probabilities(categories, context) else ""
