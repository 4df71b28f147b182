"""The options of `compute` and its result: checks the inputs and passes arrays to `scores.py`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from .answers import answer_codes
from .forms import form_of, read
from .inputs import Batches, By, Factor, Table, crossed, runs_of
from .inputs import Options as SharedOptions
from .rows import REFERENCES
from .scores import DENOMINATORS, FORMS, UNPARSED_RULES, VERSION, count
from .summary import summarize_each


@dataclass(frozen=True, kw_only=True)
class Options(SharedOptions):
    """The options of `compute`."""

    METRIC: ClassVar[str] = REFERENCES.metric
    VERSION: ClassVar[int] = VERSION
    CHOICES: ClassVar[Mapping[str, Sequence[str]]] = {
        "form": FORMS,
        "denominator": DENOMINATORS,
        "unparsed": UNPARSED_RULES,
    }

    form: str | None = None
    denominator: str = "paper"
    unparsed: str = "wrong"


class Computing(Batches):
    """`compute`, `add` and `add_batch` without `evaluate`."""

    REFERENCES = REFERENCES
    OPTIONS = Options

    def compute(
        self,
        *,
        predictions: Any = None,
        references: Any = None,
        form: str | None = Options.form,
        denominator: str = Options.denominator,
        unparsed: str = Options.unparsed,
        by: By = Options.by,
        mean_over: str | None = Options.mean_over,
        confidence: float | None = Options.confidence,
    ) -> dict[str, Any]:
        """Scores these predictions and those added before, with the metric's arguments and result.

        Raises:
            ValueError: a wrong option or input; the message names row, column and value.
        """
        return self._scored(predictions, references, locals())

    def _compute(self, *, predictions: Table, references: Table, options: Options) -> dict[str, Any]:
        form = options.form or form_of(references)
        runs = runs_of(references, options.mean_over)
        items = read(references, form, runs)
        groups = {columns: crossed([references.values(name) for name in columns]) for columns in options.breakdowns}
        answers = answer_codes(predictions.items("prediction"), words=form != "bbq")
        n_unparsed = int((answers < 0).sum())
        if n_unparsed:
            kept = "count as neutral and wrong" if options.unparsed == "wrong" else "are excluded"
            warnings.warn(
                f"bbnli: {n_unparsed} of {references.n} predictions are unparseable and {kept} "
                f"(unparsed={options.unparsed!r})",
                stacklevel=4,
            )
        meanings = np.where(answers < 0, -1, items.meaning[np.arange(references.n), answers])
        n_strata = int(items.strata.max(initial=0)) + 1

        def counts_of(chosen: np.ndarray) -> np.ndarray:
            """The counts of some rows, by run."""
            columns = (meanings, items.labels, items.aligned, items.parts, items.strata, items.clusters)
            kept = chosen[items.scored[chosen]]
            of_runs = [kept[runs.codes[kept] == code] for code in range(len(runs.levels))]
            counted: list[list[Any]] = [[*(column[rows] for column in columns), n_strata] for rows in of_runs]
            return np.stack([count(*each) for each in counted], axis=1)

        selections = [np.arange(references.n), *(rows for group in groups.values() for rows in _rows_of(group))]
        rules = options.confidence, options.denominator, options.unparsed
        results = summarize_each(form, [counts_of(rows) for rows in selections], *rules)
        if form == "bbq":
            for one, rows in zip(results, selections, strict=True):
                one["n_undefined_target"] = int((~items.scored[rows]).sum())
        result, *others = results
        if options.by is not None:
            remaining = iter(others)
            result["by"] = {
                ",".join(columns): {value: next(remaining) for value in group.levels}
                for columns, group in groups.items()
            }
        return result | {"signature": replace(options, form=form).signature}


def _rows_of(group: Factor) -> list[np.ndarray]:
    """The rows of every level."""
    order = np.argsort(group.codes, kind="stable")
    return np.split(order, np.searchsorted(group.codes[order], np.arange(1, len(group.levels))))
