"""The options of `compute` and its result: checks the inputs and passes arrays to `scores.py`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .consistency import consistency, shares
from .inputs import NONE, Batches, By, Table, crossed, runs_of
from .inputs import Options as SharedOptions
from .rows import PREDICTIONS, REFERENCES, read, subject_scores
from .scores import (
    DELTAS,
    VERSION,
    Rows,
    Sums,
    class_tables,
    cluster_tables,
    collect,
    measure,
    pair_tables,
    split,
    subject_tables,
    summarize,
)
from .values import Integers

LOW_COVERAGE = 0.5
"""Lowest coverage without a warning."""


@dataclass(frozen=True, kw_only=True)
class Options(SharedOptions):
    """The options of `compute`."""

    METRIC: ClassVar[str] = REFERENCES.metric
    VERSION: ClassVar[int] = VERSION
    CHOICES: ClassVar[Mapping[str, Sequence[str]]] = {"delta": DELTAS}
    NO_RULES: ClassVar[Sequence[str]] = ("top_k",)

    delta: str = "paper"
    top_k: int = 10


class Computing(Batches):
    """`compute`, `add` and `add_batch` without `evaluate`."""

    REFERENCES = REFERENCES
    OPTIONS = Options

    def _predictions(self, data: Any, copy: bool) -> Table:
        return Table.wrap(PREDICTIONS, data, copy)

    def compute(
        self,
        *,
        predictions: Any = None,
        references: Any = None,
        delta: str = Options.delta,
        by: By = Options.by,
        mean_over: str | None = Options.mean_over,
        top_k: int = Options.top_k,
        confidence: float | None = Options.confidence,
    ) -> dict[str, Any]:
        """Scores these predictions and those added before, with the metric's arguments and result.

        Raises:
            ValueError: a wrong option or input; the message names row, column and value.
        """
        return self._scored(predictions, references, locals())

    def _compute(self, *, predictions: Table, references: Table, options: Options) -> dict[str, Any]:
        runs = runs_of(references, options.mean_over)
        items = read(references, runs)
        groups = {columns: crossed([references.values(name) for name in columns]) for columns in options.breakdowns}
        scores = subject_scores(predictions, items.example_id)
        n_scores = len(scores) * references.n
        coverage = sum(int(np.count_nonzero(values)) for values in scores.values()) / n_scores
        if coverage < LOW_COVERAGE:
            warnings.warn(
                f"unqover: coverage {coverage:.4g}: most of the {n_scores} subject scores are 0, and two zeros show "
                "no preference. A low bias here does not show a fair model.",
                stacklevel=4,
            )
        rows = Rows(
            items.subject1.codes,
            items.subject2.codes,
            items.attribute.codes,
            items.template.codes,
            *measure(scores, options.delta),
        )
        of_shares = rows._replace(comparative=measure(shares(scores))[0])
        del scores  # frees eight columns
        subjects, attributes = items.subject1.levels, items.attribute.levels
        sizes = len(subjects), len(attributes), len(items.template.levels)

        def sums_by_run(chosen: Integers, rows: Rows = rows) -> list[Sums]:
            """The sums of every run over some rows."""
            codes = runs.codes[chosen]
            return [collect(rows.take(chosen[codes == code]), *sizes) for code in range(len(runs.levels))]

        sums = collect(rows, *sizes)
        result = summarize(sums_by_run(np.arange(references.n)) if len(runs.levels) > 1 else [sums], options.confidence)
        scale = result["avg_score"]
        result["coverage"] = coverage
        result |= subject_tables(rows, subjects, scale)
        result |= pair_tables(sums, subjects, attributes, scale, options.top_k)
        result |= class_tables(rows, items.attribute_class.codes, items.attribute_class.levels, subjects)
        result |= cluster_tables(rows, *items.clusters, items.cluster1.levels, attributes)
        if options.confidence is not None:
            clusters = np.full(len(subjects), -1)
            for subject, cluster in zip((items.subject1, items.subject2), items.clusters, strict=True):
                clusters[subject.codes] = cluster
            sums_of_shares = sums_by_run(np.arange(references.n), of_shares)
            names = [name for name in items.cluster1.levels if name != NONE]
            result |= consistency(sums_of_shares, clusters, subjects, attributes, names, options.top_k)
        if options.by is not None:
            result["by"] = {
                ",".join(names): {
                    value: summarize(sums_by_run(part), options.confidence)
                    for value, part in zip(group.levels, split(group.codes, len(group.levels)), strict=True)
                }
                for names, group in groups.items()
            }
        return result | {"signature": options.signature}
