"""Reads, checks and fills this project's templates, `templates/<Category>.yaml` (format: `TEMPLATES.md`).

Every problem names file, template and field.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from qabias.building.templating import (
    SLOT,
    Place,
    StableRandom,
    capitalize_sentences,
    fill,
    read_template_file,
    repair_articles,
    slots_of,
)
from qabias.errors import QabiasError
from qabias.support.suggest import did_you_mean

from .examples import FilledTexts, Row, examples, slot_values
from .fixes import fix_feminine
from .pairs import other_group
from .targets import is_target
from .template import CATEGORIES, Form, Pair, Template, label_type
from .vocabulary import Vocabulary, occupations_by_prestige, read_vocabulary

FOLDER = Path(__file__).parent
# Increased when a text changes.
VERSION = "1"


_TEXTS = ("context", "disambiguation")
_QUESTIONS = ("negative", "non_negative")
_QUESTION_FIELDS = ("question", "answer", "statement")
_REQUIRED = ("id", "style", "bias", "groups", "sources", *_TEXTS, *_QUESTIONS)
_OPTIONAL = (
    "subcategory",
    "people",
    "parallel",
    "second_group",
    "gender",
    "descriptions",
    "context_alike",
    "words",
    "append",
    "versions",
)
_STYLES = {
    "Gender_identity": ("words", "labels", "names"),
    "Race_ethnicity": ("labels", "names"),
    "SES": ("words", "occupations", "names"),
    "Nationality": ("labels",),
    "Religion": ("labels",),
    "Sexual_orientation": ("labels",),
    "Race_x_gender": ("labels", "names"),
    "Race_x_SES": ("labels", "names"),
}
FORM = Form(
    categories=CATEGORIES,
    is_target=is_target,
    styles=_STYLES,
    other_styles=("words",),
    optional=_OPTIONAL,
    second_groups={"Race_x_gender": ("F", "M"), "Race_x_SES": ("lowSES", "highSES")},
)
"""What the bundled template files may hold."""


def generate(category: str, *, seed: int, folder: Path = FOLDER) -> Iterator[Row]:
    """Yield the examples of one category from the bundled templates.

    Args:
        category: Name of the category.
        seed: Seed of the random draws.
        folder: Dataset folder with `templates/` and `vocabulary/`.

    Raises:
        QabiasError: If a template file is missing or wrong.
    """
    streams, vocabulary = read_streams(category, seed=seed, folder=folder)
    yield from examples(streams, vocabulary, fill_texts)


def read_streams(
    category: str, *, seed: int, folder: Path = FOLDER
) -> tuple[list[tuple[Template, StableRandom]], Vocabulary]:
    """Read a category's template versions, each with its random stream, and the vocabulary."""
    vocabulary = read_vocabulary(folder / "vocabulary")
    streams = [
        (template, StableRandom("bbq", "bundled", category, template.question_index, template.version, seed))
        for template in read_templates(category, vocabulary, folder)
    ]
    return streams, vocabulary


def fill_english(text: str, values: Mapping[str, str]) -> str:
    """Fill a text in correct English: articles, sentence starts, agreement of labels and nouns."""
    return capitalize_sentences(repair_articles(fix_feminine(fill(text, values))))


def fill_texts(template: Template, pair: Pair) -> FilledTexts:
    """Fill the texts of a template in correct English."""
    values = slot_values(pair)

    def filled(text: str) -> str:
        return fill_english(text, values)

    context = filled(template.context_of(pair))
    return FilledTexts(
        context=context,
        disambiguated_context=f"{context} {filled(template.disambiguation)}",
        negative_question=filled(template.negative_question),
        negative_answer=filled(template.negative_answer),
        non_negative_question=filled(template.non_negative_question),
        non_negative_answer=filled(template.non_negative_answer),
        source=template.source,
    )


