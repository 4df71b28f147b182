"""The papers: every item is in docs/paper-tables.md with its command, and every run of a suite finishes."""

from __future__ import annotations

import copy
import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
import torch
from tokenizers import AddedToken

from docs import papers
from lab.reproduce.running import make_means, run_suite
from lab.reproduce.suites import choose_models, expand, load_suite, suite_names
from qabias.benchmarks import load_benchmark
from qabias.runs.arguments import Machine

from .saved_models import make_t5, save
from .tiny_models import ENCODER_CONFIGS, make_encoder, make_encoder_tokenizer, make_tokenizer

UPSTREAM = Path(os.environ.get("QABIAS_UPSTREAM") or papers.ROOT.parent / "shared" / "upstream")
# Numbers of the last figure, table and equation of each paper, in the order of the file.
LAST = {"BBQ": (10, 4, 0), "UnQover": (6, 18, 9), "BBNLI": (3, 13, 0)}


@pytest.fixture(scope="module")
def content():
    return papers.read()


def test_the_tests_that_items_name_exist():
    named = re.findall(r"(tests/[\w/]+\.py)::(\w+)", (papers.ROOT / "docs" / "reproduce.yaml").read_text("utf-8"))
    assert named
    assert [name for path, name in named if f"\ndef {name}(" not in (papers.ROOT / path).read_text("utf-8")] == []


def test_every_numbered_item_of_the_papers_is_there_with_its_command(content):
    for paper, (name, counts) in zip(content["papers"], LAST.items(), strict=True):
        assert paper["title"].startswith(name)
        for kind, last in zip(("Figure", "Table", "Equation"), counts, strict=True):
            labels = [item["item"] for item in paper["items"] if re.match(rf"{kind}s? \d", item["item"])]
            numbers = sorted(int(number) for label in labels for number in re.findall(r"\d+", label))
            assert numbers == list(range(1, last + 1)), (name, kind)
        for item in paper["items"]:
            assert all(item[key] for key in ("command", "table", "check"))
            assert item["status"] in ("complete", "partly", "cannot be")
            assert item["status"] == "complete" or item["note"], item["item"]
            for value in item.get("values", ()):  # what differs from the print has a reason beside it
                assert round(value["ours"], 1) == value["published"] or item["note"], item["item"]


def test_the_page_is_what_the_script_writes(content):
    page = papers.PAGE.read_text(encoding="utf-8")
    written = page.partition(papers.BEGIN)[2].partition(papers.END)[0]
    assert written == papers.page(content), "python -m docs.papers --write"


@pytest.mark.parametrize(
    ("column", "invent", "item"),
    [
        ("cognitive_bias", lambda _: "halo effect", "Table 1"),
        (
            "answer_info",
            lambda people: {**people, "ans0": ["retiree", "old"], "ans1": ["20-year-old", "nonOld"]},
            "Appendix A",
        ),
    ],
)
def test_one_wrong_row_of_a_data_set_is_found(content, monkeypatch, column, invent, item):
    """A label that nobody released, or an age in years compared with words."""
    if UPSTREAM.exists():
        monkeypatch.setenv("QABIAS_UPSTREAM", str(UPSTREAM))
    checked = next(
        one
        for paper in content["papers"]
        for one in paper["items"]
        if one["item"] == item and (column in str(one["check"]) or "mixed" in str(one["check"]))
    )
    papers.check(checked, {})
    load = papers._examples

    def with_a_wrong_row(*names):
        values = (table := load(*names))[column].to_pylist()
        values[0] = invent(values[0])
        field = table.schema.field(column)
        return table.set_column(table.column_names.index(column), field, [pa.array(values, field.type)])

    monkeypatch.setattr(papers, "_examples", with_a_wrong_row)
    with pytest.raises(papers.MissingError):
        papers.check(checked, {})


@pytest.mark.slow
def test_every_item_comes_from_its_command(content, tmp_path):
    folders = papers.run_steps(content["steps"], tmp_path)
    for paper in content["papers"]:
        for item in paper["items"]:
            papers.check(item, folders)


@pytest.mark.slow
def test_published_values_come_from_the_published_outputs(content, tmp_path):
    n, missing = papers.published_values(content, UPSTREAM, tmp_path)
    if not n:
        pytest.skip("the authors' outputs are not here; set QABIAS_UPSTREAM to a mirror with nyu-mll/BBQ/results")
    assert n == sum(papers.category_of(value) not in missing for _, _, value in papers.values_of(content))
    wrong = copy.deepcopy(content)
    next(value for _, _, value in papers.values_of(wrong) if papers.category_of(value) not in missing)["ours"] += 0.1
    with pytest.raises(papers.MissingError, match="and not"):
        papers.published_values(wrong, UPSTREAM, tmp_path)  # its runs are finished


