"""Two runs' answers to the same examples, paired by their benchmark, and whether they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from qabias.benchmarks.base import RUN
from qabias.benchmarks.pairs import Floats, Pair, mean_of_pairs
from qabias.benchmarks.scoring import by_run
from qabias.building.origin import BUNDLED
from qabias.runs.folder import read_all_answers
from qabias.runs.opened import Run
from qabias.runs.question import load_examples_of, prompt_variants
from qabias.runs.signature import signature_fields
from qabias.scores.score import Score
from qabias.share.metrics.shared.intervals import detectable, limits, of_clusters
from qabias.support.arrow import plain

APART = 0.05  # adjusted p-value below which two runs or forms differ
CONFIDENCE = 0.95
N_PERMUTATIONS = 10_000
# With so few clusters every exchange is tried; 2 ** 13 is less than the number of random ones.
MOST_EXACT = 13
FEWEST_DIFFERING = 5
"""Clusters with another result from which on their spread shows how a true difference varies."""

# Scores of sums that were added in another order differ by rounding, and are ties.
_ROUNDING = 1e-12


class Answers:
    """Examples and answers of runs; runs of the same examples share them."""

    def __init__(self) -> None:
        self._tables: dict[tuple[Any, ...], pa.Table] = {}

    def examples(self, run: Run) -> pa.Table:
        """The examples of a run."""
        key = _questions(run)
        if key not in self._tables:
            self._tables[key] = load_examples_of(run).table
        return self._tables[key]

    def of_run(self, run: Run) -> pa.Table:
        """A run's answers, parallel to its examples: the columns that its metric reads."""
        answers = read_all_answers(run, run.benchmark, self.examples(run))
        read = {*run.benchmark.answer_columns, *run.benchmark.stored_columns}
        return answers.select([name for name in answers.column_names if name in read])


def _questions(run: Run) -> tuple[Any, ...]:
    arguments = run.arguments
    # The bundled texts are fixed; the seed only draws the sample.
    is_seeded = arguments.source != BUNDLED or arguments.limit is not None
    return (
        *(arguments.benchmark, arguments.config, arguments.source, arguments.fixes, arguments.limit),
        arguments.seed if is_seeded else None,
        signature_fields(run.signature).get("source"),
        prompt_variants(run.benchmark, arguments),
        # Answers that others collected may be to some of the examples only.
        run.folder.resolve() if arguments.answers or arguments.until else None,
    )


def have_common_examples(first: Run, second: Run) -> bool:
    """Whether examples of one name are the same question in two runs, with answers counted alike."""
    one, other = first.arguments, second.arguments
    same = all(getattr(one, name) == getattr(other, name) for name in ("benchmark", "source", "fixes", "rules"))
    # Texts of other sources than the bundled ones may depend on the seed.
    same_texts = one.source == BUNDLED or one.seed == other.seed
    sources = (signature_fields(run.signature).get("source") for run in (first, second))
    wordings = {prompt_variants(run.benchmark, run.arguments) for run in (first, second)}
    return same and same_texts and len(set(sources)) == 1 and len(wordings) == 1


def pair_up(answers: Answers, first: tuple[Run, pa.Table], second: tuple[Run, pa.Table]) -> dict[str, Pair]:
    """The common examples of two runs, with both answers, by group."""
    (one, ours), (other, theirs) = first, second
    table = answers.examples(one)
    if _questions(one) != _questions(other):
        key = [*one.benchmark.key, *([RUN] if RUN in table.column_names else [])]
        rows = common_rows(table, answers.examples(other), key)
        table, ours, theirs = table.take(rows[0]), ours.take(rows[0]), theirs.take(rows[1])
    if not table.num_rows:
        return {}
    pairs, start = [], 0
    for of_wording in by_run(table):
        first_answers, second_answers = (answered.slice(start, of_wording.num_rows) for answered in (ours, theirs))
        pairs.append(one.benchmark.pair_up(of_wording, first_answers, second_answers, one.arguments.rules))
        start += of_wording.num_rows
    return {name: mean_of_pairs([groups[name] for groups in pairs]) for name in pairs[0]}


def common_rows(one: pa.Table, other: pa.Table, key: Sequence[str]) -> tuple[pa.Array, pa.Array]:
    """The row pairs of two tables with equal keys, in the first table's order."""
    first, second = (
        # A join takes no dictionaries.
        pa.table({**{column: plain(table[column]) for column in key}, name: np.arange(table.num_rows)})
        for table, name in ((one, "row"), (other, "other_row"))
    )
    joined = first.join(second, list(key), join_type="inner").sort_by("row")
    return joined["row"].combine_chunks(), joined["other_row"].combine_chunks()


