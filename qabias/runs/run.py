"""Measuring a model: ask what has not been asked yet, then score when all parts are there."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from qabias.benchmarks import Benchmark, load_benchmark
from qabias.benchmarks.base import Rules, check_rules
from qabias.errors import QabiasError
from qabias.runs.arguments import HERE, Machine, RunArguments, check_arguments
from qabias.runs.distributed import launched_processes
from qabias.runs.folder import (
    ANALYSIS_FILE,
    SCORES_FILE,
    RunFile,
    claim,
    default_folder,
    is_complete,
    read_answers,
    read_run,
    write_part,
)
from qabias.runs.means import with_wordings
from qabias.runs.other_tool import other_figures, read_other_tool
from qabias.runs.progress import RunProgress
from qabias.runs.question import Examples, Question, load_examples, put, put_again
from qabias.runs.scored import write_scores
from qabias.runs.turns import turn
from qabias.scorers.base import BatchScorer, Scorer
from qabias.scorers.registry import lasting_options, load_scorer, scorer_of
from qabias.tables.model import Analysis, write_analysis


@dataclass(frozen=True)
class RunResult:
    """Where a run stands."""

    run: RunFile
    scores: Mapping[str, Any] | None
    n_missing_parts: int
    note: str = ""
    warned: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self.run.folder

    @property
    def benchmark(self) -> Benchmark:
        """The benchmark."""
        return load_benchmark(self.run.benchmark)

    @property
    def signature(self) -> str:
        """What was measured, in one line."""
        return self.run.signature


class Prepared(NamedTuple):
    """A run that can begin."""

    arguments: RunArguments
    folder: Path
    scorer: Scorer
    question: Question


def run(
    arguments: RunArguments, output: Path | None = None, machine: Machine = HERE, given: object = None
) -> RunResult:
    """Measure a model: ask what has not been asked yet, then score when all parts are there."""
    processes = launched_processes()
    with processes.together():
        arguments = checked(arguments, machine)
        examples = load_examples(arguments, machine.upstream_dir)
        if machine.device == "auto" and given is None and processes.device:
            machine = replace(machine, device=processes.device)
        arguments, folder, scorer, question = prepare(arguments, examples, machine, given, output)
        share, n_shares = processes.share(*machine.shard)
        if n_shares > 1 and isinstance(scorer, BatchScorer) and scorer.needs_single_process:
            raise QabiasError(
                "a batch is written and read by one process for the whole run, because every share would replace the "
                "request files of the others; leave out --shard and the launcher, or the batch"
            )
    begin = partial(claim, folder, arguments, question.signature, question.units_per_part)
    run_file = processes.on_first(begin)
    with turn(folder, machine.shard, processes):
        _ask_missing(run_file, question, scorer, range(share, len(question.parts), n_shares), machine)
        note = scorer.write_requests() if isinstance(scorer, BatchScorer) else ""
        return replace(processes.on_first(partial(finish, run_file, question)), note=note)


def _ask_missing(run: RunFile, question: Question, scorer: Scorer, mine: range, machine: Machine) -> None:
    """Ask what has not been answered yet of the parts that are this process's."""
    processes = launched_processes()
    with processes.together():
        missing = [number for number in mine if not is_there(run, question, number)]
    n_mine, n_missing = (sum(question.parts[number].num_rows for number in numbers) for numbers in (mine, missing))
    is_shown = machine.shows_progress and processes.rank == 0
    stream = sys.stderr if is_shown else None
    with processes.apart(), closing(RunProgress(run.benchmark, n_mine, n_mine - n_missing, stream)) as progress:
        for number in missing:
            with progress.part(question.parts[number].num_rows):
                answer_part(run, question, number, scorer)


def checked(arguments: RunArguments, machine: Machine = HERE) -> RunArguments:
    """The arguments as a run keeps them, with the rules that are not the default."""
    benchmark = load_benchmark(arguments.benchmark)
    check_arguments(benchmark, arguments, machine)
    return replace(arguments, rules=check_rules(benchmark.rules, arguments.rules, benchmark.name))


