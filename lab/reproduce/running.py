"""Runs a suite: skips finished runs, and reports failures at the end."""

import functools
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from lab.reproduce.suites import SuiteRun
from qabias.benchmarks import Benchmark, load_benchmark
from qabias.benchmarks.base import External
from qabias.building.sources import fetch
from qabias.comparison import compare
from qabias.comparison.comparable import asked_questions
from qabias.errors import QabiasError
from qabias.models.loading import files_digest
from qabias.pooling import Pool, pool
from qabias.report.writing import write_comparison, write_pool
from qabias.runs.arguments import Machine, RunArguments
from qabias.runs.collected import collect, write_collected
from qabias.runs.folder import RUN_FILE, SCORES_FILE
from qabias.runs.opened import Run
from qabias.runs.run import run
from qabias.support.outputs import overwriting
from qabias.support.table_files import read_table
from qabias.support.version import __version__

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Outcome:
    """The outcome of one run of a suite."""

    run: SuiteRun
    folder: Path
    failure: str = ""


@dataclass(frozen=True)
class Mean:
    """An average over the formats of an experiment that a paper prints."""

    pool: Pool
    page: Path


def run_suite(runs: Sequence[SuiteRun], folder: Path, machine: Machine, tell: Callable[[str], object]) -> list[Outcome]:
    """Run all of a suite, each run in its own folder."""

    def measured(suite_run: SuiteRun, where: Path) -> str:
        model = suite_run.model
        if model.made_by and not Path(model.model).exists():  # the Hub may have another model of that name
            return f"the folder {model.model} does not exist; make it with: {model.made_by}"
        n_missing = run(suite_run.arguments, where, machine).n_missing_parts
        return f"{n_missing} parts are missing; they come with the other shards" if n_missing else ""

    return _each(runs, folder, tell, measured)


# Where a benchmark's authors published answers: the models with a file per category, and the file of all others.
_PUBLISHED = {
    "bbq": (
        "nyu-mll/BBQ",
        {"unifiedqa-11b": "results/UnifiedQA/preds_{}.jsonl"},
        "results/RoBERTa_and_DeBERTaV3/df_bbq.csv",
    )
}


def published_answers(benchmark: Benchmark, model: str, config: str) -> list[External]:
    """The answers of a model that the benchmark's authors published, from the pinned and verified files."""
    repository, by_category, others = _PUBLISHED[benchmark.name]
    *categories, whole = benchmark.configs
    wanted = categories if config == whole else config.split(",")
    paths = [by_category[model].format(name) for name in wanted] if model in by_category else [others]
    tables = [read_table(fetch(repository, path)) for path in paths]
    fields = [
        field for field in tables[0].schema if pa.types.is_primitive(field.type) or pa.types.is_string(field.type)
    ]
    rows = pa.concat_tables([table.select([field.name for field in fields]) for table in tables])
    external = benchmark.recognise(rows)
    chosen = [one for one in external if one.model == model]
    if external and not chosen:
        there = ", ".join(dict.fromkeys(one.model for one in external))
        raise QabiasError(f"{', '.join(paths)}: no answers of {model}.", f"Use one of {there}.")
    values = pa.array(wanted)
    return [replace(one, answers=one.answers.filter(pc.is_in(one.answers["category"], values))) for one in chosen]


def check_published(runs: Sequence[SuiteRun]) -> None:
    """Refuse benchmarks without published answers, and unknown configs, once for all runs."""
    for name, config in dict.fromkeys((one.arguments.benchmark, one.arguments.config) for one in runs):
        benchmark = load_benchmark(name)
        if name not in _PUBLISHED:
            raise QabiasError(f"qabias reads no published answers to {name}.", "Remove --published.")
        benchmark.check_config(config)