def common_answers(runs: Sequence[Run]) -> tuple[pa.Table, list[pa.Table]] | None:
    """The examples that all runs answered, with the whole answers of each; None if their questions differ."""
    if not all(have_common_examples(runs[0], run) for run in runs[1:]):
        return None
    answers = Answers()
    table = answers.examples(runs[0])
    whole = [read_all_answers(run, run.benchmark, answers.examples(run)) for run in runs]
    key = [*runs[0].benchmark.key, *([RUN] if RUN in table.column_names else [])]
    for place, run in enumerate(runs[1:], start=1):
        if _questions(run) != _questions(runs[0]):
            rows = common_rows(table, answers.examples(run), key)
            table, whole[:place] = table.take(rows[0]), [one.take(rows[0]) for one in whole[:place]]
            whole[place] = whole[place].take(rows[1])
    return table, whole


def differences(
    pair: Pair, bounds: Mapping[str, float], seed: int = 0, confidence: float = CONFIDENCE
) -> dict[str, Score]:
    """Differences of the scores of two runs, the second minus the first, with p-values and detectable effects.

    Between one and `FEWEST_DIFFERING` differing clusters, if most agree, an effect is unknown; `reason` names them.

    Args:
        pair: The runs.
        bounds: Largest size of the difference by score.
        seed: Seed of the random exchanges.
        confidence: Level of the intervals, above 0.95 for runs that stopped early (see `adjusted_p`).
    """
    names, n = list(bounds), pair.n_clusters
    once = np.ones((1, n))
    values = _subtract(pair.second(once), pair.first(once), names)
    without = 1.0 - np.eye(n)
    replicates = _subtract(pair.second(without), pair.first(without), names)
    one, other = pair.first(np.eye(n)), pair.second(np.eye(n))
    apart = np.any([np.abs(np.nan_to_num(other[name] - one[name])) > _ROUNDING for name in one], axis=0)
    is_rare = 0 < apart.sum() < min(FEWEST_DIFFERING, n / 2)
    reason = f"the runs differ in only {apart.sum()} of {n}" if is_rare else ""
    sizes = np.ones(n) if pair.sizes is None or not pair.sizes.any() else pair.sizes
    first, second = pair.exchanged(exchanges(n, np.random.default_rng(seed)))
    exchanged = _subtract(second, first, names)
    results = {}
    for name, bound in bounds.items():
        value = float(values[name][0])
        if np.isnan(value):
            results[name] = Score(None)
            continue
        shape, spread = of_clusters(value, replicates[name], sizes, bound, confidence)
        parts = *limits(value, shape, spread), detectable(shape, spread, confidence)
        low, high, size = (None if np.isnan(part) else float(part) for part in parts)
        p = adjusted_p(p_value(value, exchanged[name], n <= MOST_EXACT), confidence)
        results[name] = Score(value, low, high, p, None if is_rare else size, reason=reason)
    return results


def _subtract(second: Mapping[str, Floats], first: Mapping[str, Floats], names: Sequence[str]) -> dict[str, Floats]:
    apart = {name: second[name] - first[name] for name in names}
    return {name: np.where(np.abs(value) <= _ROUNDING, 0.0, value) for name, value in apart.items()}


def exchanges(n_clusters: int, rng: np.random.Generator, n_random: int = N_PERMUTATIONS) -> Floats:
    """Which clusters keep their run: 0 or 1, shape (R, C); all 2 ** C ways if few, else random ones."""
    if n_clusters <= MOST_EXACT:
        numbers = np.arange(2**n_clusters)[:, None]
        return (numbers >> np.arange(n_clusters) & 1).astype(np.float64)
    return rng.integers(0, 2, size=(n_random, n_clusters)).astype(np.float64)


def p_value(observed: float, exchanged: Floats, exact: bool) -> float:
    """Two-sided p-value of an exchange test."""
    defined = np.abs(exchanged[~np.isnan(exchanged)])
    as_far = int(np.count_nonzero(defined >= abs(observed) - _ROUNDING))
    return as_far / defined.size if exact else (1 + as_far) / (1 + defined.size)


def adjusted_p(p: float, confidence: float) -> float:
    """A p-value that is below 0.05 where the plain one is below 1 - confidence, as at a look of a run that stops."""
    return p if confidence == CONFIDENCE else min(1.0, p * APART / (1.0 - confidence))
