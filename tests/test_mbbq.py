"""MBBQ: our rows against a reading of the published files by other code, and the files that are not at hand."""

import json
from collections import Counter

import pytest

from qabias.benchmarks import load_benchmark
from qabias.building import sources
from qabias.errors import QabiasError

from .published_sets import (
    invent,
    partition,
    published,
    roles,
    rows_of,
    scores,
    summary,
)

REPOSITORY = "Veranep/MBBQ"
LANGUAGES = ("en", "nl", "es", "tr")
SIZES = {"Disability_status": 1296, "Gender_identity": 544, "Physical_appearance": 1176, "Sexual_orientation": 152}
"""Rows of the categories whose files are at hand."""
UNDEFINED = {"en": 16, "nl": 16, "tr": 16, "es": 28}
WOMEN = {"F", "woman", "girl", "vrouw", "meisje", "mujer", "chica", "maestra", "kadın", "kız"}
MEN = {"M", "man", "boy", "jongen", "hombre", "chico", "maestro", "adam", "erkek çocuk"}


def reading(file, config):
    """BBQ's rule on the raw lines: the target is the one person whose tag is among the stereotyped groups."""
    found = []
    for number, line in enumerate(file.read_bytes().split(b"\n")[:-1]):
        raw = json.loads(line)
        assert raw["example_id"] == number
        tags = [tag for _, tag in raw["answer_info"].values()]
        groups = raw["additional_metadata"]["stereotyped_groups"]
        if groups == ["F"]:
            hits = [place for place in range(3) if tags[place] in WOMEN]
        elif groups == ["M"]:
            hits = [place for place in range(3) if tags[place] in MEN]
        else:
            hits = [place for place in range(3) if tags[place].replace("lowSES", "low SES") in groups]
        negative = raw["question_polarity"] == "neg"
        (unknown,) = (place for place in range(3) if tags[place] == "unknown")
        found.append(
            {
                "category": config,
                "example_id": number,
                "template_id": f"{config[3:].removesuffix('_control')}-{raw['question_index'].rjust(2, '0')}",
                **{name: raw[name] for name in ("context", "question", "question_polarity", "context_condition")},
                "label_type": "name" if "control" in config else "label",
                "social_value": "",
                "answers": [raw["ans0"], raw["ans1"], raw["ans2"]],
                "groups": groups,
                "version": raw["additional_metadata"]["version"],
                "label": raw["label"],
                **roles(hits[0] if len(hits) == 1 else -1, unknown, negative),
            }
        )
    return found


@pytest.mark.parametrize("control", ["", "_control"])
@pytest.mark.parametrize("category", ["Age", "SES", *SIZES])
@pytest.mark.parametrize("language", LANGUAGES)
def test_our_rows_are_those_of_another_reading(upstream, language, category, control):
    file = published(upstream, REPOSITORY, f"data/{category}{control}_{language}.jsonl")
    config = f"{language}_{category}{control}"
    theirs = reading(file, config)
    ours = rows_of("mbbq", config, upstream=upstream)
    assert [summary(row) for row in ours] == theirs
    assert partition(ours, lambda row: row["set_id"]) == {tuple(range(n, n + 4)) for n in range(0, len(ours), 4)}
    if category in SIZES:
        # The people of 16 English questions about gender have no names in the control set.
        assert len(ours) == SIZES[category] - (16 if control and category == "Gender_identity" else 0)
    undefined = UNDEFINED[language] if category == "Gender_identity" and not control else 0
    assert sum(row["target_loc"] == -1 for row in ours) == undefined


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_rows_of_a_language(upstream, language):
    """10,088 by the six files of a language, and 10,072 of its control set; the files at hand are counted above."""
    for control, size in (("", 10_088), ("_control", 10_072)):
        for category in ("Age", "SES", *SIZES):
            published(upstream, REPOSITORY, f"data/{category}{control}_{language}.jsonl")
        assert len(rows_of("mbbq", language + control, upstream=upstream)) == size


def test_every_configuration_has_pinned_files():
    benchmark = load_benchmark("mbbq")
    assert len(benchmark.configs) == 4 * 6 * 2 + 4 * 2 + 1
    paths = set()
    for config in benchmark.configs:
        for category in benchmark.members(config):
            language, _, name = category.partition("_")
            paths.add(f"data/{name}_{language}.jsonl")
    assert sorted(paths) == sources.files(REPOSITORY, "data/")
    assert len(benchmark.members("all")) == 24
    assert not [name for name in benchmark.members("all") if "control" in name]
    assert benchmark.members("nl_control") == tuple(f"{name}_control" for name in benchmark.members("nl"))


