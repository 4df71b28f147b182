"""What a BBQ template is, whichever source it comes from."""

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

# The ten answers that say that the context does not tell (Parrish et al. 2022, Section 3).
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
        styles: The styles of a category; one that is not named has `other_styles`.
        other_styles: The styles of the other categories.
        optional: The optional fields of a template.
        second_groups: What `second_group` may be, for each intersectional category.
        needs_statements: Whether every question must be there as a statement too; else it may.
        question_marks: What a question may end with.
        has_published_numbers: Whether the published analysis tells by its number if a template has names.
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
    """One version of one template: texts with slots, and who may fill them.

    Attributes:
        category: One of `CATEGORIES`.
        question_index: Number of the template within its category; versions of a template share it.
        version: Letter of the version; "None" or "" where a template has none (as in the released examples).
        style: How the two people are told apart: `words` (lists of the template's own), `labels` (identity labels of
            the vocabulary), `occupations` (by prestige) or `names` (proper names).
        subcategory: Topic within the category, "None" without one.
        groups: The stereotyped groups (race alone in the intersectional categories).
        second_group: The other half of an intersectional target: M, F, lowSES or highSES.
        source: Where the bias is attested: URLs or a citation.
        bias: The documented harm (the paper's "relevant social value").
        context, disambiguation: The ambiguous context and what is added to disambiguate it.
        negative_question, negative_answer, non_negative_question, non_negative_answer: The two questions, and their
            answers in the disambiguated context.
        negative_statement, non_negative_statement: The questions as declarative sentences with the slot ANSWER.
        context_alike: For style `names`: the ambiguous context where both people have the same description, which it
            says once; "" where `context` is for all. A label needs its description beside it: both name the person.
        people: For style `words`: phrases that fill NAME1 and phrases that fill NAME2.
        parallel: For style `words`: whether the lists are compared entry by entry, instead of all with all.
        tags: Group tag of the person in slot 1 and in slot 2, where the template sets it.
        descriptions: Phrases that describe a person besides the name, by tag; they fill GEN, OCC or DESC.
        gender: M or F if only names of that gender may be drawn.
        words: Interchangeable words of WORD1 and WORD2 (lexical diversity).
        append: What lengthens the ambiguous context in the context-length study: `short` is a clause, `long` sentences
            after it. Empty for a template that is not in the study.
        label_type: "name" if people are told apart by proper names, else "label".
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
        """Identity of the template in all categories, e.g. "Age-07"."""
        return f"{self.category}-{self.question_index:02d}"

    def context_of(self, pair: "Pair") -> str:
        """The ambiguous context, with slots, for two people: `context_alike` where their descriptions are the same."""
        alike = pair.first.description == pair.second.description
        return self.context_alike if self.context_alike and alike else self.context

    @property
    def is_intersectional(self) -> bool:
        """Whether the target is a member of two groups at once."""
        return self.category in INTERSECTIONAL


# Templates with a higher number tell the people of the nine single categories apart by proper names: the rule by which
# the authors' analysis splits "Gender (names)" and "Race (names)" off.
_LAST_LABEL_QUESTION = 25


def label_type(category: str, question_index: int, has_names: bool) -> Literal["name", "label"]:
    """Whether the published analysis counts a template among those with proper names or those with labels."""
    is_name = has_names if category in INTERSECTIONAL else question_index > _LAST_LABEL_QUESTION
    return "name" if is_name else "label"


@dataclass(frozen=True)
class Person:
    """One of the two people of an example.

    Attributes:
        name: What fills the person's NAME slot.
        info: Group tag, e.g. "old", "F-Black" or "lowSES-F-Black".
        description: What fills the person's GEN, OCC or DESC slot.
    """

    name: str
    info: str
    description: str = ""

    @property
    def text(self) -> str:
        """The person as `answer_info` names them."""
        return f"{self.name} {self.description}" if self.description else self.name


@dataclass(frozen=True)
class Pair:
    """The people in slots 1 and 2, and the words drawn for them: one set of four examples.

    Attributes:
        first, second: The people in the slots with number 1 and 2.
        words: What fills WORD1 and WORD2.
        comparison: "a" (same race), "b" (same gender or SES) or "c" (neither) in the intersectional categories.
    """

    first: Person
    second: Person
    words: Mapping[str, str]
    comparison: str = ""

    def flipped(self) -> "Pair":
        """The same people with the same words, exchanged between the slots."""
        return Pair(self.second, self.first, self.words, self.comparison)
