"""The dataset folder of BBQ: the parts of its card about questions and inference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template as TextTemplate
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from qabias.building.folder import PARQUET_NAME, DatasetFolder, Tables
from qabias.building.origin import BUNDLED

from .fixes import FIXES
from .inference import CONTEXT_STUDY, LABELS
from .origin import ALL, ALL_NLI, NLI_CONFIGS, Origin

if TYPE_CHECKING:
    import datasets

__all__ = ["FOLDER", "PARQUET_NAME", "card_text", "write_folder"]

_CARD_INFERENCE = Path(__file__).with_name("card_inference.md")
_GALLERY_SETS = 3


class BBQFolder(DatasetFolder[Origin]):
    """One table per category, and one per category of BBQ as inference."""

    name = "BBQ"

    def _configurations(self, names: Sequence[str]) -> dict[str, list[str]]:
        configurations = {}
        for group, members in zip((ALL, ALL_NLI), _questions_and_inference(names), strict=True):
            grouped = [name for name in members if name != CONTEXT_STUDY]
            if len(grouped) > 1:
                configurations[group] = grouped
            configurations.update({name: [name] for name in members})
        return configurations

    def _features(self, name: str) -> datasets.Features:
        from .builder import FEATURES, NLI_FEATURES  # which imports `datasets`

        return NLI_FEATURES if name in NLI_CONFIGS else FEATURES

    def _source_values(self, origin: Origin) -> dict[str, Any]:
        return {"inference_version": origin.inference_version, "seed": origin.seed}

    def _body_values(self, origin: Origin, texts: Mapping[str, str], tables: Tables) -> dict[str, Any]:
        questions, inference = (
            {name: tables[name] for name in names} for names in _questions_and_inference(list(tables))
        )
        section, citation = _inference_parts(texts.get("inference", ""), inference)
        values = {
            "statistics": "\n".join(_statistics(ALL, questions)),
            "inference": section,
            "inference_citation": citation,
            "gallery": _gallery(questions) if questions else _inference_gallery(inference),
        }
        if origin.source != BUNDLED:
            state = "fixed or dropped here" if origin.fixes else "kept here as published; `fixes=True` fixes them"
            defects = "\n".join(f"- {fix}" for fix in FIXES)
            values["limitations"] = f"\nKnown defects of the published data ({state}):\n\n{defects}"
        return values

    def _head_fields(self, origin: Origin, names: Sequence[str]) -> dict[str, Any]:
        _, inference = _questions_and_inference(names)
        return {
            "license": "apache-2.0" if origin.source == BUNDLED else "cc-by-4.0",
            "task_categories": [
                "multiple-choice",
                "question-answering",
                *(["text-classification"] if inference else []),
            ],
            "task_ids": ["multiple-choice-qa", *(["natural-language-inference"] if inference else [])],
        }


def _questions_and_inference(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """The categories among some tables, and the tables of BBQ as inference."""
    return [name for name in names if name not in NLI_CONFIGS], [name for name in names if name in NLI_CONFIGS]


def _inference_parts(creation: str, inference: Tables) -> tuple[str, str]:
    """The section about BBQ as inference and its citation, empty for a folder without it."""
    if not inference:
        return "", ""
    filled = TextTemplate(_CARD_INFERENCE.read_text(encoding="utf-8")).substitute(
        creation=creation,
        statistics="\n".join(_statistics(ALL_NLI, inference)),
        example=_inference_gallery(inference),
    )
    section, _, citation = filled.partition("### Citation\n")
    return section, citation


def _statistics(group: str, tables: Tables) -> list[str]:
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


def _gallery(tables: Tables) -> str:
    """Sets of every category, one line each, from templates evenly spaced over the category."""
    parts = [
        "Some sets of every category. Italics show what the disambiguated context adds to the ambiguous one, bold the\n"
        "right answer to the question with it. In the ambiguous context UNKNOWN is always right."
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
    """The first row of the first set of templates evenly spaced over the category."""
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


def _inference_gallery(tables: Tables) -> str:
    """The four hypotheses of a premise of the first config, and some rows of every config."""
    lines = ["| configuration | premise | hypothesis | label | agrees with the stereotype |", "|---|---|---|---|---|"]
    for number, (name, table) in enumerate(tables.items()):
        shown = [0, 1, 2, 3, 4, 8] if number == 0 else [0, 1]
        for row in table.take(shown).to_pylist():
            labels = " | ".join(LABELS[row[column]] for column in ("label", "bias_label"))
            lines.append(f"| {name} | {row['premise']} | {row['hypothesis']} | {labels} |")
    return "\n".join(lines)


FOLDER = BBQFolder(Path(__file__).parent)
write_folder = FOLDER.write
card_text = FOLDER.card_text
