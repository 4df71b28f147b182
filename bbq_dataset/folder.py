"""Writes a dataset folder as the Hub wants it: a card with a YAML head, its Croissant, and Parquet by configuration."""

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

from .builder import ALL, ALL_NLI, FEATURES, NLI_CONFIGS, NLI_FEATURES, NLI_SCHEMA, SCHEMA, Origin
from .fixes import FIXES
from .inference import CONTEXT_STUDY, LABELS

SPLIT = "test"
PARQUET_NAME = f"{SPLIT}-00000-of-00001.parquet"
_CARD = Path(__file__).with_name("card.md")
_CARD_INFERENCE = Path(__file__).with_name("card_inference.md")
_SOURCES = Path(__file__).with_name("card_sources.yaml")
_GALLERY_SETS = 3


def write_folder(
    output: Path, origin: Origin, configs: Sequence[str], progress: Callable[[str], None] = lambda config: None
) -> dict[str, pa.Table]:
    """Build the configurations and write Parquet, card and Croissant to `output`.

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
    questions, inference = (SCHEMA, "Data Fields"), (NLI_SCHEMA, "As inference (NLI)")
    columns = {name: inference if name in (*NLI_CONFIGS, ALL_NLI) else questions for name in names}
    return croissant_text(output, card, columns, version=origin.version, created=_texts(origin)["created"])


def _texts(origin: Origin) -> dict[str, str]:
    """What the card says of the source, filled in."""
    values = {"version": origin.version, "inference_version": origin.inference_version, "seed": origin.seed}
    texts = yaml.safe_load(_SOURCES.read_text(encoding="utf-8"))[origin.source]
    return {part: TextTemplate(text).substitute(values).rstrip() for part, text in texts.items()}


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
    texts = _texts(origin)
    if origin.source != "bundled":
        state = "mended or left out here" if origin.fixes else "kept here as published; `fixes=True` mends them"
        fixes = "\n".join(f"- {fix}" for fix in FIXES)
        texts["limitations"] = f"\nKnown defects of the published data ({state}):\n\n{fixes}"
    questions = {name: table for name, table in tables.items() if name not in NLI_CONFIGS}
    inference = {name: table for name, table in tables.items() if name in NLI_CONFIGS}
    section, citation = _inference_parts(texts.get("inference", ""), inference)
    body = TextTemplate(_CARD.read_text(encoding="utf-8")).substitute(
        {
            **texts,
            "source_title": texts["title"],
            "version": origin.version,
            "statistics": "\n".join(_statistics(ALL, questions)),
            "inference": section,
            "inference_citation": citation,
            "gallery": _gallery(questions) if questions else _inference_gallery(inference),
        }
    )
    head = yaml.safe_dump(
        _yaml_head(origin, texts["title"], tables, sizes), sort_keys=False, allow_unicode=True, width=120
    )
    return f"---\n{head}---\n\n{body}"


def _inference_parts(creation: str, inference: Mapping[str, pa.Table]) -> tuple[str, str]:
    """What the card says of BBQ as inference, and whom it cites for it; nothing for a folder without it."""
    if not inference:
        return "", ""
    filled = TextTemplate(_CARD_INFERENCE.read_text(encoding="utf-8")).substitute(
        creation=creation,
        statistics="\n".join(_statistics(ALL_NLI, inference)),
        example=_inference_gallery(inference),
    )
    section, _, citation = filled.partition("### Citation\n")
    return section, citation


def _statistics(group: str, tables: Mapping[str, pa.Table]) -> list[str]:
    def line(name: str, tables: Sequence[pa.Table]) -> str:
        table = pa.concat_tables(tables)
        columns = ("set_id", "template_id", "social_value")
        counts = (table.num_rows, *(pc.count_distinct(table[column]).as_py() for column in columns))
        return f"| {name} | {' | '.join(f'{count:,}' for count in counts)} |"

    if not tables:
        return ["| none in this folder | | | | |"]
    lines = [line(name, [table]) for name, table in tables.items()]
    grouped = [table for name, table in tables.items() if name != CONTEXT_STUDY]
    return [*lines, line(f"`{group}`", grouped)] if len(grouped) > 1 else lines


def _gallery(tables: Mapping[str, pa.Table]) -> str:
    """Sets of every category, one line each, from templates evenly spaced over the category."""
    parts = [
        "Some sets of every category. In italics stands what the disambiguated context adds to the ambiguous one,\n"
        "in bold the right answer to the question with it. In the ambiguous context the right answer is always the\n"
        "unknown one."
    ]
    for name, table in tables.items():
        lines = [
            "| template | context | negative question | non-negative question | unknown |",
            "|---|---|---|---|---|",
        ]
        lines += [_set_line(table.slice(start, 4).to_pylist()) for start in _evenly_spaced_sets(table)]
        parts.append(f"**{name}**\n\n" + "\n".join(lines))
    return "\n\n".join(parts)


def _evenly_spaced_sets(table: pa.Table) -> list[int]:
    """The first rows of a few sets, each the first one of its template."""
    templates = table["template_id"].to_pylist()
    starts = [row for row in range(0, len(templates), 4) if row == 0 or templates[row] != templates[row - 1]]
    n_shown = min(_GALLERY_SETS, len(starts))
    return [starts[len(starts) * i // n_shown] for i in range(n_shown)]


def _set_line(rows: Sequence[Mapping[str, Any]]) -> str:
    """One set of four: both contexts, and both questions with the right answer."""
    by_kind = {(row["question_polarity"], row["context_condition"]): row for row in rows}
    ambiguous, negative, other = (
        by_kind[key] for key in (("neg", "ambig"), ("neg", "disambig"), ("nonneg", "disambig"))
    )
    facts = negative["context"].removeprefix(ambiguous["context"]).strip()
    answers = [f"{row['question']} **{row[('ans0', 'ans1', 'ans2')[row['label']]]}**" for row in (negative, other)]
    unknown = ambiguous[f"ans{ambiguous['unknown_loc']}"]
    return f"| {negative['template_id']} | {ambiguous['context']} *{facts}* | {' | '.join(answers)} | {unknown} |"


def _inference_gallery(tables: Mapping[str, pa.Table]) -> str:
    """Of every configuration the four hypotheses of a premise, and the first one with the next two premises."""
    lines = ["| configuration | premise | hypothesis | label | agrees with the stereotype |", "|---|---|---|---|---|"]
    for number, (name, table) in enumerate(tables.items()):
        shown = [0, 1, 2, 3, 4, 8] if number == 0 else [0, 1]
        for row in table.take(shown).to_pylist():
            labels = " | ".join(LABELS[row[column]] for column in ("label", "bias_label"))
            lines.append(f"| {name} | {row['premise']} | {row['hypothesis']} | {labels} |")
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
        "size_categories": [size_category(n_rows)],
        "source_datasets": ["original"] if origin.source == "bundled" else ["extended"],
        "task_categories": [
            "multiple-choice",
            "question-answering",
            *(["text-classification"] if has_inference else []),
        ],
        "task_ids": ["multiple-choice-qa", *(["natural-language-inference"] if has_inference else [])],
        # The bundled texts were written with the help of language models, and nobody has labelled or rated them.
        "annotations_creators": ["no-annotation" if origin.source == "bundled" else "expert-generated"],
        "language_creators": ["machine-generated" if origin.source == "bundled" else "expert-generated"],
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
    features = NLI_FEATURES if names[0] in NLI_CONFIGS else FEATURES
    n_rows, n_bytes = (sum(getattr(table, count) for table in tables) for count in ("num_rows", "nbytes"))
    return dataset_info(features, SPLIT, n_rows, n_bytes, size)
