"""`bundled@1` of BBNLI and UnQover: the former texts give the same rows as before."""

import csv
import hashlib
import json

import pytest

import bbnli_dataset.builder
import unqover_dataset.builder
from qabias.benchmarks import load_benchmark, make_origin

from .conftest import ROOT

ORIGINS = {"bbnli": bbnli_dataset.builder.Origin, "unqover": unqover_dataset.builder.Origin}


def kept():
    """What the rows of version 1 were, by benchmark and configuration."""
    with (ROOT / "tests" / "former_texts.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def digest_of(table):
    digest = hashlib.sha256()
    for batch in table.to_batches(10_000):
        for row in batch.to_pylist():
            digest.update((json.dumps(row, sort_keys=True) + "\n").encode())
    return digest.hexdigest()


@pytest.mark.parametrize("was", kept(), ids=lambda was: was["configuration"])
def test_a_configuration_has_the_rows_that_it_had(was):
    table = ORIGINS[was["benchmark"]]("bundled@1").table(was["configuration"])
    assert str(table.num_rows) == was["rows"]
    n_digested = int(was["digested"])
    assert digest_of(table.slice(0, n_digested)) == was["sha256_of_rows"]


@pytest.mark.parametrize("name", ORIGINS)
def test_the_present_texts_are_others_under_another_version(name):
    benchmark = load_benchmark(name)
    former, present = (make_origin(benchmark, source, 0, False, None, {}) for source in ("bundled@1", "bundled"))
    assert (former.version, present.version) == ("bundled@1", "bundled@2")
    config = {"bbnli": "white_is_to_clean", "unqover": "religion"}[name]
    then, now = benchmark.load(config, former), benchmark.load(config, present)
    assert then.num_rows == now.num_rows
    assert not then.equals(now)


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("bbq_dataset", "db22eae979a824bae315fd719908e24772ed252c0ab26cc39cdbb9cb5f01db0a"),
        ("bbnli_dataset", "3a8789f48c9269cc4f8d7b8748e0744b25774d087b96f0af296f2e9e5d4e7819"),
        ("unqover_dataset", "32978aa175df5009443dc9a92fd352cca457705cf9a32d5be2f8ec526dd42e08"),
    ],
)
def test_no_file_of_the_former_texts_is_changed(folder, expected):
    digest = hashlib.sha256()
    for path in sorted((ROOT / folder / "bundled_1").rglob("*.*")):
        digest.update(path.relative_to(ROOT / folder).as_posix().encode() + path.read_bytes())
    assert digest.hexdigest() == expected
