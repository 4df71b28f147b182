"""KoBBQ: our rows against a reading of the published files by other code, and the prompts of its authors."""

import csv
import json
import re
from collections import Counter

import pytest

from qabias.answers import parse_choice
from qabias.benchmarks import load_benchmark
from qabias.benchmarks.bbq.prompts import FIVE
from qabias.benchmarks.bbq.roles import in_order
from qabias.benchmarks.multilingual.language import load_language
from qabias.benchmarks.multilingual.sets import PATH, formats
from qabias.building.sources import using_mirror
from qabias.errors import QabiasError
from qabias.report.writing import write_report_of
from qabias.runs.arguments import Machine, RunArguments
from qabias.runs.run import run

from .published_sets import invent, partition, published, roles, rows_of, scores, summary

REPOSITORY = "naver-ai/KoBBQ"
TEST, TEMPLATES, ALL_SAMPLES = (f"data/KoBBQ_{name}.tsv" for name in ("test_samples", "templates", "all_samples"))
ROWS = {
    **{"Age": 168, "Disability_status": 160, "Domestic_area_of_origin": 176, "Educational_background": 192},
    **{"Family_structure": 184, "Gender_identity": 200, "Physical_appearance": 160, "Political_orientation": 88},
    **{"Race_ethnicity_nationality": 480, "Religion": 160, "SES": 216, "Sexual_orientation": 96},
}
"""Samples by category: four for each of the versions that the file of templates lists."""


def read_tsv(file):
    """Lines and tabs, without the module csv: no cell of these files has either."""
    header, *lines = file.read_text(encoding="utf-8").rstrip("\n").split("\n")
    return [dict(zip(header.split("\t"), (unquoted(cell) for cell in line.split("\t")), strict=True)) for line in lines]


def unquoted(cell):
    return cell[1:-1].replace('""', '"') if cell.startswith('"') and cell.endswith('"') and len(cell) > 1 else cell


def reading(upstream):
    """The spec's words on the raw file: by category in the order of the file of templates, in file order."""
    templates = read_tsv(published(upstream, REPOSITORY, TEMPLATES))
    about = {(row["Category"].lower(), row["ID"].zfill(3) + row["version"]): row for row in templates}
    rows = {category: [] for category in dict.fromkeys(row["Category"] for row in templates)}
    of_id = {category.lower(): category for category in rows}
    for row in read_tsv(published(upstream, REPOSITORY, TEST)):
        category, template, sample, context, asked = row["sample_id"].rsplit("-", 4)
        choices = [choice.strip("'\" ") for choice in row["choices"].strip("[]").split(",")]
        assert len(choices) == 3
        says = choices.index(row["biased_answer"])
        target = says if asked == "bsd" else {0: 1, 1: 0}[says]
        rows[of_id[category]].append(
            {
                "category": of_id[category],
                "example_id": len(rows[of_id[category]]),
                "template_id": f"{of_id[category]}-{template[:3]}",
                "context": row["context"],
                "question": row["question"],
                "label_type": "label",
                "social_value": about[category, template]["Stereotype"],
                "question_polarity": {"bsd": "neg", "cnt": "nonneg"}[asked],
                "context_condition": {"amb": "ambig", "dis": "disambig"}[context],
                "answers": choices,
                "groups": about[category, template]["Target_group"].split(", "),
                "version": template[3],
                "label": choices.index(row["answer"]),
                **roles(target, 2, asked == "bsd"),
                "set": (category, template, sample),
            }
        )
    return [row for of_category in rows.values() for row in of_category]


def test_our_rows_are_those_of_another_reading(upstream):
    theirs = reading(upstream)
    ours = rows_of("kobbq", "all", upstream=upstream, answers="released")
    assert partition(ours, lambda row: row["set_id"]) == partition(theirs, lambda row: row["set"])
    assert [summary(row) for row in ours] == [{k: v for k, v in row.items() if k != "set"} for row in theirs]


def test_the_counts_of_the_spec(upstream):
    rows = rows_of("kobbq", "all", upstream=upstream)
    assert Counter(row["category"] for row in rows) == ROWS
    assert len(rows) == 2280
    assert list(dict.fromkeys(row["category"] for row in rows)) == list(ROWS)
    sets = Counter(row["set_id"] for row in rows)
    assert len(sets) == 570
    assert set(sets.values()) == {4}
    assert len({row["template_id"] for row in rows}) == 269
    assert [len(rows_of("kobbq", name, upstream=upstream)) for name in ("Religion", "Age,SES")] == [160, 168 + 216]


@pytest.fixture
def all_samples(upstream, monkeypatch, tmp_path):
    """A mirror with the samples in the larger file, which is not at hand, the rows of a set apart from each other."""
    files = {path: published(upstream, REPOSITORY, path).read_bytes().decode() for path in (TEMPLATES, TEST)}
    header, *lines = files.pop(TEST).splitlines(keepends=True)
    files[ALL_SAMPLES] = "".join([header, *sorted(lines, key=lambda line: "-dis-" in line.split("\t")[0])])
    return invent(monkeypatch, tmp_path, REPOSITORY, files)


def test_all_samples_are_read_by_the_same_code(upstream, all_samples):
    rows = rows_of("kobbq", "SES", upstream=all_samples, part="all", answers="released")
    assert rows == rows_of("kobbq", "SES", upstream=upstream, answers="released")
    with using_mirror(all_samples):
        assert load_benchmark("kobbq").origin("release", 0, False, part="all").version.endswith("+part=all")


