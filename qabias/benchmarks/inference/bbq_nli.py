"""BBQ as inference for the engine: the questions of BBQ as hypotheses about the target and about the other person."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

from qabias.benchmarks import locate
from qabias.tables.model import Analysis
from qabias.benchmarks import inference, unknown_config
from qabias.answers.likelihoods import NORMS, PARSE_RULES
from qabias.support.arrow import column_codes
from qabias.errors import QabiasError
from qabias.benchmarks.prompt_format import PromptFormat
from qabias.benchmarks.inference.prompts import FORMATS, NLI_FORMATS
from qabias.scorers.base import Scorer

_builder = locate.dataset_module("bbq", "builder")
_folder = locate.dataset_module("bbq", "folder")


@dataclass(frozen=True)
class InferenceOrigin:
    """Where the texts come from: as for BBQ, but the published ones lie in the repository of BBNLI.

    Attributes:
        texts: A `bbq_dataset.builder.Origin`.
    """

    texts: Any

    @property
    def version(self) -> str:
        """Name, version and fixes for the signature."""
        return str(self.texts.inference_version)


class BBQInferenceBenchmark:
    """BBQ converted to premise and hypothesis (Akyurek et al. 2022, Section 3)."""

    name = "bbq_nli"
    title = "BBQ as inference: premise and hypothesis"
    configs: Sequence[str] = (*_builder.NLI_CONFIGS, _builder.ALL_NLI)
    sources: Sequence[str] = ("bundled", "official")
    # Its questions have people for answers and are asked by the benchmark bbq.
    formats: Mapping[str, PromptFormat] = {name: FORMATS[name] for name in (*NLI_FORMATS, inference.PAIR_FORMAT)}
    norms: Sequence[str] = (*NORMS, *PARSE_RULES)
    scorers: Sequence[str] = inference.SCORERS
    key = ("category", "example_id")
    answer_columns = ("prediction",)

    def origin(self, source: str, seed: int, fixes: bool, upstream_dir: str | None) -> InferenceOrigin:
        """Check the choice of a source (see `bbq_dataset.builder.Origin`).

        Raises:
            QabiasError: If there is no such source.
        """
        if source not in self.sources:
            raise QabiasError(f"unknown source {source!r}: choose one of {', '.join(self.sources)}")
        return InferenceOrigin(_builder.Origin(source, seed, fixes, upstream_dir))

    def load(self, config: str, origin: InferenceOrigin) -> pa.Table:
        """The rows of a category or of all, complete sets together."""
        names = self._names(config)
        if origin.texts == _builder.Origin():
            data = locate.dataset_folder("bbq") / "data"
            tables = [pq.read_table(data / name / _folder.PARQUET_NAME).cast(_builder.NLI_SCHEMA) for name in names]
        else:
            tables = [origin.texts.table(name) for name in names]
        table = pa.concat_tables(tables)
        return inference.gather(table, column_codes(table["set_id"]))

    def write_folder(self, output: Path, config: str, origin: InferenceOrigin) -> dict[str, pa.Table]:
        """Build a dataset folder with a progress bar; returns its tables by configuration."""
        names = self._names(config)
        with tqdm(total=len(names), unit="category", desc="build bbq_nli") as bar:
            tables: dict[str, pa.Table] = _folder.write_folder(output, origin.texts, names, lambda _: bar.update())
        return tables

    def units_per_part(self, scorer: str) -> int:
        """Sets of 24 rows (two orders of the names, three contexts, four hypotheses) that are written together."""
        return 8 if scorer in ("causal", "server") else 64

    def units(self, table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the set and of the template of every row."""
        return column_codes(table["set_id"]), column_codes(table["template_id"])

    def default_format(self, scorer: Scorer) -> str:
        """Sentence pairs for classifiers, else the first inference prompt."""
        return inference.default_format(scorer)

    def answer(self, part: pa.Table, scorer: Scorer, prompt_format: PromptFormat, norm: str) -> dict[str, pa.Array]:
        """Label every row."""
        rows = part.select(["category", "example_id", "bias_label", "label"]).to_pylist()
        keys = [f"{row['category']}_nli/{row['example_id']}" for row in rows]
        played = [inference.roles(row["bias_label"], row["label"]) for row in rows]
        return inference.ask(part, scorer, prompt_format, norm, keys, played)

    def score(self, table: pa.Table, answers: pa.Table) -> dict[str, Any]:
        """All scores with intervals: over all rows, by category, and by what the conversion varies."""
        varied = [name for name in ("name_order", "context_length") if len(table[name].unique()) > 1]
        return inference.score(table, answers, ("category", *varied))

    def analyse(
        self, table: pa.Table, answers: pa.Table, scores: Mapping[str, Any], prompt_format: str | None
    ) -> Analysis:
        """The figures and tables of Akyurek et al. 2022 (see `qabias.benchmarks.inference.tables`)."""
        from qabias.benchmarks.inference.tables import analyse_bbq_nli

        return analyse_bbq_nli(table, answers, scores)

    def _names(self, config: str) -> Sequence[str]:
        if config not in self.configs:
            raise unknown_config(config, self.configs)
        return [f"{name}_nli" for name in _builder.CATEGORIES] if config == _builder.ALL_NLI else (config,)


BENCHMARK = BBQInferenceBenchmark()
