"""UnQover: bundled texts, and faults in their files; published ones against figures and an independent reading."""

import itertools
import random
import re
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import yaml

from qabias.errors import QabiasError
from qabias.share.unqover_dataset import bundled
from qabias.share.unqover_dataset.design import SETS
from qabias.share.unqover_dataset.fixes import FIXES
from qabias.share.unqover_dataset.folder import write_folder
from qabias.share.unqover_dataset.origin import CONFIGS, SUBJECTS, Origin

from .built import UNQOVER_TABLE_1, digest_of, unqover_rows, unqover_table, word_runs
from .conftest import ROOT

FOLDER = ROOT / "unqover_dataset"


@pytest.fixture(scope="module")
def tables():
    return {config: unqover_table(config) for config in CONFIGS}


@pytest.fixture(scope="module")
def published(upstream):
    return {config: unqover_table(config, "official", upstream) for config in CONFIGS}


@pytest.fixture(scope="module")
def fixed(upstream):
    return {config: Origin("official", fixes=True).table(config) for config in CONFIGS}


@pytest.fixture(scope="module")
def attributes():
    return bundled.read_attributes(FOLDER / "vocabulary" / "attributes.csv")


@pytest.fixture(scope="module")
def subjects():
    return bundled.read_subjects(FOLDER / "vocabulary" / "subjects.csv")


def distinct(table, *columns):
    """The distinct combinations of some columns, in the order of their first rows."""
    codes = np.zeros(table.num_rows, np.int64)
    for column in columns:
        texts = table[column].chunk(0)
        codes = codes * len(texts.dictionary) + texts.indices.to_numpy()
    _, first = np.unique(codes, return_index=True)
    return [tuple(row.values()) for row in table.select(columns).take(np.sort(first)).to_pylist()]


def texts_of(table, *columns):
    """The distinct texts of some columns."""
    return {text for column in columns for text in table[column].unique().to_pylist()}


# The folder and the builder.


# Counts.


@pytest.mark.slow
def test_counts_and_ids(tables, published):
    """Pairs x templates x attributes: 2,346 x (3 x 14 + 9 x 50) for nationality."""
    assert {config: table.num_rows for config, table in tables.items()} == {
        **UNQOVER_TABLE_1,
        **{f"{name}_mlm": n for name, n in UNQOVER_TABLE_1.items()},
    }
    assert {config: published[config].num_rows for config in UNQOVER_TABLE_1} == UNQOVER_TABLE_1
    for table in (*tables.values(), *published.values()):
        assert np.array_equal(table["example_id"].to_numpy(), np.arange(table.num_rows))


# Language.


@pytest.mark.slow
def test_every_answer_stands_in_both_contexts_in_the_right_order(tables):
    for name in SETS:
        fillings = distinct(tables[name], "context_12", "context_21", "answer1", "answer2")
        for forward, backward, one, two in fillings:
            places = [
                [match.start() for match in re.finditer(rf"(?<![\w-]){re.escape(word)}(?![\w-])", context)]
                for context in (forward, backward)
                for word in (one, two)
            ]
            assert [len(ends) for ends in places] == [1, 1, 1, 1], forward
            assert (places[0] < places[1], places[3] < places[2]) == (True, True), (forward, backward)
        n_fillings = {"gender": 4900 * 4, "nationality": 2346 * 9}.get(name)
        assert n_fillings is None or len(fillings) == n_fillings


@pytest.mark.slow
def test_number_agrees_in_every_question(tables):
    for name in SETS:
        columns = ("context_12", "question", "negated_question", "template_id")
        for row in unqover_rows(tables[name].slice(0, 700 if name != "nationality" else 492)):
            is_plural = "group of" in row["context_12"] or "people that" in row["question"]
            for field in columns[1:3]:
                predicate = re.sub(r"^(Who|Which place has people that|Which place) ", "", row[field])
                assert predicate.split()[0] != ("was" if is_plural else "were"), row[field]


@pytest.mark.slow
def test_a_predicate_and_its_negation_differ_by_an_antonym_or_never(attributes):
    for listed in attributes.values():
        for attribute in listed:
            for text, negated in (attribute.form("plural"), attribute.form("singular")):
                if not text:
                    continue
                assert not re.search(r"\bnot\b|n't\b|\bnever\b", text), text
                assert not re.search(r"\bnot\b|n't\b", negated), negated
                if "never" in negated and attribute.kind != "occupation":
                    # Nothing but the verb's place may change: "was ..." takes "never" behind it.
                    assert negated.replace("never ", "", 1) == text
            # Singular and plural say the same.
            if attribute.plural:
                assert len(attribute.singular.split()) - len(attribute.plural.split()) in (0, 1)
                assert attribute.plural.startswith("were ") == attribute.singular.startswith("was ")
    # As in Figure 2.
    for attribute in attributes["occupation"]:
        assert attribute.singular.startswith(("was a ", "was an "))
        assert attribute.singular_negated == attribute.singular.replace("was ", "can never be ", 1)


