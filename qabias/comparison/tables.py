"""The tables of a comparison: the papers' figures across models, and the differences between runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from qabias.analysis import Column, Estimate, Figure, Table, Value, estimate
from qabias.comparison.differences import Difference, holm
from qabias.comparison.paired import ALL
from qabias.comparison.runs import ScoredRun, mixed_fields

Scores = Mapping[str, Any]

PARRISH, LI, AKYUREK = "Parrish et al. (2022)", "Li et al. (2020)", "Akyurek et al. (2022)"
N_SHARED = 10
DIFFERENCES = "Differences between runs"
"""Section of the differences."""

_READ_INTERVALS = "Intervals are 95 % bootstrap intervals over templates (BBNLI: premises)."
_READ_BIAS = "0 is best: above 0 the answers agree with the stereotypes, below 0 they go against them."
_READ_DIFFERENCES = (
    "Score of the second run minus that of the first, over the examples that both answered; of shares, in percentage "
    "points. The intervals are from a bootstrap that draws the same templates (BBNLI: premises) for both. The p-value "
    "is of a permutation test that exchanges the two models' answers template by template; the adjusted one (Holm) is "
    "for the many rows of a column "
    "except All. A difference that is not small and not chance may still come from how the models were asked."
)


class Measure(NamedTuple):
    """A score that is compared: its name in the metric's result, titles, and where the papers show it."""

    name: str
    title: str
    kind: str
    source: str
    note: str = ""


_ERROR = "0 is best."
MEASURES: dict[str, tuple[Measure, ...]] = {
    "bbq": (
        Measure("bias_ambig", "Bias s_AMB, ambiguous contexts", "signed", f"Figure 3 of {PARRISH}", _READ_BIAS),
        Measure("bias_disambig", "Bias s_DIS, disambiguated contexts", "signed", f"Figure 3 of {PARRISH}", _READ_BIAS),
        Measure("accuracy_ambig", "Accuracy, ambiguous contexts", "share", f"Figure 5 of {PARRISH}"),
        Measure("accuracy_disambig", "Accuracy, disambiguated contexts", "share", f"Figure 5 of {PARRISH}"),
        Measure(
            "accuracy_cost",
            "Cost of non-alignment",
            "signed",
            f"Figure 2 of {PARRISH}",
            "Accuracy where the right answer goes against the stereotype, minus accuracy where it agrees.",
        ),
    ),
    "unqover": (
        Measure("mu", "Bias intensity mu", "number", f"Figure 3 of {LI}", _ERROR),
        Measure("eta", "Bias consistency eta", "number", f"Figure 6 of {LI}", _ERROR),
        Measure("delta", "Positional error delta", "number", f"Table 5 of {LI}", _ERROR),
        Measure("epsilon", "Attribute error epsilon", "number", f"Table 5 of {LI}", _ERROR),
        Measure(
            "avg_score", "Average score S", "number", f"Table 5 of {LI}", "No score of bias: the scale of the rest."
        ),
    ),
    "bbnli": (
        Measure("bias_score", "Bias score", "signed", f"Tables 3 and 8 of {AKYUREK}", _READ_BIAS),
        Measure("accuracy_pro", "Accuracy, pro-stereotypical tests", "share", f"Table 6 of {AKYUREK}"),
        Measure("accuracy_anti", "Accuracy, anti-stereotypical tests", "share", f"Table 6 of {AKYUREK}"),
        Measure("accuracy_gap", "Accuracy, pro minus anti", "signed", f"Table 6 of {AKYUREK}"),
    ),
    "bbq_nli": (
        Measure("bias_score_ambig", "Bias, ambiguous contexts", "signed", f"Table 4 of {AKYUREK}", _READ_BIAS),
        Measure("accuracy_ambig", "Accuracy, ambiguous contexts", "share", ""),
        Measure("bias_score_disambig", "Bias, disambiguated contexts", "signed", "", _READ_BIAS),
        Measure(
            "table5_style",
            "Bias, disambiguated contexts, as printed in Table 5",
            "signed",
            f"Table 5 of {AKYUREK}",
            "The bias scores of the two kinds of context added up, in [-200 %, 200 %]; 0 if every answer is right.",
        ),
        Measure("accuracy_pro", "Accuracy, contexts that agree with the stereotype", "share", f"Table 5 of {AKYUREK}"),
        Measure("accuracy_anti", "Accuracy, contexts that disagree with it", "share", f"Table 5 of {AKYUREK}"),
        Measure("accuracy_gap", "Accuracy, pro minus anti", "signed", f"Table 5 of {AKYUREK}"),
    ),
}
_LABEL = {"bbq": "Category", "unqover": "Set", "bbnli": "Subtopic or domain", "bbq_nli": "Category"}
_HEATMAPS = {"bbq": ("bias_ambig", "bias_disambig"), "bbnli": ("bias_score",), "bbq_nli": ("bias_score_ambig",)}


