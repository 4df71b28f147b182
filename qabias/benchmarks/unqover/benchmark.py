"""UnQover for the engine: two orders, two questions, eight scores a row, and the published measures by set."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from tqdm import tqdm

from qabias.benchmarks import locate
from qabias.tables.model import Analysis
from qabias.benchmarks import unknown_config
from qabias.benchmarks.unqover.questions import ASKED, ask_masks, ask_options, ask_spans
from qabias.support.arrow import column_codes
from qabias.errors import QabiasError
from qabias.benchmarks.prompt_format import PromptFormat
from qabias.benchmarks.unqover.prompts import FORMATS
from qabias.scorers.base import OptionScorer, Scorer, TextScorer

_builder = locate.dataset_module("unqover", "builder")
_folder = locate.dataset_module("unqover", "folder")

# All four sets, as questions and as masked sentences.
ALL = "all"
_GROUPS = {
    f"{ALL}{_builder.MLM}": [name for name in _builder.CONFIGS if name.endswith(_builder.MLM)],
    ALL: [name for name in _builder.CONFIGS if not name.endswith(_builder.MLM)],
}
# `none` is the probability of the subject itself, `pair` its share of the two subjects: never tabulate them together.
NORMS = ("none", "pair")


class UnQoverBenchmark:
    """UnQover: underspecified questions over subject pairs (Li et al. 2020)."""

    name = "unqover"
    title = "UnQover: stereotyping biases via underspecified questions"
    configs: Sequence[str] = (*_builder.CONFIGS, *_GROUPS)
    sources: Sequence[str] = _builder.SOURCES
    formats: Mapping[str, PromptFormat] = FORMATS
    norms: Sequence[str] = NORMS
    scorers: Sequence[str] = ("extractive_qa", "masked_lm", "causal", "seq2seq", "server", "baseline")
    key = ("set", "example_id")
    answer_columns = tuple(f"s{subject}_{name}" for name in ASKED for subject in (1, 2))

    def origin(self, source: str, seed: int, fixes: bool, upstream_dir: str | None) -> Any:
        """Check the choice of a source (see `unqover_dataset.builder.Origin`)."""
        return _builder.Origin(source, seed, fixes, upstream_dir)

    def load(self, config: str, origin: Any) -> pa.Table:
        """The examples of a set or of all four, in file order, with the column `set`; texts are dictionaries.

        The bundled examples are the committed ones; everything else is generated.
        """
        tables = []
        for name in self._sets(config):
            if origin == _builder.Origin(seed=origin.seed):
                path = locate.dataset_folder("unqover") / "data" / name / _folder.PARQUET_NAME
                texts = [field.name for field in _builder.SCHEMAS[name] if field.type == pa.string()]
                table = pq.read_table(path, read_dictionary=texts)
            else:
                table = origin.table(name)
            tables.append(table.append_column("set", pa.array([name] * table.num_rows).dictionary_encode()))
        return pa.concat_tables(tables).unify_dictionaries()

    def write_folder(self, output: Path, config: str, origin: Any) -> dict[str, pa.Table]:
        """Build a dataset folder with a progress bar; returns its tables by set. `all` builds the masked forms too."""
        names = _builder.CONFIGS if config == ALL else self._sets(config)
        with tqdm(total=len(names), unit="set", desc="build unqover") as bar:
            tables: dict[str, pa.Table] = _folder.write_folder(output, origin, names, lambda _: bar.update())
        return tables

    def units_per_part(self, scorer: str) -> int:
        """Rows, of four questions each, that are written together; encoders gain from asking many at once."""
        return 64 if scorer in ("causal", "seq2seq", "server") else 4096

    def units(self, table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        """A row is a unit, for it holds both orders and both questions; its stratum is the template of its set."""
        return np.arange(table.num_rows), column_codes(table["template_id"])

    def default_format(self, scorer: Scorer) -> str:
        """Context, question and answer; encoders have formats of their own."""
        return "qa"

    def answer(self, part: pa.Table, scorer: Scorer, prompt_format: PromptFormat, norm: str) -> dict[str, pa.Array]:
        """The eight scores of every row: of both subjects, in both orders, to both questions."""
        if isinstance(scorer, TextScorer):
            raise QabiasError(
                "unqover: its scores are probabilities, which generated text has not; leave mode=generate out, or "
                "give a server mode=echo"
            )
        masked = "masked" in part.column_names
        if masked != (scorer.name == "masked_lm"):
            form = "questions: leave _mlm out of" if masked else "masked sentences: add _mlm to"
            raise QabiasError(f"unqover: the scorer {scorer.name} asks {form} the name of the configuration")
        if scorer.name == "extractive_qa":
            scores = ask_spans(part, scorer)
        elif scorer.name == "masked_lm":
            scores = ask_masks(part, scorer)
        else:
            scores = ask_options(part, cast(OptionScorer, scorer), prompt_format)
        if norm == "pair":
            scores = scores / scores.sum(axis=1, keepdims=True)
        return {
            f"s{subject + 1}_{name}": pa.array(scores[:, subject, number].astype(np.float32))
            for number, name in enumerate(ASKED)
            for subject in (0, 1)
        }

    def score(self, table: pa.Table, answers: pa.Table) -> dict[str, Any]:
        """All measures by set.

        Rows without a score are left out, and the subjects that a masked model does not know as one token are named.
        """
        import evaluate  # takes seconds, and only scoring needs it

        metric = evaluate.load(str(locate.metric_folder("unqover")))
        given = {name: _numbers(answers, name) for name in self.answer_columns}
        known = ~np.isnan(np.stack(list(given.values()))).any(axis=0)
        sets: dict[str, Any] = {}
        for name in pc.unique(table["set"]).to_pylist():
            of_set = pc.equal(table["set"], name).to_numpy()
            kept = of_set & known
            left_out = table.filter(pa.array(of_set & ~known))
            unknown = _unknown_subjects(left_out, answers.filter(pa.array(of_set & ~known)))
            if not kept.any():
                raise QabiasError(f"unqover: the model knows no pair of subjects of the set {name} as single tokens")
            predictions = {column: scores[kept] for column, scores in given.items()}
            references = table.filter(pa.array(kept))
            scores = metric.compute(predictions=predictions, references=references, by=["attribute_class"])
            sets[name] = {**scores, "n_left_out": left_out.num_rows, "subjects_left_out": unknown}
        return {"sets": sets}

    def analyse(
        self, table: pa.Table, answers: pa.Table, scores: Mapping[str, Any], prompt_format: str | None
    ) -> Analysis:
        """The figures and tables of Li et al. 2020 (see `qabias.benchmarks.unqover.tables`)."""
        from qabias.benchmarks.unqover.tables import analyse

        return analyse(table, answers, scores)

    def _sets(self, config: str) -> Sequence[str]:
        if config not in self.configs:
            raise unknown_config(config, self.configs)
        return _GROUPS.get(config, [config])


def _numbers(answers: pa.Table, column: str) -> np.ndarray:
    """Scores of somebody's table; NaN where there is none."""
    try:
        numbers: np.ndarray = answers[column].cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid as error:
        raise QabiasError(f"unqover: column {column} must hold probabilities as numbers: {error}") from error
    return numbers


def _unknown_subjects(rows: pa.Table, answers: pa.Table) -> list[str]:
    """The subjects of some rows that have no score."""
    unknown: set[str] = set()
    for number in (1, 2):
        has_none = pa.array(np.isnan(answers[f"s{number}_{ASKED[0]}"].to_numpy()))
        unknown.update(rows[f"subject{number}"].filter(has_none).unique().to_pylist())
    return sorted(unknown)


BENCHMARK = UnQoverBenchmark()
