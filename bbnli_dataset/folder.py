"""Writes a dataset folder as the Hub wants it: a card with a YAML head, its Croissant, and Parquet by subtopic."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from string import Template as TextTemplate
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml

from qabias.building.cards import dataset_info, size_category
from qabias.building.croissant import FILE_NAME, croissant_text
from qabias.support.files import write_atomically

from .builder import FEATURES, SCHEMA, Origin
from .rows import LABELS
from .subtopics import ALL, DOMAINS, domain_of, subtopics_of

SPLIT = "test"
PARQUET_NAME = f"{SPLIT}-00000-of-00001.parquet"
_CARD = Path(__file__).with_name("card.md")
_SOURCES = Path(__file__).with_name("card_sources.yaml")


def write_folder(
    output: Path, origin: Origin, subtopics: Sequence[str], progress: Callable[[str], None] = lambda subtopic: None
) -> dict[str, pa.Table]:
    """Build the subtopics and write Parquet, card and Croissant to `output`.

    All subtopics are built before the first file is written, and every file appears whole or not at all. Domains and
    `all` have no files of their own: the card lists those of their subtopics.

    Args:
        output: Folder to write to; other files in it are left alone.
        origin: Where the texts come from.
        subtopics: Subtopics to build.
        progress: Called with every subtopic that has been built.

    Returns:
        The tables by subtopic.

    Raises:
        QabiasError: If a subtopic cannot be built.
        OSError: If the folder cannot be written.
    """
    tables = {}
    for subtopic in subtopics:
        tables[subtopic] = origin.table(subtopic)
        progress(subtopic)
    for subtopic, table in tables.items():
        write_atomically(output / "data" / subtopic / PARQUET_NAME, partial(_write_parquet, table))
    sizes = {subtopic: (output / "data" / subtopic / PARQUET_NAME).stat().st_size for subtopic in tables}
    card = card_text(origin, tables, sizes)
    write_atomically(output / "README.md", lambda path: path.write_text(card, encoding="utf-8"))
    described = croissant(origin, output, card)
    write_atomically(output / FILE_NAME, lambda path: path.write_text(described, encoding="utf-8"))
    return tables


def croissant(origin: Origin, output: Path, card: str) -> str:
    """The Croissant of a folder whose Parquet files and card are written.

    Args:
        origin: Where the texts come from.
        output: The folder.
        card: Its card.

    Raises:
        QabiasError: If the card lacks a section or the description of a column.
    """
    names = [entry["config_name"] for entry in yaml.safe_load(card.split("---\n")[1])["configs"]]
    columns = {name: (SCHEMA, "Data Fields") for name in names}
    return croissant_text(output, card, columns, version=origin.version, created=_texts(origin)["created"])


def _texts(origin: Origin) -> dict[str, str]:
    """What the card says of the source, filled in."""
    values = {
        "version": origin.version,
        "repetitions": "left out here" if origin.unique else "kept here as published; `unique=True` leaves them out",
    }
    texts = yaml.safe_load(_SOURCES.read_text(encoding="utf-8"))[origin.source]
    return {part: TextTemplate(text).substitute(values).rstrip() for part, text in texts.items()}


def _write_parquet(table: pa.Table, path: Path) -> None:
    # No schema metadata, so that every version of `datasets` reads the features from the card.
    pq.write_table(table.replace_schema_metadata(None), path, compression="zstd", compression_level=19)


def card_text(origin: Origin, tables: Mapping[str, pa.Table], sizes: Mapping[str, int]) -> str:
    """The dataset card: YAML head and text, with every figure counted from the tables.

    Args:
        origin: Where the texts come from.
        tables: Rows by subtopic.
        sizes: Bytes of the Parquet file of each subtopic.
    """
    texts = _texts(origin)
    body = TextTemplate(_CARD.read_text(encoding="utf-8")).substitute(
        texts, version=origin.version, statistics="\n".join(_statistics(tables)), gallery=_gallery(tables)
    )
    head = yaml.safe_dump(
        _yaml_head(origin, texts["title"], tables, sizes), sort_keys=False, allow_unicode=True, width=120
    )
    return f"---\n{head}---\n\n{body}"


def _configurations(subtopics: Sequence[str]) -> dict[str, list[str]]:
    """The subtopics of every configuration that can be made of these ones, the default first."""
    wider = {name: [each for each in subtopics_of(name) if each in subtopics] for name in (ALL, *DOMAINS)}
    return {
        **{name: members for name, members in wider.items() if len(members) > 1},
        **{subtopic: [subtopic] for subtopic in subtopics},
    }


def _statistics(tables: Mapping[str, pa.Table]) -> list[str]:
    """One line a configuration: rows, and the texts they are made of."""
    lines = []
    for name, members in _configurations(list(tables)).items():
        table = pa.concat_tables([tables[subtopic] for subtopic in members])
        domain = domain_of(name) if name in tables else ""
        counts = [
            _count(table, "premise_id"),
            *(_count(table.filter(pc.field("kind") == kind), "hypothesis_id") for kind in ("stereotypical", "test")),
            *_settled_and_open(table.filter(pc.field("kind") == "test")),
        ]
        label = f"`{name}`" if name in tables else f"**`{name}`**"
        lines.append(f"| {label} | {domain} | {table.num_rows:,} | {' | '.join(map(str, counts))} |")
    return lines


def _count(table: pa.Table, number: str) -> int:
    """How many different texts of a kind there are, words and groups aside."""
    return int(table.group_by(["subtopic", number]).aggregate([]).num_rows)


def _settled_and_open(table: pa.Table) -> tuple[int, int]:
    """How many rows have a label that the premise gives, and how many are neutral."""
    n_open = table.filter(pc.field("label") == LABELS.index("neutral")).num_rows
    return table.num_rows - n_open, n_open


def _gallery(tables: Mapping[str, pa.Table]) -> str:
    """The middle stereotypical pair and the first test row of every subtopic, one line a row."""
    lines = ["| subtopic | kind | stance | premise | hypothesis | label |", "|---|---|---|---|---|---|"]
    for subtopic, table in tables.items():
        stereotypical, test = (table.filter(pc.field("kind") == kind) for kind in ("stereotypical", "test"))
        middle = stereotypical["pair_id"][stereotypical.num_rows // 2]
        rows = stereotypical.filter(pc.field("pair_id") == middle).to_pylist() + test.slice(0, 1).to_pylist()
        for row in rows:
            texts = [subtopic, *(row[column] for column in ("kind", "stance", "premise", "hypothesis"))]
            lines.append(f"| {' | '.join([*texts, LABELS[row['label']]])} |")
    return "\n".join(lines)


def _yaml_head(origin: Origin, title: str, tables: Mapping[str, pa.Table], sizes: Mapping[str, int]) -> dict[str, Any]:
    n_rows = sum(table.num_rows for table in tables.values())
    configurations = _configurations(list(tables))
    default = next(iter(configurations))
    return {
        "language": ["en"],
        "license": origin.licence.lower(),
        "pretty_name": f"BBNLI ({title})",
        "size_categories": [size_category(n_rows)],
        "source_datasets": ["original"] if origin.source == "bundled" else ["extended"],
        "task_categories": ["text-classification", "question-answering"],
        "task_ids": ["natural-language-inference"],
        # The bundled texts were written with the help of language models, and nobody has labelled or rated them.
        "annotations_creators": ["no-annotation" if origin.source == "bundled" else "expert-generated"],
        "language_creators": ["machine-generated" if origin.source == "bundled" else "expert-generated"],
        "tags": ["bias", "fairness", "social-bias", "stereotypes", "evaluation"],
        "configs": [
            {
                "config_name": name,
                **({"default": True} if name == default else {}),
                "data_files": [
                    {"split": SPLIT, "path": [f"data/{subtopic}/{SPLIT}-*.parquet" for subtopic in members]}
                ],
            }
            for name, members in configurations.items()
        ],
        "dataset_info": [
            {"config_name": name, **_dataset_info([tables[s] for s in members], sum(sizes[s] for s in members))}
            for name, members in configurations.items()
        ],
    }


def _dataset_info(tables: Sequence[pa.Table], size: int) -> dict[str, Any]:
    n_rows, n_bytes = (sum(getattr(table, count) for table in tables) for count in ("num_rows", "nbytes"))
    return dataset_info(FEATURES, SPLIT, n_rows, n_bytes, size)
