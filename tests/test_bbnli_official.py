"""The `official` source of BBNLI against the published figures and an independent reading of the authors' files."""

import functools
import itertools
import json
import shutil
from collections import Counter, defaultdict

import jinja2
import pytest

from qabias.errors import QabiasError
from qabias.share.bbnli_dataset.builder import BBNLI, FEATURES
from qabias.share.bbnli_dataset.folder import write_folder
from qabias.share.bbnli_dataset.origin import SCHEMA, Origin
from qabias.share.bbnli_dataset.pairs import LABELS
from qabias.share.bbnli_dataset.subtopics import SUBTOPICS, domain_of

# Premises, stereotypical and test hypotheses; published rows, of them stereotypical and test; different texts in the
# pro form (and as many in the anti form), of them stereotypical and test; different texts in either form.
COUNTS = {
    "man_is_to_breadwinner": (4, 5, 5, 136, 96, 40, 68, 48, 20, 136),
    "man_is_to_programmer": (7, 5, 5, 510, 380, 130, 255, 190, 65, 510),
    "man_is_to_rational": (10, 7, 3, 680, 180, 500, 140, 90, 50, 278),
    "man_is_to_surgeon": (9, 5, 7, 432, 198, 234, 198, 99, 99, 396),
    "woman_is_to_homemaker": (11, 5, 3, 264, 198, 66, 132, 99, 33, 260),
    "asian_men_to_feminine": (5, 9, 4, 170, 120, 50, 85, 60, 25, 170),
    "black_is_to_criminal": (4, 8, 3, 144, 120, 24, 72, 60, 12, 144),
    "black_is_to_impoverished": (5, 8, 4, 150, 110, 40, 75, 55, 20, 146),
    "black_people_use_drugs": (6, 5, 5, 324, 264, 60, 162, 132, 30, 294),
    "white_is_to_clean": (5, 8, 4, 160, 120, 40, 80, 60, 20, 95),
    "catholic_woman_to_many_kids": (4, 5, 4, 112, 80, 32, 52, 36, 16, 104),
    "jewish_woman_to_many_kids": (3, 6, 3, 84, 66, 18, 39, 30, 9, 78),
    "mormon_man_to_oppressive": (5, 5, 4, 170, 130, 40, 85, 65, 20, 170),
    "muslim_man_to_many_wives": (3, 5, 3, 108, 84, 24, 54, 42, 12, 108),
    "muslim_man_to_oppressive": (3, 5, 3, 102, 78, 24, 51, 39, 12, 102),
    "muslim_women_to_invisible": (3, 7, 4, 96, 66, 30, 48, 33, 15, 96),
}
SUMS = (87, 98, 64, 3642, 2290, 1352, 1596, 1138, 458, 3087)


@pytest.fixture(scope="module")
def rows(upstream):
    return {name: list(Origin("official", upstream_dir=upstream).rows(name)) for name in SUBTOPICS}


@pytest.fixture(scope="module")
def fixed_rows(upstream):
    return {name: list(Origin("official", fixes=True, upstream_dir=upstream).rows(name)) for name in SUBTOPICS}


@pytest.fixture(scope="module")
def all_rows(rows):
    return [row for name in SUBTOPICS for row in rows[name]]


def read_json(upstream, subtopic):
    folder = upstream / "feyzaakyurek" / "bbnli" / "data" / "bbnli"
    [path] = folder.glob(f"*/{subtopic}.json")
    return path.parent.name, json.loads(path.read_text("utf-8"))


# Counts.


@pytest.mark.parametrize("subtopic", COUNTS)
def test_counts_of_a_subtopic(subtopic, rows):
    table = rows[subtopic]

    def texts(**fields):
        chosen = (row for row in table if all(row[column] == value for column, value in fields.items()))
        return {(row["premise"], row["hypothesis"]) for row in chosen}

    kinds = Counter(row["kind"] for row in table)
    n_hypotheses = {kind: len({row["hypothesis_id"] for row in table if row["kind"] == kind}) for kind in kinds}
    counted = (
        len({row["premise_id"] for row in table}),
        n_hypotheses["stereotypical"],
        n_hypotheses["test"],
        len(table),
        kinds["stereotypical"],
        kinds["test"],
        len(texts(stance="pro")),
        len(texts(stance="pro", kind="stereotypical")),
        len(texts(stance="pro", kind="test")),
        len(texts()),
    )
    assert counted == COUNTS[subtopic]
    assert len(texts(stance="anti")) == len(texts(stance="pro"))


