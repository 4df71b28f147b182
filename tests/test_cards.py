"""Dataset cards: complete, counted from the data, and readable by other tools."""

import re

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from huggingface_hub import DatasetCard

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


def figures(section):
    """The rows of a table of counts, by configuration."""
    rows = re.findall(r"^\| \**`?(\w+)`?\** \|(?: [a-z]* \|)?((?: [\d,]+ \|)+)$", section, re.MULTILINE)
    return {name: [int(cell.replace(",", "")) for cell in re.findall(r"[\d,]+", cells)] for name, cells in rows}


def card_sections(body):
    """The text under each heading of a card, up to the next heading of any level."""
    parts = re.split(r"^#{1,6} (.+)$", body, flags=re.MULTILINE)[1:]
    return {title: text.strip() for title, text in zip(parts[::2], parts[1::2], strict=True)}


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
def test_the_card_describes_every_column(name):
    head, body = DatasetCard.load(FOLDERS[name] / "README.md").data, body_of(name)
    columns = {feature["name"] for entry in head.dataset_info for feature in entry["features"]}
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| \S", body, re.MULTILINE)
    assert columns - {column for row in rows for column in re.findall(r"\w+", row)} == set()


def table_of(name, config, columns=None):
    [path] = (FOLDERS[name] / "data" / config).glob("*.parquet")
    return pq.read_table(path, columns=columns)


def distinct(table, *columns):
    return table.group_by(list(columns)).aggregate([]).num_rows


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
