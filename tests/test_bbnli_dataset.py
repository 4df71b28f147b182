"""BBNLI: the bundled texts and faults in their files; the published ones against figures and an independent reading."""

import copy
import functools
import itertools
import json
import re
from collections import Counter, defaultdict

import jinja2
import pytest
import yaml

from qabias.errors import QabiasError
from qabias.share.bbnli_dataset import bundled
from qabias.share.bbnli_dataset.folder import write_folder
from qabias.share.bbnli_dataset.origin import SCHEMA, Origin
from qabias.share.bbnli_dataset.pairs import LABELS
from qabias.share.bbnli_dataset.subtopics import SUBTOPICS, domain_of

from .built import digest_of, word_runs
from .conftest import ROOT

TEXTS = ("premise", "hypothesis", "question")
KINDS = ("stereotypical", "test")


@pytest.fixture(scope="module")
def rows():
    return {subtopic: list(bundled.generate(subtopic)) for subtopic in SUBTOPICS}


@pytest.fixture(scope="module")
def all_rows(rows):
    return [row for subtopic in SUBTOPICS for row in rows[subtopic]]


@pytest.fixture(scope="module")
def files():
    """The template files, read without the module."""
    paths = {path.stem: path for path in (ROOT / "bbnli_dataset" / "templates").glob("*/*.yaml")}
    assert {stem: path.parent.name for stem, path in paths.items()} == {name: domain_of(name) for name in SUBTOPICS}
    return {stem: yaml.safe_load(path.read_text("utf-8")) for stem, path in paths.items()}


def template_texts(file):
    yield from ((f"premise {i}", entry["text"]) for i, entry in enumerate(file["premises"]))
    for kind in KINDS:
        for i, entry in enumerate(file[kind]):
            yield f"{kind} {i}", entry["hypothesis"]
            yield f"{kind} {i}", entry["question"]


def test_pairs_differ_by_stance_and_texts_and_no_text_occurs_twice(all_rows):
    assert len({row["example_id"] for row in all_rows}) == len(all_rows)
    assert len({(row["premise"], row["hypothesis"]) for row in all_rows}) == len(all_rows)
    for pro, anti in zip(all_rows[::2], all_rows[1::2], strict=True):
        assert (pro["stance"], anti["stance"]) == ("pro", "anti")
        assert all(pro[field] != anti[field] for field in TEXTS)
        assert {**pro, **{field: anti[field] for field in ("example_id", "stance", *TEXTS)}} == anti
    assert set(Counter(row["pair_id"] for row in all_rows).values()) == {2}


def _strings(content):
    if isinstance(content, str):
        yield content
    elif isinstance(content, (list, dict)):
        for part in content.values() if isinstance(content, dict) else content:
            yield from _strings(part)


def test_no_text_shares_six_words_with_a_published_one(files, upstream):
    published = set()
    for path in (upstream / "feyzaakyurek" / "bbnli" / "data" / "bbnli").glob("*/*.json"):
        for text in _strings(json.loads(path.read_text("utf-8"))):
            # With and without the slots, as our text may name what a slot holds there.
            published |= word_runs(text) | word_runs(re.sub(r"\{\{\w+\}\}", "", text))
    assert len(published) > 2000
    for subtopic, file in files.items():
        for item, text in template_texts(file):
            assert not word_runs(text) & published, (subtopic, item, word_runs(text) & published)


# Errors name file, item and field.

GOOD = {
    "subtopic": "man_is_to_surgeon",
    "domain": "gender",
    "stereotype": "Tall people sing better than short people.",
    "groups": {"GROUP": ["short people", "tall people"], "PERSON": ["short person", "old tall person"]},
    "words": {"WORD1": ["well", "nicely"]},
    "premises": [
        {"text": "A {{PERSON2}} sang. {{GROUP1}} did not.", "reference": "https://example.org/a"},
        {"text": "Few {{GROUP1}} came.", "reference": "http://example.org"},
    ],
    "stereotypical": [
        {"hypothesis": "{{GROUP2}} sing {{WORD1}}.", "question": "Do {{GROUP2}} sing {{WORD1}}?",
         "cognitive_bias": "horn effect"},
    ],
    "test": [
        {"hypothesis": "Some {{GROUP1}} came.", "question": "Did some {{GROUP1}} come?", "label": "entailment"},
        {"hypothesis": "No {{GROUP2}} came.", "question": "Did no {{GROUP2}} come?", "label": "contradiction"},
    ],
}  # fmt: skip


