"""What every published set in another language keeps to: orders of answers, baselines, whole sets, pinned files.

How the files of each set are read stands in the test file of the set.
"""

import json
from collections import Counter, defaultdict

import pytest

import qabias
from qabias.benchmarks import load_benchmark
from qabias.building import sources
from qabias.errors import QabiasError
from qabias.runs.signature import signature_fields

from .published_sets import published, rows_of, scores, summary
from .test_collected import invoke

FILES = {
    "kobbq": ("naver-ai/KoBBQ", "data/KoBBQ_test_samples.tsv"),
    "esbbq": ("langtech-bsc/EsBBQ-CaBBQ", "data_es/Religion.full.csv"),
    "mbbq": ("Veranep/MBBQ", "data/Sexual_orientation_control_nl.jsonl"),
    "ggbbq": ("shalakasatheesh/GG-BBQ", "data/subset-1/bbq_de_amb_test.jsonl"),
    "basqbbq": ("orai-nlp/BasqBBQ", "data/BasqBBQ/Orientazio_sexual.jsonl"),
}
"""A file of each set that the mirror has."""


@pytest.fixture
def mirror(upstream, monkeypatch):
    monkeypatch.setenv("QABIAS_UPSTREAM", str(upstream))
    for file in FILES.values():
        published(upstream, *file)
    return upstream


@pytest.mark.parametrize(
    ("name", "config", "places"),
    [
        ("kobbq", "Religion,SES", {2}),
        ("esbbq", "Religion", {2}),
        ("mbbq", "nl_Sexual_orientation", {0, 1, 2}),
        ("ggbbq", "labels", {2}),
    ],
)
def test_answers_are_shuffled_by_set_and_roles_stay_with_the_texts(mirror, name, config, places):
    released = rows_of(name, config, upstream=mirror, answers="released")
    shuffled, again, other = (
        rows_of(name, config, seed=seed, upstream=mirror, answers="shuffled") for seed in (0, 0, 1)
    )
    assert {row["unknown_loc"] for row in released} == places
    assert shuffled == again
    assert [summary(row) for row in shuffled] != [summary(row) for row in other]
    default = {"mbbq": released}.get(name, shuffled)
    assert rows_of(name, config, upstream=mirror) == default
    # The shuffle of a category does not depend on what else is asked.
    last = config.split(",")[-1]
    assert rows_of(name, last, upstream=mirror) == [row for row in default if row["category"] == last]
    orders = defaultdict(set)
    for before, after in zip(released, shuffled, strict=True):
        was, now = summary(before), summary(after)
        orders[after["set_id"]].add(tuple(was["answers"].index(text) for text in now["answers"]))
        assert sorted(was.pop("answers")) == sorted(now.pop("answers"))
        for role in ("label", "target_loc", "biased_loc", "unknown_loc"):
            place, place_now = was.pop(role), now.pop(role)
            assert (place == -1) == (place_now == -1)
            assert place == -1 or before[f"ans{place}"] == after[f"ans{place_now}"]
            assert place == -1 or before["answer_info"][f"ans{place}"] == after["answer_info"][f"ans{place_now}"]
        assert was == now
    assert {len(of_set) for of_set in orders.values()} == {1}  # a set keeps one order
    drawn = Counter(order for of_set in orders.values() for order in of_set)
    # Six orders by chance: none is further from a sixth than six standard errors.
    mean, error = len(orders) / 6, (len(orders) * 5 / 36) ** 0.5
    assert len(drawn) == 6
    assert all(abs(count - mean) < 6 * error for count in drawn.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "config", "options", "expected"),
    [
        ("kobbq", "Political_orientation", {}, {"n": 88, "n_templates": 11}),
        ("esbbq", "Religion", {"permutations": 3, "format": "letters"}, {"n": 648, "n_templates": 16}),
        ("mbbq", "nl_Sexual_orientation,nl_Sexual_orientation_control", {}, {"n": 304}),
        ("ggbbq", "labels", {"limit": 80}, {"n": 80, "n_undefined_target": 0}),
        ("basqbbq", "Orientazio_sexual", {"limit": 120}, {"n": 120, "n_undefined_target": 0}),
    ],
)
def test_baselines_have_the_scores_that_they_must_have(mirror, tmp_path, name, config, options, expected):
    oracle, stereotyped, undecided = (
        scores(tmp_path / model, name, model, config, **options) for model in ("oracle", "stereotyped", "unknown")
    )
    assert {key: oracle[key] for key in expected} == expected
    assert set(oracle["by"]["category"]) == set(config.split(",")) or config == "all"
    assert (oracle["accuracy_ambig"], oracle["accuracy_disambig"], oracle["bias_ambig"]) == (1, 1, 0)
    assert "limit" in options or oracle["bias_disambig"] == pytest.approx(0)
    assert (stereotyped["bias_ambig"], stereotyped["bias_disambig"], stereotyped["accuracy_ambig"]) == (1, 1, 0)
    assert (undecided["accuracy_ambig"], undecided["accuracy_disambig"], undecided["bias_ambig"]) == (1, 0, 0)
    assert undecided["bias_disambig"] is None or undecided["bias_disambig"] != undecided["bias_disambig"]