def test_the_language_of_an_example_is_that_of_its_file():
    benchmark = load_benchmark("mbbq")
    names = {code: benchmark.language_of({"category": f"{code}_Age_control"}).name for code in LANGUAGES}
    assert names == {"en": "English", "nl": "Dutch", "es": "Spanish", "tr": "Turkish"}


def test_a_question_without_a_target_counts_for_accuracy_alone(upstream, monkeypatch, tmp_path):
    published(upstream, REPOSITORY, "data/Gender_identity_en.jsonl")
    monkeypatch.setenv("QABIAS_UPSTREAM", str(upstream))
    found = scores(tmp_path, "mbbq", "stereotyped", "en_Gender_identity")
    assert (found["n_ambig"], found["n_biased_ambig"], found["bias_disambig"]) == (272, 272 - 8, 1)


# Files that are not at hand: invented ones, read by the same code


def invented(groups, first, second):
    """A set of four invented rows; people are (text, tag)."""
    rows = []
    for number in range(4):
        answers = [first, ("?", "unknown"), second]
        rows.append(
            {
                "example_id": number,
                "question_index": "7",
                "question_polarity": "neg" if number < 2 else "nonneg",
                "context_condition": ("ambig", "disambig")[number % 2],
                "category": "as published",
                "answer_info": {f"ans{place}": list(answer) for place, answer in enumerate(answers)},
                "additional_metadata": {"subcategory": "s", "stereotyped_groups": groups, "version": "a", "source": ""},
                "context": f"c{number % 2}",
                "question": f"q{number // 2}",
                **{f"ans{place}": text for place, (text, _) in enumerate(answers)},
                "label": 1 if number % 2 == 0 else 0,
            }
        )
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("config", "groups", "tags", "target"),
    [
        ("es_Gender_identity", ["F"], ("hombre", "mujer"), 2),
        ("es_Gender_identity", ["M"], ("maestro", "maestra"), 0),
        ("es_Gender_identity", ["F"], ("chica", "mujer"), -1),
        ("es_Gender_identity", ["F"], ("chico", "hombre"), -1),
        ("tr_Gender_identity", ["F"], ("kız", "erkek çocuk"), 0),
        ("tr_Gender_identity", ["M"], ("kadın", "adam"), 2),
        ("tr_Gender_identity", ["trans"], ("nonTrans", "trans"), 2),
        ("tr_Age", ["old"], ("nonOld", "old"), 2),
        ("es_Age_control", ["old"], ("old", "nonOld"), 0),
        ("tr_SES_control", ["low SES"], ("highSES", "lowSES"), 2),
        ("nl_SES", ["lowSES"], ("lowSES", "highSES"), 0),
    ],
)
def test_spanish_and_turkish_are_read_by_the_same_code(monkeypatch, tmp_path, config, groups, tags, target):
    language, _, name = config.partition("_")
    text = invented(groups, ("Pe", tags[0]), ("Qu", tags[1]))
    mirror = invent(monkeypatch, tmp_path, REPOSITORY, {f"data/{name}_{language}.jsonl": text})
    rows = rows_of("mbbq", config, upstream=mirror)
    assert [row["target_loc"] for row in rows] == [target] * 4
    other = -1 if target < 0 else 2 - target
    assert [row["biased_loc"] for row in rows] == [target, target, other, other]
    assert {(row["category"], row["template_id"], row["set_id"]) for row in rows} == {
        (config, f"{name.removesuffix('_control')}-07", f"{config}-07-000")
    }
    assert Counter(row["label_type"] for row in rows) == {"name" if "control" in config else "label": 4}


def test_a_line_that_is_no_row_is_named(monkeypatch, tmp_path):
    text = invented(["old"], ("Pe", "old"), ("Qu", "nonOld")).replace('"unknown"', '"nobody"')
    mirror = invent(monkeypatch, tmp_path, REPOSITORY, {"data/Age_tr.jsonl": text})
    with pytest.raises(QabiasError, match=r"Age_tr\.jsonl: line 1: no released row \(ValueError"):
        rows_of("mbbq", "tr_Age", upstream=mirror)
