"""A user's folder of templates, in any language, as a benchmark without code."""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from qabias.benchmarks.multilingual.benchmark import ALL, PublishedQuestions, SetOrigin
from qabias.benchmarks.multilingual.folder import Card
from qabias.benchmarks.multilingual.language import ISO_639_1, Language, load_language, read_language
from qabias.benchmarks.multilingual.rows import Answer, Item, Row, rows_of, table_of
from qabias.benchmarks.prompt_format import Example
from qabias.benchmarks.registry import BENCHMARK_FILE, benchmark_names
from qabias.building.origin import LICENCES, NO_LICENCE
from qabias.building.templating import StableRandom, fill, read_yaml
from qabias.errors import QabiasError
from qabias.share.bbq_dataset import bundled as _bundled
from qabias.share.bbq_dataset import examples as _examples
from qabias.share.bbq_dataset import pairs as _pairs
from qabias.share.bbq_dataset import template as _template
from qabias.share.bbq_dataset import vocabulary as _vocabulary
from qabias.support.files import MOST_BYTES, require_regular_file
from qabias.support.printable import refuse_control
from qabias.support.suggest import did_you_mean, shortened, unknown

if TYPE_CHECKING:
    from qabias.share.bbq_dataset.template import Pair, Template
    from qabias.share.bbq_dataset.vocabulary import Vocabulary


LANGUAGE_FILE = "language.yaml"
TEMPLATES, LABELS = "templates", "vocabulary/labels.csv"
STYLES = ("words", "labels")
_OPTIONAL_OF_TEMPLATES = ("subcategory", "people", "words", "versions")
_QUESTION_MARKS = ("?", "？", "؟", "՞", "።", ";", "\u037e")
_SENTENCE_START = re.compile(r"(^|[.!?]['\"»”]?\s+)([¿¡«“'\"]*\w)")
_UNKNOWN = 2
"""Number of the UNKNOWN answer before shuffling."""

_NEEDED = ("name", "title", "language", "society", "purpose", "authors", "created", "unknown")
_OPTIONAL = ("categories", "licence", "homepage", "citation", "making", "limitations")
_LISTS = ("unknown", "categories", "limitations")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_OTHER_LANGUAGE = re.compile(r"[a-z]{3}")
_ADDRESS = re.compile(r"https?://[^\s<>]+")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


class TemplateQuestions(PublishedQuestions):
    """A folder of templates."""

    sources: Sequence[str] = (TEMPLATES,)
    options: Mapping[str, Sequence[str]] = MappingProxyType({})

    def __init__(self, folder: Path, digest: str) -> None:
        self._digest = digest
        fields = _read_description(folder)
        self.categories = _categories(folder, fields.get("categories"))
        self._language = _language(folder, fields["language"])
        self._unknown: Sequence[str] = fields["unknown"]
        labels = _vocabulary.read_labels(folder / LABELS) if (folder / LABELS).exists() else {}
        self._words: Vocabulary = _vocabulary.Vocabulary(labels, ())
        self._templates = _read_templates(folder, self.categories, self._words)
        super().__init__(fields["name"], _card(fields, self._language))

    def commit(self) -> str:
        """The digest of the files."""
        return self._digest

    def language_of(self, example: Example) -> Language:
        """The language of all examples."""
        return self._language

    def table(self, category: str, origin: SetOrigin) -> pa.Table:
        """The examples of a category, drawn from its templates by the seed."""
        return table_of(self._rows(category, origin.seed))

    def _rows(self, category: str, seed: int) -> Iterator[Row]:
        example_id = 0
        for template_id, versions in groupby(self._templates[category], lambda template: template.template_id):
            random = StableRandom(self.name, TEMPLATES, seed, template_id)
            items = [item for version in versions for item in _items(version, self._words, random, self._language.code)]
            for row in rows_of(items, random, partial(random.choice, self._unknown)):
                yield {**row, "example_id": example_id}
                example_id += 1


def load(folder: Path) -> TemplateQuestions:
    """The benchmark of a folder, read again after a change."""
    if not (folder / BENCHMARK_FILE).is_file():
        raise QabiasError(
            f"{folder / BENCHMARK_FILE} does not exist in {Path.cwd()}.",
            "Correct the path, or change to the folder of the run's command.",
        )
    return _load(folder, digest_of(folder))


