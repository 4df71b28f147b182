"""BBQ as inference for the engine: the questions of BBQ as hypotheses about the target and about the other person."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

from qabias.answers.likelihoods import NORMS
from qabias.answers.parsing import LABELS, PARSE_RULES
from qabias.benchmarks import locate
from qabias.benchmarks.base import NO_RULES, Benchmark, Rules
from qabias.benchmarks.bbq import NAME as BBQ
from qabias.benchmarks.facts import ALL, Measure, Scores
from qabias.benchmarks.inference import BBQ_NLI, asking
from qabias.benchmarks.inference.facts import BBQ_NLI_FACTS
from qabias.benchmarks.inference.prompts import ASK_METHODS, FORMATS, INSTRUCTED_FORMATS, NLI_FORMATS
from qabias.benchmarks.pairs import Pair
from qabias.benchmarks.prompt_format import PromptFormat
from qabias.scorers.base import Scorer
from qabias.scorers.kind import ScorerKind
from qabias.share.bbq_dataset import builder as _builder
from qabias.share.bbq_dataset import folder as _folder
from qabias.support.arrow import column_codes, rows_of
from qabias.support.suggest import unknown
from qabias.tables.model import Analysis, Table

_NAMED = ": "
"""Stands between the column and the value of a group that is no category."""


@dataclass(frozen=True)
class InferenceOrigin:
    """Where the texts come from: as for BBQ, but the published ones lie in the repository of BBNLI."""

    texts: Any

    @property
    def version(self) -> str:
        """Name, version and fixes for the signature."""
        return str(self.texts.inference_version)


class BBQInferenceBenchmark(Benchmark):
    """BBQ converted to premise and hypothesis (Akyurek et al. 2022, Section 3)."""

    name = BBQ_NLI
    title = "BBQ as inference: premise and hypothesis"
    configs: Sequence[str] = (*_builder.NLI_CONFIGS, _builder.ALL_NLI)
    sources: Sequence[str] = ("bundled", "official")
    # Its questions have people as answers: `bbq_qa` asks them.
    formats: Mapping[str, PromptFormat] = {
        name: FORMATS[name] for name in (*NLI_FORMATS, *INSTRUCTED_FORMATS, asking.PAIR_FORMAT)
    }
    norms: Sequence[str] = (*NORMS, *PARSE_RULES)
    interfaces: Sequence[str] = asking.INTERFACES
    key = ("category", "example_id")
    class_labels = MappingProxyType({"label": LABELS})
    answer_columns = ("prediction",)
    optional_columns = asking.OPTIONAL_COLUMNS
    stored_columns = asking.STORED_COLUMNS
    rules: Mapping[str, Sequence[str]] = asking.RULES
    asks: Mapping[str, str] = ASK_METHODS
    pools = True
    metric_version = asking.METRIC_VERSION
    facts = BBQ_NLI_FACTS

    def origin(self, source: str, seed: int, fixes: bool, upstream_dir: str | None) -> InferenceOrigin:
        """Check the choice of a source (see `bbq_dataset.builder.Origin`)."""
        if source not in self.sources:
            raise unknown("source", source, self.sources)
        return InferenceOrigin(_builder.Origin(source, seed, fixes, upstream_dir))

    def load(self, config: str, origin: Any) -> pa.Table:
        """The rows of a category or of all, complete sets together."""
        names = self._names(config)
        if origin.texts.is_committed:
            data = locate.dataset_folder(BBQ) / "data"
            tables = [pq.read_table(data / name / _folder.PARQUET_NAME).cast(_builder.NLI_SCHEMA) for name in names]
        else:
            tables = [origin.texts.table(name) for name in names]
        table = pa.concat_tables(tables)
        return asking.gather(table, column_codes(table["set_id"]))

    def write_folder(self, output: Path, config: str, origin: Any) -> dict[str, pa.Table]:
        """Build a dataset folder with a progress bar; returns its tables by configuration."""
        names = self._names(config)
        with tqdm(total=len(names), unit="category", desc=f"build {BBQ_NLI}") as bar:
            tables: dict[str, pa.Table] = _folder.write_folder(output, origin.texts, names, lambda _: bar.update())
        return tables

    def units_per_part(self, kind: ScorerKind) -> int:
        """Sets of 24 rows (two orders of the names, three contexts, four hypotheses) that are written together."""
        return 64 if kind.many_at_once or kind.lists_options else 8

    def units(self, table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the set and of the template of every row."""
        return column_codes(table["set_id"]), column_codes(table["template_id"])

    def default_format(self, scorer: Scorer) -> str:
        """Sentence pairs for classifiers, an instruction for models that chat and write, else the first prompt."""
        return asking.default_format(scorer)

    def answer(self, part: pa.Table, scorer: Scorer, prompt_format: PromptFormat, norm: str) -> dict[str, pa.Array]:
        """Label every row."""
        rows = part.select(["category", "example_id", "bias_label", "label"]).to_pylist()
        keys = [f"{row['category']}_nli/{row['example_id']}" for row in rows]
        played = [asking.roles(row["bias_label"], row["label"]) for row in rows]
        return asking.ask(part, scorer, prompt_format, norm, keys, played)

    def score(self, table: pa.Table, answers: pa.Table, rules: Rules = NO_RULES) -> dict[str, Any]:
        """All scores with intervals: over all rows, by category, and by what the conversion varies."""
        return asking.score(table, answers, ("category", *asking.varied(table)), rules)

    def analyse(
        self,
        table: pa.Table,
        answers: pa.Table,
        scores: Mapping[str, Any],
        prompt_format: PromptFormat | None,
        rules: Rules = NO_RULES,
    ) -> Analysis:
        """The figures and tables of Akyurek et al. 2022."""
        from qabias.benchmarks.inference.tables import analyse_bbq_nli

        return analyse_bbq_nli(table, answers, scores, rules)

    def read_given(self, table: pa.Table, answers: pa.Table, prompt_format: PromptFormat | None, norm: str) -> pa.Table:
        """Answers of others: numbers of labels as they are, texts as the label that they name."""
        return asking.read_given(answers, prompt_format, norm)

    def groups(self, scores: Mapping[str, Any], measure: Measure | None = None) -> dict[str, Scores]:
        """The scores by category and by what the conversion varies, and of all rows."""
        found = {group(column, value): of for column, values in scores["by"].items() for value, of in values.items()}
        return {**found, ALL: scores}

    def group_path(self, group: str) -> tuple[str, ...]:
        """Under `by`, but for all rows."""
        column, is_named, value = group.partition(_NAMED)
        return () if group == ALL else ("by", column, value) if is_named else ("by", "category", group)

    def pair_up(self, table: pa.Table, first: pa.Table, second: pa.Table, rules: Rules = NO_RULES) -> dict[str, Pair]:
        """The answers of two runs by template, in the groups of `groups`."""
        return pairs_by_group(table, asking.pairing(table, BBQ_NLI, first, second, rules))

    def sample_facts(self, scores: Mapping[str, Any]) -> dict[str, str]:
        """Answers, and those that name no label."""
        return asking.sample_facts(scores)

    def remarks(self, scores: Mapping[str, Any]) -> list[str | Table]:
        """Shares of the labels."""
        return [asking.label_shares(scores)]

    def _names(self, config: str) -> Sequence[str]:
        self.check_config(config)
        return [f"{name}_nli" for name in _builder.CATEGORIES] if config == _builder.ALL_NLI else (config,)


def pairs_by_group(table: pa.Table, pair: Callable[[np.ndarray], Pair]) -> dict[str, Pair]:
    """Pairs by category and by what the conversion varies, and of all rows; `pair` makes one from numbers of rows."""
    groups = {
        group(column, value): pair(rows)
        for column in ("category", *asking.varied(table))
        for value, rows in rows_of(table[column]).items()
    }
    return {**groups, ALL: pair(np.arange(table.num_rows))}


def group(column: str, value: str) -> str:
    """Name of a group of rows that have a value in a column; a category has its own name."""
    return value if column == "category" else f"{column}{_NAMED}{value}"


BENCHMARK = BBQInferenceBenchmark()
