"""A run of a set of wordings: the scores of each beside their means."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from qabias.benchmarks import Benchmark, PromptFormat
from qabias.benchmarks.facts import WORDINGS
from qabias.benchmarks.scoring import RUN, Rules
from qabias.benchmarks.stacking import by_run
from qabias.comparison import measures_of
from qabias.pooling import of_means
from qabias.tables.model import Analysis


def with_wordings(
    benchmark: Benchmark,
    table: pa.Table,
    answers: pa.Table,
    scores: Mapping[str, Any],
    analysis: Analysis,
    prompt_format: PromptFormat,
    rules: Rules,
) -> tuple[dict[str, Any], Analysis]:
    """Add the scores of each wording to the means over them."""
    tables = by_run(table)
    names = [of_wording[RUN][0].as_py() for of_wording in tables]
    n = answers.num_rows // len(tables)
    given = [(of.drop_columns([RUN]), answers.slice(number * n, n)) for number, of in enumerate(tables)]
    with warnings.catch_warnings():
        # That some answers are missing was said of all wordings together.
        warnings.simplefilter("ignore", UserWarning)
        found = [benchmark.score(*of, rules) for of in given]
        shown = benchmark.analyse(*given[0], found[0], prompt_format.wordings[0], rules)
    whole = of_means(benchmark, measures_of(benchmark, False, found), names, scores, found, analysis, "wordings")
    whole = replace(whole, examples=shown.examples, how_chosen=f"{shown.how_chosen} All are of the wording {names[0]}.")
    return {**scores, WORDINGS: dict(zip(names, found, strict=True))}, whole