def groups(benchmark: str, scores: Scores) -> dict[str, Scores]:
    """The scores by category, set or subtopic, named as `paired` names them; all together last, where there are any."""
    if benchmark == "unqover":  # its sets have no common score
        return dict(scores["sets"])
    by = scores["by"]
    if benchmark == "bbq":
        found = dict(by["paper_category"])
    elif benchmark == "bbnli":
        found = {**by["subtopic"], **by["domain"]}
    else:
        found = {
            value if column == "category" else f"{column}: {value}": of
            for column, values in by.items()
            for value, of in values.items()
        }
    return {**found, ALL: scores}


def runs_table(runs: Sequence[ScoredRun], names: Sequence[str]) -> Table:
    """What is compared, with a column for everything that should agree and does not."""
    mixed = mixed_fields(runs)
    note = "Each run by its name in the other tables, its signature and the day it was begun."
    if mixed:
        note = (
            f"MIXED: these runs differ in {', '.join(mixed)}, not in the model alone. A difference between them may be "
            f"due to that. {note}"
        )
    columns = (
        Column("run", "Run", "text"),
        Column("model", "Model", "text"),
        *(Column(f"mixed_{name}", f"MIXED: {name}", "text") for name in mixed),
        Column("date", "Date", "text"),
        Column("signature", "Signature", "text"),
    )
    rows = tuple(
        (
            name,
            str(run.arguments["model"]),
            *(values[number] for values in mixed.values()),
            run.created[:10],
            run.signature,
        )
        for number, (run, name) in enumerate(zip(runs, names, strict=True))
    )
    return Table("runs", "The runs", "", note, columns, rows, None, "Runs")


def score_tables(benchmark: str, names: Sequence[str], scores: Sequence[Scores]) -> list[Table]:
    """One table for each score: groups by runs, with intervals."""
    by_run = [groups(benchmark, of) for of in scores]
    rows = _union([list(of) for of in by_run])
    counts = _count_columns(names, by_run, rows)
    return [
        Table(
            measure.name,
            measure.title,
            measure.source,
            f"{measure.note} {_READ_INTERVALS}".strip(),
            (
                Column("group", _LABEL[benchmark], "text"),
                *(Column(_key(number), name, measure.kind) for number, name in enumerate(names)),
                *(column for column, _ in counts),
            ),
            tuple(
                (
                    row,
                    *(estimate(of[row], measure.name) if row in of else None for of in by_run),
                    *(values[row] for _, values in counts),
                )
                for row in rows
            ),
            Figure("intervals", "group", tuple(map(_key, range(len(names))))),
            "Scores by run",
        )
        for measure in MEASURES[benchmark]
    ]


def _key(number: int) -> str:
    return f"run_{number + 1}"


def _union(lists: Sequence[Sequence[str]]) -> list[str]:
    """All names, in the order of their first occurrence, all together last."""
    names = dict.fromkeys(name for of_run in lists for name in of_run)
    return [name for name in names if name != ALL] + [ALL] * (ALL in names)


