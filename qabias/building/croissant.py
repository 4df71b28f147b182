"""The Croissant description of a dataset folder: JSON-LD for search engines and loaders, with responsible-AI fields.

It follows Croissant 1.1 and Croissant RAI 1.0 (MLCommons). It says what the dataset card says: the responsible-AI
fields are sections of the card word for word, and the columns are described by its tables. Tables with the same columns
are one set of files and one set of records, whose field `configuration` is read from the path.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import yaml

from qabias.building.origin import LICENCES
from qabias.errors import QabiasError

FILE_NAME = "croissant.json"
CONFIGURATION = "configuration"
"""The field that tells the configuration of a row."""

RAI_SECTIONS = {
    "rai:dataCollection": (
        "Curation Rationale",
        "Data Collection and Processing",
        "Who are the source data producers?",
    ),
    "rai:dataAnnotationProtocol": ("Annotation process",),
    "rai:annotatorDemographics": ("Who are the annotators?",),
    "rai:personalSensitiveInformation": ("Personal and Sensitive Information",),
    "rai:dataUseCases": ("Direct Use", "Out-of-Scope Use"),
    "rai:dataBiases": ("Bias",),
    "rai:dataSocialImpact": ("Risks",),
    "rai:dataLimitations": ("Limitations", "Recommendations"),
    "rai:dataReleaseMaintenancePlan": ("More Information",),
}
"""Sections of the card that each responsible-AI field holds."""

_CROISSANT_WORDS = (
    "arrayShape citeAs column containedIn equivalentProperty extract field fileProperty fileObject fileSet format "
    "includes isArray isLiveDataset jsonPath key md5 parentField path recordSet references regex repeated replace "
    "samplingRate separator source subField transform"
)
_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "description": {"@container": "@language"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "name": {"@container": "@language"},
    **{word: f"cr:{word}" for word in _CROISSANT_WORDS.split()},
}

_SPDX = {name.lower(): name for name, licence in LICENCES.items() if licence.allows}
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_COLUMN_ROW = re.compile(r"^\| (`\w+`(?:, `\w+`)*) \| ((?:(?! \| ).)+) \|$", re.MULTILINE)


@dataclass(frozen=True)
class Records:
    """Tables with the same columns."""

    id: str
    names: Sequence[str]
    columns: pa.Schema
    section: str


def croissant_text(card: str, groups: Sequence[Records], *, version: str, created: str) -> str:
    """Describe a dataset folder."""
    _, head_text, body = card.split("---\n", 2)
    head, sections = yaml.safe_load(head_text), card_sections(body)
    licence = _SPDX.get(head["license"])
    content = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"],
        "name": head["pretty_name"],
        "description": plain(next(iter(sections.values()))),
        # The page of a licence, or what the card says in place of one.
        "license": f"https://spdx.org/licenses/{licence}.html" if licence else str(head["license_name"]),
        "version": f"1.0.0+{re.sub(r'[^0-9A-Za-z]', '.', version)}",
        "datePublished": created,
        "creator": {"@type": "sc:Organization", "name": plain(_section(sections, "Dataset Card Authors"))},
        "citeAs": "\n\n".join(re.findall(r"```bibtex\n(.*?)\n```", _section(sections, "Citation"), re.DOTALL)),
        "keywords": head["tags"],
        "inLanguage": head["language"],
        "isLiveDataset": False,
        **{
            field: "\n\n".join(plain(_section(sections, title)) for title in titles)
            for field, titles in RAI_SECTIONS.items()
        },
        "distribution": [_file_set(group) for group in groups],
        "recordSet": [_record_set(group, _meanings(_section(sections, group.section))) for group in groups],
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def card_sections(body: str) -> dict[str, str]:
    """The text under each heading of a card, up to the next heading of any level."""
    parts = _HEADING.split(body)[1:]
    return {title: text.strip() for title, text in zip(parts[::2], parts[1::2], strict=True)}


def plain(text: str) -> str:
    """Markdown as running text: without code blocks, one line per paragraph or point."""
    text = re.sub(r"\n{3,}", "\n\n", _FENCE.sub("", text)).strip()
    return re.sub(r"(?<!\n)\n(?!\n|- )\s*", " ", text)


def _section(sections: Mapping[str, str], title: str) -> str:
    if not sections.get(title):
        raise QabiasError(f"the dataset card has no text under {title!r}: add it to card.md")
    return sections[title]


def _meanings(section: str) -> dict[str, str]:
    """What the table of columns in a section says about each of them."""
    return {name: meaning for names, meaning in _COLUMN_ROW.findall(section) for name in re.findall(r"\w+", names)}


def _file_set(group: Records) -> dict[str, Any]:
    return {
        "@type": "cr:FileSet",
        "@id": _file_set_id(group),
        "name": _file_set_id(group),
        "encodingFormat": "application/x-parquet",
        "includes": [f"data/{name}/*.parquet" for name in group.names],
    }


def _file_set_id(group: Records) -> str:
    return f"{group.id}-files"


def _record_set(group: Records, meanings: Mapping[str, str]) -> dict[str, Any]:
    missing = [column for column in group.columns.names if column not in meanings]
    if missing:
        raise QabiasError(f"the dataset card does not describe the columns {', '.join(missing)}: add them to card.md")
    configuration = {
        "@type": "cr:Field",
        "@id": f"{group.id}/{CONFIGURATION}",
        "name": CONFIGURATION,
        "description": "the configuration of the dataset card that the row belongs to, by the folder of its file",
        "dataType": "sc:Text",
        "source": {
            "fileSet": {"@id": _file_set_id(group)},
            "extract": {"fileProperty": "fullpath"},
            "transform": {"regex": "data/([^/]+)/.*"},
        },
    }
    return {
        "@type": "cr:RecordSet",
        "@id": group.id,
        "name": group.id,
        "field": [configuration, *(_field(group, column, meanings[column.name]) for column in group.columns)],
    }


def _field(group: Records, column: pa.Field, meaning: str) -> dict[str, Any]:
    identity, source = f"{group.id}/{column.name}", {"fileSet": {"@id": _file_set_id(group)}}
    described = {"@type": "cr:Field", "@id": identity, "name": column.name, "description": meaning}
    if not pa.types.is_struct(column.type):
        return {**described, **_type(column.type), "source": {**source, "extract": {"column": column.name}}}
    return {
        **described,
        "subField": [
            {
                "@type": "cr:Field",
                "@id": f"{identity}/{part.name}",
                "name": part.name,
                **_type(part.type),
                "source": {**source, "extract": {"column": column.name}, "transform": {"jsonPath": part.name}},
            }
            for part in column.type
        ],
    }


def _type(arrow: pa.DataType) -> dict[str, Any]:
    if pa.types.is_list(arrow):
        return {**_type(arrow.value_type), "isArray": True, "arrayShape": "-1"}
    if pa.types.is_integer(arrow):
        return {"dataType": f"cr:Int{arrow.bit_width}"}
    if pa.types.is_string(arrow):
        return {"dataType": "sc:Text"}
    raise QabiasError(f"Croissant has no type for {arrow}")