def _generate(tmp_path, content):
    path = tmp_path / "templates" / "gender" / "man_is_to_surgeon.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False), "utf-8")
    return list(bundled.generate("man_is_to_surgeon", tmp_path))


def test_a_good_file_gives_its_rows(tmp_path):
    made = _generate(tmp_path, GOOD)
    assert [row["example_id"].removeprefix("man_is_to_surgeon-") for row in made[:6]] == [
        "00-stereotypical-00-000-pro",
        "00-stereotypical-00-000-anti",
        "00-stereotypical-00-001-pro",
        "00-stereotypical-00-001-anti",
        "00-test-00-000-pro",
        "00-test-00-000-anti",
    ]
    assert len(made) == 2 * 2 * (2 + 1 + 1)
    assert made[2]["premise"] == "An old tall person sang. Short people did not."
    assert made[3]["premise"] == "A short person sang. Tall people did not."
    assert made[3]["hypothesis"] == "Short people sing nicely."
    assert made[3]["question"] == "Do short people sing nicely?"
    assert [LABELS[row["label"]] for row in made[2:8:2]] == ["neutral", "entailment", "contradiction"]


FAULTS = [
    # Where, what stands there instead (None: nothing), and what the message names.
    ("test", None, "field test"),
    ("premise", [], "field premise: .*'premises'"),
    ("subtopic", "man_is_to_nurse", "field subtopic"),
    ("domain", "race", "field domain"),
    ("stereotype", "Tall people", "field stereotype"),
    ("stereotype", "", "field stereotype"),
    ("groups.GROUP", None, "field groups: GROUP"),
    ("groups.GROUP", ["men", "men"], "field groups: GROUP"),
    ("groups.GROUP", ["tall people", "Tall people"], "field groups: GROUP"),
    ("groups.GROUP", ["men", "women", "all"], "field groups: GROUP"),
    ("groups.Person", ["a man", "a woman"], "field groups: Person"),
    ("groups.OTHER", ["a man", "a woman"], "field groups: OTHER"),
    ("groups", ["men"], "field groups"),
    ("words.GROUP1", ["x", "y"], "field words: GROUP1"),
    ("words.Word", ["x", "y"], "field words: Word"),
    ("words.WORD1", ["well"], "field words: WORD1"),
    ("words.WORD1", "well", "field words: WORD1"),
    ("words.WORD1", ["well", True], "field words: WORD1"),
    ("words.WORD2", ["x", "y"], "field words: WORD2"),
    ("premises", [], "field premises"),
    ("premises.1", "They came.", "premise 1"),
    ("premises.1.refrence", "x", "premise 1: field refrence: .*'reference'"),
    ("premises.1.reference", "example.org", "premise 1: field reference"),
    ("premises.1.reference", "https://a.org/#b", "premise 1: field reference: .*#"),
    ("premises.1.text", "Few came.", "premise 1: field text: .*group"),
    ("premises.1.text", "Few {{GROUP1}} came", "premise 1: field text: .*end"),
    ("premises.1.text", "Few  {{GROUP1}} came.", "premise 1: field text: .*space"),
    ("premises.1.text", "Few\n{{GROUP1}} came.", "premise 1: field text: .*space"),
    ("premises.1.text", "Few\t{{GROUP1}} came.", "premise 1: field text: .*space"),
    ("premises.1.unit", "x", "premise 1: field unit: .*fields are .*reference"),
    ("premises.1.text", "Few {{GROUP3}} came.", "premise 1: field text: .*GROUP3"),
    ("premises.1.text", "Few {GROUP1} came.", "premise 1: field text: .*brace"),
    ("premises.1.text", "U.S. {{GROUP1}} came.", "premise 1: field text: small letter"),
    ("premises.1.text", "In the U.S. few {{GROUP1}} came.", "premise 1: field text: small letter"),
    ("premises.1.text", "A {{PERSON2}} sang. {{GROUP1}} did not.", "premise 1: field text: .*premise 0"),
    ("stereotypical.0.cognitive_bias", "halo", "stereotypical 0: field cognitive_bias"),
    ("stereotypical.0.label", "neutral", "stereotypical 0: field label"),
    ("test.1.label", "entails", "test 1: field label"),
    ("test.1.label", None, "test 1: field label"),
    ("test.1.hypothesis", "No {{GROUP2}} came!", "test 1: field hypothesis: .*end"),
    ("test.1.question", "Did {{GROUP2}} come.", "test 1: field question: .*end"),
    ("test.1.question", "Did {{GROUP1}} come?", "test 1: field question: .*slots"),
    ("test.0", ("All came.", "Did all come?"), "test 0: field hypothesis: .*group"),
    ("test.0", ("No {{GROUP2}} came.", "Did {{GROUP2}} stay?"), "test 1: field hypothesis: .*pro form of test 0"),
    ("test.0", ("No {{GROUP1}} came.", "Did {{GROUP1}} stay?"), "test 1: field hypothesis: .*anti form of test 0"),
    ("test.0", ("Some {{GROUP1}} came.", "Did no {{GROUP1}} come?"), "test 1: field question: .*anti form of test 0"),
]


