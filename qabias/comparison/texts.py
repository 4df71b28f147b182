"""One model on two forms of texts, published and parallel, or on several languages of a family."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from qabias.benchmarks import ALL, Benchmark, Measure
from qabias.benchmarks.breakdowns import with_reading
from qabias.benchmarks.pairs import AnsweredTable, Floats, Pair, mean_of_pairs
from qabias.benchmarks.scoring import by_run
from qabias.comparison.comparable import ASKED, COUNTED, distinct_names, mixed_fields
from qabias.comparison.paired import Answers, differences
from qabias.comparison.sample_size import templates_of
from qabias.comparison.tables import DETECTABLE, RUNS_TABLE, lacks_answers, runs_table
from qabias.errors import QabiasError, arg
from qabias.runs.opened import Run
from qabias.runs.signature import signature_fields
from qabias.scores.facts import RUNS, ParallelTexts, Scores, Stereotype
from qabias.scores.formatting import show
from qabias.scores.judge import holm
from qabias.scores.score import (
    Score,
    estimate,
    imbalance,
    imbalance_note,
    known_mde,
    possible_range,
    with_possible,
)
from qabias.tables.model import Column, Figure, Table, Value

SECTION = "Published minus parallel texts"
BY_STEREOTYPE = "By stereotype"
OVERALL_TABLE = "forms_overall"
STEREOTYPES_TABLE = "forms_stereotypes"
DETECTABLE_DIFFERENCE = f"{DETECTABLE}difference"  # column name of the minimum detectable difference

# Fisher's interval needs four points, and fewer determine no correlation.
_FEWEST_CORRELATED = 4
_NORMAL_QUANTILE = 1.959964

_SCORE = Column("score", "Score", "text")

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

BY_LANGUAGE = "By language"
PAIRED = "paired_"

OTHER_QUESTIONS = (
    "The sets ask other questions about other people. A difference between two languages is also one of the "
    "questions, and is not tested."
)
_READ = (
    "{notes} One model, one row for each run. With 95 % intervals over {clusters}. Answers missing: the share of a "
    "run's questions without an answer."
)
_READ_PAIRED = (
    "Score of {second} minus the same score of {first}, paired by the {n} {clusters} that both have. Adjusted p (Holm) "
    "covers all scores."
)
_READ_CONTROL = (
    "The control set asks the same questions about people whose names indicate no group. A score there is the model's "
    "error at the task, not a stereotype. The difference is the rest of the score."
)
_READ_TRANSLATED = "The two are translations of the same questions."
_READ_MISSING = (
    " More than 2 % of the answers are missing in one of the two: the difference is over those that are there."
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
    facts = runs[0].benchmark.forms
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
    paired = Paired(
        benchmark,
        ("published", "Published"),
        ("parallel", "Parallel"),
        "Published − parallel",
        ("n_stereotypes", "Stereotypes"),
        pairs,
        {group: _differences(pair, measures, runs) for group, pair in pairs.items()},
        [run.scores for run in runs],
    )
    single = np.eye(pairs[ALL].n_clusters)
    by_stereotype = pairs[ALL].second(single), pairs[ALL].first(single)
    overall = paired.overall((OVERALL_TABLE, "Published minus parallel: all scores"), _READ_OVERALL, measures, SECTION)
    group = Column("group", benchmark.facts.group, "text")
    tables = [
        overall,
        *(
            paired.table(
                (f"forms_{measure.name}", f"Published minus parallel: {measure.title}"),
                " ".join(filter(None, (measure.note, _READ_DIFFERENCES))),
                group,
                [(name, name, measure) for name in pairs],
                SECTION,
            )
            for measure in measures
        ),
        _agreement_table(measures, *by_stereotype),
        _stereotypes_table(measures, shared, *by_stereotype),
        _runs_table(forms),
    ]
    counts = [templates_of(benchmark, form.table.filter(pa.array(form.clusters >= 0)))[ALL] for form in whole]
    compared = balanced(overall, measures, counts)
    return tables, [_pairing_note(forms.facts, shared, whole)], {"the two forms": compared}


def _differences(pair: Pair, measures: Sequence[Measure], runs: Sequence[Run]) -> dict[str, Score]:
    bounds = {measure.name: measure.farthest for measure in measures}
    return differences(pair, bounds, confidence=max(run.confidence for run in runs))


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


class Paired(NamedTuple):
    """Two runs paired by clusters, by group: names and titles of columns, and the differences.

    Attributes:
        second: Name and title of the second run, from which the first is subtracted.
        first: Those of the first.
        difference: Title of the difference.
        clusters: Name and title of the number of clusters.
        pairs: The answers of both by group.
        results: The differences by group and score.
        scores: The scores of both runs.
    """

    benchmark: Benchmark
    second: tuple[str, str]
    first: tuple[str, str]
    difference: str
    clusters: tuple[str, str]
    pairs: Mapping[str, Pair]
    results: Mapping[str, Mapping[str, Score]]
    scores: Sequence[Scores]

    def table(
        self,
        head: tuple[str, str],
        note: str,
        label: Column,
        rows: Sequence[tuple[str, str, Measure]],
        section: str,
        in_words: bool = False,
    ) -> Table:
        """A row for each label, group and score. Adjusted p-values are for all rows but the one labelled `ALL`."""
        tested = [self.results[group][measure.name] for _, group, measure in rows]
        family = [one.p for (name, *_), one in zip(rows, tested, strict=True) if name != ALL]
        adjusted = iter(holm(family))
        cells: list[tuple[Value, ...]] = []
        for (name, group, measure), one in zip(rows, tested, strict=True):
            pair, once = self.pairs[group], np.ones((1, self.pairs[group].n_clusters))
            levels: list[Value] = [defined(run(once)[measure.name][0]) for run in (pair.second, pair.first)]
            if in_words:  # a column has one kind; the numbers are in the tables of single scores
                levels = [None if level is None else show(level, measure.kind) for level in levels]
            lacks = lacks_answers([self.benchmark.groups(of_run, measure) for of_run in self.scores], group, measure)
            p_adjusted = None if name == ALL else next(adjusted)
            mde = None if lacks else known_mde(one.mde, kind_of_difference(measure))
            cells.append((name, *levels, Score(*one[:3]), one.p, p_adjusted, pair.n_clusters, mde))
        kinds = {kind_of_difference(measure) for *_, measure in rows}
        kind = kinds.pop() if len(kinds) == 1 else "number"
        level = "text" if in_words else rows[0][2].kind
        columns = (
            label,
            *(Column(*self.second, level), Column(*self.first, level), Column("difference", self.difference, kind)),
            *(Column("p", "p", "p"), Column("p_adjusted", "adjusted p", "p"), Column(*self.clusters, "count")),
            Column(DETECTABLE_DIFFERENCE, "MDE", "share" if kind == "signed" else kind),
        )
        figure = Figure("intervals", label.name, ("difference",))
        return Table(*head, "", note, columns, tuple(cells), figure, section)

    def overall(self, head: tuple[str, str], note: str, measures: Sequence[Measure], section: str) -> Table:
        """The table of all scores of all examples."""
        rows = [(measure.title, ALL, measure) for measure in measures]
        return self.table(head, note, _SCORE, rows, section, in_words=True)


def _agreement_table(
    measures: Sequence[Measure], published: Mapping[str, Floats], parallel: Mapping[str, Floats]
) -> Table:
    columns = (
        *(_SCORE, Column("n_stereotypes", "Stereotypes", "count")),
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


def kind_of_difference(measure: Measure) -> str:
    """Column kind of a score's differences; differences of shares have a sign."""
    return "signed" if measure.kind == "share" else measure.kind


