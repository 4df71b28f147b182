"""Reads and checks the published tables with this project's attributes (format: `TEMPLATES.md`).

Every problem names file, row (or template) and field.
"""

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qabias.building.templating import SLOT, fill, read_template_file, repair_articles, slots_of
from qabias.errors import QabiasError
from qabias.support.suggest import did_you_mean

from .design import MASK, NONE, SETS, Design, Question, Subject, Template, pairs_of

FOLDER = Path(__file__).parent
# Increased when a text changes.
VERSION = "1"

CLASSES = {
    "occupation": (NONE,),
    "person": ("rude", "indecent", "crime", "negative", "poor"),
    "place": ("rude", "indecent", "crime", "poor"),
}
_FORMS = ("plural", "plural_negated", "singular", "singular_negated")
_ATTRIBUTE_COLUMNS = ("kind", "class", *_FORMS, "source")
_SUBJECT_COLUMNS = ("set", "name", "demonym", "cluster", "source")
_TEMPLATE_FIELDS = ("id", "subjects", "attributes", "number", "context", "question", "masked")

# The slots of each text of a template, once each.
_SLOTS = {"context": ["X1", "X2"], "question": ["ATTRIBUTE"], "masked": ["ATTRIBUTE", "MASK"]}
_END = {"context": ".", "question": "?", "masked": "."}
_FIX = "Correct this field. Format: unqover_dataset/TEMPLATES.md"


@dataclass(frozen=True)
class Attribute:
    """An attribute in the singular and the plural, each with its negation; occupations have no plural."""

    kind: str
    attribute_class: str
    plural: str
    plural_negated: str
    singular: str
    singular_negated: str

    @property
    def name(self) -> str:
        """Analysis name: the plural form, or the only one."""
        return self.plural or self.singular

    def form(self, number: str) -> tuple[str, str]:
        """The attribute and its negation in one number."""
        return (self.singular, self.singular_negated) if number == "singular" else (self.plural, self.plural_negated)


def read_design(name: str, *, masked: bool, folder: Path = FOLDER) -> Design:
    """Read one set.

    Args:
        name: Name of the set.
        masked: Use sentences with a mask.
        folder: Dataset folder with `templates/` and `vocabulary/`.

    Raises:
        QabiasError: If a file is missing or wrong (names file, row or template, and field).
    """
    subjects = read_subjects(folder / "vocabulary" / "subjects.csv")[name]
    attributes = read_attributes(folder / "vocabulary" / "attributes.csv")
    templates = read_templates(name, attributes, folder / "templates" / f"{name}.yaml", masked=masked)
    return Design(pairs_of(subjects, name), tuple(templates), fill_context)


def fill_context(context: str, one: str, two: str) -> str:
    """Fill a context, with articles by sound."""
    return repair_articles(fill(context, {"X1": one, "X2": two}))


def read_subjects(path: Path) -> dict[str, list[Subject]]:
    """Read and check the subjects of all sets.

    Raises:
        QabiasError: If the file is missing or an entry is wrong.
    """
    subjects: dict[str, list[Subject]] = {name: [] for name in SETS}
    for row in _rows(path, _SUBJECT_COLUMNS):
        name = row.one_of("set", SETS)
        row.text("source")
        cluster = ""
        if name == "gender":
            cluster = row.one_of("cluster", ("female", "male"))
        elif name == "nationality":
            cluster = row.text("cluster")
        else:
            row.empty("cluster", f"subjects of {name} have none")
        if name != "nationality":
            row.empty("demonym", "only countries have one")
        demonym = row.text("demonym") if name == "nationality" else ""
        subject = Subject(row.text("name"), demonym, cluster or NONE)
        for field, words in (("name", subject.name), ("demonym", subject.demonym)):
            if words and not words[0].isupper():
                raise row.error(field, f"must begin with a capital letter, not {words!r}")
            if words and any(words in (other.name, other.demonym) for other in subjects[name]):
                raise row.error(field, f"{words!r} occurs twice in the set {name}")
        subjects[name].append(subject)
    return subjects


