"""`qabias.compare`: runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from qabias.api.result import Result
from qabias.api.running import upstream
from qabias.api.tabled import Tabled

if TYPE_CHECKING:
    from rich.console import Console

    from qabias.comparison import Comparison
    from qabias.tables.model import Analysis


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
    def findings(self) -> tuple[str, ...]:
        """How the runs differ, in sentences."""
        return tuple(self._comparison.findings)

    @property
    def by_run(self) -> tuple[str, ...]:
        """What every run found, in sentences that begin with its name."""
        return tuple(self._comparison.by_run)

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know before any number is read."""
        return tuple(self._analysis.notes)

    @property
    def _analysis(self) -> Analysis:
        return self._comparison.analysis

    def report(self, folder: str | Path) -> Path:
        """Write `compare.html` and `analysis.json` into a folder, and return the path of the page.

        Raises:
            QabiasError: If the folder holds a run, or the page cannot be written.
        """
        from qabias.report import write_comparison

        return write_comparison(self._comparison, Path(folder))

    def _repr_html_(self) -> str:
        from qabias.report.card import comparison_card

        return comparison_card(self._comparison)

    def _print(self, console: Console) -> None:
        from qabias.terminal.comparison import print_compared

        print_compared(self._comparison, console)

    def __repr__(self) -> str:
        return f"<qabias.ComparedResults of {', '.join(self.names)}>"


def compare(
    results: Sequence[Result | str | Path], *, allow_mixed: bool = False, upstream_dir: str | Path | None = None
) -> ComparedResults:
    """Set runs side by side, as `qabias compare` does.

    Two runs of one model on published and on parallel texts are shown as published minus parallel form, and runs of
    one model on sets of one form in several languages, such as BBQ's, by language.

    Args:
        results: Two runs or more: results, or folders of runs with scores.
        allow_mixed: Compare runs of other questions or prompts too; what differs is marked.
        upstream_dir: Local mirror of the published files; by default the environment variable `QABIAS_UPSTREAM`.

    Raises:
        QabiasError: If a folder holds no whole run, or runs differ in what must agree.
    """
    from qabias.comparison import compare as compare_runs

    mirror = upstream(upstream_dir)
    runs = [of if isinstance(of, Result) else Result(of, upstream_dir=mirror) for of in results]
    return ComparedResults(runs, compare_runs([run.folder for run in runs], allow_mixed, mirror))
