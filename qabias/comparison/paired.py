"""The answers of two runs to the same examples, counted by cluster with the metrics' own functions.

Clusters are what the metrics draw: templates (BBQ, UnQover) or premises (BBNLI).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qabias.benchmarks import locate
from qabias.benchmarks.bbq.roles import paper_categories
from qabias.benchmarks import load_benchmark
from qabias.support.arrow import column_codes
from qabias.comparison.differences import Floats, Pair, Scores
from qabias.comparison.measures import ALL
from qabias.comparison.comparable import ScoredRun, signature_fields
from qabias.errors import QabiasError
from qabias.measuring.run import RunArguments, load_examples, read_answers

_CHUNK = 4_000_000  # numbers in one matrix of reweighted sums
_BBQ_ROLES = ("label", "target_loc", "biased_loc", "unknown_loc")

Groups = dict[str, Pair]
Codes = npt.NDArray[np.int64]


class Answers:
    """Examples and answers of runs; runs of the same examples share them."""

    def __init__(self, upstream_dir: str | None = None) -> None:
        self._upstream_dir = upstream_dir
        self._tables: dict[tuple[Any, ...], pa.Table] = {}

    def examples(self, run: ScoredRun) -> pa.Table:
        """The examples that a run was asked."""
        key = _questions(run)
        if key not in self._tables:
            benchmark = load_benchmark(run.benchmark)
            self._tables[key] = load_examples(benchmark, RunArguments(**run.arguments), self._upstream_dir)
        return self._tables[key]

    def of(self, run: ScoredRun) -> pa.Table:
        """The answers of a run, parallel to its examples, without the columns that identify them.

        Raises:
            QabiasError: If some are missing or damaged.
        """
        benchmark = load_benchmark(run.benchmark)
        answers, n_missing = read_answers(run.folder, benchmark, self.examples(run), run.units_per_part)
        if n_missing:
            raise QabiasError(f"{run.folder}: {n_missing} parts are missing; run the same command again to finish it")
        return answers.select([name for name in answers.column_names if name in _READ or name[:3] in ("s1_", "s2_")])


_READ = ("prediction", "predictions")


def _questions(run: ScoredRun) -> tuple[Any, ...]:
    names = ("benchmark", "config", "source", "fixes", "limit")
    # The bundled texts are one fixed set, of which the seed draws the sample.
    is_seeded = run.arguments["source"] != "bundled" or run.arguments["limit"] is not None
    seed = run.arguments["seed"] if is_seeded else None
    return (*(run.arguments[name] for name in names), seed, signature_fields(run.signature).get("source"))


def have_common_examples(first: ScoredRun, second: ScoredRun) -> bool:
    """Whether examples of the same name are the same question for two runs: benchmark and source agree."""
    one, other = _questions(first), _questions(second)
    # Texts of other sources than the bundled ones may depend on the seed.
    same_texts = first.arguments["source"] == "bundled" or first.arguments["seed"] == second.arguments["seed"]
    return one[0] == other[0] and one[2:4] == other[2:4] and one[-1] == other[-1] and same_texts


def pair_up(answers: Answers, first: tuple[ScoredRun, pa.Table], second: tuple[ScoredRun, pa.Table]) -> Groups:
    """The examples that two runs were both asked, with the answers of both, by group.

    Args:
        answers: Where examples come from.
        first: A run and its answers.
        second: A run that has common examples with it, and its answers.

    Returns:
        By name of the group, `ALL` among them if the benchmark scores all examples together.
    """
    (one, ours), (other, theirs) = first, second
    table = answers.examples(one)
    if _questions(one) != _questions(other):
        rows = _common_rows(table, answers.examples(other), load_benchmark(one.benchmark).key)
        table, ours, theirs = table.take(rows[0]), ours.take(rows[0]), theirs.take(rows[1])
    return _PAIRED[one.benchmark](table, ours, theirs) if table.num_rows else {}


def _common_rows(one: pa.Table, other: pa.Table, key: Sequence[str]) -> tuple[pa.Array, pa.Array]:
    """The rows of two tables that have the same key, in the order of the first."""
    numbered = [
        table.select(list(key)).append_column(name, pa.array(np.arange(table.num_rows)))
        for table, name in ((one, "row"), (other, "other_row"))
    ]
    plain = [
        pa.table({name: _plain(table[name]) for name in table.column_names}) for table in numbered
    ]  # a join takes no dictionaries
    joined = plain[0].join(plain[1], list(key), join_type="inner").sort_by("row")
    return joined["row"].combine_chunks(), joined["other_row"].combine_chunks()


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


# BBQ


def _bbq(table: pa.Table, first: pa.Table, second: pa.Table) -> Groups:
    scores = locate.metric_module("bbq", "scores")
    roles = [table[name].to_numpy().astype(np.int64) for name in _BBQ_ROLES]
    disambiguated = table["context_condition"].to_numpy() == "disambig"
    templates = column_codes(table["template_id"])
    predictions = [_predictions(answers) for answers in (first, second)]

    def pair(rows: np.ndarray) -> Pair:
        clusters, cluster = np.unique(templates[rows], return_inverse=True)
        columns = (*(role[rows] for role in roles), disambiguated[rows], cluster, len(clusters))
        return _pair_of_counts([scores.count(of[rows], *columns) for of in predictions], scores.scores_from_counts)

    return {
        **{name: pair(rows) for name, rows in _rows_of(pa.chunked_array([paper_categories(table)])).items()},
        ALL: pair(np.arange(table.num_rows)),
    }


def _predictions(answers: pa.Table) -> Codes:
    return answers["prediction"].fill_null(-1).to_numpy().astype(np.int64)


# BBNLI and BBQ as inference


def _inference(table: pa.Table, first: pa.Table, second: pa.Table) -> Groups:
    form = "bbnli" if "subtopic" in table.column_names else "bbq_nli"
    scores = locate.metric_module("bbnli", "scores")
    rows_of_metric = locate.metric_module("bbnli", "rows")
    read = (*rows_of_metric.TEXT_COLUMNS[form], *rows_of_metric.INDEX_COLUMNS[form])
    columns = {name: _plain(table[name]).to_pylist() for name in read}
    items = locate.metric_module("bbnli", "forms").read(rows_of_metric.References.of(columns), form)
    samples = [_samples(answers) for answers in (first, second)]

    def score(counts: npt.ArrayLike) -> Mapping[str, Floats]:
        found: Mapping[str, Floats] = scores.scores(form, counts, "paper", "wrong")
        return found

    def pair(rows: np.ndarray) -> Pair:
        item_columns = (items.labels, items.aligned, items.parts, items.strata, items.clusters)
        chosen = [column[rows] for column in item_columns]
        # All samples of an example weigh as one answer, for two runs may have unequal numbers of them.
        counts = [sum(scores.count(answer[rows], *chosen) for answer in answers) / len(answers) for answers in samples]
        return _pair_of_counts(counts, score)

    if form == "bbnli":
        prefixes = {"subtopic": "", "domain": ""}
    else:
        varied = [name for name in ("name_order", "context_length") if len(table[name].unique()) > 1]
        prefixes = {"category": "", **{name: f"{name}: " for name in varied}}
    groups: Groups = {}
    for name, prefix in prefixes.items():
        groups |= {f"{prefix}{value}": pair(rows) for value, rows in _rows_of(table[name]).items()}
    return {**groups, ALL: pair(np.arange(table.num_rows))}


def _samples(answers: pa.Table) -> Sequence[Codes]:
    """The answers of every sample, shape (n_samples, n)."""
    if "prediction" in answers.column_names:
        return [_predictions(answers)]
    lists = answers["predictions"].combine_chunks()
    flat = lists.flatten().fill_null(-1).to_numpy().astype(np.int64)
    return list(flat.reshape(len(lists), -1).T)


# UnQover


def _unqover(table: pa.Table, first: pa.Table, second: pa.Table) -> Groups:
    """Sets by name; rows that one of the models could not score are left out for both."""
    scores = locate.metric_module("unqover", "scores")
    known = np.ones(table.num_rows, dtype=bool)
    for answers in (first, second):
        for column in scores.SCORE_COLUMNS:
            known &= ~np.isnan(answers[column].to_numpy())
    groups: Groups = {}
    for name, rows in _rows_of(table["set"]).items():
        kept = rows[known[rows]]
        if kept.size:
            subjects = _joint_codes(table, kept)
            others = [column_codes(table[column].take(pa.array(kept))) for column in ("attribute", "template_id")]
            sizes = [int(codes.max()) + 1 for codes in (np.concatenate(subjects), *others)]
            sums = [
                scores.collect(scores.Rows(*subjects, *others, *scores.measure(_scores_of(answers, kept))), *sizes)
                for answers in (first, second)
            ]
            groups[name] = _pair_of_sums(sums, scores.headline)
    return groups


def _scores_of(answers: pa.Table, rows: np.ndarray) -> dict[str, Floats]:
    # The sum of a float32 softmax may lie a little above 1; the metric allows that too.
    return {name: np.minimum(answers[name].to_numpy()[rows].astype(np.float64), 1) for name in answers.column_names}


def _joint_codes(table: pa.Table, rows: np.ndarray) -> list[Codes]:
    both = pa.concat_arrays(
        [_plain(table[name].take(pa.array(rows))).combine_chunks() for name in ("subject1", "subject2")]
    )
    return np.split(both.dictionary_encode().indices.to_numpy().astype(np.int64), 2)


def _pair_of_sums(sums: Sequence[Any], headline: Callable[[Any, Floats], Mapping[str, Floats]]) -> Pair:
    one, other = sums
    matrices = ("counts", "comparative", "signs", "errors")
    both = one._replace(**{name: np.concatenate([getattr(of, name) for of in sums]) for name in matrices})
    step = max(1, _CHUNK // one.counts.shape[1])

    def of(chosen: Any) -> Scores:
        def score(weights: Floats) -> Mapping[str, Floats]:
            parts = [headline(chosen, weights[start : start + step]) for start in range(0, len(weights), step)]
            return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

        return score

    mixed = of(both)

    def exchanged(kept: Floats) -> tuple[Mapping[str, Floats], Mapping[str, Floats]]:
        return mixed(np.hstack([kept, 1 - kept])), mixed(np.hstack([1 - kept, kept]))

    return Pair(one.counts.shape[0], of(one), of(other), exchanged)


# All


def _pair_of_counts(counts: Sequence[npt.ArrayLike], score: Callable[[npt.ArrayLike], Mapping[str, Floats]]) -> Pair:
    one, other = (np.asarray(matrix, dtype=np.float64) for matrix in counts)

    def of(matrix: Floats) -> Scores:
        return lambda weights: score(np.tensordot(weights, matrix, axes=1))

    def exchanged(kept: Floats) -> tuple[Mapping[str, Floats], Mapping[str, Floats]]:
        first = other.sum(axis=0) + np.tensordot(kept, one - other, axes=1)
        return score(first), score(one.sum(axis=0) + other.sum(axis=0) - first)

    return Pair(len(one), of(one), of(other), exchanged)


def _rows_of(column: pa.ChunkedArray) -> dict[str, np.ndarray]:
    """The rows of every value, the values sorted."""
    codes = column_codes(column)
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    names = _plain(column.take(pa.array(order[starts]))).to_pylist()
    rows = dict(zip(names, np.split(order, starts[1:]), strict=True))
    return {name: rows[name] for name in sorted(rows)}


_PAIRED: dict[str, Callable[[pa.Table, pa.Table, pa.Table], Groups]] = {
    "bbq": _bbq,
    "unqover": _unqover,
    "bbnli": _inference,
    "bbq_nli": _inference,
}