# The published tables, and nothing else of the authors.


def test_no_attribute_is_taken_from_the_published_lists(attributes, upstream):
    paths = (upstream / "allenai" / "unqover" / "word_lists" / "activities").glob("biased_*")
    lines = [line for path in paths for line in path.read_text("utf-8").splitlines()]
    published = {line.split("|")[1].strip() for line in lines if "|" in line}
    assert len(published) > 180
    published_runs = {words for text in published for words in word_runs(text, 4)}
    for kind in ("person", "place"):
        for attribute in attributes[kind]:
            for text in (*attribute.form("plural"), *attribute.form("singular")):
                assert text not in published
                assert not word_runs(text, 4) & published_runs, text
                # Nor is the gist of a published one kept with another auxiliary.
                bare = re.sub(r"^(was|were|had|never) ", "", text)
                assert not any(re.sub(r"^(was|were|had|never) ", "", other) == bare for other in published), text


# Errors name file, row (or template) and field.


@pytest.fixture
def copy(tmp_path):
    """A copy of the readable files in which a text can be exchanged."""
    for part in ("templates", "vocabulary"):
        shutil.copytree(FOLDER / part, tmp_path / part)

    def exchange(file, old, new):
        path = tmp_path / file
        text = path.read_text("utf-8")
        assert text.count(old) >= 1, old
        path.write_text(text.replace(old, new, 1), "utf-8")
        return tmp_path

    return exchange


FAULTS = [
    ("vocabulary/attributes.csv", "kind,class", "kind,klass", "no column class"),
    ("vocabulary/attributes.csv", "was an accountant", "was a accountant", "row 2: field singular"),
    ("vocabulary/attributes.csv", "person,rude,were impolite", "persn,rude,were impolite", "row 72: field kind"),
    ("vocabulary/attributes.csv", "person,rude,were impolite", "person,bad,were impolite", "row 72: field class"),
    ("vocabulary/attributes.csv", "person,rude,were impolite", "person,rude,was impolite", "row 72: field plural"),
    ("vocabulary/attributes.csv", "were impolite to strangers,were", "were  impolite,were", "row 72: field plural"),
    ("vocabulary/attributes.csv", "were impolite to strangers,were", ",were", "row 72: field plural"),
    ("vocabulary/attributes.csv", "were impolite to strangers,were", "Were impolite,were", "row 72: field plural"),
    ("vocabulary/attributes.csv", "were impolite to strangers,were", "were rude.,were", "row 72: field plural"),
    ("vocabulary/attributes.csv", ",was impolite to strangers,was", ",were impolite,was", "row 72: field singular"),
    ("vocabulary/attributes.csv", "cut in line,never cut", "cut in line,cut", "row 78: field plural_negated"),
    ("vocabulary/attributes.csv", "rude,mocked other people", "rude,cut in line", r"row \d+: field plural"),
    ("vocabulary/attributes.csv", "rude,were unwelcoming", "negative,were unwelcoming", "row 122: field class"),
    ("vocabulary/attributes.csv", "occupation,,,,was a nurse,", "occupation,rude,,,was a nurse,", "field class"),
    ("vocabulary/attributes.csv", "was an architect,", "was an architect,one,", "line 4: not one cell"),
    ("vocabulary/attributes.csv", "class of Li et al. 2020; wording of this project", "", "row 72: field source"),
    ("vocabulary/attributes.csv", "was a nurse,", '"was a\nnurse",', "line break"),
    ("vocabulary/attributes.csv", "kind,class", "kind,class,note", "not one cell"),
    ("vocabulary/attributes.csv", "kind,class", "kind,kind", "occurs twice"),
    ("vocabulary/subjects.csv", "gender,Mary", "sex,Mary", "row 2: field set"),
    ("vocabulary/subjects.csv", "Mary,,female", "Mary,,woman", "row 2: field cluster"),
    ("vocabulary/subjects.csv", "Mary,,female", "Mary,Marian,female", "row 2: field demonym"),
    ("vocabulary/subjects.csv", "France,French,Western Europe", "France,,Western Europe", "field demonym"),
    ("vocabulary/subjects.csv", "France,French,Western Europe", "France,French,", "field cluster"),
    ("vocabulary/subjects.csv", "France,French", "France,German", "field demonym: 'German'"),
    ("vocabulary/subjects.csv", "gender,Linda", "gender,Mary", "row 4: field name: 'Mary'"),
    ("vocabulary/subjects.csv", "religion,Sikh", "religion,sikh", "field name"),
    ("vocabulary/subjects.csv", "religion,Sikh,,", "religion,Sikh,,India", "field cluster"),
    ("templates/religion.yaml", "- id: 0", "- id: 1", "template 0: field id"),
    ("templates/religion.yaml", "subjects: name", "subject: name", "template 0: field subjects"),
    ("templates/religion.yaml", "number: singular", "number: singular\n    nmber: plural", "field nmber: .*'number'"),
    ("templates/religion.yaml", "subjects: name", "subjects: demonym", "template 0: field subjects"),
    ("templates/religion.yaml", "attributes: person", "attributes: occupation", "field attributes"),
    ("templates/religion.yaml", "number: singular", "number: both", "field number"),
    ("templates/religion.yaml", "visit a {{X2}} man", "visit a {{X1}} man", "field context"),
    ("templates/religion.yaml", "A {{X1}} man got", "A {{X2}} man got", "field context"),
    ("templates/religion.yaml", "visit a {{X2}} man", "visit a {{X3}} {{X2}} man", "field context: .*X3"),
    ("templates/religion.yaml", "visit a {{X2}} man", "visit a [{{X2}} man", "field context: .*brace"),
    ("templates/religion.yaml", "visit a {{X2}} man", "visit  a {{X2}} man", "field context: .*space"),
    ("templates/religion.yaml", '"Who {{ATTRIBUTE}}?"', '"Who?"', "field question"),
    ("templates/religion.yaml", '"Who {{ATTRIBUTE}}?"', '"Who {{ATTRIBUTE}}"', "field question"),
    ("templates/religion.yaml", '"Who {{ATTRIBUTE}}?"', "7", "field question"),
    ("templates/religion.yaml", "The {{MASK}} man", "The man", "field masked"),
    ("templates/religion.yaml", "set: religion", "set: ethnicity", "set is 'ethnicity'"),
]


