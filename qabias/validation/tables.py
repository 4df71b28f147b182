"""The result of a validation for the terminal."""

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from rich import box
from rich.table import Table

from qabias.tables.terminal import Console
from qabias.validation.pairs import PUBLISHED_ALPHA
from qabias.validation.ratings import FILLER_ACCURACY, PUBLISHED


def print_validation(result: Mapping[str, Any], console: Console | None = None) -> None:
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
        console.print("to edit and rate again (less than 4 of 5 agree with the right answer):", highlight=False)
        for name in result["to_edit"]:
            failed = [
                f"{item['condition']} {item['n_right']}/{item['n_ratings']}"
                for item in result["items"].values()
                if item["template_id"] == name and item["status"] == "failed"
            ]
            console.print(f"  {name}: {', '.join(failed)}", highlight=False)


def print_pairs(result: Mapping[str, Any], console: Console | None = None) -> None:
    """Print what `score_pairs` returns: agreement, annotators, and how many pairs are to be talked over."""
    console = console or Console()
    console.print(
        f"pairs: {result['n_rated']} of {result['n_pairs']} rated, {result['n_shared']} of them by two or more; "
        f"Krippendorff's alpha {_number(result['alpha'])} (of the paper: {PUBLISHED_ALPHA}), the same label "
        f"{_number(result['agreement'])}",
        highlight=False,
        soft_wrap=True,
    )
    for title, name in (("kind of hypothesis", "by_kind"), ("subtopic or category", "by_subtopic")):
        console.print(_accuracies(result["annotators"], title, name))
    console.print(
        f"{len(result['to_discuss'])} pairs have a label that is not the right one: talk them over, and change or drop "
        "those that stay in doubt (--output names them)",
        highlight=False,
        soft_wrap=True,
    )


def _accuracies(annotators: Mapping[str, Any], title: str, name: str) -> Table:
    """Accuracy against the key, a row for every group and a column for every annotator."""
    table = Table(title=f"Accuracy by {title} (pairs)", box=box.SIMPLE)
    table.add_column(title)
    for annotator in annotators:
        table.add_column(annotator, justify="right")
    groups = sorted({group for of in annotators.values() for group in of[name]})
    for group in groups:
        table.add_row(group, *(_cell(of[name].get(group)) for of in annotators.values()))
    table.add_row("all", *(_cell(of) for of in annotators.values()))
    return table


def _cell(of: Mapping[str, Any] | None) -> str:
    return "-" if of is None else f"{_number(of['accuracy'])} ({of['n']})"


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
    for name, of in result["annotators"].items():
        table.add_row(
            name,
            str(of["n"]),
            _number(of["accuracy"]),
            str(of["n_fillers"]),
            _number(of["filler_accuracy"]),
            words[of["careful"]],
        )
    return table


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"