def read_templates(category: str, vocabulary: Vocabulary, folder: Path = FOLDER, form: Form = FORM) -> list[Template]:
    """Read and check the template file of a category, one `Template` per version.

    Args:
        category: Name of the category.
        vocabulary: The words that templates draw from.
        folder: Folder with `templates/`.
        form: What the files may hold.

    Raises:
        QabiasError: If the file is missing or not YAML, or a template breaks the format.
    """
    path = folder / "templates" / f"{category}.yaml"
    content = read_template_file(path, f"choose one of {', '.join(form.categories)}")
    if not isinstance(content, dict) or set(content) != {"category", "templates"}:
        raise QabiasError(f"{path}: wrong top-level keys", "use exactly the keys 'category' and 'templates'")
    if content["category"] != category:
        problem = f"{path}: category is {content['category']!r}, but the file name has {category!r}"
        raise QabiasError(problem, "use one name for both")
    templates: list[Template] = []
    last_id = 0
    if not isinstance(content["templates"], list) or not content["templates"]:
        raise QabiasError(f"{path}: templates is not a list", "list at least one template")
    for entry in content["templates"]:
        reader = _EntryReader(path, category, entry, vocabulary, form)
        if reader.id <= last_id:
            raise reader.error("id", f"{reader.id} follows {last_id}, but ids must be unique and in rising order")
        last_id = reader.id
        templates += reader.versions()
    return templates