def defined(value: float) -> float | None:
    """A score as a table value: None for NaN."""
    return None if np.isnan(value) else float(value)


class SameQuestions(NamedTuple):
    """Two runs of the same questions, in two languages or of a dataset and its control."""

    first: int
    second: int
    is_control: bool


def are_one_family(runs: Sequence[Run]) -> bool:
    """Whether runs are of one model, on datasets of one family that differ in more than categories."""
    families = {run.benchmark.family for run in runs}
    if len(families) != 1 or "" in families or len(_models(runs)) > 1:
        return False
    sets = [(run.benchmark.name, run.benchmark.language(run.arguments.config)) for run in runs]
    return len(set(sets)) > 1 or any(_is_control(one, other) for one, other in itertools.permutations(runs, 2))


def check_one_model(runs: Sequence[Run]) -> None:
    """Refuse runs of one family in several languages by several models."""
    families = {run.benchmark.family for run in runs}
    languages = {run.benchmark.language(run.arguments.config) for run in runs}
    models = _models(runs)
    if len(families) == 1 and "" not in families and len(languages) > 1 and len(models) > 1:
        *others, last = models
        raise QabiasError(
            f"Languages are compared for one model, but these runs are of {', '.join(others)} and {last}.",
            "Give the runs of one model.",
        )


