"""JBBQ: invented rows in the form of its files, and the reader of BBQ's JSONL that it shares with other sets.

JBBQ itself may not be passed on, so that nothing here reads it.
"""

from collections import Counter

import pytest

from qabias.benchmarks import load_benchmark
from qabias.benchmarks.multilingual import rows as jsonl
from qabias.benchmarks.multilingual.rows import rows_of as rows_of_items
from qabias.errors import QabiasError
from qabias.report.writing import write_report_of
from qabias.runs.arguments import Machine, RunArguments
from qabias.runs.run import run

from .jbbq_files import N_TEMPLATES, PEOPLE, UNKNOWNS, rows_of, write_files, write_rows
from .published_sets import roles

N_ROWS = 24 * N_TEMPLATES


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("QABIAS_UPSTREAM", raising=False)
    return write_files(tmp_path / "jbbq")


def loaded(folder, config="all"):
    benchmark = load_benchmark("jbbq")
    return benchmark.load(config, benchmark.origin("file", 0, False, str(folder))).to_pylist()


@pytest.mark.parametrize("category", PEOPLE)
def test_rows_are_read_as_they_were_written(folder, category):
    groups, member, _ = PEOPLE[category]
    ours = loaded(folder, category)
    for number, (row, written) in enumerate(zip(ours, rows_of(category), strict=True)):
        infos = [written["answer_info"][f"ans{place}"] for place in range(3)]
        unknown = next(place for place, info in enumerate(infos) if tuple(info) in UNKNOWNS)
        expected = {
            "example_id": number,
            "category": category,
            "template_id": f"{category}-0{written['question_index']}",
            **{name: written[name] for name in ("context", "question", "ans0", "ans1", "ans2", "label")},
            **{name: written[name] for name in ("question_polarity", "context_condition")},
            **roles(infos.index(list(member)), unknown, written["question_polarity"] == "neg"),
        }
        assert {name: row[name] for name in expected} == expected
        assert row["additional_metadata"]["stereotyped_groups"] == groups
        assert row["additional_metadata"]["version"] == written["additional_metadata"]["version"]
    assert len(ours) == N_ROWS
    assert len({row["template_id"] for row in ours}) == N_TEMPLATES // 2  # each in two versions
    assert set(Counter(row["set_id"] for row in ours).values()) == {4}


def test_all_has_the_five_categories_in_order(folder):
    assert Counter(row["category"] for row in loaded(folder)) == dict.fromkeys(PEOPLE, N_ROWS)


@pytest.mark.parametrize("place", ["", "data", "ynklab/JBBQ_data", "ynklab/JBBQ_data/data"])
def test_where_the_files_may_lie(tmp_path, monkeypatch, place):
    write_files(tmp_path / place, ["Age"])
    named = loaded(tmp_path, "Age")
    assert loaded(tmp_path / place / "Age.jsonl", "Age") == named
    monkeypatch.setenv("QABIAS_UPSTREAM", str(tmp_path))
    assert loaded_by_default() == named


def loaded_by_default():
    benchmark = load_benchmark("jbbq")
    return benchmark.load("Age", benchmark.origin("file", 0, False, None)).to_pylist()


def test_without_files_the_error_says_in_one_line_where_to_ask(folder, tmp_path, monkeypatch):
    benchmark = load_benchmark("jbbq")
    asked = r"ask its authors for it by the form that https://github\.com/ynklab/JBBQ_data links to"
    with pytest.raises(QabiasError, match=asked) as none_named:
        benchmark.origin("file", 0, False, None)
    with pytest.raises(QabiasError, match=asked) as empty:
        benchmark.origin("file", 0, False, str(tmp_path))
    (folder / "Age.jsonl").unlink()
    with pytest.raises(QabiasError, match=rf"Age\.jsonl: no such file; .* {asked}") as lacking:
        loaded(folder)
    assert not any("\n" in str(error.value) for error in (none_named, empty, lacking))
    assert loaded(folder, "Gender_identity")


def test_the_signature_names_the_content(folder, tmp_path):
    benchmark = load_benchmark("jbbq")

    def version(where):
        return benchmark.origin("file", 0, False, str(where)).version

    assert version(folder) == version(write_files(tmp_path / "copy"))
    assert version(folder).startswith("file@")
    rows = rows_of("Age")
    rows[0]["question"] += "？"
    changed = write_files(tmp_path / "changed")
    write_rows(changed / "Age.jsonl", rows)
    assert version(changed) != version(folder)
    assert version(write_files(tmp_path / "fewer", ["Age"])) != version(folder)


