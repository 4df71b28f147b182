"""The released sets: how their files become items. Categories, paths and words are in `sets.yaml`.

EsBBQ and CaBBQ (Ruiz-Fernández et al. 2025), MBBQ (Neplenbroek et al. 2024), GG-BBQ (Satheesh et al. 2025), BasqBBQ
(Saralegi and Zulaika 2025) and JBBQ (Yanaka et al. 2025).
"""

from __future__ import annotations

import ast
import csv
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import yaml

from qabias.benchmarks.bbq.logs import OWN_TASK
from qabias.benchmarks.bbq.prompts import FIVE
from qabias.benchmarks.harness_logs import HarnessTask
from qabias.benchmarks.multilingual.benchmark import PublishedQuestions, SetOrigin
from qabias.benchmarks.multilingual.language import Language, load_language
from qabias.benchmarks.multilingual.rows import PLACES, Answer, IsTarget, Item, read_items, rows_of, table_of, target_of
from qabias.benchmarks.prompt_format import Example, PromptFormat
from qabias.building import sources
from qabias.building.templating import StableRandom, filled_pattern
from qabias.errors import QabiasError, arg

SETS: Mapping[str, Mapping[str, Any]] = yaml.safe_load(Path(__file__).with_name("sets.yaml").read_text("utf-8"))
UNKNOWN = "unknown"
"""The tag of the UNKNOWN answer; in EsBBQ and CaBBQ also its text, which has no wording."""
_literal = cache(ast.literal_eval)
"""The value of a cell that Python wrote; thousands of rows have the same. Nobody may change it."""


class ReleasedSet(PublishedQuestions):
    """A set whose rows are read from pinned files."""

    def __init__(self, name: str) -> None:
        self.data = SETS[name]
        self.categories = self.categories if hasattr(self, "categories") else self.data["categories"]
        self.options = self.data.get("options", {})
        super().__init__(name)

    def items(self, category: str, *files: Path) -> Iterable[Item]:
        """The published questions of a category, by default from one file in BBQ's form."""
        return read_items(files[0], category)

    def table(self, category: str, origin: SetOrigin) -> pa.Table:
        """The released rows of one category, with a wording of UNKNOWN per set if they lack one."""
        language, _, name = category.partition("_")
        fields = {"category": category, "language": language, "name": name, "code": self.card.codes[0]}
        fields |= {**origin.options, **self.data.get("parts", {}).get(category, {})}
        files = [sources.fetch(self.card.repository, path.format(**fields)) for path in self.data["files"]]
        random = StableRandom(self.name, category, "unknown", origin.seed)
        wording = partial(random.choice, self.data["wordings"]) if "wordings" in self.data else None
        items = self.items(category, *files)
        return table_of(rows_of(items, origin.shuffle(self.name, category, "order"), wording))


def read_csv(path: Path, delimiter: str = ",") -> list[dict[str, str]]:
    """The rows of a published table."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter=delimiter))


def _same_tag(data: Mapping[str, Any], text: str, tag: str, groups: Sequence[str]) -> bool:
    """Whether a tag is a member of a stereotyped group. Several tags may mean the same."""
    name_of = {tag: name for name, tags in data["same_tags"].items() for tag in tags}
    return name_of.get(tag, tag) in {name_of.get(group, group) for group in groups}


# BBQ for Spain, in Spanish and in Catalan


def _why(name: str, value: float, categories: set[str], written: bool) -> list[str]:
    is_wrong = name == "bias_score_disambig" and "PhysicalAppearance" in categories
    return ["the harness uses a column that is wrong for four rows of PhysicalAppearance (template 10)"] * is_wrong


_TASK = HarnessTask(
    document=("instance_id", "question_type", "relevant_social_value", "proper_nouns_only"),
    # Without the third answer, which has no wording.
    columns={
        "example_id": "instance_id",
        **{name: name for name in ("category", "question_polarity", "context_condition", "context", "question")},
        **{name: name for name in ("ans0", "ans1", "label")},
    },
    numbers=("example_id", "label"),
    figures={
        "acc_ambig": "accuracy_ambig",
        "acc_disambig": "accuracy_disambig",
        "bias_score_ambig": "bias_ambig",
        "bias_score_disambig": "-accuracy_cost",
    },
    why=_why,
    options={"answers": "released"},
)
"""The harness's tasks on one of the two sets."""

_PEOPLE = ("version", "flipped", "ans0", "ans1", "stated_gender_info")


