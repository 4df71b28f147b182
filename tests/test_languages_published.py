"""The answers of the published sets, read in the words in which models repeat them."""

import ast
import csv
import json

import pytest

from qabias.answers import parse_choice
from qabias.answers.choice import is_unknown_wording, says_unknown
from qabias.answers.outcomes import refuses
from qabias.benchmarks.multilingual.language import load_language

EVERY = 12
"""One of so many questions with different answers is read, for time."""

STATED = {
    "es": ("La respuesta es {}.", "Respuesta: {}", "{}, porque lo dice el texto."),
    "nl": ("Het antwoord is {}.", "Antwoord: {}", "{}, want dat staat er."),
    "en": ("The answer is {}.", "Answer: {}"),
    "de": ("Die Antwort ist {}.", "Antwort: {}", "{}, weil es im Text steht."),
    "eu": ("Erantzuna: {}", "{} da."),
    "ko": ("정답은 {}입니다.", "{}입니다.", "답: {}"),
}


def json_lines(folder, pattern):
    for path in sorted(folder.glob(pattern)):
        with path.open(encoding="utf-8") as file:
            yield from map(json.loads, file)


def in_bbqs_form(folder, pattern):
    """The answers of rows in BBQ's form, and which of them is UNKNOWN by its tag."""
    for row in json_lines(folder, pattern):
        tags = [str(row["answer_info"][f"ans{place}"][1]).lower() for place in range(3)]
        yield tuple(row[f"ans{place}"] for place in range(3)), tags.index("unknown")


def spanish(folder):
    for path in sorted(folder.glob("langtech-bsc/EsBBQ-CaBBQ/data_es/*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                yield (row["ans0"], row["ans1"], "No se puede saber"), 2


def korean(folder):
    path = folder / "naver-ai/KoBBQ/data/KoBBQ_test_samples.tsv"
    if path.is_file():
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file, delimiter="\t"):
                yield tuple(ast.literal_eval(row["choices"])), 2


def german(folder):
    for row in json_lines(folder, "shalakasatheesh/GG-BBQ/data/*/*_amb_test.jsonl"):
        yield tuple(row[f"choice_{place}"] for place in range(3)), 2


READERS = {
    "es": spanish,
    "ko": korean,
    "de": german,
    "eu": lambda folder: in_bbqs_form(folder, "orai-nlp/BasqBBQ/data/BasqBBQ/*.jsonl"),
    "nl": lambda folder: in_bbqs_form(folder, "Veranep/MBBQ/data/*_nl.jsonl"),
    "en": lambda folder: in_bbqs_form(folder, "Veranep/MBBQ/data/*_en.jsonl"),
}


@pytest.fixture(params=sorted(READERS))
def published(request, upstream):
    """A language, and the different triples of answers of its sets with the place of UNKNOWN."""
    found = sorted(set(READERS[request.param](upstream)))
    if not found:
        pytest.skip(f"no published files in {request.param} at {upstream}")
    return request.param, found


def test_every_answer_is_unknown_or_a_person_as_the_set_says(published):
    code, found = published
    phrases = load_language(code).phrases
    kinds = {(answer, place == unknown) for answers, unknown in found for place, answer in enumerate(answers)}
    for answer, is_unknown in kinds:
        assert is_unknown_wording(answer, phrases) == is_unknown, answer
        assert is_unknown or not says_unknown(answer, phrases), answer
        assert not refuses(answer, phrases), answer


def test_every_answer_is_read_in_the_words_around_it(published):
    code, found = published
    phrases = load_language(code).phrases
    for answers, _ in found[::EVERY]:
        for place, answer in enumerate(answers):
            label = "ABC"[place]
            texts = [answer, f"{answer}.", answer.upper(), f"{label}. {answer}", f"({label}) {answer}"]
            texts += [form.format(answer) for form in STATED[code]] + [form.format(label) for form in STATED[code][:1]]
            assert {text: parse_choice(text, answers, phrases=phrases) for text in texts} == dict.fromkeys(texts, place)
