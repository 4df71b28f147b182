"""What is compared: for every benchmark its scores, the examples that they are of, and the groups that have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from qabias.comparison.comparable import ScoredRun
from qabias.errors import QabiasError

Scores = Mapping[str, Any]

ALL = "All"
"""Name of the group of all examples."""

PARRISH, LI, AKYUREK = "Parrish et al. (2022)", "Li et al. (2020)", "Akyurek et al. (2022)"

_READ_BIAS = "0 is best: above 0 the answers agree with the stereotypes, below 0 they go against them."
_READ_QUESTION_ONLY = (
    "The models saw no context, so UNKNOWN is always right. Every question counts once, as the ambiguous example."
)
_ERROR = "0 is best."


class Measure(NamedTuple):
    """A score that is compared.

    Attributes:
        name: Its name in the metric's result.
        title: What people read above it.
        kind: Kind of its column, see `qabias.tables.model.Column`.
        counts: Names, in the metric's result, of the numbers of examples that it is of; their sum is meant.
        source: Where the papers show it.
        note: How to read it.
        breakdowns: Only the groups of these columns have it; by default all groups.
    """

    name: str
    title: str
    kind: str
    counts: tuple[str, ...]
    source: str
    note: str = ""
    breakdowns: tuple[str, ...] = ()


MEASURES: dict[str, tuple[Measure, ...]] = {
    "bbq": (
        Measure(
            "bias_ambig",
            "Bias s_AMB, ambiguous contexts",
            "signed",
            ("n_ambig",),
            f"Figure 3 of {PARRISH}",
            _READ_BIAS,
        ),
        Measure(
            "bias_disambig",
            "Bias s_DIS, disambiguated contexts",
            "signed",
            ("n_disambig",),
            f"Figure 3 of {PARRISH}",
            _READ_BIAS,
        ),
        Measure("accuracy_ambig", "Accuracy, ambiguous contexts", "share", ("n_ambig",), f"Figure 5 of {PARRISH}"),
        Measure(
            "accuracy_disambig", "Accuracy, disambiguated contexts", "share", ("n_disambig",), f"Figure 5 of {PARRISH}"
        ),
        Measure(
            "accuracy_cost",
            "Cost of non-alignment",
            "signed",
            ("n_aligned", "n_nonaligned"),
            f"Figure 2 of {PARRISH}",
            "Accuracy where the right answer goes against the stereotype, minus accuracy where it agrees.",
        ),
    ),
    "unqover": (
        Measure("mu", "Bias intensity mu", "number", ("n",), f"Figure 3 of {LI}", _ERROR),
        Measure("eta", "Bias consistency eta", "number", ("n",), f"Figure 6 of {LI}", _ERROR),
        Measure("delta", "Positional error delta", "number", ("n",), f"Table 5 of {LI}", _ERROR),
        Measure("epsilon", "Attribute error epsilon", "number", ("n",), f"Table 5 of {LI}", _ERROR),
        Measure(
            "avg_score",
            "Average score S",
            "number",
            ("n",),
            f"Table 5 of {LI}",
            "No score of bias: the scale of the rest.",
        ),
    ),
    "bbnli": (
        Measure("bias_score", "Bias score", "signed", ("n_bias",), f"Tables 3 and 8 of {AKYUREK}", _READ_BIAS),
        Measure(
            "bias_score_mean_subtopics",
            "Bias score, mean of subtopics",
            "signed",
            ("n_bias",),
            f"Table 3 of {AKYUREK}",
            f"Every subtopic of a domain counts once, however many answers it has. {_READ_BIAS}",
            ("domain",),
        ),
        Measure("accuracy_pro", "Accuracy, pro-stereotypical tests", "share", ("n_test_pro",), f"Table 6 of {AKYUREK}"),
        Measure(
            "accuracy_anti", "Accuracy, anti-stereotypical tests", "share", ("n_test_anti",), f"Table 6 of {AKYUREK}"
        ),
        Measure("accuracy_gap", "Accuracy, pro minus anti", "signed", ("n_test",), f"Table 6 of {AKYUREK}"),
    ),
    "bbq_nli": (
        Measure(
            "bias_score_ambig",
            "Bias, ambiguous contexts",
            "signed",
            ("n_ambig",),
            f"Table 4 of {AKYUREK}",
            _READ_BIAS,
        ),
        Measure("accuracy_ambig", "Accuracy, ambiguous contexts", "share", ("n_ambig",), ""),
        Measure("bias_score_disambig", "Bias, disambiguated contexts", "signed", ("n_disambig",), "", _READ_BIAS),
        Measure(
            "table5_style",
            "Bias, disambiguated contexts, as printed in Table 5",
            "number",
            ("n_disambig",),
            f"Table 5 of {AKYUREK}",
            "The bias scores of the contexts that agree with the stereotype and of those that disagree, added up: from "
            "-2 to 2, and 0 if every answer is right.",
        ),
        Measure(
            "accuracy_pro",
            "Accuracy, contexts that agree with the stereotype",
            "share",
            ("n_pro",),
            f"Table 5 of {AKYUREK}",
        ),
        Measure(
            "accuracy_anti",
            "Accuracy, contexts that disagree with it",
            "share",
            ("n_anti",),
            f"Table 5 of {AKYUREK}",
        ),
        Measure("accuracy_gap", "Accuracy, pro minus anti", "signed", ("n_disambig",), f"Table 5 of {AKYUREK}"),
    ),
}

_BREAKDOWNS = {"bbq": ("paper_category",), "bbnli": ("subtopic", "domain"), "bbq_nli": ("category",)}


def measures_of(benchmark: str, question_only: bool = False) -> tuple[Measure, ...]:
    """The scores that are compared.

    Args:
        benchmark: Name of the benchmark.
        question_only: Whether the models saw no context. Nobody can then know the answer, and only the scores of
            ambiguous contexts mean anything.
    """
    measures = MEASURES[benchmark]
    if not question_only:
        return measures
    return tuple(
        measure._replace(
            source=f"Figure 6 of {PARRISH}", note=" ".join(filter(None, (_READ_QUESTION_ONLY, measure.note)))
        )
        for measure in measures
        if measure.name.endswith("_ambig")
    )


def groups(benchmark: str, scores: Scores, measure: Measure | None = None) -> dict[str, Scores]:
    """The scores by group, named as `paired` names them; all together last, where they have common scores.

    Args:
        benchmark: Name of the benchmark.
        scores: The metric's result.
        measure: Only the groups that have this score.
    """
    if benchmark == "unqover":  # its sets have no common score
        return dict(scores["sets"])
    by = scores["by"]
    if benchmark != "bbq_nli":
        breakdowns = (measure and measure.breakdowns) or _BREAKDOWNS[benchmark]
        found = {name: of for breakdown in breakdowns for name, of in by[breakdown].items()}
    else:
        found = {
            value if column == "category" else f"{column}: {value}": of
            for column, values in by.items()
            for value, of in values.items()
        }
    return {**found, ALL: scores}


def union(lists: Sequence[Sequence[str]]) -> list[str]:
    """All names, in the order of their first occurrence, all together last."""
    names = dict.fromkeys(name for of_run in lists for name in of_run)
    return [name for name in names if name != ALL] + [ALL] * (ALL in names)


def check_scores(run: ScoredRun) -> None:
    """Refuse scores that lack some of what is compared.

    Raises:
        QabiasError: If they do: another version has made them.
    """
    lacking = _lacking(run.benchmark, run.scores)
    if lacking:
        raise QabiasError(
            f"{run.folder / 'scores.json'}: made by another version of qabias, without {', '.join(lacking)}; score "
            f"the run again with `qabias score {run.folder}`"
        )


def _lacking(benchmark: str, scores: Scores) -> list[str]:
    if benchmark == "unqover":
        outer = [] if "sets" in scores else ["sets"]
    else:
        outer = [f"by.{name}" for name in _BREAKDOWNS[benchmark] if name not in scores.get("by", {})]
    if outer:
        return outer
    needed = [name for measure in MEASURES[benchmark] for name in (measure.name, *measure.counts)]
    if benchmark == "unqover":
        needed.append("rank")
    found = groups(benchmark, scores).values()
    return [name for name in dict.fromkeys(needed) if any(name not in of for of in found)]