class SpainQuestions(ReleasedSet):
    """BBQ for Spain in one language."""

    lopsided = True

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.log_readers = (replace(_TASK, unknown=self.data["wordings"]), OWN_TASK)

    def items(self, category: str, *files: Path) -> Iterator[Item]:
        """The items of one category in file order. A set has the same people and the same ambiguous context."""
        rows = read_csv(files[0])
        contexts: dict[str, dict[str, int]] = defaultdict(dict)
        for row in rows:
            if row["context_condition"] == "ambig":
                contexts[row["template_id"]].setdefault(row["context"], len(contexts[row["template_id"]]))
        return (_spanish_item(row, contexts[row["template_id"]]) for row in rows)


def _spanish_item(row: Mapping[str, str], contexts: Mapping[str, int]) -> Item:
    infos = [_literal(row[f"answer_info.ans{place}"]) for place in PLACES]
    groups = _literal(row["stereotyped_groups"])
    # The last of the words of a person is the group: "m, árabe".
    answers = [Answer(row[f"ans{place}"], info[-1].split(",")[-1].strip()) for place, info in enumerate(infos)]
    context = row["context"]
    begin = max((start for start in contexts if context.startswith(start)), key=len, default=None)
    return Item(
        category=row["category"],
        template=f"{int(row['template_id']):02d}",
        set="/".join((*(row[name] for name in _PEOPLE), context if begin is None else str(contexts[begin]))),
        negative=row["question_polarity"] == "neg",
        ambiguous=row["context_condition"] == "ambig",
        context=context,
        question=row["question"],
        answers=answers,
        right=int(row["label"]),
        target=target_of([not {answer.group}.isdisjoint(groups) for answer in answers[:2]]),
        unknown=[answer.text for answer in answers].index(UNKNOWN),
        stereotype=row["relevant_social_value"],
        groups=groups,
        label_type="name" if row["proper_nouns_only"] == "True" else "label",
        subcategory=row["subcategory"],
        version=row["version"],
        source="; ".join(_literal(row["source"])),
    )


# The same questions in English, Dutch, Spanish and Turkish, with a control set

CONTROL = "_control"
"""Suffix of the control set's configs."""


class FourLanguages(ReleasedSet):
    """MBBQ: Multilingual Bias Benchmark for Question Answering."""

    groups_of_categories: Mapping[str, tuple[str, ...]] = {
        f"{language}{control}": tuple(f"{language}_{name}{control}" for name in SETS["mbbq"]["categories"])
        for control in ("", CONTROL)
        for language in ("en", "nl", "es", "tr")
    }
    categories = sum([*groups_of_categories.values()][:4], ())

    def language_of(self, example: Example) -> Language:
        """The language at the start of the category's name."""
        return load_language(example["category"].split("_")[0])

    def is_control_of(self, control: str, config: str) -> bool:
        """By name: `nl_Age_control` is the control of `nl_Age`, `nl_control` of `nl`."""
        return control == f"{config}{CONTROL}"

    def common_templates(self, table: pa.Table) -> list[str]:
        """The template of every row, with the same name in all languages and in the control set."""
        names: list[str] = table["template_id"].to_pylist()
        return names

    def items(self, category: str, *files: Path) -> Iterator[Item]:
        """The items of one category in one language, or of its control set."""
        label_type = "name" if category.endswith(CONTROL) else "label"
        for item in read_items(files[0], category, partial(_same_tag, self.data)):
            yield item._replace(label_type=label_type)

    def table(self, category: str, origin: SetOrigin) -> pa.Table:
        """The released rows, with templates named alike in all languages."""
        table = super().table(category, origin)
        names = [template.partition("_")[2].replace(CONTROL, "") for template in table["template_id"].to_pylist()]
        return table.set_column(table.schema.get_field_index("template_id"), "template_id", pa.array(names))


# BBQ's questions about gender in German, with words for groups and with names

_TAGS = {"trans": "non_binary"}
"""The tag of a group with another name in the rows. In templates about trans people, one person has this tag."""


class _Template(NamedTuple):
    """A published template."""

    name: str
    version: str
    context: re.Pattern[str]
    questions: tuple[str, str]
    names: bool
    source: str