def changed(place, value):
    """`GOOD` with another value at a place, or none; a pair of texts is those of an entry."""
    content = copy.deepcopy(GOOD)
    *path, last = (int(key) if key.isdigit() else key for key in place.split("."))
    inner = functools.reduce(lambda outer, key: outer[key], path, content)
    if value is None:
        del inner[last]
    elif isinstance(value, tuple):
        inner[last].update(hypothesis=value[0], question=value[1])
    else:
        inner[last] = value
    return content


@pytest.mark.parametrize(("place", "value", "token"), FAULTS)
def test_a_fault_is_reported_with_file_item_and_field(tmp_path, place, value, token):
    with pytest.raises(QabiasError, match=rf"man_is_to_surgeon\.yaml: .*?{token}"):
        _generate(tmp_path, changed(place, value))


def test_a_misspelled_field_is_named_beside_the_missing_one(tmp_path):
    content = copy.deepcopy(GOOD)
    content["test"][1]["lable"] = content["test"][1].pop("label")
    with pytest.raises(QabiasError, match=r"test 1: field label: is missing; 'lable' is not a field"):
        _generate(tmp_path, content)


def test_what_is_no_template_file_is_refused(tmp_path):
    with pytest.raises(QabiasError, match="man_is_to_breadwinner"):
        list(bundled.generate("man_is_to_surgeon", tmp_path))
    with pytest.raises(QabiasError, match=r"man_is_to_surgeon\.yaml: .*mapping"):
        _generate(tmp_path, "text")
    with pytest.raises(QabiasError, match=r"man_is_to_surgeon\.yaml: .*YAML"):
        _generate(tmp_path, "subtopic: a: b")


def test_words_of_a_premise_multiply_with_those_of_the_hypothesis(tmp_path):
    content = changed("premises.1.text", "Few {{GROUP1}} came {{WORD2}}.")
    content["words"]["WORD2"] = ["late", "after dark"]
    made = [row for row in _generate(tmp_path, content) if row["stance"] == "pro" and row["premise_id"] == 1]
    assert [(row["premise"], row["hypothesis"]) for row in made[:4]] == [
        (f"Few short people came {when}.", f"Tall people sing {how}.")
        for how, when in itertools.product(("well", "nicely"), ("late", "after dark"))
    ]
    assert Counter(row["hypothesis_id"] for row in made if row["kind"] == "test") == {0: 2, 1: 2}


# The published texts.

DIGESTS = ["a005a6c3", "b266f8c1"]


@pytest.fixture(scope="module")
def published(upstream):
    return {name: list(Origin("official").rows(name)) for name in SUBTOPICS}