def take_published(runs: Sequence[SuiteRun], folder: Path, tell: Callable[[str], object]) -> list[Outcome]:
    """Score all runs of a suite from answers that the authors published, without a model."""

    @functools.cache
    def of_model(benchmark: str, model: str, config: str) -> list[External]:
        return published_answers(load_benchmark(benchmark), model, config)

    def taken(suite_run: SuiteRun, where: Path) -> str:
        arguments = suite_run.arguments
        published = of_model(arguments.benchmark, suite_run.model.name, arguments.config)
        answers = next((answers for answers in published if answers.format == arguments.format), None)
        if answers is None:
            return "the authors published no answers of this model to this prompt"
        texts = {name: getattr(arguments, name) for name in ("benchmark", "config", "source", "seed", "fixes")}
        external = replace(answers, **texts, where=f"published-{answers.name}")
        write_collected(collect(external, arguments.rules), where)
        return ""

    return _each(runs, folder, tell, taken)


def make_means(outcomes: Sequence[Outcome], folder: Path) -> list[Mean]:
    """Average the formats of every experiment whose average a paper prints, for each model with all of them."""
    groups: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.run.experiment.mean:
            groups.setdefault((outcome.run.model.name, outcome.run.experiment.name), []).append(outcome)
    means = []
    for (model, experiment), finished in groups.items():
        if len(finished) > 1 and not any(outcome.failure for outcome in finished):
            claim = f"{finished[0].run.experiment.mean}, {model}"
            pooled = pool([outcome.folder for outcome in finished], claim=claim)
            with overwriting(True):
                means.append(Mean(pooled, write_pool(pooled, folder / f"{model}-{experiment}-mean")))
    return means


def compare_all(outcomes: Sequence[Outcome], folder: Path) -> list[Path]:
    """Compare all finished runs of the same questions with any prompts, as the figures of a paper do."""
    pages: list[Path] = []
    for runs in comparable(outcomes, by_context=False):
        if len(runs) > 1:
            comparison = compare([run.folder for run in runs], allow_mixed=True)
            name = f"compared-{len(pages) + 1}" if pages else "compared"
            with overwriting(True):
                pages.append(write_comparison(comparison, folder / name))
    return pages


def _each(
    runs: Sequence[SuiteRun], folder: Path, tell: Callable[[str], object], make: Callable[[SuiteRun, Path], str]
) -> list[Outcome]:
    """Make every run; `make` returns the reason for missing scores, or ""."""
    outcomes = []
    for number, suite_run in enumerate(runs, start=1):
        where = folder / suite_run.name
        failure = ""
        try:
            finished = is_finished(where, suite_run.arguments)
            tell(f"[{number}/{len(runs)}] {suite_run.name}: {'finished' if finished else suite_run.experiment.claim}")
            failure = "" if finished else make(suite_run, where)
        except QabiasError as error:
            failure = str(error)
        except Exception as error:  # one failure must not end a long list of runs
            _log.exception("%s failed", suite_run.name)
            failure = f"{type(error).__name__}: {error}"
        outcomes.append(Outcome(suite_run, where, failure))
    return outcomes


def is_finished(folder: Path, arguments: RunArguments) -> bool:
    """Whether a folder contains the scores of exactly this run by this version; reads two small files."""
    if not (folder / RUN_FILE).exists() or not (folder / SCORES_FILE).exists():
        return False
    scored = Run.scored(folder)
    # A folder of another version is measured again, and one of other weights is refused by its run.
    digest = scored.model_digest
    is_same = scored.arguments == arguments and scored.qabias_version == __version__
    return is_same and (not digest or digest == files_digest(arguments.model))


def comparable(outcomes: Sequence[Outcome], by_context: bool = True) -> list[list[Run]]:
    """Group the scored runs by their questions; `by_context` separates runs without contexts."""
    groups: dict[object, list[Run]] = {}
    for outcome in outcomes:
        if not outcome.failure:
            scored = Run.scored(outcome.folder)
            groups.setdefault((asked_questions(scored), by_context and scored.is_question_only), []).append(scored)
    return list(groups.values())
