"""The dataset folder of BBNLI: its card and configs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from qabias.building.folder import PARQUET_NAME, DatasetFolder, Tables

from .origin import Origin
from .pairs import LABELS
from .subtopics import ALL, DOMAINS, domain_of, subtopics_of

if TYPE_CHECKING:
    import datasets

__all__ = ["FOLDER", "PARQUET_NAME", "card_text", "write_folder"]


class BBNLIFolder(DatasetFolder[Origin]):
    """One table per subtopic. Domains and `all` have no files: they combine their subtopics."""

    name = "BBNLI"

    def _configurations(self, names: Sequence[str]) -> dict[str, list[str]]:
        wider = {config: [name for name in subtopics_of(config) if name in names] for config in (ALL, *DOMAINS)}
        return {
            **{config: members for config, members in wider.items() if len(members) > 1},
            **{name: [name] for name in names},
        }

    def _features(self, name: str) -> datasets.Features:
        from .builder import FEATURES  # which imports `datasets`

        return FEATURES

    def _source_values(self, origin: Origin) -> dict[str, Any]:
        return {"repetitions": "dropped here" if origin.fixes else "kept here as published; `fixes=True` drops them"}

    def _body_values(self, origin: Origin, texts: Mapping[str, str], tables: Tables) -> dict[str, Any]:
        return {"statistics": "\n".join(self._statistics(tables)), "gallery": _gallery(tables)}

    def _head_fields(self, origin: Origin, names: Sequence[str]) -> dict[str, Any]:
        return {
            "license": origin.licence.lower(),
            "task_categories": ["text-classification", "question-answering"],
            "task_ids": ["natural-language-inference"],
        }

    def _statistics(self, tables: Tables) -> list[str]:
        """One line per config: its rows and source texts."""
        lines = []
        for config, names in self._configurations(list(tables)).items():
            table = pa.concat_tables([tables[name] for name in names])
            domain = domain_of(config) if config in tables else ""
            counts = [
                _count(table, "premise_id"),
                *(
                    _count(table.filter(pc.field("kind") == kind), "hypothesis_id")
                    for kind in ("stereotypical", "test")
                ),
                *_settled_and_open(table.filter(pc.field("kind") == "test")),
            ]
            label = f"`{config}`" if config in tables else f"**`{config}`**"
            lines.append(f"| {label} | {domain} | {table.num_rows:,} | {' | '.join(map(str, counts))} |")
        return lines


def _count(table: pa.Table, number: str) -> int:
    """Number of different premises or hypotheses, without wordings and groups."""
    return int(table.group_by(["subtopic", number]).aggregate([]).num_rows)


def _settled_and_open(table: pa.Table) -> tuple[int, int]:
    """Number of rows whose label follows from the premise, and number of neutral rows."""
    n_open = table.filter(pc.field("label") == LABELS.index("neutral")).num_rows
    return table.num_rows - n_open, n_open


def _gallery(tables: Tables) -> str:
    """The middle stereotypical pair and the first test row of every subtopic, one line per row."""
    lines = ["| subtopic | kind | stance | premise | hypothesis | label |", "|---|---|---|---|---|---|"]
    for subtopic, table in tables.items():
        stereotypical, test = (table.filter(pc.field("kind") == kind) for kind in ("stereotypical", "test"))
        middle = stereotypical["pair_id"][stereotypical.num_rows // 2]
        rows = stereotypical.filter(pc.field("pair_id") == middle).to_pylist() + test.slice(0, 1).to_pylist()
        for row in rows:
            texts = [subtopic, *(row[column] for column in ("kind", "stance", "premise", "hypothesis"))]
            lines.append(f"| {' | '.join([*texts, LABELS[row['label']]])} |")
    return "\n".join(lines)


FOLDER = BBNLIFolder(Path(__file__).parent)
write_folder = FOLDER.write
card_text = FOLDER.card_text