def test_other_sources_and_fixes_are_refused(folder):
    benchmark = load_benchmark("jbbq")
    with pytest.raises(QabiasError, match="unknown source 'release': choose one of file"):
        benchmark.origin("release", 0, False, str(folder))
    with pytest.raises(QabiasError, match="leave out --fixes"):
        benchmark.origin("file", 0, True, str(folder))


def test_baselines_and_undefined_targets(folder, tmp_path):
    rows = rows_of("Age")
    for row in rows[:4]:
        row["additional_metadata"] = {**row["additional_metadata"], "stereotyped_groups": ["子供"]}
    write_rows(folder / "Age.jsonl", rows)
    machine = Machine(upstream_dir=str(folder))

    def scores(kind):
        arguments = RunArguments("jbbq", f"baseline:{kind}", "Age", "file")
        return run(arguments, tmp_path / kind, machine).scores

    oracle, stereotyped = scores("oracle"), scores("stereotyped")
    assert (oracle["accuracy_ambig"], oracle["accuracy_disambig"], oracle["bias_ambig"]) == (1, 1, 0)
    assert (stereotyped["bias_ambig"], stereotyped["bias_disambig"]) == (1, 1)
    for found in (oracle, stereotyped, scores("random")):
        assert (found["n"], found["n_undefined_target"]) == (N_ROWS, 4)
    assert "file@" in (tmp_path / "oracle" / "run.json").read_text("utf-8")
    assert "JBBQ" in write_report_of(tmp_path / "oracle").read_text("utf-8")


# The reader that sets in BBQ's form share


def good_row(**changes):
    return {**rows_of("Age")[0], **changes}


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ({}, "answer_info"),
        (good_row(label=3), "the label is 3"),
        (good_row(question_polarity="negative"), "negative"),
        (good_row(context_condition="clear"), "clear"),
        (good_row(answer_info={"ans0": ["a", "A"], "ans1": ["b", "B"], "ans2": ["c", "C"]}), "not exactly one answer"),
        (good_row(additional_metadata=None), "NoneType"),
        ([1], "list indices"),
    ],
)
def test_a_line_that_is_not_in_the_form_is_named(tmp_path, row, fault):
    write_rows(tmp_path / "Age.jsonl", [good_row(), row])
    with pytest.raises(QabiasError, match=rf"Age\.jsonl: line 2: not in BBQ's form .*{fault}"):
        list(jsonl.read_items(tmp_path / "Age.jsonl", "Age"))


def test_files_that_cannot_be_read_are_named(tmp_path):
    for content, fault in (
        (b"\n", "holds no examples"),
        (b"\xff", "cannot be read"),
        (b"{", "line 1: not in BBQ's form"),
    ):
        file = tmp_path / "Age.jsonl"
        file.write_bytes(content)
        with pytest.raises(QabiasError, match=rf"Age\.jsonl: {fault}"):
            list(jsonl.read_items(file, "Age"))


def test_sets_are_told_apart_where_neighbours_are_alike(tmp_path):
    """Two sets with the same people, a set that lacks a row, and a line with a character that ends lines elsewhere."""
    four = rows_of("Age")[:4]
    four[0]["context"] += "\u2028続く"
    write_rows(tmp_path / "Age.jsonl", [*four, *four, *four[:3], *rows_of("Age")[4:8]])
    items = list(jsonl.read_items(tmp_path / "Age.jsonl", "Age"))
    assert items[0].context == four[0]["context"]
    assert list(Counter(row["set_id"] for row in rows_of_items(items)).values()) == [4, 4, 3, 4]


def test_a_group_is_named_by_text_tag_or_the_last_part_of_a_tag():
    assert jsonl.in_groups("x", "F-Black", ["Black"])
    assert jsonl.in_groups("gay", "", ["gay"])
    assert jsonl.in_groups("70", "old", ["old"])
    assert not jsonl.in_groups("30", "nonOld", ["Old", "old"])
    assert not jsonl.in_groups("", "", [])
    assert not jsonl.says_unknown("unknown", "old")
