"""Templates: files, slots, articles, sentence starts, and random draws that are identical on every machine."""

import csv
import hashlib
import io
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mode
from typing import Any, TypeVar

import yaml

from qabias.errors import QabiasError
from qabias.support.files import require_regular_file
from qabias.support.printable import refuse_control
from qabias.support.suggest import did_you_mean, shortened

T = TypeVar("T")

SLOT = re.compile(r"\{\{([A-Z]+[0-9]?)\}\}")
# "A" inside a sentence is a name ("Vitamin A"), not an article.
_ARTICLE = re.compile(r"((?:^|[.!?][\"']?\s+)A|\ba)n?(\s+)([\w'-]+)")
_SENTENCE_START = re.compile(r"(^|[.!?][\"']?\s+)([a-z])")

_MOST_BYTES = 2**21  # of a file that a person wrote; a list of this size takes 10 seconds to read
_MOST_DIGITS = 300

# Spelled letter by letter: "HIV-positive", "MBAs", and "LGBTQ", which cannot be said as a word.
_INITIALS = re.compile(r"[A-Z]{2,4}s?(?![A-Za-z])|MSc\b|[B-DF-HJ-NP-TV-XZ]{4}")
_LETTERS_SPOKEN_WITH_A_VOWEL = "AEFHILMNORSX"
# How words begin that are spoken with a vowel, in U.S. English.
_SPOKEN_WITH_A_VOWEL = re.compile(
    r"""
    8 | 1[18](?!\d)                                    # "eight", "eleven", "eighteen"
    | heir | hono(?!l) | honest | hour(?!i) | herb(al|s)?\b
    | [aefhilmnorsx](?![\w'])                          # a letter as a word: "an F"
    | euler | uber
    | [ai]
    | e(?![uw])                                        # not "European", "ewe"
    | o(?!ne(?![ir])|nce\b|uija)                       # not "one-sided", "once"
    | u(?!
        \b                                             # not "U-turn"
        | ni(?![mn]|ss|d(?!irec)) | nanim | nesco      # not "unit", "unanimous", but "unimportant"
        | [bcfghjkqrst][aeiou] | krain | ighur         # not "Ugandan", "used", "Ukrainian", "Uighur"
      )
    | y(?![aeiou'])                                    # "Yvonne"
    """,
    re.VERBOSE | re.IGNORECASE,
)


class StableRandom:
    """Random draws that depend only on the seed parts."""

    def __init__(self, *parts: object):
        digest = hashlib.sha256("\x1f".join(str(part) for part in parts).encode()).digest()
        self._random = random.Random(int.from_bytes(digest[:8], "big"))

    def below(self, n: int) -> int:
        """Draw an integer from 0 to `n` - 1."""
        return int(self._random.random() * n)

    def choice(self, items: Sequence[T]) -> T:
        """Draw one item."""
        return items[self.below(len(items))]

    def sample(self, items: Sequence[T], k: int) -> list[T]:
        """Draw `k` different positions of `items`, in random order."""
        if k > len(items):
            raise ValueError(f"cannot draw {k} of {len(items)} items")
        pool = list(items)
        for i in range(k):
            j = i + self.below(len(pool) - i)
            pool[i], pool[j] = pool[j], pool[i]
        return pool[:k]


def read_utf8(path: Path) -> str:
    """The text of a UTF-8 file that a person wrote, with normalized line ends."""
    try:
        return require_regular_file(path, _MOST_BYTES).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise QabiasError(f"{path} is not UTF-8", "save it as UTF-8") from error


