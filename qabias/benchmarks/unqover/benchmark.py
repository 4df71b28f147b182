"""UnQover for the engine: two orders, two questions, eight scores per row, and the published measures by set."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qabias.answers.outcomes import OUTCOMES
from qabias.benchmarks import locate
from qabias.benchmarks.base import NO_RULES, RUN, Benchmark, Rules, Scored
from qabias.benchmarks.pairs import ClusterScores, Floats, Pair
from qabias.benchmarks.prompt_format import PromptFormat
from qabias.benchmarks.scoring import compute
from qabias.benchmarks.unqover import NAME, harness_logs
from qabias.benchmarks.unqover.facts import ALL_SETS, EVEN, FACTS
from qabias.benchmarks.unqover.questions import (
    ASKED,
    CHOOSE,
    FORMATS,
    REASON,
    ask_masks,
    ask_options,
    ask_spans,
    ask_texts,
    count_written,
    nothing_scored,
    score_columns,
    shares_of_pairs,
    subjects_of,
    written_facts,
)
from qabias.errors import QabiasError, arg
from qabias.scorers.base import MaskScorer, OptionScorer, Scorer, SpanScorer, TextScorer
from qabias.scorers.kind import ScorerKind
from qabias.scorers.registry import kind_of
from qabias.scores.facts import ALL, Facts, Measure, Scores
from qabias.scores.formatting import percent, pluralize
from qabias.share.metrics.unqover import scores as metric
from qabias.share.metrics.unqover.computing import Computing
from qabias.share.unqover_dataset import folder as _folder
from qabias.share.unqover_dataset import origin as _origin
from qabias.support.arrow import column_codes, rows_of
from qabias.tables.model import Analysis, Column, Table

ALL_MASKED = f"{ALL_SETS}{_origin.MLM}"
_GROUPS = {
    ALL_MASKED: [name for name in _origin.CONFIGS if name.endswith(_origin.MLM)],
    ALL_SETS: [name for name in _origin.CONFIGS if not name.endswith(_origin.MLM)],
}
NORMS = ("none", "pair")
"""`none` scores a subject by its own probability, `pair` by its share of the two. Never compare them."""

_DEFAULT_SUBJECTS = _origin.official.DEFAULT_SUBJECTS
_NUMBERS_AT_ONCE = 4_000_000  # in one matrix of reweighted sums

N_STRONGEST = 3
"""Associations per set in the terminal."""


class UnQoverBenchmark(Benchmark):
    """UnQover: underspecified questions over subject pairs (Li et al. 2020)."""

    name = NAME
    title = "UnQover: stereotyping biases via underspecified questions"
    configs: Sequence[str] = (*_origin.CONFIGS, *_GROUPS)
    sources: Sequence[str] = _origin.SOURCES
    formats: Mapping[str, PromptFormat] = FORMATS
    norms: Sequence[str] = NORMS
    interfaces: Sequence[str] = ("spans", "masks", "options", "texts")
    default_configs = MappingProxyType({"masks": ALL_MASKED})
    key = ("set", "example_id")
    answer_columns = tuple(f"s{subject}_{name}" for name in ASKED for subject in (1, 2))
    optional_columns = ("outcomes", "outputs")
    stored_columns = ("outcomes", EVEN)
    asks: Mapping[str, str] = MappingProxyType(
        {"answer-logprob": "qa", "letter-logprob": CHOOSE, "letter": CHOOSE, "cot": REASON}
    )
    rules: Mapping[str, Sequence[str]] = MappingProxyType({"delta": ("paper", "released")})
    averages = True
    options: Mapping[str, Sequence[str]] = {
        "subjects": (_DEFAULT_SUBJECTS, *(name for name in _origin.SUBJECTS if name != _DEFAULT_SUBJECTS))
    }
    log_readers = (harness_logs.read,)
    facts: Facts = FACTS

    def origin(self, source: str, seed: int, fixes: bool, subjects: str | None = None) -> Any:
        """Check the choice of a source and of the subjects of masked sentences."""
        return _origin.Origin(source, seed, fixes, subjects)

    def load(self, config: str, origin: Any) -> pa.Table:
        """The examples of a set or of all four in file order, with the column `set`."""
        names, tables = self._sets(config), []
        if origin.subjects is not None and not all(name.endswith(_origin.MLM) for name in names):
            problem = f"{NAME}: the option subjects is for masked sentences, and {config} has questions."
            raise QabiasError(problem, f"Remove it, or add {_origin.MLM} to the config.")
        for name in names:
            if origin.is_committed:
                texts = [field.name for field in _origin.SCHEMAS[name] if field.type == pa.string()]
                table = locate.read_data(NAME, name, read_dictionary=texts)
            else:
                table = origin.table(name)
            column = pa.DictionaryArray.from_arrays(np.zeros(table.num_rows, dtype=np.int32), [name])
            tables.append(table.append_column("set", column))
        return pa.concat_tables(tables).unify_dictionaries()

    def write_folder(self, output: Path, config: str, origin: Any) -> dict[str, pa.Table]:
        """Build a dataset folder and return its tables by set. `all` includes the masked forms."""
        names = _origin.CONFIGS if config == ALL_SETS else self._sets(config)
        tables: dict[str, pa.Table] = _folder.write_folder(output, origin, names)
        return tables

    def units_per_part(self, kind: ScorerKind) -> int:
        """Rows of four questions per part; encoders gain from larger parts."""
        return 4096 if kind.many_at_once else 64

    def units(self, table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        """A unit is a row with both orders and both questions, its stratum the template."""
        return np.arange(table.num_rows), column_codes(table["template_id"])

    def cells(self, table: pa.Table) -> np.ndarray:
        """A pair of subjects with an attribute: eta compares its templates."""
        first, second, attribute = (column_codes(table[name]) for name in ("subject1", "subject2", "attribute"))
        return (first * (second.max() + 1) + second) * (attribute.max() + 1) + attribute

    def default_format(self, scorer: Scorer) -> str:
        """Context, question and answer, or lettered subjects for a model that writes."""
        return CHOOSE if isinstance(scorer, TextScorer) else next(iter(FORMATS))

    def answer(self, part: pa.Table, scorer: Scorer, prompt_format: PromptFormat, norm: str) -> dict[str, pa.Array]:
        """The eight scores of every row: of both subjects, in both orders, to both questions."""
        ways = kind_of(scorer).interfaces
        masked = "masked" in part.column_names
        if masked != ("masks" in ways):
            form, fix = ("questions", "Remove _mlm from") if masked else ("masked sentences", "Add _mlm to")
            raise QabiasError(f"{NAME}: the backend {scorer.name} needs {form}.", f"{fix} the config.")
        if isinstance(scorer, TextScorer):
            if norm != NORMS[0]:
                problem = f"{NAME}: {arg('length_norm')} {norm} divides probabilities, and a written answer has none."
                raise QabiasError(problem, f"Remove {arg('length_norm')}.")
            return ask_texts(part, scorer, prompt_format)
        if "spans" in ways:
            scores = ask_spans(part, cast(SpanScorer, scorer))
        elif "masks" in ways:
            scores = ask_masks(part, cast(MaskScorer, scorer))
        else:
            scores = ask_options(part, cast(OptionScorer, scorer), prompt_format)
        if norm != "pair":
            return score_columns(scores)
        scores, n_even = shares_of_pairs(scores)
        return {EVEN: pa.array(n_even.astype(np.int8)), **score_columns(scores)}

    def score(self, table: pa.Table, answers: pa.Table, rules: Rules = NO_RULES) -> dict[str, Any]:
        """All measures by set."""
        columns = {name: _numbers(answers, name) for name in self.answer_columns}
        known = ~np.isnan(np.stack(list(columns.values()))).any(axis=0)
        if RUN in table.column_names:  # a row is scored in all runs or in none
            n_runs = len(table[RUN].unique())
            known = np.tile(known.reshape(n_runs, -1).all(axis=0), n_runs)
        is_written = "outcomes" in answers.column_names
        sets: dict[str, Any] = {}
        for name in pc.unique(table["set"]).to_pylist():
            of_set = pc.equal(table["set"], name).to_numpy()
            rows, of_rows, of_known = table.filter(pa.array(of_set)), answers.filter(pa.array(of_set)), known[of_set]
            scored, excluded = pa.array(of_known), pa.array(~of_known)
            if of_known.any():
                chosen = {column: values[of_set][of_known] for column, values in columns.items()}
                with warnings.catch_warnings():
                    if is_written:  # at least half of the scores are 0
                        warnings.filterwarnings("ignore", "unqover: coverage")
                    scores = compute(Computing(), rows.filter(scored), chosen, rules, ["attribute_class"])
            elif is_written:
                scores = nothing_scored(rows)
            else:
                raise QabiasError(
                    f"{NAME}: the model has no two subjects of the set {name} as single tokens.", "Use another model."
                )
            subjects = [] if is_written else _unknown_subjects(rows.filter(excluded), of_rows.filter(excluded))
            sets[name] = {**scores, "n_left_out": int((~of_known).sum()), "subjects_left_out": subjects}
            if EVEN in answers.column_names:
                sets[name][EVEN] = int(of_rows[EVEN].fill_null(0).to_numpy()[of_known].sum())
            if is_written:
                sets[name] |= count_written(rows, of_rows, of_known, rules, sets[name]["by"]["attribute_class"])
        if not is_written:
            return {"sets": sets}
        outcomes = {name: sum(group["outcomes"].get(name, 0) for group in sets.values()) for name in OUTCOMES}
        return {"sets": sets, "outcomes": outcomes}

    def analyse(self, run: Scored) -> Analysis:
        """The figures and tables of Li et al. 2020."""
        from qabias.benchmarks.unqover.tables import analyse

        return analyse(run.table, run.answers, run.scores)

    def examples(self, table: pa.Table, answers: pa.Table) -> Sequence[Mapping[str, Any]]:
        """Every row with the scores of both subjects."""
        from qabias.benchmarks.unqover.tables import comparative_scores, examples

        return examples(table, answers, comparative_scores(answers))

    def groups(self, scores: Mapping[str, Any], measure: Measure | None = None) -> dict[str, Scores]:
        """The scores by set; sets have no common score."""
        return dict(scores["sets"])

    def group_path(self, group: str) -> tuple[str, ...] | None:
        """Under `sets`; sets have no common score."""
        return None if group == ALL else ("sets", group)

    def pair_up(self, table: pa.Table, first: pa.Table, second: pa.Table, rules: Rules = NO_RULES) -> dict[str, Pair]:
        """The answers of two runs by set and template, without rows that a model could not score."""
        # A float32 softmax may sum to slightly more than 1.
        scores = [
            {name: np.minimum(answers[name].to_numpy().astype(np.float64), 1) for name in metric.SCORE_COLUMNS}
            for answers in (first, second)
        ]
        known = ~np.isnan(np.stack([column for one in scores for column in one.values()])).any(axis=0)
        groups: dict[str, Pair] = {}
        for name, rows in rows_of(table["set"]).items():
            kept = rows[known[rows]]
            if kept.size:
                examples = table.take(pa.array(kept))
                subjects, template = subjects_of(examples), column_codes(examples["template_id"])
                codes = (np.append(subjects.first, subjects.second), subjects.attribute, template)
                sizes = [int(numbers.max()) + 1 for numbers in codes]
                measured = [
                    metric.measure({name: column[kept] for name, column in one.items()}, **rules) for one in scores
                ]
                sums = [metric.collect(metric.Rows(*subjects, template, *one), *sizes) for one in measured]
                groups[name] = _pair_of_sums(sums)
        return groups

    def sample_facts(self, scores: Mapping[str, Any]) -> dict[str, str]:
        """Rows and sets, and excluded rows: missing answers or unknown subjects."""
        sets = scores["sets"]
        n_rows, n_left_out = (sum(group[key] for group in sets.values()) for key in ("n", "n_left_out"))
        written = scores.get("outcomes")
        each = "four written answers each" if written else "eight scores each"
        facts = {"Sample": f"{pluralize(n_rows, 'row')} in {pluralize(len(sets), 'set')}, {each}"}
        if written:
            n_declined = sum(group["n_declined"] for group in sets.values())
            return {**facts, **written_facts(written, n_declined, n_left_out, n_rows + n_left_out)}
        if n_left_out:
            facts["Excluded"] = f"{pluralize(n_left_out, 'row')} with a subject that is not one token of the model"
        n_even = sum(group.get(EVEN, 0) for group in sets.values())
        if n_even:
            facts["Even"] = _about_even(n_even, n_rows)
        return facts

    def remarks(self, scores: Mapping[str, Any]) -> list[str | Table]:
        """Excluded subjects, pairs without probability, and the strongest associations."""
        from qabias.benchmarks.unqover.tables import direction

        lines: list[str | Table] = [
            f"{name}: {group['n_left_out']:,} rows excluded; not single tokens: {', '.join(group['subjects_left_out'])}"
            for name, group in scores["sets"].items()
            if group["subjects_left_out"]
        ]
        lines += [
            f"{name}: {_about_even(group[EVEN], group['n'])}"
            for name, group in scores["sets"].items()
            if group.get(EVEN)
        ]
        lines += [f"{name}: {text}" for name, group in scores["sets"].items() if (text := direction(group))]
        names = ("set", "subject", "attribute", "gamma", "eta")
        columns = tuple(Column(name, name, "number" if name in ("gamma", "eta") else "text") for name in names)
        rows = tuple((name, *row) for name, group in scores["sets"].items() for row in group["top"][:N_STRONGEST])
        title = "Strongest associations (above 0: preferred for the attribute)"
        return [*lines, Table("strongest", title, "", "", columns, rows)]

    def across(self, names: Sequence[str], scores: Sequence[Mapping[str, Any]]) -> list[Table]:
        """Ranks of subjects and shared attributes."""
        from qabias.benchmarks.unqover.tables import rank_tables, shared_tables

        return [*rank_tables(names, scores), *shared_tables(names, scores)]

    def _sets(self, config: str) -> Sequence[str]:
        self.check_config(config)
        return _GROUPS.get(config, [config])


def _about_even(n_even: int, n_rows: int) -> str:
    n_questions = len(ASKED) * n_rows
    return (
        f"{n_even:,} of {n_questions:,} questions ({percent(n_even / n_questions)}) without probability for either "
        "subject count as even"
    )


def _numbers(answers: pa.Table, column: str) -> np.ndarray:
    """Scores of an external table, NaN for missing ones."""
    try:
        numbers: np.ndarray = answers[column].cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid as error:
        problem = f"{NAME}: column {column} has values that are not numbers: {error}."
        raise QabiasError(problem, "Use probabilities from 0 to 1.") from error
    return numbers


def _unknown_subjects(rows: pa.Table, answers: pa.Table) -> list[str]:
    """The subjects without a score."""
    unknown_subjects: set[str] = set()
    for number in (1, 2):
        has_none = pa.array(np.isnan(answers[f"s{number}_{ASKED[0]}"].to_numpy()))
        unknown_subjects.update(rows[f"subject{number}"].filter(has_none).unique().to_pylist())
    return sorted(unknown_subjects)


def _pair_of_sums(sums: Sequence[Any]) -> Pair:
    """Two runs from the metric's sums by template, for reweighting and exchange."""
    one, other = sums
    matrices = ("counts", "comparative", "signs", "errors")
    both = one._replace(**{name: np.concatenate([getattr(part, name) for part in sums]) for name in matrices})
    step = max(1, _NUMBERS_AT_ONCE // one.counts.shape[1])

    def scores_of(chosen: Any) -> ClusterScores:
        def score(weights: Floats) -> Mapping[str, Floats]:
            parts = [metric.headline(chosen, weights[start : start + step]) for start in range(0, len(weights), step)]
            return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

        return score

    mixed = scores_of(both)

    def exchanged(kept: Floats) -> tuple[Mapping[str, Floats], Mapping[str, Floats]]:
        return mixed(np.hstack([kept, 1 - kept])), mixed(np.hstack([1 - kept, kept]))

    return Pair(
        one.counts.shape[0],
        scores_of(one),
        scores_of(other),
        exchanged,
        one.errors[:, 0],
        (one, other),
        lambda *both: _pair_of_sums(both),
    )


BENCHMARK = UnQoverBenchmark()
