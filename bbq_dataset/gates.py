"""Automatic checks of the bundled texts: `python -m bbq_dataset.gates [CATEGORY ...]` lists the faults.

Readers check the rest, such as a hint in the ambiguous context or a story that does not fit a group. `gates.yaml` holds
the words that the checks need, and the exceptions with reasons.

A question may share no word with the text. About half name the asked trait ("Who was lazy?"), which the facts show
without its name. A fault is a thing that a question presupposes, "the attendant", without a mention in the ambiguous
context.
"""

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import combinations, takewhile
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from .bundled import FOLDER, fill_texts, generate, read_streams
from .examples import DrawnSet, FilledTexts, Row, drawn_sets
from .template import CATEGORIES, Pair, Template
from .vocabulary import look_alike

_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")
_CLAUSE = re.compile(r"\b(?=(who [^,.;()]+))")
_ARTICLES = ("a", "an", "the")
_OF_TWO = re.compile(r"^(?:Which|Who|Whom|Whose)(?: one)? of the two(?: [a-z-]+)?\b")
_THE = re.compile(r"\b[Tt]he\b")
# Endings that may differ between two texts, longest first.
_ENDINGS = ("'s", "ing", "ies", "ed", "es", "er", "s", "y", "e")


class Finding(NamedTuple):
    """A fault of a template.

    Attributes:
        gate: Name of the check.
        template_id: The template, e.g. "Age-07".
        text: What is wrong, with an example.
    """

    gate: str
    template_id: str
    text: str


def findings(category: str, folder: Path = FOLDER) -> list[Finding]:
    """The faults of a category, one for each template and check.

    Args:
        category: Name of the category.
        folder: Folder with `templates/` and `vocabulary/`.

    Raises:
        QabiasError: If the template file is missing or wrong.
    """
    streams, vocabulary = read_streams(category, seed=0, folder=folder)
    faults = [*_of_sets(drawn_sets(streams, vocabulary))]
    faults += of_rows(generate(category, seed=0, folder=folder))
    counts = Counter((one.gate, one.template_id) for one in faults)
    first = {(one.gate, one.template_id): one for one in reversed(faults)}
    return [
        first[key]._replace(text=first[key].text + (f" (and {n - 1} more)" if n > 1 else ""))
        for key, n in sorted(counts.items(), key=lambda entry: entry[0][::-1])
    ]


def _of_sets(sets: Iterable[DrawnSet]) -> Iterator[Finding]:
    """The faults of each set, the same text once."""
    seen = set()
    for drawn in sets:
        template, pair = drawn.template, drawn.pair
        texts = fill_texts(template, pair)
        for gate, faults in (
            ("names", names(template, pair)),
            ("repeated words", repeated_words(template, pair, texts)),
            ("capitals", capitals(texts)),
            ("never mentioned", never_mentioned(template.template_id, texts)),
        ):
            for fault in faults:
                finding = Finding(gate, template.template_id, fault)
                if finding not in seen:
                    seen.add(finding)
                    yield finding


def names(template: Template, pair: Pair) -> list[str]:
    """Equal or similar names of two people: first names, and surnames."""
    if template.style != "names":
        return []
    one, other = pair.first.name.split(), pair.second.name.split()
    shared = set(one) & set(other)
    alike = [both for both in {(one[0], other[0]), (one[-1], other[-1])} if look_alike(*both)]
    return [f"{pair.first.name} and {pair.second.name}"] if shared or alike else []


def repeated_words(template: Template, pair: Pair, texts: FilledTexts) -> list[str]:
    """Words that an ambiguous context repeats for both people although once is enough.

    `context_alike` avoids this for descriptions of names. A description after a label ("a Black dentist and a Roma
    dentist") is a necessary noun.
    """
    faults = []
    if pair.first.text == pair.second.text:
        faults.append(f"both people are {pair.first.text!r}")
    description = pair.first.description
    if template.style == "names" and description and description == pair.second.description:
        n_times = len(re.findall(rf"\b{re.escape(description)}\b", texts.context))
        if n_times > 1:
            faults.append(f"{description!r} {n_times} times: {texts.context}")
    begins = [_shared_begin(*both) for both in combinations(_CLAUSE.findall(texts.context), 2)]
    return faults + [f"{begin!r} 2 times: {texts.context}" for begin in begins if begin]