class _Loader(yaml.SafeLoader):
    """Refuses aliases (a few lines of them can fill the memory), repeated keys, control characters and huge numbers."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            problem = "an alias (*name) is not allowed; write the text again"
            raise yaml.composer.ComposerError(None, None, problem, self.peek_event().start_mark)
        return super().compose_node(parent, index)

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> str:
        text = str(super().construct_scalar(node))
        refuse_control(text, self.name)
        if node.tag.endswith(":int") and len(text) > _MOST_DIGITS:  # too long for Python to write down
            raise QabiasError(f"{self.name}: a number of {len(text):,} digits.", "Write it as text, in quotes.")
        return text

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        mapping = super().construct_mapping(node, deep)
        if len(mapping) < len(node.value):
            problem = f"the key {shortened(mode(str(key.value) for key, _ in node.value))} occurs twice"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
        return mapping


def read_yaml(path: Path) -> Any:
    """Read a user's YAML file.

    Raises:
        QabiasError: If it is not UTF-8 or YAML, nested too deeply, or has an alias, a key twice, an impossible date, a
            control character in a text, or a number of hundreds of digits.
        OSError: If it cannot be read.
    """
    text = read_utf8(path)
    try:
        loader = _Loader(text)
        loader.name = str(path)
        return loader.get_single_data()
    except QabiasError:
        raise
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise QabiasError(
            f"{path}: not readable as YAML: {' '.join(str(error).split())}", "Correct its YAML."
        ) from error


def read_template_file(path: Path, known: str) -> Any:
    """Read the YAML of a template file."""
    try:
        return read_yaml(path)
    except FileNotFoundError as error:
        raise QabiasError(f"{path}: no such template file", known) from error


def read_csv(path: Path, columns: Sequence[str]) -> list[tuple[int, dict[str, str]]]:
    """Read a user's CSV file with these columns: each row, and the number of its line."""
    reader = csv.DictReader(io.StringIO(read_utf8(path), newline=""))
    rows = []
    try:
        names = list(reader.fieldnames or ())
        if len(set(names)) < len(names):
            twice = shortened(mode(names))
            raise QabiasError(f"{path}: the column {twice} occurs twice", "Remove one.")
        missing = set(columns) - set(names)
        if missing:
            raise QabiasError(
                f"{path}: no column {', '.join(sorted(missing))}; the columns are {shortened(names)}",
                "Add it.",
            )
        for row in reader:
            if None in row or None in row.values():
                raise QabiasError(
                    f"{path}: line {reader.line_num}: not one cell per column",
                    f"Give it {len(names)}; quote texts with commas.",
                )
            for cell in row.values():
                refuse_control(cell, f"{path}: line {reader.line_num}")
            rows.append((reader.line_num, row))
    except csv.Error as error:
        raise QabiasError(f"{path}: line {reader.line_num + 1}: {error}", "Correct this line.") from error
    return rows


@dataclass(frozen=True)
class Place:
    """A place in a file that a person wrote, such as "FILE: template 3", for the errors about its fields."""

    name: str
    fix: str

    def error(self, field: str, problem: str) -> QabiasError:
        """The error about a field; "" for the whole place."""
        return QabiasError(f"{self.name}: field {field}: {problem}" if field else f"{self.name}: {problem}", self.fix)

    def check_names(self, fields: Any, required: Sequence[str], optional: Sequence[str] = ()) -> None:
        """Refuse missing and unknown fields."""
        known = (*required, *optional)
        if not isinstance(fields, Mapping):
            raise self.error("", f"must be a mapping with {', '.join(known)}, not {fields!r}")
        others = [str(field) for field in fields if field not in known]
        for field in required:
            if field not in fields:
                raise self.error(field, "is missing" + (f"; {shortened(others[0])} is not a field" if others else ""))
        for field in others:
            meant = did_you_mean(field, known) or f"; the fields are {', '.join(known)}"
            raise self.error(field, f"is not a field{meant}")

    def text(self, fields: Mapping[str, Any], field: str, end: str = "") -> str:
        """A field with a text."""
        text = fields.get(field)
        if not isinstance(text, str) or not text.strip():
            raise self.error(field, f"must be a text, not {text!r}")
        if text != text.strip() or "  " in text:
            raise self.error(field, f"has an extra space: {text!r}")
        if not text.endswith(end):
            raise self.error(field, f"must end with {end!r}: {text!r}")
        return text

    def one_of(self, fields: Mapping[str, Any], field: str, choices: Sequence[str]) -> str:
        """A field with one of some texts."""
        if fields.get(field) not in choices:
            raise self.error(field, f"{fields.get(field)!r} is not one of {', '.join(choices)}")
        return str(fields[field])


def fill(text: str, slots: Mapping[str, str]) -> str:
    """Replace every `{{SLOT}}` of `text` with a value in `slots`."""
    return SLOT.sub(lambda match: slots.get(match[1], match[0]), text)


def slots_of(text: str) -> set[str]:
    """Names of the slots in `text`."""
    return set(SLOT.findall(text))


def filled_pattern(text: str) -> re.Pattern[str]:
    """A pattern for the values of the slots in a filled `text`; a repeated slot has one value."""
    seen: set[str] = set()
    pattern = ""
    end = 0
    for slot in SLOT.finditer(text):
        pattern += re.escape(text[end : slot.start()])
        pattern += f"(?P={slot[1]})" if slot[1] in seen else f"(?P<{slot[1]}>.+?)"
        seen.add(slot[1])
        end = slot.end()
    return re.compile(pattern + re.escape(text[end:].rstrip()))


def article(word: str) -> str:
    """The indefinite article before `word`: "a" or "an", by sound ("a European", "an hour")."""
    if _INITIALS.match(word):
        return "an" if word[0] in _LETTERS_SPOKEN_WITH_A_VOWEL else "a"
    return "an" if _SPOKEN_WITH_A_VOWEL.match(word) else "a"


def repair_articles(text: str) -> str:
    """Fit every indefinite article to the sound of the next word."""

    def fix(match: re.Match[str]) -> str:
        start, space, word = match.groups()
        return start + article(word)[1:] + space + word

    return _ARTICLE.sub(fix, text)


def capitalize_sentences(text: str) -> str:
    """Capitalize every sentence of `text`."""
    return _SENTENCE_START.sub(lambda match: match[1] + match[2].upper(), text)