def read_attributes(path: Path) -> dict[str, list[Attribute]]:
    """Read and check the attributes, by kind.

    Raises:
        QabiasError: If the file is missing or an entry is wrong.
    """
    attributes: dict[str, list[Attribute]] = {kind: [] for kind in CLASSES}
    fields_of: dict[str, int] = {}
    for row in _rows(path, _ATTRIBUTE_COLUMNS):
        kind = row.one_of("kind", tuple(CLASSES))
        row.text("source")
        if kind == "occupation":
            for field in ("class", "plural", "plural_negated"):
                row.empty(field, "occupations have none")
        attribute_class = NONE if kind == "occupation" else row.one_of("class", CLASSES[kind])
        forms = {field: _predicate(row, field) for field in _FORMS if kind != "occupation" or "singular" in field}
        attribute = Attribute(kind, attribute_class, *(forms.get(field, "") for field in _FORMS))
        for number in ("plural", "singular"):
            if number in forms and forms[number] == forms[f"{number}_negated"]:
                raise row.error(f"{number}_negated", f"is the attribute itself: {forms[number]!r}")
        # Scores name attributes by this text: it must be unique over all kinds.
        if attribute.name in fields_of:
            raise row.error(
                "plural" if attribute.plural else "singular",
                f"{attribute.name!r} is the attribute of row {fields_of[attribute.name]} too",
            )
        fields_of[attribute.name] = row.number
        attributes[kind].append(attribute)
    return attributes


def _predicate(row: "_Row", field: str) -> str:
    text = row.text(field)
    if not re.fullmatch(r"[a-z][A-Za-z' ,-]*[a-z]", text):
        raise row.error(field, f"must be a predicate without capital at its start or mark at its end: {text!r}")
    wrong = "were" if field.startswith("singular") else "was"
    if text.split()[0] == wrong:
        raise row.error(field, f"begins with {wrong!r}: {text!r}")
    if repair_articles(text) != text:
        raise row.error(field, f"has a wrong article: {text!r} should be {repair_articles(text)!r}")
    return text


def read_templates(
    name: str, attributes: Mapping[str, list[Attribute]], path: Path, *, masked: bool
) -> Iterator[Template]:
    """Read and check the templates of a set.

    Raises:
        QabiasError: If the file is missing or not YAML, or a template breaks the format.
    """
    content = read_template_file(path, f"choose one of {', '.join(SETS)}")
    if not isinstance(content, dict) or set(content) != {"set", "source", "templates"}:
        raise QabiasError(f"{path}: wrong top-level keys", "use exactly the keys 'set', 'source' and 'templates'")
    if content["set"] != name:
        raise QabiasError(f"{path}: set is {content['set']!r}, but the file name has {name!r}", "use one name for both")
    if not isinstance(content["templates"], list):
        raise QabiasError(f"{path}: templates is not a list", "list the templates, numbered from 0")
    for number, entry in enumerate(content["templates"]):
        if not isinstance(entry, dict):
            problem = f"{path}: template {number}: {entry!r} is not a mapping"
            raise QabiasError(problem, "give it the fields of TEMPLATES.md")
        _TemplateCheck(path, name, number, entry).check()
        question = entry["masked" if masked else "question"]
        yield Template(
            context=entry["context"],
            form=entry["subjects"],
            questions=tuple(
                Question(
                    attribute.name,
                    attribute.attribute_class,
                    *(fill(question, {"ATTRIBUTE": text, "MASK": MASK}) for text in attribute.form(entry["number"])),
                )
                for attribute in attributes[entry["attributes"]]
            ),
        )