def test_the_whole_has_3642_rows(all_rows):
    assert tuple(COUNTS) == SUBTOPICS
    assert tuple(sum(column) for column in zip(*COUNTS.values(), strict=True)) == SUMS
    assert len(all_rows) == 3642
    assert Counter(row["kind"] for row in all_rows) == {"stereotypical": 2290, "test": 1352}
    assert len({(row["premise"], row["hypothesis"]) for row in all_rows}) == 3061


# An independent reading: the full product, filled by jinja2 as the authors do it, without a line of the module.


@functools.cache
def compiled(text):
    return jinja2.Environment().from_string(text)


def published_rows(upstream, subtopic):
    """The published rows in order, each with the number of its hypothesis; and the size of the full product."""
    domain, file = read_json(upstream, subtopic)
    product = []
    for i in range(len(file["premise"])):
        for words in itertools.product(*file["data"].values()):
            slots = dict(zip(file["data"].keys(), words, strict=True))
            for stance in ("pro", "anti"):
                slots["GROUP1"], slots["GROUP2"] = (
                    file["GROUP1"][0] if stance == "pro" else file["GROUP2"][0],
                    file["GROUP2"][0] if stance == "pro" else file["GROUP1"][0],
                )
                for kind, prefix, suffix in (("test", "test", ""), ("stereotypical", "bias", "_stereotypical")):
                    statements, questions = file[f"{prefix}_hypothesis{suffix}"], file[f"{prefix}_question{suffix}"]
                    for k in range(len(statements)):
                        assert statements[k][1:] == questions[k][1:]
                        product.append(
                            (
                                {
                                    "subtopic": subtopic,
                                    "domain": domain,
                                    "premise_id": i,
                                    "kind": kind,
                                    "stance": stance,
                                    "premise": compiled(file["premise"][i]).render(slots),
                                    "hypothesis": compiled(statements[k][0]).render(slots),
                                    "question": compiled(questions[k][0]).render(slots),
                                    "label": statements[k][1],
                                    "bias_label": -1 if kind == "test" else statements[k][2],
                                    "reference": file["reference"][i].split("#")[0],
                                },
                                k,
                            )
                        )
    first = {}
    for row, k in product:
        first.setdefault(tuple(row.items()), k)
    return [(dict(items), k) for items, k in first.items()], len(product)


@pytest.fixture(scope="module")
def expected(upstream):
    return {name: published_rows(upstream, name) for name in SUBTOPICS}


@pytest.mark.parametrize("subtopic", SUBTOPICS)
def test_every_row_equals_the_independent_reading(subtopic, rows, expected):
    expected_rows, _ = expected[subtopic]
    columns = list(expected_rows[0][0])
    assert [{column: row[column] for column in columns} for row in rows[subtopic]] == [row for row, _ in expected_rows]
    assert [row["hypothesis_id"] for row in rows[subtopic]] == [number for _, number in expected_rows]


@pytest.mark.parametrize("field", ["stance", "premise", "question", "reference"])
def test_the_independent_reading_rejects_a_corrupted_row(field, rows, expected):
    [(row, _), *_] = expected["man_is_to_surgeon"][0]
    ours = rows["man_is_to_surgeon"][0]
    assert row.items() <= ours.items()
    assert not row.items() <= {**ours, field: f"{ours[field]} indeed"}.items()


def test_t_n5_dropping_repetitions_defines_the_benchmark(expected):
    assert sum(size for _, size in expected.values()) == 62_808
    assert sum(len(kept) for kept, _ in expected.values()) == 3642


def test_t_n4_labels_are_numbered_as_published(upstream, all_rows):
    for subtopic in SUBTOPICS:
        assert [choice.lower() for choice in read_json(upstream, subtopic)[1]["answer_choices"]] == list(LABELS)
    for row in all_rows:
        if row["kind"] == "stereotypical":
            assert (LABELS[row["label"]], LABELS[row["bias_label"]]) == ("neutral", "entailment")
        else:
            assert row["bias_label"] == -1


# Pairs.


def test_pairs_join_the_ith_pro_row_with_the_ith_anti_row(rows, all_rows, expected):
    pairs = []
    for subtopic in SUBTOPICS:
        by_group = defaultdict(list)
        for row, (_, hypothesis) in zip(rows[subtopic], expected[subtopic][0], strict=True):
            by_group[row["premise_id"], row["kind"], row["stance"]].append((row, hypothesis))
        for (premise_id, kind, stance), pro_rows in by_group.items():
            if stance == "pro":
                anti_rows = by_group[premise_id, kind, "anti"]
                for (pro, pro_hypothesis), (anti, anti_hypothesis) in zip(pro_rows, anti_rows, strict=True):
                    assert pro["pair_id"] == anti["pair_id"]
                    assert pro_hypothesis == anti_hypothesis
                    pairs.append((pro, anti))
    assert len(pairs) == 1821
    assert set(Counter(row["pair_id"] for row in all_rows).values()) == {2}
    assert len({row["example_id"] for row in all_rows}) == len(all_rows)
    for row in all_rows:
        assert row["pair_id"] == (
            f"{row['subtopic']}-{row['premise_id']:02d}-{row['kind']}-{row['hypothesis_id']:02d}-{row['variant_id']:03d}"
        )
        assert row["example_id"] == f"{row['pair_id']}-{row['stance']}"


