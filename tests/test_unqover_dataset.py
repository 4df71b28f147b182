"""The bundled UnQover: counts, quality of every text, and faults in its files."""

import csv
import re
import shutil
from collections import Counter

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import yaml

from qabias.building.templating import repair_articles
from qabias.errors import QabiasError
from qabias.share.unqover_dataset import bundled
from qabias.share.unqover_dataset.builder import FEATURES, UnQover
from qabias.share.unqover_dataset.design import SETS
from qabias.share.unqover_dataset.folder import PARQUET_NAME, write_folder
from qabias.share.unqover_dataset.origin import CONFIGS, DEFAULT, SCHEMAS, Origin

from .built import UNQOVER_TABLE_1, unqover_rows, unqover_table
from .conftest import ROOT

FOLDER = ROOT / "unqover_dataset"
# Those of the published lists.
CLASS_SIZES = {
    "person": {"rude": 14, "indecent": 12, "crime": 12, "negative": 8, "poor": 4},
    "place": {"rude": 3, "indecent": 2, "crime": 6, "poor": 3},
    "occupation": {"None": 70},
}


@pytest.fixture(scope="module")
def tables():
    return {config: unqover_table(config) for config in CONFIGS}


@pytest.fixture(scope="module")
def attributes():
    return bundled.read_attributes(FOLDER / "vocabulary" / "attributes.csv")


@pytest.fixture(scope="module")
def subjects():
    return bundled.read_subjects(FOLDER / "vocabulary" / "subjects.csv")


def codes_of(table, *columns):
    """A number for every row, equal where the texts of some columns are."""
    codes = np.zeros(table.num_rows, np.int64)
    for column in columns:
        texts = table[column].chunk(0)
        codes = codes * len(texts.dictionary) + texts.indices.to_numpy()
    return codes


def distinct(table, *columns):
    """The distinct combinations of some columns, in the order of their first rows."""
    _, first = np.unique(codes_of(table, *columns), return_index=True)
    return [tuple(row.values()) for row in table.select(columns).take(np.sort(first)).to_pylist()]


def counts_of(table, column):
    """How often every text occurs in a column."""
    return Counter({entry["values"]: entry["counts"] for entry in table[column].value_counts().to_pylist()})


def texts_of(table, *columns):
    """The distinct texts of some columns."""
    return {text for column in columns for text in table[column].unique().to_pylist()}


# The folder and the builder.


def test_parquet_holds_plain_strings_for_every_reader():
    for config in CONFIGS:
        file = pq.ParquetFile(FOLDER / "data" / config / PARQUET_NAME)
        assert file.metadata.metadata is None, "no schema of Arrow or of `datasets`"
        assert file.schema_arrow.equals(SCHEMAS[config])
        group = file.metadata.row_group(0)
        encodings = {group.column(i).path_in_schema: group.column(i).encodings for i in range(group.num_columns)}
        assert encodings.pop("example_id")[-1] == "DELTA_BINARY_PACKED"
        assert all("RLE_DICTIONARY" in used for used in encodings.values())


@pytest.mark.slow
def test_write_folder_writes_what_load_dataset_reads(tmp_path):
    built = []
    tables = write_folder(tmp_path / "out", Origin(), ["religion", "ethnicity_mlm"], built.append)
    assert built == list(tables) == ["religion", "ethnicity_mlm"]
    for config, table in tables.items():
        loaded = datasets.load_dataset(str(tmp_path / "out"), config, split="test", cache_dir=str(tmp_path / "cache"))
        assert loaded.features == FEATURES[config]
        assert loaded.to_list() == unqover_rows(table)
    # Without gender the first configuration is the default.
    assert datasets.load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))["test"].num_rows == 38_500


