"""The Croissant description of a dataset folder: JSON-LD for search engines and loaders, with responsible-AI fields.

Follows Croissant 1.1 and Croissant RAI 1.0 (MLCommons). What it says of the data is what the dataset card says: the
responsible-AI fields are sections of the card word for word, and the columns are described by its tables.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from qabias.errors import QabiasError

FILE_NAME = "croissant.json"

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

_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "arrayShape": "cr:arrayShape",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "containedIn": "cr:containedIn",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "description": {"@container": "@language"},
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isArray": "cr:isArray",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "name": {"@container": "@language"},
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}


_SPDX = {"apache-2.0": "Apache-2.0", "cc-by-4.0": "CC-BY-4.0", "mit": "MIT"}
_FORMAT = "application/x-parquet"
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_COLUMN_ROW = re.compile(r"^\| (`\w+`(?:, `\w+`)*) \| ((?:(?! \| ).)+) \|$", re.MULTILINE)


def croissant_text(
    folder: Path, card: str, columns: Mapping[str, tuple[pa.Schema, str]], *, version: str, created: str
) -> str:
    """Describe a dataset folder whose Parquet files are written.

    Args:
        folder: The folder, with the Parquet files that the card's head names.
        card: The dataset card, head and text.
        columns: For every configuration in the head its columns, and the section of the card whose table describes
            them.
        version: Version of the data, e.g. "bundled@1"; it becomes the build part of a semantic version.
        created: Date of this version of the data, as YYYY-MM-DD.

    Returns:
        The JSON-LD.

    Raises:
        QabiasError: If the card lacks a section or the description of a column.
        OSError: If a Parquet file cannot be read.
    """
    _, head_text, body = card.split("---\n", 2)
    head, sections = yaml.safe_load(head_text), card_sections(body)
    patterns = {entry["config_name"]: _patterns(entry) for entry in head["configs"]}
    files = {pattern: _only_file(folder, pattern) for own in patterns.values() for pattern in own}
    content = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"],
        "name": head["pretty_name"],
        "description": plain(next(iter(sections.values()))),
        "license": f"https://spdx.org/licenses/{_SPDX[head['license']]}.html",
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
        "distribution": [
            *(_file_object(folder, path) for path in files.values()),
            *(_file_set(config, own) for config, own in patterns.items() if len(own) > 1),
        ],
        "recordSet": [
            _record_set(
                config,
                {"fileSet": {"@id": _file_set_id(config)}}
                if len(patterns[config]) > 1
                else {"fileObject": {"@id": files[patterns[config][0]].relative_to(folder).as_posix()}},
                schema,
                _meanings(_section(sections, section)),
            )
            for config, (schema, section) in columns.items()
        ],
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def card_sections(body: str) -> dict[str, str]:
    """The text under each heading of a card, up to the next heading of any level."""
    parts = _HEADING.split(body)[1:]
    return {title: text.strip() for title, text in zip(parts[::2], parts[1::2], strict=True)}


def plain(text: str) -> str:
    """Markdown as running text: without code blocks, one line a paragraph or point."""
    text = re.sub(r"\n{3,}", "\n\n", _FENCE.sub("", text)).strip()
    return re.sub(r"(?<!\n)\n(?!\n|- )\s*", " ", text)


def _section(sections: Mapping[str, str], title: str) -> str:
    if not sections.get(title):
        raise QabiasError(f"the dataset card has no text under {title!r}: add it to card.md")
    return sections[title]


def _meanings(section: str) -> dict[str, str]:
    """What the table of columns in a section says of each one."""
    return {name: meaning for names, meaning in _COLUMN_ROW.findall(section) for name in re.findall(r"\w+", names)}


def _patterns(entry: Mapping[str, Any]) -> list[str]:
    [data] = entry["data_files"]
    return [data["path"]] if isinstance(data["path"], str) else list(data["path"])


def _only_file(folder: Path, pattern: str) -> Path:
    [path] = folder.glob(pattern)
    return path


def _file_object(folder: Path, path: Path) -> dict[str, Any]:
    url, content = path.relative_to(folder).as_posix(), path.read_bytes()
    return {
        "@type": "cr:FileObject",
        "@id": url,
        "name": url,
        "contentUrl": url,
        "contentSize": f"{len(content)} B",
        "encodingFormat": _FORMAT,
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def _file_set_id(config: str) -> str:
    return f"{config}-files"


def _file_set(config: str, patterns: Sequence[str]) -> dict[str, Any]:
    identity = _file_set_id(config)
    return {"@type": "cr:FileSet", "@id": identity, "name": identity, "encodingFormat": _FORMAT, "includes": patterns}


def _record_set(
    config: str, source: Mapping[str, Any], schema: pa.Schema, meanings: Mapping[str, str]
) -> dict[str, Any]:
    missing = [column for column in schema.names if column not in meanings]
    if missing:
        raise QabiasError(f"the dataset card does not describe the columns {', '.join(missing)} of {config}: add them")
    return {
        "@type": "cr:RecordSet",
        "@id": config,
        "name": config,
        "field": [_field(f"{config}/{column.name}", column, source, meanings[column.name]) for column in schema],
    }


def _field(identity: str, column: pa.Field, source: Mapping[str, Any], meaning: str) -> dict[str, Any]:
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
