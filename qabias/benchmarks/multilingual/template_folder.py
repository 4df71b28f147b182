"""A user's own folder of templates, in any language, as a benchmark without code.

FOLDER/benchmark.yaml          what the benchmark is called, in which language it is, what it is for
FOLDER/templates/CATEGORY.yaml templates, as `TEMPLATES.md` of the bundled ones describes them
FOLDER/vocabulary/labels.csv   labels, for templates of the style `labels`
FOLDER/language.yaml           the words around a question, for a language that this package does not have
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import yaml

from qabias.benchmarks.about import About
from qabias.benchmarks.multilingual.benchmark import ALL, PublishedQuestions, SetOrigin, set_facts
from qabias.benchmarks.multilingual.filling import LABELS, TEMPLATES, read_own, read_words, rows_of_templates
from qabias.benchmarks.multilingual.formats import formats_in
from qabias.benchmarks.multilingual.language import ISO_639_1, Language, load_language, read_language
from qabias.benchmarks.multilingual.rows import table_of
from qabias.benchmarks.prompt_format import Example
from qabias.benchmarks.registry import BENCHMARK_FILE, benchmark_names
from qabias.building.licences import LICENCES, NO_LICENCE
from qabias.building.templating import read_utf8
from qabias.errors import QabiasError
from qabias.support.suggest import did_you_mean

LANGUAGE_FILE = "language.yaml"
_TEXTS = ("name", "title", "language", "society", "purpose", "authors", "created")
_LISTS = ("unknown",)
_OPTIONAL = ("categories", "licence", "homepage", "citation", "making", "limitations")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_OTHER_LANGUAGE = re.compile(r"[a-z]{3}")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


class TemplateQuestions(PublishedQuestions):
    """A folder of templates."""

    sources: Sequence[str] = (TEMPLATES,)
    options: Mapping[str, Sequence[str]] = MappingProxyType({})
    repository = ""

    def __init__(self, folder: Path, digest: str) -> None:
        self._digest = digest
        said = _read_description(folder)
        self.name, self.title = said["name"], said["title"]
        self.categories = said.get("categories") or _categories(folder)
        self.configs = (*self.categories, ALL)
        self._language = _language(folder, said["language"])
        self._unknown: Sequence[str] = said["unknown"]
        self._words = read_words(folder)
        self._templates = read_own(folder, self.categories)
        self.formats = formats_in(self.language_of)
        self.about = _about(said, self._language)
        self.facts = set_facts(self.name, self.title, f"{said['authors']}: {said['title']} ({said['created'][:4]})")

    def commit(self) -> str:
        """The digest of the files, in place of a commit."""
        return self._digest

    def language_of(self, example: Example) -> Language:
        """The language of all examples."""
        return self._language

    def table(self, category: str, origin: SetOrigin) -> pa.Table:
        """The examples of a category, made of its templates with the draws of the seed."""
        parts = (self.name, TEMPLATES, origin.seed)
        drawn = rows_of_templates(self._templates[category], self._words, self._unknown, parts, self._language.code)
        return table_of(drawn)


def load(folder: Path) -> TemplateQuestions:
    """The benchmark of a folder; it is read anew when a file in it has changed."""
    if not (folder / BENCHMARK_FILE).is_file():
        raise QabiasError(
            f"{folder}: no folder of templates: {folder / BENCHMARK_FILE} does not exist (looked for in {Path.cwd()}); "
            "correct the path, or call from the folder that it starts from: a run finds its templates by the path as "
            "it was given"
        )
    return _load(folder, digest_of(folder))


def digest_of(folder: Path) -> str:
    """SHA-1 of the files of a folder with their names, 40 hexadecimal digits."""
    paths = [folder / BENCHMARK_FILE, folder / LANGUAGE_FILE, folder / LABELS, *(folder / TEMPLATES).glob("*.yaml")]
    digest = hashlib.sha1(usedforsecurity=False)
    for path in sorted(path for path in paths if path.exists()):
        try:
            content = path.read_bytes()
        except OSError as error:
            raise QabiasError(f"cannot read {path}: {error}") from error
        digest.update(f"{path.relative_to(folder).as_posix()}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


@lru_cache(maxsize=8)
def _load(folder: Path, digest: str) -> TemplateQuestions:
    return TemplateQuestions(folder, digest)


def _read_description(folder: Path) -> dict[str, Any]:
    """The fields of `benchmark.yaml`, checked."""
    path = folder / BENCHMARK_FILE
    try:
        said = yaml.safe_load(read_utf8(path))
    except (OSError, yaml.YAMLError) as error:
        raise QabiasError(f"{path}: cannot be read: {' '.join(str(error).split())}") from error
    if not isinstance(said, dict):
        raise QabiasError(f"{path}: must hold fields and their values, such as {', '.join(_TEXTS)}")
    known = (*_TEXTS, *_LISTS, *_OPTIONAL)
    for name in said:
        if name not in known:
            raise QabiasError(f"{path}: {name!r} is not a field{did_you_mean(str(name), known)}")
    for name in (*_TEXTS, *_LISTS):
        if name not in said:
            raise QabiasError(f"{path}: field {name} is missing; it needs {', '.join((*_TEXTS, *_LISTS))}")
    # YAML reads 2026-11-22 as a date.
    said["created"] = str(said["created"])
    for name in (*_TEXTS, *(name for name in _OPTIONAL if name in said)):
        value = said[name]
        if name in ("categories", "limitations"):
            _check_list(path, name, value)
        elif not isinstance(value, str) or not value.strip():
            raise QabiasError(f"{path}: field {name} must be a text, not {value!r}")
    for name in _LISTS:
        _check_list(path, name, said[name])
    _check_values(path, said)
    return said


def _check_values(path: Path, said: Mapping[str, Any]) -> None:
    if not _NAME.fullmatch(said["name"]):
        raise QabiasError(f"{path}: field name is {said['name']!r}; use small letters a to z, digits, - and _")
    if said["name"] in benchmark_names():
        raise QabiasError(f"{path}: field name is {said['name']!r}, which is another benchmark's; choose another name")
    if said["language"] not in ISO_639_1 and not _OTHER_LANGUAGE.fullmatch(said["language"]):
        raise QabiasError(
            f"{path}: field language is {said['language']!r}; write a code of ISO 639-1 such as 'it', or one of ISO "
            "639-3 such as 'scn' where that has none"
        )
    if not _DATE.fullmatch(said["created"]):
        raise QabiasError(f"{path}: field created is {said['created']!r}; write a date as 2026-01-31")
    if said.get("licence", NO_LICENCE) not in LICENCES:
        known = [name for name, licence in LICENCES.items() if licence.allows]
        raise QabiasError(
            f"{path}: field licence is {said['licence']!r}; known are {', '.join(known)}; without one leave it out"
        )
    if ALL in said.get("categories", ()):
        raise QabiasError(f"{path}: field categories: {ALL!r} is the name of all of them together; choose another")


def _check_list(path: Path, name: str, value: object) -> None:
    texts = value if isinstance(value, list) else []
    if not texts or not all(isinstance(text, str) and text.strip() for text in texts) or len(set(texts)) < len(texts):
        raise QabiasError(f"{path}: field {name} must be a list of different texts, not {value!r}")


def _categories(folder: Path) -> list[str]:
    found = sorted(path.stem for path in (folder / TEMPLATES).glob("*.yaml"))
    if not found or ALL in found:
        why = f"a category cannot be called {ALL!r}" if found else "it holds no CATEGORY.yaml"
        raise QabiasError(f"{folder / TEMPLATES}: {why}; every category is a file with the keys category and templates")
    return found


def _language(folder: Path, code: str) -> Language:
    path = folder / LANGUAGE_FILE
    if path.exists():
        return replace(read_language(path), code=code)
    try:
        return load_language(code)
    except QabiasError as error:
        raise QabiasError(
            f"{folder / BENCHMARK_FILE}: field language: {error}; or add {path} with its words"
        ) from error


def _about(said: Mapping[str, Any], language: Language) -> About:
    fields = {"title": said["title"], "author": said["authors"], "year": said["created"][:4]}
    entry = ",\n".join([f"@misc{{{said['name']}", *(f"  {name} = {{{text}}}" for name, text in fields.items())])
    return About(
        name=said["title"],
        codes=(language.code,),
        languages=language.name,
        society=said["society"],
        authors=said["authors"],
        created=said["created"],
        summary=said["purpose"].strip(),
        homepage=said.get("homepage", ""),
        paper="",
        bibtex=said.get("citation", f"{entry}\n}}"),
        making=said.get(
            "making", "The authors wrote the templates; each names the source that documents the stereotype."
        ),
        licence=said.get("licence", NO_LICENCE),
        defects=tuple(said.get("limitations", ())),
    )
