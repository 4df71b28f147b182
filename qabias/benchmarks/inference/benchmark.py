"""What BBNLI and the two forms of BBQ share: rows with three labels, for any scorer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import pyarrow as pa

from qabias.answers import NO_ANSWER
from qabias.answers.likelihoods import NORMS, choice_columns
from qabias.answers.parsing import (
    CONTRADICTION,
    ENTAILMENT,
    LABELS,
    NEUTRAL,
    PARSE_RULES,
    Form,
    parse_inference,
    parse_inference_released,
)
from qabias.benchmarks.base import NO_RULES, Benchmark, Rules
from qabias.benchmarks.generated import about_missing, outcome_counts, read_predictions, text_columns
from qabias.benchmarks.inference.prompts import ASK_METHODS, FORMATS, INSTRUCTED, QA_FORMATS
from qabias.benchmarks.pairs import Codes, predictions
from qabias.benchmarks.prompt_format import PromptFormat
from qabias.benchmarks.scoring import compute
from qabias.errors import QabiasError, arg
from qabias.scorers.base import OptionScorer, PairScorer, Request, Scorer, TextScorer
from qabias.scorers.kind import ScorerKind
from qabias.scorers.registry import check_rule, kind_of
from qabias.scores.facts import ALL
from qabias.scores.formatting import pluralize
from qabias.share.metrics.bbnli import scores as metric
from qabias.share.metrics.bbnli.computing import Computing
from qabias.share.metrics.bbnli.forms import Items, read
from qabias.share.metrics.bbnli.inputs import Table as Examples
from qabias.share.metrics.bbnli.inputs import runs_of
from qabias.share.metrics.bbnli.rows import INDEX_COLUMNS, REFERENCES, TEXT_COLUMNS
from qabias.tables.model import Table

RULES: Mapping[str, Sequence[str]] = MappingProxyType(
    {"denominator": ("paper", "released"), "unparsed": ("wrong", "exclude")}
)
"""Scoring rules (see `metrics/bbnli`), the defaults first."""

_DEFAULTS = {name: values[0] for name, values in RULES.items()}
_COUNTED = {"wrong": "they count as neutral and wrong", "exclude": "they are excluded"}
PAIR_FORMAT = "pair"
"""The format of models that take premise and hypothesis."""

_OWN_NAMES = ("category", "subtopic", "domain")

_NAMED = ": "


class InferenceBenchmark(Benchmark):
    """BBNLI or a form of BBQ."""

    formats: Mapping[str, PromptFormat] = FORMATS
    norms: Sequence[str] = (*NORMS, *PARSE_RULES)
    interfaces: Sequence[str] = ("options", "texts", "pairs")
    key: Sequence[str] = ("category", "example_id")
    class_labels: Mapping[str, Sequence[str]] = MappingProxyType({"label": LABELS})
    answer_columns = ("prediction",)
    optional_columns = ("outcome", "outputs")
    stored_columns = ("predictions", "outcome", "outcomes")
    rules: Mapping[str, Sequence[str]] = RULES
    asks: Mapping[str, str] = ASK_METHODS
    averages = True
    form: str
    """The form of its rows for the metric."""

    @abstractmethod
    def keys_and_roles(self, rows: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[dict[str, int]]]:
        """The key of every row, and the answer in each role for baselines."""

    def units_per_part(self, kind: ScorerKind) -> int:
        """Sets of 24 rows (2 name orders, 3 contexts, 4 hypotheses) per part."""
        return 64 if kind.many_at_once or kind.lists_options else 8

    def default_format(self, scorer: Scorer) -> str:
        """Sentence pairs for classifiers, an instruction for chats, else the first prompt."""
        if isinstance(scorer, PairScorer):
            return PAIR_FORMAT
        chats = isinstance(scorer, TextScorer) and kind_of(scorer).chats
        return INSTRUCTED if chats else next(iter(self.formats))

    def answer(self, part: pa.Table, scorer: Scorer, prompt_format: PromptFormat, norm: str) -> dict[str, pa.Array]:
        """Choose among the three answers to every row, or parse a written one."""
        if isinstance(scorer, PairScorer) != (prompt_format.name == PAIR_FORMAT):
            wanted = f"needs the format {PAIR_FORMAT}" if isinstance(scorer, PairScorer) else "reads prompts"
            raise QabiasError(f"the backend {scorer.name} {wanted}.", f"Remove {arg('format')}, or use another format.")
        check_rule(scorer, norm)
        if isinstance(scorer, PairScorer):
            pairs = list(zip(part["premise"].to_pylist(), part["hypothesis"].to_pylist(), strict=True))
            return _label_columns(scorer.classify(pairs))
        rows = part.to_pylist()
        keys, roles = self.keys_and_roles(rows)
        rendered = [prompt_format.render(row) for row in rows]
        if isinstance(scorer, TextScorer):
            texts = scorer.generate([prompt for prompt, _ in rendered], keys)
            return self._columns(texts, rows, prompt_format, norm, scorer.samples)
        requests = [
            Request(prompt, options, played, key)
            for (prompt, options), played, key in zip(rendered, roles, keys, strict=True)
        ]
        return choice_columns(cast(OptionScorer, scorer).score(requests), norm)

    def read_given(self, table: pa.Table, answers: pa.Table, prompt_format: PromptFormat | None, norm: str) -> pa.Table:
        """External answers: numbers are kept, texts are parsed."""
        rows = table.to_pylist()
        return read_predictions(
            answers, table, lambda texts: self._columns([(text,) for text in texts], rows, prompt_format, norm, 1)
        )

    def read_text(self, text: str, row: Mapping[str, Any], prompt_format: PromptFormat | None, norm: str) -> int:
        """The number of the answer that a text gives."""
        form: Form = "qa" if prompt_format is not None and prompt_format.name in QA_FORMATS else "nli"
        return parse_inference(text) if norm == "none" else parse_inference_released(text, form=form)

    def _columns(
        self,
        texts: Sequence[tuple[str, ...]],
        rows: Sequence[Mapping[str, Any]],
        prompt_format: PromptFormat | None,
        norm: str,
        n: int,
    ) -> dict[str, pa.Array]:
        """Columns of `n` texts per row, and of their answers."""
        read = [
            [self.read_text(text, row, prompt_format, norm) for text in samples]
            for samples, row in zip(texts, rows, strict=True)
        ]
        return text_columns(texts, read, n)

    def score(self, table: pa.Table, answers: pa.Table, rules: Rules = NO_RULES) -> dict[str, Any]:
        """All scores with intervals, overall and by group."""
        return score(table, answers, list(self.group_columns(table)), rules)

    def group_name(self, column: str, value: str) -> str:
        """The value; columns without unique values are named too."""
        return value if column in _OWN_NAMES else f"{column}{_NAMED}{value}"

    def group_path(self, group: str) -> tuple[str, ...]:
        """Under `by`, except for all rows."""
        column, is_named, value = group.partition(_NAMED)
        return () if group == ALL else ("by", column, value) if is_named else ("by", "category", group)

    def clusters(self, table: pa.Table) -> np.ndarray:
        """Premises (BBNLI) or templates."""
        return self._items(table).clusters

    def count(self, table: pa.Table, answers: pa.Table, cells: np.ndarray, rules: Rules = NO_RULES) -> np.ndarray:
        """The metric's counts by cell; all samples of a row weigh as one answer."""
        items, rows = self._items(table), np.arange(table.num_rows)
        columns = (items.labels, items.aligned, items.parts, items.strata, cells)
        meanings = [np.where(answer < 0, -1, items.meaning[rows, answer]) for answer in _samples(answers)]
        return np.mean([metric.count(answer, *columns) for answer in meanings], axis=0)

    def scores_from_counts(self, counts: np.ndarray, rules: Rules = NO_RULES) -> Mapping[str, np.ndarray]:
        """The metric's scores."""
        return metric.scores(self.form, counts, **{**_DEFAULTS, **rules})

    def _items(self, table: pa.Table) -> Items:
        """The rows as the metric reads them."""
        rows = Examples.wrap(REFERENCES, table.select([*TEXT_COLUMNS[self.form], *INDEX_COLUMNS[self.form]]))
        return read(rows, self.form, runs_of(rows, None))

    def sample_facts(self, scores: Mapping[str, Any]) -> dict[str, str]:
        """The number of answers, and of missing ones with their scoring."""
        unparsed = about_missing(scores, scores["n_unparsed"])
        rules = dict(field.partition(":")[::2] for field in scores.get("signature", "").split("|"))
        if scores["n_unparsed"] and rules.get("unparsed") in _COUNTED:
            unparsed = f"{unparsed}; {_COUNTED[rules['unparsed']]}"
        return {"Sample": pluralize(scores["n"], "answer"), "Unparsed": unparsed}

    def remarks(self, scores: Mapping[str, Any]) -> list[str | Table]:
        """Shares of the answers."""
        shares = (f"{name} {100 * share:.1f}%" for name, share in scores["label_share"].items())
        return [f"answers: {', '.join(shares)}"]


