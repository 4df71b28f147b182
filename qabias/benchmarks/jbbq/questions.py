"""JBBQ for the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from qabias.benchmarks.jbbq import JBBQ
from qabias.benchmarks.jbbq.about import ABOUT
from qabias.benchmarks.jbbq.files import ASK, CATEGORIES, digest_of, file_of, folder_of
from qabias.benchmarks.multilingual.benchmark import ALL, PublishedQuestions, SetOrigin, set_facts
from qabias.benchmarks.multilingual.formats import formats_in
from qabias.benchmarks.multilingual.jsonl import IsTarget, read_items
from qabias.benchmarks.multilingual.language import Language, load_language
from qabias.benchmarks.multilingual.rows import rows_of, table_of
from qabias.benchmarks.prompt_format import Example
from qabias.errors import QabiasError

CITATION = (
    "Hitomi Yanaka, Namgi Han, Ryoma Kumon, Jie Lu, Masashi Takeshita, Ryo Sekizawa, Taisei Katô and Hiromi Arai "
    "(2025). JBBQ: Japanese bias benchmark for analyzing social biases in large language models. "
    "<cite>Proceedings of the 6th Workshop on Gender Bias in Natural Language Processing</cite>, 1–17. "
    '<a href="https://aclanthology.org/2025.gebnlp-1.1/">2025.gebnlp-1.1</a>'
)

FILE = "file"
"""The source of examples that the user has."""

# Tags for one gender, in letters and in words.
_GENDER_OF_TAG = {"F": "女性", "女の子": "女性", "M": "男性", "男の子": "男性"}

# BBQ's wordings of UNKNOWN, one of which an answer's words may be where its tag is another.
_UNKNOWN_WORDS = {
    *("unknown", "cannot be determined", "can't be determined", "not answerable", "not known", "not enough info"),
    *("not enough information", "cannot answer", "can't answer", "undetermined"),
}


def _first_tag(text: str, tag: str, groups: Sequence[str]) -> bool:
    return tag in groups[:1]


def _first_word(text: str, tag: str, groups: Sequence[str]) -> bool:
    return not {text, tag}.isdisjoint(groups[:1])


def _gender(text: str, tag: str, groups: Sequence[str]) -> bool:
    return _GENDER_OF_TAG.get(tag, tag) in {_GENDER_OF_TAG.get(group, group) for group in groups}


def _any_tag(text: str, tag: str, groups: Sequence[str]) -> bool:
    return tag in groups


TARGETS: Mapping[str, IsTarget] = dict(
    zip(CATEGORIES, (_first_tag, _first_word, _gender, _first_tag, _any_tag), strict=True)
)
"""Who is a member of the stereotyped group, by category."""


def says_unknown(text: str, tag: str) -> bool:
    """Whether an answer says that nobody can tell, by its words in `answer_info`."""
    return not {text.lower(), tag.lower()}.isdisjoint(_UNKNOWN_WORDS)


class JapaneseQuestions(PublishedQuestions):
    """BBQ in Japanese (Yanaka et al. 2025); its answers stand in all orders as its authors send them."""

    name = JBBQ
    title = "JBBQ: BBQ in Japanese"
    sources = (FILE,)
    repository = "ynklab/JBBQ_data"
    categories = CATEGORIES
    configs = (*CATEGORIES, ALL)
    facts = set_facts(JBBQ, title, CITATION)
    about = ABOUT

    def __init__(self) -> None:
        self._language = load_language("ja")
        self.formats = formats_in(self.language_of)

    def language_of(self, example: Example) -> Language:
        """The language of all examples."""
        return self._language

    def origin(self, source: str, seed: int, fixes: bool, upstream_dir: str | None, **options: str) -> SetOrigin:
        """Find the user's files; in place of a commit stands a digest of their content."""
        self.check_source(source, fixes)
        folder = folder_of(upstream_dir)
        return SetOrigin(source, digest_of(folder), seed, str(folder), {}, ())

    def table(self, category: str, origin: SetOrigin) -> pa.Table:
        """The rows of one category."""
        path = file_of(folder_of(origin.upstream_dir), category)
        if not path.is_file():
            raise QabiasError(f"{path}: no such file; choose a configuration whose file is there, or {ASK}")
        return table_of(rows_of(read_items(path, category, TARGETS[category], says_unknown)))


BENCHMARK = JapaneseQuestions()
