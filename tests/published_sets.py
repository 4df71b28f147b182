"""What the tests of the sets in other languages share: rows by our loaders, comparison with a reading of the files."""

import json
from collections import defaultdict

import pytest

from qabias.benchmarks import load_benchmark
from qabias.building import sources
from qabias.runs.arguments import RunArguments
from qabias.runs.run import run

PLACES = range(3)
NOT_HERE = "is not in the mirror of the published files"


def rows_of(name, config, *, seed=0, upstream=None, **options):
    """The rows of a configuration as our loader gives them."""
    benchmark = load_benchmark(name)
    with sources.using_mirror(upstream):
        origin = benchmark.origin(benchmark.sources[0], seed, False, **options)
        return benchmark.load(config, origin).to_pylist()


def published(upstream, repository, path):
    """A published file of the mirror; the test is skipped where the mirror lacks it."""
    file = upstream / repository / path
    if not file.is_file():
        pytest.skip(f"{file} {NOT_HERE}")
    return file


def summary(row):
    """What two readings of a row must have in common."""
    return {
        **{name: row[name] for name in ("category", "example_id", "template_id", "context", "question", "label_type")},
        **{name: row[name] for name in ("social_value", "question_polarity", "context_condition")},
        "answers": [row[f"ans{place}"] for place in PLACES],
        "groups": row["additional_metadata"]["stereotyped_groups"],
        "version": row["additional_metadata"]["version"],
        **{name: row[name] for name in ("label", "target_loc", "biased_loc", "unknown_loc")},
    }


def roles(target, unknown, negative):
    """Target, biased and unknown place; without a target -1."""
    other = next(place for place in PLACES if place not in (target, unknown))
    biased = -1 if target < 0 else target if negative else other
    return {"target_loc": target, "biased_loc": biased, "unknown_loc": unknown}


def partition(rows, key):
    """The numbers of the rows that belong together, as a set of tuples."""
    found = defaultdict(list)
    for number, row in enumerate(rows):
        found[key(row)].append(number)
    return {tuple(numbers) for numbers in found.values()}


def scores(folder, name, model, config, **arguments):
    """The scores of a run of a baseline."""
    source = load_benchmark(name).sources[0]
    return run(RunArguments(name, f"baseline:{model}", config, source, **arguments), folder).scores


def invent(monkeypatch, folder, repository, files):
    """A mirror of invented files under pins of their own; the pins of other files stay."""
    pins = json.loads(json.dumps(sources.pins()))
    for path, text in files.items():
        content = text.encode()
        file = folder / repository / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        pins[repository]["files"][path] = {"git_blob_sha1": sources.git_blob_sha1(content), "bytes": len(content)}
    monkeypatch.setattr(sources, "pins", lambda: pins)
    return folder
