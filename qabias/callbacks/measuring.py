"""Repeated measurements of a model in training, without effect on the training."""

from __future__ import annotations

import json
import math
import random
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from qabias.benchmarks import Benchmark, load_benchmark
from qabias.benchmarks.headline import meaningful, scored_groups
from qabias.benchmarks.scoring import scores_of
from qabias.errors import QabiasError
from qabias.models.loading import LoadedModel
from qabias.models.memory import evaluating
from qabias.runs.arguments import Machine, RunArguments
from qabias.runs.distributed import Processes
from qabias.runs.folder import ANALYSIS_FILE, SCORES_FILE, RunFile, create_or_resume, read_answers
from qabias.runs.opened import Run
from qabias.runs.question import Question, load_examples
from qabias.runs.run import answer_part, is_answered, prepare, score_run
from qabias.runs.scored import write_scores
from qabias.scorers.base import Scorer
from qabias.scores.facts import Measure
from qabias.scores.score import limited, missing_share
from qabias.support.files import strict
from qabias.support.suggest import unknown

MISSING = "missing"
"""Name of the largest share of missing answers of any score."""

_STEP = re.compile(r"step-(\d+)-[0-9a-f]+")


class Measurements:
    """Measurements of a model in training, each a run folder; the examples are loaded once."""

    def __init__(self, arguments: RunArguments, ask: str | None, machine: Machine, folder: Path) -> None:
        self.benchmark = load_benchmark(arguments.benchmark)
        self._arguments = arguments.resolve(machine)
        self.benchmark.check_config(arguments.config)
        self._ask, self._machine = ask, machine
        self._examples = load_examples(self._arguments)
        identity = json.dumps({**asdict(self._arguments), "model": "", "ask": ask}, sort_keys=True)
        self.folder = folder / f"{arguments.benchmark}-{arguments.config}-{zlib.crc32(identity.encode()):08x}"

    def question_of(self, loaded: LoadedModel, n_processes: int = 1) -> tuple[RunArguments, Question, Scorer]:
        """The questions for a model, and its scorer."""
        arguments = replace(self._arguments, model=loaded.name).resolve(ask=self._ask, handed_over=loaded)
        arguments, _, scorer, question = prepare(arguments, self._examples, self._machine, loaded, self.folder)
        n_units = len(set(self.benchmark.units(question.table)[0].tolist()))
        n_each = min(question.units_per_part, -(-n_units // n_processes))
        return arguments, replace(question, units_per_part=n_each), scorer

    def measure(self, step: int, loaded: LoadedModel, processes: Processes) -> tuple[Path, Mapping[str, Any]]:
        """Ask a model the remaining questions, and score its answers."""
        with processes.together():
            arguments, question, scorer = self.question_of(loaded, processes.count)
        fingerprint = loaded.version.rpartition("-")[2]
        folder = self.folder / f"step-{step:08d}-{fingerprint}"
        run = processes.on_first(
            partial(create_or_resume, folder, arguments, question.signature, question.units_per_part)
        )
        with processes.together():
            # An interrupted measurement may have had other shards.
            question = replace(question, units_per_part=run.units_per_part)
            for number in range(processes.rank, len(question.parts), processes.count):
                if not is_answered(run, question, number):
                    answer_part(run, question, number, scorer)
        return run.folder, processes.on_first(partial(_score, run, question))

    def earlier(self, step: int) -> dict[int, Path]:
        """The measurement folders before a step of a resumed training; the last one for each step."""
        newest: dict[int, tuple[str, Path]] = {}
        for folder in sorted(self.folder.glob("step-*")):
            name = _STEP.fullmatch(folder.name)
            if name and int(name[1]) < step and (folder / SCORES_FILE).exists():
                made = Run.open(folder).created, folder
                newest[int(name[1])] = max(newest.get(int(name[1]), made), made)
        return {number: folder for number, (_, folder) in sorted(newest.items())}

    def complete(self, folder: Path) -> None:
        """Write the tables of a measurement, if missing."""
        if not (folder / ANALYSIS_FILE).exists():
            score_run(folder)


def _score(run: RunFile, question: Question) -> Mapping[str, Any]:
    answers, n_missing = read_answers(run, question.benchmark, question.parts)
    if n_missing:
        raise QabiasError(
            f"{run.folder}: {n_missing} of {len(question.parts)} parts are missing",
            "use an output_dir that all processes share",
        )
    scores, _ = scores_of(
        question.benchmark, question.table, answers, run.arguments.rules
    )  # missing answers are logged
    write_scores(run, scores)
    return strict(scores)


def chosen_measures(benchmark: Benchmark, names: Sequence[str], question_only: bool) -> tuple[Measure, ...]:
    """The logged scores."""
    known = [measure.name for measure in benchmark.facts.measures]
    for name in names:
        if name not in known:
            raise unknown(f"score of {benchmark.name}", name, known)
    chosen = meaningful(benchmark, question_only, names or benchmark.facts.tiles)
    without = [name for name in names if name not in {measure.name for measure in chosen}]
    if without:
        raise QabiasError(f"{', '.join(without)}: undefined if the model gets no context", "choose other scores")
    return chosen


def named_measures(
    benchmark: Benchmark, scores: Mapping[str, Any], measures: Sequence[Measure]
) -> dict[str, tuple[Measure, Mapping[str, Any]]]:
    """The scores of a measurement, by their name in a curve."""
    selections = scored_groups(benchmark, scores)
    return {
        (f"{pointer.rpartition('/')[2]}_" if len(selections) > 1 else "") + measure.name: (measure, part)
        for pointer, part in selections.items()
        for measure in measures
        if measure.name in part
    }


def point_of(benchmark: Benchmark, scores: Mapping[str, Any], measures: Sequence[Measure]) -> dict[str, float]:
    """A measurement as numbers by name."""
    named = named_measures(benchmark, scores, measures)
    point = {}
    for name, (measure, part) in named.items():
        score = limited(part, measure)
        if score.possible is not None:
            point[f"{name}_possible_low"], point[f"{name}_possible_high"] = score.possible
        value, low, high, *_ = score.shown
        point |= {name: _number(value), f"{name}_low": _number(low), f"{name}_high": _number(high)}
    point[MISSING] = max((missing_share(part, measure) for measure, part in named.values()), default=0.0)
    return point


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


@contextmanager
def preserve_state(model: torch.nn.Module, optimizer: Any = None) -> Iterator[None]:
    """Prepare a model for questions, and restore model and random numbers afterwards."""
    modules = [(module, dict(vars(module)), dict(module._buffers)) for module in model.modules()]
    try:
        with _random_numbers_kept(), evaluating(model):
            _set_mode(optimizer, "eval")
            if "_original_forward" in vars(model):  # accelerate keeps it there
                vars(model)["forward"] = model._original_forward
            yield
    finally:
        for module, attributes, buffers in modules:
            _put_back(vars(module), attributes)
            _put_back(module._buffers, buffers)
        _set_mode(optimizer, "train")
        if any(weight.is_cuda for weight in model.parameters()):
            torch.cuda.empty_cache()


@contextmanager
def _random_numbers_kept() -> Iterator[None]:
    # Training uses NumPy's global generator, hence the two exceptions to NPY002.
    states = random.getstate(), np.random.get_state()  # noqa: NPY002
    # Without earlier use of CUDA there is no state to keep.
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    mps_state = torch.mps.get_rng_state() if torch.backends.mps.is_available() else None
    try:
        with torch.random.fork_rng(devices, device_type="cuda"):
            yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
        if mps_state is not None:
            torch.mps.set_rng_state(mps_state)


def _set_mode(optimizer: Any, mode: str) -> None:
    change = getattr(optimizer, mode, None)
    if callable(change):
        change()


def _put_back(there: dict[str, Any], before: dict[str, Any]) -> None:
    """Restore a dictionary in place."""
    for name in [name for name in there if name not in before]:
        del there[name]
    there.update(before)
