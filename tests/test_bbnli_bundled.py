"""The bundled texts of BBNLI: format errors, and quality of every filling."""

import copy
import itertools
import json
import re
from collections import Counter

import datasets
import pytest
import yaml

from qabias.building.templating import repair_articles
from qabias.errors import QabiasError
from qabias.share.bbnli_dataset import bundled
from qabias.share.bbnli_dataset.builder import BBNLI, FEATURES
from qabias.share.bbnli_dataset.origin import Origin
from qabias.share.bbnli_dataset.pairs import LABELS
from qabias.share.bbnli_dataset.subtopics import COGNITIVE_BIASES, CONFIGS, DOMAINS, SUBTOPICS, domain_of, subtopics_of

from .built import word_runs
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


# The folder and the builder.


def test_load_dataset_reads_the_folder_as_it_is(tmp_path, rows):
    folder = str(ROOT / "bbnli_dataset")
    everything = datasets.load_dataset(folder, cache_dir=tmp_path)
    surgeon = datasets.load_dataset(folder, "man_is_to_surgeon", split="test", cache_dir=tmp_path)
    assert list(everything) == ["test"]
    assert surgeon.features == FEATURES
    assert surgeon.features["label"].names == ["contradiction", "neutral", "entailment"]
    assert surgeon.to_list() == rows["man_is_to_surgeon"]
    assert everything["test"]["subtopic"] == [name for name in SUBTOPICS for _ in rows[name]]
    for domain in DOMAINS:
        table = datasets.load_dataset(folder, domain, split="test", cache_dir=tmp_path)
        assert set(table["domain"]) == {domain}
        assert table.num_rows == sum(len(rows[name]) for name in subtopics_of(domain))


def test_the_builder_makes_the_same_rows_as_the_folder_holds(tmp_path, rows):
    builder = BBNLI(config_name="race", cache_dir=tmp_path)
    builder.download_and_prepare()
    assert builder.as_dataset(split="test").to_list() == [row for name in subtopics_of("race") for row in rows[name]]
    assert set(BBNLI.builder_configs) == set(CONFIGS)
    assert BBNLI(cache_dir=tmp_path).config.name == "all" == CONFIGS[-1]
    assert len(CONFIGS) == 16 + 3 + 1


def test_the_version_of_the_texts():
    assert Origin().version == f"bundled@{bundled.VERSION}"
    assert Origin(seed=1).table("white_is_to_clean").equals(Origin().table("white_is_to_clean"))


# An independent reading: the product of every file, filled by plain replacement.


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
                        identity = (i, kind, k, number, stance, label, bias, premise["reference"])
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
            row["cognitive_bias"],
            row["reference"],
            *(plain(row[field]) for field in TEXTS),
        )
        for row in rows[subtopic]
    ]
    assert made == list(independent_rows(files[subtopic]))


# Counts and pairs.


def test_counts_lie_in_the_ranges_of_the_paper(files, all_rows):
    # Section 2.2; stereotypical hypotheses 5 to 11, test hypotheses 3 to 5 (7 in the published files), 3,642 rows.
    for subtopic, file in files.items():
        assert 3 <= len(file["premises"]) <= 11, subtopic
        assert 5 <= len(file["stereotypical"]) <= 11, subtopic
        assert 3 <= len(file["test"]) <= 7, subtopic
    assert 3300 <= len(all_rows) <= 4000


def test_every_pair_has_a_pro_and_an_anti_form_of_other_text(all_rows):
    assert len({row["example_id"] for row in all_rows}) == len(all_rows)
    for pro, anti in zip(all_rows[::2], all_rows[1::2], strict=True):
        assert (pro["stance"], anti["stance"]) == ("pro", "anti")
        assert pro["pair_id"] == anti["pair_id"]
        for field in TEXTS:
            assert pro[field] != anti[field]
        exchanged = ("example_id", "stance", *TEXTS)
        assert {**pro, **{field: anti[field] for field in exchanged}} == anti
    assert set(Counter(row["pair_id"] for row in all_rows).values()) == {2}


def test_no_premise_and_hypothesis_occur_together_twice(all_rows):
    assert len({(row["premise"], row["hypothesis"]) for row in all_rows}) == len(all_rows)


