"""A page's content next to its tables: sample, headline scores, and example prompts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from qabias.benchmarks import Benchmark
from qabias.benchmarks.base import RUN
from qabias.benchmarks.breakdowns import READ_RANGES
from qabias.benchmarks.headline import Headline, Tile, headline_tiles, meaningful
from qabias.building.origin import BUNDLED
from qabias.comparison import PUBLISHED, Comparison
from qabias.comparison.comparable import are_question_only
from qabias.runs.opened import Run
from qabias.runs.scored import cost_in_words
from qabias.runs.signature import coverage_of, scorer_name, signature_fields
from qabias.scorers.registry import kinds
from qabias.scores.facts import ALL, Row, Scores
from qabias.scores.formatting import show
from qabias.scores.score import as_score, estimate, limited
from qabias.support.files import strict
from qabias.tables.model import Analysis, Column, Figure, Table, Value

_SCORE_COLUMNS = 8  # of a table of published scores, before those on its documents
_MOST_GROUPS = 14

_MOST_TILES = 4


BUNDLED_TEXTS = "new, not yet rated by people. Not comparable with the papers or model cards."
"""What a reader must know of the bundled texts."""


class Head(NamedTuple):
    """Facts, headline scores and headline of a run, and the version of its model."""

    facts: Mapping[str, str]
    tiles: Sequence[Tile]
    headline: Headline | None
    revision: str


def make_head(run: Run) -> Head:
    """Facts, tiles and headline of a run."""
    benchmark = run.benchmark
    facts = benchmark.sample_facts(run.scores)
    tiles = headline_tiles(benchmark, run.scores, run.is_question_only)
    first = run.headline
    if run.arguments.scores or run.arguments.until:
        tiles = [tile for tile in tiles if tile[1].value is not None] or tiles
    covered = coverage_of(run.arguments)
    if covered:
        facts = {"Answered": covered, **facts}
    limit = run.arguments.limit
    if limit is not None:
        facts["Limit"] = f"{limit} examples: {benchmark.facts.notes.limit}"
    if texts := about_texts(run):
        facts["Texts"] = texts
    if cost := cost_in_words(run.cost):
        facts["Cost"] = cost
    return Head(facts, tiles, first, _revision(run))


def about_texts(run: Run) -> str:
    """What the bundled texts cannot be compared with, in a few sentences; "" for the texts of others."""
    published = [source for source in run.benchmark.sources if source != BUNDLED]
    if run.arguments.source != BUNDLED or not published:
        return ""
    return f"bundled: {BUNDLED_TEXTS} To compare, use --source {published[0]}."


def _revision(run: Run) -> str:
    """The requested revision, and the version and precision of the model."""
    model = run.arguments.model
    pinned = signature_fields(run.signature).get("model", "")
    version = pinned.removeprefix(f"{model}@") if pinned.startswith(f"{model}@") else ""
    return ": ".join(part for part in (run.arguments.revision, version) if part)


def headline_table(heading: str, clusters: str, names: Sequence[str], tiles: Sequence[Sequence[Tile]]) -> Table:
    """The headline scores of several runs of a benchmark: runs by scores."""
    by_run = [{title: score for title, score, _ in own} for own in tiles]
    shown_kinds = {title: score.kind for own in by_run for title, score in own.items()}
    columns: list[tuple[Column, list[Value]]] = []
    for number, (title, kind) in enumerate(shown_kinds.items(), start=1):
        scores = [own.get(title) for own in by_run]
        column = Column(f"score_{number}", title, kind)
        columns.append((column, [score and score._replace(mde=None) for score in scores]))
    missing = [max((score.missing for score in own.values()), default=0.0) for own in by_run]
    note = f"95% CIs over {clusters} in square brackets."
    if any(missing):
        columns.append((Column("missing", "Answers missing", "share"), list(missing)))
        note = f"{note} {READ_RANGES}"
    return Table(
        "headline",
        heading,
        "",
        note,
        (Column("run", "Run", "text"), *(column for column, _ in columns)),
        tuple((name, *(values[place] for _, values in columns)) for place, name in enumerate(names)),
    )


def comparison_headlines(comparison: Comparison) -> Table:
    """The headline scores of a comparison's runs: runs by scores."""
    if comparison.view is PUBLISHED:
        (table,) = comparison.analysis.tables
        narrow = tuple(row[:_SCORE_COLUMNS] for row in table.rows)
        return replace(table, name="headline", columns=table.columns[:_SCORE_COLUMNS], rows=narrow)
    benchmark, question_only = comparison.benchmark, are_question_only(comparison.runs)
    tiles = [headline_tiles(benchmark, strict(scores), question_only) for scores in comparison.scores]
    return headline_table("Headline scores", benchmark.facts.clusters[0], comparison.names, tiles)