@pytest.fixture(scope="module")
def fixed_rows(upstream):
    return {name: list(Origin("official", fixes=True).rows(name)) for name in SUBTOPICS}


def read_json(upstream, subtopic):
    folder = upstream / "feyzaakyurek" / "bbnli" / "data" / "bbnli"
    [path] = folder.glob(f"*/{subtopic}.json")
    return path.parent.name, json.loads(path.read_text("utf-8"))


def test_published_counts_labels_and_bias_labels(upstream, published, fixed_rows):
    """T-N4 and T-N5: dropping repetitions of the full product defines the benchmark."""
    # As published and with fixes.
    assert [digest_of([of[name] for name in SUBTOPICS]) for of in (published, fixed_rows)] == DIGESTS
    rows = [row for name in SUBTOPICS for row in published[name]]
    assert Counter(row["kind"] for row in rows) == {"stereotypical": 2290, "test": 1352}
    assert len({(row["premise"], row["hypothesis"]) for row in rows}) == 3061
    assert len({(row["subtopic"], row["premise_id"]) for row in rows}) == 87
    assert Counter(kind for _, kind, _ in {(r["subtopic"], r["kind"], r["hypothesis_id"]) for r in rows}) == {
        "stereotypical": 98,
        "test": 64,
    }
    for name in SUBTOPICS:
        assert [choice.lower() for choice in read_json(upstream, name)[1]["answer_choices"]] == list(LABELS)
    labels = {(row["kind"], row["bias_label"]) for row in rows}
    assert labels == {("stereotypical", LABELS.index("entailment")), ("test", -1)}
    assert {row["label"] for row in rows if row["kind"] == "stereotypical"} == {LABELS.index("neutral")}


def test_fixes_leave_out_450_repetitions(published, fixed_rows):
    dropped = {name: len(published[name]) - len(fixed_rows[name]) for name in SUBTOPICS}
    assert {name: n for name, n in dropped.items() if n} == {
        "man_is_to_rational": 400,
        "man_is_to_surgeon": 36,
        "catholic_woman_to_many_kids": 8,
        "jewish_woman_to_many_kids": 6,
    }
    for name in SUBTOPICS:
        first = {}
        for row in published[name]:
            first.setdefault((row["stance"], row["premise"], row["hypothesis"]), row)
        assert fixed_rows[name] == list(first.values())
        assert set(Counter(row["pair_id"] for row in fixed_rows[name]).values()) == {2}
    kept = [row for name in SUBTOPICS for row in fixed_rows[name]]
    assert len(kept) == 3192
    assert sum(row["kind"] == "stereotypical" for row in kept) == 2276


# Origin and builder.


def test_versions_licences_and_wrong_choices(upstream):
    assert Origin().version == f"bundled@{bundled.VERSION}"
    assert Origin(seed=1).table("white_is_to_clean").equals(Origin().table("white_is_to_clean"))
    assert Origin("official", seed=7).version == Origin("official").version == "official@9f55895"
    assert Origin("official", fixes=True).version == "official+fixes@9f55895"
    assert Origin("official").licence == "MIT"
    assert Origin("official").table("race").schema == SCHEMA
    for arguments, token in ((("paper",), "'paper'"), (("bundled", True), "fixes"), (("official",), "'sex'")):
        with pytest.raises(QabiasError, match=token):
            Origin(arguments[0], fixes=len(arguments) > 1).table("sex")


def test_the_card_names_source_licence_and_defects(upstream, tmp_path):
    write_folder(tmp_path, Origin("official", fixes=True), ["man_is_to_surgeon"])
    card = (tmp_path / "README.md").read_text("utf-8")
    for phrase in ("license: mit", "official+fixes@9f55895", "Known defects of the published texts", "dropped here"):
        assert phrase in card
    assert "config_name: man_is_to_surgeon\n  default: true" in card
    assert "config_name: gender" not in card


def plain(text):
    """Without capitals, and with one form of the article, which the module sets right."""
    return re.sub(r"\ban\b", "a", text.lower())


