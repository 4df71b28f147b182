"""What was changed in BBQ's bundled texts between versions 1 and 2: every note of the blind readers has its answer."""

import csv
import os
import re
from collections import Counter
from pathlib import Path

import pytest

from bbq_dataset import bundled
from bbq_dataset.template import CATEGORIES
from bbq_dataset.vocabulary import read_vocabulary

from .conftest import ROOT

COLUMNS = ("template", "condition", "kind", "what", "why")


@pytest.fixture(scope="module")
def changes():
    """The rows of the tables in CHANGES.md."""
    text = (ROOT / "bbq_dataset" / "CHANGES.md").read_text("utf-8")
    cells = [re.split(r"(?<!\\)\|", line)[1:-1] for line in text.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in row] for row in cells]
    assert {len(row) for row in rows} == {len(COLUMNS)}
    return [dict(zip(COLUMNS, row, strict=True)) for row in rows if row != list(COLUMNS) and set(row[0]) - set("-: ")]


@pytest.fixture(scope="module")
def notes():
    """What the readers' notes are about: template, condition and kind."""
    with (ROOT / "tests" / "bundled_notes.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_notes_are_those_of_the_readers(notes):
    """Their texts are not committed."""
    folder = Path(os.environ.get("QABIAS_REVIEW") or ROOT.parent / "shared" / "review")
    path = folder / "bundled_notes.csv"
    if not path.exists():
        pytest.skip(f"no notes of the readers at {path} (set QABIAS_REVIEW)")
    with path.open(encoding="utf-8", newline="") as file:
        written = Counter(tuple(note[name] for name in notes[0]) for note in csv.DictReader(file))
    assert written == Counter(tuple(note.values()) for note in notes)


def test_every_note_has_its_answer(changes, notes):
    assert len(notes) == 325
    noted = Counter((note["template_id"], note["condition"], note["kind"]) for note in notes)
    answered = Counter((row["template"], row["condition"], row["kind"]) for row in changes if row["condition"] != "-")
    assert {key: n for key, n in noted.items() if answered[key] != n} == {}
    assert answered.keys() - noted.keys() == set()


def test_every_row_says_what_and_why_of_a_template_that_there_is(changes):
    vocabulary = read_vocabulary(bundled.FOLDER / "vocabulary")
    known = {t.template_id for category in CATEGORIES for t in bundled.read_templates(category, vocabulary)}
    assert {row["template"] for row in changes} - known == set()
    for row in changes:
        assert row["what"], row
        assert row["why"], row
        assert (row["condition"] == "-") == (row["kind"] == "-"), row
    assert {row["template"].rpartition("-")[0] for row in changes} == set(CATEGORIES)
