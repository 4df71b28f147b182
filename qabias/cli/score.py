"""`qabias score`: score collected answers, or a run again."""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qabias.benchmarks.registry import default_name
from qabias.cli.options import ADVANCED, given_names, parse_options, parse_rules, refuse_others, takes
from qabias.errors import QabiasError
from qabias.support.printable import echo
from qabias.support.suggest import missing

if TYPE_CHECKING:
    from qabias.logs import Log
    from qabias.runs.collected import Collected
    from qabias.runs.scored import OtherTool

_MOST_NAMED = 50
# Arguments that run.json does not fix.
_FOR_RUNS = ("path", "rules", "output", "report", "overwrite", "mirror")


@takes("benchmark config source fixes seed option answers model format parser rules mirror output report overwrite")
def score(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(help="Run folder, table of answers, another tool's log, or folder of logs.")],
    benchmark: Annotated[str, typer.Option(help="Benchmark of a table of answers.")] = default_name(),
    *,
    config: str | None,
    source: Annotated[str | None, typer.Option(help="Source of the texts. [the first]")] = None,
    option: list[str] | None,
    answers: Annotated[
        str | None, typer.Option(help="Which model's answers to score, if the file contains several.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Name of the model.")] = None,
    format: Annotated[str | None, typer.Option(help="Prompt format of the questions.")] = None,
    parser: Annotated[
        str | None, typer.Option(help="How written answers are read: default or released.", rich_help_panel=ADVANCED)
    ] = None,
    rules: list[str] | None,
    output: Annotated[Path | None, typer.Option(help="Run folder to write, or NAME.json for the scores only.")] = None,
    report: Annotated[bool, typer.Option("--report", help="Also write report.html in the run folder.")] = False,
    **others: object,
) -> None:
    """Score answers from a file, another tool's log, or an existing run."""
    from qabias.benchmarks import load_benchmark
    from qabias.cli.printing import print_result
    from qabias.runs.collected import collect, score_again
    from qabias.runs.external import read_external
    from qabias.runs.folder import is_run

    changed = parse_rules(rules)
    load_benchmark(benchmark)
    if not path.exists():
        raise missing(path)
    _check_target(path, output)
    if report and not path.is_dir() and (output is None or output.suffix == ".json"):
        raise QabiasError("--report is for a run folder.", "Add --output FOLDER.")
    if path.is_dir() and is_run(path):
        refuse_others(context, _FOR_RUNS, "a run folder: run.json records it")
        print_result(score_again(path, changed, output), report=report)
        return
    asked = {name: context.params[name] for name in given_names(context) if name not in _FOR_RUNS}
    if "option" in asked:
        asked["options"] = parse_options(asked.pop("option"), example="answers=released")

    def score_one(source: "Path | Log", where: Path, target: Path | None) -> None:
        external = collect(read_external(source, asked), changed)
        _finish(external, where, target, report=report)

    if path.is_dir():
        _score_folder(path, output, lambda log, target: score_one(log, log.path, target))
    else:
        score_one(path, path, output)


def _finish(collected: "Collected", path: Path, output: Path | None, *, report: bool) -> None:
    """Print the scores next to the other tool's; write a run folder or a file of scores."""
    from qabias.cli.printing import print_result, print_with_signature
    from qabias.runs.collected import scores_of_collected, write_collected
    from qabias.runs.scored import scores_content
    from qabias.support.files import write_json
    from qabias.support.outputs import check_file, json_with

    other, question = collected.other, collected.question
    for line in other.notes if other else ():
        echo(line)
    if output is not None and output.suffix != ".json":
        result = write_collected(collected, output)
        if not result.n_missing_parts:
            _print_other(other, result.scores)
        print_result(result, report=report)
        return
    scores = scores_of_collected(collected)
    if collected.coverage and not other:
        echo(collected.coverage)
    _print_other(other, scores)
    print_with_signature(question.benchmark, scores, question.signature)
    if output is not None:
        is_own = json_with("benchmark", "scores", signature=question.signature)
        check_file(output, is_own, inputs=[path])
        write_json(output, scores_content(question.benchmark, question.signature, scores))


def _print_other(other: "OtherTool | None", scores: Mapping[str, object]) -> None:
    from qabias.runs.scored import other_figures
    from qabias.tables.terminal import Console, print_table

    table = other_figures(other, scores) if other else None
    if table is not None:
        print_table(table, Console())


def _score_folder(folder: Path, output: Path | None, score_log: "Callable[[Log, Path | None], None]") -> None:
    """Score every log in a folder into its own run folder, and report on every other file."""
    from qabias.logs.detect import find_logs
    from qabias.runs.external import folder_name

    content = find_logs(folder)
    n_logs = len(content.logs) + len(content.unreadable)
    _print_paths("no log", content.others)
    _print_paths("a run already", content.runs)
    if n_logs == 1 and content.logs:
        score_log(content.logs[0], output)
        return
    if output is None or output.suffix == ".json":
        raise QabiasError(f"{folder}: holds several logs.", "Add --output FOLDER for their runs.")
    failures: list[Exception] = list(content.unreadable)
    taken: set[str] = set()
    for log in content.logs:
        names = (f"{folder_name(log)}{ending}" for ending in chain([""], (f"-{number}" for number in count(2))))
        name = next(name for name in names if name not in taken)
        taken.add(name)
        echo(f"\n{log.called}")
        try:
            score_log(log, output / name)
        except (QabiasError, OSError) as error:
            failures.append(error)
    if failures:
        echo("\nnot scored:")
        for failure in failures:
            echo(f"  {failure}")
        raise QabiasError(f"{folder}: {len(failures)} of {n_logs} logs were not scored.", "See the reasons above.")


def _print_paths(what: str, paths: Sequence[Path]) -> None:
    for path in paths[:_MOST_NAMED]:
        echo(f"{what}: {path}")
    if len(paths) > _MOST_NAMED:
        echo(f"{what}: {len(paths) - _MOST_NAMED:,} more")


def _check_target(path: Path, output: Path | None) -> None:
    """Refuse an existing output before anything is read."""
    from qabias.support.outputs import check_file, json_with, may_overwrite

    if output is None:
        return
    if output.suffix == ".json":
        check_file(output, json_with("benchmark", "signature", "scores"), inputs=[path])
    elif may_overwrite():
        raise QabiasError("--overwrite does not apply to a run folder.", "Remove --overwrite, or delete the folder.")
