"""The options of `compute` and its result: checks the inputs and passes arrays to `scores.py`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .answers import MATCHES, Outputs, answer_indices, read_probabilities, table_of
from .inputs import Batches, By, Factor, Table, runs_of
from .inputs import Options as SharedOptions
from .rows import REFERENCES, group, read
from .scores import OF_PROBABILITIES, UNPARSED_RULES, VERSION, count
from .summary import left_out, summarize_each

MOST_IMBALANCE = 0.01
"""Share of the disambiguated rows by which one side may have more rows than the other without a warning."""


@dataclass(frozen=True, kw_only=True)
class Options(SharedOptions):
    """The options of `compute`."""

    METRIC: ClassVar[str] = REFERENCES.metric
    VERSION: ClassVar[int] = VERSION
    CHOICES: ClassVar[Mapping[str, Sequence[str]]] = {"unparsed": UNPARSED_RULES, "match": MATCHES}
    NO_RULES: ClassVar[Sequence[str]] = ("allow_incomplete",)

    unparsed: str = "exclude"
    match: str = "strict"
    allow_incomplete: bool = False


_LABEL = 4
"""Characters that a text such as "A", "(b)", "ans0" or "yes" has at most."""


class Computing(Batches):
    """`compute`, `add` and `add_batch` without `evaluate`."""

    REFERENCES = REFERENCES
    OPTIONS = Options

    def _predictions(self, data: Any, copy: bool) -> Table:
        outputs = data if isinstance(data, Outputs) else Outputs(data)
        return table_of(super()._predictions(outputs.predictions, copy), outputs.probabilities)

    def add_batch(self, *, predictions: Any = None, references: Any = None, probabilities: Any = None) -> None:
        """Keeps a copy of a batch for a later `compute()`, with the arguments of `compute`.

        Raises:
            ValueError: they differ in length or cannot be read.
        """
        super().add_batch(predictions=Outputs.pair(predictions, probabilities), references=references)

    def add(self, *, prediction: Any = None, reference: Any = None, probabilities: Any = None) -> None:
        """Keeps one prediction, its row and its three probabilities for a later `compute()`.

        Raises:
            ValueError: one of them cannot be read.
        """
        self.add_batch(predictions=[prediction], references=[reference], probabilities=[probabilities])

    def compute(
        self,
        *,
        predictions: Any = None,
        references: Any = None,
        probabilities: Any = None,
        by: By = Options.by,
        mean_over: str | None = Options.mean_over,
        unparsed: str = Options.unparsed,
        match: str = Options.match,
        confidence: float | None = Options.confidence,
        allow_incomplete: bool = Options.allow_incomplete,
    ) -> dict[str, Any]:
        """Scores these predictions and those added before, with the metric's arguments and result.

        Raises:
            ValueError: a wrong option or input; the message names row, column and value.
        """
        return self._scored(Outputs.pair(predictions, probabilities), references, locals())

    def _compute(self, *, predictions: Table, references: Table, options: Options) -> dict[str, Any]:
        runs = runs_of(references, options.mean_over)
        items = read(references, options.allow_incomplete, runs)
        groups = {columns: group(references, columns) for columns in options.breakdowns}
        outputs = predictions.items("prediction")
        answers = answer_indices(outputs, references, options.match)
        probabilities = read_probabilities(predictions)
        n_unparsed = int((answers < 0).sum())
        if n_unparsed == references.n and all(
            isinstance(text, str) and 0 < len(text.strip()) <= _LABEL for text in outputs
        ):
            raise ValueError(
                f"bbq: {str(outputs[0])!r} and all other predictions are labels that name no answer\n"
                "  fix: pass the indices 0, 1 and 2, or the texts of the answers"
            )
        if n_unparsed:
            kept = "count as wrong" if options.unparsed == "wrong" else "are excluded"
            warnings.warn(
                f"bbq: {n_unparsed} of {references.n} predictions are unparseable and {kept} "
                f"(unparsed={options.unparsed!r})",
                stacklevel=4,
            )
        if probabilities is not None:
            n_lacking = int((np.isnan(probabilities[:, 0]) & (answers >= 0)).sum())
            if n_lacking:
                warnings.warn(
                    f"bbq: {n_lacking} of {references.n} rows have a prediction and no probabilities. "
                    "bias_probability_* use the other rows only.",
                    stacklevel=4,
                )
        aligned = (items.labels == items.biased)[items.disambiguated & (items.biased >= 0)]
        sides = int(aligned.sum()), int((~aligned).sum())
        if abs(sides[0] - sides[1]) > MOST_IMBALANCE * aligned.size:
            warnings.warn(
                f"bbq: {sides[0]} aligned and {sides[1]} nonaligned rows: bias_disambig is not 0 without a bias; "
                "read accuracy_cost instead",
                stacklevel=4,
            )
        templates = items.templates

        def parts_of(factor: Factor) -> list[np.ndarray]:
            """The counts of every level."""
            cells, clusters = np.unique(factor.codes * len(templates.levels) + templates.codes, return_inverse=True)
            counts = []
            for code in range(len(runs.levels)):
                rows = runs.codes == code
                shares = None if probabilities is None else probabilities[rows]
                columns: list[Any] = [column[rows] for column in (answers, *items[:-1], clusters)]
                counts.append(count(*[*columns, len(cells), shares]))
            starts = np.searchsorted(cells, np.arange(1, len(factor.levels)) * len(templates.levels))
            return np.split(np.stack(counts, axis=1), starts)

        factors = [Factor(np.zeros(references.n, dtype=np.int64), ("all",)), *groups.values()]
        parts = [part for factor in factors for part in parts_of(factor)]
        results = iter(summarize_each(parts, options.confidence, options.unparsed))
        result = next(results)
        if options.by is not None:
            named = zip(groups, factors[1:], strict=True)
            result["by"] = {
                ",".join(names): {level: next(results) for level in factor.levels} for names, factor in named
            }
        if probabilities is None:
            result = left_out(result, OF_PROBABILITIES)
        return result | {"signature": options.signature}
