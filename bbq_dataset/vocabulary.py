"""Identity labels, occupations and proper names that fill the slots."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from qabias.building.templating import read_csv
from qabias.errors import QabiasError


@dataclass(frozen=True)
class Label:
    """An identity label or occupation with its tag (region, SES) and the labels whose groups it overlaps."""

    word: str
    tag: str = ""
    subcategory: str = ""
    overlaps: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Name:
    """A proper name; `kind` is first, last (both with an ethnicity) or first_only (without)."""

    name: str
    kind: str
    gender: str
    ethnicity: str


@dataclass(frozen=True)
class Vocabulary:
    """All words that templates draw from, in file order.

    Attributes:
        labels: Identity labels and occupations by category.
        names: Proper names.
        apart: Whether draws avoid similarity: the names of a pair differ clearly, and sets with the same texts show
            different answer orders. The published draws do not.
    """

    labels: Mapping[str, tuple[Label, ...]]
    names: tuple[Name, ...]
    apart: bool = False

    def select_names(
        self, kind: str, *, gender: str = "", ethnicities: Iterable[str] | None = None, exclude: Iterable[str] = ()
    ) -> list[Name]:
        """Names of a kind, of a gender (any if empty), of these and not of those ethnicities."""
        wanted = None if ethnicities is None else set(ethnicities)
        unwanted = set(exclude)
        return [
            name
            for name in self.names
            if name.kind == kind
            and gender in ("", name.gender)
            and (wanted is None or name.ethnicity in wanted)
            and name.ethnicity not in unwanted
        ]

    def distinct_from(self, names: Iterable[Name], other: str) -> list[Name]:
        """The names that may appear with another person's name: if `apart`, none similar to it."""
        return [name for name in names if not (self.apart and look_alike(name.name, other))]


def look_alike(one: str, other: str) -> bool:
    """Whether two names are similar enough to confuse them.

    Either at most every third letter of the shorter one, or one letter, must be changed, added or removed: Hansen and
    Hanson, Li and Lin. Or both have at least five letters and the same first three: Donna and Donald.
    """
    one, other = one.lower(), other.lower()
    shorter = min(len(one), len(other))
    begin_alike = shorter >= 5 and one[:3] == other[:3] and one[:3].isalpha()
    most = max(1, shorter // 3)
    # A letter that the other name lacks takes an edit of its own.
    letters = max(len({*one} - {*other}), len({*other} - {*one}))
    return begin_alike or (letters <= most and _edits(one, other) <= most)


def _edits(one: str, other: str) -> int:
    """The letters that must be changed, added or removed to turn one text into the other (Levenshtein's distance)."""
    row = list(range(len(other) + 1))
    for place, letter in enumerate(one, 1):
        above, row = row, [place]
        for column, there in enumerate(other, 1):
            row.append(min(row[-1] + 1, above[column] + 1, above[column - 1] + (letter != there)))
    return row[-1]


def occupations_by_prestige(vocabulary: Vocabulary) -> dict[str, tuple[str, ...]]:
    """The occupations of low (lowSES) and of high prestige (highSES)."""
    by_tag: dict[str, list[str]] = {}
    for label in vocabulary.labels["SES"]:
        by_tag.setdefault(label.tag, []).append(label.word)
    return {tag: tuple(words) for tag, words in by_tag.items()}


def read_vocabulary(folder: Path) -> Vocabulary:
    """Read the project's own vocabulary: `labels.csv` and `names.csv`.

    Raises:
        QabiasError: If a file lacks a column or overlaps with an unknown label.
    """
    names = tuple(
        Name(row["name"], row["kind"], row["gender"], row["ethnicity"])
        for _, row in read_csv(folder / "names.csv", ("name", "kind", "gender", "ethnicity"))
    )
    return Vocabulary(read_labels(folder / "labels.csv"), names, apart=True)


def read_labels(path: Path) -> dict[str, tuple[Label, ...]]:
    """Read the labels of every category.

    Raises:
        QabiasError: If the file is not UTF-8, lacks a column or overlaps with an unknown label.
    """
    labels: dict[str, list[Label]] = {}
    for _, row in read_csv(path, ("category", "subcategory", "word", "tag", "overlaps")):
        overlaps = frozenset(word.strip() for word in row["overlaps"].split(";") if word.strip())
        labels.setdefault(row["category"], []).append(Label(row["word"], row["tag"], row["subcategory"], overlaps))
    for category, entries in labels.items():
        known = {label.word for label in entries}
        for label in entries:
            if label.overlaps - known:
                raise QabiasError(
                    f"{path}: {category} {label.word!r} overlaps with unknown labels {sorted(label.overlaps - known)}",
                    "use labels of the same category in this file",
                )
    return {category: tuple(entries) for category, entries in labels.items()}
