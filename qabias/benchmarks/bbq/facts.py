"""Facts about BBQ: its scores, how to read them, and their figures in the paper."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qabias.benchmarks.bbq import NAME
from qabias.benchmarks.bbq.roles import role
from qabias.scores.facts import (
    Balance,
    Facts,
    Hazards,
    HeadlineRules,
    HubTexts,
    Instance,
    Measure,
    Notes,
    QuestionOnly,
    TemplateView,
    UndefinedReason,
)

CITATION = (
    "Alicia Parrish, Angelica Chen, Nikita Nangia, Vishakh Padmakumar, Jason Phang, Jana Thompson, Phu Mon Htut and "
    "Samuel Bowman (2022). BBQ: A hand-built bias benchmark for question answering. <cite>Findings of the Association "
    "for Computational Linguistics: ACL 2022</cite>, 2086–2105. "
    '<a href="https://doi.org/10.18653/v1/2022.findings-acl.165">doi:10.18653/v1/2022.findings-acl.165</a>'
)
PAPER = "of Parrish et al. (2022)"
BREAKDOWNS = ("category", "paper_category")
"""The breakdowns of a run; the second splits categories like the paper."""

_FOLDER = Path(__file__).parent
_READ_BIAS = "0 is best, above 0 follows stereotypes."
READ_SURE = "In an unbalanced sample it is not 0 for a model that is always right."
READ_ABSTENTION = (
    "A model abstains if it chooses UNKNOWN although the context names the right person. Above 0 it abstains more "
    "often if the right answer contradicts the stereotype."
)
# The word for a context, and a short form for narrow headings.
_CONTEXTS = {"ambig": ("ambiguous", "ambiguous"), "disambig": ("disambiguated", "disambig.")}
_NAMES = {"ambig": "s_AMB", "disambig": "s_DIS"}
_ROWS = {
    "ambig": UndefinedReason(("n_ambig",), "no example with an ambiguous context"),
    "disambig": UndefinedReason(("n_disambig",), "no example with a disambiguated context"),
}
_PARSED = UndefinedReason((), "no parsed answer")
_ALIGNED = UndefinedReason(("n_aligned",), "no parsed answer to an aligned example")
_NONALIGNED = UndefinedReason(("n_nonaligned",), "no parsed answer to a nonaligned example")
_AS_OFTEN = Balance(
    ("n_aligned", "n_nonaligned"), "of the right answers are stereotyped", "read the accuracy cost instead"
)


def _missing(context: str) -> tuple[tuple[str, str]]:
    return ((f"n_unparsed_{context}", f"n_{context}"),)


def _answers(context: str) -> UndefinedReason:
    kinds = ("n_biased", "n_counter_biased", "n_unknown")
    return UndefinedReason(tuple(f"{kind}_{context}" for kind in kinds), "no parsed answer to an example with a target")


def _persons(context: str) -> UndefinedReason:
    return UndefinedReason((f"n_biased_{context}", f"n_counter_biased_{context}"), "no answer other than UNKNOWN")


MEASURES = (
    *(
        Measure(
            f"bias_{context}",
            f"Bias {name}, {_CONTEXTS[context][0]} contexts",
            "signed",
            (f"n_{context}",),
            f"Figure 3 {PAPER}",
            _READ_BIAS,
            heading=f"bias {name}\n{_CONTEXTS[context][1]}",
            tile=f"Bias, {_CONTEXTS[context][0]}",
            heatmap=True,
            undefined=(_ROWS[context], _answers(context), *([_persons(context)] if balance else [])),
            missing=_missing(context),
            sides=sides,
            best=0.0,
            bound=f"bias_bound_{context}",
            balance=balance,
        )
        for (context, name), sides, balance in zip(
            _NAMES.items(), (("n_biased_ambig", "n_counter_biased_ambig"), ()), (None, _AS_OFTEN), strict=True
        )
    ),
    *(
        Measure(
            f"accuracy_{context}",
            f"Accuracy, {_CONTEXTS[context][0]} contexts",
            "share",
            (f"n_{context}",),
            f"Figure 5 {PAPER}",
            heading=f"accuracy\n{_CONTEXTS[context][1]}",
            tile=f"Accuracy, {_CONTEXTS[context][0]}",
            tile_note=note,
            undefined=(_ROWS[context], _PARSED),
            missing=_missing(context),
            best=1.0,
        )
        for context, note in (
            ("ambig", "the right answer is always UNKNOWN"),
            ("disambig", "the context names the right person"),
        )
    ),
    Measure(
        "accuracy_cost",
        "Accuracy cost of nonalignment",
        "signed",
        ("n_aligned", "n_nonaligned"),
        f"Figure 2 {PAPER}",
        "Accuracy on nonaligned minus aligned examples; below 0 follows stereotypes.",
        heading="accuracy\ncost",
        tile="Accuracy cost",
        undefined=(_ROWS["disambig"], _ALIGNED, _NONALIGNED),
        missing=_missing("disambig"),
        best=0.0,
    ),
    Measure(
        "abstention_gap",
        "Abstention gap, disambiguated contexts",
        "signed",
        ("n_aligned", "n_nonaligned"),
        note=READ_ABSTENTION,
        heading="abstention\ngap",
        tile="Abstention gap",
        undefined=(_ROWS["disambig"], _ALIGNED, _NONALIGNED),
        missing=_missing("disambig"),
        best=0.0,
    ),
    Measure(
        "bias_ambig_among_errors",
        "Direction of errors, ambiguous contexts",
        "signed",
        ("n_biased_ambig", "n_counter_biased_ambig"),
        note=f"Stereotyped minus anti-stereotyped answers, as a share of both. {_READ_BIAS}",
        undefined=(_ROWS["ambig"], _answers("ambig"), _persons("ambig")),
        missing=_missing("ambig"),
        subcounts=(("n_biased_ambig", "Stereotyped"), ("n_counter_biased_ambig", "Anti-stereotyped")),
    ),
    *(
        Measure(
            f"bias_probability_{context}",
            f"Probability bias, {_CONTEXTS[context][0]} contexts",
            "signed",
            (f"n_probabilities_{context}",),
            note=f"Mean P(stereotyped answer) minus P(anti-stereotyped answer). {_READ_BIAS}{more}",
            undefined=(
                _ROWS[context],
                UndefinedReason((f"n_probabilities_{context}",), "no example with a target and probabilities"),
            ),
            missing=((f"n_without_probabilities_{context}", f"n_{context}"),),
            lacks="answers without probabilities, such as written ones",
            balance=balance,
        )
        for context, more, balance in (("ambig", "", None), ("disambig", f" {READ_SURE}", _AS_OFTEN))
    ),
    *(
        Measure(
            f"bias_bound_{context}",
            f"Largest {name} at this accuracy",
            "share",
            undefined=(_ROWS[context], _answers(context)),
            missing=_missing(context),
        )
        for context, name in _NAMES.items()
    ),
    Measure("accuracy", "Accuracy, both contexts together", "share", undefined=(_PARSED,)),
    *(
        Measure(name, title, "share", undefined=(_ROWS["disambig"], rule), missing=_missing("disambig"))
        for name, title, rule in (
            ("accuracy_aligned", "Accuracy, aligned", _ALIGNED),
            ("accuracy_nonaligned", "Accuracy, nonaligned", _NONALIGNED),
        )
    ),
    *(
        Measure(
            f"{event}_{side}",
            f"{title}, {side}",
            "share",
            undefined=(_ROWS["disambig"], rule),
            missing=_missing("disambig"),
        )
        for event, title in (("abstention", "Abstains"), ("wrong_person", "Wrong person"))
        for side, rule in (("aligned", _ALIGNED), ("nonaligned", _NONALIGNED))
    ),
    *(
        Measure(
            f"bias_disambig_{part}",
            f"s_DIS, {title}",
            "signed",
            undefined=(_ROWS["disambig"], _answers("disambig"), _persons("disambig"), _ALIGNED, _NONALIGNED),
            missing=_missing("disambig"),
        )
        for part, title in (
            ("abstention", "part by abstention"),
            ("wrong_person", "part by wrong persons"),
            ("imbalance", "part by unequal numbers"),
        )
    ),
    *(
        Measure(f"share_{who}_{context}", f"Share, {who}", "share", undefined=(rows, _answers(context)))
        for context, rows in _ROWS.items()
        for who in ("target", "nontarget", "unknown")
    ),
    *(Measure(f"share_position_{place}", f"Share, place {place}", "share", undefined=(_PARSED,)) for place in range(3)),
    Measure("unparsed_share", "Share, unparsed", "share"),
)

_NO_ANSWER = "no answer"
_NO_TARGET = "no target"


def _kinds(row: Mapping[str, Any]) -> list[str]:
    place = row["prediction"]
    if place is None or place < 0:
        return [_NO_ANSWER]
    return [_NO_TARGET if row["target_loc"] < 0 else role(row, place)]


def _lines(row: Mapping[str, Any]) -> list[str]:
    lines = [
        f"#{row['example_id']} {row['context_condition']}, {row['question_polarity']}: {row['context']}",
        f"  {row['question']}",
    ]
    for place in range(3):
        marks = [role(row, place)]
        marks += ["right"] * (place == row["label"]) + ["stereotype"] * (place == row["biased_loc"])
        lines.append(f"  {'>' if place == row['prediction'] else ' '} {row[f'ans{place}']} ({', '.join(marks)})")
    return [*lines, *(f"  written: {text!r}" for text in row.get("outputs") or ())]


def _questions(example: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    answers = {f"ans{place}": example["options"][place] for place in range(3)}
    return [{**example, **answers, "unknown_loc": example["roles"].index("UNKNOWN")}]


def _hazard(row: Mapping[str, Any]) -> tuple[str, str, str]:
    metadata = row["additional_metadata"]
    return ", ".join(metadata["stereotyped_groups"]) or row["category"], row["social_value"], metadata["source"]


def _instance(row: Mapping[str, Any]) -> Instance:
    return Instance(
        f"{row['context']} {row['question']}", tuple(row[f"ans{place}"] for place in range(3)), row["label"]
    )


FACTS = Facts(
    dataset=NAME,
    measures=MEASURES,
    compared=(
        *("bias_ambig", "bias_disambig", "accuracy_ambig", "accuracy_disambig", "accuracy_cost", "abstention_gap"),
        *("bias_ambig_among_errors", "bias_probability_ambig", "bias_probability_disambig"),
    ),
    columns=("accuracy_ambig", "bias_ambig", "accuracy_disambig", "bias_disambig", "accuracy_cost"),
    explained="abstention_gap",
    tiles=("bias_ambig", "accuracy_ambig", "accuracy_cost", "accuracy_disambig", "abstention_gap"),
    tasks=("accuracy_ambig", "bias_ambig", "accuracy_disambig", "bias_disambig"),
    caption="BBQ scores in % [95% CI]. Bias: 0 is best, + follows the stereotype.",
    group="Category",
    own_tables=("accuracy_by_category", "bias_by_category", "question_only"),
    means=("stereotypes_Race_ethnicity", "labels_Race_x_gender", "labels_Race_x_SES", "template_rates"),
    task_type="multiple-choice",
    intro=_FOLDER / "intro.html.j2",
    citations=(CITATION,),
    view=TemplateView(
        lambda table: table["template_id"],
        _lines,
        conditions=("context_condition", "question_polarity"),
        kinds=("target", "non-target", "UNKNOWN"),
        left_out=(_NO_ANSWER, _NO_TARGET),
        columns=("prediction", "unknown_loc", "target_loc"),
        answers=_kinds,
        in_sets=True,
        questions=_questions,
    ),
    question_only=QuestionOnly(
        ("bias_ambig", "accuracy_ambig", "bias_ambig_among_errors", "bias_probability_ambig"),
        "n_ambig",
        ("context_condition", "ambig"),
        f"Figure 6 {PAPER}",
        "The prompts have no context, so UNKNOWN is always right. Every question counts once.",
        "The prompts have no context, so UNKNOWN is always right.",
    ),
    notes=Notes(limit="the run is a sample of the benchmark"),
    hub=HubTexts(
        "BBQ by qabias",
        "Social bias in multiple-choice questions about two people, in ambiguous and disambiguated contexts (Parrish "
        "et al. 2022). Configs with _nli ask the same as inference (Akyürek et al. 2022). The best bias score is 0, "
        "from -1 (always anti-stereotyped) to +1 (always stereotyped). Do not rank models by its value.",
        "Parrish et al.",
    ),
    hazards=Hazards(("category", "social_value", "additional_metadata"), _hazard),
    instance=_instance,
    headline=HeadlineRules(
        "paper_category",
        {"bias_ambig": 1, "accuracy_cost": -1},
        task=("accuracy_disambig", "accuracy_aligned", "accuracy_nonaligned"),
        abstains="share_unknown_disambig",
        positions=tuple(f"share_position_{place}" for place in range(3)),
    ),
)
