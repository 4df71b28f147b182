"""`qabias.compare`: runs side by side."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from qabias.api.calls import takes_mirror
from qabias.api.result import HasTables, Result
from qabias.building.sources import using_mirror
from qabias.errors import QabiasError
from qabias.support.outputs import overwriting

if TYPE_CHECKING:
    from qabias.comparison import Comparison
    from qabias.tables.model import Analysis
    from qabias.tables.terminal import Console


class ComparedResults(HasTables):
    """Compared runs: scores, paired differences with confidence intervals and tests, figures.

    `print` shows the output of `qabias compare`; a notebook shows headline scores, differences and a figure.
    """

    def __init__(self, results: Sequence[Result], comparison: Comparison) -> None:
        self.results = tuple(results)
        self._comparison = comparison

    @property
    def names(self) -> tuple[str, ...]:
        """Short names of the runs, as in the tables."""
        return tuple(self._comparison.names)

    @property
    def headline(self) -> str:
        """How the runs differ, in one sentence; "" without a test."""
        return "" if self._comparison.headline is None else self._comparison.headline.text

    @property
    def by_run(self) -> tuple[str, ...]:
        """The headline of every run, after its name."""
        return tuple(self._comparison.by_run)

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings to read before the scores."""
        return tuple(self._analysis.notes)

    @property
    def _analysis(self) -> Analysis:
        return self._comparison.analysis

    def report(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write `compare.html` and `analysis.json`, and return the path of the page.

        `overwrite` also replaces files other than a comparison of these runs.

        Raises:
            QabiasError: If the folder contains a run or other files, or the page cannot be written.
        """
        from qabias.report.writing import write_comparison

        with overwriting(overwrite):
            return write_comparison(self._comparison, Path(folder))

    def _repr_html_(self) -> str:
        from qabias.report.page import comparison_card

        return comparison_card(self._comparison)

    def _print(self, console: Console) -> None:
        from qabias.report.terminal import print_compared

        print_compared(self._comparison, console)

    def __repr__(self) -> str:
        return f"<qabias.ComparedResults of {', '.join(self.names)}>"


@takes_mirror
def compare(
    results: Sequence[Result | str | Path], *, allow_mixed: bool = False, mirror: str | Path | None = None
) -> ComparedResults:
    """Compare runs, as `qabias compare` does.

    Two runs of one model on published and parallel texts give the contamination view. Runs of one model on one
    benchmark in several languages are shown by language. More than 30 runs are ranked, without paired differences.

    Args:
        results: Two or more results, or folders of scored runs.
        allow_mixed: Also compare runs of different questions or prompts, and mark the differences.
        mirror: Local mirror of the published files; None: the environment variable `QABIAS_UPSTREAM`, else the mirror
            of a result.

    Raises:
        QabiasError: If an item is not a complete run, or the runs differ in what must agree.
    """
    from qabias.comparison import compare as compare_runs

    if isinstance(results, str | os.PathLike | Result) or not isinstance(results, Iterable):
        raise QabiasError(f"results is {results!r}.", "Give a list of two runs or more, such as [first, second].")
    runs = [run if isinstance(run, Result) else Result(run) for run in results]
    with using_mirror(mirror or next((run.mirror for run in runs if run.mirror), None)):
        return ComparedResults(runs, compare_runs([run.folder for run in runs], allow_mixed))
