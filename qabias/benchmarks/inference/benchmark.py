"""BBNLI, and BBQ as inference and in BBNLI's question prompts: rows with three answers, for any scorer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

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
from qabias.benchmarks import locate
from qabias.benchmarks.base import NO_RULES, Benchmark, Rescoring, Rules, Scored
from qabias.benchmarks.bbq import NAME as BBQ
from qabias.benchmarks.bbq.roles import roles_of_options
from qabias.benchmarks.generated import about_missing, read_predictions, text_columns
from qabias.benchmarks.harness_logs import OwnTask
from qabias.benchmarks.inference import BBNLI, BBQ_NLI, BBQ_QA
from qabias.benchmarks.inference.facts import BBNLI_FACTS, BBQ_NLI_FACTS, BBQ_QA_FACTS
from qabias.benchmarks.inference.prompts import (
    ASK_METHODS,
    FORMATS,
    INSTRUCTED,
    INSTRUCTED_FORMATS,
    NLI_FORMATS,
    PERSON_ASKS,
    PERSON_FORMATS,
    QA_FORMATS,
)
from qabias.benchmarks.inference.questions import from_inference, read_answer
from qabias.benchmarks.inference.tables import analyse, examples, score
from qabias.benchmarks.orders import likeliest
from qabias.benchmarks.pairs import predictions
from qabias.benchmarks.prompt_format import PromptFormat
from qabias.errors import QabiasError, arg
from qabias.scorers.base import OptionScorer, PairScorer, Request, Scorer, TextScorer
from qabias.scorers.kind import ScorerKind
from qabias.scorers.registry import check_rule, kind_of
from qabias.scores.facts import ALL
from qabias.scores.formatting import pluralize
from qabias.share.bbnli_dataset import folder as _bbnli_folder
from qabias.share.bbnli_dataset import origin as _bbnli_origin
from qabias.share.bbnli_dataset import subtopics as _subtopics
from qabias.share.bbq_dataset import folder as _bbq_folder
from qabias.share.bbq_dataset import origin as _bbq_origin
from qabias.share.metrics.bbnli import scores as metric
from qabias.share.metrics.bbnli.forms import Items, read
from qabias.share.metrics.bbnli.inputs import Table as Examples
from qabias.share.metrics.bbnli.inputs import runs_of
from qabias.share.metrics.bbnli.rows import INDEX_COLUMNS, REFERENCES, TEXT_COLUMNS
from qabias.support.arrow import column_codes
from qabias.support.files import write_atomically
from qabias.support.suggest import unknown
from qabias.tables.model import Analysis, Table

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
_DOCUMENT = ("pair_id", "premise_id", "hypothesis", "stance")


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

    _read: tuple[pa.Table, Items] | None = None

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
            shares = scorer.classify(pairs)
            return {"prediction": likeliest(shares), "probabilities": pa.array(shares.tolist(), pa.list_(pa.float64()))}
        rows = part.to_pylist()
        keys, roles = self.keys_and_roles(rows)
        rendered = [prompt_format.render(row) for row in rows]
        if isinstance(scorer, TextScorer):
            texts = scorer.generate([prompt for prompt, _ in rendered], keys)
            return self._columns(texts, rows, prompt_format, norm, scorer.samples)
        requests = [Request(*asked, role, key) for asked, role, key in zip(rendered, roles, keys, strict=True)]
        return choice_columns(cast(OptionScorer, scorer).score(requests), norm)

    def read_given(self, table: pa.Table, answers: pa.Table, prompt_format: PromptFormat | None, norm: str) -> pa.Table:
        """External answers: numbers are kept, texts are parsed."""
        rows = table.to_pylist()
        return read_predictions(
            answers, table, lambda texts: self._columns([(text,) for text in texts], rows, prompt_format, norm)
        )

    def read_text(self, text: str, row: Mapping[str, Any], prompt_format: PromptFormat | None, norm: str) -> int:
        """The number of the answer that a text gives."""
        form: Form = "qa" if prompt_format is not None and prompt_format.name in QA_FORMATS else "nli"
        if norm == "none":
            return parse_inference(text, f"{row.get('premise', '')} {row.get('hypothesis', '')}")
        return parse_inference_released(text, form=form)

    def _columns(
        self,
        texts: Sequence[tuple[str, ...]],
        rows: Sequence[Mapping[str, Any]],
        prompt_format: PromptFormat | None,
        norm: str,
        n_samples: int = 1,
    ) -> dict[str, pa.Array]:
        """Columns of the texts of every row, and of their answers."""
        answers = [
            [self.read_text(text, row, prompt_format, norm) for text in samples]
            for samples, row in zip(texts, rows, strict=True)
        ]
        return text_columns(texts, answers, n_samples)

    def score(self, table: pa.Table, answers: pa.Table, rules: Rules = NO_RULES) -> dict[str, Any]:
        """All scores with intervals, overall and by group."""
        return score(table, answers, list(self.group_columns(table)), rules)

    def analyse(self, run: Scored) -> Analysis:
        """The figures and tables of Akyurek et al. 2022."""
        return analyse(run.table, run.answers, run.scores, run.rules)

    def examples(self, table: pa.Table, answers: pa.Table) -> Sequence[Mapping[str, Any]]:
        """Every row with its answer."""
        return examples(table, answers, range(table.num_rows))[0]

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
        columns = (items.labels, items.aligned, items.parts, items.strata, cells, int(items.strata.max(initial=0)) + 1)
        if "prediction" in answers.column_names:
            samples = [predictions(answers)]
        else:
            lists = answers["predictions"].combine_chunks()
            samples = list(lists.flatten().fill_null(-1).to_numpy().astype(np.int64).reshape(len(lists), -1).T)
        meanings = [np.where(answer < 0, -1, items.meaning[rows, answer]) for answer in samples]
        return np.mean([metric.count(answer, *columns) for answer in meanings], axis=0)

    def scores_from_counts(self, counts: np.ndarray, rules: Rules = NO_RULES) -> Mapping[str, np.ndarray]:
        """The metric's scores."""
        return metric.scores(self.form, counts, **{**_DEFAULTS, **rules})

    def _items(self, table: pa.Table) -> Items:
        """The rows as the metric reads them; the last table's are kept, because a comparison counts it twice."""
        last = self._read  # read once, because threads share a benchmark
        if last is None or last[0] is not table:
            rows = Examples.wrap(REFERENCES, table.select([*TEXT_COLUMNS[self.form], *INDEX_COLUMNS[self.form]]))
            last = self._read = table, read(rows, self.form, runs_of(rows, None))
        return last[1]

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


