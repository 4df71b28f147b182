"""EsBBQ and CaBBQ (Ruiz-Fernández et al. 2025): BBQ for Spain, in Spanish and in Catalan."""

from __future__ import annotations

import ast
import csv
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa

from qabias.benchmarks.bbq.harness_logs import OWN_TASK
from qabias.benchmarks.harness_logs import HarnessTask
from qabias.benchmarks.multilingual.benchmark import ORDERS, PublishedQuestions, SetOrigin
from qabias.benchmarks.multilingual.rows import Answer, Item, rows_of, table_of, target_of
from qabias.building.templating import StableRandom

WORDINGS: Mapping[str, tuple[str, ...]] = {
    "es": (
        *("No hay suficiente información", "No hay información suficiente", "No lo sé", "No sé"),
        *("Falta información", "No se puede responder", "No se sabe", "No se puede saber", "No se puede determinar"),
    ),
    "ca": (
        *("No hi ha prou informació", "No hi ha informació suficient", "No ho sé", "No sé"),
        *("Falta informació", "No es pot respondre", "No se sap", "No es pot saber", "No es pot determinar"),
    ),
}
"""The authors' nine wordings of UNKNOWN by language."""

CATEGORIES = (
    *("Age", "DisabilityStatus", "Gender", "LGBTQIA", "Nationality", "PhysicalAppearance", "RaceEthnicity"),
    *("Religion", "SES", "SpanishRegion"),
)
_PEOPLE = ("version", "flipped", "ans0", "ans1", "stated_gender_info")
UNKNOWN = "unknown"
"""The last answer of released rows, without a wording of UNKNOWN."""


def read_items(path: Path) -> Iterator[Item]:
    """The items of one category in file order."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    contexts: dict[str, dict[str, int]] = defaultdict(dict)
    for row in rows:
        if row["context_condition"] == "ambig":
            contexts[row["template_id"]].setdefault(row["context"], len(contexts[row["template_id"]]))
    yield from (_item(row, contexts[row["template_id"]]) for row in rows)


def _item(row: Mapping[str, str], contexts: Mapping[str, int]) -> Item:
    infos = [ast.literal_eval(row[f"answer_info.ans{place}"]) for place in range(3)]
    groups = ast.literal_eval(row["stereotyped_groups"])
    # The last of the words of a person is the group: "m, árabe".
    first, second, third = (
        Answer(row[f"ans{place}"], info[-1].split(",")[-1].strip()) for place, info in enumerate(infos)
    )
    return Item(
        category=row["category"],
        template=f"{int(row['template_id']):02d}",
        set="/".join((*(row[name] for name in _PEOPLE), _context_number(row["context"], contexts))),
        negative=row["question_polarity"] == "neg",
        ambiguous=row["context_condition"] == "ambig",
        context=row["context"],
        question=row["question"],
        answers=(first, second, third),
        right=int(row["label"]),
        target=target_of([not {answer.group}.isdisjoint(groups) for answer in (first, second)]),
        unknown=[answer.text for answer in (first, second, third)].index(UNKNOWN),
        stereotype=row["relevant_social_value"],
        groups=groups,
        label_type="name" if row["proper_nouns_only"] == "True" else "label",
        subcategory=row["subcategory"],
        version=row["version"],
        source="; ".join(ast.literal_eval(row["source"])),
    )


def _context_number(context: str, contexts: Mapping[str, int]) -> str:
    """Number of the ambiguous context at the start of a context, part of a set's name."""
    begin = max((start for start in contexts if context.startswith(start)), key=len, default=None)
    return context if begin is None else str(contexts[begin])


def _why(name: str, value: float, categories: set[str], written: bool) -> list[str]:
    is_wrong = name == "bias_score_disambig" and "PhysicalAppearance" in categories
    return ["the harness uses a column that is wrong for four rows of PhysicalAppearance (template 10)"] * is_wrong


_TASK = HarnessTask(
    document=("instance_id", "question_type", "relevant_social_value", "proper_nouns_only"),
    # Without the third answer, which has no wording.
    columns={
        "example_id": "instance_id",
        **{name: name for name in ("category", "question_polarity", "context_condition", "context", "question")},
        **{name: name for name in ("ans0", "ans1", "label")},
    },
    numbers=("example_id", "label"),
    figures={
        "acc_ambig": "accuracy_ambig",
        "acc_disambig": "accuracy_disambig",
        "bias_score_ambig": "bias_ambig",
        "bias_score_disambig": "-accuracy_cost",
    },
    why=_why,
    options={"answers": "released"},
)
"""The harness's tasks on one of the two sets."""


class SpainQuestions(PublishedQuestions):
    """BBQ for Spain (Ruiz-Fernández et al. 2025) in one language."""

    categories = CATEGORIES
    options: Mapping[str, Sequence[str]] = MappingProxyType({"answers": ORDERS})
    lopsided = True

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.log_readers = (replace(_TASK, unknown=WORDINGS[self.card.codes[0]]), OWN_TASK)

    def table(self, category: str, origin: SetOrigin) -> pa.Table:
        """The released rows of one category, with a wording of UNKNOWN per set by the seed."""
        code = self.card.codes[0]
        path = self.fetch(f"data_{code}/{category}.full.csv", origin)
        parts = (self.name, category)
        wording = partial(StableRandom(*parts, "unknown", origin.seed).choice, WORDINGS[code])
        return table_of(rows_of(read_items(path), origin.shuffle(*parts, "order"), wording))


SPANISH = SpainQuestions("esbbq")
CATALAN = SpainQuestions("cabbq")
