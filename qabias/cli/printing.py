"""What commands print of a run."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from qabias.benchmarks import Benchmark
from qabias.benchmarks.headline import headline
from qabias.report.terminal import print_headline, print_scores, print_summary
from qabias.runs.distributed import is_first
from qabias.runs.opened import Run, is_question_only
from qabias.support.printable import echo
from qabias.tables.terminal import Console

if TYPE_CHECKING:
    from qabias.studies.contamination import FormsResult


def print_result(result: Run, *, report: bool = True) -> None:
    """Print a run's scores, write its report, and print both paths, from one process only."""
    if not is_first():
        return
    if result.note:
        echo(result.note)
    if result.n_missing_parts:
        come = "answer" if result.note else "shard"
        echo(f"{result.n_missing_parts} parts are still missing; scores come with the last {come}.")
        echo(f"run folder: {result.folder}")
        return
    if result.question.examples.sampled and not result.arguments.until:
        echo(result.question.examples.sampled)
    print_summary(result)
    echo(f"{'More':<9}{shlex.join(['qabias', 'show', str(result.folder), '--full'])}")
    if report:
        from qabias.report.writing import write_report

        echo(f"{'Report':<9}{write_report(result).resolve()}")


def print_forms(result: FormsResult, *, report: bool) -> None:
    """Print the difference of two forms and their paths, or what each lacks, from one process only."""
    if not is_first():
        return
    if result.comparison is None:
        for each in result.runs:
            print_result(each, report=report)
        echo("the comparison comes when both runs are finished")
        return
    from qabias.report.terminal import print_compared  # which few commands need
    from qabias.report.writing import write_report_of

    print_compared(result.comparison)
    for each in result.runs:
        echo(f"run folder: {each.folder}")
        if report:
            write_report_of(each.folder)
    if result.page is not None:
        echo(f"comparison: {result.page.resolve()}")


def print_with_signature(benchmark: Benchmark, scores: Mapping[str, Any], signature: str) -> None:
    """Print the headline, the scores of all groups, and the signature."""
    question_only = is_question_only(benchmark, signature)
    console = Console()
    print_headline(headline(benchmark, scores, "", question_only), console)
    print_scores(benchmark, scores, console, question_only)
    echo(signature)
