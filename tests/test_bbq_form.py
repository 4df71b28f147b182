"""Sets in BBQ's JSONL: MBBQ and BasqBBQ against another reading of the files at hand, JBBQ on invented files.

Files that are not at hand are invented ones, read by the same code; JBBQ itself may not be passed on.
"""

import json
from collections import Counter

import pytest

from qabias.benchmarks import load_benchmark
from qabias.benchmarks.multilingual import rows as jsonl
from qabias.benchmarks.multilingual.rows import rows_of as rows_of_items
from qabias.building import sources
from qabias.errors import QabiasError

from . import jbbq_files
from .jbbq_files import N_TEMPLATES, PEOPLE, UNKNOWNS, four, json_lines, write_files, write_rows
from .published_sets import invent, partition, published, roles, rows_of, scores, summary

MBBQ, BASQBBQ = "Veranep/MBBQ", "orai-nlp/BasqBBQ"
LANGUAGES = {"en": "English", "nl": "Dutch", "es": "Spanish", "tr": "Turkish"}
SIZES = {"Disability_status": 1296, "Gender_identity": 544, "Physical_appearance": 1176, "Sexual_orientation": 152}
"""Rows of the categories of MBBQ whose files are at hand."""
UNDEFINED = {"en": 16, "nl": 16, "tr": 16, "es": 28}
WOMEN = {"F", "woman", "girl", "vrouw", "meisje", "mujer", "chica", "maestra", "kadın", "kız"}
MEN = {"M", "man", "boy", "jongen", "hombre", "chico", "maestro", "adam", "erkek çocuk"}
BASQUE = {"Orientazio_sexual": (856, 25, 1), "Ezgaitasun_egoera": (1680, 25, 2)}
"""Rows, templates, and versions of each template, of the files of BasqBBQ at hand."""


def reading(file, category, label_type="label"):
    """BBQ's rule on the raw lines: the target is the one person whose tag is among the stereotyped groups."""
    for number, line in enumerate(file.read_bytes().split(b"\n")[:-1]):
        raw = json.loads(line)
        tags = [tag for _, tag in raw["answer_info"].values()]
        about = raw["additional_metadata"]
        named = {"F": WOMEN, "M": MEN}.get("".join(about["stereotyped_groups"]), about["stereotyped_groups"])
        hits = [place for place in range(3) if tags[place].replace("lowSES", "low SES") in named]
        (unknown,) = (place for place in range(3) if tags[place] == "unknown")
        template = category[3 * (category[2] == "_") :].removesuffix("_control")
        yield {
            "category": category,
            "example_id": number,
            "template_id": f"{template}-{raw['question_index'].rjust(2, '0')}",
            **{name: raw[name] for name in ("context", "question", "question_polarity", "context_condition", "label")},
            "label_type": label_type,
            "social_value": "",
            "answers": [raw["ans0"], raw["ans1"], raw["ans2"]],
            "groups": about["stereotyped_groups"],
            "version": about["version"].replace("None", ""),
            **roles(hits[0] if len(hits) == 1 else -1, unknown, raw["question_polarity"] == "neg"),
        }


def check(ours, theirs):
    assert [summary(row) for row in ours] == list(theirs)
    assert partition(ours, lambda row: row["set_id"]) == {tuple(range(n, n + 4)) for n in range(0, len(ours), 4)}


@pytest.mark.slow
@pytest.mark.parametrize("control", ["", "_control"])
@pytest.mark.parametrize("category", ["Age", "SES", *SIZES])
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_rows_of_mbbq_are_those_of_another_reading(upstream, language, category, control):
    file = published(upstream, MBBQ, f"data/{category}{control}_{language}.jsonl")
    config = f"{language}_{category}{control}"
    ours = rows_of("mbbq", config, upstream=upstream)
    check(ours, reading(file, config, "name" if control else "label"))
    if category in SIZES:
        # The people of 16 English questions about gender have no names in the control set.
        assert len(ours) == SIZES[category] - (16 if control and category == "Gender_identity" else 0)
    undefined = UNDEFINED[language] if category == "Gender_identity" and not control else 0
    assert sum(row["target_loc"] == -1 for row in ours) == undefined


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_numbers_of_rows_of_mbbq(upstream, language):
    for control, size in (("", 10_088), ("_control", 10_072)):
        for category in ("Age", "SES", *SIZES):
            published(upstream, MBBQ, f"data/{category}{control}_{language}.jsonl")
        assert len(rows_of("mbbq", language + control, upstream=upstream)) == size


@pytest.mark.parametrize("category", BASQUE)
def test_the_rows_of_basqbbq_are_those_of_another_reading(upstream, category):
    ours = rows_of("basqbbq", category, upstream=upstream)
    check(ours, reading(published(upstream, BASQBBQ, f"data/BasqBBQ/{category}.jsonl"), category))
    n_rows, n_templates, n_versions = BASQUE[category]
    versions = {(row["template_id"], row["additional_metadata"]["version"]) for row in ours}
    assert len(ours) == n_rows
    assert Counter(Counter(template for template, _ in versions).values()) == {n_versions: n_templates}


