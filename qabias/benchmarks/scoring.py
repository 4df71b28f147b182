"""Rows of a run: stacked, scored by a metric over groups, ranked, and selected as examples."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from qabias.benchmarks.base import RUN, Benchmark
from qabias.errors import QabiasError
from qabias.scores.facts import ALL, WORDINGS, Scores
from qabias.support.arrow import column_codes


def compute(
    metric: Any,
    table: pa.Table,
    predictions: Any,
    rules: Mapping[str, Any],
    by: Sequence[str] | None = None,
    inputs: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """The result of a metric."""
    options: dict[str, Any] = {"by": by, **rules}
    if RUN in table.column_names:
        options["mean_over"] = RUN
    try:
        result: dict[str, Any] = metric.compute(predictions=predictions, references=table, **inputs, **options)
    except ValueError as error:
        raise QabiasError(*str(error).split("\n  fix: ", 1)) from error
    return result


def read_columns(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Some columns of the examples, and `RUN` if they have it."""
    return table.select([*columns, *([RUN] if RUN in table.column_names else [])])


def stacked(table: pa.Table, runs: Sequence[str]) -> pa.Table:
    """A table repeated for several runs, with the column `RUN`."""
    column = pa.array(np.repeat(np.arange(len(runs), dtype=np.int32), table.num_rows))
    names = pa.DictionaryArray.from_arrays(column, pa.array(list(runs), pa.string()))
    return pa.concat_tables([table] * len(runs)).append_column(RUN, names)


def by_run(table: pa.Table, column: str = RUN) -> list[pa.Table]:
    """The tables of a stacked table in their order, or the table itself."""
    if column not in table.column_names:
        return [table]
    codes = column_codes(table[column])
    starts = np.flatnonzero(np.diff(codes, prepend=-1)).tolist()
    return [table.slice(start, end - start) for start, end in itertools.pairwise([*starts, table.num_rows])]


def any_answers(columns: Sequence[str], n: int) -> pa.Table:
    """The first answer to every example, for counts and groups that do not depend on answers."""
    return pa.table({name: pa.array(np.zeros(n, np.int64)) for name in columns})


Key = tuple[str, ...]
Metric = Callable[[pa.Table, pa.Table, Sequence[str]], dict[str, Any]]
"""Scores examples and answers, by columns of the examples, like `Benchmark.score`."""

N_EXAMPLES = 300


def score(
    table: pa.Table, answers: pa.Table, groupings: Mapping[str, Sequence[Key | None]], metric: Metric
) -> dict[str, Any]:
    """A metric's result by groups of rows, in one call."""
    groups = {name: sorted({key for key in keys if key is not None}) for name, keys in groupings.items()}
    for name, keys in groupings.items():
        # Numbers, because the metric joins values by commas, which texts contain too.
        code: dict[Key | None, str] = {key: str(number) for number, key in enumerate(groups[name])}
        table = table.append_column(_column(name), pa.array([code.get(key, "") for key in keys], pa.string()))
    with warnings.catch_warnings():
        # Scoring has already warned of unparsed answers.
        warnings.simplefilter("ignore", UserWarning)
        result = metric(table, answers, list(map(_column, groupings)))
    by = result["by"]
    return {
        **result,
        "by": {
            name: {key: by[_column(name)][str(number)] for number, key in enumerate(keys)}
            for name, keys in groups.items()
        },
    }


def _column(grouping: str) -> str:
    return f"group of {grouping}"  # no column of the data set


def most_biased_first(groups: Mapping[Key, Scores], names: Sequence[str]) -> list[Key]:
    """The groups, the most stereotyped first."""

    def leaning(key: Key) -> tuple[tuple[float, ...], Key]:
        scores = [groups[key][name] for name in names]
        return tuple(float("inf") if np.isnan(score) else -score for score in scores), key

    return sorted(groups, key=leaning)