def test_load_dataset_reads_the_folder_as_it_is(tmp_path):
    default = datasets.load_dataset(str(FOLDER), cache_dir=tmp_path)
    assert list(default) == ["test"]
    assert default["test"].num_rows == UNQOVER_TABLE_1[DEFAULT]
    assert default["test"].features == FEATURES["gender"]
    assert default["test"][0]["template_id"] == "gender-0"
    masked = datasets.load_dataset(str(FOLDER), "religion_mlm", split="test", cache_dir=tmp_path)
    assert masked.features == FEATURES["religion_mlm"]
    assert masked.num_rows == UNQOVER_TABLE_1["religion"]


def test_the_builder_makes_the_same_examples_as_the_table(tmp_path, tables):
    builder = UnQover(config_name="ethnicity", cache_dir=tmp_path)
    builder.download_and_prepare()
    assert builder.as_dataset(split="test").to_list() == unqover_rows(tables["ethnicity"])
    assert set(UnQover.builder_configs) == set(CONFIGS)
    assert UnQover.DEFAULT_CONFIG_NAME == "gender"


def test_card_counts_and_head(tables):
    card = (FOLDER / "README.md").read_text("utf-8")
    head = yaml.safe_load(card.split("---\n")[1])
    assert [entry["config_name"] for entry in head["configs"]] == list(CONFIGS)
    assert [entry["config_name"] for entry in head["configs"] if entry.get("default")] == ["gender"]
    assert head["license"] == "apache-2.0"
    assert head["size_categories"] == ["1M<n<10M"]
    for entry in head["dataset_info"]:
        [split] = entry["splits"]
        assert split["num_examples"] == tables[entry["config_name"]].num_rows
    # Counted in bulk: the text, and four bytes a value.
    [info] = [entry for entry in head["dataset_info"] if entry["config_name"] == "religion"]
    rows = unqover_rows(tables["religion"])
    n_bytes = sum(4 + len(value.encode()) for row in rows for key, value in row.items() if key != "example_id")
    assert info["dataset_size"] == n_bytes + 4 * len(rows)
    assert "| `nationality` | 1,154,232 | 2,346 | 69 | 12 | 64 |" in card
    assert "**Content warning.**" in card


# Counts and balance.


def test_counts(tables):
    """Pairs x templates x attributes, in the masked sets as well: 2,346 x (3 x 14 + 9 x 50) for nationality."""
    assert {config: table.num_rows for config, table in tables.items()} == {
        **UNQOVER_TABLE_1,
        **{f"{name}_mlm": n for name, n in UNQOVER_TABLE_1.items()},
    }
    for config, table in tables.items():
        assert table.column_names == SCHEMAS[config].names
        assert table["example_id"].equals(pa.chunked_array([pa.array(range(table.num_rows), pa.int32())]))


