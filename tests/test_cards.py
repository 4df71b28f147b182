"""Dataset cards: complete, counted from the data, and readable by other tools."""

import re

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


@pytest.mark.parametrize(("name", "n_configs"), [("bbq", 25), ("unqover", 8), ("bbnli", 20)])
def test_the_rows_of_the_card_are_counted_from_the_parquet_files(name, n_configs):
    shown = figures(body_of(name))
    rows = {path.parent.name: pq.read_metadata(path).num_rows for path in (FOLDERS[name] / "data").rglob("*.parquet")}
    assert {config: shown[config][0] for config in rows} == rows
    assert len(shown) == n_configs
    if name == "bbnli":
        assert sum(shown[domain][0] for domain in ("gender", "race", "religion")) == shown["all"][0]


@pytest.mark.parametrize("name", NAMES)
def test_the_card_describes_every_column(name):
    head, body = DatasetCard.load(FOLDERS[name] / "README.md").data, body_of(name)
    columns = {feature["name"] for entry in head.dataset_info for feature in entry["features"]}
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| \S", body, re.MULTILINE)
    assert columns - {column for row in rows for column in re.findall(r"\w+", row)} == set()
