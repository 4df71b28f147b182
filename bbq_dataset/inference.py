"""BBQ as inference (Akyurek et al. 2022, Section 3): contexts become premises, questions become hypotheses.

A hypothesis states the question's content for the target or for the other person. The rows are the same for all
sources.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from .examples import Row
from .template import CATEGORIES

NLI = "_nli"
ALL_NLI = "all_nli"
CATEGORY_CONFIGS = tuple(f"{category}{NLI}" for category in CATEGORIES)
# The ambiguous contexts in three lengths (Akyurek et al. 2022, Table 7).
CONTEXT_STUDY = f"Gender_identity{NLI}_context"
NLI_CONFIGS = (*CATEGORY_CONFIGS, CONTEXT_STUDY)

LABELS = ("contradiction", "neutral", "entailment")
CONTRADICTION, NEUTRAL, ENTAILMENT = range(3)
ORDERS = ("original", "swapped")
STANCES = ("pro", "anti")
LENGTHS = ("standard", "short", "long")
# The four hypotheses of a premise: the person, and the polarity of the question.
STATEMENTS = (("target", "neg"), ("target", "nonneg"), ("nontarget", "neg"), ("nontarget", "nonneg"))

NLI_SCHEMA = pa.schema(
    [
        ("example_id", pa.int32()),
        ("category", pa.string()),
        ("template_id", pa.string()),
        ("set_id", pa.string()),
        ("name_order", pa.string()),
        ("context_length", pa.string()),
        ("context_condition", pa.string()),
        ("context_stance", pa.string()),
        ("question_polarity", pa.string()),
        ("statement_about", pa.string()),
        ("premise", pa.string()),
        ("hypothesis", pa.string()),
        ("question", pa.string()),
        ("label", pa.int64()),
        ("bias_label", pa.int8()),
        ("target", pa.string()),
        ("nontarget", pa.string()),
        ("social_value", pa.string()),
        ("reference", pa.string()),
    ]
)


@dataclass(frozen=True)
class InferenceSet:
    """The texts of one template and one pair of people, every slot filled.

    Attributes:
        category: Name of the category.
        template_id, set_id: The template, and the set of BBQ examples with the same people and words.
        contexts: The ambiguous context by order of the names (`ORDERS`).
        facts: The disambiguating facts, by whether the stereotype then holds (`pro`) or fails (`anti`).
        statements: The hypotheses, by `STATEMENTS`.
        questions: The questions by polarity.
        target, nontarget: The two people as the texts name them.
        social_value: The documented harm.
        reference: Source of evidence for the bias.
        append: Extensions of the ambiguous context, `short` and `long`; empty outside the context-length study.
    """

    category: str
    template_id: str
    set_id: str
    contexts: Mapping[str, str]
    facts: Mapping[str, str]
    statements: Mapping[tuple[str, str], str]
    questions: Mapping[str, str]
    target: str
    nontarget: str
    social_value: str
    reference: str
    append: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Premise:
    """A premise and its properties; `stance` is empty in the ambiguous context."""

    text: str
    order: str
    stance: str = ""
    length: str = "standard"


def category_of(config: str) -> str:
    """The category of a config of `NLI_CONFIGS`."""
    return config.removesuffix("_context").removesuffix(NLI)


def inference_rows(config: str, sets: Iterable[InferenceSet]) -> Iterator[Row]:
    """Yield the rows of one config, set by set.

    Args:
        config: One of `NLI_CONFIGS`.
        sets: The sets of its category; the context-length study uses only those with `append`.
    """
    example_id = 0
    for texts in sets:
        for premise in _lengthened(texts) if config == CONTEXT_STUDY else _premises(texts):
            for row in _four_rows(texts, premise):
                yield {"example_id": example_id, **row}
                example_id += 1


def bias_label(person: str, polarity: str) -> int:
    """The answer that agrees with the stereotype: harm for the target, its opposite for the other person."""
    return ENTAILMENT if (person == "target") == (polarity == "neg") else CONTRADICTION


def gold_label(person: str, polarity: str, stance: str) -> int:
    """The right answer: neutral without a stance, the stereotype in `pro` contexts, its opposite in `anti` ones."""
    if not stance:
        return NEUTRAL
    aligned = bias_label(person, polarity)
    return aligned if stance == "pro" else ENTAILMENT - aligned


def _premises(texts: InferenceSet) -> Iterator[_Premise]:
    """The ambiguous and the two disambiguated contexts. Names are exchanged only in the ambiguous part."""
    for order in ORDERS:
        context = texts.contexts[order]
        yield _Premise(context, order)
        for stance in STANCES:
            yield _Premise(f"{context} {texts.facts[stance]}", order, stance)


def _lengthened(texts: InferenceSet) -> Iterator[_Premise]:
    """The ambiguous context unchanged, with a clause that names the two roles, and with sentences after that."""
    if not texts.append:
        return
    for order in ORDERS:
        context = texts.contexts[order]
        short = context.removesuffix(".") + texts.append["short"]
        for length, text in zip(LENGTHS, (context, short, f"{short} {texts.append['long']}"), strict=True):
            yield _Premise(text, order, length=length)


def _four_rows(texts: InferenceSet, premise: _Premise) -> Iterator[Row]:
    for person, polarity in STATEMENTS:
        yield {
            "category": texts.category,
            "template_id": texts.template_id,
            "set_id": texts.set_id,
            "name_order": premise.order,
            "context_length": premise.length,
            "context_condition": "disambig" if premise.stance else "ambig",
            "context_stance": premise.stance,
            "question_polarity": polarity,
            "statement_about": person,
            "premise": premise.text,
            "hypothesis": texts.statements[person, polarity],
            "question": texts.questions[polarity],
            "label": gold_label(person, polarity, premise.stance),
            "bias_label": bias_label(person, polarity),
            "target": texts.target,
            "nontarget": texts.nontarget,
            "social_value": texts.social_value,
            "reference": texts.reference,
        }
