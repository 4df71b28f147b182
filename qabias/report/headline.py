"""What a page says first: the sample and the headline scores of a run, or those of several runs in one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from qabias.benchmarks.base import headline_tiles
from qabias.benchmarks.caveats import READ_RANGES, ends_in_words, range_column
from qabias.benchmarks.facts import Tile
from qabias.benchmarks.findings import findings
from qabias.runs.scored import ScoredRun
from qabias.runs.signature import coverage_of, signature_fields
from qabias.tables.model import Column, Estimate, Table, Value


class Head(NamedTuple):
    """Facts, headline scores and findings of a run."""

    facts: Mapping[str, str]
    tiles: Sequence[Tile]
    findings: Sequence[str]


def make_head(run: ScoredRun) -> Head:
    """Facts, tiles and findings of a run."""
    benchmark = run.benchmark
    facts = benchmark.sample_facts(run.scores)
    tiles = headline_tiles(benchmark, run.scores, run.is_question_only)
    sentences = findings(benchmark, run.scores, run.is_question_only)
    covered = coverage_of(run.arguments)
    if covered:
        facts = {"Answered": covered, **facts}
    limit = run.arguments.limit
    if limit is not None:
        facts["Limit"] = f"this run was limited ({limit}): {benchmark.facts.limit_note}"
    return Head(facts, tiles, sentences)


def revision(run: ScoredRun) -> str:
    """What pins the model beside its name: the revision that was asked for, version and precision of what was found."""
    model = run.arguments.model
    pinned = signature_fields(run.signature).get("model", "")
    found = pinned.removeprefix(f"{model}@") if pinned.startswith(f"{model}@") else ""
    return ": ".join(part for part in (run.arguments.revision, found) if part)


def headline_table(title: str, clusters: str, names: Sequence[str], tiles: Sequence[Sequence[Tile]]) -> Table:
    """The headline scores of several runs of a benchmark: runs by scores."""
    by_run = [{tile.title: tile for tile in of} for of in tiles]
    kinds = {tile.title: tile.kind for of in tiles for tile in of}
    columns: list[tuple[Column, list[Value]]] = []
    for place, (score, kind) in enumerate(kinds.items(), start=1):
        found = [of.get(score) for of in by_run]
        column = Column(f"score_{place}", score, kind)
        columns.append((column, [None if tile is None else _shown(tile) for tile in found]))
        ranges = [ends_in_words(tile.possible, kind) if tile and tile.possible else None for tile in found]
        if any(ranges):
            columns.append((range_column(column, f"Possible, {score}"), list(ranges)))
    missing = [max((tile.missing for tile in of), default=0.0) for of in tiles]
    note = f"In square brackets 95 % intervals over {clusters}."
    if any(missing):
        columns.append((Column("missing", "Answers missing", "share"), list(missing)))
        note = f"{note} {READ_RANGES} Answers missing: the largest share that one of the scores lacks."
    return Table(
        "headline",
        title,
        "",
        note,
        (Column("run", "Run", "text"), *(column for column, _ in columns)),
        tuple((name, *(values[place] for _, values in columns)) for place, name in enumerate(names)),
    )


def _shown(tile: Tile) -> Estimate:
    return Estimate(tile.value.value) if tile.possible else tile.value