def _shared_begin(one: str, other: str) -> str:
    """The common first words of two clauses, "" if fewer than three ("who is late")."""
    pairs = takewhile(lambda both: both[0] == both[1], zip(one.split(), other.split(), strict=False))
    words = [word for word, _ in pairs]
    while words and words[-1] in (*_ARTICLES, *_settings()["ends_a_thing"]):
        words.pop()
    return " ".join(words) if len(words) > 2 else ""


def capitals(texts: FilledTexts) -> list[str]:
    """Words with an incorrect capital letter inside a sentence, such as "Atheist"."""
    faults = []
    for text in (texts.disambiguated_context, texts.negative_question, texts.non_negative_question):
        for match in re.finditer(r"(?<=[a-z,;] )[A-Z][a-z-]+", text):
            if match[0].lower() in _settings()["lower_case"]:
                faults.append(f"{match[0]!r} in {text!r}")
    return faults


def never_mentioned(template_id: str, texts: FilledTexts) -> list[str]:
    """Things that a question presupposes ("the attendant") without a mention in the ambiguous context."""
    words = _WORD.findall(texts.context)
    allowed = _allowed(template_id)
    faults = []
    for question in (texts.negative_question, texts.non_negative_question):
        for thing in things(question):
            is_mentioned = any(are_forms(word, one) for word in thing for one in words)
            if not is_mentioned and not allowed & set(thing):
                faults.append(f"'the {' '.join(thing)}' in {question!r}")
    return faults


def things(question: str) -> list[list[str]]:
    """The words after every "the" in a question, up to the end of the noun phrase.

    "Which of the two clerks ...?" names the people themselves, whom the context introduces.
    """
    ends = (*_ARTICLES, *_settings()["ends_a_thing"])
    behind = [_WORD.findall(part) for part in _THE.split(_OF_TWO.sub("", question))[1:]]
    named = [list(takewhile(lambda word: word.lower() not in ends, words)) for words in behind]
    return [words for words in named if words]


def are_forms(one: str, other: str) -> bool:
    """Whether two words probably share a stem: "campers" and "campground", "thefts" and "theft"."""
    first, second = sorted((_stem(one), _stem(other)), key=len)
    return first == second or (len(first) >= 4 and second.startswith(first))


def _stem(word: str) -> str:
    word = word.lower()
    ending = next((one for one in _ENDINGS if word.endswith(one) and len(word) - len(one) >= 3), "")
    return word.removesuffix(ending)


def of_rows(rows: Iterable[Row]) -> Iterator[Finding]:
    """Rows that repeat another one, broken sets, and templates that are not balanced as well as they can be."""
    shown: Counter[tuple[str, ...]] = Counter()
    agreeing: dict[str, list[bool]] = defaultdict(list)
    facts: dict[tuple[str, str], list[tuple[str, int]]] = defaultdict(list)
    for row in rows:
        texts = tuple(row[name] for name in ("context", "question", "ans0", "ans1", "ans2"))
        shown[texts] += 1
        if shown[texts] > 1:
            yield Finding("repeated", row["template_id"], f"the same texts and order of answers: {row['context']}")
        if row["context_condition"] == "disambig":
            agreeing[row["template_id"]].append(row["label"] == row["biased_loc"])
            facts[row["template_id"], row["set_id"]].append((row["context"], row["label"]))
    for (name, set_id), both in facts.items():
        if [len(set(values)) for values in zip(*both, strict=True)] != [1, 2]:
            yield Finding("sets", name, f"{set_id} needs one disambiguated context and two right people: {both}")
    for name, agree in agreeing.items():
        n_agree, n = sum(agree), len(agree)
        # Both questions of a set agree, or none does: of an odd number of sets one kind has one set more.
        if abs(2 * n_agree - n) > n % 4:
            yield Finding("balance", name, f"the facts agree with the stereotype in {n_agree} of {n} questions")


@cache
def _settings() -> Mapping[str, Any]:
    settings: Mapping[str, Any] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))
    return settings


def _allowed(template_id: str) -> set[str]:
    """Words of things that a template's questions may name without a mention."""
    listed = _settings()["not_mentioned"]
    return {thing for name in ("everywhere", template_id) for thing in listed.get(name, {})}


def main(categories: Iterable[str] = ()) -> int:
    """Print the faults of some categories [all]; 1 if there are any."""
    faults = [fault for category in categories or CATEGORIES for fault in findings(category)]
    for fault in faults:
        sys.stdout.write(f"{fault.template_id}: {fault.gate}: {fault.text}\n")
    sys.stdout.write(f"{len(faults)} faults\n")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