def test_configurations_of_mbbq():
    benchmark = load_benchmark("mbbq")
    assert len(benchmark.configs) == 4 * 6 * 2 + 4 * 2 + 1
    assert len(benchmark.members("all")) == 24
    assert not [name for name in benchmark.members("all") if "control" in name]
    assert benchmark.members("nl_control") == tuple(f"{name}_control" for name in benchmark.members("nl"))
    names = {code: benchmark.language_of({"category": f"{code}_Age_control"}).name for code in LANGUAGES}
    assert names == LANGUAGES


def test_a_question_without_a_target_counts_for_accuracy_alone(upstream, monkeypatch, tmp_path):
    published(upstream, MBBQ, "data/Gender_identity_en.jsonl")
    monkeypatch.setenv("QABIAS_UPSTREAM", str(upstream))
    found = scores(tmp_path, "mbbq", "stereotyped", "en_Gender_identity")
    assert (found["n"], found["n_undefined_target"]) == (544, 16)
    assert (found["n_ambig"], found["n_biased_ambig"], found["bias_disambig"]) == (272, 272 - 8, 1)


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
        # BasqBBQ: tags in parts, one that is not a number, and a text that is the group
        ("Arraza_etnizitate", ["Beltza"], ("F-Beltza", "F-Zuria"), 0),
        ("Genero_identitate", ["F"], ("M", "F"), 2),
        ("MSE", ["MSEbaxua"], ("MSEbaxua", "MSEaltua"), 0),
        ("Nazionalitate", ["Qu"], (float("nan"), float("nan")), 2),
        ("Adin", ["X"], ("Y", "Z"), -1),
    ],
)
def test_files_that_are_not_at_hand_are_read_by_the_same_code(monkeypatch, tmp_path, config, groups, tags, target):
    first, second = ("Pe", tags[0]), ("Qu", tags[1])
    rows = list(four((first, ("?", "unknown"), second), first, second, groups, "7"))
    language, _, name = config.partition("_")
    of_mbbq = language in LANGUAGES
    path = f"data/{name}_{language}.jsonl" if of_mbbq else f"data/BasqBBQ/{config}.jsonl"
    mirror = invent(monkeypatch, tmp_path, MBBQ if of_mbbq else BASQBBQ, {path: json_lines(rows)})
    ours = rows_of("mbbq" if of_mbbq else "basqbbq", config, upstream=mirror)
    assert [row["target_loc"] for row in ours] == [target] * 4
    other = -1 if target < 0 else 2 - target
    assert [row["biased_loc"] for row in ours] == [target, target, other, other]
    template = name.removesuffix("_control") if of_mbbq else config
    assert {(row["category"], row["template_id"], row["set_id"]) for row in ours} == {
        (config, f"{template}-07", f"{config if of_mbbq else template}-07-000")
    }
    assert {row["label_type"] for row in ours} == {"name" if "control" in config else "label"}
    assert ours[0]["answer_info"]["ans0"][1] == (tags[0] if isinstance(tags[0], str) else "")


# JBBQ


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("QABIAS_UPSTREAM", raising=False)
    return write_files(tmp_path / "jbbq")


@pytest.mark.parametrize("category", PEOPLE)
def test_the_rows_of_jbbq_are_read_as_they_were_written(folder, category):
    groups, member, _ = PEOPLE[category]
    ours = [row for row in rows_of("jbbq", "all", upstream=str(folder)) if row["category"] == category]
    for number, (row, written) in enumerate(zip(ours, jbbq_files.rows_of(category), strict=True)):
        infos = [written["answer_info"][f"ans{place}"] for place in range(3)]
        unknown = next(place for place, info in enumerate(infos) if tuple(info) in UNKNOWNS)
        expected = {
            "example_id": number,
            "template_id": f"{category}-0{written['question_index']}",
            **{name: written[name] for name in ("context", "question", "ans0", "ans1", "ans2", "label")},
            **{name: written[name] for name in ("question_polarity", "context_condition")},
            **roles(infos.index(list(member)), unknown, written["question_polarity"] == "neg"),
        }
        assert {name: row[name] for name in expected} == expected
        assert row["additional_metadata"]["stereotyped_groups"] == groups
        assert row["additional_metadata"]["version"] == written["additional_metadata"]["version"]
    assert len({row["template_id"] for row in ours}) == N_TEMPLATES // 2  # each in two versions
    assert Counter(Counter(row["set_id"] for row in ours).values()) == {4: 6 * N_TEMPLATES}


@pytest.mark.parametrize("place", ["", "data", "ynklab/JBBQ_data", "ynklab/JBBQ_data/data"])
def test_where_the_files_of_jbbq_may_lie(tmp_path, monkeypatch, place):
    write_files(tmp_path / place, ["Age"])
    rows = rows_of("jbbq", "Age", upstream=str(tmp_path))
    assert rows_of("jbbq", "Age", upstream=str(tmp_path / place / "Age.jsonl")) == rows
    monkeypatch.setenv("QABIAS_UPSTREAM", str(tmp_path))
    assert rows_of("jbbq", "Age") == rows