@pytest.mark.parametrize(("name", "config"), [("kobbq", "all"), ("mbbq", "nl_Disability_status")])
def test_a_limit_takes_whole_sets(mirror, tmp_path, name, config):
    found = scores(tmp_path, name, "stereotyped", config, limit=50)
    assert (found["n"], found["n_ambig"], found["bias_ambig"]) == (48, 24, 1)


@pytest.mark.parametrize(
    ("name", "config", "token"),
    [
        ("kobbq", "Nationality", "Nationality"),
        ("kobbq", "SES,Age", "Age,SES"),
        ("kobbq", "Age,all", "repeats Age"),
        ("mbbq", "nl_age", "Did you mean 'nl_Age'"),
        ("mbbq", "nl_Age,nl", "repeats nl_Age"),
    ],
)
def test_a_configuration_that_there_is_not(name, config, token):
    with pytest.raises(QabiasError, match=token):
        load_benchmark(name).check_config(config)


def test_a_file_that_the_mirror_lacks_or_that_was_changed_is_named(upstream, tmp_path):
    with pytest.raises(QabiasError, match="Orientazio_sexual"):
        rows_of("basqbbq", "Orientazio_sexual", upstream=tmp_path)
    file = published(upstream, *FILES["basqbbq"])
    changed = tmp_path.joinpath(*FILES["basqbbq"])
    changed.parent.mkdir(parents=True)
    changed.write_bytes(file.read_bytes() + b"\n")
    with pytest.raises(QabiasError, match="is not the published file"):
        rows_of("basqbbq", "Orientazio_sexual", upstream=tmp_path)


@pytest.mark.parametrize("name", FILES)
def test_the_files_that_a_set_fetches_are_pinned(name, monkeypatch):
    benchmark = load_benchmark(name)
    fetched = []

    def fetch(repository, path):
        fetched.append(path)
        raise QabiasError("nothing is read")

    monkeypatch.setattr(sources, "fetch", fetch)
    for category in dict.fromkeys(member for config in benchmark.configs for member in benchmark.members(config)):
        with pytest.raises(QabiasError):
            benchmark.table(category, benchmark.origin("release", 0, False))
    assert set(fetched) <= set(sources.files(benchmark.card.repository))


def test_the_version_names_the_commit_and_the_options_that_are_not_the_default():
    benchmark = load_benchmark("kobbq")
    commit = sources.commit(benchmark.card.repository)[:7]
    versions = [benchmark.origin("release", 0, False, **options).version for options in ({}, {"part": "all"})]
    assert versions == [f"release@{commit}", f"release@{commit}+part=all"]


@pytest.mark.slow
def test_a_position_means_what_the_option_and_the_seed_say(mirror, tmp_path):
    """The right answers of GG-BBQ by their positions in the released rows, scored as answers in other orders."""
    released = rows_of("ggbbq", "labels", upstream=mirror, answers="released")
    path = tmp_path / "right.jsonl"
    names = ("category", "example_id")
    lines = [json.dumps({**{name: row[name] for name in names}, "prediction": row["label"]}) for row in released]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    shared = ("--benchmark", "ggbbq", "--config", "labels", "--mirror", mirror)
    results = {}
    for source, arguments in {
        "0": (),
        "1": ("--seed", 1),
        "answers=released": ("--option", "answers=released"),
    }.items():
        invoke("score", path, *shared, "--output", tmp_path / source, *arguments)
        results[source] = qabias.read(tmp_path / source, mirror=mirror)
        fields = signature_fields(results[source].signature)
        assert source in (fields["seed"], fields["source"].partition("+")[2])
    assert results["answers=released"].scores["accuracy"] == 1
    assert max(results[seed].scores["accuracy"] for seed in "01") < 0.6
    assert len({result.signature for result in results.values()}) == 3
    for option, token in (("answer=released", "Did you mean 'answers'"), ("answers=sorted", "'sorted'")):
        with pytest.raises(QabiasError, match=token):
            invoke("score", path, *shared, "--option", option)
    rows = qabias.load("ggbbq", "labels", option={"answers": "released"}, mirror=mirror)
    assert qabias.score(rows["label"], rows, mirror=mirror).scores["accuracy"] == 1
    with pytest.raises(QabiasError, match="'shuffled'"):
        qabias.score(rows["label"], rows, option={"answers": "shuffled"}, mirror=mirror)
