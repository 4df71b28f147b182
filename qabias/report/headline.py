"""What the report of a run says first: the sample, and the headline scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from qabias.benchmarks.facts import Tile
from qabias.report.checks import check_scores
from qabias.runs.folder import SCORES_FILE
from qabias.runs.scored import ScoredRun, damaged
from qabias.runs.signature import signature_fields


class Head(NamedTuple):
    """Facts and headline scores of a run.

    Attributes:
        facts: Label -> text.
        tiles: The headline scores.
    """

    facts: Mapping[str, str]
    tiles: Sequence[Tile]


def make_head(run: ScoredRun) -> Head:
    """Facts and tiles of a run.

    Raises:
        QabiasError: If the scores are damaged.
    """
    benchmark, file = run.benchmark, run.folder / SCORES_FILE
    measures = benchmark.facts.chosen((*benchmark.facts.tiles, *benchmark.facts.checked))
    kinds = {measure.name: measure.kind for measure in measures}
    try:
        parts = benchmark.parts(run.scores)
        for pointer, scores in parts.items():
            check_scores(file, f"scores{pointer.replace('/', '.')}", scores, kinds, benchmark.facts.counts)
        facts = benchmark.sample_facts(run.scores)
        tiles = benchmark.tiles(run.scores, run.is_question_only)
    except (KeyError, TypeError, AttributeError) as error:
        raise damaged(file, f"scores lack {error}") from error
    limit = run.arguments.limit
    if limit is not None:
        facts["Limit"] = f"this run was limited ({limit}): {benchmark.facts.limit_note}"
    return Head(facts, tiles)


def revision(run: ScoredRun) -> str:
    """What pins the model beside its name: the revision that was asked for, version and precision of what was found.

    Returns:
        For example "main: 7e27bd9/bfloat16"; "" where there is none, as for baselines.
    """
    model = run.arguments.model
    pinned = signature_fields(run.signature).get("model", "")
    found = pinned.removeprefix(f"{model}@") if pinned.startswith(f"{model}@") else ""
    return ": ".join(part for part in (run.arguments.revision, found) if part)