def _models(runs: Sequence[Run]) -> list[str]:
    """The models of runs, with their versions if the names are equal."""
    names = list(dict.fromkeys(run.arguments.model for run in runs))
    pinned = (signature_fields(run.signature).get("model", run.arguments.model) for run in runs)
    return names if len(names) > 1 else list(dict.fromkeys(pinned))


def names_by_language(runs: Sequence[Run]) -> list[str]:
    """Distinct names of a family's runs: language, benchmark, and a partial config."""
    names = []
    for run in runs:
        benchmark, config = run.benchmark, run.arguments.config
        part = "" if config == benchmark.configs[-1] else f" {config}"
        names.append(f"{benchmark.language(config)}: {benchmark.name}{part}")
    if len({run.arguments.model for run in runs}) > 1:
        names = [f"{name}, {run.arguments.model}" for name, run in zip(names, runs, strict=True)]
    return distinct_names(names, 60, ". ")


def family_measures(runs: Sequence[Run]) -> tuple[Measure, ...]:
    """The scores by language, as in the terminal."""
    facts = runs[0].benchmark.facts
    return facts.chosen(facts.columns)


def _family_notes(runs: Sequence[Run], names: Sequence[str]) -> list[str]:
    notes = [OTHER_QUESTIONS] if len({run.benchmark.name for run in runs}) > 1 else []
    mixed = {name: values for name, values in mixed_fields(runs).items() if name in (*ASKED, COUNTED)}
    for name, values in mixed.items():
        notes.append(f"MIXED: {name}: {'; '.join(f'{run} {value}' for run, value in zip(names, values, strict=True))}.")
    for measure in family_measures(runs):
        for name, run in zip(names, runs, strict=True):
            share = imbalance(run.scores, measure)
            if share is not None:
                notes.append(f"{name}: {measure.title} is unbalanced: {imbalance_note([share], measure)}.")
    return notes


def _paired_runs(runs: Sequence[Run]) -> list[SameQuestions]:
    """Which runs share questions: each dataset with its control, and languages with the first of them."""
    pairs = []
    for first, second in itertools.permutations(range(len(runs)), 2):
        if _is_control(runs[first], runs[second]):
            pairs.append(SameQuestions(first, second, True))
    controls = {pair.first for pair in pairs}
    reference: dict[str, int] = {}
    for number, run in enumerate(runs):
        if number in controls:
            continue
        first = reference.setdefault(run.benchmark.name, number)
        one, other = (run.benchmark.language(each.arguments.config) for each in (run, runs[first]))
        if one != other:
            pairs.append(SameQuestions(first, number, False))
    return pairs


