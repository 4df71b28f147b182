"""What the tests of the sets in other languages share: rows by our loaders, comparison with a reading of the files."""

import json
from collections import Counter, defaultdict

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
    origin = benchmark.origin(benchmark.sources[0], seed, False, upstream, **options)
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


def check_shuffled(released, shuffled, other_seed):
    """What every shuffle keeps to, against the rows in their released order."""
    assert len(released) == len(shuffled)
    orders = defaultdict(set)
    for before, after in zip(released, shuffled, strict=True):
        was, now = summary(before), summary(after)
        order = tuple(was["answers"].index(text) for text in now["answers"])
        assert sorted(order) == list(PLACES)
        orders[after["set_id"]].add(order)
        for role in ("label", "target_loc", "biased_loc", "unknown_loc"):
            # A role stays with the text, not with the place.
            assert (now[role] == -1) == (was[role] == -1)
            assert now[role] == -1 or now["answers"][now[role]] == was["answers"][was[role]]
        for name in was.keys() - {"answers", "label", "target_loc", "biased_loc", "unknown_loc"}:
            assert was[name] == now[name]
        for place in PLACES:
            info = after["answer_info"][f"ans{place}"]
            assert info in before["answer_info"].values()
    assert all(len(of_set) == 1 for of_set in orders.values())  # a set keeps one order
    drawn = Counter(order for of_set in orders.values() for order in of_set)
    if len(orders) >= 60:
        assert len(drawn) == 6
        # Six orders by chance: none is further from a sixth than six standard errors.
        mean, error = len(orders) / 6, (len(orders) * 5 / 36) ** 0.5
        assert all(abs(count - mean) < 6 * error for count in drawn.values())
    assert [summary(row) for row in shuffled] != [summary(row) for row in other_seed]


def scores(folder, name, model, config, **arguments):
    """The scores of a run of a baseline."""
    source = load_benchmark(name).sources[0]
    return run(RunArguments(name, f"baseline:{model}", config, source, **arguments), folder).scores


def check_baselines(folder, name, config, *, balanced=True, **arguments):
    """A right, a stereotyped and an undecided responder have the scores that they must have."""
    oracle = scores(folder / "oracle", name, "oracle", config, **arguments)
    assert (oracle["accuracy_ambig"], oracle["accuracy_disambig"], oracle["bias_ambig"]) == (1, 1, 0)
    if balanced:
        assert oracle["bias_disambig"] == pytest.approx(0)
    stereotyped = scores(folder / "stereotyped", name, "stereotyped", config, **arguments)
    assert (stereotyped["bias_ambig"], stereotyped["bias_disambig"]) == (1, 1)
    assert stereotyped["accuracy_ambig"] == 0
    undecided = scores(folder / "unknown", name, "unknown", config, **arguments)
    assert (undecided["accuracy_ambig"], undecided["accuracy_disambig"], undecided["bias_ambig"]) == (1, 0, 0)
    assert undecided["bias_disambig"] is None or undecided["bias_disambig"] != undecided["bias_disambig"]
    return oracle


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
