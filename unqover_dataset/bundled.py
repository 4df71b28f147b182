"""Reads and checks the published tables with this project's attributes (format: `TEMPLATES.md`).

Every problem names file, row (or template) and field.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qabias.building.templating import SLOT, Place, fill, read_csv, read_template_file, repair_articles, slots_of
from qabias.errors import QabiasError

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
    for _, place, row in _rows(path, _SUBJECT_COLUMNS):
        name = place.one_of(row, "set", SETS)
        place.text(row, "source")
        cluster = ""
        if name == "gender":
            cluster = place.one_of(row, "cluster", ("female", "male"))
        elif name == "nationality":
            cluster = place.text(row, "cluster")
        else:
            _refuse(place, row, "cluster", f"subjects of {name} have none")
        if name != "nationality":
            _refuse(place, row, "demonym", "only countries have one")
        demonym = place.text(row, "demonym") if name == "nationality" else ""
        subject = Subject(place.text(row, "name"), demonym, cluster or NONE)
        for field, words in (("name", subject.name), ("demonym", subject.demonym)):
            if words and not words[0].isupper():
                raise place.error(field, f"must begin with a capital letter, not {words!r}")
            if words and any(words in (other.name, other.demonym) for other in subjects[name]):
                raise place.error(field, f"{words!r} occurs twice in the set {name}")
        subjects[name].append(subject)
    return subjects


def read_attributes(path: Path) -> dict[str, list[Attribute]]:
    """Read and check the attributes, by kind.

    Raises:
        QabiasError: If the file is missing or an entry is wrong.
    """
    attributes: dict[str, list[Attribute]] = {kind: [] for kind in CLASSES}
    fields_of: dict[str, int] = {}
    for number_of_row, place, row in _rows(path, _ATTRIBUTE_COLUMNS):
        kind = place.one_of(row, "kind", tuple(CLASSES))
        place.text(row, "source")
        if kind == "occupation":
            for field in ("class", "plural", "plural_negated"):
                _refuse(place, row, field, "occupations have none")
        attribute_class = NONE if kind == "occupation" else place.one_of(row, "class", CLASSES[kind])
        forms = {
            field: _predicate(place, row, field) for field in _FORMS if kind != "occupation" or "singular" in field
        }
        attribute = Attribute(kind, attribute_class, *(forms.get(field, "") for field in _FORMS))
        for number in ("plural", "singular"):
            if number in forms and forms[number] == forms[f"{number}_negated"]:
                raise place.error(f"{number}_negated", f"is the attribute itself: {forms[number]!r}")
        # Scores name attributes by this text: it must be unique over all kinds.
        if attribute.name in fields_of:
            raise place.error(
                "plural" if attribute.plural else "singular",
                f"{attribute.name!r} is the attribute of row {fields_of[attribute.name]} too",
            )
        fields_of[attribute.name] = number_of_row
        attributes[kind].append(attribute)
    return attributes


def _predicate(place: Place, row: Mapping[str, str], field: str) -> str:
    text = place.text(row, field)
    if not re.fullmatch(r"[a-z][A-Za-z' ,-]*[a-z]", text):
        raise place.error(field, f"must be a predicate without capital at its start or mark at its end: {text!r}")
    wrong = "were" if field.startswith("singular") else "was"
    if text.split()[0] == wrong:
        raise place.error(field, f"begins with {wrong!r}: {text!r}")
    if repair_articles(text) != text:
        raise place.error(field, f"has a wrong article: {text!r} should be {repair_articles(text)!r}")
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
        _check_template(Place(f"{path}: template {number}", _FIX), name, number, entry)
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


def _check_template(place: Place, set_name: str, number: int, entry: Mapping[str, Any]) -> None:
    """Check one entry of a template file, field by field."""
    place.check_names(entry, _TEMPLATE_FIELDS)
    if entry["id"] != number:
        raise place.error("id", f"is {entry['id']!r}, but templates are numbered from 0 in file order")
    choices = {
        "subjects": ("name", "demonym") if set_name == "nationality" else ("name",),
        "attributes": ("occupation",) if set_name == "gender" else ("person", "place"),
        "number": ("singular",) if set_name == "gender" else ("singular", "plural"),
    }
    for field, allowed in choices.items():
        place.one_of(entry, field, allowed)
    for field, slots in _SLOTS.items():
        _check_text(place, field, place.text(entry, field, _END[field]), slots)


def _check_text(place: Place, field: str, text: str, slots: list[str]) -> None:
    """A text holds each of its slots once, in a context in order."""
    unknown = slots_of(text) - set(slots)
    if unknown:
        raise place.error(field, f"slot {', '.join(sorted(unknown))} is filled by nothing")
    own = SLOT.findall(text)
    if (own if field == "context" else sorted(own)) != slots:
        names = " and ".join("{{" + slot + "}}" for slot in slots)
        raise place.error(field, f"must hold {names} once, in this order")
    if re.search(r"[{}\[\]]", fill(text, dict.fromkeys(slots, ""))):
        raise place.error(field, f"has a stray brace or bracket: {text!r}")


def _refuse(place: Place, fields: Mapping[str, str], field: str, reason: str) -> None:
    if fields[field]:
        raise place.error(field, f"must be empty, not {fields[field]!r}: {reason}")


def _rows(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[int, Place, dict[str, str]]]:
    """The rows of a CSV file with these columns; the heading is row 1."""
    try:
        for number, fields in read_csv(path, columns):
            place = Place(f"{path}: row {number}", _FIX)
            for field, text in fields.items():
                if field not in columns:
                    raise place.error(field, f"is not a column; the columns are {', '.join(columns)}")
                if len(text.splitlines()) > 1:
                    raise place.error(field, f"has a line break: {text!r}")
            yield number, place, fields
    except FileNotFoundError as error:
        raise QabiasError(f"{path}: no such file", "restore it, or choose another folder") from error
