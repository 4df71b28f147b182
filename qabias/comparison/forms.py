"""Contamination view: one model on published and on parallel texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from qabias.benchmarks import ALL, Benchmark, Measure
from qabias.benchmarks.base import InFamily, forms_of
from qabias.benchmarks.pairs import AnsweredTable, Floats, Pair, mean_of_pairs
from qabias.benchmarks.scoring import by_run
from qabias.comparison.comparable import mixed_fields
from qabias.comparison.paired import Answers, differences, holm
from qabias.comparison.sample_size import templates_of
from qabias.comparison.tables import DETECTABLE, RUNS_TABLE, lacks_answers
from qabias.errors import QabiasError, arg
from qabias.runs.opened import Run
from qabias.runs.signature import signature_fields
from qabias.scores.facts import RUNS, ParallelTexts, Scores, Stereotype
from qabias.scores.formatting import show
from qabias.scores.score import Score, imbalance
from qabias.tables.model import Column, Figure, Table, Value

SECTION = "Published minus parallel texts"
BY_STEREOTYPE = "By stereotype"
OVERALL_TABLE = "forms_overall"
STEREOTYPES_TABLE = "forms_stereotypes"
DETECTABLE_DIFFERENCE = f"{DETECTABLE}difference"  # column name of the minimum detectable difference

# Fisher's interval needs four points, and fewer determine no correlation.
_FEWEST_CORRELATED = 4
_NORMAL_QUANTILE = 1.959964

_READ_DIFFERENCES = (
    "Score on the published texts minus score on the parallel ones, over the stereotypes that both runs were asked "
    "about. The p-value is from a permutation test that exchanges the two forms of one stereotype at a time. Adjusted "
    "p (Holm) covers all rows except All."
)
_READ_OVERALL = (
    "Every score on the published texts minus the same score on the parallel texts. Adjusted p (Holm) covers all "
    "scores."
)
_READ_STEREOTYPES = (
    "Largest difference first. One stereotype has one text in each form, without an interval or a test. The first "
    "rows of many are large by chance."
)
_READ_AGREEMENT = (
    "Pearson's correlation over stereotypes with Fisher's 95% interval. If it is low, a template's score comes mostly "
    "from its text."
)


class PublishedAndParallel(NamedTuple):
    """The two runs of a model."""

    published: Run
    parallel: Run
    facts: ParallelTexts

    @property
    def names(self) -> list[str]:
        """Short names of the two runs."""
        fields = [signature_fields(run.signature) for run in (self.published, self.parallel)]
        return [f"{form} ({values['source']})" for form, values in zip(("published", "parallel"), fields, strict=True)]


def two_forms(runs: Sequence[Run]) -> PublishedAndParallel | None:
    """The two forms of one benchmark by one model and prompt; None for other runs."""
    if len(runs) != 2 or runs[0].benchmark is not runs[1].benchmark:
        return None
    facts = forms_of(runs[0].benchmark)
    models = {signature_fields(run.signature).get("model") for run in runs}
    if facts is None or len(models) > 1 or set(mixed_fields(runs)) != {"source"}:
        return None
    published = [run for run in runs if run.arguments.source in facts.published]
    parallel = [run for run in runs if run.arguments.source in facts.parallel]
    if not len(published) == len(parallel) == 1:
        return None
    return PublishedAndParallel(published[0], parallel[0], facts)


class SharedStereotypes(NamedTuple):
    """The stereotypes shared by two tables of examples."""

    stereotypes: Sequence[Stereotype]
    topics: Sequence[str]
    clusters: tuple[np.ndarray, np.ndarray]


def shared_stereotypes(facts: ParallelTexts, published: pa.Table, parallel: pa.Table) -> SharedStereotypes:
    """Find the stereotypes shared by two tables of examples."""
    of_rows = [facts.stereotypes(table) for table in (published, parallel)]
    topics = dict(zip(of_rows[1], parallel[facts.topic].to_pylist(), strict=True))
    shared = [stereotype for stereotype in dict.fromkeys(of_rows[0]) if stereotype in topics]
    if not shared:
        raise QabiasError(
            "the two runs have no stereotype in common.",
            f"Give both the same {arg('config')}, or a larger {arg('limit')}.",
        )
    # Two groups of one name share a text, and count as one.
    groups: dict[str, list[str]] = {}
    for name, members in shared:
        groups.setdefault(name, []).append(members)
    number_of_name = {name: number for number, name in enumerate(groups)}
    numbers = {stereotype: number_of_name[stereotype.name] for stereotype in shared}
    clusters = [np.array([numbers.get(one, -1) for one in rows], dtype=np.int64) for rows in of_rows]
    return SharedStereotypes(
        [Stereotype(name, " / ".join(members)) for name, members in groups.items()],
        [topics[Stereotype(name, members[0])] for name, members in groups.items()],
        (clusters[0], clusters[1]),
    )


def form_view(
    forms: PublishedAndParallel, measures: Sequence[Measure]
) -> tuple[list[Table], list[str], dict[str, Table]]:
    """The tables of two forms, warnings, and findings."""
    answers = Answers()
    runs = (forms.published, forms.parallel)
    benchmark = runs[0].benchmark
    examples = [answers.examples(run) for run in runs]
    shared = shared_stereotypes(forms.facts, examples[0], examples[1])
    whole = [
        AnsweredTable(table, answers.of_run(run), clusters)
        for run, table, clusters in zip(runs, examples, shared.clusters, strict=True)
    ]
    pairs = pairs_by_group(benchmark, whole[1], whole[0], runs[0].arguments.rules)
    bounds = {measure.name: measure.farthest for measure in measures}
    level = max(run.confidence for run in runs)
    results = {group: differences(pair, bounds, confidence=level) for group, pair in pairs.items()}
    single = np.eye(pairs[ALL].n_clusters)
    by_stereotype = pairs[ALL].second(single), pairs[ALL].first(single)
    scores = [run.scores for run in runs]
    overall = Table(
        OVERALL_TABLE,
        "Published minus parallel: all scores",
        "",
        _READ_OVERALL,
        *scores_in_both(_FORMS, benchmark, measures, pairs[ALL], results[ALL], scores),
        Figure("intervals", "score", ("difference",)),
        SECTION,
    )
    tables = [
        overall,
        *(_difference_table(benchmark, measure, pairs, results, scores) for measure in measures),
        _agreement_table(measures, *by_stereotype),
        _stereotypes_table(measures, shared, *by_stereotype),
        _runs_table(forms),
    ]
    counts = [templates_of(benchmark, form.table.filter(pa.array(form.clusters >= 0)))[ALL] for form in whole]
    compared = balanced(overall, measures, counts)
    return tables, [_pairing_note(forms.facts, shared, whole)], {"the two forms": compared}


def balanced(overall: Table, measures: Sequence[Measure], scores: Sequence[Scores]) -> Table:
    """The rows of directional scores."""
    leaning = {one.title for one in measures if any(imbalance(counts, one) is not None for counts in scores)}
    return replace(overall, rows=tuple(row for row in overall.rows if row[0] not in leaning))


def pairs_by_group(
    benchmark: Benchmark, first: AnsweredTable, second: AnsweredTable, rules: Mapping[str, str]
) -> dict[str, Pair]:
    """The two forms by group; the mean over prompt variants if there are several."""
    pairs, starts = [], [0, 0]
    for tables in zip(by_run(first.table), by_run(second.table), strict=True):
        forms = []
        for place, (table, form) in enumerate(zip(tables, (first, second), strict=True)):
            begin, n_rows = starts[place], table.num_rows
            starts[place] += n_rows
            kept = form.clusters[begin : begin + n_rows] >= 0
            rows = pa.array(kept)
            clusters = form.clusters[begin : begin + n_rows][kept]
            forms.append(AnsweredTable(table.filter(rows), form.answers.slice(begin, n_rows).filter(rows), clusters))
        assert isinstance(benchmark, InFamily)
        pairs.append(benchmark.pair_forms(forms[0], forms[1], rules))
    return {name: mean_of_pairs([one[name] for one in pairs]) for name in pairs[0]}


def _pairing_note(facts: ParallelTexts, shared: SharedStereotypes, forms: Sequence[AnsweredTable]) -> str:
    n_left_out = [int(np.count_nonzero(form.clusters < 0)) for form in forms]
    note = f"{len(shared.stereotypes)} stereotypes are in both forms. {facts.basis}"
    if any(n_left_out):
        note += (
            f" {n_left_out[0]:,} published and {n_left_out[1]:,} parallel examples do not count, because the other "
            "run has no question about their stereotypes."
        )
    return note


def _runs_table(forms: PublishedAndParallel) -> Table:
    columns = tuple(
        Column(name, title, "text")
        for name, title in (("run", "Form"), ("model", "Model"), ("date", "Date"), ("signature", "Signature"))
    )
    rows = tuple(
        (name, run.arguments.model, run.created[:10], run.signature)
        for name, run in zip(forms.names, (forms.published, forms.parallel), strict=True)
    )
    note = "One model, asked the same way about the same stereotypes in two forms of the text."
    return Table(RUNS_TABLE, "The runs", "", note, columns, rows, None, RUNS)


class Labels(NamedTuple):
    """Names and titles of columns: two levels of a score, their difference, and the paired unit."""

    second: tuple[str, str]
    first: tuple[str, str]
    difference: str
    clusters: tuple[str, str]


_FORMS = Labels(
    ("published", "Published"), ("parallel", "Parallel"), "Published − parallel", ("n_stereotypes", "Stereotypes")
)


def scores_in_both(
    labels: Labels,
    benchmark: Benchmark,
    measures: Sequence[Measure],
    pair: Pair,
    results: Mapping[str, Score],
    scores: Sequence[Scores],
) -> tuple[tuple[Column, ...], tuple[tuple[Value, ...], ...]]:
    """Columns and rows of all scores of two runs, with p-values adjusted for their number."""
    adjusted = holm([results[measure.name].p for measure in measures])
    rows: list[tuple[Value, ...]] = []
    for measure, p_adjusted in zip(measures, adjusted, strict=True):
        second, first, tested = _tested(benchmark, measure, ALL, pair, results[measure.name], p_adjusted, scores)
        # A column has one kind, and levels of shares have no sign; the numbers are in the tables of single scores.
        both = (None if level is None else show(level, measure.kind) for level in (second, first))
        rows.append((measure.title, *both, *tested))
    kinds = {kind_of_difference(measure) for measure in measures}
    kind = kinds.pop() if len(kinds) == 1 else "number"
    return (Column("score", "Score", "text"), *_difference_columns(labels, "text", kind)), tuple(rows)


def _tested(
    benchmark: Benchmark,
    measure: Measure,
    group: str,
    pair: Pair,
    difference: Score,
    p_adjusted: float | None,
    scores: Sequence[Scores],
) -> tuple[float | None, float | None, tuple[Value, ...]]:
    """A group's score in both runs, and its difference; no MDE if answers are missing."""
    once = np.ones((1, pair.n_clusters))
    lacks = lacks_answers([benchmark.groups(run_scores, measure) for run_scores in scores], group, measure)
    cells = (Score(*difference[:3]), difference.p, p_adjusted, pair.n_clusters)
    second, first = (defined(run(once)[measure.name][0]) for run in (pair.second, pair.first))
    return second, first, (*cells, None if lacks else difference.mde)


