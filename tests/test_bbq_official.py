"""Published sources of BBQ: `official` against figures and an independent reading, `release` as it is, and fixes."""

import ast
import csv
import itertools
import json
import re
import shutil
from collections import Counter, defaultdict

import pytest

from qabias.building.templating import repair_articles
from qabias.errors import QabiasError
from qabias.share.bbq_dataset import fixes, official, release
from qabias.share.bbq_dataset.origin import CATEGORIES, Origin
from qabias.share.bbq_dataset.release import RELEASED_KEYS

from .built import BBQ_TABLE_3, bbq_rows, digest_of
from .tiny_models import first_of

TEXTS = ("context", "question", "ans0", "ans1", "ans2")


@pytest.fixture(scope="module")
def generated(upstream):
    return {category: bbq_rows(category, "official", upstream) for category in CATEGORIES}


# Digests of the examples as published and with fixes.
EXAMPLES = {
    "Religion": ("e610de60", "549f4e7f"),
    "Disability_status": ("cd0999a1", "455edcf4"),
    "Gender_identity_nli": ("329b8664", "e1f2d23a"),
    "Gender_identity": ("207d3901", "124c75a2"),
    "Age": ("256ed35b", "376a9b31"),
    "Nationality": ("20ed8dd2", "97e74e98"),
    "Physical_appearance": ("47dd4ec4", "b9468b79"),
    "Race_ethnicity": ("afdaef00", "0a0c00e2"),
    "Sexual_orientation": ("1657bfdd", "5ce817f2"),
    "SES": ("e4f12080", "f3108da6"),
    "Race_x_gender": ("6fc5c409", "ab7f2b06"),
    "Race_x_SES": ("44865a3e", "0c2914a3"),
    "Race_ethnicity_nli": ("b2bc6e83", "fd7029a6"),
    "Religion_nli": ("140aa817", "63ec184b"),
    "Gender_identity_nli_context": ("1ff0a156", "8c91d890"),
}
RELEASED = {
    "Age": ("080c2e77", "2d2e26bd"),
    "Nationality": ("8db3b4d4", "8bded6da"),
    "Religion": ("68da7513", "15922977"),
}


@pytest.mark.slow
def test_counts_are_those_of_table_3(generated):
    assert {category: len(rows) for category, rows in generated.items()} == BBQ_TABLE_3


@pytest.mark.slow
@pytest.mark.parametrize("config", first_of(*EXAMPLES, n=3))
def test_examples_are_those_for_all_time(config, upstream):
    for source, expected in (("official", EXAMPLES), ("release", RELEASED)):
        if config in expected:
            found = (digest_of(bbq_rows(config, source, upstream, fixes)) for fixes in (False, True))
            assert tuple(found) == expected[config]