@pytest.mark.parametrize(("file", "old", "new", "place"), FAULTS)
def test_a_fault_is_reported_with_file_place_and_field(copy, file, old, new, place):
    with pytest.raises(QabiasError, match=rf"{Path(file).name}: .*?{place}"):
        bundled.read_design("religion", masked=False, folder=copy(file, old, new))


def test_a_column_without_a_meaning_is_refused(copy):
    folder = copy("vocabulary/subjects.csv", "set,", "set,")
    path = folder / "vocabulary" / "subjects.csv"
    heading, *rows = path.read_text("utf-8").splitlines()
    path.write_text("\n".join([f"{heading},note", *(f"{row},x" for row in rows)]), "utf-8")
    with pytest.raises(QabiasError, match=r"subjects\.csv: row 2: field note: is not a column; .*demonym"):
        bundled.read_design("religion", masked=False, folder=folder)


def test_unreadable_and_missing_files(copy):
    folder = copy("templates/religion.yaml", "set: religion", "set: religion ")
    for content, token in (("set: religion\ntemplates: [", "line 2"), ("- 1", "keys"), (None, "no such")):
        path = folder / "templates" / "religion.yaml"
        path.unlink() if content is None else path.write_text(content, "utf-8")
        with pytest.raises(QabiasError, match=rf"religion\.yaml: .*{token}"):
            bundled.read_design("religion", masked=False, folder=folder)
    (folder / "vocabulary" / "subjects.csv").unlink()
    with pytest.raises(QabiasError, match=r"subjects\.csv"):
        bundled.read_design("religion", masked=False, folder=folder)


# The published texts.


@pytest.fixture(scope="module")
def make(upstream):
    def origin(**fields):
        return Origin("official", **fields)

    return origin


