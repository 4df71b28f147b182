"""`qabias score` of logs that other tools wrote."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import typer

from qabias.cli.printing import print_result, print_with_signature
from qabias.errors import QabiasError
from qabias.logs import Log
from qabias.measuring.collected import refused, write_collected
from qabias.measuring.logged import CollectedLog, collect_log, find_logs, folder_name
from qabias.runs.other_tool import other_figures
from qabias.runs.scored import scores_content
from qabias.support.files import write_json

_MOST_NAMED = 5


def score_log(
    log: Log,
    output: Path | None,
    upstream_dir: str | None,
    model: str | None,
    rules: Mapping[str, str],
    hints: Mapping[str, str],
) -> None:
    """Score one log and print its scores beside those of the tool; write a run folder or a file of scores.

    Raises:
        QabiasError: If its questions are not known here, it lacks what scores need, or the output is taken.
    """
    collected = collect_log(log, upstream_dir, model=model, rules=rules, hints=hints)
    for note in collected.other.notes:
        typer.echo(note)
    found = collected.found
    if output is not None and output.suffix != ".json":
        result = write_collected(found, output, collected.other)
        if result.scores is not None:
            _print_other(collected, result.scores)
        print_result(result)
        return
    try:
        scores = found.question.benchmark.score(found.question.table, found.answers, found.arguments.rules)
    except QabiasError as error:
        raise refused(log.path, error) from error
    _print_other(collected, scores)
    print_with_signature(found.question.benchmark, scores, found.question.signature)
    if output is not None:
        write_json(output, scores_content(found.question.benchmark, found.question.signature, scores))


def score_folder(
    folder: Path,
    output: Path | None,
    upstream_dir: str | None,
    model: str | None,
    rules: Mapping[str, str],
    hints: Mapping[str, str],
) -> None:
    """Score every log in a folder into a run folder of its own, and say of every other file what became of it.

    Raises:
        QabiasError: If the folder has no log, there is no output folder for several, or one of them was not scored,
            after all others were.
    """
    logs = find_logs(folder)
    if not logs.logs and not logs.unreadable:
        raise QabiasError(
            f"{folder}: holds no run (no run.json), and none of its {len(logs.others):,} files is a log of another "
            "tool; name a folder that `qabias run` wrote, or one with logs"
        )
    if len(logs.logs) == 1 and not logs.unreadable:
        _print_others(logs.others)
        score_log(logs.logs[0], output, upstream_dir, model, rules, hints)
        return
    if output is None or output.suffix == ".json":
        raise QabiasError(f"{folder}: holds several logs; give a folder for their runs by --output")
    failures = list(logs.unreadable)
    taken: set[str] = set()
    for log in logs.logs:
        name = _free_name(folder_name(log), taken)
        typer.echo(f"\n{log.called}")
        try:
            score_log(log, output / name, upstream_dir, model, rules, hints)
        except QabiasError as error:
            failures.append(error)
            typer.echo(f"not scored: {error}")
    _print_others(logs.others)
    if failures:
        lines = "\n".join(f"  {error}" for error in failures)
        n = len(logs.logs) + len(logs.unreadable)
        raise QabiasError(f"{folder}: {len(failures)} of {n} logs were not scored:\n{lines}")


def _free_name(name: str, taken: set[str]) -> str:
    """A name that no log before had: the second "age" is "age-2"."""
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name}-{number}"
    taken.add(found)
    return found


def _print_others(others: list[Path]) -> None:
    if others:
        more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
        typer.echo(f"no log: {', '.join(map(str, others[:_MOST_NAMED]))}{more}")


def _print_other(collected: CollectedLog, scores: Mapping[str, object]) -> None:
    """Print the tool's own figures beside ours."""
    from rich.console import Console

    from qabias.terminal.table import print_table

    table = other_figures(collected.other, scores)
    if table is not None:
        print_table(table, Console())