def test_a_report_says_nothing_that_holds_for_the_texts_of_bbq_alone(upstream, monkeypatch, tmp_path):
    monkeypatch.setenv("QABIAS_UPSTREAM", str(upstream))
    scores(tmp_path, "kobbq", "random", "Religion,SES")
    analysis = json.loads((tmp_path / "analysis.json").read_text(encoding="utf-8"))
    tables = {table["name"]: table for table in analysis["tables"]}
    assert {"bias_by_category", "stereotypes_Religion", "template_rates"} <= set(tables)
    # No split into names and labels, no intersections, nothing of a model that saw no context.
    assert not [name for name in tables if name.startswith(("names_", "comparisons_", "labels_", "question_only"))]
    for table in tables.values():
        assert not table.get("source")
        assert not re.search("paper|USA", table["note"])
    report = write_report_of(tmp_path).read_text("utf-8")
    assert "U.S. English" not in report
    assert "They do not\ncarry over to others" in report
    assert "doi:10.1162/tacl_a_00661" in report


NAMES = [f"kobbq_{number}" for number in range(1, 6)]
EXAMPLE = {
    "context": "CONTEXT {a} {question}.",
    "question": "QUESTION?",
    "ans0": "FIRST",
    "ans1": "알 수 없음",
    "ans2": "THIRD",
    "label": 1,
    "target_loc": 0,
    "biased_loc": 2,
    "unknown_loc": 1,
    "answer_info": {f"ans{place}": ["", ""] for place in range(3)},
}


@pytest.fixture
def rows(upstream):
    with (upstream / REPOSITORY / PATH).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


@pytest.fixture
def found(upstream):
    with using_mirror(upstream):
        yield formats()


def in_parts(row):
    """A prompt put together of the parts that the file also has one by one: another reading of it."""
    listed = "\n".join(
        f"{row[label]}{text}" for label, text in zip("abc", ("FIRST", row["unknown"], "THIRD"), strict=True)
    )
    asked = f"{row['context']}{EXAMPLE['context']}\n{row['question']}{EXAMPLE['question']}\n{listed}"
    return f"{row['instruction']}\n\n{asked}\n{row['answer']}"


def test_a_prompt_is_its_parts_with_its_wording_of_unknown(found, rows):
    assert [row["prompt_id"] for row in rows] == ["1", "2", "3", "4", "5"]
    for name, row in zip(NAMES, rows, strict=True):
        prompt, options = found[name].render(EXAMPLE)
        assert prompt == in_parts(row)
        labels = "abc" if name in ("kobbq_3", "kobbq_4") else "ABC"
        assert options == tuple(f" {label}" for label in labels)


def test_the_wording_of_unknown_goes_where_unknown_is(found, rows):
    prompt, _ = found["kobbq_2"].render(in_order(EXAMPLE, (2, 0, 1)))
    assert f"A: THIRD\nB: FIRST\nC: {rows[1]['unknown']}\n" in prompt


def test_five_is_the_set_of_them(found):
    assert list(found) == [*NAMES, FIVE]
    assert [wording.name for wording in found[FIVE].variants] == NAMES
    assert {one.signature for one in found.values()} == {*(f"{name}@1" for name in NAMES), "five@1"}
    assert all(
        one.lists_answers and one.asks == ("answer-logprob", "letter-logprob", "letter") for one in found.values()
    )


def test_every_wording_of_unknown_is_read_as_unknown(found, rows):
    phrases = load_language("ko").phrases
    answers = [EXAMPLE[f"ans{place}"] for place in range(3)]
    for row in rows:
        for text in (row["unknown"], f"답: {row['unknown']}", f"B: {row['unknown']}"):
            assert parse_choice(text, answers, phrases=phrases) == 1


def test_nothing_is_read_before_a_prompt_is_needed(tmp_path, monkeypatch):
    monkeypatch.setenv("QABIAS_UPSTREAM", str(tmp_path))
    empty = formats()
    assert list(empty) == [*NAMES, FIVE]
    with pytest.raises(QabiasError, match="is not in the mirror"):
        empty["kobbq_1"].render(EXAMPLE)


def test_the_benchmark_asks_in_the_five_prompts_from_the_mirror_of_the_user(upstream, tmp_path, monkeypatch):
    monkeypatch.delenv("QABIAS_UPSTREAM", raising=False)
    arguments = RunArguments("kobbq", "baseline:stereotyped", config="Age", source="release", format=FIVE)
    with using_mirror(upstream):
        scores = run(arguments, tmp_path / "run", Machine()).scores
    assert scores["bias_ambig"] == 1
    assert list(scores["wordings"]) == NAMES


@pytest.mark.usefixtures("upstream")
def test_a_letter_is_what_an_instructed_prompt_of_the_set_asks_for(monkeypatch, upstream):
    monkeypatch.setenv("QABIAS_UPSTREAM", str(upstream))
    benchmark = load_benchmark("kobbq")
    rows = benchmark.load("Religion", benchmark.origin("release", 0, False)).to_pylist()
    for name in ("letters", *NAMES):
        request = benchmark.request(rows[0], benchmark.formats[name])
        assert [benchmark.read(option, "none", rows[0]) for option in request.options] == [0, 1, 2]
