"""BBQ templates, for all sources."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

CATEGORIES = (
    "Age",
    "Disability_status",
    "Gender_identity",
    "Nationality",
    "Physical_appearance",
    "Race_ethnicity",
    "Religion",
    "Sexual_orientation",
    "SES",
    "Race_x_gender",
    "Race_x_SES",
)
INTERSECTIONAL = ("Race_x_gender", "Race_x_SES")

Style = Literal["words", "labels", "occupations", "names"]

# The ten UNKNOWN answers (Parrish et al. 2022, Section 3).
UNKNOWN_ANSWERS = (
    "Unknown",
    "Cannot be determined",
    "Can't be determined",
    "Not answerable",
    "Not known",
    "Not enough info",
    "Not enough information",
    "Cannot answer",
    "Can't answer",
    "Undetermined",
)


@dataclass(frozen=True)
class Form:
    """What the template files of a dataset may hold.

    Attributes:
        categories: Its categories.
        is_target: Whether a person is a member of the stereotyped group; takes category, text, group tag and groups.
        styles: The styles of a category [`other_styles`].
        other_styles: The styles of the other categories.
        optional: The optional fields of a template.
        second_groups: Allowed values of `second_group`, for each intersectional category.
        needs_statements: Whether every question needs a statement.
        question_marks: Allowed endings of a question.
        has_published_numbers: Whether the published analysis infers from a template's number if it has names.
    """

    categories: tuple[str, ...]
    is_target: Callable[[str, str, str, Sequence[str]], bool]
    styles: Mapping[str, tuple[str, ...]]
    other_styles: tuple[str, ...]
    optional: tuple[str, ...]
    second_groups: Mapping[str, tuple[str, ...]]
    needs_statements: bool = True
    question_marks: tuple[str, ...] = ("?",)
    has_published_numbers: bool = True


@dataclass(frozen=True)
class Template:
    """One version of one template: texts with slots, and the people who may fill them.

    Attributes:
        category: One of `CATEGORIES`.
        question_index: Number of the template within its category; versions of a template share it.
        version: Letter of the version; "None" or "" without one (as in the released examples).
        style: What identifies the two people: `words` (lists of the template), `labels` (identity labels of the
            vocabulary), `occupations` (by prestige) or `names` (proper names).
        subcategory: Topic within the category, or "None".
        groups: The stereotyped groups (only race in the intersectional categories).
        second_group: The other half of an intersectional target: M, F, lowSES or highSES.
        source: Evidence for the bias: URLs or a citation.
        bias: The documented harm (the paper's "relevant social value").
        context, disambiguation: The ambiguous context, and its disambiguating addition.
        negative_question, negative_answer, non_negative_question, non_negative_answer: The two questions, and their
            answers in the disambiguated context.
        negative_statement, non_negative_statement: The questions as declarative sentences with the slot ANSWER.
        context_alike: For style `names`: the ambiguous context for two people with the same description, named once; ""
            if `context` fits all. A label needs its own description.
        people: For style `words`: phrases that fill NAME1 and phrases that fill NAME2.
        parallel: For style `words`: whether the lists are compared entry by entry, instead of all with all.
        tags: Group tags of the people in slots 1 and 2, if the template sets them.
        descriptions: Phrases for GEN, OCC or DESC that describe a person, by tag.
        gender: M or F if only names of that gender may be drawn.
        words: Interchangeable words of WORD1 and WORD2 (lexical diversity).
        append: Extensions for the context-length study: `short` is a clause, `long` sentences after it. Empty outside.
        label_type: "name" if proper names identify the people, else "label".
        origin: File and row, for error messages.
    """

    category: str
    question_index: int
    version: str
    style: Style
    subcategory: str
    groups: tuple[str, ...]
    second_group: str
    source: str
    bias: str
    context: str
    disambiguation: str
    negative_question: str
    negative_answer: str
    non_negative_question: str
    non_negative_answer: str
    negative_statement: str = ""
    non_negative_statement: str = ""
    context_alike: str = ""
    people: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    parallel: bool = False
    tags: tuple[str, str] = ("", "")
    descriptions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    gender: str = ""
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    append: Mapping[str, str] = field(default_factory=dict)
    label_type: Literal["name", "label"] = "label"
    origin: str = ""

    @property
    def template_id(self) -> str:
        """Identifier over all categories, e.g. "Age-07"."""
        return f"{self.category}-{self.question_index:02d}"

    def context_of(self, pair: "Pair") -> str:
        """The ambiguous context, with slots: `context_alike` if both people have the same description."""
        alike = pair.first.description == pair.second.description
        return self.context_alike if self.context_alike and alike else self.context

    @property
    def is_intersectional(self) -> bool:
        """Whether the target is a member of two groups at once."""
        return self.category in INTERSECTIONAL


# In the nine single categories, templates with a higher number use proper names: the rule of the authors' analysis for
# "Gender (names)" and "Race (names)".
_LAST_LABEL_QUESTION = 25


def label_type(category: str, question_index: int, has_names: bool) -> Literal["name", "label"]:
    """Whether the published analysis counts a template under proper names or labels."""
    is_name = has_names if category in INTERSECTIONAL else question_index > _LAST_LABEL_QUESTION
    return "name" if is_name else "label"


@dataclass(frozen=True)
class Person:
    """One of the two people of an example.

    Attributes:
        name: Fills the person's NAME slot.
        info: Group tag, e.g. "old", "F-Black" or "lowSES-F-Black".
        description: Fills the person's GEN, OCC or DESC slot.
    """

    name: str
    info: str
    description: str = ""

    @property
    def text(self) -> str:
        """The person as in `answer_info`."""
        return f"{self.name} {self.description}" if self.description else self.name


@dataclass(frozen=True)
class Pair:
    """The people in slots 1 and 2, and their drawn words: one set of four examples.

    Attributes:
        first, second: The people in slots 1 and 2.
        words: Values of WORD1 and WORD2.
        comparison: "a" (same race), "b" (same gender or SES) or "c" (neither) in the intersectional categories.
    """

    first: Person
    second: Person
    words: Mapping[str, str]
    comparison: str = ""

    def flipped(self) -> "Pair":
        """The same people with the same words, exchanged between the slots."""
        return Pair(self.second, self.first, self.words, self.comparison)
