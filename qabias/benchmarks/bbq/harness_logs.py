"""BBQ in lm-evaluation-harness: its own tasks `bbq`, `bbq_generate` and their halves, and qabias's tasks."""

from qabias.benchmarks.bbq.published import SOURCE
from qabias.benchmarks.harness_logs import HarnessTask, OwnTask

_TEXTS = ("question_polarity", "context_condition", "context", "question", "ans0", "ans1", "ans2", "label")
_BY_RACE = {"Race_x_gender", "Race_x_SES"}


def _why(name: str, value: float, categories: set[str], written: bool) -> list[str]:
    reasons = []
    if "bias" in name and value == 0:
        reasons.append("0 there also means always anti-stereotyped (-1 here), or only UNKNOWN (undefined here)")
    if "bias" in name and categories & _BY_RACE:
        reasons.append(
            "in intersectional categories the target there is set by race only, so it may be both persons or neither"
        )
    if written:
        reasons.append(
            "the harness compares whole texts with single words and counts the rest as UNKNOWN, qabias parses the texts"
        )
    return reasons


TASK = HarnessTask(
    document=("biased_answers", "ans0_groups"),
    columns={name: name for name in ("category", "example_id", *_TEXTS)},
    figures={
        "acc": "accuracy",
        "accuracy_amb": "accuracy_ambig",
        "accuracy_disamb": "accuracy_disambig",
        "amb_bias_score": "bias_ambig",
        "disamb_bias_score": "bias_disambig",
    },
    why=_why,
    source=SOURCE,
)

OWN_TASK = OwnTask(
    document=("category", "template_id", "set_id", "biased_loc", "unknown_loc"),
    columns=(*_TEXTS, "template_id", "set_id", "target_loc", "biased_loc", "unknown_loc"),
    set=("set_id", 4),
)
"""A qabias task on a benchmark of BBQ's form."""
