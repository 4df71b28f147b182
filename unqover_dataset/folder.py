"""Writes a dataset folder as the Hub wants it: a card with a YAML head, its Croissant, and Parquet by configuration."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from string import Template as TextTemplate
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from qabias.building.cards import dataset_info, size_category
from qabias.building.croissant import FILE_NAME, croissant_text
from qabias.support.files import write_atomically

from .builder import DEFAULT, FEATURES, MLM, SCHEMAS, Origin
from .columns import batches, schema
from .fixes import FIXES, NOT_MENDED

SPLIT = "test"
PARQUET_NAME = f"{SPLIT}-00000-of-00001.parquet"
_CARD = Path(__file__).with_name("card.md")
_SOURCES = Path(__file__).with_name("card_sources.yaml")
_GALLERY_EXAMPLES = 4
_GOLDEN_RATIO = (5**0.5 - 1) / 2

_SELECTIONS = {
    "bert": "BERT (one token each in its vocabulary)",
    "roberta": "RoBERTa (one token each in its vocabulary)",
    "all": "question answering (all)",
}


def write_folder(
    output: Path, origin: Origin, configs: Sequence[str], progress: Callable[[str], None] = lambda config: None
) -> dict[str, pa.Table]:
    """Build the configurations and write Parquet, card and Croissant to `output`.

    All configurations are built before the first file is written, and every file appears whole or not at all.

    Args:
        output: Folder to write to; other files in it are left alone.
        origin: Where the texts come from.
        configs: Configurations to build.
        progress: Called with every configuration that has been written.

    Returns:
        The tables by configuration, texts dictionary-encoded.

    Raises:
        QabiasError: If a configuration cannot be built.
        OSError: If the folder cannot be written.
    """
    tables = {config: origin.table(config) for config in configs}
    for config, table in tables.items():
        write_atomically(output / "data" / config / PARQUET_NAME, partial(_write_parquet, table))
        progress(config)
    sizes = {config: (output / "data" / config / PARQUET_NAME).stat().st_size for config in tables}
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
    columns = {name: (SCHEMAS[name], "Data Fields") for name in names}
    return croissant_text(output, card, columns, version=origin.version, created=_texts(origin)["created"])


def _texts(origin: Origin) -> dict[str, str]:
    """What the card says of the source, filled in."""
    values = {"version": origin.version, "subjects": _SELECTIONS[origin.subjects or "bert"]}
    texts = yaml.safe_load(_SOURCES.read_text(encoding="utf-8"))[origin.source]
    return {part: TextTemplate(text).substitute(values).rstrip() for part, text in texts.items()}


def _write_parquet(table: pa.Table, path: Path) -> None:
    """Write plain strings that Parquet itself encodes as dictionaries, in row groups that readers can hold.

    No schema is stored beside Parquet's own, so that every version of `datasets` reads the features from the card.
    """
    plain = schema("masked" in table.column_names)
    with pq.ParquetWriter(
        path,
        plain,
        compression="zstd",
        compression_level=19,
        use_dictionary=[field.name for field in plain if field.type == pa.string()],
        column_encoding={"example_id": "DELTA_BINARY_PACKED"},
        store_schema=False,
    ) as writer:
        for batch in batches(table):
            writer.write_table(batch)


def card_text(origin: Origin, tables: Mapping[str, pa.Table], sizes: Mapping[str, int]) -> str:
    """The dataset card: YAML head and text, with every figure counted from the tables.

    Args:
        origin: Where the texts come from.
        tables: Examples by configuration, as `Origin.table` makes them.
        sizes: Bytes of the Parquet file of each configuration.
    """
    texts = _texts(origin)
    if origin.source == "official":
        state = "mended here" if origin.fixes else "kept here as published; `fixes=True` mends them"
        mended, kept = ("\n".join(f"- {defect}" for defect in defects) for defects in (FIXES, NOT_MENDED))
        texts["limitations"] = (
            f"\nKnown defects of the published lists ({state}):\n\n{mended}\n\nKept in any case:\n\n{kept}"
        )
    body = TextTemplate(_CARD.read_text(encoding="utf-8")).substitute(
        texts,
        version=origin.version,
        statistics="\n".join(_statistics(config, table) for config, table in tables.items()),
        gallery=_gallery(tables),
    )
    head = yaml.safe_dump(_yaml_head(tables, sizes, texts["title"]), sort_keys=False, allow_unicode=True, width=120)
    return f"---\n{head}---\n\n{body}"


def _statistics(config: str, table: pa.Table) -> str:
    one, two = (_codes(table, column).astype(np.int64) for column in ("subject1", "subject2"))
    n_pairs = len(np.unique(one * (two.max() + 1) + two))
    n_templates, n_attributes = (len(np.unique(_codes(table, column))) for column in ("template_id", "attribute"))
    subjects = {name for column in ("subject1", "subject2") for name in table[column].chunk(0).dictionary.to_pylist()}
    return f"| `{config}` | {table.num_rows:,} | {n_pairs:,} | {len(subjects)} | {n_templates} | {n_attributes} |"


def _gallery(tables: Mapping[str, pa.Table]) -> str:
    """Examples from all over each configuration, one line each.

    They lie at multiples of the golden ratio: steps that divide the rows evenly would always meet the same attribute.
    """
    lines = [
        "| configuration | context (and with the order exchanged) | question and negated question |",
        "|---|---|---|",
    ]
    for config, table in tables.items():
        rows = [int(table.num_rows * (i * _GOLDEN_RATIO % 1)) for i in range(1, _GALLERY_EXAMPLES + 1)]
        asked = ("masked", "masked_negated") if config.endswith(MLM) else ("question", "negated_question")
        for row in table.take(rows).to_pylist():
            question, negated = (row[column] for column in asked)
            lines.append(f"| `{config}` | {row['context_12']}<br>{row['context_21']} | {question}<br>{negated} |")
    return "\n".join(lines)


def _yaml_head(tables: Mapping[str, pa.Table], sizes: Mapping[str, int], title: str) -> dict[str, Any]:
    default = DEFAULT if DEFAULT in tables else next(iter(tables))
    return {
        "language": ["en"],
        "license": "apache-2.0",
        "pretty_name": f"UnQover ({title})",
        "size_categories": [size_category(sum(table.num_rows for table in tables.values()))],
        "source_datasets": ["extended"],
        "task_categories": ["question-answering", "fill-mask"],
        "task_ids": ["extractive-qa", "masked-language-modeling"],
        "annotations_creators": ["no-annotation"],
        "language_creators": ["expert-generated", "machine-generated"],
        "tags": ["bias", "fairness", "social-bias", "stereotypes", "evaluation"],
        "configs": [
            {
                "config_name": config,
                **({"default": True} if config == default else {}),
                "data_files": [{"split": SPLIT, "path": f"data/{config}/{SPLIT}-*.parquet"}],
            }
            for config in tables
        ],
        "dataset_info": [
            {
                "config_name": config,
                **dataset_info(FEATURES[config], SPLIT, table.num_rows, _plain_bytes(table), sizes[config]),
            }
            for config, table in tables.items()
        ],
    }


def _plain_bytes(table: pa.Table) -> int:
    """Bytes of the table with plain strings: their UTF-8 text, and four bytes a value for its end or its number."""
    n_bytes = 4 * table.num_rows * table.num_columns
    for column in table.column_names:
        if column != "example_id":
            dictionary = table[column].chunk(0).dictionary.to_pylist()
            counts = np.bincount(_codes(table, column), minlength=len(dictionary)).tolist()
            n_bytes += sum(n * len(text.encode()) for n, text in zip(counts, dictionary, strict=True))
    return n_bytes


def _codes(table: pa.Table, column: str) -> np.ndarray:
    codes: np.ndarray = table[column].chunk(0).indices.to_numpy()
    return codes