def test_without_files_of_jbbq_the_error_says_where_to_ask(folder, tmp_path):
    (folder / "Age.jsonl").unlink()
    for where, config in ((None, "Age"), (str(tmp_path), "Age"), (str(folder), "all")):
        with pytest.raises(QabiasError, match=r"https://github\.com/ynklab/JBBQ_data") as error:
            rows_of("jbbq", config, upstream=where)
        assert not any("\n" in part for part in error.value.args)
    assert rows_of("jbbq", "Gender_identity", upstream=str(folder))


def test_the_signature_names_the_content_of_jbbq(folder, tmp_path):
    def version(where):
        with sources.using_mirror(where):
            return load_benchmark("jbbq").origin("file", 0, False).version

    assert version(folder) == version(write_files(tmp_path / "copy"))
    rows = jbbq_files.rows_of("Age")
    rows[0]["question"] += "？"
    changed = write_files(tmp_path / "changed")
    write_rows(changed / "Age.jsonl", rows)
    fewer = write_files(tmp_path / "fewer", ["Age"])
    assert len({version(folder), version(changed), version(fewer)}) == 3
    with pytest.raises(QabiasError, match="fixes"):
        load_benchmark("jbbq").origin("file", 0, True)


# The reader that the sets share


def good_row(**changes):
    return {**jbbq_files.rows_of("Age")[0], **changes}


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ({}, "answer_info"),
        (good_row(label=3), "the label is 3"),
        (good_row(question_polarity="negative"), "negative"),
        (good_row(context_condition="clear"), "clear"),
        (
            good_row(answer_info={"ans0": ["a", "A"], "ans1": ["b", "B"], "ans2": ["c", "C"]}),
            "not exactly one UNKNOWN answer",
        ),
        (good_row(additional_metadata=None), "NoneType"),
        ([1], "list indices"),
    ],
)
def test_a_line_that_is_not_in_the_form_is_named(tmp_path, row, fault):
    write_rows(tmp_path / "Age.jsonl", [good_row(), row])
    with pytest.raises(QabiasError, match=rf"Age\.jsonl: line 2: .*{fault}"):
        list(jsonl.read_items(tmp_path / "Age.jsonl", "Age"))


def exchanged(rows, *names):
    """Rows with the answers of the two people exchanged in the named polarities, and their tags as they were."""
    for row in rows:
        first, second = (place for place in range(3) if row["answer_info"][f"ans{place}"][1] != "unknown")
        other = {f"ans{first}": row[f"ans{second}"], f"ans{second}": row[f"ans{first}"]}
        yield {**row, **other} if row["question_polarity"] in names else row


@pytest.mark.parametrize("spelled", ["{}の人", "the {}"])
def test_answers_that_contradict_their_tags_are_refused(tmp_path, spelled):
    """Where words have spaces around them by each row, elsewhere by the pair."""
    rows = [
        {**row, **{f"ans{place}": spelled.format(row["answer_info"][f"ans{place}"][0]) for place in range(3)}}
        for row in jbbq_files.rows_of("Age")[:24]
    ]
    for names in [("neg",), ("nonneg",), *[("neg", "nonneg")] * ("the" in spelled)]:
        write_rows(tmp_path / "Age.jsonl", exchanged(rows, *names))
        with pytest.raises(QabiasError, match=r"is tagged|in both polarities"):
            list(
                rows_of_items(
                    jsonl.read_items(tmp_path / "Age.jsonl", "Age", lambda text, tag, groups: tag == groups[0])
                )
            )
    write_rows(tmp_path / "Age.jsonl", rows)
    assert len(
        list(rows_of_items(jsonl.read_items(tmp_path / "Age.jsonl", "Age", lambda text, tag, groups: tag == groups[0])))
    ) == len(rows)


@pytest.mark.parametrize(("content", "token"), [(b"\n", "no examples"), (b"\xff", "cannot be read"), (b"{", "line 1")])
def test_files_that_cannot_be_read_are_named(tmp_path, content, token):
    (tmp_path / "Age.jsonl").write_bytes(content)
    with pytest.raises(QabiasError, match=rf"Age\.jsonl: .*{token}"):
        list(jsonl.read_items(tmp_path / "Age.jsonl", "Age"))


def test_sets_are_told_apart_where_neighbours_are_alike(tmp_path):
    """Two sets with the same people, a set that lacks a row, and a line with a character that ends lines elsewhere."""
    rows = jbbq_files.rows_of("Age")[:8]
    rows[0]["context"] += "\u2028続く"
    write_rows(tmp_path / "Age.jsonl", [*rows[:4], *rows[:4], *rows[:3], *rows[4:]])
    items = list(jsonl.read_items(tmp_path / "Age.jsonl", "Age"))
    assert items[0].context == rows[0]["context"]
    assert list(Counter(row["set_id"] for row in rows_of_items(items)).values()) == [4, 4, 3, 4]
