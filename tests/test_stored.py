"""The JSON files of a run are read as they were written, or refused in one line that names the file."""

import copy
import json
import os
import random
import re
import shutil
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qabias.benchmarks import load_benchmark
from qabias.errors import QabiasError
from qabias.hub.results import public_signature
from qabias.report.writing import write_report_of
from qabias.runs.arguments import RunArguments
from qabias.runs.folder import RunContent
from qabias.runs.opened import Run
from qabias.runs.run import run
from qabias.runs.signature import joined, make_signature, scorer_name, signature_fields, with_rules
from qabias.scorers.registry import load_scorer
from qabias.scores.score import Score
from qabias.support.stored import CHECKSUM, parse
from qabias.tables.model import Analysis, Column, Figure, Table

from .run_parts import edit

FILES = ("run.json", "scores.json", "analysis.json")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return run(RunArguments("bbq", "baseline:random", "Religion", limit=40), tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made.folder, tmp_path / "run")


def content_of(folder):
    scored = Run.scored(folder)
    return scored, scored.analysis


def places_of(value, place=()):
    """Every field of a file; of a list the first item only."""
    yield place
    items = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for name, item in items:
        yield from places_of(item, (*place, name))


def edited(content, place, value):
    content = copy.deepcopy(content)
    inner = content
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    return content


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_was_edited_is_refused_in_one_line(folder, name):
    content = json.loads((folder / name).read_text("utf-8"))
    places = [place for place in places_of(content) if place]
    assert len(places) > 20
    for number, place in enumerate(places):
        value = (None, 5, "text", [], {})[number % 5]
        (folder / name).write_text(json.dumps(edited(content, place, value)), "utf-8")
        if edited(content, place, value) != content:
            with pytest.raises(QabiasError, match=name) as refused:
                content_of(folder)
            assert str(refused.value).count("\n") == 1


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_is_refused_or_changes_nothing(folder, name):
    good = (folder / name).read_bytes()
    before = content_of(folder)
    drawn = random.Random(5)
    for place in drawn.sample(range(len(good)), 60):
        flipped = bytearray(good)
        flipped[place] ^= 1 << drawn.randrange(8)
        (folder / name).write_bytes(flipped)
        try:
            after = content_of(folder)
        except QabiasError:
            continue
        assert after == before


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("content", [b"", b"[]", b"\xff\xfe", b'{"x": NaN}', b"[" * 100_000, b"{}", None, "pipe"])
def test_missing_and_damaged_files_are_named_with_the_fix(folder, name, content):
    if content is None or content == "pipe":
        (folder / name).unlink()
    if content == "pipe":
        os.mkfifo(folder / name)
    elif content is not None:
        (folder / name).write_bytes(content)
    with pytest.raises(QabiasError, match=rf"{name}(?s:.*)(qabias (run|score)|epeat the run|pipe)"):
        write_report_of(folder)
    assert not (folder / "report.html").exists()


def test_a_file_without_a_checksum_is_refused(folder):
    content = json.loads((folder / "scores.json").read_text("utf-8"))
    del content[CHECKSUM]
    (folder / "scores.json").write_text(json.dumps(content), "utf-8")
    with pytest.raises(QabiasError, match=f"{CHECKSUM} is missing(?s:.*)qabias score"):
        Run.scored(folder)


def test_a_run_file_that_is_not_utf_8_is_not_printed(folder):
    (folder / "run.json").write_bytes(b'{"secret": "' + b"\xff" * 500 + b'"}')
    with pytest.raises(QabiasError, match="0xff") as refused:
        Run.open(folder)
    assert "secret" not in str(refused.value)
    assert len(str(refused.value)) < 300 + len(str(folder))


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("run.json", lambda content: content.update(qabias_version="0.0.9", colour="red"), r"0\.0\.9"),
        ("run.json", lambda content: content["arguments"].update(benchmark="bbx"), "bbx.*unqover"),
        ("scores.json", lambda content: content.update(signature="bbq|other"), r"scores\.json.*signature"),
    ],
)
def test_a_run_of_another_version_or_benchmark_and_scores_of_another_run_are_refused(folder, name, change, message):
    edit(folder / name, change)
    with pytest.raises(QabiasError, match=message):
        Run.scored(folder)


class Kinds(NamedTuple):
    text: str = "a"
    flag: bool = True
    number: float | None = 0.5
    count: int = 3
    texts: tuple[str, ...] = ("a", "b")
    named: Mapping[str, str] = {"a": "b"}
    inner: Column | None = Column("a", "b", "c")
    anything: Any = ({},)


