"""What commands print of a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from qabias.benchmarks import Benchmark
from qabias.errors import QabiasError
from qabias.measuring.forms import FormsResult
from qabias.measuring.run import RunResult
from qabias.runs.distributed import is_first
from qabias.runs.folder import REPORT_FILE
from qabias.runs.scored import is_question_only, scores_content
from qabias.support.files import read_json, write_json
from qabias.terminal.comparison import print_compared
from qabias.terminal.scores import print_findings, print_scores


def print_result(result: RunResult) -> None:
    """Print the scores of a run and where they lie, or how much is missing; only one process of several prints."""
    if not is_first():
        return
    if result.note:
        typer.echo(result.note)
    if result.scores is None:
        come = "answer" if result.note else "shard"
        typer.echo(f"{result.n_missing_parts} parts are still missing; scores come with the last {come}.")
        typer.echo(f"run folder: {result.folder}")
        return
    print_with_signature(result.benchmark, result.scores, result.signature)
    typer.echo(f"run folder: {result.folder}")
    typer.echo(f"report:     {(result.folder / REPORT_FILE).resolve()}")


def print_forms(result: FormsResult) -> None:
    """Print the difference of two forms and where they lie, or what is missing of each; only one process prints."""
    if not is_first():
        return
    if result.comparison is None:
        for each in result.runs:
            print_result(each)
        typer.echo("the comparison comes when both runs are finished")
        return
    print_compared(result.comparison)
    for each in result.runs:
        typer.echo(f"run folder: {each.folder}")
    if result.page is not None:
        typer.echo(f"comparison: {result.page.resolve()}")


def write_scores_file(path: Path, benchmark: Benchmark, signature: str, scores: Mapping[str, Any]) -> None:
    """Write scores alone; an older file of scores is replaced, and nothing else.

    Raises:
        QabiasError: If there is another file of that name.
        OSError: If it cannot be written.
    """
    check_scores_file(path)
    write_json(path, scores_content(benchmark, signature, scores))


def check_scores_file(path: Path) -> None:
    """Refuse to replace a file that is none of scores.

    Raises:
        QabiasError: If there is one.
    """
    if not path.exists():
        return
    try:
        content = read_json(path)
    except (OSError, ValueError):
        content = None
    if not isinstance(content, dict) or not {"benchmark", "signature", "scores"} <= set(content):
        raise QabiasError(f"{path}: exists and is no file of scores; choose another --output")


def print_with_signature(benchmark: Benchmark, scores: Mapping[str, Any], signature: str) -> None:
    """Print scores, what was found in sentences, and what was measured in one line."""
    question_only = is_question_only(benchmark, signature)
    print_scores(benchmark, scores, question_only=question_only)
    print_findings(benchmark, scores, question_only=question_only)
    typer.echo(signature)
