"""Dataset cards and Croissant files: complete, counted from the data, and readable by the tools of the Hub."""

import hashlib
import importlib
import json
import re

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from huggingface_hub import DatasetCard

from qabias.building.croissant import RAI_SECTIONS, card_sections, croissant_text, plain
from qabias.errors import QabiasError

from .conftest import ROOT

NAMES = ("bbq", "unqover", "bbnli")
FOLDERS = {name: ROOT / f"{name}_dataset" for name in NAMES}
# The headings of the Hub's template, less the optional ones.
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


def croissant_of(name):
    return json.loads((FOLDERS[name] / "croissant.json").read_text("utf-8"))


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


@pytest.mark.parametrize("name", NAMES)
def test_the_card_says_what_must_be_said_of_bundled_texts(name):
    body = " ".join(body_of(name).split())
    for phrase in (
        "**Content warning.**",
        "have not been rated by people yet",
        "the help of language models",
        "belong in no training set",
        "not comparable with published",
        f"@misc{{qabias-{name},",
        "aclanthology.org",
        "Apache-2.0",
    ):
        assert phrase in body, phrase


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


def test_the_gallery_shows_each_configuration_with_texts_of_the_data():
    galleries = {name: card_sections(body_of(name))["Gallery"] for name in NAMES}
    for path in (FOLDERS["bbnli"] / "data").iterdir():
        lines = [line for line in galleries["bbnli"].splitlines() if line.startswith(f"| {path.name} |")]
        premises = set(table_of("bbnli", path.name)["premise"].to_pylist())
        assert len(lines) == 3
        assert all(line.split(" | ")[3] in premises for line in lines)
    for category in ("Age", "Race_x_gender"):
        lines = [line for line in galleries["bbq"].splitlines() if line.startswith(f"| {category}-")]
        contexts = set(table_of("bbq", category)["context"].to_pylist())
        assert len({line.split(" | ")[0] for line in lines}) == len(lines) == 3
        assert all(re.sub(r" \*(.*)\*$", r" \1", line.split(" | ")[1]) in contexts for line in lines)
    for config in ("religion", "religion_mlm"):
        lines = [line for line in galleries["unqover"].splitlines() if line.startswith(f"| `{config}` |")]
        pairs = {
            "<br>".join(pair)
            for pair in zip(
                *table_of("unqover", config).select(["context_12", "context_21"]).to_pydict().values(), strict=True
            )
        }
        assert len(set(lines)) == 4
        assert all(line.split(" | ")[1] in pairs for line in lines)


# Croissant.


@pytest.mark.parametrize("name", NAMES)
def test_committed_croissant_is_what_the_builder_makes(name):
    folder, builder = (importlib.import_module(f"{name}_dataset.{module}") for module in ("folder", "builder"))
    committed = (FOLDERS[name] / "croissant.json").read_text("utf-8")
    assert committed == folder.croissant(builder.Origin(), FOLDERS[name], card_of(name)), "run `make data` and commit"


@pytest.mark.parametrize("name", NAMES)
def test_croissant_names_every_parquet_file_with_its_hash_and_size(name):
    files = {entry["@id"]: entry for entry in croissant_of(name)["distribution"] if entry["@type"] == "cr:FileObject"}
    paths = {path.relative_to(FOLDERS[name]).as_posix(): path for path in FOLDERS[name].glob("data/*/*.parquet")}
    assert set(files) == set(paths)
    for url, path in paths.items():
        content = path.read_bytes()
        assert files[url]["contentUrl"] == url
        assert files[url]["sha256"] == hashlib.sha256(content).hexdigest()
        assert files[url]["contentSize"] == f"{len(content)} B"


@pytest.mark.parametrize("name", NAMES)
def test_croissant_describes_every_configuration_and_column_and_says_what_the_card_says(name):
    content, head = croissant_of(name), DatasetCard.load(FOLDERS[name] / "README.md").data
    assert [each["@id"] for each in content["recordSet"]] == [entry["config_name"] for entry in head.configs]
    features = {entry["config_name"]: [f["name"] for f in entry["features"]] for entry in head.dataset_info}
    for record_set in content["recordSet"]:
        assert [field["name"] for field in record_set["field"]] == features[record_set["@id"]]
        assert all(field["description"] for field in record_set["field"])
    sections = card_sections(body_of(name))
    for field, titles in RAI_SECTIONS.items():
        assert content[field] == "\n\n".join(plain(sections[title]) for title in titles)
        assert len(content[field]) > 15, field
    entries = re.compile(r"^@\w+\{", re.MULTILINE)
    assert len(entries.findall(content["citeAs"])) == len(entries.findall(sections["Citation"])) >= 2


@pytest.mark.parametrize(
    ("name", "config"),
    [
        pytest.param("bbq", "Age", marks=pytest.mark.slow),
        pytest.param("bbq", "SES_nli", marks=pytest.mark.slow),
        ("unqover", "religion_mlm"),
        pytest.param("bbnli", "man_is_to_surgeon", marks=pytest.mark.slow),
    ],
)
def test_mlcroissant_validates_the_file_and_reads_the_rows_of_the_parquet_file(name, config):
    mlcroissant = pytest.importorskip("mlcroissant")
    dataset = mlcroissant.Dataset(str(FOLDERS[name] / "croissant.json"))
    assert not dataset.metadata.ctx.issues.errors
    assert not dataset.metadata.ctx.issues.warnings
    for record, row in zip(dataset.records(config), table_of(name, config).slice(0, 20).to_pylist(), strict=False):
        assert unpacked(record) == row


def unpacked(value):
    """A record with plain names and texts."""
    if isinstance(value, dict):
        return {key.rpartition("/")[2]: unpacked(part) for key, part in value.items()}
    if isinstance(value, list):
        return [unpacked(part) for part in value]
    return value.decode() if isinstance(value, bytes) else value


@pytest.mark.slow
def test_mlcroissant_reads_a_configuration_of_several_files(tmp_path):
    mlcroissant = pytest.importorskip("mlcroissant")
    dataset = mlcroissant.Dataset(str(FOLDERS["bbnli"] / "croissant.json"))
    rows = {row["religion/example_id"].decode() for row in dataset.records("religion")}
    subtopics = [path.name for path in (FOLDERS["bbnli"] / "data").iterdir()]
    tables = [table_of("bbnli", subtopic) for subtopic in subtopics]
    assert rows == {i for t in tables if t["domain"][0].as_py() == "religion" for i in t["example_id"].to_pylist()}


def test_a_card_without_a_section_or_a_column_is_refused():
    folder, card = FOLDERS["unqover"], card_of("unqover")
    columns = {"religion": (pa.schema([("subject1", pa.string())]), "Data Fields")}
    arguments = {"version": "bundled@1", "created": "2026-01-01"}
    assert json.loads(croissant_text(folder, card, columns, **arguments))["version"] == "1.0.0+bundled.1"
    with pytest.raises(QabiasError, match="has no text under 'Risks'"):
        croissant_text(folder, card.replace("### Risks\n", "### Dangers\n"), columns, **arguments)
    with pytest.raises(QabiasError, match="does not describe the columns subject1 of religion"):
        croissant_text(folder, card.replace("`subject1`, `subject2`", "`subjects`"), columns, **arguments)