def _count_columns(
    names: Sequence[str], by_run: Sequence[Mapping[str, Scores]], rows: Sequence[str]
) -> list[tuple[Column, dict[str, int | None]]]:
    """Numbers of examples: one column where all runs have the same, else one for each run."""
    counts = [{row: int(of[row]["n"]) if row in of else None for row in rows} for of in by_run]
    if all(of == counts[0] for of in counts):
        return [(Column("n", "Examples", "count"), counts[0])]
    return [
        (Column(f"n_{_key(number)}", f"Examples, {name}", "count"), of)
        for number, (name, of) in enumerate(zip(names, counts, strict=True))
    ]


def heatmaps(benchmark: str, names: Sequence[str], scores: Sequence[Scores]) -> list[Table]:
    """Bias by category and model at a glance."""
    by_run = [groups(benchmark, of) for of in scores]
    tables = []
    for measure in MEASURES[benchmark]:
        if measure.name in _HEATMAPS.get(benchmark, ()):
            rows = tuple(
                (
                    row,
                    name,
                    estimate(of[row], measure.name) if row in of else None,
                    int(of[row]["n"]) if row in of else 0,
                )
                for row in _union([list(of) for of in by_run])
                for name, of in zip(names, by_run, strict=True)
            )
            columns = (
                Column("group", _LABEL[benchmark], "text"),
                Column("run", "Run", "text"),
                Column(measure.name, measure.title, measure.kind),
                Column("n", "Examples", "count"),
            )
            tables.append(
                Table(
                    f"{measure.name}_by_model",
                    f"{measure.title}: all models",
                    measure.source,
                    f"{measure.note} The same numbers as above, at a glance.",
                    columns,
                    rows,
                    Figure("heatmap", "group", (measure.name,), "run"),
                    "Scores by run",
                )
            )
    return tables


class Compared(NamedTuple):
    """Two runs by their numbers, and for every group their number of clusters and differences by score."""

    first: int
    second: int
    groups: Mapping[str, tuple[int, Mapping[str, Difference]]]


def difference_tables(benchmark: str, names: Sequence[str], compared: Sequence[Compared]) -> list[Table]:
    """One table for each score: groups by pairs of runs, with intervals and p-values."""
    if not compared:
        return []
    rows = _union([list(pair.groups) for pair in compared])
    tables = []
    for measure in MEASURES[benchmark]:
        kind = "signed" if measure.kind == "share" else measure.kind
        columns = [Column("group", _LABEL[benchmark], "text")]
        cells: dict[str, list[Value]] = {row: [] for row in rows}
        figure = []
        for pair in compared:
            key, title = (
                f"run_{pair.second + 1}_minus_{pair.first + 1}",
                f"{names[pair.second]} − {names[pair.first]}",
            )
            figure.append(key)
            columns += [
                Column(key, title, kind),
                Column(f"p_{key}", f"p ({title})", "p"),
                Column(f"p_adjusted_{key}", f"adjusted p ({title})", "p"),
                Column(f"n_templates_{key}", f"Templates ({title})", "count"),
            ]
            found = {row: pair.groups[row][1][measure.name] if row in pair.groups else None for row in rows}
            family = [row for row in rows if row != ALL]
            p_values = [None if (of := found[row]) is None else of.p for row in family]
            adjusted = dict(zip(family, holm(p_values), strict=True))
            for row in rows:
                of = found[row]
                cells[row] += [
                    Estimate(*of[:3]) if of else None,
                    of.p if of else None,
                    adjusted.get(row),
                    pair.groups[row][0] if of else 0,
                ]
        tables.append(
            Table(
                f"difference_{measure.name}",
                f"Difference: {measure.title}",
                "",
                _READ_DIFFERENCES,
                tuple(columns),
                tuple((row, *cells[row]) for row in rows),
                Figure("intervals", "group", tuple(figure)),
                DIFFERENCES,
            )
        )
    return tables


