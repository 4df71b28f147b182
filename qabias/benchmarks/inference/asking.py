"""Inference questions put to a scorer and scored: what BBNLI and the two forms of BBQ have in common.

A row has a premise, a hypothesis and a question that asks the same; the answer is one of the labels contradiction,
neutral and entailment, 0 to 2 in the order of the authors of BBNLI, or -1 for text that is none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qabias.answers import NO_ANSWER
from qabias.answers.likelihoods import choice_columns
from qabias.answers.parsing import (
    CONTRADICTION,
    ENTAILMENT,
    NEUTRAL,
    Form,
    parse_inference,
    parse_inference_released,
)
from qabias.benchmarks.base import NO_RULES, Rules
from qabias.benchmarks.facts import counted
from qabias.benchmarks.generated import about_missing, as_places, check_outcomes, is_text, outcome_counts, text_columns
from qabias.benchmarks.inference.prompts import FORMATS, INSTRUCTED, QA_FORMATS
from qabias.benchmarks.pairs import Codes, Floats, Pair, pair_of_counts, predictions
from qabias.benchmarks.prompt_format import PromptFormat
from qabias.benchmarks.scoring import compute
from qabias.errors import QabiasError
from qabias.scorers.base import OptionScorer, PairScorer, Request, Scorer, TextScorer
from qabias.scorers.registry import check_rule, kind_of
from qabias.share.metrics.bbnli import scores as metric
from qabias.share.metrics.bbnli.computing import Computing
from qabias.share.metrics.bbnli.forms import read
from qabias.share.metrics.bbnli.inputs import Table, runs_of
from qabias.share.metrics.bbnli.rows import INDEX_COLUMNS, REFERENCES, TEXT_COLUMNS

INTERFACES = ("options", "texts", "pairs")
RULES: Mapping[str, Sequence[str]] = MappingProxyType(
    {"denominator": ("paper", "released"), "unparsed": ("wrong", "exclude")}
)
"""How answers may be counted (see `metrics/bbnli`), the defaults first."""

_DEFAULTS = {name: values[0] for name, values in RULES.items()}
METRIC_VERSION = metric.VERSION
STORED_COLUMNS = ("predictions", "outcome", "outcomes")
"""Columns of stored answers that scores are made from, beside `prediction`."""

OPTIONAL_COLUMNS = ("outcome", "outputs")
"""What others may say beside the number of a label: what became of each answer, and the texts as lists."""

_COUNTED = {"wrong": "they count as favouring nobody and as wrong", "exclude": "they are left out of the scores"}
PAIR_FORMAT = "pair"
"""The format of models that take premise and hypothesis as they are."""


def default_format(scorer: Scorer) -> str:
    """Sentence pairs for classifiers, an instruction for models that chat and write, else the first prompt."""
    if isinstance(scorer, PairScorer):
        return PAIR_FORMAT
    return INSTRUCTED if chats(scorer) else next(iter(FORMATS))


def chats(scorer: Scorer) -> bool:
    """Whether a scorer lets a model write in the form of a chat."""
    return isinstance(scorer, TextScorer) and kind_of(scorer).chats


def roles(aligned: int, gold: int) -> dict[str, int]:
    """Which label plays which part, for baselines."""
    return {
        "biased": aligned,
        "counter_biased": ENTAILMENT - aligned,
        "unknown": NEUTRAL,
        "gold": gold,
        "first": CONTRADICTION,
        "last": ENTAILMENT,
    }


def ask(
    part: pa.Table,
    scorer: Scorer,
    prompt_format: PromptFormat,
    norm: str,
    keys: Sequence[str],
    parts_played: Sequence[Mapping[str, int]],
) -> dict[str, pa.Array]:
    """Ask about every row in the way that the scorer has."""
    if isinstance(scorer, PairScorer) != (prompt_format.name == PAIR_FORMAT):
        wanted = f"needs the format {PAIR_FORMAT}" if isinstance(scorer, PairScorer) else "reads prompts"
        raise QabiasError(f"the scorer {scorer.name} {wanted}; leave --format out or choose another")
    check_rule(scorer, norm)
    if isinstance(scorer, PairScorer):
        pairs = list(zip(part["premise"].to_pylist(), part["hypothesis"].to_pylist(), strict=True))
        return _label_columns(scorer.classify(pairs))
    rendered = [prompt_format.render(row) for row in part.to_pylist()]
    if isinstance(scorer, TextScorer):
        texts = scorer.generate([prompt for prompt, _ in rendered], keys)
        read = _reader(prompt_format, norm)
        return text_columns(texts, [[read(text) for text in answers] for answers in texts], scorer.samples)
    requests = [
        Request(prompt, options, played, key)
        for (prompt, options), played, key in zip(rendered, parts_played, keys, strict=True)
    ]
    return choice_columns(cast(OptionScorer, scorer).score(requests), norm)


def read_given(answers: pa.Table, prompt_format: PromptFormat | None, norm: str) -> pa.Table:
    """Answers of others as a run keeps them: numbers of labels as they are, texts as the label that they name."""
    given = answers["prediction"]
    if not is_text(given):
        check_outcomes(answers)
        return answers.set_column(answers.column_names.index("prediction"), "prediction", as_places(given))
    texts = [text or "" for text in given.to_pylist()]
    read = _reader(prompt_format, norm)
    return pa.table(text_columns([(text,) for text in texts], [[read(text)] for text in texts], 1))


def _reader(prompt_format: PromptFormat | None, norm: str) -> Callable[[str], int]:
    """What reads the label out of a text."""
    form: Form = "qa" if prompt_format is not None and prompt_format.name in QA_FORMATS else "nli"
    return parse_inference if norm == "none" else partial(parse_inference_released, form=form)


def _label_columns(probabilities: np.ndarray) -> dict[str, pa.Array]:
    best = probabilities.argmax(axis=1)
    tied = (probabilities == probabilities.max(axis=1, keepdims=True)).sum(axis=1) > 1
    return {
        "prediction": pa.array(np.where(tied, NO_ANSWER, best).astype(np.int8)),
        "probabilities": pa.array(probabilities.tolist(), pa.list_(pa.float64())),
    }


def score(table: pa.Table, answers: pa.Table, by: Sequence[str], rules: Rules = NO_RULES) -> dict[str, Any]:
    """All scores with intervals, and what became of written answers; several samples of a row count as so many rows."""
    if "predictions" in answers.column_names:
        lists = answers["predictions"].combine_chunks()
        sizes = lists.value_lengths().to_numpy()
        numbers = np.concatenate([np.arange(size) for size in sizes])
        table = table.take(pa.array(np.repeat(np.arange(table.num_rows), sizes)))
        table = table.append_column("sample", pa.array(numbers))
        given = lists.flatten().to_pylist()
    else:
        given = answers["prediction"].to_pylist()
    return compute(Computing(), table, given, rules, list(by)) | outcome_counts(answers)


def varied(table: pa.Table) -> list[str]:
    """Columns of what the two forms of BBQ vary beside the facts, where a run has more than one value of them."""
    return [name for name in ("name_order", "context_length") if len(table[name].unique()) > 1]


def label_shares(scores: Mapping[str, Any]) -> str:
    """The shares of the labels in one line."""
    shares = (f"{name} {100 * share:.1f} %" for name, share in scores["label_share"].items())
    return f"answers: {', '.join(shares)}"


def pairing(
    table: pa.Table, form: str, first: pa.Table, second: pa.Table, rules: Rules
) -> Callable[[np.ndarray], Pair]:
    """From numbers of rows to the answers of two runs to them, counted by cluster."""
    rows = Table.of(REFERENCES, table.select([*TEXT_COLUMNS[form], *INDEX_COLUMNS[form]]))
    items = read(rows, form, runs_of(rows, None))
    numbers = np.arange(table.num_rows)
    said = [
        [np.where(answer < 0, -1, items.meaning[numbers, answer]) for answer in _samples(answers)]
        for answers in (first, second)
    ]

    def score(counts: npt.ArrayLike) -> Mapping[str, Floats]:
        return metric.scores(form, counts, **{**_DEFAULTS, **rules})

    def pair(rows: np.ndarray) -> Pair:
        chosen = [column[rows] for column in (items.labels, items.aligned, items.parts, items.strata, items.clusters)]
        # All samples of an example weigh as one answer, because two runs may have unequal numbers of them.
        counts = [sum(metric.count(answer[rows], *chosen) for answer in answers) / len(answers) for answers in said]
        return pair_of_counts(counts, score)

    return pair


def _samples(answers: pa.Table) -> Sequence[Codes]:
    """The answers of every sample, shape (n_samples, n)."""
    if "prediction" in answers.column_names:
        return [predictions(answers)]
    lists = answers["predictions"].combine_chunks()
    flat = lists.flatten().fill_null(-1).to_numpy().astype(np.int64)
    return list(flat.reshape(len(lists), -1).T)


def gather(table: pa.Table, codes: np.ndarray) -> pa.Table:
    """Reorder rows so that those with the same code are neighbours, in order of first occurrence."""
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    return table.take(pa.array(np.argsort(first[inverse], kind="stable")))


def sample_facts(scores: Mapping[str, Any]) -> dict[str, str]:
    """Answers to inferences; those that name no label, why they do not, and how they count."""
    unparsed = about_missing(scores, scores["n_unparsed"])
    rules = dict(field.partition(":")[::2] for field in scores.get("signature", "").split("|"))
    if scores["n_unparsed"] and rules.get("unparsed") in _COUNTED:
        unparsed = f"{unparsed}; {_COUNTED[rules['unparsed']]}"
    return {"Sample": counted(scores["n"], "answer"), "Unparsed": unparsed}