def _difference_table(
    benchmark: Benchmark,
    measure: Measure,
    pairs: Mapping[str, Pair],
    results: Mapping[str, Mapping[str, Score]],
    scores: Sequence[Scores],
) -> Table:
    row_title = benchmark.facts.group
    family = [group for group in pairs if group != ALL]
    adjusted = dict(zip(family, holm([results[group][measure.name].p for group in family]), strict=True))
    rows: list[tuple[Value, ...]] = []
    for group, pair in pairs.items():
        difference = results[group][measure.name]
        second, first, tested = _tested(benchmark, measure, group, pair, difference, adjusted.get(group), scores)
        rows.append((group, second, first, *tested))
    return Table(
        f"forms_{measure.name}",
        f"Published minus parallel: {measure.title}",
        "",
        " ".join(filter(None, (measure.note, _READ_DIFFERENCES))),
        (Column("group", row_title, "text"), *_difference_columns(_FORMS, measure.kind, kind_of_difference(measure))),
        tuple(rows),
        Figure("intervals", "group", ("difference",)),
        SECTION,
    )


def _agreement_table(
    measures: Sequence[Measure], published: Mapping[str, Floats], parallel: Mapping[str, Floats]
) -> Table:
    columns = (
        *(Column("score", "Score", "text"), Column("n_stereotypes", "Stereotypes", "count")),
        *(Column("correlation", "Correlation", "number"), Column("mean_difference", "Mean difference", "number")),
    )
    rows: list[tuple[Value, ...]] = []
    for measure in measures:
        values = np.stack([published[measure.name], parallel[measure.name]])
        both = values[:, ~np.isnan(values).any(axis=0)]
        mean = float(np.mean(both[0] - both[1])) if both.size else None
        rows.append((measure.title, both.shape[1], _correlation(both), mean))
    return Table(
        "forms_agreement",
        "Agreement of the two forms",
        "",
        _READ_AGREEMENT,
        columns,
        tuple(rows),
        None,
        BY_STEREOTYPE,
    )


