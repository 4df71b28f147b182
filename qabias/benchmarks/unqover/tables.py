"""The figures and tables of Li et al. (2020) for one UnQover run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qabias.answers.outcomes import OUTCOMES, REFUSED
from qabias.benchmarks import locate
from qabias.benchmarks.breakdowns import Breakdown, Group, columns, make_tables
from qabias.benchmarks.scoring import N_EXAMPLES
from qabias.benchmarks.unqover import NAME
from qabias.benchmarks.unqover.facts import EVEN, MEASURES, PAPER
from qabias.benchmarks.unqover.questions import QUESTION_FIRST
from qabias.scores.facts import Scores, run_column, union
from qabias.scores.formatting import show_p
from qabias.scores.judge import ERROR
from qabias.scores.score import MOST_MISSING, Score, ends_in_words, estimate
from qabias.share.metrics.unqover import scores as metric
from qabias.share.metrics.unqover.scores import ranks
from qabias.share.unqover_dataset.bundled import read_subjects
from qabias.support.arrow import codes_and_values
from qabias.tables.model import Analysis, Column, Figure, Table, Value

LOW_COVERAGE = 0.5
N_STRONGEST = 3  # attributes in a sentence

_SET, _GROUP, _CLASS, _LEFT_OUT = columns(
    "text", set="Set", group="Set and class", attribute_class="Class", subjects_left_out="Subjects excluded"
)
_SUBJECT, _CLUSTER, _ATTRIBUTE = columns("text", subject="Subject", cluster="Group", attribute="Attribute")
_N, _N_TEMPLATES, _N_EXCLUDED = columns("count", n="Rows", n_templates="Templates", n_left_out="Rows excluded")
_N_EVEN = Column(EVEN, "Questions without probability", "count")
_INTENSITY = (
    *(*columns("number", mu="mu, intensity", eta="eta, consistency"), _N),
    *(*columns("count", n_subjects="Subjects", n_attributes="Attributes"), _N_TEMPLATES),
)
_ERRORS = (
    *columns("number", delta="delta, position", epsilon="epsilon, negation ignored", avg_score="Average score"),
    *(_N, _N_TEMPLATES),
)
_COVERAGE = (_SET, Column("coverage", "Scores that are not 0", "share"), _N, _N_EXCLUDED, _N_EVEN, _LEFT_OUT)
_OUTCOMES = columns("count", **{name: name.capitalize() for name in OUTCOMES})
_RANGES = columns("text", mu_range="mu, possible", eta_range="eta, possible")
_WRITTEN = (
    *(_SET, *_OUTCOMES, Column("n_declined", "Abstained", "count")),
    *(Column("rows_left_out", "Rows excluded", "share"), *_RANGES),
)
_PREFERENCES, _FIGURES = "Intensity and consistency of preferences", f"Figures 3 and 6 {PAPER}"
_BY_CLASS, _GROUPS = "Intensity by class of attributes", (_GROUP, _SET, _CLASS)
_TABLES = (
    Breakdown("intensity_by_set", "set", [_SET], _INTENSITY, "Intensity", "intervals", _FIGURES, _PREFERENCES),
    Breakdown("intensity_by_class", "class", _GROUPS, _INTENSITY, "Intensity", "intervals", title=_BY_CLASS),
    Breakdown("reasoning_errors", "set", [_SET], _ERRORS, "Reasoning errors", "intervals", f"Table 5 {PAPER}"),
    Breakdown("coverage", "coverage", _COVERAGE, (), "Coverage", "bars coverage", title="Coverage of the scores"),
    Breakdown("written_answers", "written", _WRITTEN, (), "Coverage", title="Outcomes of written answers"),
)


def analyse(table: pa.Table, answers: pa.Table, scores: Scores) -> Analysis:
    """All tables of an UnQover run, and a selection of its rows."""
    sets: Mapping[str, Scores] = scores["sets"]
    there = set(pc.unique(table["set"]).to_pylist())
    names = [name for name in sets if name in there]
    of_sets: list[Table] = []
    examples: list[dict[str, Any]] = []
    for name in names:
        of_set = pc.equal(table["set"], name)
        rows, of_rows = table.filter(of_set), answers.filter(of_set)
        comparative = comparative_scores(of_rows)
        if sets[name]["n"]:
            of_sets += tables_of_set(name, sets[name], set_contents(name, rows, ~np.isnan(comparative)))
        examples += _examples(rows, of_rows, comparative, N_EXAMPLES // len(names))
    examples.sort(key=lambda example: -abs(example["comparative"]))
    how_chosen = (
        f"{len(examples):,} of {table.num_rows:,} examples: the largest preference (|C|) per template and attribute, "
        "the strongest first. They show the most biased answers, not the average."
    )
    notes = [note for name, group in sets.items() for note in _notes(name, group)]
    notes += [f"{name}: {text}" for name, group in sets.items() if (text := direction(group))]
    return Analysis((*_associations(sets, table), *_summary(sets), *of_sets), tuple(examples), how_chosen, tuple(notes))


def _associations(sets: Mapping[str, Scores], table: pa.Table) -> list[Table]:
    """The strongest associations of all sets, tested against chance; two that mirror each other are one."""
    rows: dict[tuple[str, ...], tuple[Value, ...]] = {}
    for name, group in sets.items():
        for subject, attribute, gamma, p in group.get("associations", ()):
            sides = _sides(table.filter(pc.equal(table["set"], name)), subject, attribute)
            named = (attribute, *sides[:: 1 if gamma > 0 else -1], name)
            rows.setdefault(named, (*named, abs(gamma), p))
    strength = Column("gamma", "Strength", "number"), Column("p", "p, adjusted for all pairs", "p")
    columns_shown = (_ATTRIBUTE, *columns("text", preferred="Prefers", over="Over"), _SET, *strength)
    note = "Strength is gamma of the two subjects' shares: 0 is none, 1 always prefers the first."
    head = ("associations", "Strongest associations", "", note)
    return [Table(*head, columns_shown, tuple(rows.values()), section="Associations")] if rows else []


def _sides(table: pa.Table, subject: str, attribute: str) -> tuple[str, str]:
    """A subject, and the subjects of a set that it was asked with for an attribute."""
    with_it = pc.or_(pc.equal(table["subject1"], subject), pc.equal(table["subject2"], subject))
    rows = table.filter(pc.and_(with_it, pc.equal(table["attribute"], attribute)))
    others = sorted({*rows["subject1"].to_pylist(), *rows["subject2"].to_pylist()} - {subject})
    return subject, others[0] if len(others) == 1 else f"{len(others)} others"


def direction(group: Scores) -> str:
    """Towards which of two clusters a model leans, in a sentence; "" if chance explains it."""
    p = group.get("p_values", {}).get("direction")
    if p is None or p >= ERROR:
        return ""
    first, second = group["cluster"]
    preferred = first if group["direction"] > 0 else second
    liked = [attribute for cluster, attribute, *_ in group["cluster_associations"] if cluster == preferred]
    strongest = f"; strongest: {', '.join(liked[:N_STRONGEST])}" if liked else ""
    return f"On average it prefers {preferred} subjects ({show_p(p)}){strongest}."


def comparative_scores(answers: pa.Table) -> np.ndarray:
    """C(subject1, subject2) of every row (Eq. 6), NaN without all scores."""
    columns = {name: answers[name].to_numpy().astype(np.float64) for name in metric.SCORE_COLUMNS}
    return metric.comparative_scores(columns)


def _summary(sets: Mapping[str, Scores]) -> list[Table]:
    """The tables of all sets."""
    written = {name: group for name, group in sets.items() if "outcomes" in group}
    ranged = any("range" in group for group in written.values())
    absent = {column.name for column in _RANGES if not ranged}
    if not any(EVEN in group for group in sets.values()):
        absent.add(EVEN)
    groups: dict[str, list[Group]] = {
        "set": [((name,), group) for name, group in sets.items()],
        "class": [
            ((f"{name}, {attribute_class}", name, attribute_class), of_class)
            for name, group in sets.items()
            if len(group["attribute_class"]) > 1
            for attribute_class, of_class in group["by"]["attribute_class"].items()
        ],
        "coverage": [
            ((name, estimate(group, "coverage"), *counts, ", ".join(group["subjects_left_out"])), {})
            for name, group in sets.items()
            for counts in [(group["n"], group["n_left_out"], group.get(EVEN, 0))]
        ],
        "written": [((name, *_written(group)), {}) for name, group in written.items()],
    }
    tables = make_tables(_TABLES, groups, _notes_of_tables(sets, ranged), MEASURES, absent)
    has_gender = any(name.startswith("gender") for name in sets)
    return [replace(one, source="") if one.name == "reasoning_errors" and not has_gender else one for one in tables]


def _written(group: Scores) -> tuple[Value, ...]:
    ranges = [ends_in_words(group["range"][name], "number") if "range" in group else None for name in ("mu", "eta")]
    counts = (*(group["outcomes"].get(outcome, 0) for outcome in OUTCOMES), group["n_declined"])
    return (*counts, group["unparsed_share"], *ranges)


def _notes_of_tables(sets: Mapping[str, Scores], ranged: bool) -> dict[str, str]:
    unknown = "Rows without single-token subjects are excluded."
    if any(EVEN in group for group in sets.values()):
        coverage = f"Scores are shares of the two subjects. Questions without probability count as even. {unknown}"
    elif any("outcomes" in group for group in sets.values()):
        coverage = (
            "The chosen subject has the score 1, the other 0: coverage is at most 50%. Rows with missing answers are "
            "excluded."
        )
    else:
        coverage = f"Two scores of 0 count as unbiased, even if the model offers neither subject. {unknown}"
    is_released = all("delta:released" in group["signature"] for group in sets.values() if group["n"])
    delta = (
        "delta includes the negated question, like the authors' script."
        if is_released
        else "Published values of delta probably follow --rule delta=released."
    )
    return {
        "intensity_by_set": "0 is best. Compare mu only between models with a similar average score. Chance raises mu "
        "and eta above 0.",
        "intensity_by_class": "A class with more attributes has a larger mu by chance.",
        "reasoning_errors": "delta: effect of the order of the subjects; epsilon: negation ignored. 0 is best. "
        + delta,
        "coverage": coverage,
        "written_answers": "Four answers per row. Abstentions and refusals count as no preference."
        + " Ranges are worst-case bounds with the missing answers." * ranged,
    }


def _notes(name: str, scores: Scores) -> list[str]:
    if "outcomes" not in scores:
        share = 1 - scores["coverage"]
        note = f"{name}: {share:.0%} of the scores are 0. Low bias scores do not prove the model unbiased."
        return [note] if scores["coverage"] < LOW_COVERAGE else []
    missing = scores["unparsed_share"]
    declined = (scores["n_declined"] + scores["outcomes"][REFUSED]) / sum(scores["outcomes"].values())
    notes = {
        f"{name}: {missing:.1%} of the rows are excluded because an answer is missing. See their possible ranges in "
        "the table of written answers.": missing > MOST_MISSING,
        f"{name}: {declined:.0%} of the answers abstain or refuse, which makes mu, eta, delta and epsilon "
        "small.": declined > LOW_COVERAGE,
    }
    return [note for note, applies in notes.items() if applies]


def _examples(table: pa.Table, answers: pa.Table, comparative: np.ndarray, limit: int) -> list[dict[str, Any]]:
    """The rows with the largest |C| of every template and attribute."""
    template, _ = codes_and_values(table["template_id"])
    attribute, attributes = codes_and_values(table["attribute"])
    strength = np.round(np.nan_to_num(np.abs(comparative), nan=-1.0), 9)
    order = np.argsort(-strength, kind="stable")
    order = order[strength[order] >= 0]
    _, first = np.unique((template * len(attributes) + attribute)[order], return_index=True)
    chosen = order[np.sort(first)][:limit]
    return examples(table.take(pa.array(chosen)), answers.take(pa.array(chosen)), comparative[chosen])


def examples(table: pa.Table, answers: pa.Table, comparative: np.ndarray) -> list[dict[str, Any]]:
    """Every row with its scores; `comparative` is C, NaN without all scores."""
    rows = zip(table.to_pylist(), answers.to_pylist(), comparative.tolist(), strict=True)
    return [_example(row, answer, value) for row, answer, value in rows]


def _example(row: Mapping[str, Any], answer: Mapping[str, Any], comparative: float) -> dict[str, Any]:
    asked = ("masked", "masked_negated") if "masked" in row else ("question", "negated_question")
    subjects = [row["subject1"], row["subject2"]]
    named = [row["answer1"], row["answer2"]] if "answer1" in row else subjects
    # Short facts first: the report shows subjects and scores next to each other.
    return {
        **{name: row[name] for name in ("set", "template_id", "example_id")},
        "comparative": _rounded(comparative),
        "preferred": subjects[comparative < 0] if abs(comparative) > 0 else None,
        "attribute": row["attribute"],
        "attribute_class": row["attribute_class"] if row["attribute_class"] not in ("", NONE) else None,
        **{name: row[name] for name in ("context_12", "context_21", *asked)},
        "subjects": subjects,
        "answers": named if named != subjects else None,
        "written": answer.get("outputs"),
        **{
            f"scores_{order}": [_rounded(answer[f"s{number}_{order}"]) for number in (1, 2)] for order in QUESTION_FIRST
        },
    }


def _rounded(score: float | None) -> float | None:
    return None if score is None or math.isnan(score) else round(score, 6)


# One set: ranks of subjects, associations, classes and groups

# Rows of the tables of strongest associations.
N_PAIRS = 30
N_ATTRIBUTES = 10

NONE = "None"
_MASKED = "_mlm"
_SUBJECT_SOURCES = {"ethnicity": f"Table 12 {PAPER}", "religion": f"Table 13 {PAPER}"}

_SCORES = (*columns("number", gamma="gamma", eta="eta"), Column("n", "Rows", "count"))
_RANKS = columns("number", rank_mean="Mean rank", rank_spread="Standard deviation")
_N_RANKS = Column("n_ranks", "Attributes ranked", "count")

_BY_SUBJECT = (_SUBJECT, _CLUSTER, Column("rank", "Rank", "count"), *_RANKS, _N_RANKS, *_SCORES)
_BY_CLUSTER = (_CLUSTER, _ATTRIBUTE, _CLASS, *_SCORES)
_BY_PAIR = (_SUBJECT, _CLUSTER, _ATTRIBUTE, _CLASS, *_SCORES)
_SUBJECT_BY_CLASS = (_SUBJECT, _CLASS, *_SCORES)
_DRAWN = "ranks rank_mean rank_spread"
_OF_SET = (
    Breakdown("subjects", "subjects", _BY_SUBJECT, (), "", _DRAWN, title="subjects by rank"),
    Breakdown("pairs", "pairs", _BY_PAIR, (), "", title="strongest associations"),
    Breakdown(
        "classes", "classes", _SUBJECT_BY_CLASS, (), "", "heatmap gamma", title="subjects by class of attributes"
    ),
    Breakdown("top_by_group", "top_by_group", _BY_CLUSTER, (), "", title="strongest associations by group"),
    Breakdown("groups", "groups", _BY_CLUSTER, (), "", "heatmap gamma", title="groups and attributes"),
)

_ACROSS = Figure("heatmap", "attribute", ("gamma",), across="cluster")
Row = tuple[Value, ...]

_READ_GAMMA = "gamma: −1 avoided, 1 preferred. eta 1: one consistent winner."
_READ_RANKS = "Rank 1: worst for negative attributes (all sets except gender)."


def geoschemes() -> dict[str, str]:
    """The UN geoscheme of every country (Tables 4 and 11), from the bundled vocabulary."""
    vocabulary = locate.dataset_folder(NAME) / "vocabulary" / "subjects.csv"
    subjects = read_subjects(vocabulary)["nationality"]
    return {subject.name: subject.cluster for subject in subjects}


class Contents(NamedTuple):
    """Subjects and attributes of the scored rows of a set."""

    clusters: dict[str, str]
    """Subject to its group, if any."""
    classes: dict[str, str]
    """Attribute to its class, if any."""
    n: Counter[tuple[str, str]]
    """Number of rows of a subject with an attribute."""

    def counts(self, key: Callable[[str, str], Any]) -> Counter[Any]:
        """Numbers of rows by a key of subject and attribute."""
        counts: Counter[Any] = Counter()
        for cell, n in self.n.items():
            counts[key(*cell)] += n
        return counts


def set_contents(name: str, table: pa.Table, scored: np.ndarray) -> Contents:
    """Subjects, attributes and numbers of rows of a set."""
    coded = {
        name: codes_and_values(table[name])
        for name in ("subject1", "subject2", "cluster1", "cluster2", "attribute", "attribute_class")
    }
    clusters: dict[str, str] = {}
    n: Counter[tuple[str, str]] = Counter()
    for number in (1, 2):
        for (subject, cluster), _ in _occurring(coded[f"subject{number}"], coded[f"cluster{number}"], scored):
            clusters[subject] = cluster
        for pair, count in _occurring(coded[f"subject{number}"], coded["attribute"], scored):
            n[pair] += count
    classes = dict(pair for pair, _ in _occurring(coded["attribute"], coded["attribute_class"], scored))
    groups = _given(clusters)
    if not groups and name.removesuffix(_MASKED) == "nationality":
        known = geoschemes()
        groups = {subject: known[subject] for subject in clusters if subject in known}
    return Contents(groups, _given(classes), n)


def _occurring(
    first: tuple[np.ndarray, list[str]], second: tuple[np.ndarray, list[str]], rows: np.ndarray
) -> list[tuple[tuple[str, str], int]]:
    """Pairs of values with their number of rows."""
    (codes1, values1), (codes2, values2) = first, second
    width = len(values2)
    counts = np.bincount((codes1 * width + codes2)[rows], minlength=len(values1) * width)
    cells = np.flatnonzero(counts)
    return [((values1[cell // width], values2[cell % width]), int(counts[cell])) for cell in cells]


def _given(names: Mapping[str, str]) -> dict[str, str]:
    return {key: name for key, name in names.items() if name not in ("", NONE)}


def tables_of_set(name: str, scores: Scores, contents: Contents) -> list[Table]:
    """All tables of a set."""
    plain = name.removesuffix(_MASKED)
    title = plain.capitalize() + (", masked sentences" if name != plain else "")
    gamma = _by_pair(scores["gamma_attribute"])
    notes = {
        "subjects": f"Mean and standard deviation over attributes. {_READ_RANKS} {_READ_GAMMA}",
        "pairs": f"The {min(N_PAIRS, len(gamma))} of {len(gamma):,} pairs with the largest gamma, which chance raises "
        f"too. {_READ_GAMMA}" + " Groups are regions of the UN geoscheme." * (plain == "nationality"),
        "classes": f"{_READ_GAMMA} Sorted by rank over all attributes.",
        "top_by_group": f"Up to {N_ATTRIBUTES} attributes with the largest gamma per group. {_READ_GAMMA}",
        "groups": f"{_READ_GAMMA} Rows within a group lower its gamma.",
    }
    sources = {
        "subjects": _SUBJECT_SOURCES.get(name, ""),
        "pairs": f"Tables 4 and 11 {PAPER}" if name == "nationality" else "",
        "top_by_group": f"{'Table 15' if name != plain else 'Tables 2 and 14'} {PAPER}" if plain == "gender" else "",
    }
    rows = {
        "subjects": _subjects(scores, contents),
        "pairs": _pairs(gamma, _by_pair(scores["eta_attribute"]), contents),
        "classes": _subjects_by_class(scores, contents) if contents.classes else (),
        **(_clusters(scores, contents) if "cluster" in scores else {}),
    }
    absent = {column.name for column, names in ((_CLUSTER, contents.clusters), (_CLASS, contents.classes)) if not names}
    if "cluster" in scores:
        absent -= {_CLUSTER.name}
    tables = make_tables(
        _OF_SET, {key: [(row, {}) for row in of_table] for key, of_table in rows.items()}, notes, (), absent
    )
    return [
        replace(
            table,
            name=f"{table.name}_{name}",
            title=f"{title}: {table.title}",
            source=sources.get(table.name, ""),
            figure=_ACROSS if table.name == "groups" else table.figure,
            section=title,
        )
        for table in tables
    ]


def _subjects(scores: Scores, contents: Contents) -> Iterator[Row]:
    places = _ranks_by_attribute(scores)
    n_rows = contents.counts(lambda subject, _: subject)
    for one in _by_rank(scores):
        measured = (scores["gamma"][one], scores["eta_subject"][one], n_rows[one])
        ranks = (scores["rank"][one], *_mean_and_spread(places[one]), len(places[one]))
        yield (one, contents.clusters.get(one), *ranks, *measured)


def _by_rank(scores: Scores) -> list[str]:
    return sorted(scores["rank"], key=lambda subject: (scores["rank"][subject], subject))


def _ranks_by_attribute(scores: Scores) -> dict[str, list[int]]:
    """The rank of every subject for each attribute of all subjects, ties sharing the lower rank."""
    gamma: Mapping[str, Mapping[str, float]] = scores["gamma_attribute"]
    shared = sorted(set.intersection(*(set(entries) for entries in gamma.values())))
    values = np.array([[gamma[subject][attribute] for attribute in shared] for subject in gamma])
    return dict(zip(gamma, ranks(values, scores["avg_score"]).tolist(), strict=True))


def _mean_and_spread(ranks: Sequence[int]) -> tuple[float | None, float | None]:
    mean = float(np.mean(ranks)) if ranks else None
    spread = float(np.std(ranks, ddof=1)) if len(ranks) > 1 else None
    return mean, spread


def _largest_first(gamma: Mapping[Any, float]) -> list[Any]:
    """The keys by falling gamma; equal ones in their own order."""
    return sorted(gamma, key=lambda key: (-round(gamma[key], 12), key))


def _by_pair(scores: Mapping[str, Mapping[str, float]]) -> dict[tuple[str, str], float]:
    return {(subject, attribute): value for subject, row in scores.items() for attribute, value in row.items()}


def _pairs(
    gamma: Mapping[tuple[str, str], float], eta: Mapping[tuple[str, str], float], contents: Contents
) -> Iterator[Row]:
    for pair in _largest_first(gamma)[:N_PAIRS]:
        subject, attribute = pair
        names = (subject, contents.clusters.get(subject), attribute, contents.classes.get(attribute))
        yield (*names, gamma[pair], eta[pair], contents.n[pair])


def _subjects_by_class(scores: Scores, contents: Contents) -> Iterator[Row]:
    gamma, eta = scores["attribute_class"], scores["eta_attribute_class"]
    n_rows = contents.counts(lambda subject, attribute: (subject, contents.classes.get(attribute, NONE)))
    for subject, group in product(_by_rank(scores), gamma):
        if subject in gamma[group]:
            yield subject, group, gamma[group][subject], eta[group][subject], n_rows[subject, group]


def _clusters(scores: Scores, contents: Contents) -> dict[str, list[Row]]:
    """The strongest attributes of every group, and all."""
    n_rows = contents.counts(lambda subject, attribute: (contents.clusters.get(subject, NONE), attribute))
    gamma = {
        cluster: {attribute: both["gamma"] for attribute, both in entries.items()}
        for cluster, entries in scores["cluster"].items()
    }
    largest: dict[str, float] = {}
    for attribute, value in (entry for entries in gamma.values() for entry in entries.items()):
        largest[attribute] = max(largest.get(attribute, 0.0), abs(value))
    cells = {
        "top_by_group": [(one, attribute) for one in gamma for attribute in _largest_first(gamma[one])[:N_ATTRIBUTES]],
        "groups": [
            (one, attribute) for attribute in _largest_first(largest) for one in gamma if attribute in gamma[one]
        ],
    }

    def row(cluster: str, attribute: str) -> Row:
        both = scores["cluster"][cluster][attribute]
        names = (cluster, attribute, contents.classes.get(attribute))
        return (*names, both["gamma"], both["eta"], n_rows[cluster, attribute])

    return {name: [row(*cell) for cell in of_table] for name, of_table in cells.items()}


# Across models

N_SHARED = 10
N_ENDS = 8
"""Nationalities at each end of the ranks in Figure 4."""

_SECTION = "Subjects and attributes across models"


def _by_run(title: str, names: Sequence[str]) -> tuple[Column, ...]:
    titles = {f"{title.lower()}_{run_column(number)}": f"{title}, {name}" for number, name in enumerate(names)}
    return columns("count", **titles)


def rank_tables(names: Sequence[str], scores: Sequence[Scores]) -> list[Table]:
    """The rank of every subject by gamma: mean and standard deviation across models (Figures 4 and 5)."""
    tables = []
    for set_name in union([list(entries["sets"]) for entries in scores]):
        ranks = [entries["sets"].get(set_name, {}).get("rank", {}) for entries in scores]
        rows = []
        for subject in union([list(entries) for entries in ranks]):
            known = [entries[subject] for entries in ranks if subject in entries]
            mean = float(np.mean(known))
            # Divided by n, as in the authors' notebook.
            spread = float(np.std(known)) if len(known) > 1 else None
            interval = Score(mean) if spread is None else Score(mean, mean - spread, mean + spread)
            rows.append((subject, interval, spread, len(known), *(entries.get(subject) for entries in ranks)))
        rows.sort(key=lambda row: (row[1].value, row[0]))
        source = {"nationality": "Figure 4", "ethnicity": "Figure 5", "religion": "Figure 5"}.get(set_name, "")
        shown = f" The paper shows the first and last {N_ENDS} rows." * (source == "Figure 4")
        note = f"Rank by gamma in every run. {_READ_RANKS} Interval: one standard deviation over the runs.{shown}"
        head = (f"ranks_{set_name}", f"{set_name}: ranks of subjects across models", source and f"{source} {PAPER}")
        columns_of_runs = (_SUBJECT, *_RANKS, Column("n_runs", "Runs", "count"), *_by_run("Rank", names))
        figure = Figure("ranks", "subject", ("rank_mean",))
        tables.append(Table(*head, note, columns_of_runs, tuple(rows), figure, _SECTION))
    return tables


def shared_tables(names: Sequence[str], scores: Sequence[Scores]) -> list[Table]:
    """Attributes that several models associate most with the same group (Table 3)."""
    tables = []
    columns_of_runs = (
        *(_CLUSTER, _ATTRIBUTE, Column("n_runs", "Runs that share it", "count")),
        *(Column("gamma_mean", "Mean gamma", "number"), *_by_run("Place", names)),
    )
    note = (
        f"Attributes that at least two runs have among the {N_SHARED} with the largest gamma of a group. Rank per run, "
        f"empty after {N_SHARED}."
    )
    for set_name in union([list(entries["sets"]) for entries in scores]):
        clusters = [entries["sets"].get(set_name, {}).get("cluster") or {} for entries in scores]
        shared: list[tuple[str, int, float, str, list[int | None]]] = []
        for cluster in union([list(entries) for entries in clusters]):
            tops = [_most_associated(entries.get(cluster, {})) for entries in clusters]
            for attribute in sorted(set().union(*tops)):
                places = [list(top).index(attribute) + 1 if attribute in top else None for top in tops]
                n_runs = sum(place is not None for place in places)
                if n_runs > 1:
                    mean = float(np.mean([top[attribute] for top in tops if attribute in top]))
                    shared.append((cluster, -n_runs, -mean, attribute, places))
        shared.sort(key=lambda row: row[:4])
        rows = tuple((cluster, name, -n, -mean, *places) for cluster, n, mean, name, places in shared)
        source = f"Table 3 {PAPER}" if set_name == "gender" else ""
        head = (f"shared_{set_name}", f"{set_name}: attributes shared by models", source)
        if rows:
            tables.append(Table(*head, note, columns_of_runs, rows, None, _SECTION))
    return tables


def _most_associated(attributes: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """The attributes with the largest gamma, in order."""
    gamma = {name: float(entries["gamma"]) for name, entries in attributes.items() if entries["gamma"] is not None}
    return dict(sorted(gamma.items(), key=lambda item: (-item[1], item[0]))[:N_SHARED])
