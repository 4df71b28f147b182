"""How much of a configuration the answers of a run cover, where others collected them and not for every example."""

import re

from qabias.runs.arguments import RunArguments

_COVERED = re.compile(r" (\d+) of (\d+)$")


def coverage_of(arguments: RunArguments) -> str:
    """How many of the examples have an answer, as a sentence; "" where all have, or a model was asked."""
    counts = _counts(arguments)
    if counts is None:
        return ""
    n, n_examples = counts
    share = f"{100 * n / n_examples:.1f}"
    return (
        f"{n:,} of {n_examples:,} examples of {arguments.config} have an answer: "
        f"{'less than 0.1' if share == '0.0' else share} %"
    )


def coverage_field(arguments: RunArguments) -> str:
    """The same for a signature: "8/3680", or ""."""
    counts = _counts(arguments)
    return "" if counts is None else "{}/{}".format(*counts)


def _counts(arguments: RunArguments) -> tuple[int, int] | None:
    """The examples that have an answer, and all; None where these are the same, or a model was asked."""
    found = _COVERED.search(arguments.answers)
    if found is None or found[1] == found[2]:
        return None
    return int(found[1]), int(found[2])
