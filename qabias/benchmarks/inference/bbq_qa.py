"""BBQ's questions in the words of BBNLI for the engine: the sets of BBQ as inference, asked who it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from qabias.answers.likelihoods import NORMS, choice_columns
from qabias.answers.parsing import PARSE_RULES
from qabias.benchmarks.base import NO_RULES, Benchmark, Rules
from qabias.benchmarks.bbq import NAME as BBQ
from qabias.benchmarks.bbq.roles import roles_of_options
from qabias.benchmarks.facts import Measure, Scores
from qabias.benchmarks.generated import as_places, check_outcomes, is_text, text_columns
from qabias.benchmarks.inference import BBQ_QA, asking
from qabias.benchmarks.inference.bbq_nli import BENCHMARK as INFERENCE
from qabias.benchmarks.inference.bbq_nli import InferenceOrigin, pairs_by_group
from qabias.benchmarks.inference.facts import BBQ_QA_FACTS
from qabias.benchmarks.inference.prompts import INSTRUCTED, PERSON_ASKS, PERSON_FORMATS
from qabias.benchmarks.inference.questions import from_inference, read_answer
from qabias.benchmarks.pairs import Pair
from qabias.benchmarks.prompt_format import PromptFormat
from qabias.scorers.base import OptionScorer, Request, Scorer, TextScorer
from qabias.scorers.kind import ScorerKind
from qabias.scorers.registry import check_rule
from qabias.support.arrow import column_codes
from qabias.support.files import write_atomically
from qabias.tables.model import Analysis, Table

# Each configuration asks about the sets of one of BBQ as inference; the last one stands for several there too.
_OF_INFERENCE = {name.replace("_nli", "_qa"): name for name in INFERENCE.configs}
*_SINGLE, _ALL_QA = _OF_INFERENCE
_OF_ALL = [name for name in _SINGLE if name.endswith("_qa")]


class BBQQuestionsBenchmark(Benchmark):
    """BBQ in the question prompts of Akyurek et al. 2022 (Tables 4 and 5, rows QA and QAn; Figure 3, task QA)."""

    name = BBQ_QA
    title = "BBQ as questions of BBNLI: who it was, in the prompts for free answers"
    configs: Sequence[str] = tuple(_OF_INFERENCE)
    sources: Sequence[str] = INFERENCE.sources
    formats: Mapping[str, PromptFormat] = PERSON_FORMATS
    norms: Sequence[str] = (*NORMS, *PARSE_RULES)
    interfaces: Sequence[str] = ("options", "texts")
    key = ("category", "example_id")
    answer_columns = ("prediction",)
    optional_columns = asking.OPTIONAL_COLUMNS
    stored_columns = asking.STORED_COLUMNS
    rules: Mapping[str, Sequence[str]] = asking.RULES
    asks: Mapping[str, str] = PERSON_ASKS
    pools = True
    metric_version = asking.METRIC_VERSION
    facts = BBQ_QA_FACTS

    def origin(self, source: str, seed: int, fixes: bool, upstream_dir: str | None) -> InferenceOrigin:
        """Check the choice of a source: those of BBQ as inference."""
        return INFERENCE.origin(source, seed, fixes, upstream_dir)

    def load(self, config: str, origin: Any) -> pa.Table:
        """The questions of a category or of all, made from the rows of BBQ as inference; complete sets together."""
        return pa.concat_tables(list(self._tables(config, origin).values()))

    def write_folder(self, output: Path, config: str, origin: Any) -> dict[str, pa.Table]:
        """Write the questions as one Parquet file for each configuration; returns the tables."""
        tables = self._tables(config, origin)
        for name, table in tables.items():
            write_atomically(output / "data" / f"{name}.parquet", partial(pq.write_table, table))
        return tables

    def units_per_part(self, kind: ScorerKind) -> int:
        """Scenes of 12 rows (two orders of the names, three contexts, two questions) that are written together."""
        return INFERENCE.units_per_part(kind)

    def units(self, table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the scene and of the template of every row."""
        return column_codes(table["scene_id"]), column_codes(table["template_id"])

    def default_format(self, scorer: Scorer) -> str:
        """An instruction for models that chat and write, else the first prompt."""
        return INSTRUCTED if asking.chats(scorer) else next(iter(self.formats))

    def answer(self, part: pa.Table, scorer: Scorer, prompt_format: PromptFormat, norm: str) -> dict[str, pa.Array]:
        """Choose the most likely of the three answers, or read whom a model's text names."""
        check_rule(scorer, norm)
        rows = part.to_pylist()
        rendered = [prompt_format.render(row) for row in rows]
        keys = [f"{row['category']}_qa/{row['example_id']}" for row in rows]
        if not isinstance(scorer, TextScorer):
            requests = [
                Request(prompt, options, {**roles_of_options(row), "first": 0, "last": 2}, key)
                for (prompt, options), row, key in zip(rendered, rows, keys, strict=True)
            ]
            return choice_columns(cast(OptionScorer, scorer).score(requests), norm)
        texts = scorer.generate([prompt for prompt, _ in rendered], keys)
        read = [[read_answer(text, norm, row) for text in of_row] for of_row, row in zip(texts, rows, strict=True)]
        return text_columns(texts, read, scorer.samples)

    def read_given(self, table: pa.Table, answers: pa.Table, prompt_format: PromptFormat | None, norm: str) -> pa.Table:
        """Answers of others: places as they are, texts as whom they name."""
        given = answers["prediction"]
        if not is_text(given):
            check_outcomes(answers)
            return answers.set_column(answers.column_names.index("prediction"), "prediction", as_places(given))
        texts = [(text or "",) for text in given.to_pylist()]
        read = [[read_answer(text, norm, row)] for (text,), row in zip(texts, table.to_pylist(), strict=True)]
        return pa.table(text_columns(texts, read, 1))

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
        from qabias.benchmarks.inference.tables import analyse_bbq_qa

        return analyse_bbq_qa(table, answers, scores, rules)

    def groups(self, scores: Mapping[str, Any], measure: Measure | None = None) -> dict[str, Scores]:
        """The scores by category and by what the conversion varies, and of all rows."""
        return INFERENCE.groups(scores, measure)

    def group_path(self, group: str) -> tuple[str, ...]:
        """Under `by`, but for all rows."""
        return INFERENCE.group_path(group)

    def pair_up(self, table: pa.Table, first: pa.Table, second: pa.Table, rules: Rules = NO_RULES) -> dict[str, Pair]:
        """The answers of two runs by template, in the groups of `groups`."""
        return pairs_by_group(table, asking.pairing(table, BBQ, first, second, rules))

    def sample_facts(self, scores: Mapping[str, Any]) -> dict[str, str]:
        """Answers, and those that name nobody."""
        return asking.sample_facts(scores)

    def remarks(self, scores: Mapping[str, Any]) -> list[str | Table]:
        """Shares of the answers."""
        return [asking.label_shares(scores)]

    def _tables(self, config: str, origin: Any) -> dict[str, pa.Table]:
        self.check_config(config)
        names = _OF_ALL if config == _ALL_QA else [config]
        return {name: from_inference(INFERENCE.load(_OF_INFERENCE[name], origin)) for name in names}


BENCHMARK = BBQQuestionsBenchmark()