def test_labels_and_biases(all_rows, files):
    for row in all_rows:
        if row["kind"] == "stereotypical":
            assert (LABELS[row["label"]], row["bias_label"]) == ("neutral", 2)
            assert row["cognitive_bias"] in COGNITIVE_BIASES
        else:
            assert (row["bias_label"], row["cognitive_bias"]) == (-1, "")
    for subtopic, file in files.items():
        assert {"entailment", "contradiction"} <= {entry["label"] for entry in file["test"]}, subtopic


# Language.


def test_grammar_of_every_filling(all_rows):
    for text in {row[field] for row in all_rows for field in TEXTS}:
        assert "{" not in text, text
        assert "}" not in text, text
        assert "  " not in text, text
        assert text == text.strip(), text
        assert text[0].isupper() or text[0].isdigit(), text
        assert not re.search(r"[.!?] [a-z]", text), text
        assert not re.search(r"[,;]\s*[.?!]|[.?!]{2}", text), text
        assert repair_articles(text) == text, text
        assert not re.search(r"\b(\w+) \1\b", text.lower()), text
    for row in all_rows:
        assert row["premise"].endswith("."), row["premise"]
        assert re.search(r"[^.?!]\.$", row["hypothesis"]), row["hypothesis"]
        assert re.search(r"[^.?!]\?$", row["question"]), row["question"]


def test_no_group_is_written_out(files):
    for subtopic, file in files.items():
        forms = {re.sub(r"^(a|an|the) ", "", form) for pair in file["groups"].values() for form in pair}
        for item, text in template_texts(file):
            left = re.sub(r"\{\{\w+\}\}", "", text)
            for form in forms:
                assert not re.search(rf"\b{re.escape(form)}\b", left, re.I), (subtopic, item, form)


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
    path.parent.mkdir(parents=True)
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


def _changed(*place, to):
    """`GOOD` with the value at a place replaced, or left out if `to` is None."""
    content = copy.deepcopy(GOOD)
    inner = content
    for key in place[:-1]:
        inner = inner[key]
    if to is None:
        del inner[place[-1]]
    else:
        inner[place[-1]] = to
    return content


def test_words_of_a_premise_multiply_with_those_of_the_hypothesis(tmp_path):
    content = _changed("premises", 1, "text", to="Few {{GROUP1}} came {{WORD2}}.")
    content["words"]["WORD2"] = ["late", "after dark"]
    made = [row for row in _generate(tmp_path, content) if row["stance"] == "pro" and row["premise_id"] == 1]
    assert [(row["premise"], row["hypothesis"]) for row in made[:4]] == [
        ("Few short people came late.", "Tall people sing well."),
        ("Few short people came after dark.", "Tall people sing well."),
        ("Few short people came late.", "Tall people sing nicely."),
        ("Few short people came after dark.", "Tall people sing nicely."),
    ]
    assert Counter((row["kind"], row["hypothesis_id"]) for row in made) == {
        ("stereotypical", 0): 4,
        ("test", 0): 2,
        ("test", 1): 2,
    }


