"""What every document states about a run: identity, results, documented harms, and limits."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from qabias.benchmarks import Benchmark
from qabias.benchmarks.headline import meaningful
from qabias.runs.folder import part_path
from qabias.runs.opened import Run
from qabias.runs.scored import answered_in_words
from qabias.runs.signature import coverage_of, format_name, signature_fields
from qabias.scores.facts import ALL, Measure
from qabias.scores.score import Score, imbalance, imbalance_note, read_score

NOT_ABSENT = "Not detected does not mean absent."

TO_COMPLETE = "TO COMPLETE:"
"""Begins a passage that a person replaces."""


DIGITS = 16
"""Digits of the arguments' digest that name a run in a record."""


# A library's proxy has the host in its own address, with hyphens.
_PROXY = re.compile(r"https?://([\w.-]+?)\.(?:ez)?proxy\.[\w.-]+/")


class Hazard(NamedTuple):
    """A documented harm of some templates."""

    group: str
    harm: str
    n_templates: int
    sources: tuple[str, ...]


@dataclass(frozen=True)
class Evidence:
    """A run with its examples and answers."""

    run: Run

    @property
    def benchmark(self) -> Benchmark:
        """The benchmark."""
        return self.run.benchmark

    @cached_property
    def identity(self) -> dict[str, str]:
        """Signature, versions and digests, label to text."""
        run, fields = self.run, signature_fields(self.run.signature)
        return {
            "Signature": run.signature,
            "Data": f"{fields.get('source', 'unknown')} (qabias {run.qabias_version})",
            "Examples": f"{self.run.question.table.num_rows:,}, SHA-256 {examples_digest(self.run.question.table)}",
            "Answers": f"SHA-256 {answers_digest(run.folder)}",
            "Arguments": f"SHA-256 {run.digest}",
            "Measured": run.created,
        }

    @cached_property
    def results(self) -> list[Score]:
        """Every compared score of every group, all examples first."""
        benchmark = self.benchmark
        groups = benchmark.groups(self.run.scores)
        names = [*(name for name in groups if name == ALL), *(name for name in groups if name != ALL)]
        return [
            read_score(benchmark.facts, groups[name], measure, name)
            for name in names
            for measure in meaningful(benchmark, self.run.is_question_only)
            if measure.name in groups[name]
        ]

    @property
    def no_interval(self) -> str:
        """Why scores have no interval, in a clause; "" if all have one."""
        lacking = [one for one in self.results if one.value is not None and one.low is None]
        what, _ = self.benchmark.facts.clusters
        return f"{len(lacking)} scores have no CI, because their groups have too few {what}" if lacking else ""

    @property
    def measures(self) -> list[Measure]:
        """The measures of the results, each once."""
        return list({score.measure.name: score.measure for score in self.results}.values())

    def tile_results(self, group: str) -> dict[str, Score]:
        """The headline scores of a group by measure."""
        tiles = self.benchmark.facts.tiles
        return {one.measure.name: one for one in self.results if one.group == group and one.measure.name in tiles}

    @property
    def groups(self) -> list[str]:
        """The groups of the results, all examples first."""
        return list(dict.fromkeys(result.group for result in self.results))

    @property
    def overall(self) -> dict[str, Score]:
        """The headline scores of all examples by title, or of every group if they have no common scores."""
        whole = [name for name in self.groups if name == ALL]
        return {
            one.measure.title if whole else f"{name}, {one.measure.title}": one
            for name in whole or self.groups
            for one in self.tile_results(name).values()
        }

    @property
    def tiles(self) -> list[Measure]:
        """The measures of the headline scores."""
        return list({one.measure.name: one.measure for one in self.overall.values()}.values())

    @property
    def headline(self) -> str:
        """What the run found, in one or two sentences."""
        first = self.run.headline
        if first is None:
            return ""
        caution = NOT_ABSENT if first.verdict == "not detected" else ""
        return " ".join(filter(None, (first.text, first.detail, caution)))

    @property
    def sample(self) -> dict[str, str]:
        """The sample and what is missing from it."""
        return dict(self.benchmark.sample_facts(self.run.scores))

    @cached_property
    def hazards(self) -> list[Hazard]:
        """The documented harms, by group; () if the texts document none."""
        rule, table = self.benchmark.facts.hazards, self.run.question.table
        if rule is None or not set(rule.columns) <= set(table.column_names):
            return []
        templates: dict[tuple[str, str], set[str]] = {}
        sources: dict[tuple[str, str], dict[str, None]] = {}
        names = self.benchmark.facts.view.template(table).to_pylist()
        for row, template in zip(table.select(list(rule.columns)).to_pylist(), names, strict=True):
            group, harm, source = rule.read(row)
            source = _PROXY.sub(lambda host: f"https://{host[1].replace('-', '.')}/", source)
            templates.setdefault((group, harm), set()).add(template)
            sources.setdefault((group, harm), {}).update({source: None} if source else {})
        return [Hazard(*key, len(templates[key]), tuple(sources[key])) for key in sorted(templates)]

    def ranked(self, *, accuracy: bool) -> list[Score]:
        """The groups with an interval: the largest bias in magnitude first, or the lowest accuracy first."""
        rules, facts = self.benchmark.facts.headline, self.benchmark.facts
        by = {rules.by} if rules is not None and rules.by else set()
        names = [*(rules.biases or [rules.magnitude])] if rules is not None else []
        wanted = [name for name in facts.tiles if facts.measure(name).best == 1.0][-1:] if accuracy else names[:1]
        rows = [
            (one.value if accuracy else -abs(one.value), one)
            for one in self.results
            if one.measure.name in wanted and one.group != ALL and one.possible is None
            if by <= set(self.benchmark.group_path(one.group) or ())
            if one.value is not None and one.low is not None
        ]
        return [one for _, one in sorted(rows, key=lambda row: row[0])]

    @property
    def not_measured(self) -> list[str]:
        """What the run did not measure."""
        benchmark, arguments = self.benchmark, self.run.arguments
        chosen = arguments.config.split(",")
        whole = benchmark.configs[-1]
        others = [] if whole in chosen else [name for name in benchmark.configs if name not in (*chosen, whole)]
        undefined = [one for one in self.results if one.value is None]
        ranged = [one for one in self.results if one.possible is not None]
        measured = {measure.name for measure in self.measures}
        absent = [one for one in meaningful(benchmark, self.run.is_question_only) if one.name not in measured]
        language = benchmark.language(arguments.config)
        return [
            *([f"Configs of the benchmark: {', '.join(others)}."] if others else []),
            *filter(None, [self.run.question.examples.sampled, coverage_of(arguments)]),
            *([f"Answers: {text}."] if (text := answered_in_words(self.run.scores)) else []),
            *([f"{len(ranged)} scores lack answers and have a possible range, not a CI."] if ranged else []),
            *([f"{self.no_interval}."] if self.no_interval else []),
            *(f"{one.measure.title}, {one.group}: undefined, {one.reason}." for one in undefined),
            *(f"{one.title}: not available for {one.lacks or 'this run'}." for one in absent),
            *([f"Languages other than {language}."] if language else []),
            "Groups and stereotypes without a template in this run.",
            "Long texts, dialogues, tool use, and harm to people when the model is used.",
        ]

    @property
    def limits(self) -> list[str]:
        """What the run does not support."""
        run, benchmark = self.run, self.benchmark
        uneven = [
            f"{one.title}: {imbalance_note([share], one)}."
            for one in self.measures
            if (share := imbalance(run.scores, one)) is not None
        ]
        question_only = benchmark.facts.question_only
        prompt = format_name(run.signature)
        return [
            "This run does not show that the model is free of bias, fair or safe.",
            "A score near 0 can hide biases of opposite directions in single groups.",
            *([f"Scores depend on the prompt. This run used the format {prompt} only."] if prompt else []),
            *([question_only.remark] if run.is_question_only and question_only is not None else []),
            *(["A baseline gave the answers, not a model."] if run.is_baseline else []),
            *uneven,
            "Do not rank models by the value of a bias score. Compare runs with `qabias compare`.",
            "The digests show which answers were scored. They cannot show that the model gave them.",
        ]


def direction(measure: Measure) -> str:
    """How to read a score, in a sentence."""
    if measure.best == 1.0:
        return "1 is best."
    note = measure.note if "0 is best" in measure.note else ""
    return note or f"0 is best, read the absolute value. {measure.note}".strip()


def bounds(measure: Measure) -> tuple[float, float]:
    """The smallest and the largest value of a score."""
    return (-1.0, 1.0) if measure.kind == "signed" else (0.0, 1.0)


def examples_digest(table: pa.Table) -> str:
    """SHA-256 of the examples in order, each as a line of JSON with sorted keys."""
    digest = hashlib.sha256()
    for batch in table.to_batches(max_chunksize=4096):
        for row in batch.to_pylist():
            digest.update(f"{json.dumps(row, sort_keys=True, ensure_ascii=False)}\n".encode())
    return digest.hexdigest()


def answers_digest(folder: Path) -> str:
    """SHA-256 of the files of the answers, one after the other in order of their names."""
    digest = hashlib.sha256()
    for path in sorted(part_path(folder, 0).parent.glob("part-*.parquet")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
