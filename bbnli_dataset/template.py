"""Reads and checks the template file of a subtopic, `templates/<domain>/<subtopic>.yaml` (format: `TEMPLATES.md`).

Every problem names file, item and field.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from qabias.building.templating import SLOT, Place, read_template_file, slots_of
from qabias.errors import QabiasError

from .pairs import LABELS, NEUTRAL, Hypothesis, Kind, Stance
from .subtopics import COGNITIVE_BIASES, SUBTOPICS, domain_of

KINDS: tuple[Kind, ...] = get_args(Kind)

_FIELDS = ("subtopic", "domain", "stereotype", "groups", "words", "premises", *KINDS)
_PREMISE_FIELDS = ("text", "reference")
_HYPOTHESIS_FIELDS = {
    "stereotypical": ("hypothesis", "question", "cognitive_bias"),
    "test": ("hypothesis", "question", "label"),
}
_STEM = re.compile("[A-Z]+")
_URL = re.compile(r"https?://[^\s/#]+\.[^\s#]+")
# After these a word would be capitalized as a sentence.
_FALSE_SENTENCE_START = re.compile(r"[.!?][\"']?\s+[a-z]|\b[A-Z]\.[\"']?\s+\{\{")


@dataclass(frozen=True)
class Premise:
    """A premise with slots, and the source of its fact."""

    text: str
    reference: str


@dataclass(frozen=True)
class Template:
    """The texts of one subtopic.

    Attributes:
        path: File it was read from.
        stereotype: The tested harmful belief, in one sentence.
        groups: Values of the group slots, exchanged in the anti form:
            {"pro": {"GROUP1": "men", "GROUP2": "women"}, "anti": {"GROUP1": "women", "GROUP2": "men"}}.
        words: Interchangeable words by slot.
        premises: The premises.
        hypotheses: The stereotypical hypotheses, then the test hypotheses.
    """

    path: Path
    stereotype: str
    groups: Mapping[Stance, Mapping[str, str]]
    words: Mapping[str, tuple[str, ...]]
    premises: tuple[Premise, ...]
    hypotheses: tuple[Hypothesis, ...]

    def error(self, item: str, field: str, problem: str) -> QabiasError:
        """The error that names the place in the file."""
        return _place(self.path, item).error(field, problem)


def read_template(subtopic: str, folder: Path) -> Template:
    """Read and check the template file of a subtopic.

    Args:
        subtopic: Name of the subtopic.
        folder: Dataset folder with `templates/`.

    Raises:
        QabiasError: If the file is missing or not YAML, or breaks the format.
    """
    path = folder / "templates" / domain_of(subtopic) / f"{subtopic}.yaml"
    content = read_template_file(path, f"choose one of {', '.join(SUBTOPICS)}")
    return _Reader(path, content).template()


def _place(path: Path, item: str) -> Place:
    return Place(f"{path}: {item}" if item else str(path), "Correct this field. Format: bbnli_dataset/TEMPLATES.md")


class _Reader:
    """Turns the content of a template file into a template, checking every field."""

    def __init__(self, path: Path, content: Any):
        self.path = path
        self.fields: dict[str, Any] = self._mapping(content, "", _FIELDS)
        forms = self._lists(self.fields["groups"], "groups")
        self.pro = {f"{stem}{i + 1}": texts[i] for stem, texts in forms.items() for i in (0, 1)}
        self.anti = {f"{stem}{i + 1}": texts[1 - i] for stem, texts in forms.items() for i in (0, 1)}
        self.words = self._lists(self.fields["words"], "words")
        self._check_slot_names(forms)

    def template(self) -> Template:
        """The checked template."""
        self._one_of(self.fields, "", "subtopic", (self.path.stem,))
        self._one_of(self.fields, "", "domain", (self.path.parent.name,))
        premises = tuple(self._premise(item, entry) for item, entry in self._items("premises", "premise"))
        hypotheses = tuple(
            self._hypothesis(kind, number, item, entry)
            for kind in KINDS
            for number, (item, entry) in enumerate(self._items(kind, kind))
        )
        self._check_every_slot_is_used(premises, hypotheses)
        return Template(
            path=self.path,
            stereotype=self._text(self.fields, "", "stereotype", end="."),
            groups={"pro": self.pro, "anti": self.anti},
            words=self.words,
            premises=premises,
            hypotheses=hypotheses,
        )

    def _premise(self, item: str, entry: Any) -> Premise:
        fields = self._mapping(entry, item, _PREMISE_FIELDS)
        reference = self._text(fields, item, "reference")
        if not _URL.fullmatch(reference):
            raise self._error(item, "reference", f"must be an http(s) address without '#', not {reference!r}")
        return Premise(self._sentence(fields, item, "text", end="."), reference)

    def _hypothesis(self, kind: Kind, number: int, item: str, entry: Any) -> Hypothesis:
        fields = self._mapping(entry, item, _HYPOTHESIS_FIELDS[kind])
        text = self._sentence(fields, item, "hypothesis", end=".")
        question = self._sentence(fields, item, "question", end="?")
        different = slots_of(text) ^ slots_of(question)
        if different:
            raise self._error(
                item, "question", f"must have the slots of the hypothesis; in one only: {', '.join(sorted(different))}"
            )
        if kind == "test":
            label, cognitive_bias = LABELS.index(self._one_of(fields, item, "label", LABELS)), ""
        else:
            label, cognitive_bias = NEUTRAL, self._one_of(fields, item, "cognitive_bias", COGNITIVE_BIASES)
        return Hypothesis(kind, number, text, question, label, cognitive_bias)

    def _check_slot_names(self, forms: Mapping[str, tuple[str, ...]]) -> None:
        if "GROUP" not in forms:
            raise self._error("", "groups", "GROUP is missing")
        for stem, texts in forms.items():
            if not _STEM.fullmatch(stem):
                raise self._error(
                    "", "groups", f"{stem} is not a name: capital letters only (GROUP gives GROUP1 and GROUP2)"
                )
            if len(texts) != 2:
                raise self._error("", "groups", f"{stem} must list two forms, the other group's and the target group's")
        for slot in self.words:
            if slot in self.pro or not SLOT.fullmatch(f"{{{{{slot}}}}}"):
                raise self._error(
                    "",
                    "words",
                    f"{slot} is not a name: capital letters and a digit only, different from a group's slot",
                )

    def _check_every_slot_is_used(self, premises: Sequence[Premise], hypotheses: Sequence[Hypothesis]) -> None:
        texts = [premise.text for premise in premises] + [hypothesis.text for hypothesis in hypotheses]
        used = {slot for text in texts for slot in slots_of(text)}
        # A stereotype need not mention the other group: one of a group's two slots may be unused.
        stems, used_stems = ({slot[:-1] for slot in slots} for slots in (self.pro, used & set(self.pro)))
        for field, unused in (("groups", stems - used_stems), ("words", set(self.words) - used)):
            if unused:
                raise self._error("", field, f"{', '.join(sorted(unused))} is used in no text")

    def _error(self, item: str, field: str, problem: str) -> QabiasError:
        return _place(self.path, item).error(field, problem)

    def _items(self, field: str, name: str) -> list[tuple[str, Any]]:
        """The entries of a list with their names in messages, numbered from 0 as in the table."""
        entries = self.fields[field]
        if not isinstance(entries, list) or not entries:
            raise self._error("", field, f"must be a list with at least one entry, not {entries!r}")
        return [(f"{name} {number}", entry) for number, entry in enumerate(entries)]

    def _mapping(self, entry: Any, item: str, fields: Sequence[str]) -> dict[str, Any]:
        _place(self.path, item).check_names(entry, fields)
        return dict(entry)

    def _lists(self, entry: Any, field: str) -> dict[str, tuple[str, ...]]:
        if not isinstance(entry, dict):
            raise self._error("", field, f"must be a mapping from names to lists of texts, not {entry!r}")
        lists = {}
        for name, texts in entry.items():
            if not isinstance(texts, list) or not all(isinstance(text, str) and text.strip() == text for text in texts):
                raise self._error("", field, f"{name} must be a list of texts without outer spaces, not {texts!r}")
            if len(texts) < 2 or len({text.lower() for text in texts}) < len(texts) or "" in texts:
                raise self._error("", field, f"{name} must list at least two texts, all different: {texts!r}")
            lists[str(name)] = tuple(texts)
        return lists

    def _one_of(self, fields: Mapping[str, Any], item: str, field: str, choices: Sequence[str]) -> str:
        return _place(self.path, item).one_of(fields, field, choices)

    def _text(self, fields: Mapping[str, Any], item: str, field: str, end: str = "") -> str:
        text = _place(self.path, item).text(fields, field, end)
        if text != " ".join(text.split()):
            raise self._error(item, field, f"has an extra space: {text!r}")
        return text

    def _sentence(self, fields: Mapping[str, Any], item: str, field: str, end: str) -> str:
        """A text with slots, at least one of them a group's."""
        text = self._text(fields, item, field, end)
        if re.search("[{}]", SLOT.sub("", text)):
            raise self._error(item, field, f"has a stray brace: {text!r}")
        undefined = slots_of(text) - set(self.pro) - set(self.words)
        if undefined:
            raise self._error(item, field, f"slot {', '.join(sorted(undefined))} is filled by nothing")
        if not slots_of(text) & set(self.pro):
            raise self._error(item, field, f"must hold a group's slot, such as GROUP1: {text!r}")
        if _FALSE_SENTENCE_START.search(text):
            raise self._error(
                item, field, f"small letter or slot after a full stop (write abbreviations in full): {text!r}"
            )
        return text
