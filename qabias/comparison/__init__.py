"""Runs side by side: the same figures across models, and whether the differences between them are real."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from qabias.comparison.comparable import (
    SAME,
    ScoredRun,
    are_question_only,
    differing_fields,
    mixed_fields,
    read_runs,
    read_scored,
    run_names,
)
from qabias.errors import QabiasError

if TYPE_CHECKING:
    from qabias.tables.model import Analysis
    from qabias.comparison.measures import Measure, Scores
    from qabias.comparison.paired import Answers
    from qabias.comparison.tables import Compared

__all__ = [
    "SAME",
    "Comparison",
    "ScoredRun",
    "check_output",
    "compare",
    "differing_fields",
    "read_runs",
    "read_scored",
    "write_comparison",
]

# With so few runs every pair is compared, with more each run with the first.
MOST_PAIRED = 4


class Comparison(NamedTuple):
    """What a comparison found.

    Attributes:
        benchmark: The benchmark whose scores are compared.
        runs: The runs.
        names: Short names of the runs, used in the tables.
        mixed: By field what should agree and does not.
        scores: The scores of the runs, all of that benchmark.
        analysis: The tables.
    """

    benchmark: str
    runs: Sequence[ScoredRun]
    names: Sequence[str]
    mixed: dict[str, list[str]]
    scores: Sequence[Scores]
    analysis: Analysis


def compare(folders: Sequence[Path], allow_mixed: bool = False, upstream_dir: str | None = None) -> Comparison:
    """Compare runs of a benchmark.

    Args:
        folders: Run folders with scores, at least two.
        allow_mixed: Compare runs that differ in more than the model, and mark it.
        upstream_dir: Local mirror of the published files.

    Raises:
        QabiasError: If a folder holds no whole run, or runs differ in what must agree.
    """
    from qabias.tables.model import Analysis, read_analysis
    from qabias.comparison import tables, unqover
    from qabias.comparison.joined import joined_tables
    from qabias.comparison.measures import check_scores, measures_of
    from qabias.comparison.paired import Answers

    runs = read_runs(folders, allow_mixed)
    names = run_names(runs)
    benchmarks = {run.benchmark for run in runs}
    # Scores of BBQ as question and as inference are compared as those of the latter.
    benchmark = runs[0].benchmark if len(benchmarks) == 1 else "bbq_nli"
    for run in runs:
        if run.benchmark == benchmark:
            check_scores(run)
    analyses = [read_analysis(run.folder / "analysis.json") for run in runs]
    answers = Answers(upstream_dir)
    scores = [run.scores if run.benchmark == benchmark else _inference_scores(run, answers) for run in runs]
    measures = measures_of(benchmark, are_question_only(runs))
    # Questions and inferences have no examples in common.
    compared = _compared(measures, runs, answers) if len(benchmarks) == 1 else []
    found = (
        tables.runs_table(runs, names),
        *tables.score_tables(benchmark, measures, names, scores),
        *tables.heatmaps(benchmark, measures, names, scores),
        *tables.difference_tables(benchmark, measures, names, scores, compared),
        *(unqover.tables_across(names, scores) if benchmark == "unqover" else []),
        *joined_tables(names, analyses),
    )
    mixed = mixed_fields(runs)
    notes = _notes(runs, mixed)
    for name, analysis in zip(names, analyses, strict=True):
        notes += [f"{name}: {note}" for note in analysis.notes]
    return Comparison(benchmark, runs, names, mixed, scores, Analysis(found, notes=tuple(notes)))


def _inference_scores(run: ScoredRun, answers: Answers) -> Scores:
    """The scores of a run of BBQ as those of BBQ as inference, by the metric that knows both forms."""
    from qabias.benchmarks import inference

    return inference.score(answers.examples(run), answers.of(run), ("category",))


def _compared(measures: Sequence[Measure], runs: Sequence[ScoredRun], answers: Answers) -> list[Compared]:
    from qabias.comparison.differences import differences
    from qabias.comparison.paired import have_common_examples, pair_up
    from qabias.comparison.tables import Compared

    scores = [measure.name for measure in measures]
    # The first run meets every other: its answers are read once.
    of = functools.lru_cache(maxsize=2)(lambda number: answers.of(runs[number]))
    found = []
    for first, second in _pairs(len(runs)):
        if have_common_examples(runs[first], runs[second]):
            groups = pair_up(answers, (runs[first], of(first)), (runs[second], of(second)))
            results = {name: (pair.n_clusters, differences(pair, scores)) for name, pair in groups.items()}
            found.append(Compared(first, second, results))
    return found


def _pairs(n_runs: int) -> list[tuple[int, int]]:
    if n_runs <= MOST_PAIRED:
        return list(itertools.combinations(range(n_runs), 2))
    return [(0, number) for number in range(1, n_runs)]


def _notes(runs: Sequence[ScoredRun], mixed: dict[str, list[str]]) -> list[str]:
    notes = []
    if mixed:
        notes.append(f"MIXED: the runs differ in {', '.join(mixed)}, not in the model alone.")
    if len(runs) > MOST_PAIRED:
        notes.append(f"With more than {MOST_PAIRED} runs each is compared with the first.")
    return notes


def check_output(folder: Path) -> None:
    """Refuse to write a comparison where it would replace the tables of a run.

    Raises:
        QabiasError: If the folder holds a run.
    """
    if (folder / "run.json").exists():
        raise QabiasError(f"{folder}: holds a run, whose analysis.json would be lost; choose another --output")


def write_comparison(comparison: Comparison, folder: Path) -> Path:
    """Write `analysis.json` and `compare.html`; returns the path of the page.

    Raises:
        QabiasError: If the folder holds a run.
        OSError: If it cannot be written.
    """
    check_output(folder)
    from qabias.tables.model import write_analysis
    from qabias.support.files import write_atomically
    from qabias.report.page import render_page

    runs = comparison.runs
    title = f"{len(runs)} runs of {' and '.join(dict.fromkeys(run.benchmark for run in runs))}"
    head = {f"Run {number}": name for number, name in enumerate(comparison.names, start=1)}
    marked = {f"MIXED: {name}": ", ".join(values) for name, values in comparison.mixed.items()}
    html = render_page(
        title,
        {**head, **marked},
        "comparison",
        comparison.analysis,
        kicker="Comparison",
        appendix={"Signatures": dict(zip(comparison.names, (run.signature for run in runs), strict=True))},
    )
    write_analysis(comparison.analysis, folder / "analysis.json")
    page = folder / "compare.html"
    write_atomically(page, lambda temporary: temporary.write_text(html, encoding="utf-8"))
    return page
