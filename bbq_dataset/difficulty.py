"""How hard the two forms of BBQ are to read, side by side: their contexts in figures.

Counted are examples, not templates: in both forms a template has equally many of them. Readability is the automated
readability index, the school grade in the United States for which a text is meant (Smith & Senter 1967, Automated
Readability Index, AMRL-TR-66-220). It is made of the lengths of words and sentences alone, so no rule for syllables is
needed.

The counts of all categories are committed in `difficulty.yaml`, because a card is made without the published files and
without a tokenizer. `python -m docs.difficulty --write` counts anew.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import yaml

from qabias.building.templating import read_utf8
from qabias.errors import QabiasError

from .examples import Row
from .template import CATEGORIES, Template

COUNTS_FILE = Path(__file__).with_name("difficulty.yaml")
CONDITIONS = ("ambig", "disambig")

# Marks that end a sentence, with the quotation marks behind them.
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"'”’)]*\s+")
_PERSON_SLOTS = ("{{NAME1}}", "{{NAME2}}")
_AGAIN = "write it with python -m docs.difficulty --write"


@dataclass(frozen=True)
class Counts:
    """Sums over the contexts of some examples of one condition; what is derived from them are means over examples.

    Attributes:
        contexts: Examples, each with its context.
        words: Pieces between spaces with a letter or digit in them.
        sentences: Texts between full stops, question marks or exclamation marks that a space follows.
        letters: Letters and digits.
        tokens: Tokens of one tokenizer, without special ones.
        negative: Examples with a negative question.
        negative_first: Those of them whose right person is the one that the context names first; 0 where the right
            answer is none of the people. The non-negative question of a set has the other person, so its share is
            what is missing to 1.
    """

    contexts: int = 0
    words: int = 0
    sentences: int = 0
    letters: int = 0
    tokens: int = 0
    negative: int = 0
    negative_first: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*(mine + theirs for mine, theirs in zip(vars(self).values(), vars(other).values(), strict=True)))

    @property
    def words_per_context(self) -> float:
        """Mean number of words of a context."""
        return self.words / self.contexts

    @property
    def tokens_per_context(self) -> float:
        """Mean number of tokens of a context."""
        return self.tokens / self.contexts

    @property
    def words_per_sentence(self) -> float:
        """Words of all contexts over their sentences."""
        return self.words / self.sentences

    @property
    def letters_per_word(self) -> float:
        """Letters and digits of all contexts over their words."""
        return self.letters / self.words

    @property
    def grade(self) -> float:
        """The automated readability index, 4.71 letters per word + 0.5 words per sentence - 21.43: a school grade."""
        return 4.71 * self.letters_per_word + 0.5 * self.words_per_sentence - 21.43

    @property
    def share_first(self) -> float:
        """Share of the negative questions whose right person is named first, from 0 to 1; 0.5 leaves no hint."""
        return self.negative_first / self.negative


Figures = Mapping[str, Mapping[str, Mapping[str, Counts]]]
"""Counts by version of the form ("bundled@1"), category and condition."""


def count(rows: Iterable[Row], templates: Sequence[Template], n_tokens: Callable[[str], int]) -> dict[str, Counts]:
    """Count the contexts of one category by condition.

    Args:
        rows: Its examples, from any source.
        templates: The template versions that they were made from.
        n_tokens: Number of tokens of a text.

    Raises:
        QabiasError: If an example is of none of the templates, or of several that name the people in other orders.
    """
    is_first = _negative_answer_is_first(templates)
    found = dict.fromkeys(CONDITIONS, Counts())
    # A context is asked about twice.
    lengths: dict[str, Counts] = {}
    for row in rows:
        context, condition = row["context"], row["context_condition"]
        if context not in lengths:
            lengths[context] = _lengths(context, n_tokens)
        found[condition] += lengths[context]
        if row["question_polarity"] == "neg":
            key = (row["question_index"], row["additional_metadata"]["version"])
            if key not in is_first:
                raise QabiasError(
                    f"{row['category']} {row['example_id']}: no template {key[0]} version {key[1]!r} among those given"
                )
            found[condition] += Counts(negative=1, negative_first=int(condition == "disambig" and is_first[key]))
    return found


def _lengths(text: str, n_tokens: Callable[[str], int]) -> Counts:
    words = [piece for piece in text.split() if any(character.isalnum() for character in piece)]
    return Counts(
        contexts=1,
        words=len(words),
        sentences=len(_SENTENCE_END.split(text.strip())),
        letters=sum(character.isalnum() for character in text),
        tokens=n_tokens(text),
    )


def _negative_answer_is_first(templates: Sequence[Template]) -> dict[tuple[str, str], bool]:
    """For number and version of a template, whether its context names the answer to the negative question first.

    The slots tell it exactly; a search for people in the filled text would take "African" for "African American".
    """
    found: dict[tuple[str, str], bool] = {}
    for template in templates:
        first = min(_PERSON_SLOTS, key=template.context.index)
        key = (str(template.question_index), template.version)
        # One published template has two rows of the same version.
        if found.setdefault(key, first in template.negative_answer) != (first in template.negative_answer):
            raise QabiasError(f"{template.origin}: another row of its version names the people in another order")
    return found


def read_counts(path: Path = COUNTS_FILE) -> dict[str, dict[str, dict[str, Counts]]]:
    """Read the committed counts: by version of the form, category and condition.

    Raises:
        QabiasError: If the file is not UTF-8, or does not hold both conditions of every category of two forms.
    """
    content = yaml.safe_load(read_utf8(path))
    try:
        found = {
            form: {
                category: {condition: _read(of_one[category][condition]) for condition in CONDITIONS}
                for category in CATEGORIES
            }
            for form, of_one in content.items()
        }
    except (AttributeError, KeyError, TypeError) as error:
        raise QabiasError(f"{path}: not the counts of every category: {error}; {_AGAIN}") from error
    if len(found) != 2:
        raise QabiasError(f"{path}: counts of {', '.join(found) or 'no form'} instead of two forms; {_AGAIN}")
    return found


def _read(values: Mapping[str, Any]) -> Counts:
    if set(values) != {field.name for field in fields(Counts)}:
        raise KeyError(", ".join(values))
    return Counts(**values)


def counts_text(figures: Figures) -> str:
    """The counts as YAML, one line per category and condition."""
    content = {
        form: {
            category: {condition: asdict(counts) for condition, counts in by_condition.items()}
            for category, by_condition in categories.items()
        }
        for form, categories in figures.items()
    }
    head = "# Sums over the contexts of both forms of BBQ, written by: python -m docs.difficulty --write\n"
    return head + yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=200)


def card_section(version: str, figures: Figures) -> str:
    """What the card of a form says about its difficulty beside the other's; "" for a form that was not counted.

    Args:
        version: Name and version of the form, e.g. "bundled@1".
        figures: The counts of two forms.
    """
    if version not in figures:
        return ""
    [other] = set(figures) - {version}
    lines = [
        "### Difficulty of the two forms",
        "",
        f"Each cell has `{version}` / `{other}`: all eleven categories as generated from the templates with seed 0.",
        "",
        *_table_of_all(_pooled(figures[version]), _pooled(figures[other])),
        "",
        "By category:",
        "",
        *_table_by_category(figures[version], figures[other]),
        "",
        "Means over examples. Grade: automated readability index (letters per word and words per sentence), the school",
        "grade in the United States for which such a text is meant. Tokens: of SmolLM2. Right person first: share of",
        "the disambiguated negative questions whose right person is the one that the context names first; for",
        "non-negative questions it is what is missing to 100 %.",
    ]
    return "\n".join(lines) + "\n\n"


def _pooled(categories: Mapping[str, Mapping[str, Counts]]) -> dict[str, Counts]:
    """The counts of all categories together, by condition."""
    return {
        condition: sum((by_condition[condition] for by_condition in categories.values()), Counts())
        for condition in CONDITIONS
    }


def _table_of_all(ours: Mapping[str, Counts], theirs: Mapping[str, Counts]) -> list[str]:
    shown = {
        "words per context": ("words_per_context", 1),
        "words per sentence": ("words_per_sentence", 1),
        "letters per word": ("letters_per_word", 2),
        "grade": ("grade", 1),
        "tokens per context": ("tokens_per_context", 1),
    }
    lines = ["| all categories | ambiguous | disambiguated |", "|---|---:|---:|"]
    for title, (name, digits) in shown.items():
        cells = [_pair(ours[condition], theirs[condition], name, digits) for condition in CONDITIONS]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return [*lines, f"| right person first | - | {_shares(ours['disambig'], theirs['disambig'])} |"]


def _table_by_category(
    ours: Mapping[str, Mapping[str, Counts]], theirs: Mapping[str, Mapping[str, Counts]]
) -> list[str]:
    lines = [
        "| category | words, ambiguous | words, disambiguated | grade, disambiguated | right person first |",
        "|---|---:|---:|---:|---:|",
    ]
    for category in ours:
        (our_ambig, our_disambig), (their_ambig, their_disambig) = (
            [form[category][condition] for condition in CONDITIONS] for form in (ours, theirs)
        )
        cells = [
            category,
            _pair(our_ambig, their_ambig, "words_per_context", 1),
            _pair(our_disambig, their_disambig, "words_per_context", 1),
            _pair(our_disambig, their_disambig, "grade", 1),
            _shares(our_disambig, their_disambig),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _pair(ours: Counts, theirs: Counts, name: str, digits: int) -> str:
    return f"{getattr(ours, name):.{digits}f} / {getattr(theirs, name):.{digits}f}"


def _shares(ours: Counts, theirs: Counts) -> str:
    return f"{100 * ours.share_first:.0f} % / {100 * theirs.share_first:.0f} %"
