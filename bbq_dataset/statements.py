"""The questions of the bundled templates as statements with a blank: "____ was late." for "Who was late?"."""

import re
from functools import cache

from qabias.building.templating import fill, filled_pattern

from .bundled import FOLDER, fill_english, read_templates
from .vocabulary import read_vocabulary


def statement_of(template_id: str, question: str, blank: str) -> str | None:
    """The statement that a bundled template makes of a question, with the answer left out.

    Args:
        template_id: The template, as in the column `template_id`.
        question: The question as it is asked, with the words that were drawn for it.
        blank: What stands in place of the answer.

    Returns:
        One sentence with a full stop, or None where no version of the template asks this question: the published texts
        of BBQ have no statements.

    Raises:
        QabiasError: If the template file is missing or wrong.
    """
    category, _, _ = template_id.rpartition("-")
    for pattern, statement in _texts(category).get(template_id, ()):
        found = pattern.fullmatch(question)
        if found:
            text, words = fill(statement, {"ANSWER": blank}), found.groupdict()
            return fill_english(text, words) if words else text
    return None


@cache
def _texts(category: str) -> dict[str, list[tuple[re.Pattern[str], str]]]:
    """Patterns of the questions and their statements, by template."""
    texts: dict[str, list[tuple[re.Pattern[str], str]]] = {}
    for template in read_templates(category, read_vocabulary(FOLDER / "vocabulary")):
        texts.setdefault(template.template_id, []).extend(
            (
                (filled_pattern(template.negative_question), template.negative_statement),
                (filled_pattern(template.non_negative_question), template.non_negative_statement),
            )
        )
    return texts