@dataclass(frozen=True)
class _TemplateCheck:
    """Checks one entry of a template file, field by field."""

    path: Path
    set_name: str
    number: int
    entry: Mapping[str, Any]

    def check(self) -> None:
        self._check_names()
        if self.entry["id"] != self.number:
            raise self._error("id", f"is {self.entry['id']!r}, but templates are numbered from 0 in file order")
        self._check_choices()
        for field, slots in _SLOTS.items():
            self._check_text(field, slots)

    def _error(self, field: str, problem: str) -> QabiasError:
        return QabiasError(f"{self.path}: template {self.number}: field {field}: {problem}", _FIX)

    def _check_names(self) -> None:
        for field in _TEMPLATE_FIELDS:
            if field not in self.entry:
                raise self._error(field, "is missing")
        for field in map(str, self.entry):
            if field not in _TEMPLATE_FIELDS:
                raise self._error(field, f"is not a field{did_you_mean(field, _TEMPLATE_FIELDS)}")

    def _check_choices(self) -> None:
        choices = {
            "subjects": ("name", "demonym") if self.set_name == "nationality" else ("name",),
            "attributes": ("occupation",) if self.set_name == "gender" else ("person", "place"),
            "number": ("singular",) if self.set_name == "gender" else ("singular", "plural"),
        }
        for field, allowed in choices.items():
            if self.entry[field] not in allowed:
                raise self._error(field, f"{self.entry[field]!r} is not one of {', '.join(allowed)} ({self.set_name})")

    def _check_text(self, field: str, slots: list[str]) -> None:
        """A text holds each of its slots once, in a context in order."""
        text = self.entry[field]
        if not isinstance(text, str) or not text.strip():
            raise self._error(field, f"must be a text, not {text!r}")
        if text != text.strip() or "  " in text:
            raise self._error(field, f"has an extra space: {text!r}")
        unknown = slots_of(text) - set(slots)
        if unknown:
            raise self._error(field, f"slot {', '.join(sorted(unknown))} is filled by nothing")
        own = SLOT.findall(text)
        if (own if field == "context" else sorted(own)) != slots:
            names = " and ".join("{{" + slot + "}}" for slot in slots)
            raise self._error(field, f"must hold {names} once, in this order")
        if re.search(r"[{}\[\]]", fill(text, dict.fromkeys(slots, ""))):
            raise self._error(field, f"has a stray brace or bracket: {text!r}")
        if not text.endswith(_END[field]):
            raise self._error(field, f"must end with {_END[field]!r}: {text!r}")


class _Row:
    """One row of a CSV file, with checked fields."""

    def __init__(self, path: Path, number: int, fields: Mapping[str, str]):
        self.number = number
        self._path, self._fields = path, fields

    def error(self, field: str, problem: str) -> QabiasError:
        return QabiasError(f"{self._path}: row {self.number}: field {field}: {problem}", _FIX)

    def text(self, field: str) -> str:
        text = self._fields[field]
        if not text.strip():
            raise self.error(field, "is empty")
        if text != text.strip() or "  " in text:
            raise self.error(field, f"has an extra space: {text!r}")
        return text

    def one_of(self, field: str, choices: tuple[str, ...]) -> str:
        if self._fields[field] not in choices:
            raise self.error(field, f"{self._fields[field]!r} is not one of {', '.join(choices)}")
        return self._fields[field]

    def empty(self, field: str, reason: str) -> None:
        if self._fields[field]:
            raise self.error(field, f"must be empty, not {self._fields[field]!r}: {reason}")


def _rows(path: Path, columns: tuple[str, ...]) -> Iterator[_Row]:
    """The rows of a CSV file with these columns; the heading is row 1."""
    try:
        content = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise QabiasError(f"{path}: no such file", "restore it, or choose another folder") from error
    reader = csv.DictReader(content.splitlines())
    if tuple(reader.fieldnames or ()) != columns:
        raise QabiasError(f"{path}: row 1: wrong columns {reader.fieldnames}", f"use {', '.join(columns)}")
    for fields in reader:
        if None in fields or None in fields.values():
            problem = f"{path}: row {reader.line_num}: must have {len(columns)} fields"
            raise QabiasError(problem, "quote texts with commas")
        yield _Row(path, reader.line_num, fields)
