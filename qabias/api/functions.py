"""The functions of `qabias`: run, load, read, score and compare."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from qabias.api.arguments import Arguments, OptionValue, option_texts, run_arguments, takes_arguments, takes_mirror
from qabias.api.result import HasTables, Result, Rows, Scratch
from qabias.building.sources import using_mirror
from qabias.errors import QabiasError
from qabias.support.outputs import overwriting

if TYPE_CHECKING:
    import datasets
    from transformers import PreTrainedTokenizerBase

    from qabias.api.given_models import Model
    from qabias.comparison import Comparison
    from qabias.studies.audit import Audit
    from qabias.tables.model import Analysis
    from qabias.tables.terminal import Console


def run_folder(output: str | Path | None) -> tuple[Path, Scratch | None]:
    """The folder of a run, and its owner if it is temporary."""
    if output is not None:
        return Path(output), None
    scratch = Scratch()
    return scratch.folder / "run", scratch


def warn_caller(texts: Iterable[str]) -> None:
    """Warn from a decorated function of the API, at the line that calls it."""
    for text in texts:
        warnings.warn(text, stacklevel=4)


def _tracked(result: Result) -> Result:
    """The result, after its headline scores went to the caller's trackers."""
    from qabias.benchmarks.headline import meaningful, point_of
    from qabias.support.trackers import log_scores

    run = result._run
    measures = meaningful(run.benchmark, run.is_question_only, run.benchmark.facts.tiles)
    log_scores(run.benchmark.name, point_of(run.benchmark, run.scores, measures), run.signature)
    return result


@takes_arguments(Arguments)
def run(asked: Arguments) -> Result:
    """Measure a model, as `qabias run` does, with arguments of the same names.

    An open run of trackio, wandb or mlflow gets the headline scores.

    Returns:
        The scores, tables, figures and answers.

    Raises:
        QabiasError: If an argument is wrong, the folder contains another run, or answers of other shards are missing.
    """
    from qabias.api.given_models import given_model, ready
    from qabias.runs.distributed import launched_processes
    from qabias.runs.run import run as run_benchmark
    from qabias.studies.contamination import SEPARATOR

    if asked.source is not None and SEPARATOR in asked.source:
        raise QabiasError(
            f"source {asked.source!r}: one at a time.", "Run each of them and give both results to qabias.compare."
        )
    chosen = given_model(asked.model, asked.tokenizer, asked.name)
    backend = asked.backend or chosen.scorer
    if chosen.scorer is not None and backend != chosen.scorer:
        raise QabiasError(f"{asked.name!r} needs the backend {chosen.scorer}, not {backend}.", "Remove backend.")
    arguments, machine = run_arguments(replace(asked, model=chosen.name, backend=backend))
    if asked.output is None and (machine.shard[1] > 1 or launched_processes().count > 1):
        raise QabiasError("several processes or shards need a shared folder.", "Give output=...")
    folder, scratch = run_folder(asked.output)
    with ready(chosen):
        finished = run_benchmark(
            arguments, folder, machine, ask=asked.ask, handed_over=chosen.handed_over, whole=asked.whole
        )
    if finished.n_missing_parts:
        raise QabiasError(
            f"{finished.note + '; ' if finished.note else ''}{finished.n_missing_parts} parts of {folder} are still "
            "missing.",
            "Rerun when they exist.",
        )
    warn_caller(finished.warned)
    return _tracked(Result(folder, scratch=scratch))


def audit(
    model: Model = "smollm2",
    *,
    budget: int = 2000,
    threshold: float = 0.1,
    output: str | Path | None = None,
    ask: str | None = None,
    tokenizer: PreTrainedTokenizerBase | None = None,
    name: str | None = None,
    base_url: str | None = None,
    backend: str | None = None,
    option: Mapping[str, OptionValue] | None = None,
    device: str = "auto",
    seed: int = 0,
    progress: bool = True,
) -> Audit:
    """Answer whether a model is biased, on all benchmarks that it can answer, as `qabias audit` does.

    Args:
        model: As for `qabias.run`.
        budget: Maximum number of questions.
        threshold: Smallest bias that counts.
        output: Folder of the audit, which resumes there. [a temporary folder, deleted with the result]
        ask: The ask method. [one that the model can follow]
        tokenizer: Tokenizer of a model in memory.
        name: Name of the model in results.
        base_url: URL of an OpenAI-compatible server, or of Anthropic.
        backend: How the model is queried. [inferred from the model]
        option: Options of the backend by name.
        device: auto, cpu, cuda, ...
        seed: Seed of every random draw.
        progress: Show a progress bar.

    Returns:
        The answers, with what they promise; `print` shows the screen of the command line.

    Raises:
        QabiasError: If an argument is wrong, or the model can answer no benchmark.
    """
    from qabias.api.given_models import given_model, ready
    from qabias.benchmarks import default_name
    from qabias.studies.audit import audit as audit_model

    asked = Arguments(
        default_name(),
        model=model,
        tokenizer=tokenizer,
        name=name,
        base_url=base_url,
        backend=backend,
        option=option,
        device=device,
        seed=seed,
        progress=progress,
    )
    chosen = given_model(asked.model, asked.tokenizer, asked.name)
    arguments, machine = run_arguments(replace(asked, model=chosen.name, backend=asked.backend or chosen.scorer))
    folder, scratch = run_folder(output)
    limits: dict[str, Any] = {"budget": budget, "threshold": threshold}
    with ready(chosen):
        result = audit_model(arguments, folder, machine, ask=ask, handed_over=chosen.handed_over, **limits)
    return replace(result, scratch=scratch)