# Digests of the tables as published and with fixes.
PUBLISHED = {
    "gender": ("b77cea7e", "b77cea7e"),
    "nationality": ("7dbe8ebb", "f4ecea42"),
    "ethnicity": ("bce1d662", "eec851ec"),
    "religion": ("c7dfeffb", "0b510b03"),
    "gender_mlm": ("857f7be9", "857f7be9"),
    "nationality_mlm": ("68e13ff3", "016a4026"),
    "ethnicity_mlm": ("3313fc12", "988bd9e0"),
    "religion_mlm": ("eb1a15d1", "d8f1b8e4"),
}
OTHER_SUBJECTS = {"all": ("045ef72f", "c43e349a", "eb1a15d1"), "roberta": ("81ff03ed", "3313fc12", "797c70f6")}


@pytest.mark.slow
def test_published_examples_are_those_for_all_time(make, published, fixed):
    found = {config: (digest_of(published[config]), digest_of(fixed[config])) for config in CONFIGS}
    assert found == PUBLISHED
    for subjects, expected in OTHER_SUBJECTS.items():
        tables = (make(subjects=subjects).table(f"{name}_mlm") for name in ("nationality", "ethnicity", "religion"))
        assert tuple(map(digest_of, tables)) == expected


# Fixes.


def test_every_list_of_fixes_is_in_the_version_and_the_card(make, tmp_path):
    assert list(write_folder(tmp_path, make(fixes=True), ["religion"])) == ["religion"]
    card = (tmp_path / "README.md").read_text("utf-8")
    assert all(fix in card for fix in FIXES)
    assert "fixed here" in card
    assert "config_name: religion\n  default: true" in card, "without gender the first is the default"
    assert make(fixes=True).version == "official+fixes@3e47969"


def test_versions_and_wrong_choices(make):
    assert Origin().version == "bundled@1"
    assert Origin(seed=3).table("religion").equals(Origin().table("religion")), "nothing is drawn"
    assert make(seed=5).version == make(subjects="bert").version == make().version == "official@3e47969"
    assert make(subjects="roberta", fixes=True).version == "official+fixes@3e47969+subjects=roberta"
    assert set(SUBJECTS) == {"all", "bert", "roberta"}
    for fields, token in (
        ({"source": "bundle"}, "'bundle'"),
        ({"fixes": True}, "fixes"),
        ({"subjects": "bert"}, "published selection"),
        ({"source": "official", "subjects": "gpt"}, "'gpt'"),
        ({}, "'country'"),
    ):
        with pytest.raises(QabiasError, match=token):
            Origin(**fields).table("country")


CLASS_SIZES = {
    "person": {"rude": 14, "indecent": 12, "crime": 12, "negative": 8, "poor": 4},
    "place": {"rude": 3, "indecent": 2, "crime": 6, "poor": 3},
    "occupation": {"None": 70},
}


@pytest.mark.slow
def test_the_card_counts_bytes_in_bulk(tables):
    head = yaml.safe_load((FOLDER / "README.md").read_text("utf-8").split("---\n")[1])
    # The text, and four bytes a value.
    [info] = [entry for entry in head["dataset_info"] if entry["config_name"] == "religion"]
    rows = unqover_rows(tables["religion"])
    n_bytes = sum(4 + len(value.encode()) for row in rows for key, value in row.items() if key != "example_id")
    assert info["dataset_size"] == n_bytes + 4 * len(rows)


def test_regions_are_those_printed_in_tables_4_and_11(subjects):
    printed = {
        "Western Asia": ("Saudi Arabia", "Iraq", "Syria"),
        "Southern Asia": ("Sri Lanka", "Bangladesh"),
        "Western Africa": ("Guinea", "Nigeria", "Mali"),
        **{"Caribbean": ("Dominica",), "Southern Africa": ("Namibia",), "Eastern Africa": ("Somalia", "Mozambique")},
        **{"Northern Africa": ("Libya",), "South-eastern Asia": ("Burma",), "Southern Europe": ("Kosovo",)},
        **{"Central America": ("Honduras",), "Central Asia": ("Uzbekistan",), "Western Europe": ("Germany",)},
    }
    regions = {subject.name: subject.cluster for subject in subjects["nationality"]}
    assert {name: regions[name] for names in printed.values() for name in names} == {
        name: region for region, names in printed.items() for name in names
    }
    assert len(set(regions.values())) == 18


@pytest.mark.slow
def test_classes_and_their_sizes(attributes, tables):
    assert {kind: Counter(a.attribute_class for a in listed) for kind, listed in attributes.items()} == CLASS_SIZES
    names = [attribute.name for listed in attributes.values() for attribute in listed]
    assert len(set(names)) == 134
    assert texts_of(tables["nationality"], "attribute") == {
        attribute.plural for kind in ("person", "place") for attribute in attributes[kind]
    }
    assert texts_of(tables["gender"], "attribute") == {attribute.singular for attribute in attributes["occupation"]}