@pytest.fixture(scope="module")
def pairs(all_rows):
    """Pro and anti row by pair."""
    by_pair = defaultdict(dict)
    for row in all_rows:
        by_pair[row["pair_id"]][row["stance"]] = row
    return {name: (both["pro"], both["anti"]) for name, both in by_pair.items()}


def test_exchanging_the_groups_in_a_pro_text_gives_the_anti_text(pairs, upstream):
    """Where neither group is written out: taking the group's words away leaves the same text."""
    n_compared = 0
    for subtopic in SUBTOPICS:
        _, file = read_json(upstream, subtopic)
        groups = [file["GROUP1"][0], file["GROUP2"][0]]
        for pro, anti in pairs.values():
            if pro["subtopic"] == subtopic:
                for field in ("premise", "hypothesis", "question"):
                    left = [row[field] for row in (pro, anti)]
                    # "women" before "men", which lies in it.
                    for group in sorted(groups, key=len, reverse=True):
                        left = [text.replace(group, "GROUP") for text in left]
                    assert left[0] == left[1], pro["pair_id"]
                    n_compared += pro[field] != anti[field]
    assert n_compared > 3000


def test_t_n6_pairs_that_read_the_same_in_both_forms(pairs):
    same = [
        pro
        for pro, anti in pairs.values()
        if (pro["premise"], pro["hypothesis"]) == (anti["premise"], anti["hypothesis"])
    ]
    assert Counter((row["subtopic"], row["kind"]) for row in same)["white_is_to_clean", "stereotypical"] == 45
    assert Counter(row["kind"] for row in same) == {"stereotypical": 47, "test": 58}
    assert Counter(row["subtopic"] for row in same) == {
        "white_is_to_clean": 65,
        "black_people_use_drugs": 30,
        "woman_is_to_homemaker": 4,
        "black_is_to_impoverished": 4,
        "man_is_to_rational": 2,
    }


def test_white_is_to_clean_is_exchanged_in_its_questions_only(pairs):
    stereotypical = [
        (pro, anti)
        for pro, anti in pairs.values()
        if (pro["subtopic"], pro["kind"]) == ("white_is_to_clean", "stereotypical")
    ]
    assert len(stereotypical) == 60
    for pro, anti in stereotypical:
        assert pro["premise"] == anti["premise"]
        assert (pro["hypothesis"] == anti["hypothesis"]) == (pro["hypothesis_id"] <= 4)
        assert pro["question"] != anti["question"]
    for pro, anti in pairs.values():
        if pro["subtopic"] == "white_is_to_clean" and pro["kind"] == "test":
            assert (pro["premise"], pro["hypothesis"]) == (anti["premise"], anti["hypothesis"])


# Texts as published, irregularities and all.


def test_nothing_else_is_fixed(rows, all_rows):
    texts = [row[field] for row in all_rows for field in ("premise", "hypothesis", "question")]
    assert not any("{" in text or "}" in text for text in texts)
    assert any(text.startswith("men ") for text in texts), "sentence starts stay small"
    assert any(text.startswith("An White") for text in texts), "articles stay"
    # The undefined slot of one question becomes empty, which leaves two spaces.
    gaps = {(row["subtopic"], row["kind"], row["hypothesis_id"]) for row in all_rows if "  " in row["question"]}
    assert ("jewish_woman_to_many_kids", "test", 1) in gaps
    assert not any("#:~:text=" in row["reference"] for row in all_rows)
    assert all(row["reference"].startswith("http") for row in all_rows)
    homemaker = [
        row for row in rows["woman_is_to_homemaker"] if (row["kind"], row["hypothesis_id"]) == ("stereotypical", 0)
    ]
    assert all(row["question"] == row["hypothesis"] and row["question"][-1] not in ".?" for row in homemaker)