def bias_figure(benchmark: Benchmark, scores: Scores, name: str, question_only: bool) -> Table | None:
    """The first figure of a page: the headline's bias by group, all examples last."""
    rules = benchmark.facts.headline
    if rules is None:
        return None
    decisive = meaningful(benchmark, question_only, tuple(rules.biases) or (rules.magnitude,))
    score = next((one for one in decisive if estimate(scores, one.name).value is not None), decisive[0])
    groups = scores["by"][rules.by] if rules.by else benchmark.groups(scores)
    rows = [(group, limited(one, score).shown) for group, one in groups.items()]
    rows.sort(key=lambda row: -(row[1].value if row[1].value is not None else -math.inf))
    if rules.by and len(rows) > 1:
        rows.append((ALL, limited(scores, score).shown))
    unit = "" if score.kind == "number" else " in %"
    title = score.tile or score.title
    columns = (
        Column("group", "Group", "text"),
        Column(score.name, f"{title}{unit}, with 95% CI", score.kind),
    )
    return Table("first", f"{title}: {name}", "", "", columns, tuple(rows), Figure("intervals", "group", (score.name,)))


def comparison_figure(comparison: Comparison) -> Table | None:
    """The first figure of a comparison page: differences of two runs, else the first drawn table."""
    drawn = [table for table in comparison.analysis.tables if table.figure is not None and table.rows]
    of_pairs = [table for table in drawn if table.name.startswith("difference_")] if len(comparison.runs) == 2 else []
    first = next(iter([*of_pairs, *drawn]), None)
    if first is None or len(first.rows) <= _MOST_GROUPS:
        return first
    place = [column.name for column in first.columns].index(first.figure.values[0]) if first.figure else 0
    sizes = [abs(as_score(row[place]).value or 0.0) + 10 * (row[0] == ALL) for row in first.rows]
    kept = sorted(sorted(range(len(sizes)), key=lambda row: -sizes[row])[:_MOST_GROUPS])
    return replace(first, title=f"{first.title}, largest", rows=tuple(first.rows[row] for row in kept))


def comparison_tiles(comparison: Comparison) -> list[Tile]:
    """Differences of two runs over all examples, or the first bias score of up to four runs."""
    measures = [measure for measure in comparison.measures if measure.tile]
    tables = {table.name: table for table in comparison.analysis.tables}
    tiles = []
    if len(comparison.runs) == 2:
        for measure in measures[:_MOST_TILES]:
            rows = tables[f"difference_{measure.name}"].rows if f"difference_{measure.name}" in tables else ()
            # A benchmark of several sets has no score of all examples: one tile per set.
            groups = [
                {ALL: one} if measure.name in one else comparison.benchmark.groups(one) for one in comparison.scores
            ]
            signed = replace(measure, kind="signed") if measure.kind == "share" else measure
            for group, value, *_ in (row for row in rows if row[0] in groups[0]):
                levels = " to ".join(show(estimate(one[str(group)], measure.name), measure.kind) for one in groups)
                what = measure.tile if group == ALL else f"{measure.tile}, {group}"
                tiles.append((f"{what}, difference", as_score(value)._replace(measure=signed), levels))
        return tiles[:_MOST_TILES]
    if measures and len(comparison.runs) <= _MOST_TILES and measures[0].name in comparison.scores[0]:
        for name, one in zip(comparison.names, comparison.scores, strict=True):
            tiles.append((name, limited(one, measures[0]), measures[0].tile))
    return tiles


def card_text(name: str, sample: str, first: Headline | None, tiles: Sequence[Tile], signature: str) -> str:
    """A sentence and a table in Markdown for the card of a model."""
    text = f"{name} ({sample}). {first.text} {first.detail}".strip() if first else f"{name} ({sample})."
    rows = [f"| {title} | {show(score, score.kind)} | {score.interval} |" for title, score, _ in tiles]
    lines = (text, "", "| Score | Value | 95% CI |", "|---|---|---|", *rows, "", f"Measured with qabias: `{signature}`")
    return "\n".join(lines).replace("\u00a0", "")


def with_prompts(run: Run) -> Analysis:
    """The analysis with the key `prompt` in its examples, see `prompts_of`."""
    analysis = run.analysis
    prompts, missing = prompts_of(analysis.examples, run)
    examples = tuple({**row, "prompt": prompt} for row, prompt in zip(analysis.examples, prompts, strict=False))
    how_chosen = f"{analysis.how_chosen} {missing}".rstrip()
    return replace(analysis, examples=examples or analysis.examples, how_chosen=how_chosen)


def prompts_of(rows: Sequence[Row], run: Run) -> tuple[list[Any], str]:
    """The prompt of every example, a text or a list of several; [] without prompts, with the reason.

    A run stores no prompts; the signature's prompt format renders them again. Only the first answer order is shown.
    """
    wanted = signature_fields(run.signature).get("format")
    kind = kinds().get(scorer_name(run.signature))
    if wanted is None or not rows or (kind is not None and not kind.reads_prompt):
        return [], ""
    benchmark = run.benchmark
    wanted, _, orders = wanted.partition("+")
    formats = {one.signature: one for one in benchmark.formats.values()}
    if wanted not in formats:
        return [], f"Prompts are not shown, because this version of qabias does not have the format {wanted}."
    variants = {one.name: one for one in formats[wanted].variants}
    prompts: list[Any] = []
    for row in rows:
        one = variants.get(row.get(RUN, ""), formats[wanted])
        texts = [text for question in benchmark.facts.view.questions(row) for text in one.texts(question)]
        prompts.append(texts[0] if len(texts) == 1 else texts)
    return prompts, "Prompts are shown with the first answer order." if orders else ""
