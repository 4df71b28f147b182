"""The questions of the bundled templates as statements with a blank: "____ was late." for "Who was late?"."""

import re
from functools import cache
from typing import NamedTuple

from qabias.building.templating import fill, filled_pattern

from .bundled import FOLDER, fill_english, read_templates
from .vocabulary import read_vocabulary

_INDEFINITE = re.compile(r"\ban?\b", re.IGNORECASE)


class Asked(NamedTuple):
    """A question of a template version.

    Attributes:
        context: Pattern for the beginning of the context.
        question: Pattern of the question.
        statement: The question as a statement, with the slot ANSWER.
    """

    context: re.Pattern[str]
    question: re.Pattern[str]
    statement: str


def statement_of(template_id: str, context: str, question: str, blank: str) -> str | None:
    """The statement of a bundled template's question.

    Args:
        template_id: The template, as in the column `template_id`.
        context: The context as shown, which distinguishes versions with the same question.
        question: The question as asked, with its drawn words.
        blank: Replaces the answer.

    Returns:
        One sentence with a full stop. None if no version of the template asks this question: published texts of BBQ
        have no statements.

    Raises:
        QabiasError: If the template file is missing or wrong.
    """
    category, _, _ = template_id.rpartition("-")
    for asked in asked_questions(category).get(template_id, ()):
        match = asked.question.fullmatch(question)
        if match and asked.context.match(context):
            text, words = fill(asked.statement, {"ANSWER": blank}), match.groupdict()
            return fill_english(text, words) if words else text
    return None


@cache
def asked_questions(category: str) -> dict[str, list[Asked]]:
    """The questions of the bundled templates of a category, by template."""
    questions: dict[str, list[Asked]] = {}
    for template in read_templates(category, read_vocabulary(FOLDER / "vocabulary")):
        contexts = [_context_pattern(text) for text in (template.context, template.context_alike) if text]
        questions.setdefault(template.template_id, []).extend(
            Asked(context, filled_pattern(question), statement)
            for context in contexts
            for question, statement in (
                (template.negative_question, template.negative_statement),
                (template.non_negative_question, template.non_negative_statement),
            )
        )
    return questions


def _context_pattern(context: str) -> re.Pattern[str]:
    """The pattern of a filled context: its indefinite articles fit the words, and its sentences begin with capitals."""
    pattern = filled_pattern(context).pattern
    return re.compile(_INDEFINITE.sub("an?", pattern), re.IGNORECASE)
