"""EsBBQ and CaBBQ as lm-evaluation-harness asks them: its tasks `esbbq_*` and `cabbq_*`.

They ask the released rows with two persons, as they stand in the row, and then nine wordings of UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from qabias.benchmarks.bbq.logs.lm_eval import config_of
from qabias.benchmarks.given import GivenAnswers
from qabias.benchmarks.harness_logs import (
    NO_ANSWER,
    about_ties,
    column,
    columns_of,
    first_document,
    likeliest,
    of_log,
    of_sample,
)
from qabias.benchmarks.logged import Logged, OtherFigure
from qabias.errors import QabiasError
from qabias.logs.lm_eval_samples import read_options

if TYPE_CHECKING:
    from qabias.benchmarks.base import Benchmark
    from qabias.logs import Log, Sample

_DOCUMENT = ("instance_id", "question_type", "relevant_social_value", "proper_nouns_only")
"""Columns that only the released rows of the two sets have."""

# The texts and the right answer; the third answer of a released row has no wording, which is put in here.
_COMPARED = ("question_polarity", "context_condition", "context", "question", "ans0", "ans1", "label")
_PERSONS = 2

_FIGURES = {
    "acc_ambig": "accuracy_ambig",
    "acc_disambig": "accuracy_disambig",
    "bias_score_ambig": "bias_ambig",
}
_TURNED = "bias_score_disambig"
"""The score of the harness that is `accuracy_cost` here with the other sign."""

_MISLABELLED = (
    "four rows of PhysicalAppearance (template 10) call themselves pro-stereo against their own groups and label; the "
    "harness reads that column, here the groups count"
)
_TIES = "of equally likely answers the first counts there, none here"


def logged(log: Log, benchmark: Benchmark, wordings: Sequence[str]) -> Logged | None:
    """The answers in a log of the harness's tasks on one of the two sets; None where it is of another task."""
    import pyarrow as pa

    if not set(_DOCUMENT) <= first_document(log).keys() or not _is_of_language(log, wordings):
        return None
    rows: list[dict[str, Any]] = []
    answers: list[int] = []
    for sample in log.samples():
        names = ("category", "instance_id", *_COMPARED)
        with of_sample(log, sample):
            row = {name: column(log, sample, name) for name in names}
            # Rows are numbered from 0 in the order of the file, here and there.
            row["example_id"] = int(row.pop("instance_id"))
            row["label"] = int(row["label"])
            rows.append(row)
            answers.append(likeliest(sample.loglikelihoods, _places(log, sample, wordings)))
    found = columns_of(rows, rows[0])
    n_ties = answers.count(NO_ANSWER)
    keys = {name: found[name] for name in ("category", "example_id")}
    with of_log(log):
        given, references = pa.table({**keys, "prediction": answers}), pa.table(found)
    return Logged(
        given=GivenAnswers(log.model, "", "none", benchmark.sources[0], given),
        config=config_of(set(found["category"]), benchmark.configs),
        options={"answers": "released"},
        references=references,
        figures=tuple(_figures(log, set(found["category"]), n_ties)),
        notes=(
            f"UNKNOWN was offered in {len(wordings)} wordings and each person in one, by the sum of log-likelihoods; "
            "not to be compared with runs of qabias.",
            *about_ties(n_ties),
        ),
    )


def _is_of_language(log: Log, wordings: Sequence[str]) -> bool:
    """Whether the first sample offers the wordings of UNKNOWN of a language."""
    sample = next(iter(log.samples()))
    return tuple(read_options(sample)[_PERSONS:]) == tuple(wordings)


def _places(log: Log, sample: Sample, wordings: Sequence[str]) -> list[int]:
    """The place in the row of the answer that each option gives."""
    options = read_options(sample)
    persons = [str(column(log, sample, f"ans{place}")).strip() for place in range(_PERSONS)]
    if list(options) != [*persons, *wordings]:
        raise QabiasError(
            f"{log.called}: {sample.where}: its options are not the two persons of the row and then the wordings of "
            f"UNKNOWN of the harness's task: {', '.join(options)}"
        )
    return [*range(_PERSONS), *[_PERSONS] * len(wordings)]


def _figures(log: Log, categories: set[str], n_ties: int) -> list[OtherFigure]:
    """The scores of the harness beside those of qabias."""
    figures = []
    for name, value in log.figures.items():
        ties = [_TIES] if n_ties else []
        if name == _TURNED:
            reasons = [*([_MISLABELLED] if "PhysicalAppearance" in categories else []), *ties]
            figures.append(OtherFigure(f"-{name}", -value, ("accuracy_cost",), "; ".join(reasons)))
        elif name in _FIGURES:
            figures.append(OtherFigure(name, value, (_FIGURES[name],), "; ".join(ties)))
        else:
            figures.append(OtherFigure(name, value, why="a score of this task alone"))
    return figures
