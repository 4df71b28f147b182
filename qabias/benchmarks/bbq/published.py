"""The answers of the models of Parrish et al. (2022), as their authors published them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qabias.answers import NO_ANSWER
from qabias.benchmarks.base import External
from qabias.building.sources import fetch
from qabias.errors import QabiasError
from qabias.support.table_files import read_table

REPOSITORY = "nyu-mll/BBQ"

SOURCE = "release"
"""The source of the models' questions."""

UNIFIEDQA = "unifiedqa-11b"
FORMATS = {"race": "race_unifiedqa", "arc": "arc_unifiedqa", "qonly": "question_only_unifiedqa"}
"""Prompts in the authors' columns, and their names here."""

_OUTPUT = re.compile(r"(?P<model>.+)_pred_(?P<prompt>[a-z]+)")
# Models in the authors' files, and their names here.
_MODELS = {"unifiedqa-t5-11b": UNIFIEDQA}
_LOGITS = ("ans0", "ans1", "ans2")
_LOGIT_COLUMNS = ("index", "cat", "model", *_LOGITS)
_LOGIT_FORMAT = "pair"


def recognise(table: pa.Table) -> list[External]:
    """The answers in a table of one of the authors' two forms; none in any other table."""
    names = set(table.column_names)
    if names >= set(_LOGIT_COLUMNS):
        return list(_of_logits(table))
    outputs = {name: _OUTPUT.fullmatch(name) for name in table.column_names}
    return [
        External(
            _answers(table["category"], table["example_id"], table[name]),
            model=_MODELS.get(match["model"], match["model"]),
            source=SOURCE,
            format=FORMATS.get(match["prompt"], ""),
            norm="released",
        )
        for name, match in outputs.items()
        if match and {"category", "example_id"} <= names
    ]


def published_answers(model: str, categories: Sequence[str]) -> list[External]:
    """A model's answers to some categories, from the pinned and verified files."""
    if model == UNIFIEDQA:
        paths = [f"results/UnifiedQA/preds_{category}.jsonl" for category in categories]
    else:
        paths = ["results/RoBERTa_and_DeBERTaV3/df_bbq.csv"]
    tables = [read_table(fetch(REPOSITORY, path)) for path in paths]
    columns = [name for name in tables[0].column_names if pa.types.is_primitive(tables[0].schema.field(name).type)]
    texts = [name for name in tables[0].column_names if pa.types.is_string(tables[0].schema.field(name).type)]
    external = recognise(pa.concat_tables([table.select([*columns, *texts]) for table in tables]))
    chosen = [one for one in external if one.model == model]
    if external and not chosen:
        there = ", ".join(dict.fromkeys(one.model for one in external))
        raise QabiasError(f"{', '.join(paths)}: no answers of {model}.", f"Use one of {there}.")
    wanted = pa.array(list(categories))
    return [replace(one, answers=one.answers.filter(pc.is_in(one.answers["category"], wanted))) for one in chosen]


def _of_logits(table: pa.Table) -> Iterator[External]:
    """Answers by model. Equal largest logits are no answer, as in the authors' script."""
    logits = np.stack([table[name].to_numpy() for name in _LOGITS], axis=1)
    best = logits.max(axis=1, keepdims=True)
    unique = (logits == best).sum(axis=1) == 1
    weights = np.exp(logits - best)
    likely = pa.chunked_array([pa.array((weights / weights.sum(axis=1, keepdims=True)).tolist())])
    chosen = pa.array(np.where(unique, logits.argmax(axis=1), NO_ANSWER))
    for model in pc.unique(table["model"]).to_pylist():
        of_model = pc.equal(table["model"], model)
        rows = table.filter(of_model)
        answers = _answers(rows["cat"], rows["index"], pa.chunked_array([chosen]).filter(of_model))
        answers = answers.append_column("probabilities", likely.filter(of_model))
        yield External(answers, model=_MODELS.get(model, model), source=SOURCE, format=_LOGIT_FORMAT)


def _answers(category: pa.ChunkedArray, example_id: pa.ChunkedArray, answers: pa.ChunkedArray) -> pa.Table:
    return pa.table({"category": category, "example_id": example_id, "prediction": answers})
