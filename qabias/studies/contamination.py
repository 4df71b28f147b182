"""Measures one model on published and on parallel texts, and compares the two runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from qabias.benchmarks import Benchmark, load_benchmark, loadable_benchmarks
from qabias.comparison import Comparison, compare
from qabias.errors import QabiasError, arg
from qabias.report.writing import write_comparison
from qabias.runs.arguments import DEFAULT_MACHINE, Machine, RunArguments
from qabias.runs.distributed import is_first
from qabias.runs.folder import default_folder
from qabias.runs.opened import Run
from qabias.runs.run import run
from qabias.support.outputs import check_folder, overwriting
from qabias.support.suggest import unknown

COMPARISON_FOLDER = "comparison"
SEPARATOR = ","  # separator of sources in `--source`


class FormsResult(NamedTuple):
    """State of the two runs."""

    folder: Path
    runs: Sequence[Run]
    comparison: Comparison | None = None
    page: Path | None = None


def default_sources(name: str) -> str:
    """Return the first published and the first parallel source of a benchmark, as in `--source`."""
    forms = load_benchmark(name).forms
    if forms is None:
        able = [other for other, each in loadable_benchmarks().items() if each.forms is not None]
        raise QabiasError(f"{name} has no parallel texts.", f"Use one that has: {', '.join(able[:3])}.")
    return SEPARATOR.join((forms.published[0], forms.parallel[0]))


def split_sources(benchmark: Benchmark, text: str) -> tuple[str, str]:
    """Split `--source` into the published and the parallel source."""
    names = [name.strip() for name in text.split(SEPARATOR)]
    for name in filter(None, names):
        if name not in benchmark.sources:
            raise unknown("source", name, benchmark.sources)
    forms = benchmark.forms
    if forms is None:
        raise QabiasError(f"{benchmark.name} has no parallel texts to compare with.", "Use one source at a time.")
    published, parallel = ([name for name in names if name in kind] for kind in (forms.published, forms.parallel))
    if len(names) != 2 or not len(published) == len(parallel) == 1:
        raise QabiasError(
            f"{arg('source')} {text} does not name a published and a parallel source.",
            f"Use one of {', '.join(forms.published)} and one of {', '.join(forms.parallel)}.",
        )
    return published[0], parallel[0]


def arguments_of_forms(arguments: RunArguments) -> tuple[RunArguments, RunArguments]:
    """Arguments of the runs on the published and on the parallel texts."""
    published, parallel = split_sources(load_benchmark(arguments.benchmark), arguments.source)
    # The parallel texts have no known defects to fix.
    return replace(arguments, source=published), replace(arguments, source=parallel, fixes=False)


def run_forms(
    arguments: RunArguments, output: Path | None = None, machine: Machine = DEFAULT_MACHINE, *, ask: str | None = None
) -> FormsResult:
    """Measure a model on published and on parallel texts, then compare the two runs."""
    both = [form.resolve(machine, ask=ask) for form in arguments_of_forms(arguments)]
    folder = output or default_folder(replace(both[0], source=SEPARATOR.join(form.source for form in both)))
    check_folder(folder)
    results = [run(form, folder / form.source, machine) for form in both]
    if not is_first() or any(result.n_missing_parts for result in results):
        return FormsResult(folder, results)
    comparison = compare([result.folder for result in results])
    with overwriting(True):
        page = write_comparison(comparison, folder / COMPARISON_FOLDER)
    return FormsResult(folder, results, comparison, page)
