"""BBNLI for the engine: pairs of a pro- and an anti-stereotypical form, three labels, as inference or as question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qabias.answers.parsing import CONTRADICTION, ENTAILMENT
from qabias.benchmarks import locate
from qabias.benchmarks.base import Scored
from qabias.benchmarks.harness_logs import OwnTask
from qabias.benchmarks.inference import BBNLI
from qabias.benchmarks.inference.benchmark import InferenceBenchmark, gather, roles
from qabias.benchmarks.inference.facts import BBNLI_FACTS
from qabias.scorers.kind import ScorerKind
from qabias.scores.facts import ALL
from qabias.share.bbnli_dataset import folder as _folder
from qabias.share.bbnli_dataset import origin as _origin
from qabias.share.bbnli_dataset import subtopics as _subtopics
from qabias.support.arrow import column_codes
from qabias.tables.model import Analysis

_DOCUMENT = ("pair_id", "premise_id", "hypothesis", "stance")


class BBNLIBenchmark(InferenceBenchmark):
    """Bias Benchmark for Natural Language Inference (Akyurek et al. 2022)."""

    name = BBNLI
    title = "BBNLI: Bias Benchmark for Natural Language Inference"
    form = BBNLI
    configs: Sequence[str] = _subtopics.CONFIGS
    sources: Sequence[str] = _origin.SOURCES
    key = ("example_id",)
    strata = "hypotheses"
    log_readers = (
        OwnTask(_DOCUMENT, (*_DOCUMENT, "premise", "question", "subtopic", "kind", "label"), ("pair_id", 2)),
    )
    facts = BBNLI_FACTS

    def origin(self, source: str, seed: int, fixes: bool) -> Any:
        """Check the choice of a source; `fixes` removes repetitions in the published rows."""
        return _origin.Origin(source, seed, fixes)

    def load(self, config: str, origin: Any) -> pa.Table:
        """The examples of a subtopic, a domain or all. The two forms of a pair are neighbors."""
        table = locate.load_tables(BBNLI, self._subtopics(config), origin, _origin.SCHEMA)
        return gather(table, column_codes(table["pair_id"]))

    def write_folder(self, output: Path, config: str, origin: Any) -> dict[str, pa.Table]:
        """Build a dataset folder; returns its tables by subtopic."""
        tables: dict[str, pa.Table] = _folder.write_folder(output, origin, self._subtopics(config))
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

    def group_columns(self, table: pa.Table) -> Mapping[str, pa.ChunkedArray]:
        """Subtopics and domains."""
        return {name: table[name] for name in ("subtopic", "domain")}

    def keys_and_roles(self, rows: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[dict[str, int]]]:
        """The ids of the rows, and the label in each role."""
        return [row["example_id"] for row in rows], [_roles(row) for row in rows]

    def analyse(self, run: Scored) -> Analysis:
        """The figures and tables of Akyurek et al. 2022."""
        from qabias.benchmarks.inference.bbnli_tables import analyse

        return analyse(run.table, run.answers, run.scores, run.rules)

    def examples(self, table: pa.Table, answers: pa.Table) -> Sequence[Mapping[str, Any]]:
        """Every hypothesis with its label."""
        from qabias.benchmarks.inference.tables import bbnli_example, examples

        return examples(table, answers, range(table.num_rows), bbnli_example)[0]

    def group_path(self, group: str) -> tuple[str, ...]:
        """Under `by` as subtopic or domain, except for all rows."""
        breakdown = "domain" if group in _subtopics.DOMAINS else "subtopic"
        return () if group == ALL else ("by", breakdown, group)

    def _subtopics(self, config: str) -> Sequence[str]:
        self.check_config(config)
        subtopics: Sequence[str] = _subtopics.subtopics_of(config)
        return subtopics


def _roles(row: Mapping[str, Any]) -> dict[str, int]:
    """The hypothesis is the stereotype in the pro form and its reverse in the anti form."""
    played = roles(ENTAILMENT if row["stance"] == "pro" else CONTRADICTION, row["label"])
    if row["kind"] == "test":  # a control has no biased label: every baseline answers right
        return {**played, "biased": row["label"], "counter_biased": row["label"]}
    return played


BENCHMARK = BBNLIBenchmark()