def digest_of(folder: Path) -> str:
    """SHA-1 of the files of a folder with their names, 40 hexadecimal digits."""
    paths = [folder / BENCHMARK_FILE, folder / LANGUAGE_FILE, folder / LABELS, *(folder / TEMPLATES).glob("*.yaml")]
    digest = hashlib.sha1(usedforsecurity=False)
    for path in sorted(path for path in paths if path.exists()):
        content = require_regular_file(path, MOST_BYTES).read_bytes()
        digest.update(f"{path.relative_to(folder).as_posix()}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


@lru_cache(maxsize=8)
def _load(folder: Path, digest: str) -> TemplateQuestions:
    return TemplateQuestions(folder, digest)


def _read_description(folder: Path) -> dict[str, Any]:
    """The fields of `benchmark.yaml`, checked."""
    path = folder / BENCHMARK_FILE
    known = (*_NEEDED, *_OPTIONAL)
    try:
        fields = read_yaml(path)
    except OSError as error:
        raise QabiasError(f"{path}: cannot be read: {error.strerror}", "Make it readable.") from error
    if not isinstance(fields, dict):
        raise QabiasError(f"{path}: not a mapping of fields to values.", f"Add {', '.join(_NEEDED)}.")
    for name in fields:
        if name not in known:
            meant = did_you_mean(str(name), known)
            raise QabiasError(f"{path}: {shortened(name)} is not a field{meant}.", f"Use {', '.join(known)}.")
    for name in _NEEDED:
        if name not in fields:
            raise QabiasError(f"{path}: field {name} is missing.", f"Add all of {', '.join(_NEEDED)}.")
    # YAML reads 2026-11-22 as a date.
    fields["created"] = str(fields["created"])
    for name, value in fields.items():
        texts = [value] if name not in _LISTS else value if isinstance(value, list) else []
        are_texts = texts and all(isinstance(text, str) and text.strip() for text in texts)
        if not are_texts or len(set(texts)) < len(texts):
            kind = "a list of different texts" if name in _LISTS else "a text"
            raise QabiasError(f"{path}: field {name} is {shortened(value)}.", f"Write {kind}.")
    name, language = fields["name"], fields["language"]
    licences = ", ".join(licence for licence, terms in LICENCES.items() if terms.allows)
    codes = "Use a code of ISO 639-1, such as 'it', or else of ISO 639-3, such as 'scn'"
    checks = (
        ("name", _NAME.fullmatch(name), "Use only a to z, digits, - and _"),
        ("name", name not in benchmark_names(), "Another benchmark has this name: use another"),
        ("language", language in ISO_639_1 or _OTHER_LANGUAGE.fullmatch(language), codes),
        ("created", _DATE.fullmatch(fields["created"]), "Write a date as 2026-01-31"),
        ("licence", fields.get("licence", NO_LICENCE) in LICENCES, f"Use one of {licences}, or remove the field"),
        ("homepage", _ADDRESS.fullmatch(fields.get("homepage", "https://none")), "Use an http or https address"),
        ("categories", ALL not in fields.get("categories", ()), f"Rename the category {ALL!r}"),
    )
    for field, is_right, advice in checks:
        if not is_right:
            raise QabiasError(f"{path}: field {field} is {fields[field]!r}.", f"{advice}.")
    return fields


def _categories(folder: Path, listed: Sequence[str] | None) -> Sequence[str]:
    """The categories in order: names of files in `templates`, never paths."""
    categories = sorted(path.stem for path in (folder / TEMPLATES).glob("*.yaml"))
    for name in categories:
        refuse_control(name, str(folder / TEMPLATES))
    if not categories or ALL in categories:
        why = f"{ALL!r} is not a category name" if categories else "no CATEGORY.yaml"
        raise QabiasError(
            f"{folder / TEMPLATES}: {why}.", "Add one file per category with the keys category and templates."
        )
    for name in listed or ():
        if name not in categories:
            raise unknown(f"category in {folder / BENCHMARK_FILE}", name, categories)
    return listed or categories


def _language(folder: Path, code: str) -> Language:
    path = folder / LANGUAGE_FILE
    if path.exists():
        return replace(read_language(path), code=code)
    try:
        return load_language(code)
    except QabiasError as error:
        raise QabiasError(
            f"{folder / BENCHMARK_FILE}: field language: {error.args[0]}",
            f"Use a known language, or add {path} with its words.",
        ) from error


def _card(fields: Mapping[str, Any], language: Language) -> Card:
    title, authors, year = fields["title"], fields["authors"], fields["created"][:4]
    entry = {"title": title, "author": authors, "year": year}
    bibtex = ",\n".join([f"@misc{{{fields['name']}", *(f"  {name} = {{{text}}}" for name, text in entry.items())])
    making = "The authors wrote the templates; each names the source that documents the stereotype."
    return Card(
        *(title, title, (language.code,), language.name, fields["society"], authors, fields["purpose"].strip()),
        homepage=fields.get("homepage", ""),
        paper="",
        citation=html.escape(f"{authors}: {title} ({year})"),
        bibtex=fields.get("citation", f"{bibtex}\n}}"),
        making=fields.get("making", making),
        licence=fields.get("licence", NO_LICENCE),
        defects=tuple(fields.get("limitations", ())),
    )


def is_target(category: str, text: str, info: str, groups: Sequence[str]) -> bool:
    """Whether a person is in the stereotyped group, by tag or label."""
    return info in groups or text in groups


def _read_templates(folder: Path, categories: Sequence[str], words: Vocabulary) -> dict[str, list[Template]]:
    form = _template.Form(
        categories=tuple(categories),
        is_target=is_target,
        styles={},
        other_styles=STYLES,
        optional=_OPTIONAL_OF_TEMPLATES,
        second_groups={},
        needs_statements=False,
        question_marks=_QUESTION_MARKS,
        has_published_numbers=False,
    )
    return {category: _bundled.read_templates(category, words, folder, form) for category in categories}


def _items(template: Template, words: Vocabulary, random: StableRandom, code: str) -> Iterator[Item]:
    """Both questions of every set, each with both contexts."""
    if template.style == "words":
        pairs = list(_pairs.words_pairs(template, random))
    else:
        pairs = list(_pairs.with_flips(_pairs.label_pairs(template, words, random)))
    if not pairs:
        raise QabiasError(
            f"{template.origin}: {LABELS} has no label of {template.category} outside the groups "
            f"{list(template.groups)}.",
            "Add one.",
        )
    for number, pair in enumerate(pairs):
        yield from _set_of_four(template, pair, number, code)


def _set_of_four(template: Template, pair: Pair, number: int, code: str) -> Iterator[Item]:
    values = _examples.slot_values(pair)
    texts = (template.context, template.disambiguation, template.negative_answer, template.non_negative_answer)
    context, facts, *persons = (_with_capitals(fill(text, values), code) for text in texts)
    people = [pair.first if "{{NAME1}}" in text else pair.second for text in texts[2:]]
    answers = [Answer(text, person.info) for text, person in zip(persons, people, strict=True)]
    targets = [is_target(template.category, person.name, person.info, template.groups) for person in people]
    for negative, question in ((True, template.negative_question), (False, template.non_negative_question)):
        for ambiguous in (True, False):
            yield Item(
                category=template.category,
                template=f"{template.question_index:02d}",
                set=f"{template.version}/{number}",
                negative=negative,
                ambiguous=ambiguous,
                context=context if ambiguous else f"{context} {facts}",
                question=_with_capitals(fill(question, values), code),
                answers=(*answers, Answer("", "unknown")),
                right=_UNKNOWN if ambiguous else (0 if negative else 1),
                target=targets.index(True),
                unknown=_UNKNOWN,
                stereotype=template.bias,
                groups=template.groups,
                label_type=template.label_type,
                subcategory=template.subcategory,
                version=template.version,
                source=template.source,
            )


def _with_capitals(text: str, code: str) -> str:
    """Capitalize every sentence by the rules of the language."""

    def capital(match: re.Match[str]) -> str:
        letter = match[2][-1]
        # In Turkish and Azerbaijani the capital of i has a dot.
        upper = "İ" if letter == "i" and code in ("tr", "az") else letter.title()
        return f"{match[1]}{match[2][:-1]}{upper}"

    return _SENTENCE_START.sub(capital, text)
