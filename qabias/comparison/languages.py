"""One model on several datasets of one family: scores by language, and each dataset next to its control."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from qabias.benchmarks import ALL, Measure
from qabias.benchmarks.base import InFamily, family_of, language_of
from qabias.benchmarks.breakdowns import with_reading
from qabias.benchmarks.pairs import AnsweredTable, Pair
from qabias.comparison.comparable import ASKED, COUNTED, distinct_names, mixed_fields
from qabias.comparison.forms import Labels, balanced, pairs_by_group, scores_in_both
from qabias.comparison.paired import Answers, differences
from qabias.comparison.tables import runs_table
from qabias.errors import QabiasError
from qabias.runs.opened import Run
from qabias.runs.signature import signature_fields
from qabias.scores.score import estimate, imbalance, imbalance_note, possible_range, with_possible
from qabias.tables.model import Column, Figure, Table

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


class Paired(NamedTuple):
    """Two runs of the same questions, in two languages or of a dataset and its control."""

    first: int
    second: int
    is_control: bool


def are_one_family(runs: Sequence[Run]) -> bool:
    """Whether runs are of one model, on datasets of one family that differ in more than categories."""
    families = {family_of(run.benchmark) for run in runs}
    if len(families) != 1 or "" in families or len(_models(runs)) > 1:
        return False
    sets = [(run.benchmark.name, language_of(run.benchmark, run.arguments.config)) for run in runs]
    return len(set(sets)) > 1 or any(_is_control(one, other) for one, other in itertools.permutations(runs, 2))


def check_one_model(runs: Sequence[Run]) -> None:
    """Refuse runs of one family in several languages by several models."""
    families = {family_of(run.benchmark) for run in runs}
    languages = {language_of(run.benchmark, run.arguments.config) for run in runs}
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
        names.append(f"{language_of(benchmark, config)}: {benchmark.name}{part}")
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


def _paired_runs(runs: Sequence[Run]) -> list[Paired]:
    """Which runs share questions: each dataset with its control, and languages with the first of them."""
    pairs = []
    for first, second in itertools.permutations(range(len(runs)), 2):
        if _is_control(runs[first], runs[second]):
            pairs.append(Paired(first, second, True))
    controls = {pair.first for pair in pairs}
    reference: dict[str, int] = {}
    for number, run in enumerate(runs):
        if number in controls:
            continue
        first = reference.setdefault(run.benchmark.name, number)
        one, other = (language_of(run.benchmark, each.arguments.config) for each in (run, runs[first]))
        if one != other:
            pairs.append(Paired(first, number, False))
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
    if control.benchmark is not benchmark or not isinstance(benchmark, InFamily):
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
    assert isinstance(benchmark, InFamily)
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
    paired: Paired,
    runs: tuple[Run, Run],
    names: Sequence[str],
    measures: Sequence[Measure],
    pair: Pair,
) -> Table:
    benchmark = runs[0].benchmark
    clusters = benchmark.facts.clusters[0]
    second, first = names[paired.second], names[paired.first]
    results = differences(
        pair, {measure.name: measure.farthest for measure in measures}, confidence=max(run.confidence for run in runs)
    )
    labels = Labels(("second", second), ("first", first), "Difference", ("n_templates", clusters.capitalize()))
    read = _READ_PAIRED.format(first=first, second=second, n=pair.n_clusters, clusters=clusters)
    if any(possible_range(run.scores, measure) for run in runs for measure in measures):
        read += _READ_MISSING
    return Table(
        f"{PAIRED}{paired.second + 1}_minus_{paired.first + 1}",
        f"{second} minus {first}",
        "",
        f"{_READ_CONTROL if paired.is_control else _READ_TRANSLATED} {read}",
        *scores_in_both(labels, benchmark, measures, pair, results, [run.scores for run in runs]),
        Figure("intervals", "score", ("difference",)),
        "Set minus control set" if paired.is_control else "The same questions in two languages",
    )