def _roles(aligned: int, gold: int) -> dict[str, int]:
    """The label in each role, for baselines."""
    return {
        "biased": aligned,
        "counter_biased": ENTAILMENT - aligned,
        "unknown": NEUTRAL,
        "gold": gold,
        "first": CONTRADICTION,
        "last": ENTAILMENT,
    }


def _gathered(table: pa.Table, column: str) -> pa.Table:
    """The rows reordered to make those with the same value neighbors, in order of first occurrence."""
    _, first, inverse = np.unique(column_codes(table[column]), return_index=True, return_inverse=True)
    return table.take(pa.array(np.argsort(first[inverse], kind="stable")))


class BBNLIBenchmark(InferenceBenchmark):
    """Bias Benchmark for Natural Language Inference (Akyurek et al. 2022)."""

    name = BBNLI
    title = "BBNLI: Bias Benchmark for Natural Language Inference"
    form = BBNLI
    configs: Sequence[str] = _subtopics.CONFIGS
    sources: Sequence[str] = _bbnli_origin.SOURCES
    key = ("example_id",)
    strata = "hypotheses"
    log_readers = (
        OwnTask(_DOCUMENT, (*_DOCUMENT, "premise", "question", "subtopic", "kind", "label"), ("pair_id", 2)),
    )
    facts = BBNLI_FACTS

    def origin(self, source: str, seed: int, fixes: bool) -> Any:
        """Check the choice of a source; `fixes` removes repetitions in the published rows."""
        return _bbnli_origin.Origin(source, seed, fixes)

    def load(self, config: str, origin: Any) -> pa.Table:
        """The examples of a subtopic, a domain or all. The two forms of a pair are neighbors."""
        table = locate.load_tables(BBNLI, self._subtopics(config), origin, _bbnli_origin.SCHEMA)
        return _gathered(table, "pair_id")

    def write_folder(self, output: Path, config: str, origin: Any) -> dict[str, pa.Table]:
        """Build a dataset folder; returns its tables by subtopic."""
        tables: dict[str, pa.Table] = _bbnli_folder.write_folder(output, origin, self._subtopics(config))
        return tables

    def units_per_part(self, kind: ScorerKind) -> int:
        """Pairs of forms per part; encoders gain from larger parts."""
        return 512 if kind.many_at_once or kind.lists_options else 64

    def units(self, table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        """A unit is the two forms of a pair, its stratum the hypothesis."""
        hypothesis = pc.binary_join_element_wise(
            table["subtopic"], table["kind"], pc.cast(table["hypothesis_id"], pa.string()), "/"
        )
        return column_codes(table["pair_id"]), column_codes(hypothesis)

    def counted(self, table: pa.Table) -> Mapping[str, np.ndarray]:
        """Hypotheses about stereotypes, and tests."""
        is_test = table["kind"].to_numpy() == "test"
        return {"n_bias": ~is_test, **dict.fromkeys(("n_test", "n_test_pro", "n_test_anti"), is_test)}

    def group_columns(self, table: pa.Table) -> Mapping[str, pa.ChunkedArray]:
        """Subtopics and domains."""
        return {name: table[name] for name in ("subtopic", "domain")}

    def keys_and_roles(self, rows: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[dict[str, int]]]:
        """The ids of the rows, and the label in each role."""
        return [row["example_id"] for row in rows], [_bbnli_roles(row) for row in rows]

    def group_path(self, group: str) -> tuple[str, ...]:
        """Under `by` as subtopic or domain, except for all rows."""
        breakdown = "domain" if group in _subtopics.DOMAINS else "subtopic"
        return () if group == ALL else ("by", breakdown, group)

    def _subtopics(self, config: str) -> Sequence[str]:
        self.check_config(config)
        subtopics: Sequence[str] = _subtopics.subtopics_of(config)
        return subtopics


def _bbnli_roles(row: Mapping[str, Any]) -> dict[str, int]:
    """The hypothesis is the stereotype in the pro form and its reverse in the anti form."""
    played = _roles(ENTAILMENT if row["stance"] == "pro" else CONTRADICTION, row["label"])
    if row["kind"] == "test":  # a control has no biased label: every baseline answers right
        return {**played, "biased": row["label"], "counter_biased": row["label"]}
    return played


@dataclass(frozen=True)
class InferenceOrigin:
    """The origin of the texts: as for BBQ, but the published ones are in BBNLI's repository."""

    texts: Any

    @property
    def version(self) -> str:
        """Name, version and fixes for the signature."""
        return str(self.texts.inference_version)


def _groupings(table: pa.Table) -> list[str]:
    return ["category", *(name for name in ("name_order", "context_length") if len(table[name].unique()) > 1)]


class BBQInferenceBenchmark(InferenceBenchmark):
    """BBQ converted to premise and hypothesis (Akyurek et al. 2022, Section 3)."""

    name = BBQ_NLI
    title = "BBQ as inference: premise and hypothesis"
    form = BBQ_NLI
    configs: Sequence[str] = (*_bbq_origin.NLI_CONFIGS, _bbq_origin.ALL_NLI)
    sources: Sequence[str] = ("bundled", "official")
    formats: Mapping[str, PromptFormat] = {
        name: FORMATS[name] for name in (*NLI_FORMATS, *INSTRUCTED_FORMATS, PAIR_FORMAT)
    }
    facts = BBQ_NLI_FACTS

    # Tables 4 and 5 of the paper compare questions and inferences.
    rescored: Mapping[str, Rescoring] = MappingProxyType(
        {
            BBQ: lambda table, answers: score(table, answers, ("category",)),
            BBQ_QA: lambda table, answers: score(table, answers, _groupings(table)),
        }
    )

    def origin(self, source: str, seed: int, fixes: bool) -> InferenceOrigin:
        """Check the choice of a source."""
        if source not in self.sources:
            raise unknown("source", source, self.sources)
        return InferenceOrigin(_bbq_origin.Origin(source, seed, fixes))

    def load(self, config: str, origin: Any) -> pa.Table:
        """The rows of a category or of all, with complete sets as neighbors."""
        return _gathered(locate.load_tables(BBQ, self._names(config), origin.texts, _bbq_origin.NLI_SCHEMA), "set_id")

    def write_folder(self, output: Path, config: str, origin: Any) -> dict[str, pa.Table]:
        """Build a dataset folder; returns its tables by configuration."""
        tables: dict[str, pa.Table] = _bbq_folder.write_folder(output, origin.texts, self._names(config))
        return tables

    def units(self, table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        """The set and the template of every row."""
        return column_codes(table["set_id"]), column_codes(table["template_id"])

    def counted(self, table: pa.Table) -> Mapping[str, np.ndarray]:
        """By context."""
        is_ambiguous = table["context_condition"].to_numpy() == "ambig"
        return {"n_ambig": is_ambiguous, **dict.fromkeys(("n_disambig", "n_pro", "n_anti"), ~is_ambiguous)}

    def group_columns(self, table: pa.Table) -> Mapping[str, pa.ChunkedArray]:
        """Categories, and what the conversion varies."""
        return {name: table[name] for name in _groupings(table)}

    def keys_and_roles(self, rows: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[dict[str, int]]]:
        """Category and id of the rows, and the label in each role."""
        keys = [f"{row['category']}_nli/{row['example_id']}" for row in rows]
        return keys, [_roles(row["bias_label"], row["label"]) for row in rows]

    def _names(self, config: str) -> Sequence[str]:
        self.check_config(config)
        return [f"{name}_nli" for name in _bbq_origin.CATEGORIES] if config == _bbq_origin.ALL_NLI else (config,)


BENCHMARK, STATEMENTS = BBNLIBenchmark(), BBQInferenceBenchmark()


# Each config has the sets of one config of BBQ as inference.
_INFERENCE_CONFIGS = {name.replace("_nli", "_qa"): name for name in STATEMENTS.configs}
*_SINGLE, _ALL_QA = _INFERENCE_CONFIGS


class BBQInBBNLIPrompts(BBQInferenceBenchmark):
    """BBQ in the question prompts of Akyurek et al. 2022 (Tables 4 and 5, rows QA and QAn; Figure 3, task QA)."""

    name = BBQ_QA
    title = "BBQ as questions of BBNLI: free answers in its prompts"
    form = BBQ
    configs: Sequence[str] = tuple(_INFERENCE_CONFIGS)
    formats: Mapping[str, PromptFormat] = PERSON_FORMATS
    interfaces: Sequence[str] = ("options", "texts")
    class_labels: Mapping[str, Sequence[str]] = MappingProxyType({})
    asks: Mapping[str, str] = PERSON_ASKS
    facts = BBQ_QA_FACTS
    rescored: Mapping[str, Rescoring] = MappingProxyType({})

    def load(self, config: str, origin: Any) -> pa.Table:
        """The questions of a category or of all, from BBQ as inference, with complete sets as neighbors."""
        return pa.concat_tables(list(self._tables(config, origin).values()))

    def write_folder(self, output: Path, config: str, origin: Any) -> dict[str, pa.Table]:
        """Write one Parquet file per config and return the tables."""
        tables = self._tables(config, origin)
        for name, table in tables.items():
            write_atomically(output / "data" / f"{name}.parquet", partial(pq.write_table, table))
        return tables

    def units(self, table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        """The original set and the template of every row."""
        return column_codes(table["scene_id"]), column_codes(table["template_id"])

    def keys_and_roles(self, rows: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[dict[str, int]]]:
        """Category and id of the rows, and the position of each role."""
        keys = [f"{row['category']}_qa/{row['example_id']}" for row in rows]
        return keys, [{**roles_of_options(row), "first": 0, "last": 2} for row in rows]

    def read_text(self, text: str, row: Mapping[str, Any], prompt_format: PromptFormat | None, norm: str) -> int:
        """The position of the person that a text names."""
        return read_answer(text, norm, row)

    def _tables(self, config: str, origin: Any) -> dict[str, pa.Table]:
        self.check_config(config)
        names = [name for name in _SINGLE if name.endswith("_qa")] if config == _ALL_QA else [config]
        return {name: from_inference(STATEMENTS.load(_INFERENCE_CONFIGS[name], origin)) for name in names}


QUESTIONS = BBQInBBNLIPrompts()