def roles(aligned: int, gold: int) -> dict[str, int]:
    """The label in each role, for baselines."""
    return {
        "biased": aligned,
        "counter_biased": ENTAILMENT - aligned,
        "unknown": NEUTRAL,
        "gold": gold,
        "first": CONTRADICTION,
        "last": ENTAILMENT,
    }


def _label_columns(probabilities: np.ndarray) -> dict[str, pa.Array]:
    best = probabilities.argmax(axis=1)
    tied = (probabilities == probabilities.max(axis=1, keepdims=True)).sum(axis=1) > 1
    return {
        "prediction": pa.array(np.where(tied, NO_ANSWER, best).astype(np.int8)),
        "probabilities": pa.array(probabilities.tolist(), pa.list_(pa.float64())),
    }


def score(table: pa.Table, answers: pa.Table, by: Sequence[str], rules: Rules = NO_RULES) -> dict[str, Any]:
    """All scores with intervals, and outcomes. Several samples of a row count as several rows."""
    if "predictions" in answers.column_names:
        lists = answers["predictions"].combine_chunks()
        sizes = lists.value_lengths().to_numpy()
        numbers = np.concatenate([np.arange(size) for size in sizes])
        table = table.take(pa.array(np.repeat(np.arange(table.num_rows), sizes)))
        table = table.append_column("sample", pa.array(numbers))
        predictions_of_rows = lists.flatten().to_pylist()
    else:
        predictions_of_rows = answers["prediction"].to_pylist()
    return compute(Computing(), table, predictions_of_rows, rules, list(by)) | outcome_counts(answers)


def varied(table: pa.Table) -> list[str]:
    """Columns that the two forms of BBQ vary, if a run has several values."""
    return [name for name in ("name_order", "context_length") if len(table[name].unique()) > 1]


def _samples(answers: pa.Table) -> Sequence[Codes]:
    """The answers of every sample, shape (n_samples, n)."""
    if "prediction" in answers.column_names:
        return [predictions(answers)]
    lists = answers["predictions"].combine_chunks()
    flat = lists.flatten().fill_null(-1).to_numpy().astype(np.int64)
    return list(flat.reshape(len(lists), -1).T)


def gather(table: pa.Table, codes: np.ndarray) -> pa.Table:
    """Reorder rows to make those with the same code neighbors, in order of first occurrence."""
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    return table.take(pa.array(np.argsort(first[inverse], kind="stable")))
