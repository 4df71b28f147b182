"""Dataset cards and Croissant descriptions: complete, counted from the data, and readable by other tools."""

import importlib
import itertools
import json
import re
from collections import defaultdict

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from huggingface_hub import DatasetCard

from qabias.building.croissant import (
    CONFIGURATION,
    FILE_NAME,
    RAI_SECTIONS,
    Records,
    card_sections,
    croissant_text,
    plain,
)
from qabias.errors import QabiasError

from .conftest import ROOT

NAMES = ("bbq", "unqover", "bbnli")
FOLDERS = {name: ROOT / f"{name}_dataset" for name in NAMES}
# The headings of the Hub's template, without the optional ones.
SECTIONS = (
    *("Dataset Details", "Dataset Description", "Dataset Sources", "Uses", "Direct Use", "Out-of-Scope Use"),
    *("Dataset Structure", "Data Fields", "Gallery", "Dataset Creation", "Curation Rationale", "Source Data"),
    *("Data Collection and Processing", "Who are the source data producers?", "Annotations", "Annotation process"),
    *("Who are the annotators?", "Personal and Sensitive Information", "Bias, Risks, and Limitations", "Bias"),
    *("Risks", "Limitations", "Recommendations", "Citation", "Glossary", "More Information"),
    *("Dataset Card Authors", "Dataset Card Contact"),
)
PARENTS = ("Dataset Details", "Uses", "Dataset Creation", "Source Data", "Annotations", "Bias, Risks, and Limitations")


def card_of(name):
    return (FOLDERS[name] / "README.md").read_text("utf-8")


def body_of(name):
    return card_of(name).split("---\n", 2)[2]


def table_of(name, config, columns=None):
    [path] = (FOLDERS[name] / "data" / config).glob("*.parquet")
    return pq.read_table(path, columns=columns)


def figures(section):
    """The rows of a table of counts, by configuration."""
    rows = re.findall(r"^\| \**`?(\w+)`?\** \|(?: [a-z]* \|)?((?: [\d,]+ \|)+)$", section, re.MULTILINE)
    return {name: [int(cell.replace(",", "")) for cell in re.findall(r"[\d,]+", cells)] for name, cells in rows}


def distinct(table, *columns):
    return table.group_by(list(columns)).aggregate([]).num_rows


@pytest.mark.parametrize("name", NAMES)
def test_the_card_has_every_section_of_the_template_in_order_and_none_is_empty(name):
    card = DatasetCard.load(FOLDERS[name] / "README.md")
    assert card.data.license == "apache-2.0"
    n_rows = sum(pq.read_metadata(path).num_rows for path in (FOLDERS[name] / "data").rglob("*.parquet"))
    [size] = card.data.size_categories
    low, high = (int(bound.replace("K", "000").replace("M", "000000")) for bound in size.split("<n<"))
    assert low < n_rows < high
    assert card.data.annotations_creators == ["no-annotation"]
    sections = card_sections(card.text)
    titles = list(sections)
    assert [title for title in titles if title in SECTIONS] == list(SECTIONS)
    assert len(titles) == len(re.findall(r"^#+ ", card.text, re.MULTILINE)), "a heading occurs twice"
    for title in SECTIONS:
        assert sections[title] or title in PARENTS, title


@pytest.mark.parametrize("name", NAMES)
def test_the_card_has_no_unfilled_placeholder_and_its_tables_are_whole(name):
    body = body_of(name)
    assert not re.search(r"\$\{?[a-z_]+|\{\{ |More Information Needed|\bNone\b(?!\")", body.replace("None. ", ""))
    for table in re.findall(r"(?:^\|.*\n)+", body, re.MULTILINE):
        assert len({line.count(" | ") for line in table.splitlines() if not line.startswith("|---")}) == 1, table[:200]


def test_the_figures_of_the_bbq_card_are_counted_from_the_parquet_files():
    sections = card_sections(body_of("bbq"))
    shown = {**figures(sections["Dataset Structure"]), **figures(sections["As inference (NLI)"])}
    columns = ["set_id", "template_id", "social_value"]
    tables = {config: table_of("bbq", config, columns) for config in shown if not config.startswith("all")}
    assert len(shown) == 25
    own = [config for config in tables if "_nli" not in config]
    tables["all"] = pa.concat_tables(tables[config] for config in own)
    tables["all_nli"] = pa.concat_tables(tables[f"{config}_nli"] for config in own)
    for config, counts in shown.items():
        table = tables[config]
        assert counts == [table.num_rows, *(pc.count_distinct(table[column]).as_py() for column in columns)], config


def test_the_figures_of_the_unqover_card_are_counted_from_the_parquet_files():
    shown = figures(card_sections(body_of("unqover"))["Dataset Structure"])
    assert len(shown) == 8
    for config in ("ethnicity", "religion", "ethnicity_mlm", "religion_mlm"):
        table = table_of("unqover", config)
        n_subjects = len({name for column in ("subject1", "subject2") for name in table[column].to_pylist()})
        assert shown[config] == [
            table.num_rows,
            distinct(table, "subject1", "subject2"),
            n_subjects,
            distinct(table, "template_id"),
            distinct(table, "attribute"),
        ]


