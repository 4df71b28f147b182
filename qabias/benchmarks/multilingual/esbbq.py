"""EsBBQ and CaBBQ (Ruiz-Fernández et al. 2025): BBQ for Spain, in Spanish and in Catalan."""

from __future__ import annotations

import ast
import csv
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from qabias.benchmarks.base import ExternalAnswers, Logged, OtherFigure
from qabias.benchmarks.bbq.logs.lm_eval import TIES, config_of
from qabias.benchmarks.multilingual.benchmark import ORDERS, PublishedQuestions, SetOrigin
from qabias.benchmarks.multilingual.rows import Answer, Item, rows_of, table_of, target_of
from qabias.benchmarks.task_logs import NO_ANSWER, about_ties, column, columns_of, first_document, likeliest, of_sample
from qabias.building.templating import StableRandom
from qabias.errors import QabiasError
from qabias.logs import Log, Sample
from qabias.logs.lm_eval_samples import read_options

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


# Logs of lm-evaluation-harness

_DOCUMENT = ("instance_id", "question_type", "relevant_social_value", "proper_nouns_only")
"""Columns that only the released rows of the two sets have."""

# The texts and the right answer, without the third answer: it has no wording.
_COMPARED = ("question_polarity", "context_condition", "context", "question", "ans0", "ans1", "label")
_PERSONS = 2

_FIGURES = {"acc_ambig": "accuracy_ambig", "acc_disambig": "accuracy_disambig", "bias_score_ambig": "bias_ambig"}
_TURNED = "bias_score_disambig"
"""The harness's score that is `accuracy_cost` with the opposite sign."""

_MISLABELLED = "the harness uses a column that is wrong for four rows of PhysicalAppearance (template 10)"


def _logged(log: Log, benchmark: PublishedQuestions, wordings: Sequence[str]) -> Logged | None:
    """The answers in a log of the harness's tasks on one of the two sets, or None."""
    if not set(_DOCUMENT) <= first_document(log).keys():
        return None
    if tuple(read_options(next(log.samples()))[_PERSONS:]) != tuple(wordings):
        return None  # in the other language
    rows: list[dict[str, Any]] = []
    answers: list[int] = []
    for sample in log.samples():
        names = ("category", "instance_id", *_COMPARED)
        with of_sample(log, sample):
            row = {name: column(log, sample, name) for name in names}
            row["example_id"] = int(row.pop("instance_id"))
            row["label"] = int(row["label"])
            rows.append(row)
            answers.append(likeliest(sample.loglikelihoods, _places(log, sample, wordings)))
    columns = columns_of(rows, rows[0])
    n_ties = answers.count(NO_ANSWER)
    keys = {name: columns[name] for name in ("category", "example_id")}
    predicted = pa.table({**keys, "prediction": answers})
    return Logged(
        external=ExternalAnswers(log.model, "", "none", benchmark.sources[0], predicted),
        config=config_of(set(columns["category"]), benchmark.configs),
        options={"answers": "released"},
        references=pa.table(columns),
        figures=tuple(_figures(log, set(columns["category"]), n_ties)),
        notes=(
            f"UNKNOWN had {len(wordings)} wordings and each person one, which favors UNKNOWN. Do not compare with "
            "qabias runs.",
            *about_ties(n_ties),
        ),
    )


def _places(log: Log, sample: Sample, wordings: Sequence[str]) -> list[int]:
    options = read_options(sample)
    persons = [str(column(log, sample, f"ans{place}")).strip() for place in range(_PERSONS)]
    if list(options) != [*persons, *wordings]:
        problem = f"{log.called}: {sample.where}: options are not two persons and UNKNOWN: {', '.join(options)}."
        raise QabiasError(problem, "Use the harness's task.")
    return [*range(_PERSONS), *[_PERSONS] * len(wordings)]


def _figures(log: Log, categories: set[str], n_ties: int) -> list[OtherFigure]:
    """The scores of the harness, with their counterparts here."""
    figures = []
    for name, value in log.figures.items():
        ties = [TIES] if n_ties else []
        if name == _TURNED:
            reasons = [*([_MISLABELLED] if "PhysicalAppearance" in categories else []), *ties]
            figures.append(OtherFigure(f"-{name}", -value, ("accuracy_cost",), "; ".join(reasons)))
        elif name in _FIGURES:
            figures.append(OtherFigure(name, value, (_FIGURES[name],), "; ".join(ties)))
        else:
            figures.append(OtherFigure(name, value, why="only this task has it"))
    return figures


class SpainQuestions(PublishedQuestions):
    """BBQ for Spain (Ruiz-Fernández et al. 2025) in one language."""

    categories = CATEGORIES
    options: Mapping[str, Sequence[str]] = MappingProxyType({"answers": ORDERS})
    lopsided = True

    def logged(self, log: Log, hints: Mapping[str, str]) -> Logged | None:
        """The answers in a log of the harness's or a qabias task on the set."""
        return _logged(log, self, WORDINGS[self.card.codes[0]]) or super().logged(log, hints)

    def table(self, category: str, origin: SetOrigin) -> pa.Table:
        """The released rows of one category, with a wording of UNKNOWN per set by the seed."""
        code = self.card.codes[0]
        path = self.fetch(f"data_{code}/{category}.full.csv", origin)
        parts = (self.name, category)
        wording = partial(StableRandom(*parts, "unknown", origin.seed).choice, WORDINGS[code])
        return table_of(rows_of(read_items(path), origin.shuffle(*parts, "order"), wording))


SPANISH = SpainQuestions("esbbq")
CATALAN = SpainQuestions("cabbq")
