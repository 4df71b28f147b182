"""The files of a run folder are read by one reader, and every command refuses a wrong type in one line."""

import copy
import itertools
import json
import shutil

import pytest
from typer.testing import CliRunner

from qabias.cli import app
from qabias.errors import QabiasError
from qabias.runs.arguments import RunArguments
from qabias.runs.folder import read_run
from qabias.runs.run import run
from qabias.runs.scored import read_scored, read_tables
from qabias.support.stored import SEAL

VALUES = (None, 5, "text", [], {})


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for name, config in (("bbq", "Religion"), ("unqover", "religion"), ("bbnli", "man_is_to_surgeon")):
        run(RunArguments(name, "baseline:random", config, limit=40), folder / name)
    return folder


def places_of(value, place=()):
    """Every field of a file; of the items of a list the first only, and of alike groups the first."""
    if place:
        yield place
    if isinstance(value, dict):
        alike = place[-2:-1] == ("by",) or place[-1:] in (("ci",), ("detectable",), ("sets",))
        for name in list(value)[: 1 if alike else None]:
            yield from places_of(value[name], (*place, name))
    elif isinstance(value, list) and value:
        yield from places_of(value[0], (*place, 0))


def edited(content, place, value):
    content = copy.deepcopy(content)
    target = content
    for step in place[:-1]:
        target = target[step]
    target[place[-1]] = value
    return content


def unsealed(folder, name):
    """What one of the files holds, as an older version wrote it."""
    content = json.loads((folder / name).read_text("utf-8"))
    content.pop(SEAL, None)
    return content


def read(folder, name):
    """Read one of the files as every command does; what was said of it, "" where nothing was wrong."""
    try:
        scored = read_run(folder) if name == "run.json" else read_scored(folder)
        if name == "analysis.json":
            read_tables(scored)
    except QabiasError as error:
        return str(error)
    return ""


def _edits(folder, name):
    content = unsealed(folder, name)
    for place in places_of(content):
        for value in VALUES:
            yield edited(content, place, value)


@pytest.mark.parametrize("benchmark", ["bbq", "unqover", "bbnli"])
@pytest.mark.parametrize("name", ["run.json", "scores.json", "analysis.json"])
def test_a_wrong_type_anywhere_is_refused_by_the_reader_in_one_line_or_harmless(runs, tmp_path, benchmark, name):
    folder = shutil.copytree(runs / benchmark, tmp_path / "run")
    said = []
    for content in _edits(folder, name):
        (folder / name).write_text(json.dumps(content), "utf-8")
        said.append(read(folder, name))
    refusals = [text for text in said if text]
    assert len(refusals) > 20
    assert all(str(folder) in text and "\n" not in text for text in refusals)


def said_of(words):
    result = CliRunner().invoke(app, words)
    assert result.exception is None or isinstance(result.exception, QabiasError | SystemExit), (
        words,
        result.exception,
        result.exc_info,
    )
    return result


FIELDS = {
    "run.json": ("benchmark", "signature", "versions", "arguments", "units_per_part"),
    "scores.json": ("benchmark", "signature", "scores"),
    "analysis.json": ("tables", "examples", "how_chosen", "notes"),
}
DEEPER = {
    "run.json": [
        ("arguments", name) for name in ("benchmark", "model", "config", "source", "limit", "seed", "options")
    ],
    "scores.json": [
        ("scores", name) for name in ("bias_ambig", "n", "ci", "by", "detectable", "signature", "n_unparsed_ambig")
    ]
    + [("scores", "ci", "bias_ambig"), ("scores", "by", "category"), ("scores", "by", "category", "Religion")],
    "analysis.json": [("tables", 0), ("tables", 0, "columns"), ("tables", 0, "rows"), ("tables", 0, "figure")],
}


