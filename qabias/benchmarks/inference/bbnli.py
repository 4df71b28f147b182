"""BBNLI for the engine: pairs of a pro- and an anti-stereotypical form, three labels, as inference or as question."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from tqdm import tqdm

from qabias.benchmarks import locate
from qabias.tables.model import Analysis
from qabias.benchmarks import inference, unknown_config
from qabias.answers.likelihoods import NORMS, PARSE_RULES
from qabias.support.arrow import column_codes
from qabias.errors import QabiasError
from qabias.answers.parsing import CONTRADICTION, ENTAILMENT
from qabias.benchmarks.prompt_format import PromptFormat
from qabias.benchmarks.inference.prompts import FORMATS
from qabias.scorers.base import Scorer

_builder = locate.dataset_module("bbnli", "builder")
_folder = locate.dataset_module("bbnli", "folder")


class BBNLIBenchmark:
    """Bias Benchmark for Natural Language Inference (Akyurek et al. 2022)."""

    name = "bbnli"
    title = "BBNLI: Bias Benchmark for Natural Language Inference"
    configs: Sequence[str] = _builder.CONFIGS
    sources: Sequence[str] = _builder.SOURCES
    formats: Mapping[str, PromptFormat] = FORMATS
    norms: Sequence[str] = (*NORMS, *PARSE_RULES)
    scorers: Sequence[str] = inference.SCORERS
    key = ("example_id",)
    answer_columns = ("prediction",)

    def origin(self, source: str, seed: int, fixes: bool, upstream_dir: str | None) -> Any:
        """Check the choice of a source; `fixes` leaves out what the published rows repeat (`unique`).

        Raises:
            QabiasError: If there is no such source, or nothing to mend in it.
        """
        if fixes and source == "bundled":
            raise QabiasError("fixes mend the published data; use them with the source official")
        return _builder.Origin(source, seed, fixes, upstream_dir)

    def load(self, config: str, origin: Any) -> pa.Table:
        """The examples of a subtopic, a domain or all, the two forms of a pair side by side."""
        subtopics = self._subtopics(config)
        if origin == _builder.Origin(seed=origin.seed):
            data = locate.dataset_folder("bbnli") / "data"
            tables = [pq.read_table(data / name / _folder.PARQUET_NAME).cast(_builder.SCHEMA) for name in subtopics]
        else:
            tables = [origin.table(name) for name in subtopics]
        table = pa.concat_tables(tables)
        return inference.gather(table, column_codes(table["pair_id"]))

    def write_folder(self, output: Path, config: str, origin: Any) -> dict[str, pa.Table]:
        """Build a dataset folder with a progress bar; returns its tables by subtopic."""
        subtopics = self._subtopics(config)
        with tqdm(total=len(subtopics), unit="subtopic", desc="build bbnli") as bar:
            tables: dict[str, pa.Table] = _folder.write_folder(output, origin, subtopics, lambda _: bar.update())
        return tables

    def units_per_part(self, scorer: str) -> int:
        """Pairs of forms that are written together; encoders gain from asking many at once."""
        return 64 if scorer in ("causal", "server") else 512

    def units(self, table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        """A unit is the two forms of a pair, its stratum the hypothesis that it asks about."""
        hypothesis = pc.binary_join_element_wise(
            table["subtopic"], table["kind"], pc.cast(table["hypothesis_id"], pa.string()), "/"
        )
        return column_codes(table["pair_id"]), column_codes(hypothesis)

    def default_format(self, scorer: Scorer) -> str:
        """Sentence pairs for classifiers, else the first inference prompt."""
        return inference.default_format(scorer)

    def answer(self, part: pa.Table, scorer: Scorer, prompt_format: PromptFormat, norm: str) -> dict[str, pa.Array]:
        """Label every row."""
        rows = part.select(["kind", "stance", "label"]).to_pylist()
        keys = part["example_id"].to_pylist()
        return inference.ask(part, scorer, prompt_format, norm, keys, [_roles(row) for row in rows])

    def score(self, table: pa.Table, answers: pa.Table) -> dict[str, Any]:
        """All scores with intervals, over all rows, by subtopic and by domain."""
        return inference.score(table, answers, ("subtopic", "domain"))

    def analyse(
        self, table: pa.Table, answers: pa.Table, scores: Mapping[str, Any], prompt_format: str | None
    ) -> Analysis:
        """The figures and tables of Akyurek et al. 2022 (see `qabias.benchmarks.inference.tables`)."""
        from qabias.benchmarks.inference.tables import analyse_bbnli

        return analyse_bbnli(table, answers, scores)

    def _subtopics(self, config: str) -> Sequence[str]:
        if config not in self.configs:
            raise unknown_config(config, self.configs)
        subtopics: Sequence[str] = _builder.subtopics_of(config)
        return subtopics


def _roles(row: Mapping[str, Any]) -> dict[str, int]:
    """The hypothesis states the stereotype in the pro form and its reverse in the anti form."""
    played = inference.roles(ENTAILMENT if row["stance"] == "pro" else CONTRADICTION, row["label"])
    if row["kind"] == "test":  # a control has no biased label: whatever part a baseline plays, it answers right
        return {**played, "biased": row["label"], "counter_biased": row["label"]}
    return played


BENCHMARK = BBNLIBenchmark()