def test_every_subject_template_and_attribute_occurs_equally_often(tables, subjects):
    for name in SETS:
        counts = counts_of(tables[name], "subject1") + counts_of(tables[name], "subject2")
        assert set(counts) == {subject.name for subject in subjects[name]}
        assert len(set(counts.values())) == 1
        by_template = counts_of(tables[name], "template_id")
        sizes = {"gender": {70}, "nationality": {14, 50}}.get(name, {50})
        n_pairs = {"gender": 4900, "nationality": 2346, "ethnicity": 105, "religion": 55}[name]
        assert {n // n_pairs for n in by_template.values()} == sizes


def test_order_is_pair_template_attribute(tables, subjects):
    first = unqover_rows(tables["nationality"].slice(0, 493))
    assert [row["template_id"] for row in first[:15]] == ["nationality-0"] * 14 + ["nationality-1"]
    assert {(row["subject1"], row["subject2"]) for row in first[:492]} == {("Afghanistan", "America")}
    assert (first[492]["subject1"], first[492]["subject2"]) == ("Afghanistan", "Australia")
    for name in ("nationality", "ethnicity", "religion"):
        place = {subject.name: i for i, subject in enumerate(subjects[name])}
        pairs = distinct(tables[name], "subject1", "subject2")
        assert pairs == sorted(pairs, key=lambda pair: (place[pair[0]], place[pair[1]]))
        assert all(place[one] < place[two] for one, two in pairs)


def test_t_u1_an_example_is_unique_by_pair_template_and_attribute(tables):
    for config in ("nationality", "ethnicity", "religion", "ethnicity_mlm"):
        keys = codes_of(tables[config], "subject1", "subject2", "template_id", "attribute")
        assert len(np.unique(keys)) == tables[config].num_rows


def test_classes_and_their_sizes(attributes, tables):
    assert {kind: Counter(a.attribute_class for a in listed) for kind, listed in attributes.items()} == CLASS_SIZES
    names = [attribute.name for listed in attributes.values() for attribute in listed]
    assert len(set(names)) == 134
    assert texts_of(tables["nationality"], "attribute") == {
        attribute.plural for kind in ("person", "place") for attribute in attributes[kind]
    }
    assert texts_of(tables["gender"], "attribute") == {attribute.singular for attribute in attributes["occupation"]}


def test_clusters(tables):
    assert texts_of(tables["gender"], "cluster1") == {"female"}
    assert texts_of(tables["gender"], "cluster2") == {"male"}
    assert texts_of(tables["religion"], "cluster1", "cluster2") == {"None"}
    regions = dict(distinct(tables["nationality"].slice(0, 492 * 2345), "subject1", "cluster1"))
    # The geoschemes printed in Tables 4 and 11 of the paper, in full.
    printed = {
        "Saudi Arabia": "Western Asia",
        "Iraq": "Western Asia",
        "Dominica": "Caribbean",
        "Namibia": "Southern Africa",
        "Guinea": "Western Africa",
        "Sri Lanka": "Southern Asia",
        "Syria": "Western Asia",
        "Somalia": "Eastern Africa",
        "Libya": "Northern Africa",
        "Nigeria": "Western Africa",
        "Burma": "South-eastern Asia",
        "Bangladesh": "Southern Asia",
        "Mali": "Western Africa",
        "Kosovo": "Southern Europe",
        "Honduras": "Central America",
        "Mozambique": "Eastern Africa",
        "Uzbekistan": "Central Asia",
    }
    assert {country: regions[country] for country in printed} == printed
    assert regions["Germany"] == "Western Europe"
    assert len(set(regions.values())) == 18


def test_t_u8_answers_that_lie_within_the_other_one_are_kept(tables):
    for config, one, two in (
        ("nationality", "Mali", "Somalia"),
        ("ethnicity", "African", "African-American"),
        ("ethnicity", "Caucasian", "Asian"),
    ):
        rows = tables[config].filter((pc.field("answer1") == one) & (pc.field("answer2") == two)).to_pylist()
        assert len(rows) == (192 if config == "nationality" else 700)
        for row in rows:
            for context in (row["context_12"], row["context_21"]):
                assert re.search(rf"(?<![\w-]){re.escape(one)}(?![\w-])", context)
                assert re.search(rf"(?<![\w-]){re.escape(two)}(?![\w-])", context)


# Language.


def test_every_answer_stands_in_both_contexts_in_the_right_order(tables):
    for name in SETS:
        fillings = distinct(tables[name], "context_12", "context_21", "answer1", "answer2")
        for forward, backward, one, two in fillings:
            places = [
                [match.start() for match in re.finditer(rf"(?<![\w-]){re.escape(word)}(?![\w-])", context)]
                for context in (forward, backward)
                for word in (one, two)
            ]
            assert [len(found) for found in places] == [1, 1, 1, 1], forward
            assert places[0] < places[1], forward
            assert places[3] < places[2], backward
        n_fillings = {"gender": 4900 * 4, "nationality": 2346 * 9}.get(name)
        assert n_fillings is None or len(fillings) == n_fillings


def test_grammar_of_every_text(tables):
    for config, table in tables.items():
        masked = config.endswith("_mlm")
        questions = texts_of(table, *(("masked", "masked_negated") if masked else ("question", "negated_question")))
        contexts = texts_of(table, "context_12", "context_21")
        for text in questions | contexts:
            bare = text.replace("[MASK]", "Mask", 1)
            assert not re.search(r"[{}\[\]]|\bX[12]\b|ATTRIBUTE", bare), text
            assert "  " not in text, text
            assert text == text.strip(), text
            assert bare[0].isupper(), text
            assert not re.search(r"[.!?] [a-z]", text), text
            assert re.search(r"[\w][.?]$", text), text
            assert not re.search(r"[,;]\s*[.?!]|[.?!]{2}", text), text
            assert not re.search(r"\b(\w+) \1\b", text.lower()), text
        for text in contexts:
            assert text.endswith("."), text
            assert not re.search(r"\b[Aa] [AIO]|\b[Aa] E(?!uropean)|\b[Aa]n [^AEIOU]|\b[Aa]n European", text), text
            assert not re.search(r"\b[Aa] Uz", text), text
        for text in questions:
            assert text.endswith("." if masked else "?"), text
            assert text.count("[MASK]") == masked
            assert text.count("?") == (not masked)
            assert repair_articles(text) == text, text


def test_number_agrees_in_every_question(tables):
    for name in SETS:
        columns = ("context_12", "question", "negated_question", "template_id")
        for row in unqover_rows(tables[name].slice(0, 700 if name != "nationality" else 492)):
            is_plural = "group of" in row["context_12"] or "people that" in row["question"]
            for field in columns[1:3]:
                predicate = re.sub(r"^(Who|Which place has people that|Which place) ", "", row[field])
                assert predicate.split()[0] != ("was" if is_plural else "were"), row[field]


def test_a_context_depends_on_the_pair_and_the_template_alone(tables):
    table = tables["nationality_mlm"]
    assert texts_of(table, "context_12") == texts_of(tables["nationality"], "context_12")
    assert len(texts_of(table, "context_12")) == 2346 * 9, "three contexts serve two templates each"


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
                assert len(attribute.plural.split()) in range(
                    len(attribute.singular.split()) - 1, len(attribute.singular.split()) + 1
                )
                assert attribute.plural.startswith("were ") == attribute.singular.startswith("was ")


def test_occupations_are_asked_for_as_in_figure_2(attributes):
    for attribute in attributes["occupation"]:
        assert attribute.singular.startswith(("was a ", "was an "))
        assert attribute.singular_negated == attribute.singular.replace("was ", "can never be ", 1)


# The published tables, and nothing else of the authors.


def _runs(text, n):
    words = re.findall(r"[a-z0-9'-]+", text.lower())
    return {tuple(words[i : i + n]) for i in range(len(words) - n + 1)}


def test_no_attribute_is_taken_from_the_published_lists(attributes, upstream):
    published = set()
    for path in (upstream / "allenai" / "unqover" / "word_lists" / "activities").glob("biased_*"):
        for line in path.read_text("utf-8").splitlines():
            if "|" in line:
                published.add(line.split("|")[1].strip())
    assert len(published) > 180
    published_runs = {words for text in published for words in _runs(text, 4)}
    for kind in ("person", "place"):
        for attribute in attributes[kind]:
            for text in (*attribute.form("plural"), *attribute.form("singular")):
                assert text not in published
                assert not _runs(text, 4) & published_runs, text
                # Nor is the gist of a published one kept with another auxiliary.
                bare = re.sub(r"^(was|were|had|never) ", "", text)
                assert not any(re.sub(r"^(was|were|had|never) ", "", other) == bare for other in published), text


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
    official = Origin("official", fixes=True, upstream_dir=upstream)
    for name in SETS:
        ours, theirs = Origin().design(name), official.design(name)
        assert [(t.context, t.form, len(t.questions)) for t in ours.templates] == [
            (t.context, t.form, len(t.questions)) for t in theirs.templates
        ]
        for column in ("context_12", "context_21", "answer1", "answer2"):
            assert texts_of(tables[name], column) == texts_of(official.table(name), column)
    # Occupations are asked for in the published words, so the whole set is the published one.
    assert tables["gender"].equals(official.table("gender"))


def test_every_file_names_its_source():
    for path in (FOLDER / "templates").glob("*.yaml"):
        assert "Li et al. 2020" in yaml.safe_load(path.read_text("utf-8"))["source"]
    for path in (FOLDER / "vocabulary").glob("*.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            assert all("Li et al. 2020" in row["source"] for row in csv.DictReader(file))


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


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("kind,class", "kind,klass", "row 1: the columns must be kind, class"),
        ("was an accountant", "was a accountant", "row 2: field singular: has a wrong article"),
        (
            "person,rude,were impolite",
            "persn,rude,were impolite",
            "row 72: field kind: 'persn' is not one of occupation",
        ),
        ("person,rude,were impolite", "person,bad,were impolite", "row 72: field class: 'bad' is not one of rude"),
        ("person,rude,were impolite", "person,rude,was impolite", "row 72: field plural: begins with 'was'"),
        ("were impolite to strangers,were", "were  impolite to strangers,were", "field plural: has a space too many"),
        ("were impolite to strangers,were", ",were", "row 72: field plural: is empty"),
        ("were impolite to strangers,were polite", "Were impolite,were polite", "field plural: must be a predicate"),
        (
            "were impolite to strangers,were polite to strangers",
            "were rude.,were polite",
            "field plural: must be a pred",
        ),
        (",was impolite to strangers,was", ",were impolite to strangers,was", "field singular: begins with 'were'"),
        (
            "cut in line,never cut in line",
            "cut in line,cut in line",
            "row 78: field plural_negated: is the attribute its",
        ),
        (
            "person,rude,mocked other people",
            "person,rude,cut in line",
            "field plural: 'cut in line' is the attribute of r",
        ),
        (
            "place,rude,were unwelcoming",
            "place,negative,were unwelcoming",
            "row 122: field class: 'negative' is not one",
        ),
        ("occupation,,,,was a nurse,", "occupation,rude,,,was a nurse,", "field class: must be empty, not 'rude'"),
        ("was an architect,", "was an architect,one,", "row 4: must have 7 fields"),
        ("class of Li et al. 2020; wording of this project", "", "row 72: field source: is empty"),
    ],
)
def test_a_wrong_attribute_is_reported_with_file_row_and_field(copy, old, new, message):
    folder = copy("vocabulary/attributes.csv", old, new)
    with pytest.raises(QabiasError, match=re.escape(message)) as caught:
        bundled.read_design("gender", masked=False, folder=folder)
    assert "attributes.csv: row" in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("gender,Mary", "sex,Mary", "row 2: field set: 'sex' is not one of gender"),
        ("Mary,,female", "Mary,,woman", "row 2: field cluster: 'woman' is not one of female, male"),
        ("Mary,,female", "Mary,Marian,female", "row 2: field demonym: must be empty, not 'Marian': only countries"),
        ("France,French,Western Europe", "France,,Western Europe", "field demonym: is empty"),
        ("France,French,Western Europe", "France,French,", "field cluster: is empty"),
        ("France,French", "France,German", "field demonym: 'German' occurs twice in the set nationality"),
        ("gender,Linda", "gender,Mary", "row 4: field name: 'Mary' occurs twice in the set gender"),
        ("religion,Sikh", "religion,sikh", "field name: must begin with a capital letter: 'sikh'"),
        ("religion,Sikh,,", "religion,Sikh,,India", "field cluster: must be empty, not 'India'"),
    ],
)
def test_a_wrong_subject_is_reported_with_file_row_and_field(copy, old, new, message):
    folder = copy("vocabulary/subjects.csv", old, new)
    with pytest.raises(QabiasError, match=re.escape(message)) as caught:
        bundled.read_design("religion", masked=False, folder=folder)
    assert "subjects.csv: row" in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("- id: 0", "- id: 1", "template 0: field id: is 1; templates are numbered from 0"),
        ("subjects: name", "subject: name", "template 0: field subjects: is missing"),
        (
            "number: singular",
            "number: singular\n    nmber: plural",
            "field nmber: is not a field; did you mean 'number'?",
        ),
        ("subjects: name", "subjects: demonym", "template 0: field subjects: 'demonym' is not one of name (religion)"),
        ("attributes: person", "attributes: occupation", "field attributes: 'occupation' is not one of person, place"),
        ("number: singular", "number: both", "field number: 'both' is not one of singular, plural"),
        ("visit a {{X2}} man", "visit a {{X1}} man", "field context: must hold {{X1}} and {{X2}} once, in this order"),
        ("A {{X1}} man got", "A {{X2}} man got", "field context: must hold {{X1}} and {{X2}} once"),
        ("visit a {{X2}} man", "visit a {{X3}} {{X2}} man", "field context: slot X3 is filled by nothing"),
        ("visit a {{X2}} man", "visit a [{{X2}} man", "field context: has a stray brace or bracket"),
        ("visit a {{X2}} man", "visit  a {{X2}} man", "field context: has a space too many"),
        ('question: "Who {{ATTRIBUTE}}?"', 'question: "Who?"', "field question: must hold {{ATTRIBUTE}} once"),
        ('question: "Who {{ATTRIBUTE}}?"', 'question: "Who {{ATTRIBUTE}}"', "field question: must end with '?'"),
        ('question: "Who {{ATTRIBUTE}}?"', "question: 7", "field question: must be a text, not 7"),
        ("The {{MASK}} man", "The man", "field masked: must hold {{ATTRIBUTE}} and {{MASK}} once"),
    ],
)
def test_a_wrong_template_is_reported_with_file_template_and_field(copy, old, new, message):
    folder = copy("templates/religion.yaml", old, new)
    with pytest.raises(QabiasError, match=re.escape(message)) as caught:
        bundled.read_design("religion", masked=False, folder=folder)
    assert "religion.yaml: template 0" in str(caught.value)


