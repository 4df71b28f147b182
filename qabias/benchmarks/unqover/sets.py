"""Tables of one set of UnQover: ranks of subjects, associations, classes and groups; and across models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from qabias.benchmarks import locate
from qabias.benchmarks.breakdowns import Breakdown, columns, make_tables
from qabias.benchmarks.unqover import NAME
from qabias.benchmarks.unqover.facts import PAPER
from qabias.scores.facts import Scores, run_column, union
from qabias.scores.score import Score
from qabias.share.metrics.unqover.scores import ranks
from qabias.share.unqover_dataset.bundled import read_subjects
from qabias.support.arrow import codes_and_values
from qabias.tables.model import Column, Figure, Table, Value

# Rows of the tables of strongest associations.
N_PAIRS = 30
N_ATTRIBUTES = 10

NONE = "None"
_MASKED = "_mlm"
_SUBJECT_SOURCES = {"ethnicity": f"Table 12 {PAPER}", "religion": f"Table 13 {PAPER}"}

_SUBJECT, _CLUSTER, _ATTRIBUTE, _CLASS = columns(
    "text", subject="Subject", cluster="Group", attribute="Attribute", attribute_class="Class"
)
_SCORES = (*columns("number", gamma="gamma", eta="eta"), Column("n", "Rows", "count"))
_RANKS = columns("number", rank_mean="Mean rank", rank_spread="Standard deviation")
_N_RANKS = Column("n_ranks", "Attributes ranked", "count")

_BY_SUBJECT = (_SUBJECT, _CLUSTER, Column("rank", "Rank", "count"), *_RANKS, _N_RANKS, *_SCORES)
_BY_CLUSTER = (_CLUSTER, _ATTRIBUTE, _CLASS, *_SCORES)
_BY_PAIR = (_SUBJECT, _CLUSTER, _ATTRIBUTE, _CLASS, *_SCORES)
_BY_CLASS = (_SUBJECT, _CLASS, *_SCORES)
_DRAWN = "ranks rank_mean rank_spread"
_TABLES = (
    Breakdown("subjects", "subjects", _BY_SUBJECT, (), "", _DRAWN, title="subjects by rank"),
    Breakdown("pairs", "pairs", _BY_PAIR, (), "", title="strongest associations"),
    Breakdown("classes", "classes", _BY_CLASS, (), "", "heatmap gamma", title="subjects by class of attributes"),
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
        _TABLES, {key: [(row, {}) for row in of_table] for key, of_table in rows.items()}, notes, (), absent
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
        tables.append(
            Table(
                f"ranks_{set_name}",
                f"{set_name}: ranks of subjects across models",
                f"{source} {PAPER}" if source else "",
                f"Rank by gamma in every run. {_READ_RANKS} Interval: one standard deviation over the runs.{shown}",
                (_SUBJECT, *_RANKS, Column("n_runs", "Runs", "count"), *_by_run("Rank", names)),
                tuple(rows),
                Figure("ranks", "subject", ("rank_mean",)),
                _SECTION,
            )
        )
    return tables


def shared_tables(names: Sequence[str], scores: Sequence[Scores]) -> list[Table]:
    """Attributes that several models associate most with the same group (Table 3)."""
    tables = []
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
        if shared:
            tables.append(
                Table(
                    f"shared_{set_name}",
                    f"{set_name}: attributes shared by models",
                    f"Table 3 {PAPER}" if set_name == "gender" else "",
                    f"Attributes that at least two runs have among the {N_SHARED} with the largest gamma of a group. "
                    f"Rank per run, empty after {N_SHARED}.",
                    (
                        _CLUSTER,
                        _ATTRIBUTE,
                        Column("n_runs", "Runs that share it", "count"),
                        Column("gamma_mean", "Mean gamma", "number"),
                        *_by_run("Place", names),
                    ),
                    tuple(
                        (cluster, name, -n, -mean, *places)
                        for cluster, n, mean, name, places in sorted(shared, key=lambda row: row[:4])
                    ),
                    None,
                    _SECTION,
                )
            )
    return tables


def _most_associated(attributes: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """The attributes with the largest gamma, in order."""
    gamma = {name: float(entries["gamma"]) for name, entries in attributes.items() if entries["gamma"] is not None}
    return dict(sorted(gamma.items(), key=lambda item: (-item[1], item[0]))[:N_SHARED])
