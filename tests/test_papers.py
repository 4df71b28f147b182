"""The table of docs/reproduce.md: every item of the papers is in it, and a command gives each."""

from __future__ import annotations

import copy
import os
import re
from pathlib import Path

import pytest

from docs import papers

UPSTREAM = Path(os.environ.get("QABIAS_UPSTREAM") or papers.ROOT.parent / "shared" / "upstream")
# Numbers of the last figure, table and equation of each paper, in the order of the file.
LAST = {"BBQ": (10, 4, 0), "UnQover": (6, 18, 9), "BBNLI": (3, 13, 0)}


@pytest.fixture(scope="module")
def content():
    return papers.read()


def test_every_numbered_item_of_the_papers_is_there(content):
    for paper, (name, counts) in zip(content["papers"], LAST.items(), strict=True):
        assert paper["title"].startswith(name)
        for kind, last in zip(("Figure", "Table", "Equation"), counts, strict=True):
            labels = [item["item"] for item in paper["items"] if re.match(rf"{kind}s? \d", item["item"])]
            found = sorted(int(number) for label in labels for number in re.findall(r"\d+", label))
            assert found == list(range(1, last + 1)), (name, kind)


def test_every_item_says_how_it_is_had_and_what_holds(content):
    for paper in content["papers"]:
        for item in paper["items"]:
            assert item["command"]
            assert item["table"]
            assert item["check"]
            assert item["status"] in ("complete", "partly", "cannot be")
            assert item["status"] == "complete" or item["note"], item["item"]
            for value in item.get("values", ()):  # what differs from the print has a reason beside it
                assert round(value["ours"], 1) == value["published"] or item["note"], item["item"]


def test_the_page_is_what_the_script_writes(content):
    page = papers.PAGE.read_text(encoding="utf-8")
    written = page.partition(papers.BEGIN)[2].partition(papers.END)[0]
    assert written == papers.page(content), "python -m docs.papers --write"


def test_an_item_that_is_not_there_is_found(tmp_path):
    folder = tmp_path / "run"
    papers.run("run bbq --config Age --model baseline:random --limit 40", folder)
    there = {"item": "Figure 5", "what": "accuracy", "check": {"step": "run", "tables": ["accuracy_by_category"]}}
    papers.check(there, {"run": folder})
    for wrong in (
        {**there, "item": "Figure 4"},
        {**there, "item": "Table 5"},
        {**there, "check": {"tested_by": "tests/no_such_file.py"}},
        {**there, "check": {}},
        {**there, "check": {"step": "run", "tables": ["comparisons_Race_x_gender"]}},
        {**there, "check": {"step": "run", "scores": ["mu"]}},
        {**there, "check": {"columns": ["bbq", "Age", "no_such_column"]}},
        {**there, "check": {"rows": ["bbq", 1]}},
        {**there, "check": {"formats": ["bbq", "no_such_format"]}},
        {**there, "check": {"step": "run", "file": "none.csv"}},
    ):
        with pytest.raises((papers.MissingError, papers.QabiasError)):
            papers.check(wrong, {"run": folder})


@pytest.mark.slow
def test_every_item_comes_from_its_command(content, tmp_path):
    folders = papers.run_steps(content["steps"], tmp_path)
    for paper in content["papers"]:
        for item in paper["items"]:
            papers.check(item, folders)


def test_published_values_come_from_the_published_outputs(content, tmp_path):
    n, missing = papers.published_values(content, UPSTREAM, tmp_path)
    if not n:
        pytest.skip("the authors' outputs are not here; set QABIAS_UPSTREAM to a mirror with nyu-mll/BBQ/results")
    assert n == sum(papers.category_of(value) not in missing for _, _, value in papers.values_of(content))
    wrong = copy.deepcopy(content)
    next(value for _, _, value in papers.values_of(wrong) if papers.category_of(value) not in missing)["ours"] += 0.1
    with pytest.raises(papers.MissingError, match="and not"):
        papers.published_values(wrong, UPSTREAM, tmp_path / "again")