def _correlation(both: Floats) -> Score | None:
    """Pearson's correlation of two rows with Fisher's interval; None if a row is constant or too short."""
    n = both.shape[1]
    if n < _FEWEST_CORRELATED or (np.ptp(both, axis=1) == 0).any():
        return None
    r = float(np.clip(np.asarray(np.corrcoef(both))[0, 1], -1, 1))
    if abs(r) == 1:
        return Score(r)
    half = _NORMAL_QUANTILE / np.sqrt(n - 3)
    return Score(r, float(np.tanh(np.arctanh(r) - half)), float(np.tanh(np.arctanh(r) + half)))


def _stereotypes_table(
    measures: Sequence[Measure],
    shared: SharedStereotypes,
    published: Mapping[str, Floats],
    parallel: Mapping[str, Floats],
) -> Table:
    gaps = np.stack([published[measure.name] - parallel[measure.name] for measure in measures], axis=1)
    largest = np.nan_to_num(np.abs(gaps), nan=-1.0).max(axis=1)
    order = np.argsort(-largest, kind="stable")
    columns = [
        *(Column(title.lower(), title, "text") for title in ("Stereotype", "Groups", "Topic")),
        *(Column(measure.name, measure.title, kind_of_difference(measure)) for measure in measures),
    ]
    rows = tuple((*shared.stereotypes[number], shared.topics[number], *map(defined, gaps[number])) for number in order)
    return Table(
        STEREOTYPES_TABLE,
        "Published minus parallel by stereotype",
        "",
        _READ_STEREOTYPES,
        tuple(columns),
        rows,
        None,
        BY_STEREOTYPE,
    )


def _difference_columns(labels: Labels, kind: str, difference_kind: str) -> tuple[Column, ...]:
    return (
        Column(*labels.second, kind),
        Column(*labels.first, kind),
        Column("difference", labels.difference, difference_kind),
        Column("p", "p", "p"),
        Column("p_adjusted", "adjusted p", "p"),
        Column(*labels.clusters, "count"),
        Column(DETECTABLE_DIFFERENCE, "MDE", "share" if difference_kind == "signed" else difference_kind),
    )


def kind_of_difference(measure: Measure) -> str:
    """Column kind of a score's differences; differences of shares have a sign."""
    return "signed" if measure.kind == "share" else measure.kind


def defined(value: float) -> float | None:
    """A score as a table value: None for NaN."""
    return None if np.isnan(value) else float(value)
