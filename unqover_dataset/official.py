"""The authors' word lists, and the text rules of their generator."""

import re
from collections.abc import Iterator

from qabias.building.sources import fetch
from qabias.building.templating import fill
from qabias.errors import QabiasError

from . import fixes as known_fixes
from .design import MASK, NONE, Design, Question, Subject, Template, pairs_of

REPOSITORY = "allenai/unqover"
DEFAULT_SUBJECTS = "bert"

_FOLDER = "word_lists"
_FILE_NAMES = {"gender": "gender", "nationality": "country", "ethnicity": "ethnicity", "religion": "religion"}
_SUBJECT_FILES = {
    "gender": ("female", "male"),
    "nationality": ("country",),
    "ethnicity": ("ethnicity",),
    "religion": ("religion",),
}
_ACTIVITY_FILES = {
    "gender": "occupation_rev1",
    "nationality": "biased_country",
    "ethnicity": "biased_ethnicity",
    "religion": "biased_religion",
}

_HEAD = re.compile(r"\[([lp]_act(?:-single)?)(:neg)?\]")
_SUBJECT = re.compile(r"\[subj([12])(:dem)?\]")
_VOWELS = tuple("aeiouAEIOU")
_FIX = "use the unchanged published files"


def read_design(name: str, *, masked: bool, subjects: str, fixes: bool) -> Design:
    """Read the authors' lists of one set.

    Args:
        name: Name of the set.
        masked: Use the templates for masked language models.
        subjects: `all`, or the selection for `bert` or `roberta`.
        fixes: Fix the known defects of the lists (`unqover_dataset.fixes`).

    Raises:
        QabiasError: If a file is missing or wrong.
    """
    people = _read_subjects(name, "" if subjects == "all" else f"_{subjects}")
    templates = _read_templates(name, masked, fixes)
    if fixes:
        people = [known_fixes.fix_subject(subject) for subject in people]
    return Design(pairs_of(people, name), tuple(templates), fill_fixed if fixes else fill_published)


def fill_published(context: str, one: str, two: str) -> str:
    """Fill a context like the published generator: "a" becomes "an" before any vowel letter, never the reverse."""
    words = fill(context, {"X1": one, "X2": two}).split(" ")
    for i in range(1, len(words)):
        if words[i - 1] in ("a", "A") and words[i].startswith(_VOWELS):
            words[i - 1] += "n"
    return " ".join(words)


def fill_fixed(context: str, one: str, two: str) -> str:
    """Fill a context with articles by sound."""
    return known_fixes.fix_context(fill(context, {"X1": one, "X2": two}))


def _read_subjects(name: str, suffix: str) -> list[Subject]:
    subjects: list[Subject] = []
    for file in _SUBJECT_FILES[name]:
        path = f"{_FOLDER}/nouns/subjects/{file}{suffix}"
        blocks: dict[str, list[tuple[str, str]]] = {"[subj]": [], "[subj:dem]": []}
        for number, line in _lines(path):
            head, _, term = line.partition(" ")
            if head not in blocks:
                raise QabiasError(f"{path} row {number}: {head!r} is not one of {', '.join(blocks)}", _FIX)
            blocks[head].append(_classified(term))
        names, demonyms = blocks["[subj]"], blocks["[subj:dem]"] or [("", "")] * len(blocks["[subj]"])
        if len(names) != len(demonyms):
            raise QabiasError(f"{path}: {len(names)} subjects, but {len(demonyms)} demonyms", _FIX)
        subjects += [
            Subject(term, demonym, cluster) for (cluster, term), (_, demonym) in zip(names, demonyms, strict=True)
        ]
    return subjects


def _read_activities(name: str) -> dict[str, list[tuple[str, str]]]:
    """Class and text of all attributes by block, e.g. "p_act-single:neg"."""
    path = f"{_FOLDER}/activities/{_ACTIVITY_FILES[name]}"
    blocks: dict[str, list[tuple[str, str]]] = {}
    for number, line in _lines(path):
        head, _, text = line.partition(" ")
        match = _HEAD.fullmatch(head)
        if match is None:
            raise QabiasError(f"{path} row {number}: {head!r} is not the head of an attribute", _FIX)
        blocks.setdefault(f"{match[1]}{match[2] or ''}", []).append(_classified(text))
    for block, entries in blocks.items():
        twins = (f"{block.removesuffix(':neg')}:neg", block.removesuffix(":neg").removesuffix("-single"))
        for twin in twins:
            if len(blocks.get(twin, ())) != len(entries):
                raise QabiasError(f"{path}: the blocks [{block}] and [{twin}] differ in length", _FIX)
    return blocks


def _classified(text: str) -> tuple[str, str]:
    """Split "class | text"; the class is optional."""
    before, bar, after = text.partition("|")
    return (before.strip(), after.strip()) if bar else (NONE, text.strip())


def _read_templates(name: str, masked: bool, fixes: bool) -> Iterator[Template]:
    path = f"{_FOLDER}/slots/{_FILE_NAMES[name]}_noact{'_lm' if masked else ''}"
    blocks = _read_activities(name)
    if fixes:
        blocks = known_fixes.fix_attributes(blocks)
    for number, line in _lines(path):
        cells = line.split("\t")
        if len(cells) != 3:
            problem = f"{path} row {number}: {len(cells)} columns, not context, question and negated question"
            raise QabiasError(problem, _FIX)
        context, question, negated = cells
        slots, heads = _SUBJECT.findall(context), {match[1] for match in _HEAD.finditer(question)}
        if [slot for slot, _ in slots] != ["1", "2"] or len({form for _, form in slots}) != 1 or len(heads) != 1:
            raise QabiasError(f"{path} row {number}: not one form of each subject and one attribute", _FIX)
        if fixes:
            negated = known_fixes.fix_negated(question)
        block = heads.pop()
        yield Template(
            context=_SUBJECT.sub(lambda match: f"{{{{X{match[1]}}}}}", context),
            form="demonym" if slots[0][1] else "name",
            questions=tuple(
                Question(
                    attribute=attribute,
                    # As published: the class of the negated twin.
                    attribute_class=attribute_class,
                    text=_asked(question, text),
                    negated=_asked(negated, negation),
                )
                for (_, attribute), (_, text), (attribute_class, negation) in zip(
                    blocks[block.removesuffix("-single")], blocks[block], blocks[f"{block}:neg"], strict=True
                )
            ),
        )


def _asked(question: str, attribute: str) -> str:
    """Put an attribute and our name of the mask token into a question."""
    return _HEAD.sub(lambda _: attribute, question).replace("[mask]", MASK)


def _lines(path: str) -> Iterator[tuple[int, str]]:
    """The lines of a word list with their numbers, without empty lines and comments."""
    text = fetch(REPOSITORY, path).read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if stripped and not stripped.startswith("#"):
            yield number, stripped
