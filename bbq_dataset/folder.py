"""Writes a dataset folder as the Hub wants it: a card with a YAML head, and Parquet under `data/<config>/`."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from string import Template as TextTemplate
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml

from qabias.files import write_atomically

from .builder import ALL, FEATURES, Origin
from .fixes import FIXES

SPLIT = "test"
PARQUET_NAME = f"{SPLIT}-00000-of-00001.parquet"
_CARD = Path(__file__).with_name("card.md")

_SOURCES = Path(__file__).with_name("card_sources.yaml")


def write_folder(
    output: Path, origin: Origin, categories: Sequence[str], progress: Callable[[str], None] = lambda category: None
) -> dict[str, pa.Table]:
    """Build the categories and write Parquet and card to `output`.

    All categories are built before the first file is written, and every file appears whole or not at all.

    Args:
        output: Folder to write to; other files in it are left alone.
        origin: Where the texts come from.
        categories: Categories to build.
        progress: Called with every category that has been built.

    Returns:
        The tables by category.

    Raises:
        QabiasError: If a category cannot be built.
        OSError: If the folder cannot be written.
    """
    tables = {}
    for category in categories:
        tables[category] = origin.table(category)
        progress(category)
    for category, table in tables.items():
        write_atomically(output / "data" / category / PARQUET_NAME, partial(_write_parquet, table))
    sizes = {category: (output / "data" / category / PARQUET_NAME).stat().st_size for category in tables}
    card = card_text(origin, tables, sizes)
    write_atomically(output / "README.md", lambda path: path.write_text(card, encoding="utf-8"))
    return tables


def _write_parquet(table: pa.Table, path: Path) -> None:
    # No schema metadata, so that every version of `datasets` reads the features from the card.
    pq.write_table(table.replace_schema_metadata(None), path, compression="zstd", compression_level=19)


def card_text(origin: Origin, tables: Mapping[str, pa.Table], sizes: Mapping[str, int]) -> str:
    """The dataset card: YAML head and text, with every figure counted from the tables.

    Args:
        origin: Where the texts come from.
        tables: Examples by category.
        sizes: Bytes of the Parquet file of each category.
    """
    values = {"version": origin.version, "seed": origin.seed}
    texts = yaml.safe_load(_SOURCES.read_text(encoding="utf-8"))[origin.source]
    limitations = ""
    if origin.source == "bundled":
        limitations = "- The bundled texts have not been rated by people; treat their scores as preliminary.\n"
    else:
        state = "mended or left out here" if origin.fixes else "kept here as published; `fixes=True` mends them"
        limitations = f"\nKnown defects of the published data ({state}):\n\n" + "\n".join(f"- {fix}" for fix in FIXES)
    body = TextTemplate(_CARD.read_text(encoding="utf-8")).substitute(
        source_title=texts["title"],
        summary=TextTemplate(texts["summary"]).substitute(values),
        creation=TextTemplate(texts["creation"]).substitute(values),
        statistics="\n".join(_statistics(tables)),
        limitations=limitations.rstrip(),
        example=_example(next(iter(tables.values()))),
    )
    head = yaml.safe_dump(
        _yaml_head(origin, texts["title"], tables, sizes), sort_keys=False, allow_unicode=True, width=120
    )
    return f"---\n{head}---\n\n{body}"


def _statistics(tables: Mapping[str, pa.Table]) -> list[str]:
    def line(name: str, table: pa.Table) -> str:
        n_sets, n_templates = (pc.count_distinct(table[column]).as_py() for column in ("set_id", "template_id"))
        return f"| {name} | {table.num_rows:,} | {n_sets:,} | {n_templates} |"

    lines = [line(category, table) for category, table in tables.items()]
    return [*lines, line(f"`{ALL}`", pa.concat_tables(tables.values()))] if len(tables) > 1 else lines


def _example(table: pa.Table) -> str:
    """The first set of a table, one line an example."""
    rows = table.slice(0, 4).to_pylist()
    lines = ["| context | question | answers (right one in bold) |", "|---|---|---|"]
    for row in rows:
        answers = [f"**{row[f'ans{i}']}**" if i == row["label"] else row[f"ans{i}"] for i in range(3)]
        lines.append(f"| {row['context']} | {row['question']} | {' / '.join(answers)} |")
    return "\n".join(lines)


def _yaml_head(origin: Origin, title: str, tables: Mapping[str, pa.Table], sizes: Mapping[str, int]) -> dict[str, Any]:
    n_rows = sum(table.num_rows for table in tables.values())
    configs = {category: [category] for category in tables}
    if len(tables) > 1:
        configs = {ALL: list(tables), **configs}
    return {
        "language": ["en"],
        "license": "apache-2.0" if origin.source == "bundled" else "cc-by-4.0",
        "pretty_name": f"BBQ ({title})",
        "size_categories": ["10K<n<100K" if n_rows >= 10_000 else "1K<n<10K" if n_rows >= 1_000 else "n<1K"],
        "source_datasets": ["original"] if origin.source == "bundled" else ["extended"],
        "task_categories": ["multiple-choice", "question-answering"],
        "task_ids": ["multiple-choice-qa"],
        "annotations_creators": ["expert-generated"],
        "language_creators": ["expert-generated"],
        "tags": ["bias", "fairness", "social-bias", "stereotypes", "evaluation"],
        "configs": [
            {
                "config_name": name,
                **({"default": True} if name == ALL or len(tables) == 1 else {}),
                "data_files": [
                    {"split": SPLIT, "path": [f"data/{category}/{SPLIT}-*.parquet" for category in categories]}
                ],
            }
            for name, categories in configs.items()
        ],
        "dataset_info": [
            {"config_name": name, **_dataset_info([tables[c] for c in categories], sum(sizes[c] for c in categories))}
            for name, categories in configs.items()
        ],
    }


def _dataset_info(tables: Sequence[pa.Table], size: int) -> dict[str, Any]:
    n_bytes = sum(table.nbytes for table in tables)
    split = datasets.SplitInfo(name=SPLIT, num_bytes=n_bytes, num_examples=sum(table.num_rows for table in tables))
    info = datasets.DatasetInfo(
        features=FEATURES, splits=datasets.SplitDict({SPLIT: split}), download_size=size, dataset_size=n_bytes
    )
    # The form in which `datasets` itself writes a card's head.
    return dict(info._to_yaml_dict())
