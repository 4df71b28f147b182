"""JBBQ (Yanaka et al. 2025): BBQ in Japanese, from files that its authors send to each user."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from qabias.benchmarks.multilingual.benchmark import PublishedQuestions, SetOrigin
from qabias.benchmarks.multilingual.rows import IsTarget, read_items, rows_of, table_of
from qabias.building.sources import mirror_folder
from qabias.errors import QabiasError, arg

FILE = "file"
"""The source of the user's files."""

# Tags for one gender, in letters and in words.
_GENDER_OF_TAG = {"F": "女性", "女の子": "女性", "M": "男性", "男の子": "男性"}

# BBQ's wordings of UNKNOWN.
_UNKNOWN_WORDS = {
    *("unknown", "cannot be determined", "can't be determined", "not answerable", "not known", "not enough info"),
    *("not enough information", "cannot answer", "can't answer", "undetermined"),
}

ASK = "Request it from its authors: https://github.com/ynklab/JBBQ_data"

_FOLDERS = ("", "data", "ynklab/JBBQ_data", "ynklab/JBBQ_data/data")


def _gender(text: str, tag: str, groups: Sequence[str]) -> bool:
    return _GENDER_OF_TAG.get(tag, tag) in {_GENDER_OF_TAG.get(group, group) for group in groups}


TARGETS: Mapping[str, IsTarget] = {
    "Age": lambda text, tag, groups: tag in groups[:1],
    "Disability_status": lambda text, tag, groups: text in groups[:1] or tag in groups[:1],
    "Gender_identity": _gender,
    "Physical_appearance": lambda text, tag, groups: tag in groups[:1],
    "Sexual_orientation": lambda text, tag, groups: tag in groups,
}
"""Membership in the stereotyped group, by category."""

CATEGORIES = tuple(TARGETS)


def says_unknown(text: str, tag: str) -> bool:
    """Whether an answer is UNKNOWN by its words in `answer_info`."""
    return not {text.lower(), tag.lower()}.isdisjoint(_UNKNOWN_WORDS)


def own_folder() -> Path:
    """The folder of the files `CATEGORY.jsonl`."""
    named = mirror_folder()
    if not named:
        raise QabiasError("JBBQ may not be redistributed.", f"{ASK}, then add {arg('mirror')} FOLDER.")
    root = named.parent if named.is_file() else named
    for folder in _FOLDERS:
        if any(file_of(root / folder, category).is_file() for category in CATEGORIES):
            return root / folder
    names = ", ".join(f"{category}.jsonl" for category in CATEGORIES)
    raise QabiasError(f"{named}: JBBQ's files are missing ({names}).", f"{ASK}.")


def file_of(folder: Path, category: str) -> Path:
    """The file of a category."""
    return folder / f"{category}.jsonl"


def digest_of(folder: Path) -> str:
    """SHA-256 in hexadecimal digits of the names and contents of JBBQ's files in a folder."""
    digest = hashlib.sha256()
    for category in CATEGORIES:
        file = file_of(folder, category)
        if file.is_file():
            content = file.read_bytes()
            digest.update(f"{category} {len(content)}\n".encode() + content)
    return digest.hexdigest()


class JapaneseQuestions(PublishedQuestions):
    """BBQ in Japanese (Yanaka et al. 2025); its answers have all orders."""

    sources = (FILE,)
    categories = CATEGORIES

    def origin(self, source: str, seed: int, fixes: bool, **options: str) -> SetOrigin:
        """Find the user's files; the commit is a digest of their content."""
        self.check_source(source, fixes)
        return SetOrigin(source, digest_of(own_folder()), seed, {}, ())

    def table(self, category: str, origin: SetOrigin) -> pa.Table:
        """The rows of one category."""
        path = file_of(own_folder(), category)
        if not path.is_file():
            raise QabiasError(f"{path}: no such file.", f"{ASK}, or use another {arg('config')}.")
        return table_of(rows_of(read_items(path, category, TARGETS[category], says_unknown)))


BENCHMARK = JapaneseQuestions("jbbq")