@takes_mirror
def load(
    benchmark: str,
    config: str | None = None,
    *,
    source: str | None = None,
    fixes: bool = False,
    limit: int | None = None,
    seed: int = 0,
    option: Mapping[str, OptionValue] | None = None,
    mirror: str | Path | None = None,
) -> datasets.Dataset:
    """Load the examples of a benchmark, as `qabias run` asks them.

    Args:
        benchmark: Name of the benchmark (see `qabias list`), or the path of a folder of templates.
        config: Dataset config; None: all examples.
        source: As for `qabias.run`.
        fixes: As for `qabias.run`.
        limit: As for `qabias.run`.
        seed: Seed of generation and of the sample.
        option: Options of the benchmark by name.
        mirror: As for `qabias.run`.

    Returns:
        One row per example, with the columns and features of the dataset card and the other keys (UnQover's `set`).
        Class numbers are `ClassLabel`s. `info` has benchmark, config, citation and origin, which `qabias.score` reads.

    Raises:
        QabiasError: If an argument is wrong or the files are unavailable.
    """
    from qabias.api.result import as_dataset
    from qabias.benchmarks import load_benchmark
    from qabias.runs.arguments import RunArguments, check_arguments, check_own_options
    from qabias.runs.question import load_examples

    options = option_texts(option)
    chosen = load_benchmark(benchmark)
    config, source = config or chosen.configs[-1], source or chosen.sources[0]
    arguments = RunArguments(
        benchmark, config=config, source=source, fixes=fixes, limit=limit, seed=seed, options=options
    )
    check_arguments(chosen, arguments)
    check_own_options(chosen, options)
    return as_dataset(load_examples(arguments).table, chosen, arguments)


@takes_mirror
def read(folder: str | Path, *, mirror: str | Path | None = None) -> Result:
    """Open an existing run of `qabias.run` or the command line; `mirror` is as for `qabias.run`.

    Raises:
        QabiasError: If the folder contains no scored run, or a damaged one.
    """
    return Result(folder)


Predictions: TypeAlias = "Result | str | Path | Rows | Iterable[int | float | str | None]"


@takes_mirror
def score(
    predictions: Predictions,
    references: Rows | None = None,
    *,
    benchmark: str | None = None,
    config: str | None = None,
    source: str | None = None,
    fixes: bool | None = None,
    seed: int | None = None,
    option: Mapping[str, OptionValue] | None = None,
    format: str | None = None,
    parser: str | None = None,
    rules: Mapping[str, str] | None = None,
    answers: str | None = None,
    model: str | None = None,
    output: str | Path | None = None,
    mirror: str | Path | None = None,
) -> Result:
    """Score collected answers, or an existing run; the arguments mean the same as for `qabias score`.

        rows = qabias.load("bbq", "Age", limit=400)
        result = qabias.score([ask(row["context"], row["question"]) for row in rows], rows)

    Args:
        predictions: One of

            - a sequence of answers parallel to `references`: option indices (-1, None, NaN: missing) or texts;
            - a table (dataset, data frame, Arrow table, columns by name, list of rows) or a CSV, JSON or Parquet
              file with the benchmark's key and answer columns (BBQ: `category`, `example_id`, `prediction`), or without
              the keys and parallel to `references`;
            - the log of another tool (inspect, lm-evaluation-harness, an OpenAI batch), or a folder with one;
            - a run (a result or its folder), scored again, or by other `rules` into `output`.
        references: The examples that were asked: rows of `qabias.load`, or a table with the key columns. Columns shared
            with the benchmark must hold the same values.
        benchmark: Name of the benchmark; None: from the references, else the first of `qabias list`.
        config: Dataset config; None: from the references, else all examples.
        source: Source of the texts; None: from the references, else the first.
        fixes: Whether known defects of published texts were corrected; None: from the references, else not.
        seed: Seed of generation; None: from the references, else 0.
        option: The benchmark's own options, such as `{"answers": "released"}`; None: from the references.
        format: Prompt format of the questions, such as a question-only one.
        parser: How written answers are read: default or released.
        rules: Scoring rules by name, such as `{"delta": "released"}`.
        answers: Which model's answers to score, if an authors' table contains several.
        model: Name of the answering model; None: from the file, or "predictions".
        output: Run folder to write; None: a temporary folder, deleted with the result.
        mirror: Local mirror of the published files; None: the environment variable `QABIAS_UPSTREAM`.

    Returns:
        Result for the answered examples. Printing it shows their share.

    Raises:
        QabiasError: If an argument is wrong, answers and references do not match, an example is unknown or answered
            twice, no answer can be read, or the metric refuses an answer.
    """
    options = None if option is None else option_texts(option)
    asked: dict[str, Any] = {"benchmark": benchmark, "config": config, "source": source, "fixes": fixes, "seed": seed}
    asked |= {"options": options, "format": format, "parser": parser, "answers": answers, "model": model}
    asked |= {"references": references}
    said = {name: value for name, value in asked.items() if value is not None}
    from qabias.runs.collected import collect, score_again, write_collected
    from qabias.runs.external import read_external, refuse
    from qabias.runs.folder import is_run

    result = predictions if isinstance(predictions, Result) else None
    path = result.folder if result else Path(predictions) if isinstance(predictions, str | Path) else None
    if path and (result or is_run(path)):
        refuse(said, "collected answers, and a run folder records its own")
        folder, scratch = run_folder(output) if rules else (path, result.scratch if result else None)
        finished = score_again(path, rules or {}, folder if rules else output)
    else:
        answered = collect(read_external(predictions, said), rules or {})
        folder, scratch = run_folder(output)
        finished = write_collected(answered, folder)
    warn_caller(finished.warned)
    return _tracked(Result(folder, scratch=scratch))


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
