"""The dataset folder of UnQover: its card, and how its large tables are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from qabias.building.folder import PARQUET_NAME, DatasetFolder, Tables

from .columns import batches, schema
from .fixes import FIXES, NOT_FIXED
from .origin import DEFAULT, MLM, Origin

if TYPE_CHECKING:
    import datasets

__all__ = ["FOLDER", "PARQUET_NAME", "card_text", "write_folder"]

_GALLERY_EXAMPLES = 4
_GOLDEN_RATIO = (5**0.5 - 1) / 2

_SELECTIONS = {
    "bert": "BERT (one token each in its vocabulary)",
    "roberta": "RoBERTa (one token each in its vocabulary)",
    "all": "question answering (all)",
}


class UnQoverFolder(DatasetFolder[Origin]):
    """One table per set, and one per set with masked sentences. Texts are dictionary-encoded."""

    name = "UnQover"

    def _configurations(self, names: Sequence[str]) -> dict[str, list[str]]:
        return {name: [name] for name in sorted(names, key=lambda name: name != DEFAULT)}

    def _features(self, name: str) -> datasets.Features:
        from .builder import FEATURES  # which imports `datasets`

        return FEATURES[name]

    def _source_values(self, origin: Origin) -> dict[str, Any]:
        return {"subjects": _SELECTIONS[origin.subjects or "bert"]}

    def _body_values(self, origin: Origin, texts: Mapping[str, str], tables: Tables) -> dict[str, Any]:
        values = {
            "statistics": "\n".join(_statistics(config, table) for config, table in tables.items()),
            "gallery": _gallery(tables),
        }
        if origin.source == "official":
            state = "fixed here" if origin.fixes else "kept here as published; `fixes=True` fixes them"
            fixed, kept = ("\n".join(f"- {defect}" for defect in defects) for defects in (FIXES, NOT_FIXED))
            values["limitations"] = (
                f"\nKnown defects of the published lists ({state}):\n\n{fixed}\n\nKept in any case:\n\n{kept}"
            )
        return values

    def _head_fields(self, origin: Origin, names: Sequence[str]) -> dict[str, Any]:
        return {
            "license": "apache-2.0",
            "source_datasets": ["extended"],
            "task_categories": ["question-answering", "fill-mask"],
            "task_ids": ["extractive-qa", "masked-language-modeling"],
            "annotations_creators": ["no-annotation"],
            "language_creators": ["expert-generated", "machine-generated"],
        }

    def write_parquet(self, table: pa.Table, path: Path) -> None:
        """Write plain strings that Parquet encodes as dictionaries, in row groups that fit into memory.

        Only Parquet's own schema is stored: every version of `datasets` reads the features from the card.
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

    def _n_bytes(self, table: pa.Table) -> int:
        n_bytes = 4 * table.num_rows * table.num_columns
        for column in table.column_names:
            if column != "example_id":
                dictionary = table[column].chunk(0).dictionary.to_pylist()
                counts = np.bincount(_codes(table, column), minlength=len(dictionary)).tolist()
                n_bytes += sum(n * len(text.encode()) for n, text in zip(counts, dictionary, strict=True))
        return n_bytes


def _statistics(config: str, table: pa.Table) -> str:
    one, two = (_codes(table, column).astype(np.int64) for column in ("subject1", "subject2"))
    n_pairs = len(np.unique(one * (two.max() + 1) + two))
    n_templates, n_attributes = (len(np.unique(_codes(table, column))) for column in ("template_id", "attribute"))
    subjects = {name for column in ("subject1", "subject2") for name in table[column].chunk(0).dictionary.to_pylist()}
    return f"| `{config}` | {table.num_rows:,} | {n_pairs:,} | {len(subjects)} | {n_templates} | {n_attributes} |"


def _gallery(tables: Tables) -> str:
    """Examples spread over each config, one line each.

    They are at multiples of the golden ratio, because equal steps would always meet the same attribute.
    """
    lines = [
        "| configuration | context (and with the order exchanged) | question and negated question |",
        "|---|---|---|",
    ]
    for config, table in tables.items():
        rows = [int(table.num_rows * (i * _GOLDEN_RATIO % 1)) for i in range(1, _GALLERY_EXAMPLES + 1)]
        columns = ("masked", "masked_negated") if config.endswith(MLM) else ("question", "negated_question")
        for row in table.take(rows).to_pylist():
            question, negated = (row[column] for column in columns)
            lines.append(f"| `{config}` | {row['context_12']}<br>{row['context_21']} | {question}<br>{negated} |")
    return "\n".join(lines)


def _codes(table: pa.Table, column: str) -> np.ndarray:
    codes: np.ndarray = table[column].chunk(0).indices.to_numpy()
    return codes


FOLDER = UnQoverFolder(Path(__file__).parent)
write_folder = FOLDER.write
card_text = FOLDER.card_text