def test_the_cognitive_bias_is_that_of_table_1(all_rows):
    named = {
        "muslim_women_to_invisible": "horn effect",
        "catholic_woman_to_many_kids": "illusory correlation",
        "mormon_man_to_oppressive": "illusory correlation, splitting",
        "man_is_to_rational": "horn effect",
        "man_is_to_surgeon": "representativeness heuristic",
        "man_is_to_programmer": "representativeness heuristic",
        "black_is_to_criminal": "horn effect, splitting",
        "asian_men_to_feminine": "horn effect",
        "black_people_use_drugs": "illusory correlation, splitting",
    }
    for row in all_rows:
        assert row["cognitive_bias"] == (named.get(row["subtopic"], "") if row["kind"] == "stereotypical" else "")


# Fixes.


def test_fixes_leave_out_450_repetitions(rows, fixed_rows):
    dropped = {name: len(rows[name]) - len(fixed_rows[name]) for name in SUBTOPICS}
    assert {name: n for name, n in dropped.items() if n} == {
        "man_is_to_rational": 400,
        "man_is_to_surgeon": 36,
        "catholic_woman_to_many_kids": 8,
        "jewish_woman_to_many_kids": 6,
    }
    for name in SUBTOPICS:
        first = {}
        for row in rows[name]:
            first.setdefault((row["stance"], row["premise"], row["hypothesis"]), row)
        assert fixed_rows[name] == list(first.values())
        assert set(Counter(row["pair_id"] for row in fixed_rows[name]).values()) == {2}
    kept = [row for name in SUBTOPICS for row in fixed_rows[name]]
    assert len(kept) == 3192
    assert sum(row["kind"] == "stereotypical" for row in kept) == 2276


# Origin and builder.


def test_versions_and_licences():
    assert Origin("official").version == "official@9f55895"
    assert Origin("official", fixes=True).version == "official+fixes@9f55895"
    assert Origin("official", seed=7).version == Origin("official").version
    assert Origin("official").licence == "MIT"


def test_wrong_choices_are_refused():
    with pytest.raises(QabiasError, match="unknown source 'paper': choose one of bundled, official"):
        Origin("paper")
    with pytest.raises(QabiasError, match="no known defects to fix: use fixes with the source official"):
        Origin(fixes=True)
    with pytest.raises(QabiasError, match="unknown configuration 'sex': choose one of man_is_to_breadwinner"):
        Origin("official").table("sex")


def test_the_builder_takes_the_fields_of_the_origin(upstream, tmp_path, rows, fixed_rows):
    builder = BBNLI(config_name="religion", source="official", upstream_dir=str(upstream), cache_dir=tmp_path)
    builder.download_and_prepare()
    dataset = builder.as_dataset(split="test")
    assert dataset.features == FEATURES
    assert dataset.to_list() == [row for name in SUBTOPICS if domain_of(name) == "religion" for row in rows[name]]
    builder = BBNLI(
        config_name="man_is_to_surgeon", source="official", fixes=True, upstream_dir=str(upstream), cache_dir=tmp_path
    )
    builder.download_and_prepare()
    assert builder.as_dataset(split="test").to_list() == fixed_rows["man_is_to_surgeon"]


def test_the_seed_changes_nothing(upstream, rows):
    other = Origin("official", seed=3, upstream_dir=upstream).table("race")
    assert other.to_pylist() == [row for name in SUBTOPICS if domain_of(name) == "race" for row in rows[name]]
    assert other.schema == SCHEMA


def test_the_card_names_source_licence_and_defects(upstream, tmp_path):
    write_folder(tmp_path, Origin("official", fixes=True, upstream_dir=upstream), ["man_is_to_surgeon"])
    card = (tmp_path / "README.md").read_text("utf-8")
    for phrase in ("license: mit", "official+fixes@9f55895", "Known defects of the published texts", "left out here"):
        assert phrase in card
    assert "config_name: man_is_to_surgeon\n  default: true" in card
    assert "config_name: gender" not in card


def test_a_damaged_or_missing_file_is_refused(upstream, tmp_path):
    path = "feyzaakyurek/bbnli/data/bbnli/gender/man_is_to_surgeon.json"
    (tmp_path / path).parent.mkdir(parents=True)
    shutil.copy(upstream / path, tmp_path / path)
    origin = Origin("official", upstream_dir=tmp_path)
    assert origin.table("man_is_to_surgeon").num_rows == 432
    (tmp_path / path).write_text((tmp_path / path).read_text("utf-8").replace("surgeons", "surgeon"), "utf-8")
    with pytest.raises(QabiasError, match=r"man_is_to_surgeon\.json is not the published file"):
        origin.table("man_is_to_surgeon")
    (tmp_path / path).unlink()
    with pytest.raises(QabiasError, match=r"man_is_to_surgeon\.json is not in the mirror"):
        origin.table("man_is_to_surgeon")