def prepare(
    arguments: RunArguments,
    examples: Examples,
    machine: Machine = HERE,
    given: object = None,
    folder: Path | None = None,
) -> Prepared:
    """Load who is asked, and put the examples to it."""
    options = arguments.scorer_options
    # Which scorer a model is made for matters to options only.
    asks = scorer_of(arguments.scorer, arguments.model, arguments.revision, given) if options else None
    arguments = replace(arguments, options=lasting_options(asks, arguments.options))
    folder = folder or default_folder(arguments)
    scorer = load_scorer(
        arguments.scorer,
        arguments.model,
        seed=arguments.seed,
        revision=arguments.revision,
        dtype=arguments.dtype,
        device=machine.device,
        token_budget=machine.token_budget,
        scorer_options=options,
        journal=folder / "requests.jsonl",
        shows_progress=machine.shows_progress and launched_processes().rank == 0,
        handed_over=given,
    )
    return Prepared(arguments, folder, scorer, put(examples, arguments, scorer))


def is_there(run: RunFile, question: Question, number: int) -> bool:
    """Whether a part of a run has been answered."""
    return is_complete(run, number, question.benchmark, question.parts[number])


def answer_part(run: RunFile, question: Question, number: int, scorer: Scorer) -> None:
    """Ask a part of a run and write its answers, unless the scorer is still waiting for them."""
    part = question.parts[number]
    answers = question.benchmark.answer(part, scorer, question.format_of(part), run.arguments.norm)
    if not (isinstance(scorer, BatchScorer) and scorer.is_waiting()):
        write_part(run, number, question.benchmark, part, answers)


def scores_of(question: Question, answers: pa.Table, rules: Rules) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What the metric returns, and what it warns of, which would else name a line of this package."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        scores = question.benchmark.score(question.table, answers, rules)
    return scores, tuple(dict.fromkeys(str(one.message) for one in caught))


def score_run(folder: Path, upstream_dir: str | None = None) -> RunResult:
    """Score the predictions of a run folder and write `scores.json` and `analysis.json`."""
    run_file = read_run(folder)
    question = put_again(run_file, upstream_dir)
    result = finish(run_file, question)
    if result.scores is None:
        has_scores = (folder / SCORES_FILE).exists()
        about = f"; {SCORES_FILE} is of a time when they were there, and stays" if has_scores else ""
        raise QabiasError(
            f"{folder}: {result.n_missing_parts} of {len(question.parts)} parts are missing, so that nothing is "
            f"scored{about}; finish the run by its `qabias run`, which scores it too"
        )
    return result


def finish(run_file: RunFile, question: Question) -> RunResult:
    """Score the answers of a run and write its files, if all parts are there."""
    benchmark, table = question.benchmark, question.table
    answers, n_missing = read_answers(run_file, benchmark, question.parts)
    if n_missing:
        return RunResult(run_file, None, n_missing)
    rules = run_file.arguments.rules
    scores, warned = scores_of(question, answers, rules)
    analysis = benchmark.analyse(table, answers, scores, question.prompt_format, rules)
    if question.prompt_format is not None and question.prompt_format.wordings:
        scores, analysis = with_wordings(benchmark, table, answers, scores, analysis, question.prompt_format, rules)
    analysis = _with_other_tool(analysis, scores, run_file.folder)
    write_scores(run_file, scores)
    write_analysis(analysis, run_file.folder / ANALYSIS_FILE)
    return RunResult(run_file, scores, 0, warned=warned)


def _with_other_tool(analysis: Analysis, scores: Mapping[str, Any], folder: Path) -> Analysis:
    """The tables with the figures of the tool whose log was scored, and what to know of it; as they are without one."""
    other = read_other_tool(folder)
    if other is None:
        return analysis
    table = other_figures(other, scores)
    tables = (*analysis.tables, *([table] if table else []))
    return replace(analysis, tables=tables, notes=(*other.notes, *analysis.notes))