def test_unreadable_and_missing_files(copy):
    folder = copy("templates/religion.yaml", "set: religion", "set: ethnicity")
    with pytest.raises(QabiasError, match="set is 'ethnicity', but the file's name says 'religion'"):
        bundled.read_design("religion", masked=False, folder=folder)
    (folder / "templates" / "religion.yaml").write_text("set: religion\ntemplates: [", "utf-8")
    with pytest.raises(QabiasError, match=r"religion.yaml: not readable as YAML.*line 2"):
        bundled.read_design("religion", masked=False, folder=folder)
    (folder / "templates" / "religion.yaml").write_text("- 1", "utf-8")
    with pytest.raises(QabiasError, match="must hold exactly the keys"):
        bundled.read_design("religion", masked=False, folder=folder)
    (folder / "templates" / "religion.yaml").unlink()
    with pytest.raises(QabiasError, match="no such template file"):
        bundled.read_design("religion", masked=False, folder=folder)
    (folder / "vocabulary" / "subjects.csv").unlink()
    with pytest.raises(QabiasError, match=r"subjects.csv: no such file"):
        bundled.read_design("religion", masked=False, folder=folder)


def test_wrong_choices_of_source_and_configuration():
    with pytest.raises(QabiasError, match="unknown source 'bundle'"):
        Origin("bundle")
    with pytest.raises(QabiasError, match="no known defects to fix: use fixes with the source official"):
        Origin("bundled", fixes=True)
    with pytest.raises(QabiasError, match="unknown configuration 'all': choose one of gender"):
        Origin().table("all")
    assert Origin(seed=3).table("religion").equals(Origin().table("religion")), "nothing is drawn"
    assert Origin().version == "bundled@1"
