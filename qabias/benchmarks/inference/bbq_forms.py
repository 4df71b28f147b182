"""BBQ as inference, with hypotheses about target and non-target, and its questions in BBNLI's prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from qabias.benchmarks import locate
from qabias.benchmarks.base import Rescoring, Scored
from qabias.benchmarks.bbq import NAME as BBQ
from qabias.benchmarks.bbq.roles import roles_of_options
from qabias.benchmarks.inference import BBQ_NLI, BBQ_QA
from qabias.benchmarks.inference.benchmark import PAIR_FORMAT, InferenceBenchmark, gather, roles, varied
from qabias.benchmarks.inference.facts import BBQ_NLI_FACTS, BBQ_QA_FACTS, RESCORED
from qabias.benchmarks.inference.prompts import FORMATS, INSTRUCTED_FORMATS, NLI_FORMATS, PERSON_ASKS, PERSON_FORMATS
from qabias.benchmarks.inference.questions import from_inference, read_answer
from qabias.benchmarks.prompt_format import PromptFormat
from qabias.share.bbq_dataset import folder as _folder
from qabias.share.bbq_dataset import origin as _origin
from qabias.support.arrow import column_codes
from qabias.support.files import write_atomically
from qabias.support.suggest import unknown
from qabias.tables.model import Analysis


@dataclass(frozen=True)
class InferenceOrigin:
    """The origin of the texts: as for BBQ, but the published ones are in BBNLI's repository."""

    texts: Any

    @property
    def version(self) -> str:
        """Name, version and fixes for the signature."""
        return str(self.texts.inference_version)


class BBQInferenceBenchmark(InferenceBenchmark):
    """BBQ converted to premise and hypothesis (Akyurek et al. 2022, Section 3)."""

    name = BBQ_NLI
    title = "BBQ as inference: premise and hypothesis"
    form = BBQ_NLI
    configs: Sequence[str] = (*_origin.NLI_CONFIGS, _origin.ALL_NLI)
    sources: Sequence[str] = ("bundled", "official")
    formats: Mapping[str, PromptFormat] = {
        name: FORMATS[name] for name in (*NLI_FORMATS, *INSTRUCTED_FORMATS, PAIR_FORMAT)
    }
    facts = BBQ_NLI_FACTS
    rescored: Mapping[str, Rescoring] = RESCORED

    def origin(self, source: str, seed: int, fixes: bool) -> InferenceOrigin:
        """Check the choice of a source."""
        if source not in self.sources:
            raise unknown("source", source, self.sources)
        return InferenceOrigin(_origin.Origin(source, seed, fixes))

    def load(self, config: str, origin: Any) -> pa.Table:
        """The rows of a category or of all, with complete sets as neighbors."""
        table = locate.load_tables(BBQ, self._names(config), origin.texts, _origin.NLI_SCHEMA)
        return gather(table, column_codes(table["set_id"]))

    def write_folder(self, output: Path, config: str, origin: Any) -> dict[str, pa.Table]:
        """Build a dataset folder; returns its tables by configuration."""
        tables: dict[str, pa.Table] = _folder.write_folder(output, origin.texts, self._names(config))
        return tables

    def units(self, table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        """The set and the template of every row."""
        return column_codes(table["set_id"]), column_codes(table["template_id"])

    def group_columns(self, table: pa.Table) -> Mapping[str, pa.ChunkedArray]:
        """Categories, and what the conversion varies."""
        return {name: table[name] for name in ("category", *varied(table))}

    def keys_and_roles(self, rows: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[dict[str, int]]]:
        """Category and id of the rows, and the label in each role."""
        keys = [f"{row['category']}_nli/{row['example_id']}" for row in rows]
        return keys, [roles(row["bias_label"], row["label"]) for row in rows]

    def analyse(self, run: Scored) -> Analysis:
        """The figures and tables of Akyurek et al. 2022."""
        from qabias.benchmarks.inference.bbq_tables import analyse

        return analyse(run.table, run.answers, run.scores, run.rules)

    def examples(self, table: pa.Table, answers: pa.Table) -> Sequence[Mapping[str, Any]]:
        """Every statement or question with its answer."""
        from qabias.benchmarks.inference.bbq_tables import form_of
        from qabias.benchmarks.inference.tables import examples

        form = form_of(table)
        return examples(table, answers, range(table.num_rows), form.example, form.options)[0]

    def _names(self, config: str) -> Sequence[str]:
        self.check_config(config)
        return [f"{name}_nli" for name in _origin.CATEGORIES] if config == _origin.ALL_NLI else (config,)


BENCHMARK = BBQInferenceBenchmark()


# Each config has the sets of one config of BBQ as inference.
_INFERENCE_CONFIGS = {name.replace("_nli", "_qa"): name for name in BENCHMARK.configs}
*_SINGLE, _ALL_QA = _INFERENCE_CONFIGS
_CATEGORIES = [name for name in _SINGLE if name.endswith("_qa")]


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
    rescored: Mapping[str, Rescoring] = {}

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
        names = _CATEGORIES if config == _ALL_QA else [config]
        return {name: from_inference(BENCHMARK.load(_INFERENCE_CONFIGS[name], origin)) for name in names}


QUESTIONS = BBQInBBNLIPrompts()
