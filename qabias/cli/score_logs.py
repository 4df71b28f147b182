"""`qabias score` of logs that other tools wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from qabias.cli.printing import print_result, print_with_signature, write_scores_file
from qabias.errors import QabiasError
from qabias.logs import Log
from qabias.runs.collected import refused, write_collected
from qabias.runs.logged import CollectedLog, collect_log, find_logs, folder_name
from qabias.runs.run import scores_of
from qabias.runs.scored import other_figures
from qabias.support.printable import echo

_MOST_NAMED = 50


@dataclass(frozen=True)
class LogOptions:
    """What the command line says of logs."""

    upstream_dir: str | None
    model: str | None
    rules: Mapping[str, str]
    hints: Mapping[str, str]
    overwrite: bool = False
    report: bool = False


def score_log(log: Log, output: Path | None, options: LogOptions) -> None:
    """Score one log and print its scores beside those of the tool; write a run folder or a file of scores."""
    collected = collect_log(log, options.upstream_dir, model=options.model, rules=options.rules, hints=options.hints)
    for note in collected.other.notes:
        echo(note)
    found = collected.found
    if output is not None and output.suffix != ".json":
        result = write_collected(found, output, collected.other)
        if result.scores is not None:
            _print_other(collected, result.scores)
        print_result(result, report=options.report)
        return
    try:
        scores, _ = scores_of(found.question, found.answers, found.arguments.rules)
    except QabiasError as error:
        raise refused(log.path, error) from error
    _print_other(collected, scores)
    print_with_signature(found.question.benchmark, scores, found.question.signature)
    if output is not None:
        question = found.question
        write_scores_file(
            output, question.benchmark, question.signature, scores, overwrite=options.overwrite, inputs=[log.path]
        )


def score_folder(folder: Path, output: Path | None, options: LogOptions) -> None:
    """Score every log in a folder into a run folder of its own, and say of every other file what became of it."""
    found = find_logs(folder)
    n_logs = len(found.logs) + len(found.unreadable)
    if not n_logs:
        raise QabiasError(
            f"{folder}: holds no run (no run.json), and none of its {len(found.others):,} files is a log of another "
            "tool; name a folder that `qabias run` wrote, or one with logs"
        )
    _print_paths("no log", found.others)
    _print_paths("a run already", found.runs)
    if n_logs == 1 and found.logs:
        score_log(found.logs[0], output, options)
        return
    if output is None or output.suffix == ".json":
        raise QabiasError(f"{folder}: holds several logs; give a folder for their runs by --output")
    failures: list[Exception] = list(found.unreadable)
    taken: set[str] = set()
    for log in found.logs:
        name = _free_name(folder_name(log), taken)
        echo(f"\n{log.called}")
        try:
            score_log(log, output / name, options)
        except (QabiasError, OSError) as error:
            failures.append(error)
    if failures:
        echo("\nnot scored:")
        for failure in failures:
            echo(f"  {failure}")
        raise QabiasError(f"{folder}: {len(failures)} of {n_logs} logs were not scored; the lines above say why")


def _free_name(name: str, taken: set[str]) -> str:
    """A name that no log before had: the second "age" is "age-2"."""
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name}-{number}"
    taken.add(found)
    return found


def _print_paths(what: str, paths: Sequence[Path]) -> None:
    for path in paths[:_MOST_NAMED]:
        echo(f"{what}: {path}")
    if len(paths) > _MOST_NAMED:
        echo(f"{what}: {len(paths) - _MOST_NAMED:,} more")


def _print_other(collected: CollectedLog, scores: Mapping[str, object]) -> None:
    """Print the tool's own figures beside ours."""
    from qabias.tables.terminal import Console, print_table

    table = other_figures(collected.other, scores)
    if table is not None:
        print_table(table, Console())
