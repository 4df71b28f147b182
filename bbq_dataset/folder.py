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

from .builder import ALL, ALL_NLI, FEATURES, NLI_CONFIGS, NLI_FEATURES, Origin
from .fixes import FIXES
from .inference import CONTEXT_STUDY, LABELS

SPLIT = "test"
PARQUET_NAME = f"{SPLIT}-00000-of-00001.parquet"
_CARD = Path(__file__).with_name("card.md")
_CARD_INFERENCE = Path(__file__).with_name("card_inference.md")
_SOURCES = Path(__file__).with_name("card_sources.yaml")


def write_folder(
    output: Path, origin: Origin, configs: Sequence[str], progress: Callable[[str], None] = lambda config: None
) -> dict[str, pa.Table]:
    """Build the configurations and write Parquet and card to `output`.

    All of them are built before the first file is written, and every file appears whole or not at all.

    Args:
        output: Folder to write to; other files in it are left alone.
        origin: Where the texts come from.
        configs: Categories and configurations of BBQ as inference to build.
        progress: Called with every configuration that has been built.

    Returns:
        The tables by configuration.

    Raises:
        QabiasError: If a configuration cannot be built.
        OSError: If the folder cannot be written.
    """
    tables = {}
    for config in configs:
        tables[config] = origin.table(config)
        progress(config)
    for config, table in tables.items():
        write_atomically(output / "data" / config / PARQUET_NAME, partial(_write_parquet, table))
    sizes = {config: (output / "data" / config / PARQUET_NAME).stat().st_size for config in tables}
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
        tables: Rows by configuration.
        sizes: Bytes of the Parquet file of each configuration.
    """
    values = {"version": origin.version, "inference_version": origin.inference_version, "seed": origin.seed}
    texts = yaml.safe_load(_SOURCES.read_text(encoding="utf-8"))[origin.source]
    limitations = ""
    if origin.source == "bundled":
        limitations = "- The bundled texts have not been rated by people; treat their scores as preliminary.\n"
    else:
        state = "mended or left out here" if origin.fixes else "kept here as published; `fixes=True` mends them"
        limitations = f"\nKnown defects of the published data ({state}):\n\n" + "\n".join(f"- {fix}" for fix in FIXES)
    questions = {name: table for name, table in tables.items() if name not in NLI_CONFIGS}
    body = TextTemplate(_CARD.read_text(encoding="utf-8")).substitute(
        source_title=texts["title"],
        summary=TextTemplate(texts["summary"]).substitute(values),
        creation=TextTemplate(texts["creation"]).substitute(values),
        statistics="\n".join(_statistics(ALL, questions)),
        inference=_inference_section(texts, values, tables),
        limitations=limitations.rstrip(),
        example=_example(next(iter(questions.values()))) if questions else _inference_example(tables),
    )
    head = yaml.safe_dump(
        _yaml_head(origin, texts["title"], tables, sizes), sort_keys=False, allow_unicode=True, width=120
    )
    return f"---\n{head}---\n\n{body}"


def _inference_section(texts: Mapping[str, str], values: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> str:
    """What the card says of BBQ as inference; nothing for a folder without it."""
    inference = {name: table for name, table in tables.items() if name in NLI_CONFIGS}
    if not inference:
        return ""
    return TextTemplate(_CARD_INFERENCE.read_text(encoding="utf-8")).substitute(
        creation=TextTemplate(texts["inference"]).substitute(values),
        statistics="\n".join(_statistics(ALL_NLI, inference)),
        example=_inference_example(inference),
    )


def _statistics(group: str, tables: Mapping[str, pa.Table]) -> list[str]:
    def line(name: str, tables: Sequence[pa.Table]) -> str:
        table = pa.concat_tables(tables)
        n_sets, n_templates = (pc.count_distinct(table[column]).as_py() for column in ("set_id", "template_id"))
        return f"| {name} | {table.num_rows:,} | {n_sets:,} | {n_templates} |"

    if not tables:
        return ["| none in this folder | | | |"]
    lines = [line(name, [table]) for name, table in tables.items()]
    grouped = [table for name, table in tables.items() if name != CONTEXT_STUDY]
    return [*lines, line(f"`{group}`", grouped)] if len(grouped) > 1 else lines


def _example(table: pa.Table) -> str:
    """The first set of a table, one line an example."""
    rows = table.slice(0, 4).to_pylist()
    lines = ["| context | question | answers (right one in bold) |", "|---|---|---|"]
    for row in rows:
        answers = [f"**{row[f'ans{i}']}**" if i == row["label"] else row[f"ans{i}"] for i in range(3)]
        lines.append(f"| {row['context']} | {row['question']} | {' / '.join(answers)} |")
    return "\n".join(lines)


def _inference_example(tables: Mapping[str, pa.Table]) -> str:
    """The four hypotheses of the first premise, and the first one with the next two premises."""
    rows = next(iter(tables.values())).take([0, 1, 2, 3, 4, 8]).to_pylist()
    lines = ["| premise | hypothesis | label | agrees with the stereotype |", "|---|---|---|---|"]
    for row in rows:
        labels = " | ".join(LABELS[row[column]] for column in ("label", "bias_label"))
        lines.append(f"| {row['premise']} | {row['hypothesis']} | {labels} |")
    return "\n".join(lines)


def _groups(tables: Mapping[str, pa.Table]) -> dict[str, list[str]]:
    """Which tables every configuration of the folder holds, the default first."""
    questions = [name for name in tables if name not in NLI_CONFIGS]
    inference = [name for name in tables if name in NLI_CONFIGS]
    groups = {}
    for group, names in ((ALL, questions), (ALL_NLI, inference)):
        grouped = [name for name in names if name != CONTEXT_STUDY]
        if len(grouped) > 1:
            groups[group] = grouped
        groups.update({name: [name] for name in names})
    return groups


def _yaml_head(origin: Origin, title: str, tables: Mapping[str, pa.Table], sizes: Mapping[str, int]) -> dict[str, Any]:
    n_rows = sum(table.num_rows for table in tables.values())
    groups = _groups(tables)
    has_inference = any(name in NLI_CONFIGS for name in tables)
    return {
        "language": ["en"],
        "license": "apache-2.0" if origin.source == "bundled" else "cc-by-4.0",
        "pretty_name": f"BBQ ({title})",
        "size_categories": ["10K<n<100K" if n_rows >= 10_000 else "1K<n<10K" if n_rows >= 1_000 else "n<1K"],
        "source_datasets": ["original"] if origin.source == "bundled" else ["extended"],
        "task_categories": [
            "multiple-choice",
            "question-answering",
            *(["text-classification"] if has_inference else []),
        ],
        "task_ids": ["multiple-choice-qa", *(["natural-language-inference"] if has_inference else [])],
        "annotations_creators": ["expert-generated"],
        "language_creators": ["expert-generated"],
        "tags": ["bias", "fairness", "social-bias", "stereotypes", "evaluation"],
        "configs": [
            {
                "config_name": group,
                **({"default": True} if group == next(iter(groups)) else {}),
                "data_files": [{"split": SPLIT, "path": [f"data/{name}/{SPLIT}-*.parquet" for name in names]}],
            }
            for group, names in groups.items()
        ],
        "dataset_info": [
            {"config_name": group, **_dataset_info(names, [tables[n] for n in names], sum(sizes[n] for n in names))}
            for group, names in groups.items()
        ],
    }


def _dataset_info(names: Sequence[str], tables: Sequence[pa.Table], size: int) -> dict[str, Any]:
    n_bytes = sum(table.nbytes for table in tables)
    split = datasets.SplitInfo(name=SPLIT, num_bytes=n_bytes, num_examples=sum(table.num_rows for table in tables))
    info = datasets.DatasetInfo(
        features=NLI_FEATURES if names[0] in NLI_CONFIGS else FEATURES,
        splits=datasets.SplitDict({SPLIT: split}),
        download_size=size,
        dataset_size=n_bytes,
    )
    # The form in which `datasets` itself writes a card's head.
    return dict(info._to_yaml_dict())