def chosen_rows(groups: Sequence[Key | None], units: Sequence[Any], ranked: Sequence[Key]) -> list[int]:
    """Rows of whole units, one unit per group in turn up to `N_EXAMPLES`, in the order of the groups."""
    within: dict[Key, dict[Any, list[int]]] = {key: {} for key in ranked}
    for number, (key, unit) in enumerate(zip(groups, units, strict=True)):
        if key is not None:
            within[key].setdefault(unit, []).append(number)
    in_turn = sorted(
        (turn, rank, rows) for rank, key in enumerate(ranked) for turn, rows in enumerate(within[key].values())
    )
    n_until = np.cumsum([len(rows) for *_, rows in in_turn])
    kept = in_turn[: max(1, int(np.searchsorted(n_until, N_EXAMPLES, side="right")))]
    return [number for _, _, rows in sorted(kept, key=lambda entry: (entry[1], entry[0])) for number in rows]


def how_chosen(n: int, n_rows: int, how: str, answers: Sequence[Mapping[str, Any]]) -> str:
    """How examples were chosen, `how` they are first; a note follows if answers are not the most probable options."""
    shown = f"{n:,} of {n_rows:,} examples: {how} first. They show the most biased answers, not the average."
    return shown + about_norm(answers)


def probability_rows(answers: pa.Table) -> list[list[float] | None]:
    """Probabilities of the options by the log-likelihoods of every answer, at any length, else its own."""
    own, lists = (
        answers[name].combine_chunks() if name in answers.column_names else pa.nulls(answers.num_rows)
        for name in ("probabilities", "loglikelihoods")
    )
    if lists.null_count == len(lists):
        return list(own.to_pylist())
    values = lists.flatten().to_numpy(zero_copy_only=False)
    if lists.null_count or values.size % len(lists) or not np.isfinite(values).all():
        return [probabilities(one) or other for one, other in zip(lists.to_pylist(), own.to_pylist(), strict=True)]
    matrix = values.reshape(len(lists), -1)
    shares = np.exp(matrix - matrix.max(axis=1, keepdims=True))
    rows: list[list[float] | None] = np.round(shares / shares.sum(axis=1, keepdims=True), 6).tolist()
    return rows


def probabilities(loglikelihoods: Sequence[float] | None) -> list[float] | None:
    """Shares of the options in their total probability; None if none is possible."""
    largest = max(loglikelihoods or [math.nan])
    if not loglikelihoods or not math.isfinite(largest):
        return None
    weights = [math.exp(value - largest) for value in loglikelihoods]
    return [round(weight / sum(weights), 6) for weight in weights]


def about_norm(answers: Sequence[Mapping[str, Any]]) -> str:
    """Why answers are not the most probable options, as a sentence after others, or ""."""
    n = sum(
        bool(values[prediction] < max(values))
        for values, prediction in ((answer.get("loglikelihoods"), answer.get("prediction")) for answer in answers)
        if values and prediction is not None and prediction >= 0
    )
    are = f"{n:,} of these answers {'is' if n == 1 else 'are'} not the option with the highest probability."
    return f" This run normalizes by length, the probabilities do not: {are}" if n else ""


def scores_of(
    benchmark: Benchmark, table: pa.Table, answers: pa.Table, rules: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The scores, and the metric's warnings, which would otherwise name a line of this package."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        scores = benchmark.score(table, answers, rules)
    return scores, tuple(dict.fromkeys(str(warning.message) for warning in caught))


def breakdowns_of(benchmark: Benchmark, scores: Mapping[str, Any]) -> dict[str, Mapping[str, Scores]]:
    """The breakdowns of a result, with the scores of every group.

    These are the groups of `scores["by"]`, prompt variants, and the benchmark's own groups.
    """
    own = {name: group for name, group in benchmark.groups(scores).items() if name != ALL}
    known = {benchmark.facts.row: own, **scores.get("by", {})}
    if WORDINGS in scores:
        known[WORDINGS] = scores[WORDINGS]
    return {name: groups for name, groups in known.items() if groups}
