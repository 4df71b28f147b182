"""`qabias.compare`: runs side by side."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from qabias.api.calls import in_python_words, upstream
from qabias.api.result import Result, Tabled
from qabias.errors import QabiasError

if TYPE_CHECKING:
    from qabias.comparison import Comparison
    from qabias.tables.model import Analysis
    from qabias.tables.terminal import Console


class ComparedResults(Tabled):
    """Runs side by side: scores, paired differences with intervals and tests, figures.

    `print` shows what `qabias compare` prints, a notebook the headline scores of all runs, how they
    differ, and a figure.

    Args:
        results: The runs, in their order.
        comparison: What the comparison found.
    """

    def __init__(self, results: Sequence[Result], comparison: Comparison) -> None:
        self.results = tuple(results)
        self._comparison = comparison

    @property
    def names(self) -> tuple[str, ...]:
        """Short names of the runs, as the tables have them."""
        return tuple(self._comparison.names)

    @property
    def headline(self) -> str:
        """How the runs differ, in one sentence; "" if no test compares them."""
        return "" if self._comparison.headline is None else self._comparison.headline.text

    @property
    def by_run(self) -> tuple[str, ...]:
        """The headline of every run, behind its name."""
        return tuple(self._comparison.by_run)

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know before any number is read."""
        return tuple(self._analysis.notes)

    @property
    def _analysis(self) -> Analysis:
        return self._comparison.analysis

    @in_python_words()
    def report(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write `compare.html` and `analysis.json` into a folder, and return the path of the page.

        Args:
            folder: Where to write.
            overwrite: Replace what is no comparison of these runs too.

        Raises:
            QabiasError: If the folder holds a run or something else that would be lost, or the page cannot be written.
        """
        from qabias.report.writing import write_comparison

        return write_comparison(self._comparison, Path(folder), overwrite=overwrite)

    def _repr_html_(self) -> str:
        from qabias.report.card import comparison_card

        return comparison_card(self._comparison)

    def _print(self, console: Console) -> None:
        from qabias.report.terminal import print_compared

        print_compared(self._comparison, console)

    def __repr__(self) -> str:
        return f"<qabias.ComparedResults of {', '.join(self.names)}>"


@in_python_words()
def compare(
    results: Sequence[Result | str | Path], *, allow_mixed: bool = False, mirror: str | Path | None = None
) -> ComparedResults:
    """Set runs side by side, as `qabias compare` does.

    Two runs of one model on published and on parallel texts are shown as published minus parallel form, and runs of
    one model on sets of one form in several languages, such as BBQ's, by language. More than 30 runs stand below each
    other, ranked, without figures and paired differences.

    Args:
        results: Two runs or more: results, or folders of runs with scores.
        allow_mixed: Compare runs of other questions or prompts too; what differs is marked.
        mirror: Local mirror of the published files; by default the environment variable `QABIAS_UPSTREAM`,
            else the mirror that one of the results was made with.

    Raises:
        QabiasError: If something else is given, a folder holds no whole run, or runs differ in what must agree.
    """
    from qabias.comparison import compare as compare_runs

    if isinstance(results, str | os.PathLike | Result) or not isinstance(results, Iterable):
        raise QabiasError(f"results is {results!r}.", "Give a list of two runs or more, such as [first, second].")
    mirror = upstream(mirror)
    runs = [run if isinstance(run, Result) else Result(run, mirror=mirror) for run in results]
    mirror = mirror or next((run.mirror for run in runs if run.mirror), None)
    return ComparedResults(runs, compare_runs([run.folder for run in runs], allow_mixed, mirror))