@pytest.mark.slow
def test_editing_one_template_changes_only_its_own_examples(upstream, monkeypatch, generated, tmp_path):
    mirror = tmp_path / "nyu-mll" / "BBQ"
    shutil.copytree(upstream / "nyu-mll" / "BBQ" / "templates", mirror / "templates")
    rows = _csv(upstream, "new_templates - Religion.csv")
    rows[3]["Question_non_negative"] = "Who was elsewhere?"
    rows[3]["Known_stereotyped_groups"] = '["Jewish", "Muslim"]'
    with (mirror / "templates" / "new_templates - Religion.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    # The edited file is not the published one, which `fetch` would refuse.
    monkeypatch.setattr(official, "fetch", lambda repository, path: tmp_path / repository / path)
    before, after = generated["Religion"], list(Origin("official").rows("Religion"))

    def without(rows):
        return [{k: v for k, v in row.items() if k != "example_id"} for row in rows if row["question_index"] != "4"]

    assert without(before) == without(after)
    assert [row for row in before if row["question_index"] == "4"] != [
        row for row in after if row["question_index"] == "4"
    ]


def _csv(upstream, name):
    with (upstream / "nyu-mll" / "BBQ" / "templates" / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# What the authors released, and fixes of both.


def test_released_fields_are_kept_as_they_are(upstream):
    for category in ("Age", "Nationality", "Religion"):
        lines = (upstream / "nyu-mll" / "BBQ" / "data" / f"{category}.jsonl").read_text("utf-8").splitlines()
        rows = Origin("release").rows(category)
        for line, row in zip(lines, rows, strict=True):
            released = json.loads(line)
            assert {key: row[key] for key in RELEASED_KEYS} == released


@pytest.fixture(scope="module")
def pseudo_release(upstream, tmp_path_factory):
    """A mirror whose releases of the categories with defects are the generated published examples."""
    mirror = tmp_path_factory.mktemp("mirror")
    shutil.copytree(upstream / "nyu-mll" / "BBQ" / "templates", mirror / "nyu-mll" / "BBQ" / "templates")
    data = mirror / "nyu-mll" / "BBQ" / "data"
    data.mkdir()
    for category in ("Disability_status", "Gender_identity", "Physical_appearance", "SES", "Race_x_SES"):
        rows = bbq_rows(category, "official", upstream)
        text = "".join(json.dumps({key: row[key] for key in RELEASED_KEYS}) + "\n" for row in rows)
        (data / f"{category}.jsonl").write_text(text, "utf-8")
    return mirror


@pytest.fixture
def unpinned(monkeypatch, pseudo_release):
    def fetch(repository, path):
        return pseudo_release / repository / path

    monkeypatch.setattr(release, "fetch", fetch)


def _alignment(rows):
    aligned = defaultdict(list)
    for row in rows:
        if row["context_condition"] == "disambig":
            aligned[row["template_id"]].append(row["label"] == row["biased_loc"])
    return {name: sum(values) / len(values) for name, values in aligned.items()}


@pytest.mark.slow
def test_official_fixes_balance_every_template_that_can_be(upstream):
    rows = {category: bbq_rows(category, "official", upstream, fixes=True) for category in CATEGORIES}
    assert all(row["target_loc"] != -1 for of_one in rows.values() for row in of_one)
    shares = {name: share for of_one in rows.values() for name, share in _alignment(of_one).items() if share != 0.5}
    assert shares == {"Gender_identity-35": 0.0, "Gender_identity-36": 0.0}
    counts = {category: len(of_one) for category, of_one in rows.items()}
    assert counts["Disability_status"] == 1556 - 12 - 8 + 48 + 16
    assert counts["Gender_identity"] == 5672 - 16
    assert [row["example_id"] for row in rows["Gender_identity"]] == list(range(5656))


def test_fixed_texts_by_example():
    assert fixes.fix_text("The on on welfare") == "The one on welfare"
    assert fixes.fix_text("the woman with in a bun ") == "The woman with her hair in a bun"
    assert fixes.fix_text("A elderly man; {a one percenter.") == "An elderly man; a one percenter."
    assert fixes.fix_text("with with  a Latino woman") == "With a Latina woman"


@pytest.mark.slow
def test_release_fixes(unpinned, upstream):
    fixed = {
        category: list(Origin("release", fixes=True).rows(category))
        for category in ("Disability_status", "Gender_identity", "Physical_appearance", "SES")
    }
    left_out = {"Disability_status-04", "Disability_status-19", "SES-09", "SES-10"}
    present = {row["template_id"] for rows in fixed.values() for row in rows}
    assert not left_out & present
    shares = {name: share for rows in fixed.values() for name, share in _alignment(rows).items() if share != 0.5}
    # The tags of SES 8 and Gender 35 and 36 are right again, so what is unbalanced in them shows.
    assert shares == {"SES-08": 1.0, "Gender_identity-35": 0.0, "Gender_identity-36": 0.0}
    for category in ("Gender_identity", "Physical_appearance"):
        ids = [row["example_id"] for row in fixed[category]]
        assert ids == sorted(set(ids))


@pytest.mark.slow
def test_a_line_that_is_no_example_is_named(pseudo_release, unpinned, upstream):
    path = pseudo_release / "nyu-mll" / "BBQ" / "data" / "Physical_appearance.jsonl"
    good = path.read_text("utf-8")
    try:
        path.write_text(good.replace('"label"', '"lable"', 1), "utf-8")
        with pytest.raises(QabiasError, match=r"Physical_appearance\.jsonl line 1: not a released BBQ example"):
            list(Origin("release").rows("Physical_appearance"))
    finally:
        path.write_text(good, "utf-8")


def _lists(cell):
    """Word lists of a cell by their number: {1: [...], 2: [...]}."""
    lists = re.findall(r"(?:NAME|WORD)([12])\}*: *\[([^\]]*)\]", cell)
    return {int(number): [word.strip() for word in words.split(",")] for number, words in lists}


def _people(row, category, upstream):
    """Pairs of (text, info) that may fill slots 1 and 2."""
    lists = _lists(row.get("Names") or "")
    if lists:
        return [
            ((one, row["NAME1_info"]), (two, row["NAME2_info"])) for one, two in itertools.product(lists[1], lists[2])
        ]
    vocabulary = {
        entry["Name"]: entry["Info"] or entry["Name"]
        for entry in _csv(upstream, "vocabulary.csv")
        if entry["Category"] == category and entry["Pilot_include"] != "No"
    }
    groups = set(ast.literal_eval(row["Known_stereotyped_groups"]))
    targets = [entry for entry in vocabulary.items() if entry[0] in groups]
    others = [entry for entry in vocabulary.items() if entry[0] not in groups]
    pairs = list(itertools.product(targets, others))
    return pairs + [(two, one) for one, two in pairs]


def _texts(row, one, two, words):
    """The texts of one filling, with the published article rule."""
    vowel = any(person[0][0].lower() in "aeiou" for person in (one, two))

    def text(column):
        filled = row[column]
        for slot, value in (("NAME1", one[0]), ("NAME2", two[0]), *words.items()):
            filled = filled.replace("{{" + slot + "}}", value)
        filled = filled.replace("lesbian man", "lesbian woman").replace("Latino woman", "Latina woman")
        if vowel:
            filled = re.sub(r"(\s[Aa])(\s[AEIOUaeiou])", r"\1n\2", filled)
            filled = filled.replace(" an European", " a European")
        return filled

    ambiguous = text("Ambiguous_Context").strip()
    return {
        "ambig": ambiguous,
        "disambig": (ambiguous + " " + text("Disambiguating_Context")).strip(),
        "neg": text("Question_negative_stereotype").strip(),
        "nonneg": text("Question_non_negative").strip(),
        "answer_neg": text("Answer_negative"),
        "answer_nonneg": text("Answer_non_negative"),
    }


def _support(category, upstream):
    """By (question, version) and ambiguous context: every possible filling with the people in it."""
    support = defaultdict(lambda: defaultdict(list))
    for row in _csv(upstream, f"new_templates - {category}.csv"):
        lists = _lists(row["Lexical_diversity"])
        choices = [[(f"WORD{number}", word) for word in words] for number, words in sorted(lists.items())]
        for one, two in _people(row, category, upstream):
            for chosen in itertools.product(*choices):
                texts = _texts(row, one, two, dict(chosen))
                key = (row["Q_id"], row.get("version", "None"))
                support[key][texts["ambig"]].append((row, texts, one, two))
    return support


UNKNOWN = {
    *("Unknown", "Undetermined", "Cannot be determined", "Can't be determined", "Cannot answer", "Can't answer"),
    *("Not answerable", "Not known", "Not enough info", "Not enough information"),
}


def _is_possible(record, support):
    metadata = record["additional_metadata"]
    fillings = support[record["question_index"], metadata["version"]]
    for ambiguous, candidates in fillings.items():
        if not record["context"].startswith(ambiguous):
            continue
        for row, texts, one, two in candidates:
            negative = one if "{{NAME1}}" in row["Answer_negative"] else two
            non_negative = two if negative is one else one
            expected = {
                texts["answer_neg"]: list(negative),
                texts["answer_nonneg"]: list(non_negative),
            }
            answers = [record[f"ans{i}"] for i in range(3)]
            unknown = [i for i in range(3) if answers[i] in UNKNOWN]
            if len(unknown) != 1:
                continue
            right = {
                "ambig": answers[unknown[0]],
                "disambig": texts["answer_neg" if record["question_polarity"] == "neg" else "answer_nonneg"],
            }[record["context_condition"]]
            infos = {**expected, answers[unknown[0]]: [answers[unknown[0]], "unknown"]}
            if (
                record["context"] == texts[record["context_condition"]]
                and record["question"] == texts[record["question_polarity"]]
                and set(answers) == set(infos)
                and all(record["answer_info"][f"ans{i}"] == infos[answers[i]] for i in range(3))
                and answers[record["label"]] == right
                and metadata["source"] == row["Notes"]
                and metadata["stereotyped_groups"] == ast.literal_eval(row["Known_stereotyped_groups"])
                and metadata["subcategory"] == (row.get("Subcategory") or "None")
            ):
                return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("category", ["Age", "Nationality", "Religion"])
def test_every_released_and_every_generated_example_lies_in_the_support(category, upstream, generated):
    support = _support(category, upstream)
    path = upstream / "nyu-mll" / "BBQ" / "data" / f"{category}.jsonl"
    released = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert len(released) == BBQ_TABLE_3[category]
    for rows in (released, generated[category]):
        assert [row["example_id"] for row in rows if not _is_possible(row, support)] == []


@pytest.mark.slow
@pytest.mark.parametrize("field", ["context", "question", "ans0", "label", "question_index"])
def test_the_support_check_rejects_a_corrupted_example(field, upstream, generated):
    support = _support("Religion", upstream)
    row = dict(generated["Religion"][17])
    assert _is_possible(row, support)
    row[field] = {"label": (row["label"] + 1) % 3, "question_index": "2"}.get(field, f"{row[field]} indeed")
    assert not _is_possible(row, support)


@pytest.mark.slow
@pytest.mark.parametrize("category", ["Age", "Nationality", "Religion"])
def test_released_and_generated_have_the_same_template_in_every_row(category, upstream, generated):
    """File order is the published one: row by row the same template, version, polarity and condition."""

    def outline(rows):
        names = ("example_id", "question_index", "question_polarity", "context_condition")
        return [(*(row[name] for name in names), row["additional_metadata"]["version"]) for row in rows]

    released = list(Origin("release").rows(category))
    assert outline(released) == outline(generated[category])


@pytest.mark.slow
def test_draws_are_spread_as_the_release_is(generated):
    """UNKNOWN strings, answer orders and gold positions are uniform."""
    rows = [row for rows in generated.values() for row in rows]
    sets = [row for row in rows if row["example_id"] % 4 == 0]
    strings = Counter(row[f"ans{row['unknown_loc']}"] for row in sets)
    assert set(strings) == UNKNOWN
    expected = len(sets) / 10
    # 9 degrees of freedom: above 27.9 once in a thousand seeds.
    assert sum((n - expected) ** 2 / expected for n in strings.values()) < 27.9
    positions = Counter((row["unknown_loc"], row["target_loc"]) for row in sets if row["target_loc"] != -1)
    expected = sum(positions.values()) / 6
    assert len(positions) == 6
    # 5 degrees of freedom.
    assert sum((n - expected) ** 2 / expected for n in positions.values()) < 20.5


@pytest.mark.slow
def test_sets_are_four_consecutive_examples_of_one_filling(generated):
    for rows in generated.values():
        assert [row["example_id"] for row in rows] == list(range(len(rows)))
        for number in range(0, len(rows), 4):
            four = rows[number : number + 4]
            assert [(row["question_polarity"], row["context_condition"]) for row in four] == [
                ("neg", "ambig"),
                ("neg", "disambig"),
                ("nonneg", "ambig"),
                ("nonneg", "disambig"),
            ]
            for field in ("set_id", "answer_info", "additional_metadata", "ans0", "ans1", "ans2", "target_loc"):
                assert all(row[field] == four[0][field] for row in four)
            assert four[0]["context"] == four[2]["context"]
            assert four[1]["context"] == four[3]["context"]
            assert four[1]["context"].startswith(four[0]["context"] + " ")
            assert four[0]["label"] == four[2]["label"] == four[0]["unknown_loc"]
            assert {four[1]["label"], four[3]["label"], four[0]["unknown_loc"]} == {0, 1, 2}
        assert len({row["set_id"] for row in rows}) == len(rows) // 4


@pytest.mark.slow
def test_intersectional_examples_carry_their_comparison(generated):
    for category in ("Race_x_gender", "Race_x_SES"):
        rows = generated[category]
        counts = Counter(row["comparison"] for row in rows)
        assert counts == dict.fromkeys(["match_race", "match_other", "mismatch_both"], len(rows) // 3)
        for row in rows:
            infos = [info.split("-") for _, info in row["answer_info"].values() if info != "unknown"]
            same_race = infos[0][-1] == infos[1][-1]
            same_group = infos[0][0] == infos[1][0]
            assert (same_race, same_group) == {
                "match_race": (True, False),
                "match_other": (False, True),
                "mismatch_both": (False, False),
            }[row["comparison"]]
    assert {row["comparison"] for row in generated["Age"]} == {""}


@pytest.mark.slow
def test_t_b10_typing_errors_are_kept_as_published_and_fixes_leave_none(upstream, generated):
    published = [[row[field] for field in TEXTS] for row in generated["Disability_status"]]
    assert sum(any("monther" in text for text in row) for row in published) == 24
    texts = {
        row[field]
        for category in CATEGORIES
        for row in bbq_rows(category, "official", upstream, fixes=True)
        for field in TEXTS
    }
    for text in texts:
        assert not re.search(r"[{}]|  |\bmonther\b|\bhadeach\b|\bThe on \b|Latino woman|lesbian man", text), text
        assert text == text.strip()
        assert repair_articles(text) == text
        assert not text[0].islower()


@pytest.mark.slow
def test_release_is_read_for_the_categories_without_a_file_here(unpinned, upstream):
    rows = list(Origin("release").rows("Race_x_SES"))
    assert len(rows) == 11160
    assert all(row["target_loc"] != -1 for row in rows)
    assert {row["comparison"] for row in rows} == {"match_race", "match_other", "mismatch_both"}
    assert {row["label_type"] for row in rows} == {"name", "label"}


@pytest.mark.slow
def test_release_fixes_bind_tags_to_the_text(unpinned, upstream):
    rows = [row for row in Origin("release", fixes=True).rows("SES") if row["template_id"] == "SES-08"]
    assert len(rows) == 480
    poor, rich = "low income|poor|working-class", "wealthy|rich|well-off"
    for row in rows:
        for name, info in row["answer_info"].values():
            if info != "unknown":
                family = poor if info == "lowSES" else rich
                assert re.search(rf"{name} is from an? ({family}) family", row["context"]), (name, info, row["context"])


@pytest.mark.slow
def test_another_seed_draws_other_examples(generated):
    drawn_anew = Origin("official", seed=1)
    assert all(list(drawn_anew.rows(category)) != generated[category] for category in CATEGORIES)
