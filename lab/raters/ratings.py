"""The results of ratings: templates that pass, agreement and careful raters, with their tables."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.table import Table

from lab.raters.items import KEY, PAIR
from qabias.errors import QabiasError
from qabias.support.table_files import read_csv_rows
from qabias.tables.terminal import Console

# Thresholds of Parrish et al. (2022): section 4 (agreement of 4 of 5 raters) and appendix D (fillers).
N_RATERS = 5
AGREEMENT = Fraction(4, 5)
FILLER_ACCURACY = 0.85
# Results of crowd workers on the published texts (section 4), for comparison.
PUBLISHED = {"accuracy": 0.957, "majority_accuracy": 0.997, "alpha": 0.883}
# Result of the two annotators of Akyurek et al. (2022).
PUBLISHED_ALPHA = 0.96

RATING = ("item_id", "annotator", "answer")


@dataclass(frozen=True)
class Rating:
    """One answer (0 to 2) of one annotator to one item."""

    item_id: str
    annotator: str
    answer: int


def read_key(path: Path) -> dict[str, dict[str, str]]:
    """Read the key from `export`; item_id -> its row."""
    rows = _rows(path, KEY, "the key that `python -m lab.raters export` wrote")
    for number, row in rows:
        _answer(row["label"], path, number, "label")
    return {row["item_id"]: row for _, row in rows}


def read_ratings(path: Path, key: Mapping[str, Mapping[str, str]]) -> list[Rating]:
    """Read ratings from a CSV with the columns item_id, annotator and answer (0 to 2)."""
    ratings, seen = [], set()
    for number, row in _rows(path, RATING, "one row per annotator and item"):
        item_id, annotator = row["item_id"], row["annotator"].strip()
        if item_id not in key:
            raise QabiasError(f"{path}: row {number}: item_id {item_id!r} is not in the key", "use this export's key")
        if not annotator:
            raise QabiasError(f"{path}: row {number}: annotator is empty", "name the annotator")
        if (item_id, annotator) in seen:
            raise QabiasError(f"{path}: row {number}: {annotator} has rated {item_id} before", "keep one of the rows")
        seen.add((item_id, annotator))
        ratings.append(Rating(item_id, annotator, _answer(row["answer"], path, number, "answer")))
    if not ratings:
        raise QabiasError(f"{path}: no ratings", "add a row per annotator and item")
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
            "n": len(kinds["example"]),
            "accuracy": ratio(sum(kinds["example"]), len(kinds["example"])),
            "n_fillers": len(kinds["filler"]),
            "filler_accuracy": ratio(sum(kinds["filler"]), len(kinds["filler"])),
            "careful": sum(kinds["filler"]) > FILLER_ACCURACY * len(kinds["filler"]) if kinds["filler"] else None,
        }
        for name, kinds in sorted(right.items())
    }


def are_pairs(key: Mapping[str, Mapping[str, str]]) -> bool:
    """Whether a key belongs to pairs."""
    kinds = {row["kind"] == PAIR for row in key.values()}
    if len(kinds) > 1:
        raise QabiasError("the key holds pairs and questions", "use the key of one export")
    return kinds == {True}


def score_pairs(ratings: Sequence[Rating], key: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """How well annotators agree with each other and with the right labels."""
    by_item: dict[str, dict[str, int]] = defaultdict(dict)
    for rating in ratings:
        by_item[rating.item_id][rating.annotator] = rating.answer
    shared = [list(answers.values()) for answers in by_item.values() if len(answers) > 1]
    return {
        "n_pairs": len(key),
        "n_rated": len(by_item),
        "n_shared": len(shared),
        "alpha": alpha(shared),
        "agreement": ratio(sum(len(set(answers)) == 1 for answers in shared), len(shared)),
        "annotators": {
            name: _accuracy_of([rating for rating in ratings if rating.annotator == name], key)
            for name in sorted({rating.annotator for rating in ratings})
        },
        "to_discuss": {
            item_id: {"source_id": key[item_id]["source_id"], "label": int(key[item_id]["label"]), "answers": answers}
            for item_id, answers in sorted(by_item.items())
            if set(answers.values()) != {int(key[item_id]["label"])}
        },
    }


def _accuracy_of(ratings: Sequence[Rating], key: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """The accuracy of one annotator, over all pairs and by their kind."""

    def by(column: str) -> dict[str, Any]:
        groups: dict[str, list[bool]] = defaultdict(list)
        for rating in ratings:
            groups[key[rating.item_id][column]].append(_is_right(rating, key))
        return {name: _share(groups[name]) for name in sorted(groups)}

    whole = _share([_is_right(rating, key) for rating in ratings])
    return {**whole, "by_kind": by("condition"), "by_subtopic": by("template_id")}


def _is_right(rating: Rating, key: Mapping[str, Mapping[str, str]]) -> bool:
    return rating.answer == int(key[rating.item_id]["label"])


def _share(right: Sequence[bool]) -> dict[str, Any]:
    return {"n": len(right), "accuracy": ratio(sum(right), len(right))}


def alpha(answers: Sequence[Sequence[int]]) -> float:
    """Krippendorff's alpha of nominal data, at most 1, over the items with at least two answers."""
    counts = np.array([[item.count(value) for value in range(3)] for item in answers if len(item) > 1])
    if len(counts) == 0 or np.count_nonzero(counts.sum(axis=0)) < 2:
        return float("nan")
    try:
        import krippendorff
    except ImportError as error:
        raise QabiasError("the agreement of raters needs krippendorff", "run: pip install krippendorff") from error

    return float(krippendorff.alpha(value_counts=counts, level_of_measurement="nominal"))