HEADS = {
    "masked_lm": "AutoModelForMaskedLM",
    "extractive_qa": "AutoModelForQuestionAnswering",
    "multiple_choice": "AutoModelForMultipleChoice",
}
POSITIONS = {"roberta": 514, "distilbert": 512, "bert": 512, "deberta-v2": 512}
N_EXAMPLES = 16


def architecture(name):
    """Whose configuration a published model has, by its name in the suite."""
    if name.startswith(("unifiedqa", "t0")):
        return "t5"
    return next(kind for kind in ("distilbert", "roberta", "deberta-v2", "bert") if name.startswith(kind[:7]))


def subjects():
    """Everyone whom a masked model may be asked about."""
    benchmark = load_benchmark("unqover")
    lists = [benchmark.origin("official", 0, False, subjects=name) for name in ("bert", "roberta")]
    tables = [benchmark.load("all_mlm", origin) for origin in lists]
    return sorted(
        {name for table in tables for column in ("answer1", "answer2") for name in table[column].unique().to_pylist()}
    )


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory):
    """The folder of a small model of the architecture and head of a published one."""
    where = tmp_path_factory.mktemp("models")
    known = subjects()
    made = {}

    def get(name, scorer):
        kind = architecture(name)
        if (kind, scorer) not in made:
            made[kind, scorer] = make(where / f"{kind}-{scorer}", kind, scorer)
        return made[kind, scorer]

    def make(folder, kind, scorer):
        if kind == "t5":
            return save(folder, make_t5(), make_tokenizer())
        tokenizer = copy.deepcopy(make_encoder_tokenizer(ENCODER_CONFIGS[kind][1]))
        options = {"max_position_embeddings": POSITIONS[kind]}
        if scorer == "masked_lm":
            # A published vocabulary has these names as single tokens, with the space before them.
            tokenizer.add_tokens([AddedToken(name, lstrip=True, normalized=False) for name in known])
            options["vocab_size"] = len(tokenizer)
        torch.manual_seed(0)
        return save(folder, make_encoder.__wrapped__(kind, HEADS[scorer], **options), tokenizer)

    return get


@pytest.mark.slow
@pytest.mark.skipif(
    not (UPSTREAM / "allenai" / "unqover").exists(),
    reason="the authors' files are not here; set QABIAS_UPSTREAM to a mirror",
)
@pytest.mark.parametrize("name", suite_names())
def test_every_run_of_a_paper_finishes_and_its_means_are_made(tmp_path, folder_of, name):
    suite = load_suite(name)
    published = choose_models(suite, ())
    # A model with random weights does not end its answers.
    ends = {"max_new_tokens": "4"} if name == "bbnli" else {}
    tiny = [
        replace(model, model=folder_of(model.name, model.scorer), made_by="", options={**model.options, **ends})
        for model in published
    ]
    source = "bundled" if suite.source == "release" else None  # the mirror has some of the released files only
    runs = expand(suite, tiny, source=source, limit=N_EXAMPLES)
    assert [run.name for run in runs] == [run.name for run in expand(suite, published)]
    in_paper = [one for one in suite.experiments if "not in the paper" not in one.claim]
    assert {run.experiment.name for run in runs} == {one.name for one in in_paper}
    runs = list({repr(run.arguments): run for run in runs}.values())  # models of one architecture have one stand-in
    machine = Machine(batch_tokens=8192)  # few batches: each takes as long as one answer
    outcomes = run_suite(runs, tmp_path, machine, lambda _: None)
    assert not [(outcome.run.name, outcome.failure) for outcome in outcomes if outcome.failure]
    for outcome in outcomes:
        assert (outcome.folder / "scores.json").exists()
    means = make_means(outcomes, tmp_path)
    wanted = {(run.model.name, run.experiment.name) for run in runs if run.experiment.mean}
    assert {mean.page.parent.name for mean in means} == {f"{model}-{one}-mean" for model, one in wanted}
    for mean in means:
        assert json.loads((mean.page.parent / "pool.json").read_text("utf-8"))["claim"] == mean.pool.claim