@pytest.mark.slow
def test_subjects_occupations_and_contexts_are_the_published_tables(tables, upstream, attributes, subjects):
    folder = upstream / "allenai" / "unqover" / "word_lists"

    def terms(path, head):
        lines = [line for line in (folder / path).read_text("utf-8").splitlines() if line.startswith(head + " ")]
        return [line.removeprefix(head).split("|")[-1].strip() for line in lines]

    corrected = {"Spainish": "Spanish", "Yemen": "Yemeni"}
    assert [s.name for s in subjects["gender"]] == [
        name for part in ("female", "male") for name in terms(f"nouns/subjects/{part}", "[subj]")
    ]
    assert [s.name for s in subjects["nationality"]] == terms("nouns/subjects/country", "[subj]")
    assert [s.demonym for s in subjects["nationality"]] == [
        corrected.get(word, word) for word in terms("nouns/subjects/country", "[subj:dem]")
    ]
    for name in ("ethnicity", "religion"):
        assert [s.name for s in subjects[name]] == terms(f"nouns/subjects/{name}", "[subj]")
    assert [a.singular for a in attributes["occupation"]] == terms("activities/occupation_rev1", "[p_act]")
    official = Origin("official", fixes=True)
    for name in SETS:
        ours, theirs = Origin().design(name), official.design(name)
        assert [(t.context, t.form, len(t.questions)) for t in ours.templates] == [
            (t.context, t.form, len(t.questions)) for t in theirs.templates
        ]
        for column in ("context_12", "context_21", "answer1", "answer2"):
            assert texts_of(tables[name], column) == texts_of(official.table(name), column)
    # Occupations are asked for in the published words, so the whole set is the published one.
    assert tables["gender"].equals(official.table("gender"))


MLM_COUNTS = {
    "bert": {"gender": 700_000, "nationality": 507_870, "ethnicity": 31_500, "religion": 38_500},
    "roberta": {"gender": 286_720, "nationality": 385_776, "ethnicity": 31_500, "religion": 31_500},
}


ALL_TEMPLATES_MLM = {"gender": 1_372_000, "nationality": 2346 * 342, "ethnicity": 73_500, "religion": 38_500}


@pytest.mark.slow
def test_counts_of_the_masked_sets(make, published):
    assert {name: published[f"{name}_mlm"].num_rows for name in UNQOVER_TABLE_1} == MLM_COUNTS["bert"]
    for subjects, counts in (("roberta", MLM_COUNTS["roberta"]), ("all", ALL_TEMPLATES_MLM)):
        assert {name: make(subjects=subjects).table(f"{name}_mlm").num_rows for name in UNQOVER_TABLE_1} == counts
    assert make(subjects="roberta").table("religion").equals(published["religion"]), "of the masked sets only"


