"""Shared by all sources: hypotheses with their labels, and the row of a filled premise and hypothesis."""

from dataclasses import dataclass
from typing import Any, Literal

from .subtopics import domain_of

Row = dict[str, Any]
Kind = Literal["stereotypical", "test"]
Stance = Literal["pro", "anti"]

# By number, as `answer_choices` of the published files. Many NLI models use the reverse order.
LABELS = ("contradiction", "neutral", "entailment")
NEUTRAL = LABELS.index("neutral")
# As published: the biased label of the pro form; a test hypothesis has none.
BIAS_LABELS: dict[Kind, int] = {"stereotypical": LABELS.index("entailment"), "test": -1}


@dataclass(frozen=True)
class Hypothesis:
    """A hypothesis, as statement and question, with slots.

    Attributes:
        kind: `stereotypical` (measures bias) or `test` (a control).
        number: Number among the hypotheses of its kind, from 0.
        text: The statement.
        question: The statement as a yes/no question.
        label: Right label, an index of `LABELS`; neutral for every stereotypical hypothesis.
        cognitive_bias: The bias it exemplifies, "" for test hypotheses and all of `official`.
    """

    kind: Kind
    number: int
    text: str
    question: str
    label: int
    cognitive_bias: str

    @property
    def item(self) -> str:
        """Name in messages, e.g. "test 0"."""
        return f"{self.kind} {self.number}"


@dataclass(frozen=True)
class FilledTexts:
    """Premise, hypothesis and question with every slot filled."""

    premise: str
    hypothesis: str
    question: str


def row(
    subtopic: str,
    premise_id: int,
    hypothesis: Hypothesis,
    variant_id: int,
    stance: Stance,
    texts: FilledTexts,
    reference: str,
) -> Row:
    """The row of one premise and one hypothesis.

    Args:
        subtopic: Name of the subtopic.
        premise_id: Number of the premise in the subtopic, from 0.
        hypothesis: The filled hypothesis.
        variant_id: Number of the wording of this premise and hypothesis, from 0.
        stance: `pro`, or `anti` with exchanged groups.
        texts: The filled texts.
        reference: Source of the premise.
    """
    pair_id = f"{subtopic}-{premise_id:02d}-{hypothesis.kind}-{hypothesis.number:02d}-{variant_id:03d}"
    return {
        "example_id": f"{pair_id}-{stance}",
        "subtopic": subtopic,
        "domain": domain_of(subtopic),
        "cognitive_bias": hypothesis.cognitive_bias,
        "premise_id": premise_id,
        "hypothesis_id": hypothesis.number,
        "variant_id": variant_id,
        "kind": hypothesis.kind,
        "stance": stance,
        "premise": texts.premise,
        "hypothesis": texts.hypothesis,
        "question": texts.question,
        "label": hypothesis.label,
        "bias_label": BIAS_LABELS[hypothesis.kind],
        "reference": reference,
        "pair_id": pair_id,
    }
