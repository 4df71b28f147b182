"""Rows of UnQover: subjects, attribute, template and clusters, and the eight scores."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from .inputs import NONE, Factor, Source, Table, check_runs
from .scores import SCORE_COLUMNS, Floats
from .values import Integers, are_plain_numbers, array_of, shown

TEXT_COLUMNS = ("subject1", "subject2", "cluster1", "cluster2", "attribute", "attribute_class")
"""Columns of strings that are read, in addition to `example_id` and `template_id`."""

REFERENCES = Source("unqover", "references", "the unchanged rows of the UnQover dataset")
PREDICTIONS = Source(
    "unqover",
    "predictions",
    f"the eight scores of each row by name: {', '.join(SCORE_COLUMNS)} (and example_id with all rows or none)",
)

TOLERANCE = 1e-6
"""How far a score may exceed 1, for the rounding of a float32 softmax."""

_MAX_CELLS = 50_000_000  # templates x subjects x attributes; three matrices of this size are held


class Items(NamedTuple):
    """Columns of shape (n,). Both subjects have the same levels, and both clusters too."""

    subject1: Factor
    subject2: Factor
    cluster1: Factor
    cluster2: Factor
    attribute: Factor
    attribute_class: Factor
    template: Factor
    example_id: Integers

    @property
    def clusters(self) -> tuple[Integers, Integers]:
        """The clusters of the two subjects as codes, -1 for none."""
        none = [level == NONE for level in self.cluster1.levels]
        first, second = (
            np.where(np.array(none)[cluster.codes], -1, cluster.codes) for cluster in (self.cluster1, self.cluster2)
        )
        return first, second


def read(rows: Table, runs: Factor) -> Items:
    """Reads and checks the rows, which every run must share; a ValueError names the wrong row, column and value."""
    subjects = _joint(rows.text("subject1"), rows.text("subject2"))
    clusters = _joint(rows.text("cluster1", empty=NONE), rows.text("cluster2", empty=NONE))
    items = Items(
        *subjects,
        *clusters,
        rows.text("attribute"),
        rows.text("attribute_class", empty=NONE),
        rows.text("template_id", integers=True),
        rows.integers("example_id"),
    )
    _check_pairs(rows, items, runs)
    for number in (1, 2):
        _check_cluster(rows, items, number)
    counted = [len(factor.levels) for factor in (items.template, items.subject1, items.attribute)]
    if counted[0] * counted[1] * counted[2] > _MAX_CELLS:
        raise rows.source.error(
            f": template_id has {counted[0]} values, too many with {counted[1]} subjects and {counted[2]} attributes",
            "pass one template_id per template, not per row",
        )
    return items


def subject_scores(predictions: Table, example_id: Integers) -> dict[str, Floats]:
    """The eight scores of each row as float64 in [0, 1]."""
    if predictions.has("example_id"):
        ids = predictions.integers("example_id")
        differs = ids != example_id
        if differs.any():
            number = int(np.argmax(differs))
            raise predictions.source.error(
                f": example_id {ids[number]} differs from the reference's {example_id[number]}",
                "pass one prediction per row, in the same order",
                number,
            )
    return {name: _score(predictions, name) for name in SCORE_COLUMNS}


def _score(predictions: Table, name: str) -> Floats:
    rule = (
        "is not a score from 0 to 1",
        "pass eight probabilities per row, and drop rows without all of them",
    )
    column = predictions.column(name)
    is_sequence = isinstance(column, Sequence)
    column = predictions.items(name) if is_sequence else column  # a dataset's own items are slow
    array = array_of(column)
    mixed = is_sequence and not are_plain_numbers(column)  # True would become 1.0
    if array.dtype.kind not in "fiu" or array.ndim != 1 or mixed:
        values = list(map(_number, predictions.items(name)))
        fits = [value is not None and 0.0 <= value <= 1.0 + TOLERANCE for value in values]
        predictions.refuse(~np.array(fits), name, *rule)
        array = np.array(values, dtype=np.float64)
    array = array.astype(np.float64, copy=False)
    predictions.refuse(~((array >= 0.0) & (array <= 1.0 + TOLERANCE)), name, *rule)
    return np.minimum(array, 1.0)


def _number(value: Any) -> float | None:
    """The number that a value equals, also from NumPy or a tensor without dimensions; otherwise None."""
    number = value.tolist() if hasattr(value, "tolist") else value
    return cast(float, number) if isinstance(number, numbers.Real) and not isinstance(number, bool) else None


def _joint(first: Factor, second: Factor) -> tuple[Factor, Factor]:
    """Two columns with the same levels."""
    both = Factor.from_values(
        np.concatenate([first.codes, second.codes + len(first.levels)]), first.levels + second.levels
    )
    codes1, codes2 = np.split(both.codes, 2)
    return Factor(codes1, both.levels), Factor(codes2, both.levels)


def _check_pairs(rows: Table, items: Items, runs: Factor) -> None:
    """Checks that a row has two subjects, and that no pair of subjects repeats with a template and attribute."""
    check_runs(rows, runs, items.subject1.codes, items.subject2.codes, items.attribute.codes, items.template.codes)
    subject1, subject2, template, attribute = items.subject1, items.subject2, items.template, items.attribute
    same = subject1.codes == subject2.codes
    rows.refuse(same, "subject1", "is also subject2", "pass rows with two different subjects")
    key = np.minimum(subject1.codes, subject2.codes)
    for codes, size in (
        (np.maximum(subject1.codes, subject2.codes), len(subject1.levels)),
        (template.codes, len(template.levels)),
        (attribute.codes, len(attribute.levels)),
        (runs.codes, len(runs.levels)),
    ):
        if key.max() >= 2**62 // size:
            key = np.unique(key, return_inverse=True)[1]
        key = key * size + codes
    ordered = np.sort(key)
    if (ordered[1:] == ordered[:-1]).any():
        order = np.argsort(key, kind="stable")
        repeats = np.flatnonzero(key[order][1:] == key[order][:-1])
        place = repeats[np.argmin(order[repeats + 1])]
        first, second = order[place], order[place + 1]
        pair = shown((subject1.levels[subject1.codes[second]], subject2.levels[subject2.codes[second]]))
        raise rows.source.error(
            f": the subjects {pair} with template_id {shown(template.levels[template.codes[second]])} and attribute "
            f"{shown(attribute.levels[attribute.codes[second]])} repeat row {first}",
            "pass each pair once: one row holds both orders",
            second,
        )


def _check_cluster(rows: Table, items: Items, number: int) -> None:
    """Checks that the subjects of one column have the same cluster in every row."""
    owner = np.zeros(len(items.subject1.levels), dtype=np.int64)
    for subject, cluster in ((items.subject2, items.cluster2), (items.subject1, items.cluster1)):
        owner[subject.codes[::-1]] = cluster.codes[::-1]  # the last assignment wins: the first row's
    subject, cluster = (items.subject1, items.cluster1) if number == 1 else (items.subject2, items.cluster2)
    wrong = owner[subject.codes] != cluster.codes
    if wrong.any():
        row = int(np.argmax(wrong))
        name = subject.codes[row]
        raise rows.source.error(
            f": cluster{number} {shown(cluster.levels[cluster.codes[row]])} of subject {shown(subject.levels[name])} "
            f"is {shown(cluster.levels[owner[name]])} in another row",
            "give each subject one cluster",
            row,
        )