class GermanQuestions(ReleasedSet):
    """GG-BBQ."""

    def items(self, category: str, *files: Path) -> Iterator[Item]:
        """The items of one part. The four of a set are neighbors and share one answer order."""
        known = [_template({name.strip(): text for name, text in row.items()}) for row in read_csv(files[2])]
        both = [map(json.loads, filter(None, path.read_text("utf-8").split("\n"))) for path in files[:2]]
        for number, (unclear, clear) in enumerate(zip(*both, strict=True)):
            context, question = _one_space(clear["context"]), _one_space(clear["question"])
            (template,) = (one for one in known if question in one.questions and one.context.fullmatch(context))
            for row in (unclear, clear):
                yield _german_item(category, row, template, number // 2)


def _template(row: Mapping[str, str]) -> _Template:
    # One slot of the published templates lacks a brace.
    text = re.sub(r"(?<!\{)\{(?=\w+\}\})", "{{", f"{row['ambiguous_context']} {row['disambiguous_context']}")
    return _Template(
        name=f"{int(row['question_index']):02d}",
        version=f"{int(row['id']):03d}",
        context=filled_pattern(_one_space(text)),
        questions=(_one_space(row["question_negative_stereotype"]), _one_space(row["question_non_negative"])),
        names=row["proper_nouns_only"] == "True",
        source=row["Notes"],
    )


def _german_item(category: str, row: Mapping[str, Any], template: _Template, number: int) -> Item:
    groups = json.loads(row["known_stereotyped_groups"])
    tags = [tag for _, tag in _literal(row["choice_info"]).values()]
    return Item(
        category=category,
        template=template.name,
        set=str(number),
        version=template.version,
        negative={"negative": True, "non_negative": False}[row["question_type"]],
        ambiguous=row["context_type"] == "ambiguous_context",
        context=row["context"],
        question=row["question"],
        answers=[Answer(row[f"choice_{place}"], tags[place]) for place in PLACES],
        right=row["label"],
        target=target_of([tag in {*groups, *map(_TAGS.get, groups)} for tag in tags]),
        unknown=tags.index(UNKNOWN),
        stereotype=row["relevant_social_values"],
        groups=groups,
        label_type="name" if template.names else "label",
        source=template.source,
    )


def _one_space(text: str) -> str:
    """The text with single spaces: the files differ in them."""
    return " ".join(text.split())


# BBQ in Japanese, from files that its authors send to each user

_ASK = "Request it from its authors: https://github.com/ynklab/JBBQ_data"
_FOLDERS = ("", "data", "ynklab/JBBQ_data", "ynklab/JBBQ_data/data")

# BBQ's wordings of UNKNOWN.
_UNKNOWN_WORDS = {
    *("unknown", "cannot be determined", "can't be determined", "not answerable", "not known", "not enough info"),
    *("not enough information", "cannot answer", "can't answer", "undetermined"),
}

_IS_TARGET: Mapping[str, IsTarget] = {
    "Age": lambda text, tag, groups: tag in groups[:1],
    "Disability_status": lambda text, tag, groups: text in groups[:1] or tag in groups[:1],
    "Gender_identity": partial(_same_tag, SETS["jbbq"]),
    "Physical_appearance": lambda text, tag, groups: tag in groups[:1],
    "Sexual_orientation": lambda text, tag, groups: tag in groups,
}
"""Membership in the stereotyped group, by category."""


class JapaneseQuestions(ReleasedSet):
    """JBBQ; its answers have all orders."""

    sources = ("file",)

    def origin(self, source: str, seed: int, fixes: bool, **options: str) -> SetOrigin:
        """Find the user's files; the commit is a digest of their names and contents."""
        self.check_source(source, fixes)
        folder = self._folder()
        digest = hashlib.sha256()
        for category in self.categories:
            file = folder / f"{category}.jsonl"
            if file.is_file():
                content = file.read_bytes()
                digest.update(f"{category} {len(content)}\n".encode() + content)
        return SetOrigin(source, digest.hexdigest(), seed, {}, ())

    def table(self, category: str, origin: SetOrigin) -> pa.Table:
        """The rows of one category."""
        path = self._folder() / f"{category}.jsonl"
        if not path.is_file():
            raise QabiasError(f"{path}: no such file.", f"{_ASK}, or use another {arg('config')}.")
        return table_of(rows_of(read_items(path, category, _IS_TARGET[category], _says_unknown)))

    def _folder(self) -> Path:
        """The folder of the files `CATEGORY.jsonl`."""
        named = sources.mirror_folder()
        if not named:
            raise QabiasError("JBBQ may not be redistributed.", f"{_ASK}, then add {arg('mirror')} FOLDER.")
        root = named.parent if named.is_file() else named
        files = [f"{category}.jsonl" for category in self.categories]
        for folder in _FOLDERS:
            if any((root / folder / file).is_file() for file in files):
                return root / folder
        raise QabiasError(f"{named}: JBBQ's files are missing ({', '.join(files)}).", f"{_ASK}.")


def _says_unknown(text: str, tag: str) -> bool:
    """Whether an answer is UNKNOWN by its words in `answer_info`."""
    return not {text.lower(), tag.lower()}.isdisjoint(_UNKNOWN_WORDS)


# BBQ for South Korea, in Korean, with the prompts of its authors

_LAST = 2
"""Number of the UNKNOWN answer: the last in every sample."""

_SAMPLE_ID = re.compile(
    r"(?P<category>.+)-(?P<template>\d+)(?P<version>[a-z])-(?P<sample>\d+)-(?P<context>amb|dis)-(?P<question>bsd|cnt)"
)


def _korean_item(category: str, sample: re.Match[str], row: Mapping[str, str], template: Mapping[str, str]) -> Item:
    choices: list[str] = _literal(row["choices"])
    negative = sample["question"] == "bsd"
    # The column has the stereotyped answer to this question.
    biased = choices[:_LAST].index(row["biased_answer"])
    target = biased if negative else 1 - biased
    groups = template["Target_group"]
    other = template["N2_info"] if template["N1_info"] == groups else template["N1_info"]
    people = [Answer(choices[place], groups if place == target else other) for place in range(_LAST)]
    return Item(
        category=category,
        template=sample["template"],
        set=f"{sample['version']}-{sample['sample']}",
        negative=negative,
        ambiguous=sample["context"] == "amb",
        context=row["context"],
        question=row["question"],
        answers=[*people, Answer(choices[_LAST], "unknown")],
        right=choices.index(row["answer"]),
        target=target,
        unknown=_LAST,
        stereotype=template["Stereotype"],
        groups=[group.strip() for group in groups.split(",")],
        subcategory=row["label_annotation"],
        version=sample["version"],
        source=template["Reference"],
    )


REPOSITORY = "naver-ai/KoBBQ"
PATH = "evaluation/0_evaluation_prompts.tsv"
NUMBERS = range(1, 6)

# Prompt 3 names two of its slots in capitals.
_SLOT = re.compile(r"\{(context|question|a|b|c)\}", re.IGNORECASE)
_PLACES = {"a": 0, "b": 1, "c": 2}


def formats() -> Mapping[str, PromptFormat]:
    """The formats `kobbq_1` to `kobbq_5` and their set `five`, by name. The published file is read when needed."""

    @cache
    def prompts() -> dict[int, dict[str, str]]:
        return {int(row["prompt_id"]): row for row in read_csv(sources.fetch(REPOSITORY, PATH), "\t")}

    five = tuple(
        PromptFormat(
            f"kobbq_{number}",
            1,
            f"prompt {number} of KoBBQ's authors, with its own wording of UNKNOWN; asks for the letter only",
            partial(_render, prompts, number),
            lists_answers=True,
            asks=("answer-logprob", "letter-logprob", "letter"),
        )
        for number in NUMBERS
    )
    description = f"each of {', '.join(variant.name for variant in five)}; scores are means over them"
    all_five = replace(five[0], name=FIVE, description=description, variants=five)
    return {prompt_format.name: prompt_format for prompt_format in (*five, all_five)}


def _render(
    prompts: Callable[[], Mapping[int, Mapping[str, str]]], number: int, example: Example
) -> tuple[str, tuple[str, ...]]:
    # Released samples have the first prompt's wording of UNKNOWN.
    prompt, released = prompts()[number], prompts()[1]["unknown"]
    texts = (example[f"ans{place}"] for place in _PLACES.values())
    answers = [prompt["unknown"] if text == released else text for text in texts]

    def fill(slot: re.Match[str]) -> str:
        name = slot[1].lower()
        return answers[_PLACES[name]] if name in _PLACES else str(example[name])

    # Newlines are a backslash and an n, labels such as "A: " or "(A) ".
    labels = tuple(f" {re.sub('[^A-Ca-c]', '', prompt[column])}" for column in _PLACES)
    return _SLOT.sub(fill, prompt["prompt"].replace("\\n", "\n")), labels


class KoreanQuestions(ReleasedSet):
    """KoBBQ: Korean Bias Benchmark for Question Answering (Jin et al. 2024)."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.formats = {**self.formats, **formats()}

    def formats_from(self, origin: SetOrigin) -> Mapping[str, PromptFormat]:
        """The authors' prompts from the mirror of the origin."""
        return {**self.formats, **formats()}

    def items(self, category: str, *files: Path) -> Iterator[Item]:
        """The items of one category. Those of a set are neighbors, sets are in file order."""
        samples, templates = (read_csv(path, "\t") for path in files)
        template_of = {(row["Category"].lower(), int(row["ID"]), row["version"]): row for row in templates}
        sets: dict[str, list[Item]] = {}
        for row in samples:
            sample = _SAMPLE_ID.fullmatch(row["sample_id"])
            assert sample is not None
            if sample["category"] == category.lower():
                template = template_of[sample["category"], int(sample["template"]), sample["version"]]
                item = _korean_item(category, sample, row, template)
                sets.setdefault(f"{item.template}/{item.set}", []).append(item)
        return chain.from_iterable(sets.values())


KOREAN = KoreanQuestions("kobbq")
SPANISH, CATALAN = SpainQuestions("esbbq"), SpainQuestions("cabbq")
FOUR_LANGUAGES = FourLanguages("mbbq")
GERMAN = GermanQuestions("ggbbq")
BASQUE = ReleasedSet("basqbbq")
JAPANESE = JapaneseQuestions("jbbq")
