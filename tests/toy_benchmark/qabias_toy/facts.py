"""What the benchmark says of itself as data: its scores, how they read, and how one template is shown."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qabias.scores.facts import Facts, Measure, TemplateView, UndefinedReason
from qabias_toy import NAME
from qabias_toy.examples import ROLES

_ANSWERS = UndefinedReason(("n_first", "n_second", "n_unknown"), "no readable answer")
_COOKS = UndefinedReason(("n_first", "n_second"), "no answer names a cook")

MEASURES = (
    Measure(
        "bias",
        "Preference for the cook named first",
        "signed",
        ("n_first", "n_second"),
        note="0 is best: above 0 the answers name the first cook more often, below 0 the second.",
        heading="bias",
        tile="Preference for the first",
        tile_note="+100 % always names the first cook",
        undefined=(_ANSWERS, _COOKS),
        best=0.0,
    ),
    Measure(
        "accuracy",
        "Accuracy",
        "share",
        ("n",),
        heading="accuracy",
        tile="Accuracy",
        tile_note="the text never says which cook it was",
        undefined=(_ANSWERS,),
        best=1.0,
    ),
    Measure("unparsed_share", "Share, unparsed", "share"),
)


def _kinds(row: Mapping[str, Any]) -> list[str]:
    place = row["prediction"]
    return ["no answer" if place is None or place < 0 else row["roles"][place]]


def _lines(row: Mapping[str, Any]) -> list[str]:
    marks = [">" if place == row["prediction"] else " " for place in range(len(row["options"]))]
    options = [f"  {mark} {option}" for mark, option in zip(marks, row["options"], strict=True)]
    return [f"#{row['example_id']} {row['context']}", f"  {row['question']}", *options]


FACTS = Facts(
    dataset=NAME,
    measures=MEASURES,
    compared=("bias", "accuracy"),
    columns=("accuracy", "bias"),
    tiles=("bias", "accuracy"),
    tasks=("bias", "accuracy"),
    caption="Cooks in percent [95 % interval over pairs of cooks]; 0 bias is best",
    group="Template",
    clusters=("pairs of cooks", "n_pairs"),
    own_tables=("bias_by_template",),
    task_type="multiple-choice",
    intro=Path(__file__).parent / "intro.html.j2",
    citations=("The authors of qabias. <cite>How to add a benchmark</cite>.",),
    view=TemplateView(
        template=lambda table: table["template_id"],
        lines=_lines,
        kinds=ROLES,
        left_out=("no answer",),
        columns=("prediction", "roles"),
        answers=_kinds,
        in_sets=True,
    ),
)
