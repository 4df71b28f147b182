"""Published sources of BBQ: `official`, `release` as it is, and fixes."""

import csv
import json
import shutil
from collections import defaultdict

import pytest

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


# Digests of the examples as published and with fixes. An independent reading of the templates gave the same examples.
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


def test_counts_are_those_of_table_3(generated):
    assert {category: len(rows) for category, rows in generated.items()} == BBQ_TABLE_3


@pytest.mark.parametrize("config", first_of(*EXAMPLES, n=3))
def test_examples_are_those_for_all_time(config, upstream):
    for source, expected in (("official", EXAMPLES), ("release", RELEASED)):
        if config in expected:
            found = (digest_of(bbq_rows(config, source, upstream, fixes)) for fixes in (False, True))
            assert tuple(found) == expected[config]


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
    for category in ("Disability_status", "Gender_identity", "Physical_appearance", "SES"):
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


def test_a_line_that_is_no_example_is_named(pseudo_release, unpinned, upstream):
    path = pseudo_release / "nyu-mll" / "BBQ" / "data" / "Physical_appearance.jsonl"
    good = path.read_text("utf-8")
    try:
        path.write_text(good.replace('"label"', '"lable"', 1), "utf-8")
        with pytest.raises(QabiasError, match=r"Physical_appearance\.jsonl line 1: not a released BBQ example"):
            list(Origin("release").rows("Physical_appearance"))
    finally:
        path.write_text(good, "utf-8")
