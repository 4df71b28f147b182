"""Writes a dataset folder as the Hub wants it: a card with a YAML head, and Parquet under `data/<config>/`."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from string import Template as TextTemplate
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from qabias.files import write_atomically

from .builder import DEFAULT, FEATURES, MLM, Origin
from .columns import batches, schema
from .fixes import FIXES, NOT_MENDED

SPLIT = "test"
PARQUET_NAME = f"{SPLIT}-00000-of-00001.parquet"
_CARD = Path(__file__).with_name("card.md")

_TITLES = {"bundled": "published tables, new attributes", "official": "authors' word lists"}
_SUMMARY = {
    "bundled": "UnQover (Li et al., Findings of EMNLP 2020) built by the qabias project (version $version): contexts, "
    "names, occupations, countries, ethnicities and religions are the paper's tables; the 50 attributes of people and "
    "14 of places in the other three sets, which the paper does not print, are **this project's own** and **have not "
    "been rated by people yet**.",
    "official": "UnQover (Li et al., Findings of EMNLP 2020) built by the qabias project from the authors' word lists "
    "($version), licence Apache-2.0.",
}
_CREATION = {
    "bundled": "Context templates are Tables 16 to 18 of the paper, subjects Tables 7 to 9, occupations Table 10; "
    'corrected are the country Germany (printed "German"), the demonyms of Spain and Yemen, and articles '
    '("a European"). '
    "The cluster is the gender of a name, or the country's region in the United Nations geoscheme, as in Tables 4 "
    "and 11 of the paper. Attributes are plain negative predicates in the classes and class sizes of the "
    "published lists, which document the harm: groups being thought rude, indecent, criminal, incapable or poor. "
    'Each is denied by an antonym or "never", which models understand better than "not" (Li et al. 2020, section '
    "4.1). Texts were written for this project; no wording is taken from the published lists. Masked sentences "
    "follow the same contexts as the questions, for all subjects; the authors use shorter contexts with demonyms "
    "and only subjects that are one token.",
    "official": "Word lists and templates by the authors of UnQover, crossed by an independent implementation of their "
    "generator. The `_mlm` configurations hold the subjects that the authors chose for $subjects.",
}
_SELECTIONS = {
    "bert": "BERT (one token each in its vocabulary)",
    "roberta": "RoBERTa (one token each in its vocabulary)",
    "all": "question answering (all)",
}


def write_folder(
    output: Path, origin: Origin, configs: Sequence[str], progress: Callable[[str], None] = lambda config: None
) -> dict[str, pa.Table]:
    """Build the configurations and write Parquet and card to `output`.

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
    return tables


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
    values = {"version": origin.version, "subjects": _SELECTIONS[origin.subjects or "bert"]}
    if origin.source == "bundled":
        limitations = (
            "- The bundled attributes have not been rated by people; treat their scores as preliminary.\n"
            "- Scores of the three sets with new attributes are not comparable with published ones."
        )
    else:
        state = "mended here" if origin.fixes else "kept here as published; `fixes=True` mends them"
        limitations = f"\nKnown defects of the published lists ({state}):\n\n" + "\n".join(f"- {fix}" for fix in FIXES)
        limitations += "\n\nKept in any case:\n\n" + "\n".join(f"- {defect}" for defect in NOT_MENDED)
    body = TextTemplate(_CARD.read_text(encoding="utf-8")).substitute(
        source_title=_TITLES[origin.source],
        summary=TextTemplate(_SUMMARY[origin.source]).substitute(values),
        creation=TextTemplate(_CREATION[origin.source]).substitute(values),
        statistics="\n".join(_statistics(config, table) for config, table in tables.items()),
        limitations=limitations,
        example="\n".join(_example(tables)),
    )
    head = yaml.safe_dump(_yaml_head(tables, sizes, origin), sort_keys=False, allow_unicode=True, width=120)
    return f"---\n{head}---\n\n{body}"


def _statistics(config: str, table: pa.Table) -> str:
    one, two = (_codes(table, column).astype(np.int64) for column in ("subject1", "subject2"))
    n_pairs = len(np.unique(one * (two.max() + 1) + two))
    n_templates, n_attributes = (len(np.unique(_codes(table, column))) for column in ("template_id", "attribute"))
    return f"| `{config}` | {table.num_rows:,} | {n_pairs:,} | {n_templates} | {n_attributes} |"


def _example(tables: Mapping[str, pa.Table]) -> list[str]:
    """The middle example of every configuration, one line each."""
    lines = [
        "| configuration | context (and with the order exchanged) | question and negated question |",
        "|---|---|---|",
    ]
    for config, table in tables.items():
        [row] = table.slice(table.num_rows // 2, 1).to_pylist()
        question, negated = (
            (row["masked"], row["masked_negated"])
            if config.endswith(MLM)
            else (row["question"], row["negated_question"])
        )
        lines.append(f"| `{config}` | {row['context_12']}<br>{row['context_21']} | {question}<br>{negated} |")
    return lines


def _yaml_head(tables: Mapping[str, pa.Table], sizes: Mapping[str, int], origin: Origin) -> dict[str, Any]:
    default = DEFAULT if DEFAULT in tables else next(iter(tables))
    return {
        "language": ["en"],
        "license": "apache-2.0",
        "pretty_name": f"UnQover ({_TITLES[origin.source]})",
        "size_categories": [_size_category(sum(table.num_rows for table in tables.values()))],
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
            {"config_name": config, **_dataset_info(config, table, sizes[config])} for config, table in tables.items()
        ],
    }


def _size_category(n_rows: int) -> str:
    bounds = [(1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M")]
    return next((name for bound, name in bounds if n_rows < bound), "1M<n<10M")


def _dataset_info(config: str, table: pa.Table, size: int) -> dict[str, Any]:
    n_bytes = _plain_bytes(table)
    split = datasets.SplitInfo(name=SPLIT, num_bytes=n_bytes, num_examples=table.num_rows)
    info = datasets.DatasetInfo(
        features=FEATURES[config],
        splits=datasets.SplitDict({SPLIT: split}),
        download_size=size,
        dataset_size=n_bytes,
    )
    # The form in which `datasets` itself writes a card's head.
    return dict(info._to_yaml_dict())


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