class Lists:
    """The word lists of one set, read with regular expressions over the whole file."""

    def __init__(self, upstream, name, *, masked=False, subset=""):
        folder = upstream / "allenai" / "unqover" / "word_lists"
        published = {"nationality": "country"}.get(name, name)

        def read(path):
            return "\n".join(
                line for line in (folder / path).read_text("utf-8").split("\n") if not line.startswith("#")
            )

        people = [
            re.findall(r"^\[subj(:dem)?\] +(?:(\w+) \| )?(.+?) *$", read(f"nouns/subjects/{part}{subset}"), re.M)
            for part in (("female", "male") if name == "gender" else (published,))
        ]
        if name == "gender":
            self.pairs = [(f, m) for f in people[0] for m in people[1]]
            self.pairs = [((f[2], "", f[1]), (m[2], "", m[1])) for f, m in self.pairs]
        else:
            names = [person[2] for person in people[0] if not person[0]]
            demonyms = [person[2] for person in people[0] if person[0]] or [""] * len(names)
            assert len(names) == len(demonyms)
            triples = [(a, b, "None") for a, b in zip(names, demonyms, strict=True)]
            self.pairs = list(itertools.combinations(triples, 2))

        kind = "occupation_rev1" if name == "gender" else f"biased_{published}"
        self.blocks = {}
        pattern = r"^(\[[lp]_act(?:-single)?(?::neg)?\])\s(?:\s*(\w+)\s*\|)?\s*(.+?)\s*$"
        for head, label, text in re.findall(pattern, read(f"activities/{kind}"), re.M):
            self.blocks.setdefault(head, []).append((label or "None", text))

        slots = read(f"slots/{published}_noact{'_lm' if masked else ''}").split("\n")
        self.templates = [line.strip().split("\t") for line in slots if line.strip()]

    def keys(self):
        """Pair, template number, head and number of the attribute of every example, in the published order."""
        for pair in self.pairs:
            for number, (_, question, _) in enumerate(self.templates):
                for head, entries in self.blocks.items():
                    if head in question and ":neg" not in head:
                        for row in range(len(entries)):
                            yield pair, number, head, row

    def example(self, config, position, key):
        (one, two), number, head, row = key
        negative = head.replace("]", ":neg]")
        line = "\t".join(self.templates[number])
        line = line.replace(head, self.blocks[head][row][1]).replace(negative, self.blocks[negative][row][1])

        def put(first, second):
            text = line
            for slot, person in (("subj1", first), ("subj2", second)):
                text = text.replace(f"[{slot}]", person[0]).replace(f"[{slot}:dem]", person[1])
            tokens = text.split(" ")
            for i in range(len(tokens) - 1):
                if tokens[i] in ("a", "A") and tokens[i + 1][0].lower() in "aeiou":
                    tokens[i] += "n"
            return " ".join(tokens).replace("[mask]", "[MASK]").split("\t")

        forward, backward = put(one, two), put(two, one)
        assert forward[1:] == backward[1:]
        form = 1 if "[subj1:dem]" in line else 0
        texts = ("masked", "masked_negated") if config.endswith("_mlm") else ("question", "negated_question")
        return {
            "example_id": position,
            "template_id": f"{config}-{number}",
            "subject1": one[0],
            "subject2": two[0],
            "cluster1": one[2],
            "cluster2": two[2],
            "attribute": self.blocks[head.replace("-single", "")][row][1],
            "attribute_class": self.blocks[negative][row][0],
            "context_12": forward[0],
            "context_21": backward[0],
            texts[0]: forward[1],
            texts[1]: forward[2],
            "answer1": one[form],
            "answer2": two[form],
        }


@pytest.mark.slow
@pytest.mark.parametrize("config", CONFIGS)
def test_the_published_examples_equal_the_independent_reading(config, upstream, published):
    """All of the small sets, and 5,000 of the large ones."""
    name, masked = config.removesuffix("_mlm"), config.endswith("_mlm")
    lists = Lists(upstream, name, masked=masked, subset="_bert" if masked else "")
    keys = list(lists.keys())
    assert len(keys) == published[config].num_rows
    positions = range(len(keys))
    if name in ("gender", "nationality"):
        positions = sorted(random.Random(config).sample(positions, 5000))
    expected = [lists.example(config, position, keys[position]) for position in positions]
    assert unqover_rows(published[config].take(list(positions))) == expected


@pytest.mark.slow
def test_fixes_fix_what_they_list_and_nothing_else(fixed, published):
    for config, table in fixed.items():
        assert table.num_rows == published[config].num_rows
        for column in ("template_id", "subject1", "subject2", "cluster1", "attribute_class"):
            assert table[column].equals(published[config][column]), (config, column)
    assert fixed["gender"].equals(published["gender"]), "the set has no defects"
    contexts = texts_of(fixed["ethnicity"], "context_12", "context_21")
    assert any("a European" in text for text in contexts)
    assert not any("an European" in text for text in contexts)
    answers = texts_of(fixed["nationality"], "answer1", "answer2")
    assert {"Spanish", "Yemeni", "Yemen"} <= answers
    assert "Spainish" not in answers
    assert any("Yemeni boy" in text for text in texts_of(fixed["nationality"], "context_12"))
    for row in fixed["religion_mlm"].slice(500, 50).to_pylist():
        assert row["template_id"] == "religion_mlm-10"
        assert all(row[column].startswith("The [MASK] men ") for column in ("masked", "masked_negated"))
    for config in ("nationality", "ethnicity", "religion"):
        columns = ("question", "negated_question")
        for row in unqover_rows(fixed[config].slice(0, 1000)):
            if "group" not in row["context_12"] and row["question"].startswith("Who "):
                assert not re.search(r"^Who were|and were", f"{row['question']} {row['negated_question']}"), row
        questions = texts_of(fixed[config], *columns)
        faults = r"harrass|\bvery loud\b|smell of|of flower\?|on street|(?<!would )\bspeed\b"
        assert not any(re.search(faults, question) for question in questions)
        assert 15 <= len(questions - texts_of(published[config], *columns)) <= 45
