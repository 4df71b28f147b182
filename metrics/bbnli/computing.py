"""The options of `compute` and its result: checks the inputs and passes arrays to `scores.py`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from .answers import answer_codes
from .forms import form_of, read
from .inputs import Batches, By, Factor, Table, crossed, runs_of
from .inputs import Options as SharedOptions
from .rows import REFERENCES
from .scores import DENOMINATORS, FORMS, UNPARSED_RULES, VERSION, count
from .summary import summarize


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

        def summary(chosen: np.ndarray) -> dict[str, Any]:
            scored = chosen[items.scored[chosen]]
            columns = (meanings, items.labels, items.aligned, items.parts, items.strata, items.clusters)
            of_runs = [scored[runs.codes[scored] == code] for code in range(len(runs.levels))]
            result = summarize(
                form,
                np.stack([count(*(column[rows] for column in columns)) for rows in of_runs], axis=1),
                options.confidence,
                options.denominator,
                options.unparsed,
            )
            return result | ({"n_undefined_target": len(chosen) - len(scored)} if form == "bbq" else {})

        result = summary(np.arange(references.n))
        if options.by is not None:
            result["by"] = {",".join(columns): _by_value(group, summary) for columns, group in groups.items()}
        return result | {"signature": replace(options, form=form).signature}


def _by_value(group: Factor, summary: Callable[[np.ndarray], dict[str, Any]]) -> dict[str, dict[str, Any]]:
    order = np.argsort(group.codes, kind="stable")
    starts = np.searchsorted(group.codes[order], np.arange(1, len(group.levels)))
    return {value: summary(rows) for value, rows in zip(group.levels, np.split(order, starts), strict=True)}
