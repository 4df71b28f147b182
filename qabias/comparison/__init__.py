"""Runs side by side: the same figures across models, and whether the differences between them are real."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from qabias.benchmarks import ALL, Benchmark, Measure
from qabias.benchmarks.base import meaningful
from qabias.benchmarks.findings import findings
from qabias.benchmarks.pairs import Pair
from qabias.comparison import tables
from qabias.comparison.comparable import are_question_only, check_agree, common_benchmark, read_runs, run_names
from qabias.comparison.differing import about_many, about_two
from qabias.comparison.forms import (
    OVERALL_TABLE,
    TwoForms,
    familiarity_of,
    form_findings,
    form_tables,
    two_forms,
    unbalanced,
)
from qabias.comparison.joined import joined_tables
from qabias.comparison.languages import (
    are_one_family,
    check_one_model,
    family_measures,
    family_notes,
    family_tables,
    names_by_language,
    paired_tables,
)
from qabias.comparison.many import MOST_BESIDE, many_notes, missing_by_run, named, notes_by_run, tables_by_run
from qabias.comparison.paired import Answers, have_common_examples, pair_up
from qabias.comparison.paired_tests import differences
from qabias.comparison.ranking_tables import rankings
from qabias.comparison.tables import Compared
from qabias.runs.folder import ANALYSIS_FILE
from qabias.runs.means import measures_of
from qabias.runs.outcomes import missing_notes, outcomes_tables
from qabias.runs.scored import ScoredRun, read_tables
from qabias.tables.model import Analysis, read_notes

Pairs = Callable[[int, int], Mapping[str, Pair]]
"""From the numbers of two runs, the smaller first, to their common examples by group; empty where they have none."""

MOST_PAIRED = 4
"""With so few runs every pair is compared, with more each run with the first."""


class Comparison(NamedTuple):
    """What a comparison found."""

    benchmark: Benchmark
    runs: Sequence[ScoredRun]
    names: Sequence[str]
    mixed: dict[str, list[str]]
    measures: Sequence[Measure]
    scores: Sequence[Mapping[str, Any]]
    analysis: Analysis
    findings: Sequence[str]
    by_run: Sequence[str]
    are_forms: bool = False
    is_by_language: bool = False
    are_many: bool = False


def compare(folders: Sequence[Path], allow_mixed: bool = False, upstream_dir: str | None = None) -> Comparison:
    """Compare runs of a benchmark; of one model on published and on parallel texts, the two forms."""
    return compare_runs(read_runs(folders), allow_mixed, upstream_dir)


def compare_runs(runs: Sequence[ScoredRun], allow_mixed: bool = False, upstream_dir: str | None = None) -> Comparison:
    """The same of runs that have been read."""
    if not allow_mixed:
        forms = two_forms(runs)
        if forms is not None:
            return _compare_forms(forms, upstream_dir)
        if are_one_family(runs):
            return _compare_languages(runs, upstream_dir)
        check_one_model(runs)
    mixed = check_agree(runs, allow_mixed)
    benchmark = common_benchmark(runs)
    beside = _compare_many if len(runs) > MOST_BESIDE else _compare_beside
    return beside(benchmark, runs, mixed, upstream_dir)


def _compare_beside(
    benchmark: Benchmark, runs: Sequence[ScoredRun], mixed: dict[str, list[str]], upstream_dir: str | None
) -> Comparison:
    names = run_names(runs)
    analyses = [read_tables(run) for run in runs]
    answers = Answers(upstream_dir)
    scores = [_scores_of(benchmark, run, answers) for run in runs]
    question_only = are_question_only(runs)
    measures = measures_of(benchmark, question_only, scores)
    same_questions = all(run.benchmark is benchmark for run in runs)
    # Runs of other benchmarks have no examples in common.
    pairs = functools.lru_cache(maxsize=None)(_pairing(runs, answers))
    compared = _compared(measures, runs, pairs) if same_questions else []
    with_first = [pairs(0, number) for number in range(1, len(runs))] if same_questions else []
    ranked, not_ranked = rankings(benchmark, measures, names, scores, with_first)
    found = (
        *ranked,
        *tables.score_tables(benchmark, measures, names, scores),
        *tables.heatmaps(benchmark, measures, names, scores),
        *tables.difference_tables(benchmark, measures, names, scores, compared),
        tables.runs_table(runs, names),
        *outcomes_tables(names, [run.scores for run in runs]),
        *benchmark.across(names, scores),
        *joined_tables(names, analyses, {name for run in runs for name in run.benchmark.facts.own_tables}),
    )
    notes = [*_notes(runs, mixed), *not_ranked, *missing_notes(names, [run.scores for run in runs])]
    notes += _left_out_notes(meaningful(benchmark, question_only), names, scores)
    for name, analysis in zip(names, analyses, strict=True):
        notes += [f"{name}: {note}" for note in analysis.notes]
    sentences = [
        f"{name}. {sentence}"
        for name, of in zip(names, scores, strict=True)
        for sentence in findings(benchmark, of, question_only)
    ]
    differing = [*about_two(benchmark, measures, names, scores, compared), *about_many(benchmark, ranked)]
    analysis = Analysis(found, notes=tuple(notes))
    return Comparison(benchmark, runs, names, mixed, measures, scores, analysis, differing, sentences)


def _compare_many(
    benchmark: Benchmark, runs: Sequence[ScoredRun], mixed: dict[str, list[str]], upstream_dir: str | None
) -> Comparison:
    names = run_names(runs)
    answers = Answers(upstream_dir)
    scores = [_scores_of(benchmark, run, answers) for run in runs]
    question_only = are_question_only(runs)
    measures = measures_of(benchmark, question_only, scores)
    with_first = _with_first(runs, answers) if all(run.benchmark is benchmark for run in runs) else []
    ranked, not_ranked = rankings(benchmark, measures, names, scores, with_first)
    found = (
        *ranked,
        *tables_by_run(benchmark, measures, names, scores),
        tables.runs_table(runs, names),
        *outcomes_tables(names, [run.scores for run in runs]),
    )
    notes = [*_mixed_notes(mixed), *many_notes(len(runs)), *not_ranked]
    notes += missing_by_run(missing_notes(names, [run.scores for run in runs]))
    notes += _left_out_notes(meaningful(benchmark, question_only), names, scores)
    notes += notes_by_run(names, [read_notes(run.folder / ANALYSIS_FILE) for run in runs])
    differing = about_many(benchmark, ranked)
    analysis = Analysis(found, notes=tuple(notes))
    return Comparison(benchmark, runs, names, mixed, measures, scores, analysis, differing, (), are_many=True)


def _compare_forms(forms: TwoForms, upstream_dir: str | None) -> Comparison:
    runs = (forms.published, forms.parallel)
    benchmark = runs[0].benchmark
    measures = measures_of(benchmark, are_question_only(runs), [run.scores for run in runs])
    found, notes = form_tables(forms, measures, upstream_dir)
    scores = [run.scores for run in runs]
    outcomes = outcomes_tables(forms.names, scores)
    familiarity, about_familiarity = familiarity_of(forms)
    notes += [*about_familiarity, *missing_notes(forms.names, scores)]
    analysis = Analysis((*found, *familiarity, *outcomes), notes=tuple(notes))
    overall = next(table for table in found if table.name == OVERALL_TABLE)
    sentences = form_findings(measures, overall, unbalanced(measures, forms, upstream_dir))
    return Comparison(benchmark, runs, forms.names, {}, measures, scores, analysis, sentences, (), are_forms=True)


def _compare_languages(runs: Sequence[ScoredRun], upstream_dir: str | None) -> Comparison:
    names = names_by_language(runs)
    scores = [run.scores for run in runs]
    paired, sentences = paired_tables(runs, names, upstream_dir)
    tables = (*family_tables(runs, names), *paired, *outcomes_tables(names, scores))
    notes = [*family_notes(runs, names), *missing_notes(names, scores)]
    by_run = [
        f"{name}. {sentence}"
        for name, run in zip(names, runs, strict=True)
        for sentence in findings(run.benchmark, run.scores)
    ]
    measures, analysis = family_measures(runs), Analysis(tables, notes=tuple(notes))
    benchmark = runs[0].benchmark
    return Comparison(benchmark, runs, names, {}, measures, scores, analysis, sentences, by_run, is_by_language=True)


def _scores_of(benchmark: Benchmark, run: ScoredRun, answers: Answers) -> Mapping[str, Any]:
    """The scores of a run as those of a benchmark, by the metric that knows both."""
    if run.benchmark is benchmark:
        return run.scores
    rescored = benchmark.facts.rescored or {}
    return rescored[run.benchmark.name](answers.examples(run), answers.of(run))


def _pairing(runs: Sequence[ScoredRun], answers: Answers) -> Pairs:
    """The common examples of two runs by their numbers."""
    # The first run meets every other: its answers are read once.
    of = functools.lru_cache(maxsize=2)(lambda number: answers.of(runs[number]))

    def pairs(first: int, second: int) -> Mapping[str, Pair]:
        if not have_common_examples(runs[first], runs[second]):
            return {}
        return pair_up(answers, (runs[first], of(first)), (runs[second], of(second)))

    return pairs


def _with_first(runs: Sequence[ScoredRun], answers: Answers) -> list[Mapping[str, Pair]]:
    """By other run the common examples with the first: of all groups together where there is such a pair."""
    pairs = _pairing(runs, answers)
    found = (pairs(0, number) for number in range(1, len(runs)))
    return [{ALL: of[ALL]} if ALL in of else of for of in found]


def _compared(measures: Sequence[Measure], runs: Sequence[ScoredRun], pairs: Pairs) -> list[Compared]:
    bounds = {measure.name: measure.farthest for measure in measures}
    found = []
    for first, second in _pairs(len(runs)):
        if have_common_examples(runs[first], runs[second]):
            groups = pairs(first, second)
            results = {name: (pair.n_clusters, differences(pair, bounds)) for name, pair in groups.items()}
            found.append(Compared(first, second, results))
    return found


def _pairs(n_runs: int) -> list[tuple[int, int]]:
    if n_runs <= MOST_PAIRED:
        return list(itertools.combinations(range(n_runs), 2))
    return [(0, number) for number in range(1, n_runs)]


def _left_out_notes(
    measures: Sequence[Measure], names: Sequence[str], scores: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Which scores are not compared because some of the runs are without them, and why."""
    titles: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for measure in measures:
        without = tuple(name for name, of in zip(names, scores, strict=True) if measure.name not in of)
        if measure.lacks and 0 < len(without) < len(names):
            titles.setdefault((measure.lacks, without), []).append(measure.title)
    return [
        f"Not compared: {'; '.join(of)}. {named(without)}: without ({why})." for (why, without), of in titles.items()
    ]


def _notes(runs: Sequence[ScoredRun], mixed: dict[str, list[str]]) -> list[str]:
    notes = _mixed_notes(mixed)
    if len(runs) > MOST_PAIRED:
        notes.append(f"With more than {MOST_PAIRED} runs each is compared with the first.")
    return notes


def _mixed_notes(mixed: dict[str, list[str]]) -> list[str]:
    return [f"MIXED: the runs differ in {', '.join(mixed)}, not in the model alone."] if mixed else []