def ratio(part: int, whole: int) -> float:
    """A share; NaN without items."""
    return part / whole if whole else float("nan")


def _answer(text: str, path: Path, number: int, column: str) -> int:
    if text.strip() not in ("0", "1", "2"):
        problem = f"{path}: row {number}: {column} {text!r} is not an answer"
        raise QabiasError(problem, "use 0, 1 or 2 for ans0, ans1 or ans2, and remove rows without an answer")
    return int(text)


def _rows(path: Path, columns: Sequence[str], what: str) -> list[tuple[int, dict[str, str]]]:
    """The rows with their line numbers; the header is line 1."""
    return [(line, {name: cells[name] or "" for name in columns}) for line, cells in read_csv_rows(path, columns, what)]


def print_questions(result: Mapping[str, Any], console: Console | None = None) -> None:
    """Print what `score_ratings` returns: agreement, raters, and the templates to edit."""
    console = console or Console()
    counts = Counter(result["templates"].values())
    console.print(
        f"templates: {counts['passed']} passed, {counts['failed']} failed, {counts['incomplete']} with too few ratings",
        highlight=False,
    )
    console.print(_agreement(result))
    console.print(_raters(result))
    if result["to_edit"]:
        console.print("To edit and rate again (less than 4 of 5 agree with the right answer):", highlight=False)
        for name in result["to_edit"]:
            failed = [
                f"{item['condition']} {item['n_right']}/{item['n_ratings']}"
                for item in result["items"].values()
                if item["template_id"] == name and item["status"] == "failed"
            ]
            console.print(f"  {name}: {', '.join(failed)}", highlight=False)


def print_pairs(result: Mapping[str, Any], console: Console | None = None) -> None:
    """Print the result of `score_pairs`: agreement, annotators, and the number of pairs to discuss."""
    console = console or Console()
    console.print(
        f"pairs: {result['n_rated']} of {result['n_pairs']} rated, {result['n_shared']} of them by two or more. "
        f"Krippendorff's alpha {_number(result['alpha'])} (paper: {PUBLISHED_ALPHA}), the same label "
        f"{_number(result['agreement'])}",
        highlight=False,
        soft_wrap=True,
    )
    for title, name in (("kind of hypothesis", "by_kind"), ("subtopic or category", "by_subtopic")):
        console.print(_accuracies(result["annotators"], title, name))
    console.print(
        f"{len(result['to_discuss'])} pairs have a wrong label (--output lists them). Discuss them, and change or drop "
        "doubtful pairs.",
        highlight=False,
        soft_wrap=True,
    )


def _accuracies(annotators: Mapping[str, Any], title: str, name: str) -> Table:
    """Accuracy against the key, with a row for every group and a column for every annotator."""
    table = Table(title=f"Accuracy by {title} (pairs)", box=box.SIMPLE)
    table.add_column(title)
    for annotator in annotators:
        table.add_column(annotator, justify="right")
    groups = sorted({group for scores in annotators.values() for group in scores[name]})
    for group in groups:
        table.add_row(group, *(_cell(scores[name].get(group)) for scores in annotators.values()))
    table.add_row("all", *map(_cell, annotators.values()))
    return table


def _cell(scores: Mapping[str, Any] | None) -> str:
    return "-" if scores is None else f"{_number(scores['accuracy'])} ({scores['n']})"


def _agreement(result: Mapping[str, Any]) -> Table:
    table = Table(title="Agreement on the examples", box=box.SIMPLE)
    for column in ("", "here", "published form"):
        table.add_column(column, justify="right" if column else "left")
    for name, title in (
        ("accuracy", "accuracy of single ratings"),
        ("majority_accuracy", "accuracy by majority"),
        ("alpha", "Krippendorff's alpha"),
    ):
        table.add_row(title, _number(result[name]), _number(PUBLISHED[name]))
    return table


def _raters(result: Mapping[str, Any]) -> Table:
    table = Table(title="Raters", box=box.SIMPLE)
    table.add_column("annotator")
    for column in ("examples", "accuracy", "fillers", "accuracy", f"above {FILLER_ACCURACY:.0%}"):
        table.add_column(column, justify="right")
    words = {True: "yes", False: "no", None: "-"}
    for name, rater in result["annotators"].items():
        table.add_row(
            name,
            str(rater["n"]),
            _number(rater["accuracy"]),
            str(rater["n_fillers"]),
            _number(rater["filler_accuracy"]),
            words[rater["careful"]],
        )
    return table


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"