class _EntryReader:
    """Turns one entry of a template file into templates, checking every field."""

    def __init__(self, path: Path, category: str, entry: Any, vocabulary: Vocabulary, form: Form):
        self.path, self.category, self.vocabulary, self.form = path, category, vocabulary, form
        self.entry: dict[str, Any] = entry
        is_numbered = isinstance(entry, dict) and isinstance(entry.get("id"), int)
        self.id: int = entry["id"] if is_numbered else 0
        self.place = Place(f"{path}: template {self.id}", "Correct this field. Format: bbq_dataset/TEMPLATES.md")
        self.error = self.place.error
        if not isinstance(entry, dict):
            raise self.error("", f"a template must be a mapping, not {entry!r}")
        if not is_numbered:
            raise self.error("id", f"must be a whole number, not {entry.get('id')!r}")

    def versions(self) -> list[Template]:
        """The versions of the template, from `versions` or its style."""
        self.place.check_names(self.entry, _REQUIRED, self.form.optional)
        versions = self.entry.get("versions")
        if versions is None:
            # Both orders of the two lists; the other styles exchange the people pair by pair.
            tags = list(self.entry["people"]) if self.entry["style"] == "words" and "people" in self.entry else []
            versions = [{"version": letter, "first": tag} for letter, tag in zip("ab", tags, strict=False)] or [
                {"version": "None"}
            ]
        if not isinstance(versions, list) or not all(isinstance(version, dict) for version in versions):
            raise self.error("versions", "must be a list of mappings with 'version' and 'first'")
        letters = [version.get("version") for version in versions]
        if len(set(letters)) != len(letters) or not all(isinstance(letter, str) for letter in letters):
            raise self.error("versions", f"every version needs its own letter, found {letters}")
        return [self._template(version) for version in versions]

    def _template(self, version: Mapping[str, Any]) -> Template:
        overrides = {key: value for key, value in version.items() if key not in ("version", "first")}
        fields = {**self.entry, **overrides}
        self.place.check_names(fields, _REQUIRED, self.form.optional)
        style = self.place.one_of(fields, "style", self.form.styles.get(self.category, self.form.other_styles))
        groups = self._strings(fields, "groups")
        descriptions = self._descriptions(fields)
        tags, people = self._people(fields, style, version.get("first"), descriptions)
        words = self._word_lists(fields, "words") if "words" in fields else {}
        second_group = ""
        if self.category in self.form.second_groups:
            second_group = self.place.one_of(fields, "second_group", self.form.second_groups[self.category])
        questions = {name: self._question(fields, name) for name in _QUESTIONS}
        template = Template(
            category=self.category,
            question_index=self.id,
            version=str(version["version"]),
            style=style,  # type: ignore[arg-type]  # checked by `Place.one_of`
            subcategory=self.place.text(fields, "subcategory") if "subcategory" in fields else "None",
            groups=groups,
            second_group=second_group,
            source=" | ".join(self._strings(fields, "sources")),
            bias=self.place.text(fields, "bias"),
            context=self.place.text(fields, "context"),
            disambiguation=self.place.text(fields, "disambiguation"),
            negative_question=questions["negative"]["question"],
            negative_answer=questions["negative"]["answer"],
            negative_statement=questions["negative"].get("statement", ""),
            non_negative_question=questions["non_negative"]["question"],
            non_negative_answer=questions["non_negative"]["answer"],
            non_negative_statement=questions["non_negative"].get("statement", ""),
            context_alike=self.place.text(fields, "context_alike") if "context_alike" in fields else "",
            people=people,
            parallel=self._parallel(fields, style, people),
            tags=tags,
            descriptions=descriptions,
            gender=self.place.one_of(fields, "gender", ("F", "M")) if "gender" in fields else "",
            words=words,
            append=self._append(fields) if "append" in fields else {},
            label_type=self._label_type(style),
            origin=f"{self.path.name} template {self.id}",
        )
        self._check_slots(template)
        if template.context_alike:
            self._check_alike(template)
        self._check_targets(template)
        return template

    def _label_type(self, style: str) -> Literal["name", "label"]:
        has_names = style == "names"
        if self.form.has_published_numbers:
            return label_type(self.category, self.id, has_names)
        return "name" if has_names else "label"

    def _strings(self, fields: Mapping[str, Any], name: str) -> tuple[str, ...]:
        values = fields.get(name)
        if not isinstance(values, list) or not values or not all(isinstance(v, str) and v.strip() for v in values):
            raise self.error(name, f"must be a list of texts, not {values!r}")
        if len(set(values)) != len(values):
            raise self.error(name, f"lists an entry twice: {values!r}")
        return tuple(values)

    def _word_lists(self, fields: Mapping[str, Any], name: str) -> dict[str, tuple[str, ...]]:
        lists = fields.get(name)
        if not isinstance(lists, dict) or not lists:
            raise self.error(name, f"must map names to lists of texts, not {lists!r}")
        return {str(key): self._strings(lists, key) for key in lists}

    def _question(self, fields: Mapping[str, Any], name: str) -> dict[str, str]:
        question = fields.get(name)
        needed = set(_QUESTION_FIELDS) - (set() if self.form.needs_statements else {"statement"})
        if not isinstance(question, dict) or not needed <= set(question) <= set(_QUESTION_FIELDS):
            raise self.error(name, f"must hold exactly {', '.join(_QUESTION_FIELDS)}")
        return {key: self.place.text(question, key) for key in _QUESTION_FIELDS if key in question}

    def _descriptions(self, fields: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
        if fields.get("descriptions") == "occupations":
            return occupations_by_prestige(self.vocabulary)
        return self._word_lists(fields, "descriptions") if "descriptions" in fields else {}

    def _append(self, fields: Mapping[str, Any]) -> dict[str, str]:
        """The two ambiguous extensions of the context: a clause, and sentences after it."""
        append = fields["append"]
        if self.category != "Gender_identity":
            raise self.error("append", "is for Gender_identity only, the category of the context-length study")
        if not isinstance(append, dict) or set(append) != {"short", "long"}:
            raise self.error("append", "must hold exactly short, long")
        texts = {length: self.place.text(append, length) for length in ("short", "long")}
        if not texts["short"].startswith(", ") or not texts["long"][0].isupper():
            raise self.error("append", "short must begin with a comma and a space, long with a capital letter")
        if not all(text.endswith(".") for text in (*texts.values(), self.place.text(fields, "context"))):
            raise self.error("append", "short, long and the context must end with a full stop")
        known = set(fields.get("words", ()))
        for length, text in texts.items():
            if slots_of(text) - known:
                raise self.error(
                    "append", f"{length} must not name a person: slot {', '.join(sorted(slots_of(text) - known))}"
                )
        return texts

    def _people(
        self, fields: Mapping[str, Any], style: str, first: str | None, descriptions: Mapping[str, tuple[str, ...]]
    ) -> tuple[tuple[str, str], tuple[tuple[str, ...], tuple[str, ...]]]:
        """The tags of slots 1 and 2, and the phrases that fill them in style `words`."""
        if style == "words":
            lists = self._word_lists(fields, "people")
        elif descriptions and self.category not in self.form.second_groups:
            lists = dict.fromkeys(descriptions, ())
        else:
            return ("", ""), ((), ())
        if len(lists) != 2:
            raise self.error("people", f"must hold exactly two groups, found {list(lists)}")
        tags = list(lists)
        if first is not None and first not in tags:
            raise self.error("versions", f"first is {first!r}, but the groups are {tags}")
        if first == tags[1]:
            tags.reverse()
        return (tags[0], tags[1]), (lists[tags[0]], lists[tags[1]])

    def _parallel(self, fields: Mapping[str, Any], style: str, people: tuple[tuple[str, ...], tuple[str, ...]]) -> bool:
        """Whether the two lists of people are compared entry by entry."""
        parallel = fields.get("parallel", False)
        if not isinstance(parallel, bool):
            raise self.error("parallel", f"must be true or false, not {parallel!r}")
        if parallel and style != "words":
            raise self.error("parallel", f"is for style words only, not {style}")
        if parallel and len(people[0]) != len(people[1]):
            raise self.error(
                "people", f"parallel lists must be as long as each other, not {len(people[0])} and {len(people[1])}"
            )
        return parallel

    def _check_slots(self, template: Template) -> None:
        known = {"NAME1", "NAME2", *template.words} | ({"DESC1", "DESC2"} if template.descriptions else set())
        texts = {
            "context": template.context,
            "context_alike": template.context_alike,
            "disambiguation": template.disambiguation,
            "negative.question": template.negative_question,
            "negative.answer": template.negative_answer,
            "negative.statement": template.negative_statement,
            "non_negative.question": template.non_negative_question,
            "non_negative.answer": template.non_negative_answer,
            "non_negative.statement": template.non_negative_statement,
        }
        for field, text in texts.items():
            if text or self.form.needs_statements:
                self._check_text(field, text, known | {"ANSWER"} if field.endswith("statement") else known)
        if not {"NAME1", "NAME2"} <= slots_of(template.context):
            raise self.error("context", "must name both people ({{NAME1}} and {{NAME2}})")
        answered = [
            slots_of(answer) & {"NAME1", "NAME2"} for answer in (template.negative_answer, template.non_negative_answer)
        ]
        if any(len(slots) != 1 for slots in answered) or answered[0] == answered[1]:
            raise self.error("negative.answer", "the two answers must name one person each, and not the same one")
        unused = known.difference(*map(slots_of, texts.values())) - {"DESC1", "DESC2"}
        if unused:
            raise self.error("words", f"{', '.join(sorted(unused))} is used in no text")

    def _check_alike(self, template: Template) -> None:
        """The context for two people with one description names it once, and keeps the usual order."""
        if template.style != "names" or not template.descriptions:
            raise self.error("context_alike", "is for style names with descriptions only")
        slots = Counter(SLOT.findall(template.context_alike))
        if any(slots[slot] != 1 for slot in ("NAME1", "NAME2", "DESC1")) or "DESC2" in slots:
            raise self.error(
                "context_alike", "must hold {{NAME1}}, {{NAME2}} and {{DESC1}} once each, and no {{DESC2}}"
            )
        is_first = {
            text.index("{{NAME1}}") < text.index("{{NAME2}}") for text in (template.context, template.context_alike)
        }
        if len(is_first) != 1:
            raise self.error("context_alike", "must name the people in the same order as the context")

    def _check_text(self, field: str, text: str, slots: set[str]) -> None:
        """A text holds only known slots, and ends as its field requires."""
        undefined = slots_of(text) - slots
        if undefined:
            raise self.error(field, f"slot {', '.join(sorted(undefined))} is filled by nothing")
        if re.search("[{}]", fill(text, dict.fromkeys(slots, ""))):
            raise self.error(field, f"has a stray brace: {text!r}")
        if field.endswith("statement") and (text.count("{{ANSWER}}") != 1 or not text.endswith(".")):
            raise self.error(field, "must hold {{ANSWER}} once and end with a full stop")
        if field.endswith("question") and not text.endswith(self.form.question_marks):
            raise self.error(field, "must end with a question mark")

    def _check_targets(self, template: Template) -> None:
        """Exactly one of the two people must be a member of the stereotyped group."""
        if self.category in self.form.second_groups:
            needed = {template.second_group, other_group(template.second_group)}
            if template.descriptions and set(template.descriptions) != needed:
                raise self.error("descriptions", f"must describe {sorted(needed)}, found {list(template.descriptions)}")
        if any(template.tags):
            targets = [
                tag
                for tag in template.tags
                if self.form.is_target(template.category, "", _full_tag(template, tag), template.groups)
            ]
            if len(targets) != 1:
                raise self.error("groups", f"{list(template.groups)} must match exactly one of {list(template.tags)}")
        if template.style == "labels" and template.category != "Gender_identity":
            labels = "Race_ethnicity" if self.category in self.form.second_groups else template.category
            words = [label.word for label in self.vocabulary.labels.get(labels, ())]
            # A published template lists a nationality that the published vocabulary lacks.
            unknown = [group for group in template.groups if group not in words]
            if unknown and not (self.form.has_published_numbers and len(unknown) < len(template.groups)):
                close = did_you_mean(unknown[0], words)
                raise self.error("groups", f"{unknown[0]!r} is no label of {labels} in vocabulary/labels.csv.{close}")


def _full_tag(template: Template, tag: str) -> str:
    return f"{tag}_F" if template.category == "Gender_identity" and template.style == "names" else tag
