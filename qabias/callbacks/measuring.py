"""The same questions put to a model again and again while it is trained."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from qabias.benchmarks import load_benchmark
from qabias.errors import QabiasError
from qabias.models.loading import LoadedModel
from qabias.runs.arguments import Machine, RunArguments
from qabias.runs.distributed import Processes
from qabias.runs.folder import (
    ANALYSIS_FILE,
    SCORES_FILE,
    RunFile,
    claim,
    read_answers,
    read_run,
)
from qabias.runs.question import Question, load_examples
from qabias.runs.run import answer_part, is_there, prepare, score_run, scores_of
from qabias.runs.scored import read_scored, write_scores
from qabias.scorers.base import Scorer

_STEP = re.compile(r"step-(\d+)-[0-9a-f]+")


class Measurements:
    """Measurements of a model in training, each a run folder of its own; the examples are loaded once."""

    def __init__(self, arguments: RunArguments, ask: str | None, machine: Machine, folder: Path) -> None:
        self.benchmark = load_benchmark(arguments.benchmark)
        self._arguments = arguments.resolve(machine)
        self.benchmark.check_config(arguments.config)
        self._ask, self._machine = ask, machine
        self._examples = load_examples(self._arguments, machine.upstream_dir)
        about = json.dumps({**asdict(self._arguments), "model": "", "ask": ask}, sort_keys=True)
        self.folder = folder / f"{arguments.benchmark}-{arguments.config}-{zlib.crc32(about.encode()):08x}"

    def question_of(self, loaded: LoadedModel, n_processes: int = 1) -> tuple[RunArguments, Question, Scorer]:
        """What a model is asked, and who asks it."""
        arguments = replace(self._arguments, model=loaded.name).resolve(ask=self._ask, handed_over=loaded)
        arguments, _, scorer, question = prepare(arguments, self._examples, self._machine, loaded, self.folder)
        n_units = len(set(self.benchmark.units(question.table)[0].tolist()))
        return (
            arguments,
            replace(question, units_per_part=min(question.units_per_part, -(-n_units // n_processes))),
            scorer,
        )

    def measure(self, step: int, loaded: LoadedModel, processes: Processes) -> tuple[Path, Mapping[str, Any]]:
        """Ask a model what has not been asked yet, and score its answers."""
        with processes.together():
            arguments, question, scorer = self.question_of(loaded, processes.count)
        fingerprint = loaded.version.rpartition("-")[2]
        folder = self.folder / f"step-{step:08d}-{fingerprint}"
        run = processes.on_first(partial(claim, folder, arguments, question.signature, question.units_per_part))
        with processes.together():
            # A measurement that was interrupted may have been shared out otherwise.
            question = replace(question, units_per_part=run.units_per_part)
            for number in range(processes.rank, len(question.parts), processes.count):
                if not is_there(run, question, number):
                    answer_part(run, question, number, scorer)
        return run.folder, processes.on_first(partial(_score, run, question))

    def earlier(self, step: int) -> dict[int, Path]:
        """The folders of what was measured before a step by a training that goes on here; of a step the last one."""
        found: dict[int, tuple[str, Path]] = {}
        for folder in sorted(self.folder.glob("step-*")):
            name = _STEP.fullmatch(folder.name)
            if name and int(name[1]) < step and (folder / SCORES_FILE).exists():
                made = read_run(folder).created, folder
                found[int(name[1])] = max(found.get(int(name[1]), made), made)
        return {number: folder for number, (_, folder) in sorted(found.items())}

    def complete(self, folder: Path) -> None:
        """Write the tables of a measurement, if they are not there."""
        if not (folder / ANALYSIS_FILE).exists():
            score_run(folder, self._machine.upstream_dir)


def earlier_scores(folder: Path) -> Mapping[str, Any]:
    """The scores of a measurement that was made before; undefined ones are None."""
    return read_scored(folder).scores


def _score(run: RunFile, question: Question) -> Mapping[str, Any]:
    answers, n_missing = read_answers(run, question.benchmark, question.parts)
    if n_missing:
        raise QabiasError(
            f"{run.folder}: {n_missing} of {len(question.parts)} parts are missing; output_dir must be a folder that "
            "all processes see"
        )
    scores, _ = scores_of(question, answers, run.arguments.rules)  # what is missing is logged
    return write_scores(run, scores).scores