def _asking(kind, hypothesis, question):
    content = copy.deepcopy(GOOD)
    content[kind][0].update(hypothesis=hypothesis, question=question)
    return content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("text", "must be a mapping with subtopic, domain"),
        ("subtopic: a: b", "not readable as YAML"),
        (_changed("test", to=None), "field test: is missing"),
        (_changed("premise", to=[]), "field premise: is not a field; did you mean 'premises'?"),
        (
            _changed("subtopic", to="man_is_to_nurse"),
            "field subtopic: 'man_is_to_nurse' is not one of man_is_to_surgeon",
        ),
        (_changed("domain", to="race"), "field domain: 'race' is not one of gender"),
        (_changed("stereotype", to="Tall people"), "field stereotype: must end with '.'"),
        (_changed("stereotype", to=""), "field stereotype: must be a text, not ''"),
        (_changed("groups", "GROUP", to=None), "field groups: GROUP is missing"),
        (
            _changed("groups", "GROUP", to=["men", "men"]),
            "field groups: GROUP must list at least two texts, all different",
        ),
        (_changed("groups", "GROUP", to=["men", "women", "all"]), "field groups: GROUP must list two forms"),
        (_changed("groups", "Person", to=["a man", "a woman"]), "field groups: Person is not a name: capital letters"),
        (_changed("groups", "OTHER", to=["a man", "a woman"]), "field groups: OTHER is used in no text"),
        (_changed("groups", to=["men"]), "field groups: must be a mapping from names to lists"),
        (_changed("words", "GROUP1", to=["x", "y"]), "field words: GROUP1 is not a name"),
        (_changed("words", "Word", to=["x", "y"]), "field words: Word is not a name"),
        (_changed("words", "WORD1", to=["well"]), "field words: WORD1 must list at least two texts"),
        (_changed("words", "WORD1", to="well"), "field words: WORD1 must be a list of texts"),
        (_changed("words", "WORD1", to=["well", True]), "field words: WORD1 must be a list of texts"),
        (_changed("words", "WORD2", to=["x", "y"]), "field words: WORD2 is used in no text"),
        (_changed("premises", to=[]), "field premises: must be a list with at least one entry"),
        (_changed("premises", 1, to="They came."), "premise 1: must be a mapping with text, reference"),
        (
            _changed("premises", 1, "refrence", to="x"),
            "premise 1: field refrence: is not a field; did you mean 'reference'",
        ),
        (
            _changed("premises", 1, "reference", to="example.org"),
            r"premise 1: field reference: must be an http\(s\) address",
        ),
        (
            _changed("premises", 1, "reference", to="https://a.org/#b"),
            "premise 1: field reference: must be .* without '#'",
        ),
        (_changed("premises", 1, "text", to="Few came."), "premise 1: field text: must hold a group's slot"),
        (_changed("premises", 1, "text", to="Few {{GROUP1}} came"), "premise 1: field text: must end with '.'"),
        (_changed("premises", 1, "text", to="Few  {{GROUP1}} came."), "premise 1: field text: has a space too many"),
        (_changed("premises", 1, "text", to="Few {{GROUP3}} came."), "premise 1: field text: slot GROUP3 is filled by"),
        (_changed("premises", 1, "text", to="Few {GROUP1} came."), "premise 1: field text: has a stray brace"),
        (
            _changed("premises", 1, "text", to="U.S. {{GROUP1}} came."),
            "premise 1: field text: small letter or slot after",
        ),
        (_changed("premises", 1, "text", to="In the U.S. few {{GROUP1}} came."), "premise 1: field text: small letter"),
        (
            _changed("premises", 1, "text", to="A {{PERSON2}} sang. {{GROUP1}} did not."),
            "premise 1: field text: pro form reads as the pro form of premise 0",
        ),
        (
            _changed("stereotypical", 0, "cognitive_bias", to="halo"),
            "stereotypical 0: field cognitive_bias: 'halo' is not",
        ),
        (_changed("stereotypical", 0, "label", to="neutral"), "stereotypical 0: field label: is not a field"),
        (
            _changed("test", 1, "label", to="entails"),
            "test 1: field label: 'entails' is not one of contradiction, neutral",
        ),
        (_changed("test", 1, "label", to=None), "test 1: field label: is missing"),
        (_changed("test", 1, "hypothesis", to="No {{GROUP2}} came!"), "test 1: field hypothesis: must end with '.'"),
        (_changed("test", 1, "question", to="Did {{GROUP2}} come."), "test 1: field question: must end with '?'"),
        (
            _changed("test", 1, "question", to="Did {{GROUP1}} come?"),
            "test 1: field question: must have the slots of the",
        ),
        (_asking("test", "All came.", "Did all come?"), "test 0: field hypothesis: must hold a group's slot"),
        (
            _asking("test", "No {{GROUP2}} came.", "Did {{GROUP2}} stay?"),
            "test 1: field hypothesis: pro form reads as the pro form of test 0",
        ),
        (
            _asking("test", "No {{GROUP1}} came.", "Did {{GROUP1}} stay?"),
            "test 1: field hypothesis: pro form reads as the anti form of test 0",
        ),
        (
            _asking("test", "Some {{GROUP1}} came.", "Did no {{GROUP1}} come?"),
            "test 1: field question: pro form reads as the anti form of test 0",
        ),
        (
            _changed("groups", "GROUP", to=["tall people", "Tall people"]),
            "GROUP must list at least two texts, all differ",
        ),
    ],
)
def test_a_wrong_file_is_reported_with_item_and_field(tmp_path, content, message):
    with pytest.raises(QabiasError, match=message) as caught:
        _generate(tmp_path, content)
    assert "man_is_to_surgeon.yaml: " in str(caught.value)


def test_a_missing_file(tmp_path):
    with pytest.raises(QabiasError, match="no such template file; the subtopics are man_is_to_breadwinner"):
        list(bundled.generate("man_is_to_surgeon", tmp_path))
