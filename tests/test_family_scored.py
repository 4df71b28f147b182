"""Predictions that others collected on a set of the BBQ family: by position only in the order that was asked."""

import json

import pytest

import qabias
from qabias.building import sources
from qabias.errors import QabiasError
from qabias.runs.signature import signature_fields

from .published_sets import published, rows_of
from .test_collected import invoke

REPOSITORY = "shalakasatheesh/GG-BBQ"


@pytest.fixture(scope="module")
def released(upstream):
    for path in sources.pins()[REPOSITORY]["files"]:
        published(upstream, REPOSITORY, path)
    return rows_of("ggbbq", "labels", upstream=upstream, answers="released")


@pytest.fixture
def right(released, tmp_path):
    """The right answers, by their positions in the released rows."""
    path = tmp_path / "right.jsonl"
    write(path, released, lambda row: row["label"])
    return path


def write(path, rows, predict):
    lines = [
        json.dumps({"category": row["category"], "example_id": row["example_id"], "prediction": predict(row)})
        for row in rows
    ]
    path.write_text("\n".join(lines) + "\n", "utf-8")


def scored(path, upstream, folder, *arguments):
    shared = ("--benchmark", "ggbbq", "--config", "labels", "--upstream-dir", upstream, "--output", folder)
    invoke("score", path, *shared, *arguments)
    return qabias.read(folder, upstream_dir=upstream)


def test_the_signature_has_what_the_order_of_the_answers_was_drawn_by(right, upstream, tmp_path):
    given = {"seed 0": (), "seed 1": ("--seed", 1), "released": ("--option", "answers=released")}
    found = {name: scored(right, upstream, tmp_path / name, *of) for name, of in given.items()}
    assert len({of.signature for of in found.values()}) == 3
    fields = {name: signature_fields(of.signature) for name, of in found.items()}
    assert {name: of["seed"] for name, of in fields.items()} == {"seed 0": "0", "seed 1": "1", "released": "0"}
    assert "answers=released" in fields["released"]["source"]
    # What is asked for decides what a position means.
    assert found["released"].scores["accuracy"] == 1
    assert found["seed 0"].scores["accuracy"] < 0.6
    assert found["seed 1"].scores["accuracy"] < 0.6


def test_predictions_by_text_need_no_order(released, upstream, tmp_path):
    path = tmp_path / "texts.jsonl"
    write(path, released, lambda row: row[f"ans{row['label']}"])
    for number, of in enumerate([(), ("--seed", 1), ("--option", "answers=released")]):
        assert scored(path, upstream, tmp_path / str(number), *of).scores["accuracy"] == 1


def test_a_bundled_set_has_one_text_and_no_seed_in_the_signature():
    rows = qabias.load("bbq", "Age", limit=40)
    assert "seed" not in signature_fields(qabias.score(rows["label"], rows, seed=0).signature)


def test_an_option_that_the_benchmark_has_not_is_refused(right, upstream):
    with pytest.raises(QabiasError, match=r"the benchmark ggbbq has no option 'answer'; .*did you mean 'answers'\?"):
        invoke("score", right, "--benchmark", "ggbbq", "--option", "answer=released", "--upstream-dir", upstream)
    with pytest.raises(QabiasError, match="unknown answers 'sorted'"):
        invoke("score", right, "--benchmark", "ggbbq", "--option", "answers=sorted", "--upstream-dir", upstream)


def test_python_takes_the_option_or_finds_it_in_the_rows(released, right, upstream):
    shared = {"benchmark": "ggbbq", "config": "labels", "upstream_dir": upstream}
    assert qabias.score(right, option={"answers": "released"}, **shared).scores["accuracy"] == 1
    rows = qabias.load("ggbbq", "labels", option={"answers": "released"}, upstream_dir=upstream)
    assert qabias.score(rows["label"], rows, upstream_dir=upstream).scores["accuracy"] == 1
    with pytest.raises(QabiasError, match=r"^option is \{'answers': 'shuffled'\}, but the references were loaded with"):
        qabias.score(rows["label"], rows, option={"answers": "shuffled"}, upstream_dir=upstream)
