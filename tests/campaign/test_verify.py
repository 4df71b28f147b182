"""Changes of one answer, one text, one argument or one digit: `verify` finds and names each."""

import json
import random
import re
import shutil

import pytest

from qabias.benchmarks import locate
from qabias.evidence.verification import verify
from qabias.evidence.writing import FORMS, export
from qabias.runs.arguments import Machine, RunArguments
from qabias.runs.folder import part_path, read_part, write_checked
from qabias.runs.opened import Run
from qabias.runs.run import run
from qabias.support.files import write_text
from qabias.support.stored import CHECKSUM, checked_text
from tests.conftest import ROOT

from .helpers import SEED, size

DRAWN = random.Random(SEED)
EACH = 50


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run with its documents."""
    folder = tmp_path_factory.mktemp("verify") / "run"
    run(RunArguments("bbq", "baseline:random", "Age,Religion", limit=200), folder, Machine(shows_progress=False))
    for form in FORMS:
        export(folder, form)
    assert verify(folder).differences == ()
    return folder


@pytest.fixture
def copied(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "run")


def test_one_answer(copied):
    """Half of the changes have a valid checksum of their file."""
    stored = Run.open(copied)
    path = part_path(copied, 0)
    content, answers = path.read_bytes(), read_part(stored, 0)
    for number in range(size(EACH)):
        if number % 2:
            places = answers["prediction"].to_pylist()
            row = DRAWN.randrange(len(places))
            places[row] = (places[row] + DRAWN.choice((1, 2))) % 3
            column = answers.schema.get_field_index("prediction")
            changed = answers.set_column(column, "prediction", [places]).cast(answers.schema)
            write_checked(path, changed, stored.digest)
            assert any(one.place.startswith("scores.json/scores/") for one in verify(copied).differences), row
        else:
            flipped = bytearray(content)
            flipped[DRAWN.randrange(len(content))] ^= 1 << DRAWN.randrange(8)
            path.write_bytes(flipped)
            assert [one.place for one in verify(copied).differences] == ["predictions/part-00000.parquet"]


def test_one_text(copied, tmp_path, monkeypatch):
    folder = shutil.copytree(ROOT / "bbq_dataset", tmp_path / "texts")
    monkeypatch.setattr(locate, "dataset_folder", lambda _: folder)
    for _ in range(size(EACH)):
        name = DRAWN.choice(("Age", "Religion"))
        path = folder / "data" / name / "test-00000-of-00001.parquet"
        content = path.read_bytes()
        flipped = bytearray(content)
        flipped[DRAWN.randrange(len(content))] ^= 1 << DRAWN.randrange(8)
        path.write_bytes(flipped)
        [difference] = verify(copied).differences
        assert difference.place == "texts"
        assert name in difference.what
        path.write_bytes(content)


def test_one_argument(copied):
    """Half of the changes have a valid checksum of the file."""
    path = copied / "run.json"
    text = path.read_text("utf-8")
    changes = {
        "model": lambda: DRAWN.choice(("baseline:oracle", "me/model", "smollm2")),
        "config": lambda: DRAWN.choice(("Age", "Religion", "all")),
        "source": lambda: "official",
        "format": lambda: DRAWN.choice(("race", "arc")),
        "seed": lambda: DRAWN.randrange(1, 99),
        "limit": lambda: DRAWN.randrange(8, 199),
        "length_norm": lambda: DRAWN.choice(("token", "byte")),
        "rules": lambda: {"unparsed": "wrong"},
        "permutations": lambda: 3,
        "backend": lambda: "causal",
        "revision": lambda: "main",
        "dtype": lambda: "float16",
    }
    for number in range(size(EACH)):
        name = list(changes)[number // 2 % len(changes)]
        content = json.loads(text)
        content["arguments"][name] = changes[name]()
        if number % 2:
            del content[CHECKSUM]
            write_text(path, checked_text(content))
        else:
            path.write_text(json.dumps(content), "utf-8")
        named = [one.place for one in verify(copied).differences]
        assert any(place.startswith(("run.json", "predictions/", "texts")) for place in named), name


def test_one_digit_of_a_document(copied):
    paths = sorted(path for path in (copied / "export").rglob("*") if path.is_file())
    for number in range(size(EACH)):
        path = paths[number % len(paths)]
        text = path.read_text("utf-8")
        place = DRAWN.choice([match.start() for match in re.finditer(r"\d", text)])
        changed = f"{text[:place]}{(int(text[place]) + DRAWN.randrange(1, 10)) % 10}{text[place + 1 :]}"
        path.write_text(changed, "utf-8")
        line = text[:place].count("\n") + 1
        differences = verify(path, copied).differences
        assert [one.place for one in differences] == [f"{path.name}:{line}"], (path.name, line)
        path.write_text(text, "utf-8")
