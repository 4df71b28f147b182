"""The benchmark: where its examples come from, how they are put to a model, and how answers are scored."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from qabias.answers import parse_choice
from qabias.answers.likelihoods import NORMS, choice_columns
from qabias.benchmarks.base import NO_RULES, Benchmark, Rules, Scored
from qabias.benchmarks.prompt_format import PromptFormat
from qabias.errors import QabiasError
from qabias.scorers.base import OptionScorer, Request, Scorer, TextScorer
from qabias.scorers.kind import ScorerKind
from qabias.scorers.registry import check_rule
from qabias.scores.facts import Facts
from qabias.scores.formatting import percent, pluralize
from qabias.support.arrow import column_codes, rows_of
from qabias.support.suggest import unknown
from qabias.tables.model import Analysis
from qabias_toy import NAME, metric
from qabias_toy.examples import TEMPLATES, make_examples
from qabias_toy.facts import FACTS
from qabias_toy.prompts import FORMATS
from qabias_toy.tables import analyse, examples

ALL_TEMPLATES = "all"


class ToyOrigin(NamedTuple):
    """Where the texts come from."""

    version: str


class ToyBenchmark(Benchmark):
    """Two templates about two cooks."""

    name = NAME
    title = "Toy: which of two cooks a model names"
    configs: Sequence[str] = (*TEMPLATES, ALL_TEMPLATES)
    sources: Sequence[str] = ("bundled",)
    formats: Mapping[str, PromptFormat] = FORMATS
    norms: Sequence[str] = NORMS
    interfaces: Sequence[str] = ("options", "texts")
    key: Sequence[str] = ("example_id",)
    answer_columns: Sequence[str] = ("prediction",)
    breakdowns: Sequence[str] = ("template",)
    facts: Facts = FACTS

    def origin(self, source: str, seed: int, fixes: bool) -> ToyOrigin:
        """Check the choice of a source."""
        if source not in self.sources:
            raise unknown("source", source, self.sources)
        if fixes:
            raise QabiasError(f"{NAME}: its texts have no known defects; leave --fixes out")
        return ToyOrigin(f"{source}@1")

    def load(self, config: str, origin: Any) -> pa.Table:
        """The examples of a template or of all, in file order."""
        if config not in self.configs:
            raise unknown("configuration", config, self.configs)
        names = TEMPLATES if config == ALL_TEMPLATES else (config,)
        return pa.concat_tables([make_examples(name) for name in names])

    def write_folder(self, output: Path, config: str, origin: Any) -> dict[str, pa.Table]:
        """Write the examples as Parquet; returns them by configuration."""
        names = TEMPLATES if config == ALL_TEMPLATES else (config,)
        tables = {name: self.load(name, origin) for name in names}
        output.mkdir(parents=True, exist_ok=True)
        for name, table in tables.items():
            pq.write_table(table, output / f"{name}.parquet")
        return tables

    def units_per_part(self, kind: ScorerKind) -> int:
        """Pairs of cooks that are asked and written together."""
        return 64

    def units(self, table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        """A unit is a pair of cooks in both orders, its stratum the template."""
        return column_codes(table["pair_id"]), column_codes(table["template_id"])

    def default_format(self, scorer: Scorer) -> str:
        """A model that writes must see the options."""
        return "listed" if isinstance(scorer, TextScorer) else "qa"

    def answer(
        self, part: pa.Table, scorer: Scorer, prompt_format: PromptFormat, norm: str
    ) -> dict[str, pa.Array | pa.ChunkedArray]:
        """Choose the most likely option, or read the one that a model wrote."""
        check_rule(scorer, norm)
        rows = part.to_pylist()
        rendered = [prompt_format.render(row) for row in rows]
        keys = [row["example_id"] for row in rows]
        if not isinstance(scorer, TextScorer):
            requests = [
                Request(prefix, options, _parts_played(row), key)
                for (prefix, options), row, key in zip(rendered, rows, keys, strict=True)
            ]
            return choice_columns(cast(OptionScorer, scorer).score(requests), norm)
        if scorer.samples > 1:
            raise QabiasError(f"{NAME}: a question has one answer; leave samples out")
        texts = [text for (text,) in scorer.generate([prefix for prefix, _ in rendered], keys)]
        read = [parse_choice(text, row["options"]) for text, row in zip(texts, rows, strict=True)]
        return {"prediction": pa.array(read, pa.int8()), "outputs": pa.array([[text] for text in texts])}

    def score(self, table: pa.Table, answers: pa.Table, rules: Rules = NO_RULES) -> dict[str, Any]:
        """All scores, over all examples and by template."""
        places = np.array(_indices(answers))
        by_template = {
            name: metric.compute(table.take(pa.array(rows)), places[rows].tolist())
            for name, rows in rows_of(table["template_id"]).items()
        }
        return {**metric.compute(table, places.tolist()), "by": {"template": by_template}}

    def analyse(self, run: Scored) -> Analysis:
        """The tables of a run."""
        return analyse(run.table, run.answers, self.groups(run.scores))

    def examples(self, table: pa.Table, answers: pa.Table) -> Sequence[Mapping[str, Any]]:
        """Every example with its answer."""
        return examples(table, answers)

    def group_columns(self, table: pa.Table) -> Mapping[str, pa.ChunkedArray]:
        """The template of every example."""
        return {"template": table["template_id"]}

    def clusters(self, table: pa.Table) -> np.ndarray:
        """The pair of cooks of every example."""
        return column_codes(table["pair_id"])

    def count(self, table: pa.Table, answers: pa.Table, cells: np.ndarray, rules: Rules = NO_RULES) -> np.ndarray:
        """The answers by cell and kind."""
        return metric.count(table, answers["prediction"].to_pylist(), cells)

    def scores_from_counts(self, counts: np.ndarray, rules: Rules = NO_RULES) -> Mapping[str, np.ndarray]:
        """The scores of sums of counts."""
        return metric.scores_from_counts(counts)

    def sample_facts(self, scores: Mapping[str, Any]) -> dict[str, str]:
        """Examples, and outputs that name no option."""
        unparsed = f"{pluralize(scores['n_unparsed'], 'output')} named no option ({percent(scores['unparsed_share'])})"
        return {"Sample": pluralize(scores["n"], "example"), "Unparsed": unparsed}


def _parts_played(row: Mapping[str, Any]) -> dict[str, int]:
    """Which option plays which part, for the baselines."""
    first, second, unknown_place = (row["roles"].index(role) for role in ("first", "second", "unknown"))
    return {"biased": first, "counter_biased": second, "unknown": unknown_place, "gold": unknown_place}


def _indices(answers: pa.Table) -> list[int]:
    """The column `prediction` of a run, or of somebody's file."""
    column = answers["prediction"]
    if not pa.types.is_integer(column.type):
        raise QabiasError(f"{NAME}: prediction must be the index of an option, 0 to 2, or -1 for no answer")
    outside = pc.any(pc.or_(pc.less(column, -1), pc.greater(column, 2))).as_py()
    if outside:
        raise QabiasError(f"{NAME}: a prediction is not in -1 to 2; give the index of an option, or -1 for no answer")
    return column.fill_null(-1).to_pylist()


BENCHMARK = ToyBenchmark()
