"""The published and the bundled form of BBQ: which templates test the same stereotype, and answers counted by them."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qabias.benchmarks.base import NO_RULES, Rules
from qabias.benchmarks.bbq.reading import probabilities_of
from qabias.benchmarks.bbq.roles import counting, paper_categories
from qabias.benchmarks.facts import ALL, ParallelForms, Stereotype
from qabias.benchmarks.pairs import Form, Pair, pair_of_counts, predictions
from qabias.share.metrics.bbq.scores import count, scores_from_counts
from qabias.support.arrow import rows_of

# The bundled texts write some adjectives with a small letter that the published ones write with a capital.
_PUBLISHED_NAMES = {"atheist": "Atheist"}
_ROLES = ("label", "target_loc", "biased_loc", "unknown_loc")


def stereotypes(table: pa.Table) -> list[Stereotype]:
    """The stereotype of every row: the number of its template, and the groups that the template names."""
    groups = pc.struct_field(table["additional_metadata"], "stereotyped_groups").to_pylist()
    names = table["template_id"].to_pylist()
    return [
        Stereotype(name, ", ".join(_PUBLISHED_NAMES.get(group, group) for group in row))
        for name, row in zip(names, groups, strict=True)
    ]


FORMS = ParallelForms(
    published=("official", "release"),
    parallel=("bundled",),
    stereotypes=stereotypes,
    topic="social_value",
    basis="Each bundled template was written for the published template of the same category and number, about the "
    "same stereotyped groups and from the same source; templates whose groups differ are left out.",
)


def pair_forms(first: Form, second: Form, rules: Rules = NO_RULES) -> dict[str, Pair]:
    """Answers to two forms of the examples, or of two runs to the same, by category and cluster."""
    score = partial(scores_from_counts, **counting(rules))
    forms = (first, second)
    rows = [rows_of(pa.chunked_array([paper_categories(form.table)])) for form in forms]
    groups = {name: [chosen_rows[name] for chosen_rows in rows] for name in rows[0] if name in rows[1]}
    groups[ALL] = [np.arange(form.table.num_rows) for form in forms]
    pairs = {}
    for name, chosen in groups.items():
        there = [form.clusters[chosen_rows] for form, chosen_rows in zip(forms, chosen, strict=True)]
        shared = np.intersect1d(there[0], there[1])
        counts = [_count(form, chosen_rows, shared) for form, chosen_rows in zip(forms, chosen, strict=True)]
        pairs[name] = pair_of_counts(counts, score)
    return pairs


def _count(form: Form, rows: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """The metric's counts of some rows, one line for each of some clusters, which are sorted."""
    rows = rows[np.isin(form.clusters[rows], clusters)]
    roles = [form.table[name].to_numpy().astype(np.int64)[rows] for name in _ROLES]
    disambiguated = form.table["context_condition"].to_numpy()[rows] == "disambig"
    cluster = np.searchsorted(clusters, form.clusters[rows])
    likely = probabilities_of(form.answers)
    columns = (*roles, disambiguated, cluster, len(clusters), None if likely is None else likely[rows])
    return count(predictions(form.answers)[rows], *columns)
