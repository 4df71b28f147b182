"""The `release` source, and `fixes=True` for both published sources."""

import json
import re
import shutil
from collections import Counter, defaultdict

import pytest

from qabias.building import sources
from qabias.building.templating import repair_articles
from qabias.errors import QabiasError
from qabias.share.bbq_dataset import fixes, release
from qabias.share.bbq_dataset.origin import CATEGORIES, Origin
from qabias.share.bbq_dataset.release import RELEASED_KEYS

from .built import bbq_rows


def test_released_fields_are_kept_as_they_are(upstream):
    for category in ("Age", "Nationality", "Religion"):
        lines = (upstream / "nyu-mll" / "BBQ" / "data" / f"{category}.jsonl").read_text("utf-8").splitlines()
        rows = Origin("release", upstream_dir=upstream).rows(category)
        for line, row in zip(lines, rows, strict=True):
            released = json.loads(line)
            assert {key: row[key] for key in RELEASED_KEYS} == released


def test_released_sets_are_sets_of_four(upstream):
    sets = Counter(row["set_id"] for row in Origin("release", upstream_dir=upstream).rows("Age"))
    assert set(sets.values()) == {4}
    assert len(sets) == 920


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
    def fetch(repository, path, *, upstream_dir=None):
        return pseudo_release / repository / path

    monkeypatch.setattr(release, "fetch", fetch)


def _alignment(rows):
    aligned = defaultdict(list)
    for row in rows:
        if row["context_condition"] == "disambig":
            aligned[row["template_id"]].append(row["label"] == row["biased_loc"])
    return {name: sum(values) / len(values) for name, values in aligned.items()}


def test_official_fixes_balance_every_template_that_can_be(upstream):
    rows = {category: bbq_rows(category, "official", upstream, fixes=True) for category in CATEGORIES}
    assert all(row["target_loc"] != -1 for of_one in rows.values() for row in of_one)
    shares = {name: share for of_one in rows.values() for name, share in _alignment(of_one).items() if share != 0.5}
    assert shares == {"Gender_identity-35": 0.0, "Gender_identity-36": 0.0}
    counts = {category: len(of_one) for category, of_one in rows.items()}
    assert counts["Disability_status"] == 1556 - 12 - 8 + 48 + 16
    assert counts["Gender_identity"] == 5672 - 16
    assert [row["example_id"] for row in rows["Gender_identity"]] == list(range(5656))


def test_official_fixes_leave_no_defect_in_a_text(upstream):
    texts = {
        row[field]
        for category in CATEGORIES
        for row in bbq_rows(category, "official", upstream, fixes=True)
        for field in ("context", "question", "ans0", "ans1", "ans2")
    }
    for text in texts:
        assert not re.search(r"[{}]|  |\bmonther\b|\bhadeach\b|\bThe on \b|Latino woman|lesbian man", text), text
        assert text == text.strip()
        assert repair_articles(text) == text
        assert not text[0].islower()


def test_fixed_texts_by_example():
    assert fixes.fix_text("The on on welfare") == "The one on welfare"
    assert fixes.fix_text("the woman with in a bun ") == "The woman with her hair in a bun"
    assert fixes.fix_text("A elderly man; {a one percenter.") == "An elderly man; a one percenter."
    assert fixes.fix_text("with with  a Latino woman") == "With a Latina woman"


def test_release_is_read_for_the_categories_without_a_file_here(unpinned, upstream):
    rows = list(Origin("release", upstream_dir=upstream).rows("Race_x_SES"))
    assert len(rows) == 11160
    assert all(row["target_loc"] != -1 for row in rows)
    assert {row["comparison"] for row in rows} == {"match_race", "match_other", "mismatch_both"}
    assert {row["label_type"] for row in rows} == {"name", "label"}


def test_release_fixes(unpinned, upstream):
    fixed = {
        category: list(Origin("release", fixes=True, upstream_dir=upstream).rows(category))
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


def test_release_fixes_bind_tags_to_the_text(unpinned, upstream):
    rows = [
        row
        for row in Origin("release", fixes=True, upstream_dir=upstream).rows("SES")
        if row["template_id"] == "SES-08"
    ]
    assert len(rows) == 480
    poor, rich = "low income|poor|working-class", "wealthy|rich|well-off"
    for row in rows:
        for name, info in row["answer_info"].values():
            if info != "unknown":
                family = poor if info == "lowSES" else rich
                assert re.search(rf"{name} is from an? ({family}) family", row["context"]), (name, info, row["context"])


def test_a_line_that_is_no_example_is_named(pseudo_release, unpinned, upstream):
    path = pseudo_release / "nyu-mll" / "BBQ" / "data" / "Physical_appearance.jsonl"
    good = path.read_text("utf-8")
    try:
        path.write_text(good.replace('"label"', '"lable"', 1), "utf-8")
        with pytest.raises(QabiasError, match=r"Physical_appearance\.jsonl line 1: not a released BBQ example"):
            list(Origin("release", upstream_dir=upstream).rows("Physical_appearance"))
    finally:
        path.write_text(good, "utf-8")


def test_signature_names_source_commit_and_fixes():
    commit = sources.commit("nyu-mll/BBQ")[:7]
    assert Origin("official").version == f"official@{commit}"
    assert Origin("release", fixes=True).version == f"release+fixes@{commit}"
    assert Origin().version == "bundled@1"
