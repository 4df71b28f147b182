"""The items for raters, and their key.

Questions with three answers follow Parrish et al. (2022, section 4 and appendix D): one item per condition of every
template, and filler items that break the pattern of BBQ. Pairs of premise and hypothesis follow Akyurek et al. (2022,
section 2.2.1): a fifth of the pairs, before words are exchanged.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import yaml

from qabias.errors import QabiasError
from qabias.share.bbnli_dataset.pairs import LABELS
from qabias.support.files import write_text
from qabias.support.outputs import check_file, is_same, same_bytes

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_T = TypeVar("_T")

FILLERS = Path(__file__).parent / "fillers.yaml"
# "A minimum of 13% of the items are filler items" (appendix D).
FILLER_SHARE = 0.13
MOST_FILLERS = 10_000
# Common first names for the filler scenes.
NAMES = ("Alex", "Blair", "Casey", "Drew", "Ellis", "Hayden", "Morgan", "Parker", "Quinn", "Riley", "Sidney", "Terry")
UNKNOWN = "Not enough information"


@dataclass(frozen=True)
class Item:
    """A question for raters, with its entry in the key."""

    item_id: str
    context: str
    question: str
    ans0: str
    ans1: str
    ans2: str
    label: int
    kind: str
    template_id: str
    condition: str
    source_id: str


NEEDED = (
    *("example_id", "category", "template_id", "question_polarity", "context_condition"),
    *("context", "question", "ans0", "ans1", "ans2", "label"),
)
"""Columns of questions with three answers: both questions about an ambiguous and a disambiguated context."""

SHOWN = ("item_id", "context", "question", "ans0", "ans1", "ans2")
KEY = tuple(field.name for field in fields(Item) if field.name not in SHOWN[1:])

PAIR = "pair"
"""The kind of a pair in the key, which distinguishes ratings of pairs and questions."""

PAIR_SHARE = 0.2
"""Default share of the pairs to draw."""

PAIR_SHOWN = ("item_id", "premise", "hypothesis", "ans0", "ans1", "ans2")


@dataclass(frozen=True)
class PairItem:
    """A pair for raters, with its entry in the key."""

    item_id: str
    premise: str
    hypothesis: str
    ans0: str
    ans1: str
    ans2: str
    label: int
    kind: str
    template_id: str
    condition: str
    source_id: str


def draw_items(
    table: pa.Table,
    seed: int = 0,
    n_examples: int | None = None,
    only: Sequence[str] = (),
    n_fillers: int | None = None,
) -> list[Item]:
    """Draw the items of a validation in random order."""
    if missing := [name for name in NEEDED if name not in table.column_names]:
        raise QabiasError(
            f"only questions with three answers can be rated, but these examples have no {', '.join(missing)}",
            "choose another --benchmark",
        )
    rng = np.random.default_rng(seed)
    examples = chosen(table, only).to_pylist()
    drawn = _one_per_condition(examples, rng) if n_examples is None else draw(examples, n_examples, rng)
    if n_fillers is None:
        n_fillers = math.ceil(len(drawn) * FILLER_SHARE / (1 - FILLER_SHARE))
    elif not 0 <= n_fillers <= MOST_FILLERS:
        raise QabiasError(f"--fillers is {n_fillers}", f"use 0 to {MOST_FILLERS}")
    contents = [_example(example) for example in drawn] + _fillers(n_fillers, rng)
    order = rng.permutation(len(contents))
    return [Item(item_id=f"item-{place:05d}", **contents[i]) for place, i in enumerate(order, start=1)]


def draw(examples: Sequence[_T], n: int, rng: np.random.Generator) -> list[_T]:
    """Draw examples without replacement."""
    if not 0 < n <= len(examples):
        raise QabiasError(f"cannot draw {n} of {len(examples)} examples", f"use --sample from 1 to {len(examples)}")
    return [examples[i] for i in rng.choice(len(examples), n, replace=False)]


def write_items(items: Sequence[DataclassInstance], path: Path, key_path: Path, shown: Sequence[str] = SHOWN) -> None:
    """Write the items for raters and, separately, their key, both as CSV."""
    if is_same(path, key_path):
        raise QabiasError(f"{path}: items and key are the same file", "choose another --key: raters must not see it")
    texts = {path: _csv(shown, items), key_path: _csv(KEY, items)}
    for target, argument in ((path, "output"), (key_path, "key")):
        check_file(target, same_bytes(texts[target].encode()), argument=argument)
    for target, text in texts.items():
        write_text(target, text)


def _csv(columns: Sequence[str], items: Sequence[DataclassInstance]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(item) for item in items)
    return text.getvalue()


def chosen(table: pa.Table, only: Sequence[str]) -> pa.Table:
    """The rows of some templates, or all rows if `only` is empty."""
    if not only:
        return table
    known = table["template_id"].unique().to_pylist()
    if unknown := sorted(set(only) - set(known)):
        raise QabiasError(f"no template {', '.join(unknown)}", f"choose from {known[0]} to {known[-1]}")
    return table.filter(pc.is_in(table["template_id"], pa.array(only)))


def _condition(example: Mapping[str, Any]) -> str:
    return f"{example['question_polarity']} {example['context_condition']}"


def _one_per_condition(examples: Sequence[Mapping[str, Any]], rng: np.random.Generator) -> list[Mapping[str, Any]]:
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for example in examples:
        groups.setdefault((example["template_id"], _condition(example)), []).append(example)
    return [group[rng.integers(len(group))] for group in groups.values()]


def _example(example: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **{name: example[name] for name in ("context", "question", "ans0", "ans1", "ans2", "label", "template_id")},
        "kind": "example",
        "condition": _condition(example),
        "source_id": f"{example['category']}/{example['example_id']}",
    }


def _fillers(n: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Alternates short contexts with the answer and long ones without it; scenes repeat only after all were used."""
    scenes = yaml.safe_load(FILLERS.read_text("utf-8"))["fillers"]
    by_length = [[scene for scene in scenes if scene["length"] == length] for length in ("short", "long")]
    turns = [[scenes[i] for i in rng.permutation(len(scenes))] for scenes in by_length]
    contents = []
    for number in range(n):
        turn = turns[number % 2]
        round_, place = divmod(number // 2, len(turn))
        scene = turn[place]
        contents.append(_filler(scene, round_ % len(scene["questions"]), rng))
    return contents


def _filler(scene: Mapping[str, Any], number: int, rng: np.random.Generator) -> dict[str, Any]:
    question = scene["questions"][number]
    first, second = rng.choice(NAMES, 2, replace=False).tolist()
    answers = {"NAME1": first, "NAME2": second, "UNKNOWN": UNKNOWN}
    order = [list(answers)[i] for i in rng.permutation(len(answers))]

    def fill(text: str) -> str:
        return text.replace("{{NAME1}}", first).replace("{{NAME2}}", second)

    return {
        "context": fill(scene["context"]),
        "question": fill(question["question"]),
        **{f"ans{i}": answers[role] for i, role in enumerate(order)},
        "label": order.index(question["answer"]),
        "kind": "filler",
        "template_id": scene["id"],
        "condition": scene["length"],
        "source_id": f"{scene['id']}/{number}",
    }


def draw_pairs(table: pa.Table, seed: int = 0, n_pairs: int | None = None, only: Sequence[str] = ()) -> list[PairItem]:
    """Draw pairs at random, in random order."""
    pairs = chosen(table, only).to_pylist()
    n = max(1, round(PAIR_SHARE * len(pairs))) if n_pairs is None else n_pairs
    drawn = draw(pairs, n, np.random.default_rng(seed))
    ans0, ans1, ans2 = LABELS
    return [
        PairItem(item_id=f"item-{place:05d}", kind=PAIR, ans0=ans0, ans1=ans1, ans2=ans2, **pair)
        for place, pair in enumerate(drawn, start=1)
    ]


def _first_wordings(table: pa.Table) -> pa.Table:
    """The pairs of premise and hypothesis before words and groups are exchanged, in their first wording."""
    columns = ["subtopic", "kind", "premise_id", "hypothesis_id", "premise", "hypothesis", "label"]
    written = table.filter(pc.equal(table["stance"], "pro")).select(columns).to_pylist()
    pairs: dict[str, dict[str, Any]] = {}
    for row in written:
        source = f"{row['subtopic']}/{row['kind']}/{row['premise_id']}/{row['hypothesis_id']}"
        facts = {"source_id": source, "template_id": row["subtopic"], "condition": row["kind"]}
        pairs.setdefault(source, {**facts, **{name: row[name] for name in columns[-3:]}})
    return pa.Table.from_pylist(list(pairs.values()))


def _first_fillings(table: pa.Table) -> pa.Table:
    """The pairs of one filling of every template: the hypotheses with all contexts in both orders of the names."""
    first: dict[str, str] = {}
    pairs = []
    for row in table.to_pylist():
        if first.setdefault(row["template_id"], row["set_id"]) != row["set_id"]:
            continue
        context = [row[name] for name in ("name_order", "context_length", "context_condition", "context_stance")]
        hypothesis = [row[name] for name in ("statement_about", "question_polarity")]
        pairs.append(
            {
                "source_id": "/".join(filter(None, (row["set_id"], *context, *hypothesis))),
                "template_id": row["category"],
                "condition": f"{row['question_polarity']} {row['context_condition']}",
                **{name: row[name] for name in ("premise", "hypothesis", "label")},
            }
        )
    return pa.Table.from_pylist(pairs)


PAIRS: Mapping[str, Callable[[pa.Table], pa.Table]] = {"bbnli": _first_wordings, "bbq_nli": _first_fillings}
"""From the examples of a benchmark to the pairs of sentences that people label, by benchmark."""