def language_view(runs: Sequence[Run], names: Sequence[str]) -> tuple[list[Table], list[str], dict[str, Table]]:
    """The scores by language, differences of runs with the same questions, notes, and findings."""
    answers = Answers()
    measures, compared = family_measures(runs), {}
    kinds = (("bias", "Bias by language", "signed"), ("accuracy", "Accuracy by language", "share"))
    tables = [
        _by_language(f"{name}_by_language", title, [one for one in measures if one.kind == kind], runs, names)
        for name, title, kind in kinds
    ]
    tables.append(runs_table(runs, names))
    for paired in _paired_runs(runs):
        both = runs[paired.first], runs[paired.second]
        pair = _pair(both, answers)
        if pair is None:
            continue
        table = _paired_table(paired, both, names, measures, pair)
        tables.append(table)
        what = f"{names[paired.second]} and {names[paired.first]}"
        compared[what] = balanced(table, measures, [run.scores for run in both])
    return tables, _family_notes(runs, names), compared


def _is_control(control: Run, run: Run) -> bool:
    benchmark = run.benchmark
    if control.benchmark is not benchmark:
        return False
    return benchmark.is_control_of(control.arguments.config, run.arguments.config)


def _by_language(
    name: str, title: str, measures: Sequence[Measure], runs: Sequence[Run], names: Sequence[str]
) -> Table:
    clusters, n_clusters = runs[0].benchmark.facts.clusters
    columns = (
        Column("run", "Language and set", "text"),
        *(Column(measure.name, measure.title, measure.kind) for measure in measures),
        Column("n", "Examples", "count"),
        Column(n_clusters, clusters.capitalize(), "count"),
        Column("unparsed_share", "Answers missing", "share"),
    )
    scores = [run.scores for run in runs]
    rows = tuple(
        (
            run,
            *(with_possible(run_scores, measure) for measure in measures),
            int(run_scores["n"]),
            int(run_scores[n_clusters]),
            estimate(run_scores, "unparsed_share").value,
        )
        for run, run_scores in zip(names, scores, strict=True)
    )
    questions_note = OTHER_QUESTIONS if len({run.benchmark.name for run in runs}) > 1 else ""
    notes = " ".join(dict.fromkeys(filter(None, (*(measure.note for measure in measures), questions_note))))
    table = Table(
        name,
        title,
        "",
        _READ.format(notes=notes, clusters=clusters).strip(),
        columns,
        rows,
        Figure("intervals", "run", tuple(measure.name for measure in measures)),
        BY_LANGUAGE,
    )
    return with_reading(table)


def _pair(runs: tuple[Run, Run], answers: Answers) -> Pair | None:
    """The two runs by common templates; None without any."""
    benchmark = runs[0].benchmark
    examples = [answers.examples(run) for run in runs]
    templates = [benchmark.common_templates(table) for table in examples]
    if templates[0] is None or templates[1] is None:
        return None
    numbers = {name: number for number, name in enumerate(sorted({*templates[0]} & {*templates[1]}))}
    if not numbers:
        return None
    forms = [
        AnsweredTable(
            table, answers.of_run(run), np.array([numbers.get(name, -1) for name in shared or ()], dtype=np.int64)
        )
        for run, table, shared in zip(runs, examples, templates, strict=True)
    ]
    return pairs_by_group(benchmark, forms[0], forms[1], runs[0].arguments.rules)[ALL]


def _paired_table(
    paired: SameQuestions,
    runs: tuple[Run, Run],
    names: Sequence[str],
    measures: Sequence[Measure],
    pair: Pair,
) -> Table:
    benchmark = runs[0].benchmark
    clusters = benchmark.facts.clusters[0]
    second, first = names[paired.second], names[paired.first]
    both = Paired(
        benchmark,
        ("second", second),
        ("first", first),
        "Difference",
        ("n_templates", clusters.capitalize()),
        {ALL: pair},
        {ALL: _differences(pair, measures, runs)},
        [run.scores for run in runs],
    )
    read = _READ_PAIRED.format(first=first, second=second, n=pair.n_clusters, clusters=clusters)
    if any(possible_range(run.scores, measure) for run in runs for measure in measures):
        read += _READ_MISSING
    return both.overall(
        (f"{PAIRED}{paired.second + 1}_minus_{paired.first + 1}", f"{second} minus {first}"),
        f"{_READ_CONTROL if paired.is_control else _READ_TRANSLATED} {read}",
        measures,
        "Set minus control set" if paired.is_control else "The same questions in two languages",
    )