def test_the_figures_of_the_bbnli_card_are_counted_from_the_parquet_files():
    shown = figures(card_sections(body_of("bbnli"))["Dataset Structure"])
    tables = {path.name: table_of("bbnli", path.name) for path in (FOLDERS["bbnli"] / "data").iterdir()}
    assert set(shown) == {*tables, "all", "gender", "race", "religion"}
    for config, counts in shown.items():
        members = [t for s, t in tables.items() if config in ("all", s, t["domain"][0].as_py())]
        table = pa.concat_tables(members)
        stereotypical, test = (table.filter(pc.field("kind") == kind) for kind in ("stereotypical", "test"))
        n_open = sum(label == 1 for label in test["label"].to_pylist())
        assert counts == [
            table.num_rows,
            distinct(table, "subtopic", "premise_id"),
            distinct(stereotypical, "subtopic", "hypothesis_id"),
            distinct(test, "subtopic", "hypothesis_id"),
            test.num_rows - n_open,
            n_open,
        ], config


# Croissant.


def croissant_of(name):
    folder, builder = (importlib.import_module(f"{name}_dataset.{module}") for module in ("folder", "builder"))
    return json.loads(folder.croissant(builder.Origin(), card_of(name)))


@pytest.fixture(scope="module")
def croissants():
    return {name: croissant_of(name) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_croissant_names_every_parquet_file_once(name, croissants):
    patterns = [pattern for files in croissants[name]["distribution"] for pattern in files["includes"]]
    paths = [path for pattern in patterns for path in FOLDERS[name].glob(pattern)]
    assert len(paths) == len(patterns)
    assert sorted(paths) == sorted(FOLDERS[name].rglob("*.parquet"))


@pytest.mark.parametrize("name", NAMES)
def test_croissant_describes_every_column_and_tells_the_configuration_by_the_path(name, croissants):
    head = DatasetCard.load(FOLDERS[name] / "README.md").data
    features = {entry["config_name"]: [f["name"] for f in entry["features"]] for entry in head.dataset_info}
    files = {entry["@id"]: entry for entry in croissants[name]["distribution"]}
    for record_set in croissants[name]["recordSet"]:
        configuration, *fields = record_set["field"]
        source = configuration["source"]
        for pattern in files[source["fileSet"]["@id"]]["includes"]:
            config = re.fullmatch(source["transform"]["regex"], pattern)[1]
            assert [field["name"] for field in fields] == features[config]
        assert all(field["description"] for field in fields)


@pytest.mark.parametrize("name", NAMES)
def test_croissant_says_what_the_card_says(name, croissants):
    sections = card_sections(body_of(name))
    for field, titles in RAI_SECTIONS.items():
        assert croissants[name][field] == "\n\n".join(plain(sections[title]) for title in titles)
        assert len(croissants[name][field]) > 15, field
    entries = re.compile(r"^@\w+\{", re.MULTILINE)
    assert len(entries.findall(croissants[name]["citeAs"])) == len(entries.findall(sections["Citation"])) >= 2


@pytest.mark.parametrize("name", NAMES)
def test_mlcroissant_finds_no_fault(name, croissants):
    mlcroissant = pytest.importorskip("mlcroissant")
    issues = mlcroissant.Dataset(croissants[name]).metadata.ctx.issues
    assert not issues.errors
    assert not issues.warnings


@pytest.mark.parametrize(
    ("name", "configs", "records"),
    [
        ("bbq", ["Religion"], "questions"),
        ("bbq", ["Gender_identity_nli_context"], "inference"),
        ("bbnli", ["man_is_to_breadwinner", "muslim_women_to_invisible"], "rows"),
    ],
)
def test_mlcroissant_reads_the_rows_of_a_folder_with_their_configuration(name, configs, records, tmp_path):
    mlcroissant = pytest.importorskip("mlcroissant")
    folder, builder = (importlib.import_module(f"{name}_dataset.{module}") for module in ("folder", "builder"))
    tables = folder.write_folder(tmp_path, builder.Origin(), configs)
    dataset = mlcroissant.Dataset(str(tmp_path / FILE_NAME))
    by_configuration = defaultdict(list)
    for record in itertools.islice(dataset.records(records), 300):
        row = unpacked(record)
        by_configuration[row.pop(CONFIGURATION)].append(row)
    assert list(by_configuration) == configs
    for config, rows in by_configuration.items():
        assert rows == tables[config].slice(0, len(rows)).to_pylist()


def unpacked(value):
    """A record with plain names and texts."""
    if isinstance(value, dict):
        return {key.rpartition("/")[2]: unpacked(part) for key, part in value.items()}
    if isinstance(value, list):
        return [unpacked(part) for part in value]
    return value.decode() if isinstance(value, bytes) else value


def test_a_card_without_a_section_or_a_column_is_refused():
    card = card_of("unqover")
    records = [Records("sets", ["religion"], pa.schema([("subject1", pa.string())]), "Data Fields")]
    arguments = {"version": "bundled@1", "created": "2026-01-01"}
    assert json.loads(croissant_text(card, records, **arguments))["version"] == "1.0.0+bundled.1"
    with pytest.raises(QabiasError, match="'Risks'"):
        croissant_text(card.replace("### Risks\n", "### Dangers\n"), records, **arguments)
    with pytest.raises(QabiasError, match="subject1"):
        croissant_text(card.replace("`subject1`, `subject2`", "`subjects`"), records, **arguments)