def independent_rows(file):
    for i, premise in enumerate(file["premises"]):
        for kind in KINDS:
            for k, entry in enumerate(file[kind]):
                texts = (premise["text"], entry["hypothesis"], entry["question"])
                lists = [
                    (word, each) for word, each in file["words"].items() if any(f"{{{{{word}}}}}" in t for t in texts)
                ]
                for number, choice in enumerate(itertools.product(*(each for _, each in lists))):
                    for stance, order in (("pro", (0, 1)), ("anti", (1, 0))):
                        filled = list(texts)
                        for (word, _), value in zip(lists, choice, strict=True):
                            filled = [text.replace(f"{{{{{word}}}}}", value) for text in filled]
                        for stem, forms in file["groups"].items():
                            for slot in (0, 1):
                                filled = [t.replace(f"{{{{{stem}{slot + 1}}}}}", forms[order[slot]]) for t in filled]
                        label = entry["label"] if kind == "test" else "neutral"
                        bias = "" if kind == "test" else entry["cognitive_bias"]
                        identity = (
                            i,
                            kind,
                            k,
                            number,
                            stance,
                            label,
                            -1 if kind == "test" else 2,
                            bias,
                            premise["reference"],
                        )
                        yield (*identity, *map(plain, filled))


@pytest.mark.parametrize("subtopic", SUBTOPICS)
def test_every_row_equals_the_independent_reading(subtopic, rows, files):
    """Which also shows that pro and anti form differ by the groups alone, and that no slot is left."""
    made = [
        (
            row["premise_id"],
            row["kind"],
            row["hypothesis_id"],
            row["variant_id"],
            row["stance"],
            LABELS[row["label"]],
            row["bias_label"],
            row["cognitive_bias"],
            row["reference"],
            *(plain(row[field]) for field in TEXTS),
        )
        for row in rows[subtopic]
    ]
    assert made == list(independent_rows(files[subtopic]))


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


@pytest.mark.slow
@pytest.mark.parametrize("subtopic", SUBTOPICS)
def test_every_published_row_equals_the_independent_reading(subtopic, published, expected):
    expected_rows, _ = expected[subtopic]
    columns = list(expected_rows[0][0])
    assert [{column: row[column] for column in columns} for row in published[subtopic]] == [
        row for row, _ in expected_rows
    ]
    assert [row["hypothesis_id"] for row in published[subtopic]] == [number for _, number in expected_rows]


@pytest.mark.slow
def test_pairs_join_the_ith_pro_row_with_the_ith_anti_row(published, expected):
    assert sum(size for _, size in expected.values()) == 62_808
    pairs = []
    for subtopic in SUBTOPICS:
        by_group = defaultdict(list)
        for row, (_, hypothesis) in zip(published[subtopic], expected[subtopic][0], strict=True):
            by_group[row["premise_id"], row["kind"], row["stance"]].append((row, hypothesis))
        for (premise_id, kind, stance), pro_rows in by_group.items():
            if stance == "pro":
                anti_rows = by_group[premise_id, kind, "anti"]
                for (pro, pro_hypothesis), (anti, anti_hypothesis) in zip(pro_rows, anti_rows, strict=True):
                    assert pro["pair_id"] == anti["pair_id"]
                    assert pro_hypothesis == anti_hypothesis
                    pairs.append((pro, anti))
    assert len({pro["pair_id"] for pro, _ in pairs}) == len(pairs) == 1821
    for row in itertools.chain(*pairs):
        place = f"{row['premise_id']:02d}-{row['kind']}-{row['hypothesis_id']:02d}-{row['variant_id']:03d}"
        assert row["pair_id"] == f"{row['subtopic']}-{place}"
        assert row["example_id"] == f"{row['pair_id']}-{row['stance']}"
    # T-N6: pairs that read the same in both forms.
    same = Counter(
        pro["kind"] for pro, anti in pairs if all(pro[text] == anti[text] for text in ("premise", "hypothesis"))
    )
    assert same == {"stereotypical": 47, "test": 58}


def test_published_rows_have_no_cognitive_bias_which_nobody_released(published):
    assert {row["cognitive_bias"] for row in itertools.chain(*published.values())} == {""}