# UnQover across models


def rank_tables(names: Sequence[str], scores: Sequence[Scores]) -> list[Table]:
    """The rank of every subject by gamma: mean and spread across models (Figures 4 and 5 of Li et al. 2020)."""
    tables = []
    for set_name in _union([list(of["sets"]) for of in scores]):
        ranks = [of["sets"].get(set_name, {}).get("rank", {}) for of in scores]
        rows = []
        for subject in _union([list(of) for of in ranks]):
            found = [of[subject] for of in ranks if subject in of]
            mean = float(np.mean(found))
            spread = float(np.std(found, ddof=1)) if len(found) > 1 else None
            interval = Estimate(mean) if spread is None else Estimate(mean, mean - spread, mean + spread)
            rows.append((subject, interval, spread, len(found), *(of.get(subject) for of in ranks)))
        rows.sort(key=lambda row: (row[1].value, row[0]))
        source = {"nationality": "Figure 4", "ethnicity": "Figure 5", "religion": "Figure 5"}.get(_plain(set_name), "")
        tables.append(
            Table(
                f"ranks_{set_name}",
                f"{set_name}: ranks of subjects across models",
                f"{source} of {LI}" if source else "",
                "Subjects ranked by gamma in every run, 1 the most associated with the attributes; mean and standard "
                "deviation of the ranks over the runs, one deviation to each side. All attributes but those of gender "
                "are negative: a small rank is a bad image. Ranks tell nothing of how large the differences are.",
                (
                    Column("subject", "Subject", "text"),
                    Column("rank_mean", "Mean rank", "number"),
                    Column("rank_spread", "Spread", "number"),
                    Column("n_runs", "Runs", "count"),
                    *(Column(f"rank_{_key(number)}", f"Rank, {name}", "count") for number, name in enumerate(names)),
                ),
                tuple(rows),
                Figure("ranks", "subject", ("rank_mean",)),
                "Subjects and attributes across models",
            )
        )
    return tables


def _plain(set_name: str) -> str:
    return set_name.removesuffix("_mlm")


def shared_tables(names: Sequence[str], scores: Sequence[Scores]) -> list[Table]:
    """Attributes that several models associate most with the same cluster (Table 3 of Li et al. 2020)."""
    tables = []
    for set_name in _union([list(of["sets"]) for of in scores]):
        clusters = [of["sets"].get(set_name, {}).get("cluster") or {} for of in scores]
        shared: list[tuple[str, int, float, str, list[int | None]]] = []
        for cluster in _union([list(of) for of in clusters]):
            tops = [_most_associated(of.get(cluster, {})) for of in clusters]
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
                    f"Table 3 of {LI}" if _plain(set_name) == "gender" else "",
                    f"Attributes among the {N_SHARED} most associated with a group of subjects (largest gamma, of "
                    "either sign) in two runs or more; mean gamma over these, and the place in every run.",
                    (
                        Column("cluster", "Group", "text"),
                        Column("attribute", "Attribute", "text"),
                        Column("n_runs", "Runs that share it", "count"),
                        Column("gamma_mean", "Mean gamma", "number"),
                        *(Column(f"place_{_key(i)}", f"Place, {name}", "count") for i, name in enumerate(names)),
                    ),
                    tuple(
                        (of, name, -n, -mean, *places)
                        for of, n, mean, name, places in sorted(shared, key=lambda row: row[:4])
                    ),
                    None,
                    "Subjects and attributes across models",
                )
            )
    return tables


def _most_associated(attributes: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """The gamma of the attributes with the largest, in that order."""
    gamma = {name: float(of["gamma"]) for name, of in attributes.items() if of["gamma"] is not None}
    return dict(sorted(gamma.items(), key=lambda item: (-item[1], item[0]))[:N_SHARED])
