"""Comparison of runs: scores across models, and whether their differences are significant."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from qabias.benchmarks import ALL, Benchmark, Measure
from qabias.benchmarks.base import short_title
from qabias.benchmarks.headline import Headline, meaningful
from qabias.benchmarks.pairs import Pair
from qabias.comparison import tables
from qabias.comparison.comparable import DRAWN, are_question_only, check_agree, common_benchmark, read_runs, run_names
from qabias.comparison.headline import by_run, many_headline, pair_headline, texts_headline
from qabias.comparison.paired import Answers, differences, have_common_examples, pair_up
from qabias.comparison.ranking_tests import FEWEST_RUNS, NO_RANKING, rankings
from qabias.comparison.tables import MOST_BESIDE, Compared, named
from qabias.comparison.texts import (
    are_one_family,
    check_one_model,
    family_measures,
    form_view,
    language_view,
    names_by_language,
    two_forms,
)
from qabias.errors import QabiasError, arg
from qabias.runs.folder import ANALYSIS_FILE
from qabias.runs.means import measures_of
from qabias.runs.opened import Run
from qabias.runs.scored import missing_notes, outcomes_tables
from qabias.tables.model import Analysis, Table, read_notes

Pairs = Callable[[int, int], Mapping[str, Pair]]
"""From two run numbers, the smaller first, to their common examples by group; empty without any."""

MOST_PAIRED = 4  # up to this number every pair is compared; beyond it each run with the first


class View(NamedTuple):
    """How a comparison is shown.

    Attributes:
        title: Title of its page.
        intro: Name of its introduction.
        clusters: What its tests pair, in the plural; "" for the benchmark's clusters.
        caveat: What a difference may come from, or "".
        n_tables: Number of tables on the first screen; 0 for the headline scores of the runs.
        has_examples: Whether its runs answered the same examples.
        has_columns: Whether a run is a column; if not, it is a row.
    """

    title: str = "{n} runs of {titles}"
    intro: str = "comparison"
    clusters: str = ""
    caveat: str = ""
    n_tables: int = 0
    has_examples: bool = True
    has_columns: bool = True


MODELS = View()
MANY = View(has_columns=False)
FORMS = View(
    title="{model} on two forms of {benchmark}",
    intro="forms",
    clusters="stereotypes",
    caveat="A difference may come from wording: see docs/contamination.md. ",
    n_tables=2,
    has_examples=False,
)
LANGUAGES = View(title="{model} by language", intro="languages", n_tables=2, has_examples=False)
PUBLISHED = View(title="{name} next to published scores", has_examples=False)


class Comparison(NamedTuple):
    """The result of a comparison."""

    benchmark: Benchmark
    runs: Sequence[Run]
    names: Sequence[str]
    mixed: dict[str, list[str]]
    measures: Sequence[Measure]
    scores: Sequence[Mapping[str, Any]]
    analysis: Analysis
    headline: Headline | None
    by_run: Sequence[str]
    view: View = MODELS

    @property
    def title(self) -> str:
        """The title of its page."""
        titles = " and ".join(dict.fromkeys(short_title(run.benchmark) for run in self.runs))
        model, name = self.runs[0].arguments.model, self.names[0]
        return self.view.title.format(
            n=len(self.runs), titles=titles, model=model, name=name, benchmark=self.benchmark.name
        )

    @property
    def clusters(self) -> str:
        """What its tests pair, in the plural."""
        return self.view.clusters or self.benchmark.facts.clusters[0]


def compare(folders: Sequence[Path], allow_mixed: bool = False) -> Comparison:
    """Compare runs of a benchmark, or the two forms if one model answered published and parallel texts."""
    return compare_runs(read_runs(folders), allow_mixed)


def compare_runs(runs: Sequence[Run], allow_mixed: bool = False) -> Comparison:
    """Compare runs that have been read."""
    if not allow_mixed:
        forms = two_forms(runs)
        if forms is not None:
            both = (forms.published, forms.parallel)
            measures = measures_of(both[0].benchmark, are_question_only(both), [run.scores for run in both])
            return _compare_texts(both, forms.names, measures, form_view(forms, measures), FORMS)
        if are_one_family(runs):
            names = names_by_language(runs)
            view = language_view(runs, names)
            return _compare_texts(runs, names, family_measures(runs), view, LANGUAGES)
        check_one_model(runs)
    mixed = check_agree(runs, allow_mixed)
    benchmark = common_benchmark(runs)
    with_contexts = runs if are_question_only(runs) else [run for run in runs if not run.is_question_only]
    if len(with_contexts) in (1, len(runs)):
        return _compare_models(benchmark, runs, mixed)
    without = {name: run for name, run in zip(run_names(runs), runs, strict=True) if run.is_question_only}
    return _compare_models(benchmark, with_contexts, mixed, without)


def compare_published(run: Run, names: Sequence[str]) -> Comparison:
    """Put a run next to published scores of other models: named rows or makers, or the newest."""
    benchmark = run.benchmark
    if not benchmark.list_published():
        raise QabiasError(f"There are no published scores of {benchmark.name}.", f"Remove {arg('published')}.")
    if run.is_question_only:
        raise QabiasError(f"{run.folder} has no contexts, and published scores have.", "Choose another run.")
    own = run_names([run])
    table, notes = benchmark.next_to_published(run.scores, own[0], names)
    asked = f"source {run.arguments.source}, config {run.arguments.config}, format {run.format_name or 'unknown'}"
    limit = f"limit {run.arguments.limit or 'none'}{', stopped early' if run.stopped_early else ''}"
    notes = [f"This run: {asked}, {limit}. Published rows may differ in these.", *notes]
    each = by_run([benchmark], own, [run.scores], False)
    analysis = Analysis((table,), notes=tuple(notes))
    return Comparison(benchmark, [run], own, {}, (), [run.scores], analysis, None, each, PUBLISHED)


def _compare_models(
    benchmark: Benchmark,
    runs: Sequence[Run],
    mixed: dict[str, list[str]],
    without_contexts: Mapping[str, Run] = MappingProxyType({}),
) -> Comparison:
    are_many = len(runs) > MOST_BESIDE
    names = run_names(runs)
    answers = Answers()
    scores = [_scores_of(benchmark, run, answers) for run in runs]
    question_only = are_question_only(runs)
    measures = measures_of(benchmark, question_only, scores)
    # Runs of other benchmarks have no examples in common.
    same_questions = all(run.benchmark is benchmark for run in runs)
    pairs = functools.lru_cache(maxsize=1 if are_many else None)(_pairing(runs, answers))
    with_first = [_kept(pairs(0, number), are_many) for number in range(1, len(runs))] if same_questions else []
    ranked, not_ranked = rankings(benchmark, measures, names, scores, with_first, max(run.confidence for run in runs))
    if {*DRAWN, "config"} & set(mixed):
        ranked, not_ranked = [], [NO_RANKING.format(group=ALL)] if len(runs) >= FEWEST_RUNS else []
    shared = (tables.runs_table(runs, names), *outcomes_tables(names, [run.scores for run in runs]))
    missing = missing_notes(names, [run.scores for run in runs])
    left_out = _left_out_notes(meaningful(benchmark, question_only), names, scores)
    headline = many_headline(benchmark, ranked, names, scores)
    if are_many:
        below = [tables.table_by_run(benchmark, measure, names, scores) for measure in measures]
        notes = [*_mixed_notes(mixed), tables.MANY.format(n=len(runs)), *not_ranked, *tables.missing_by_run(missing)]
        notes += [*left_out, *tables.notes_by_run(names, [read_notes(run.folder / ANALYSIS_FILE) for run in runs])]
        analysis = Analysis((*ranked, *below, *shared), notes=tuple(notes))
        return Comparison(benchmark, runs, names, mixed, measures, scores, analysis, headline, (), MANY)
    analyses = [run.analysis for run in runs]
    read = {name: run.analysis for name, run in without_contexts.items()}
    blind = {name: replace(one, tables=tuple(t for t in one.tables if t.source)) for name, one in read.items()}
    compared = _compared(measures, runs, pairs) if same_questions else []
    beside = (
        *ranked,
        *tables.score_tables(benchmark, measures, names, scores),
        *tables.heatmaps(benchmark, measures, names, scores),
        *tables.difference_tables(benchmark, measures, names, scores, compared),
        *shared,
        *benchmark.across(names, scores),
        *tables.joined_tables(
            [*names, *blind],
            [*analyses, *blind.values()],
            {one for run in runs for one in run.benchmark.facts.own_tables},
        ),
    )
    notes = _mixed_notes(mixed)
    if len(runs) > MOST_PAIRED:
        notes.append(f"With more than {MOST_PAIRED} runs each is compared with the first.")
    notes += [f"{name} saw no context: only tables of answers that need none show it." for name in blind]
    notes += [*not_ranked, *missing, *left_out]
    if len({run.scores.get("n") for run in runs}) > 1:
        notes.append("The runs have different examples. A column shows a run's own, a difference their common ones.")
    notes += tables.notes_by_run(names, [analysis.notes for analysis in analyses])
    each = by_run([benchmark] * len(runs), names, scores, question_only)
    headline = headline or pair_headline(benchmark, measures, names, scores, compared)
    analysis = Analysis(beside, notes=tuple(notes))
    return Comparison(benchmark, runs, names, mixed, measures, scores, analysis, headline, each)


def _compare_texts(
    runs: Sequence[Run],
    names: Sequence[str],
    measures: Sequence[Measure],
    shown: tuple[Sequence[Table], Sequence[str], Mapping[str, Table]],
    view: View,
) -> Comparison:
    view_tables, notes, paired = shown
    scores = [run.scores for run in runs]
    analysis = Analysis((*view_tables, *outcomes_tables(names, scores)), notes=(*notes, *missing_notes(names, scores)))
    headline = texts_headline(measures, paired) if paired else None
    each = by_run([run.benchmark for run in runs], names, scores, are_question_only(runs))
    return Comparison(runs[0].benchmark, runs, names, {}, measures, scores, analysis, headline, each, view)


def _scores_of(benchmark: Benchmark, run: Run, answers: Answers) -> Mapping[str, Any]:
    """A run's scores as a benchmark's own, by its metric."""
    if run.benchmark is benchmark:
        return run.scores
    return benchmark.rescored[run.benchmark.name](answers.examples(run), answers.of_run(run))


def _pairing(runs: Sequence[Run], answers: Answers) -> Pairs:
    # The first run meets every other: its answers are read once.
    answers_of = functools.lru_cache(maxsize=2)(lambda number: answers.of_run(runs[number]))

    def pairs(first: int, second: int) -> Mapping[str, Pair]:
        if not have_common_examples(runs[first], runs[second]):
            return {}
        return pair_up(answers, (runs[first], answers_of(first)), (runs[second], answers_of(second)))

    return pairs


def _kept(pairs: Mapping[str, Pair], are_many: bool) -> Mapping[str, Pair]:
    """For many runs only the pair of all groups together, to save memory."""
    return {ALL: pairs[ALL]} if are_many and ALL in pairs else pairs


def _compared(measures: Sequence[Measure], runs: Sequence[Run], pairs: Pairs) -> list[Compared]:
    bounds = {measure.name: measure.farthest for measure in measures}
    compared = []
    for first, second in itertools.combinations(range(len(runs)), 2):
        if (first == 0 or len(runs) <= MOST_PAIRED) and have_common_examples(runs[first], runs[second]):
            groups = pairs(first, second)
            level = max(runs[first].confidence, runs[second].confidence)
            results = {
                name: (pair.n_clusters, differences(pair, bounds, confidence=level)) for name, pair in groups.items()
            }
            compared.append(Compared(first, second, results))
    return compared


def _left_out_notes(
    measures: Sequence[Measure], names: Sequence[str], scores: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Which scores are not compared because some runs lack them, and why."""
    titles: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for measure in measures:
        without = tuple(name for name, shown in zip(names, scores, strict=True) if measure.name not in shown)
        if measure.lacks and 0 < len(without) < len(names):
            titles.setdefault((measure.lacks, without), []).append(measure.title)
    return [
        f"Not compared: {'; '.join(shown)}. {named(without)}: without ({why})."
        for (why, without), shown in titles.items()
    ]


def _mixed_notes(mixed: dict[str, list[str]]) -> list[str]:
    return [f"Caution: these runs also differ in {', '.join(mixed)}, not only in the model."] if mixed else []
