"""What a page shows of a run beside its tables: the sample, the headline scores, and examples with their prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from qabias.benchmarks import PromptFormat
from qabias.benchmarks.base import headline_tiles
from qabias.benchmarks.caveats import READ_RANGES, ends_in_words, range_column
from qabias.benchmarks.facts import Tile
from qabias.benchmarks.findings import findings
from qabias.benchmarks.prompt_format import Example
from qabias.runs.scored import ScoredRun
from qabias.runs.signature import coverage_of, scorer_name, signature_fields
from qabias.scorers.registry import kinds
from qabias.tables.formatting import UNDEFINED, percent, show
from qabias.tables.model import Analysis, Column, Estimate, Table, Value

_SHORT, _SHORT_CHOICE = 60, 40  # characters
_MOST_CHOICES = 40
# Long texts that repeat what the other columns show are folded.
_FOLDED = ("prompt",)


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
        facts["Limit"] = f"this run was limited ({limit}): {benchmark.facts.notes.limit}"
    return Head(facts, tiles, sentences)


def revision(run: ScoredRun) -> str:
    """The revision that was asked for, and the version and precision of the model that answered."""
    model = run.arguments.model
    pinned = signature_fields(run.signature).get("model", "")
    version = pinned.removeprefix(f"{model}@") if pinned.startswith(f"{model}@") else ""
    return ": ".join(part for part in (run.arguments.revision, version) if part)


def headline_table(title: str, clusters: str, names: Sequence[str], tiles: Sequence[Sequence[Tile]]) -> Table:
    """The headline scores of several runs of a benchmark: runs by scores."""
    by_run = [{tile.title: tile for tile in own} for own in tiles]
    shown_kinds = {tile.title: tile.kind for own in tiles for tile in own}
    columns: list[tuple[Column, list[Value]]] = []
    for place, (score, kind) in enumerate(shown_kinds.items(), start=1):
        shown = [own.get(score) for own in by_run]
        column = Column(f"score_{place}", score, kind)
        columns.append((column, [None if tile is None else _shown(tile) for tile in shown]))
        ranges = [ends_in_words(tile.possible, kind) if tile and tile.possible else None for tile in shown]
        if any(ranges):
            columns.append((range_column(column, f"Possible, {score}"), list(ranges)))
    missing = [max((tile.missing for tile in own), default=0.0) for own in tiles]
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


def with_prompts(analysis: Analysis, run: ScoredRun) -> Analysis:
    """The analysis with the key `prompt` in its examples: a text, or a list where a model reads several.

    An analysis keeps the texts of its examples; the prompt format that the signature names writes the prompts again.
    """
    wanted = signature_fields(run.signature).get("format")
    kind = kinds().get(scorer_name(run.signature))
    if wanted is None or not analysis.examples or (kind is not None and not kind.reads_prompt):
        return analysis
    benchmark = run.benchmark
    known = {one.signature: one for one in benchmark.formats.values()}
    wanted = wanted.partition("+")[0]  # examples show the first order
    if wanted not in known:
        missing = f"Prompts are not shown, because this version of qabias does not have the format {wanted}."
        return replace(analysis, how_chosen=f"{analysis.how_chosen} {missing}")
    examples = tuple(
        {**row, "prompt": _prompt(known[wanted], benchmark.facts.view.questions(row))} for row in analysis.examples
    )
    return replace(analysis, examples=examples)


def _prompt(prompt_format: PromptFormat, questions: Sequence[Example]) -> str | list[str]:
    prompts = [text for question in questions for text in prompt_format.texts(question)]
    return prompts[0] if len(prompts) == 1 else prompts


@dataclass(frozen=True)
class Field:
    """A column of the examples."""

    title: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Examples:
    """Examples, laid out."""

    labels: Mapping[str, str]
    folds: Mapping[str, str]
    fields: Sequence[Field]
    filters: Mapping[str, Sequence[str]]
    rows: Sequence[Mapping[str, Any]]


def lay_out_examples(examples: Sequence[Mapping[str, Any]]) -> Examples:
    """Find out which columns examples have, and show their values as texts."""
    present = [name for name in dict.fromkeys(name for row in examples for name in row) if _any(examples, name)]
    folds = [name for name in present if name in _FOLDED]
    names = [name for name in present if name not in _FOLDED]
    labels = _labels(examples, names)
    fields = _fields(examples, names[len(labels) :])
    filters = {name: values for name in names for values in [_choices(examples, name)] if len(values) > 1}
    rows = [
        {
            "labels": [_text(name, row.get(name)) for name in labels],
            "folds": [_texts(name, row.get(name)) for name in folds],
            "cells": [_cell(row, one.names) for one in fields],
            "filters": [_text(name, row.get(name)) for name in filters],
        }
        for row in examples
    ]
    titles, fold_titles = ({name: _title(name) for name in some} for some in (labels, folds))
    return Examples(titles, fold_titles, fields, filters, rows)


def _any(examples: Sequence[Mapping[str, Any]], name: str) -> bool:
    return any(row.get(name) is not None for row in examples)


def _labels(examples: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[str]:
    """The leading keys whose values are short."""
    labels = []
    for name in names:
        if any(isinstance(row.get(name), (list, dict)) or len(_text(name, row.get(name))) > _SHORT for row in examples):
            break
        labels.append(name)
    return labels


def _fields(examples: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[Field]:
    fields: list[Field] = []
    for name in names:
        if fields and _parallel(examples, fields[-1].names[0], name):
            fields[-1] = Field(f"{fields[-1].title} · {name.replace('_', ' ')}", (*fields[-1].names, name))
        else:
            fields.append(Field(_title(name), (name,)))
    return fields


def _parallel(examples: Sequence[Mapping[str, Any]], first: str, name: str) -> bool:
    """Whether two keys hold lists of the same lengths (or nothing)."""
    pairs = [(row.get(first), row.get(name)) for row in examples if row.get(name) is not None]
    return all(isinstance(one, list) and isinstance(other, list) and len(one) == len(other) for one, other in pairs)


def _choices(examples: Sequence[Mapping[str, Any]], name: str) -> list[str]:
    """The values of a key that few texts share, in order; none for numbers and long texts."""
    values = {row.get(name) for row in examples if not isinstance(row.get(name), (list, dict))}
    texts = sorted(value for value in values if isinstance(value, str))
    if len(texts) != len(values - {None}) or len(texts) > min(_MOST_CHOICES, len(examples) / 2):
        return []
    return texts if all(len(text) <= _SHORT_CHOICE for text in texts) else []


def _cell(row: Mapping[str, Any], names: Sequence[str]) -> str | list[str]:
    first = row.get(names[0])
    if not isinstance(first, list):
        return _text(names[0], first)
    columns = [[_text(name, value) for value in row[name]] for name in names if row.get(name) is not None]
    return [" · ".join(parts) for parts in zip(*columns, strict=True)]


def _texts(name: str, value: Any) -> list[str]:
    return [_text(name, inner) for inner in value] if isinstance(value, list) else [_text(name, value)]


def _text(name: str, value: Any) -> str:
    if value is None:
        return UNDEFINED
    if isinstance(value, float):
        return percent(value) if name.startswith("probabilit") else show(value, "number")
    if isinstance(value, dict):
        return ", ".join(f"{_title(key)}: {_text(key, inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return ", ".join(_text(name, inner) for inner in value)
    return str(value)


def _title(name: str) -> str:
    text = name.replace("_", " ")
    return text[:1].upper() + text[1:]
