r"""Words and marks that lead to an answer: `\boxed{`, `"answer":`, "Final answer:", "the answer is".

What comes behind an opening is for the reader of a kind of answer: one of listed answers, a label, a person.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

MARKS = "\"'“”„«»`*_~"
"""Quotation marks and markup that may stand around an answer."""

# Words for "answer" in languages that models are asked in, or fall into.
_ANSWER_WORDS = (
    r"answer|response|choice|option|antwort|antwoord|respuesta|resposta|réponse|reponse|risposta|svar|svaret|vastaus|"
    r"odpowiedź|odpověď|ответ|відповідь|cevap|yanıt|jawaban|câu trả lời|đáp án|답|정답|答案|答え|回答|الإجابة|उत्तर"
)
_FINAL_WORDS = r"final|correct|right|best|most likely|likely|most appropriate|finale|endgültige|final"

# An opening that leads to an answer; after it stands the answer, with marks around it.
_BOXED = re.compile(r"\\boxed\s*\{\s*(?:\\(?:text|mathrm|textbf)\s*\{)?", re.IGNORECASE)
_TAGGED = re.compile(r"<(?:final[_ -]?)?answer>", re.IGNORECASE)
_JSON = re.compile(
    r"[\"'](?:final[_ ]?answer|answer|choice|option|letter|label|prediction|response|result)[\"']\s*:\s*", re.IGNORECASE
)
_SAYS_FINAL = re.compile(
    rf"(?:(?i:\bfinal (?:{_ANSWER_WORDS})\b)|(?:^|\n)[\s{MARKS}#>-]*ANSWER\b|\bANSWER(?=[\s{MARKS}]*[:：]))"
    rf"[\s{MARKS}]*(?:\bis\b|:|=|：|-|—)?[\s{MARKS}]*[:：]?",
)
# What "No definitive answer is ..." goes on to say is none.
_NOT_NO = "".join(rf"(?<!\bno {which})" for which in ("", "clear ", "definite ", "definitive ", "correct ", "right "))
_SAYS = re.compile(
    rf"(?<!\bno )(?:\b(?:{_FINAL_WORDS}) )?(?<![^\W_]){_NOT_NO}(?:{_ANSWER_WORDS})[\s{MARKS}]*"
    rf"(?:\b(?:is|would be|must be|should be|was|ist|es|est|è|é|is dus)\b[\s{MARKS}]*[:：]?|[:：=]|은|는|は|\n)",
    re.IGNORECASE,
)
_CHOOSES = re.compile(
    rf"\b(?:i(?:'d| would|'ll| will)? (?:choose|pick|select|go with|say)|my (?:pick|choice) is)[\s{MARKS}]*",
    re.IGNORECASE,
)

FINAL = (_BOXED, _TAGGED, _JSON, _SAYS_FINAL)
"""What states an answer to be the last word."""

STATED = (_SAYS, _CHOOSES)
"""What states an answer."""

# Where what is stated ends: a line, a sentence, the string of a JSON object, the braces of a box, a tag.
_END = re.compile(r"[\n{}<]|[.!?](?=\s)|(?<=[^\s:])[\"”](?=\s*[,}\]])")


def openings_in(text: str, openings: Sequence[re.Pattern[str]]) -> Iterator[re.Match[str]]:
    """The openings in a text."""
    for opening in openings:
        yield from opening.finditer(text)


def behind(text: str, openings: Sequence[re.Pattern[str]]) -> list[str]:
    """What stands behind each opening, up to the end of its sentence, line, string or braces."""
    there = list(openings_in(text, openings))
    starts = [opening.start() for opening in there]
    said = []
    for opening in there:
        start = opening.end() + len(text[opening.end() :]) - len(text[opening.end() :].lstrip(" \t\n" + MARKS))
        found = _END.search(text, start)
        end = found.start() if found else len(text)
        if re.search(r"\w", text[start:end]) and not any(opening.end() <= other < end for other in starts):
            said.append(text[start:end])
    return said


def straight(text: str) -> str:
    """Compatible characters and straight apostrophes; letters keep their case, which tells "A" from "a"."""
    return unicodedata.normalize("NFKC", text).replace("’", "'").replace("‘", "'")
