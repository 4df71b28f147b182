"""What people's ratings say: which templates pass, how well raters agree, and which raters read with care."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from qabias.errors import QabiasError
from qabias.support.extras import need
from qabias.support.table_files import read_csv_rows
from qabias.validation.items import KEY

# Thresholds of Parrish et al. (2022): section 4 (agreement of 4 of 5 raters) and appendix D (fillers).
N_RATERS = 5
AGREEMENT = Fraction(4, 5)
FILLER_ACCURACY = 0.85
# What crowd workers reached on the published form (section 4), to compare with.
PUBLISHED = {"accuracy": 0.957, "majority_accuracy": 0.997, "alpha": 0.883}

RATING = ("item_id", "annotator", "answer")


@dataclass(frozen=True)
class Rating:
    """One answer (0 to 2) of one annotator to one item."""

    item_id: str
    annotator: str
    answer: int


def read_key(path: Path) -> dict[str, dict[str, str]]:
    """Read the key that `validate export` wrote; item_id -> its row."""
    rows = _rows(path, KEY, "the key that `qabias validate export` wrote")
    for number, row in rows:
        _answer(row["label"], path, number, "label")
    return {row["item_id"]: row for _, row in rows}


def read_ratings(path: Path, key: Mapping[str, Mapping[str, str]]) -> list[Rating]:
    """Read ratings from a CSV with the columns item_id, annotator and answer (0 to 2)."""
    ratings, seen = [], set()
    for number, row in _rows(path, RATING, "one row per annotator and item"):
        item_id, annotator = row["item_id"], row["annotator"].strip()
        if item_id not in key:
            raise QabiasError(
                f"{path}: row {number}: item_id: {item_id!r} is not in the key; use the key of this export"
            )
        if not annotator:
            raise QabiasError(f"{path}: row {number}: annotator: empty; name who answered")
        if (item_id, annotator) in seen:
            raise QabiasError(f"{path}: row {number}: {annotator} has rated {item_id} before; keep one of the two rows")
        seen.add((item_id, annotator))
        ratings.append(Rating(item_id, annotator, _answer(row["answer"], path, number, "answer")))
    if not ratings:
        raise QabiasError(f"{path}: no ratings")
    return ratings


def score_ratings(ratings: Sequence[Rating], key: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """Judge templates and raters by the thresholds of Parrish et al. (2022)."""
    by_item: dict[str, list[int]] = defaultdict(list)
    for rating in ratings:
        by_item[rating.item_id].append(rating.answer)
    items = {item_id: _judge(row, by_item.get(item_id, [])) for item_id, row in key.items() if row["kind"] == "example"}
    statuses = defaultdict(set)
    for item in items.values():
        statuses[item["template_id"]].add(item["status"])
    order = ("failed", "incomplete", "passed")
    templates = {name: next(s for s in order if s in statuses[name]) for name in sorted(statuses)}
    rated = [item for item in items.values() if item["n_ratings"]]
    return {
        "items": items,
        "templates": templates,
        "to_edit": [name for name, status in templates.items() if status == "failed"],
        "accuracy": ratio(sum(item["n_right"] for item in rated), sum(item["n_ratings"] for item in rated)),
        "majority_accuracy": ratio(sum(item["majority_right"] for item in rated), len(rated)),
        "alpha": alpha([by_item[item_id] for item_id in items if item_id in by_item]),
        "annotators": _annotators(ratings, key),
    }


def _judge(row: Mapping[str, str], answers: Sequence[int]) -> dict[str, Any]:
    label = int(row["label"])
    n_right = answers.count(label)
    status = "passed" if n_right >= AGREEMENT * len(answers) else "failed"
    if len(answers) < N_RATERS:
        status = "incomplete"
    counts = Counter(answers)
    others = max((n for answer, n in counts.items() if answer != label), default=0)
    return {
        "template_id": row["template_id"],
        "condition": row["condition"],
        "source_id": row["source_id"],
        "n_ratings": len(answers),
        "n_right": n_right,
        "majority_right": n_right > others,
        "status": status,
    }


def _annotators(ratings: Sequence[Rating], key: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, Any]]:
    right: dict[str, dict[str, list[bool]]] = defaultdict(lambda: {"example": [], "filler": []})
    for rating in ratings:
        row = key[rating.item_id]
        right[rating.annotator][row["kind"]].append(rating.answer == int(row["label"]))
    return {
        name: {
            "n": len(of["example"]),
            "accuracy": ratio(sum(of["example"]), len(of["example"])),
            "n_fillers": len(of["filler"]),
            "filler_accuracy": ratio(sum(of["filler"]), len(of["filler"])),
            "careful": sum(of["filler"]) > FILLER_ACCURACY * len(of["filler"]) if of["filler"] else None,
        }
        for name, of in sorted(right.items())
    }


def alpha(answers: Sequence[Sequence[int]]) -> float:
    """Krippendorff's alpha of nominal data, at most 1, over the items with two answers or more."""
    counts = np.array([[of_item.count(value) for value in range(3)] for of_item in answers if len(of_item) > 1])
    if len(counts) == 0 or np.count_nonzero(counts.sum(axis=0)) < 2:
        return float("nan")
    need("validate", "the agreement of raters")
    import krippendorff

    return float(krippendorff.alpha(value_counts=counts, level_of_measurement="nominal"))


def ratio(part: int, whole: int) -> float:
    """A share; NaN of nothing."""
    return part / whole if whole else float("nan")


def _answer(text: str, path: Path, number: int, column: str) -> int:
    if text.strip() not in ("0", "1", "2"):
        raise QabiasError(
            f"{path}: row {number}: {column}: {text!r} is no answer; write 0, 1 or 2 for ans0, ans1 or ans2 "
            "and leave out rows without an answer"
        )
    return int(text)


def _rows(path: Path, columns: Sequence[str], what: str) -> list[tuple[int, dict[str, str]]]:
    """The rows with their line numbers; the header is line 1."""
    return [(line, {name: cells[name] or "" for name in columns}) for line, cells in read_csv_rows(path, columns, what)]
