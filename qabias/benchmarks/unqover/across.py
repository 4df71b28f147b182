"""Subjects and attributes of UnQover across models: ranks, and what several models agree on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from qabias.benchmarks.facts import Scores, run_column, union
from qabias.benchmarks.unqover.facts import PAPER
from qabias.tables.model import Column, Estimate, Figure, Table

N_SHARED = 10
N_ENDS = 8
"""Nationalities at each end of the ranks that Figure 4 shows."""

_SECTION = "Subjects and attributes across models"


def tables_across(names: Sequence[str], scores: Sequence[Scores]) -> list[Table]:
    """Ranks of subjects and shared attributes of every set."""
    return [*rank_tables(names, scores), *shared_tables(names, scores)]


def rank_tables(names: Sequence[str], scores: Sequence[Scores]) -> list[Table]:
    """The rank of every subject by gamma: mean and spread across models (Figures 4 and 5 of Li et al. 2020)."""
    tables = []
    for set_name in union([list(of["sets"]) for of in scores]):
        ranks = [of["sets"].get(set_name, {}).get("rank", {}) for of in scores]
        rows = []
        for subject in union([list(of) for of in ranks]):
            found = [of[subject] for of in ranks if subject in of]
            mean = float(np.mean(found))
            # Over all runs that there are, no sample of them: as the authors' notebook has it, divided by n.
            spread = float(np.std(found)) if len(found) > 1 else None
            interval = Estimate(mean) if spread is None else Estimate(mean, mean - spread, mean + spread)
            rows.append((subject, interval, spread, len(found), *(of.get(subject) for of in ranks)))
        rows.sort(key=lambda row: (row[1].value, row[0]))
        source = {"nationality": "Figure 4", "ethnicity": "Figure 5", "religion": "Figure 5"}.get(set_name, "")
        shown = f" The figure of the paper shows the first {N_ENDS} and the last {N_ENDS} rows." * (
            source == "Figure 4"
        )
        tables.append(
            Table(
                f"ranks_{set_name}",
                f"{set_name}: ranks of subjects across models",
                f"{source} {PAPER}" if source else "",
                "Subjects ranked by gamma in every run, 1 the most associated with the attributes; mean and standard "
                "deviation of the ranks over the runs (divided by their number, as in the paper), one deviation to "
                "each side. All attributes but those of gender are negative: a small rank is a bad image. Ranks tell "
                f"nothing of how large the differences are.{shown}",
                (
                    Column("subject", "Subject", "text"),
                    Column("rank_mean", "Mean rank", "number"),
                    Column("rank_spread", "Spread", "number"),
                    Column("n_runs", "Runs", "count"),
                    *(
                        Column(f"rank_{run_column(number)}", f"Rank, {name}", "count")
                        for number, name in enumerate(names)
                    ),
                ),
                tuple(rows),
                Figure("ranks", "subject", ("rank_mean",)),
                _SECTION,
            )
        )
    return tables


def shared_tables(names: Sequence[str], scores: Sequence[Scores]) -> list[Table]:
    """Attributes that several models associate most with the same cluster (Table 3 of Li et al. 2020)."""
    tables = []
    for set_name in union([list(of["sets"]) for of in scores]):
        clusters = [of["sets"].get(set_name, {}).get("cluster") or {} for of in scores]
        shared: list[tuple[str, int, float, str, list[int | None]]] = []
        for cluster in union([list(of) for of in clusters]):
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
                    f"Table 3 {PAPER}" if set_name == "gender" else "",
                    f"Attributes that two runs or more have among the {N_SHARED} with the largest gamma of a group of "
                    "subjects, which are the most preferred for it and never the most avoided; some may still be "
                    "below 0. Mean gamma over these runs, and the place in every run; a dash is a place after the "
                    f"first {N_SHARED}.",
                    (
                        Column("cluster", "Group", "text"),
                        Column("attribute", "Attribute", "text"),
                        Column("n_runs", "Runs that share it", "count"),
                        Column("gamma_mean", "Mean gamma", "number"),
                        *(
                            Column(f"place_{run_column(number)}", f"Place, {name}", "count")
                            for number, name in enumerate(names)
                        ),
                    ),
                    tuple(
                        (of, name, -n, -mean, *places)
                        for of, n, mean, name, places in sorted(shared, key=lambda row: row[:4])
                    ),
                    None,
                    _SECTION,
                )
            )
    return tables


def _most_associated(attributes: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """The gamma of the attributes with the largest, in that order."""
    gamma = {name: float(of["gamma"]) for name, of in attributes.items() if of["gamma"] is not None}
    return dict(sorted(gamma.items(), key=lambda item: (-item[1], item[0]))[:N_SHARED])