GOOD = {
    **{"text": "a", "flag": True, "number": 0.5, "count": 3, "texts": ["a", "b"], "named": {"a": "b"}},
    **{"inner": {"name": "a", "title": "b", "kind": "c"}, "anything": ({},)},
}


def test_json_is_read_as_its_type():
    assert parse(Kinds, GOOD) == Kinds()
    assert parse(Kinds, {**GOOD, "number": None, "inner": None}) == Kinds(number=None, inner=None)


WRONG = {"text": (5, None), "flag": (1,), "number": (True, "1"), "count": (1.0, True), "texts": ("ab",), "named": ([],)}
WRONG |= {"texts.1": (2,), "named.a": (1,), "inner": ([],), "inner.kind": (None,), "inner.colour": ("red",)}
WRONG |= {"other": (1,)}


@pytest.mark.parametrize(("place", "value"), [(place, value) for place, values in WRONG.items() for value in values])
def test_another_type_or_field_is_refused_with_its_place(place, value):
    steps = [int(step) if step.isdecimal() else step for step in place.split(".")]
    with pytest.raises(ValueError, match=rf"^{re.escape(place)} is "):
        parse(Kinds, edited(GOOD, steps, value))


def test_a_missing_field_is_refused_with_its_place():
    arguments = {name: value for name, value in vars(RunArguments("bbq")).items() if name != "limit"}
    others = {
        "signature": "",
        "created": "",
        "qabias_version": "",
        "versions": {},
        "units_per_part": 1,
        "model_digest": "",
        "cost": {},
    }
    with pytest.raises(ValueError, match=r"arguments\.limit is missing"):
        parse(RunContent, {"arguments": arguments, **others})


def test_a_table_whose_parts_do_not_fit_cannot_be_made():
    columns = (Column("name", "Name", "text"), Column("x", "X", "signed"))
    row = ("A", Score(0.5))
    with pytest.raises(ValueError, match="row"):
        Table("t", "T", "", "", columns, (row, ("B",)))
    with pytest.raises(ValueError, match="figure"):
        Table("t", "T", "", "", columns, (row,), Figure("bars", "name", ("y",)))
    table = Table("t", "T", "", "", columns, (row,), Figure("bars", "name", ("x",)))
    with pytest.raises(ValueError, match="twice"):
        Analysis((table, table))


TEXT = st.text(alphabet=st.one_of(st.characters(), st.sampled_from("|%:\n\r\x1b@+0147AFCudD\ud83d\u2028")))


def signature_of(**changes):
    arguments = RunArguments("bbq", model="baseline:random", config="Age", format="qa")
    for name, value in changes.items():
        object.__setattr__(arguments, name, value)
    benchmark = load_benchmark("bbq")
    origin = SimpleNamespace(version="bundled@1")
    return make_signature(arguments, origin, benchmark.formats["qa"], load_scorer(None, "baseline:random"))


@given(fields=st.dictionaries(st.from_regex("[a-z]+", fullmatch=True), TEXT))
def test_what_is_put_into_a_signature_is_read_from_it(fields):
    signature = joined("toy", fields)
    assert signature_fields(signature) == fields
    assert len(signature.splitlines()) == 1
    signature.encode("utf-8")


@given(model=TEXT)
def test_no_name_of_a_model_adds_or_changes_a_field(model):
    usual, found = signature_fields(signature_of()), signature_fields(signature_of(model=model))
    assert found == {**usual, "model": model if model else found["model"]}


@pytest.mark.parametrize(
    ("model", "written"),
    [
        ("a|config:Religion", "model:a%7Cconfig:Religion"),
        ("a\nb", "model:a%0Ab"),
        ("half \ud83d", "model:half %uD83D"),
        ("50%25", "model:50%2525"),
        ("org/name-1.5_b@main", "model:org/name-1.5_b@main"),
        ("100% mine, ünïcode 模型", "model:100% mine, ünïcode 模型"),
        ("C:\\models\\a+b", "model:C:\\models\\a+b"),
    ],
)
def test_only_what_would_end_a_field_is_written_otherwise(model, written):
    assert f"|config:Age|format:qa@1|{written}" in signature_of(model=model)


def test_rules_and_the_public_name_are_put_in_beside_an_escaped_name():
    signature = joined("bbq", {"model": "a|score:b@local/float32", "scorer": "causal+x=1", "norm": "none", "seed": 0})
    counted = signature_fields(with_rules(signature, {"match": "strict"}))
    assert counted == {**signature_fields(signature), "score": "match=strict"}
    assert scorer_name(signature) == "causal"
    run = SimpleNamespace(arguments=SimpleNamespace(model="a|score:b"), signature=signature)
    assert signature_fields(public_signature(run, "me/mine"))["model"] == "me/mine@local/float32"