@pytest.mark.parametrize("name", FIELDS)
def test_no_command_ends_in_a_traceback_over_a_wrong_type(runs, tmp_path, name):
    folder = shutil.copytree(runs / "bbq", tmp_path / "run")
    other = str(runs / "bbq")
    good = unsealed(folder, name)
    commands = (
        ["show", str(folder)],
        ["report", str(folder), "--output", str(tmp_path / "report.html")],
        ["compare", str(folder), other, "--output", str(tmp_path / "compared")],
        ["results", str(folder), "--model-id", "me/model", "--dataset", "me/bbq", "--output", str(tmp_path)],
    )
    places = [*((field,) for field in FIELDS[name]), *DEEPER[name]]
    # Four commands in turn over five values: every field meets all of them.
    for words, (place, value) in zip(itertools.cycle(commands), itertools.product(places, VALUES), strict=False):
        (folder / name).write_text(json.dumps(edited(good, place, value)), "utf-8")
        said_of(words)


@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [
        (
            "run.json",
            ("arguments", "limit"),
            "many",
            r"arguments\.limit is 'many', not a whole number from 0 on; repeat",
        ),
        ("run.json", ("arguments", "model"), ["a"], r"arguments\.model is \['a'\], not a text; repeat the run"),
        ("run.json", ("arguments", "colour"), "red", r"arguments\.colour is 'red', not an argument of qabias"),
        ("run.json", ("signature",), None, r"signature is None, not a text"),
        ("scores.json", ("scores",), [], r"scores is \[\], not an object; score the run again with `qabias score"),
        (
            "scores.json",
            ("scores", "bias_ambig"),
            "x" * 999,
            r"scores\.bias_ambig is 'x{59}\.\.\., not a number or null",
        ),
        ("scores.json", ("scores", "ci", "bias_ambig"), [1], r"scores\.ci\.bias_ambig is \[1\], not a pair"),
        ("analysis.json", ("tables", 0, "rows", 0, 1), True, r"tables\.0\.rows\.0\.1 is True, not a"),
    ],
)
def test_what_is_wrong_is_named_with_file_field_value_and_what_to_do(runs, tmp_path, name, place, value, message):
    folder = shutil.copytree(runs / "bbq", tmp_path / "run")
    content = unsealed(folder, name)
    (folder / name).write_text(json.dumps(edited(content, place, value)), "utf-8")
    with pytest.raises(QabiasError, match=rf"{name} is damaged.*: {message}"):
        read_tables(read_scored(folder))


def test_a_run_file_that_is_not_utf_8_is_not_printed(runs, tmp_path):
    folder = shutil.copytree(runs / "bbq", tmp_path / "run")
    (folder / "run.json").write_bytes(b'{"secret": "' + b"\xff" * 500 + b'"}')
    with pytest.raises(
        QabiasError, match=r"run\.json is damaged or not of qabias .*: it is no JSON \(.*can't decode byte 0xff"
    ) as refused:
        read_run(folder)
    assert "secret" not in str(refused.value)
    assert len(str(refused.value)) < 300 + len(str(folder))


@pytest.mark.parametrize("name", ["scores.json", "analysis.json"])
def test_scores_and_tables_that_were_edited_or_flipped_are_refused(runs, tmp_path, name):
    folder = shutil.copytree(runs / "bbq", tmp_path / "run")
    good = (folder / name).read_bytes()
    before = read_scored(folder).scores, read_tables(read_scored(folder))
    for bit in range(0, 8 * len(good), 8 * len(good) // 200 + 1):
        flipped = bytearray(good)
        flipped[bit // 8] ^= 1 << bit % 8
        (folder / name).write_bytes(flipped)
        if read(folder, name) == "":
            assert (read_scored(folder).scores, read_tables(read_scored(folder))) == before
    content = json.loads(good)
    (folder / name).write_text(json.dumps(edited(content, [*content][:1], "other")), "utf-8")
    assert "is not as it was written (sha256 differs); score the run again" in read(folder, name)
