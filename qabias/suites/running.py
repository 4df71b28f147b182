"""Running a suite: what is finished is skipped, what fails is reported at the end, and the rest goes on."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from qabias import __version__
from qabias.comparison.comparable import asked_questions
from qabias.errors import QabiasError
from qabias.measuring.run import run
from qabias.runs.arguments import Machine, RunArguments
from qabias.runs.folder import RUN_FILE, SCORES_FILE
from qabias.runs.scored import ScoredRun, read_scored
from qabias.suites import SuiteRun

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Outcome:
    """What came of one run of a suite.

    Attributes:
        run: The run.
        folder: Its folder.
        failure: Why there are no scores; empty if there are.
    """

    run: SuiteRun
    folder: Path
    failure: str = ""


def run_suite(runs: Sequence[SuiteRun], folder: Path, machine: Machine, tell: Callable[[str], object]) -> list[Outcome]:
    """Make every run of a suite in a folder of its own.

    Args:
        runs: What `qabias.suites.expand` gives.
        folder: Where the run folders go.
        machine: Where to compute them.
        tell: Called with a line about every run before it is made.
    """
    outcomes = []
    for number, suite_run in enumerate(runs, start=1):
        where = folder / suite_run.name
        failure = ""
        try:
            finished = is_finished(where, suite_run.arguments)
            tell(f"[{number}/{len(runs)}] {suite_run.name}: {'finished' if finished else suite_run.experiment.claim}")
            if not finished:
                failure = _run_one(suite_run, where, machine)
        except QabiasError as error:
            failure = str(error)
        except Exception as error:  # a long list of runs must not end with the first that fails
            _log.exception("%s failed", suite_run.name)
            failure = f"{type(error).__name__}: {error}"
        outcomes.append(Outcome(suite_run, where, failure))
    return outcomes


def is_finished(folder: Path, arguments: RunArguments) -> bool:
    """Whether a folder holds the scores of exactly this run, made by this version; reads two small files.

    Raises:
        QabiasError: If one of them is damaged.
    """
    if not (folder / RUN_FILE).exists() or not (folder / SCORES_FILE).exists():
        return False
    found = read_scored(folder)
    # A folder that another version began is measured anew.
    return found.arguments == arguments and found.file.qabias_version == __version__


def _run_one(suite_run: SuiteRun, folder: Path, machine: Machine) -> str:
    """Make one run; returns why it has no scores yet."""
    if suite_run.missing:  # its name must not be looked up on the Hub, where it may be anybody's
        return suite_run.missing
    n_missing = run(suite_run.arguments, folder, machine).n_missing_parts
    return f"{n_missing} parts are missing; they come with the other shards" if n_missing else ""


def comparable(outcomes: Sequence[Outcome]) -> list[list[ScoredRun]]:
    """The scored runs, those of the same questions together."""
    groups: dict[str, list[ScoredRun]] = {}
    for outcome in outcomes:
        if not outcome.failure:
            scored = read_scored(outcome.folder)
            groups.setdefault(asked_questions(scored), []).append(scored)
    return list(groups.values())
