"""What a report refuses to show: files that are missing, damaged or of another run, and numbers that cannot be."""

import dataclasses
import json

import pytest

from qabias.errors import QabiasError
from qabias.report.writing import write_report_of
from qabias.support.stored import SEAL
from qabias.tables.model import Analysis

from .report_pages import BIAS, SCORES, run_of, table_of


def test_p_values_are_read_and_only_from_0_to_1(filled, page):
    table = table_of(
        "intervals", [("x", "X", "signed"), ("p", "p", "p")], [("A", 0.5, 0.0001), ("B", 0.1, None)], ["x"]
    )
    assert page(analysis=Analysis((table,))).row("A")[2] == "<\u00a00.001"
    wrong = dataclasses.replace(table, rows=(("A", 0.5, 1.5),))
    with pytest.raises(QabiasError, match=r"row 0, p holds 1.5, not null or a number from 0 to 1"):
        write_report_of(filled(analysis=Analysis((wrong,))))


@pytest.mark.parametrize("name", ["run.json", "scores.json", "analysis.json"])
@pytest.mark.parametrize(
    "content", [b"", b'{"benchmark": "bbq"', b"[]", b"\xff\xfe", b'{"x": NaN}', b"[" * 100_000, b"3", None]
)
def test_missing_and_damaged_files_are_named_with_the_fix(filled, name, content):
    file = filled() / name
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)
    fault = "(damaged|no such file|does not exist|; name a folder that).*(`qabias |repeat the run)"
    with pytest.raises(QabiasError, match=f"{name}.*{fault}"):
        write_report_of(file.parent)
    assert not (file.parent / "report.html").exists()


def test_an_unknown_benchmark_lists_those_that_are_installed(filled):
    with pytest.raises(
        QabiasError, match=r"run.json: unknown benchmark 'bbx', here are bbq, unqover, .*; install the package"
    ):
        write_report_of(filled(run=run_of("bbx"), scores={"n": 0}))


def test_a_run_file_that_contradicts_itself_is_damaged(filled):
    with pytest.raises(QabiasError, match=r"run.json is damaged .*benchmark is 'bbnli', not that of arguments"):
        write_report_of(filled(run=run_of() | {"benchmark": "bbnli"}))


@pytest.mark.parametrize(
    "key", ["benchmark", "signature", "created", "qabias_version", "versions", "arguments", "units_per_part"]
)
def test_every_part_of_run_json_is_needed(filled, key):
    path = filled()
    run = run_of()
    del run[key]
    (path / "run.json").write_text(json.dumps(run), encoding="utf-8")
    with pytest.raises(QabiasError, match=rf"run.json is damaged or not of qabias .*{key}.*repeat the run"):
        write_report_of(path)


def test_scores_of_another_run_are_refused(filled):
    path = filled()
    (path / "run.json").write_text(json.dumps(run_of() | {"signature": "bbq|other"}), encoding="utf-8")
    with pytest.raises(QabiasError, match=r"scores.json: its signature .* is not that of run.json, 'bbq\|other'"):
        write_report_of(path)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("bias_ambig", 1.5, r"bias_ambig holds 1.5, not null or a number from -1 to 1"),
        ("accuracy_ambig", -0.5, r"accuracy_ambig holds -0.5, not null or a number from 0 to 1"),
        ("bias_ambig", "high", "bias_ambig is 'high', not a number or null"),
        ("bias_ambig", True, "bias_ambig is True, not a number or null"),
        ("n", None, "n is None, not a count"),
        ("n_templates", 2.5, "n_templates is 2.5, not a count"),
        ("n_unparsed_ambig", -1, "n_unparsed_ambig is -1, not a count"),
        ("ci", [], r"ci is \[\], not an object"),
        ("ci", {"bias_ambig": [0.1]}, r"ci.bias_ambig is \[0.1\], not a pair"),
        ("ci", {"bias_ambig": [0.1, 7]}, "bias_ambig holds 7"),
        ("by", {"category": 3}, "by.category is 3, not an object"),
    ],
)
def test_impossible_scores_are_named(filled, key, value, message):
    with pytest.raises(QabiasError, match=rf"scores.json is damaged: scores\.{message}"):
        write_report_of(filled(scores=SCORES["bbq"] | {key: value}))


@pytest.mark.parametrize("benchmark", sorted(SCORES))
def test_a_missing_score_is_named(filled, benchmark):
    scores = json.loads(json.dumps(SCORES[benchmark]))
    key = {"unqover": "mu", "bbnli": "bias_score", "bbq_nli": "bias_score_ambig", "bbq_qa": "bias_score_ambig"}.get(
        benchmark, "bias_ambig"
    )
    del (scores["sets"]["religion"] if benchmark == "unqover" else scores)[key]
    with pytest.raises(QabiasError, match=f"lacks '{key}'; score the run again with `qabias score"):
        write_report_of(filled(run=run_of(benchmark), scores=scores))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.update(name=3), "name is 3, not a text"),
        (lambda table: table.update(title=None), "title is None, not a text"),
        (lambda table: table["columns"][1].update(kind="shares"), "columns.1.kind is 'shares', not one of 'text'"),
        (lambda table: table["figure"].update(kind="pie"), "figure.kind is 'pie', not one of 'intervals'"),
        (lambda table: table["figure"].update(values=["nothing"]), "figure.values.0 is 'nothing', not one of "),
        (lambda table: table["figure"].update(values=[]), "its figure needs the columns of values"),
        (lambda table: table["rows"][0][1].update(value=2), "row 0, bias_ambig holds 2, not null or a number from -1"),
        (lambda table: table["rows"][1][1].update(low="x"), "rows.1.1.low is 'x', not a number or null"),
        (lambda table: table["rows"][1].__setitem__(3, 1.5), "row 1, n is 1.5, not a count"),
        (lambda table: table["rows"][1].__setitem__(0, 7), "rows.1.0 is 7, not a text"),
        (lambda table: table["rows"][1].pop(), "damaged"),
        (lambda table: table["rows"][1].__setitem__(1, 1e999), "holds inf|damaged"),
    ],
)
def test_an_impossible_table_is_named(filled, change, message):
    path = filled()
    content = json.loads((path / "analysis.json").read_text(encoding="utf-8"))
    del content[SEAL]
    change(content["tables"][0])
    (path / "analysis.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(QabiasError, match=message):
        write_report_of(path)
    assert not (path / "report.html").exists()


def test_two_tables_of_one_name_are_refused(filled):
    with pytest.raises(QabiasError, match="table 'bias_by_category' comes twice"):
        write_report_of(filled(analysis=Analysis((BIAS, BIAS))))


def test_a_failed_write_is_reported_and_leaves_nothing(filled):
    path = filled()
    (path / "report.html").mkdir()
    with pytest.raises(QabiasError, match=r"cannot write .*report.html"):
        write_report_of(path)
    files = ["analysis.json", "report.html", "run.json", "scores.json"]
    assert sorted(p.name for p in path.iterdir()) == files
