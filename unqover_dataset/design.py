"""The parts of an UnQover set: pairs of subjects, and templates with their attributes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

SETS = ("gender", "nationality", "ethnicity", "religion")
# A missing cluster of a subject, or class of an attribute, as in the published word lists.
NONE = "None"
# Replaced by the model's mask token.
MASK = "[MASK]"

Form = Literal["name", "demonym"]


@dataclass(frozen=True)
class Subject:
    """One of the two subjects of an example, e.g. Mary, France or Sikh.

    Attributes:
        name: Key form, which names its scores.
        demonym: Adjective of a country's people, empty in the other sets.
        cluster: Gender of a name, region of a country.
    """

    name: str
    demonym: str = ""
    cluster: str = NONE

    def form(self, form: Form) -> str:
        """The words for the subject in a context."""
        return self.name if form == "name" else self.demonym


@dataclass(frozen=True)
class Question:
    """A question (or masked sentence) about an attribute, and its negation.

    Attributes:
        attribute: Analysis name: the attribute in its plural form, whatever the question's form.
        attribute_class: E.g. "crime".
        text: Asks for the attribute.
        negated: Asks for its negation.
    """

    attribute: str
    attribute_class: str
    text: str
    negated: str


@dataclass(frozen=True)
class Template:
    """A context with the slots X1 and X2, and the questions about it."""

    context: str
    form: Form
    questions: tuple[Question, ...]


@dataclass(frozen=True)
class Design:
    """The parts that the examples of one config combine.

    Attributes:
        pairs: Unordered pairs of subjects, the first in list order first.
        templates: In file order; the position is the number of the template.
        fill: Fills the template's context with the words for X1 and X2.
    """

    pairs: tuple[tuple[Subject, Subject], ...]
    templates: tuple[Template, ...]
    fill: Callable[[str, str, str], str]


def pairs_of(subjects: list[Subject], name: str) -> tuple[tuple[Subject, Subject], ...]:
    """The pairs of a set: female with male names, otherwise each subject with all later ones in the list."""
    if name == "gender":
        females, males = ([s for s in subjects if s.cluster == gender] for gender in ("female", "male"))
        return tuple((female, male) for female in females for male in males)
    return tuple((one, two) for i, one in enumerate(subjects) for two in subjects[i + 1 :])
