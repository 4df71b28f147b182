"""Measuring a model: ask what is not answered yet, then score when all parts exist; and merging of shards."""

from __future__ import annotations

import errno
import itertools
import logging
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import filelock
import numpy as np
import pyarrow as pa
from tqdm import tqdm

from qabias.benchmarks import Benchmark
from qabias.benchmarks.base import Scored
from qabias.benchmarks.scoring import scores_of
from qabias.errors import QabiasError, arg
from qabias.models.loading import files_digest, model_name
from qabias.runs.arguments import DEFAULT_MACHINE, Machine, RunArguments, check_scorer
from qabias.runs.distributed import Processes, launched_processes
from qabias.runs.folder import (
    ANALYSIS_FILE,
    RUN_FILE,
    SCORES_FILE,
    RunFile,
    added_costs,
    check_free,
    create_or_resume,
    default_folder,
    matches_part,
    part_path,
    read_answers,
    read_part,
    read_run,
    with_cost,
    write_part,
)
from qabias.runs.looks import CONFIDENCE, VERDICT_FILE, Outcome, StoppingRule, outcome_content, verdict_lines
from qabias.runs.means import with_wordings
from qabias.runs.opened import Run
from qabias.runs.question import Examples, Question, load_examples, make_question, only_asked, read_question
from qabias.runs.scored import other_figures, read_other_tool, write_scores
from qabias.scorers import registry
from qabias.scorers.base import BatchScorer, Scorer
from qabias.scorers.batches import keeping
from qabias.scorers.journal import REQUESTS_FILE, SERVED, Journal
from qabias.support.files import strict, write_atomically, write_new
from qabias.support.printable import printable
from qabias.support.progress import collector_paused, listening, reading
from qabias.support.stored import write_stored
from qabias.support.suggest import shortened
from qabias.tables.model import Analysis, as_read, write_analysis

SECONDS_BETWEEN_LINES = 60.0
_KEPT = ".batches.jsonl"

_log = logging.getLogger(__name__)


def run(
    arguments: RunArguments,
    output: Path | None = None,
    machine: Machine = DEFAULT_MACHINE,
    *,
    ask: str | None = None,
    handed_over: object = None,
    whole: bool = False,
    examples: Examples | None = None,
    processes: Processes | None = None,
) -> Run:
    """Measure a model: ask what is not answered yet, then score when all parts exist.

    A run with `until` asks look after look until its verdict; with `whole` it continues to the full benchmark. A
    training gives the `examples` that it has loaded, and its own `processes`, which share even a few examples.
    """
    is_training, processes = processes is not None, processes or launched_processes()
    with processes.together():
        arguments = arguments.resolve(machine, ask=ask, handed_over=handed_over)
        examples = examples or load_examples(arguments)
        if machine.device == "auto" and handed_over is None and processes.device:
            machine = replace(machine, device=processes.device)
        arguments, folder, scorer, question = prepare(arguments, examples, machine, handed_over, output)
        if is_training:
            n_units = len(set(question.benchmark.units(question.table)[0].tolist()))
            n_each = min(question.units_per_part, -(-n_units // processes.count))
            question = replace(question, units_per_part=n_each)
        share, n_shares = processes.share(*machine.shard)
        if n_shares > 1 and isinstance(scorer, BatchScorer) and scorer.needs_single_process:
            raise QabiasError(
                "a batch needs one process for the whole run, because shards overwrite each other's files.",
                f"Remove {arg('shard')} and the launcher, or the option batch.",
            )
    rule = stopping_rule(question, arguments)  # refuses wrong conditions before anything is asked
    named = question.signature, question.units_per_part, question.model_digest
    run_file = processes.on_first(partial(create_or_resume, folder, arguments, *named))
    question = replace(question, units_per_part=run_file.units_per_part)  # others may have begun it
    with processes.together():  # each has loaded the model by itself
        if run_file.model_digest != question.model_digest:
            raise QabiasError(
                f"{folder}: the files of the model {arguments.model!r} have changed since this run began.",
                f"Choose another {arg('output')}, or restore the files.",
            )
    with lock_run(folder, machine.shard, processes):
        outcome: Outcome | None = None
        numbers = list(question.parts) if whole or rule is None else _next_parts(question, rule, outcome)
        while numbers:
            mine = [number for number in numbers if number % n_shares == share]
            _ask_missing(run_file, question, scorer, mine, machine, processes)
            if whole or rule is None:
                break
            before = outcome
            outcome, _ = processes.on_first(partial(rule.follow, partial(answers_to, run_file, question), outcome))
            has_looked = outcome is not None and (before is None or outcome.share > before.share)
            numbers = _next_parts(question, rule, outcome) if has_looked else []
        note = scorer.write_requests() if isinstance(scorer, BatchScorer) else ""
        run_file = processes.on_first(partial(with_cost, run_file, getattr(scorer, "cost", {})))  # of a server
        return processes.on_first(lambda: score_and_write(run_file, question, note, rule, outcome))


def stopping_rule(question: Question, arguments: RunArguments) -> StoppingRule | None:
    """The stopping rule of a run; None without conditions."""
    if not arguments.until:
        return None
    limit = arguments.limit
    return StoppingRule(question.benchmark, question.table, arguments.until, arguments.rules, limit)


def _next_parts(question: Question, rule: StoppingRule, outcome: Outcome | None) -> list[int]:
    """Numbers of the parts until the next look; none if no further question can change a verdict."""
    asked = rule.rows_at(outcome)
    return [] if asked is None else list(_parts_of(question, asked))


def _parts_of(question: Question, asked: np.ndarray) -> Mapping[int, pa.Table]:
    return replace(question, examples=only_asked(question.examples, asked)).parts


def answers_to(run: RunFile, question: Question, asked: np.ndarray) -> pa.Table | None:
    """The answers of a run to some planned examples; None if some are missing."""
    answers, n_missing = read_answers(run, question.benchmark, _parts_of(question, asked))
    return None if n_missing else answers


def at_verdict(
    run: RunFile, question: Question, rule: StoppingRule | None, outcome: Outcome | None = None
) -> tuple[Question, Outcome | None]:
    """The question as far as the scores go, and the verdict: until it, or all if the run continued to the end.

    `outcome` is that of the looks that were taken.
    """
    if rule is None:
        return question, None
    outcome, is_unfinished = rule.follow(partial(answers_to, run, question), outcome)
    if outcome is None or is_unfinished:
        return question, None
    if outcome.stopped_early and not read_answers(run, question.benchmark, question.parts)[1]:
        outcome = replace(outcome, share=1.0, confidence=CONFIDENCE, continued=True)
    return replace(question, examples=only_asked(question.examples, outcome.asked(question.table))), outcome


def _ask_missing(
    run: RunFile, question: Question, scorer: Scorer, mine: Sequence[int], machine: Machine, processes: Processes
) -> None:
    """Ask the unanswered parts of this process."""
    with processes.together():
        missing = [
            number
            for number in mine
            if (written := read_part(run, number)) is None
            or not matches_part(written, question.benchmark, question.parts[number])
        ]
    n_mine, n_missing = (sum(question.parts[number].num_rows for number in numbers) for numbers in (mine, missing))
    is_shown = machine.shows_progress and processes.rank == 0
    stream = sys.stderr if is_shown else None
    with (
        processes.apart(),
        closing(RunProgress(run.arguments.benchmark, n_mine, n_mine - n_missing, stream)) as progress,
    ):
        for number in missing:
            with progress.part(question.parts[number].num_rows):
                part, path = question.parts[number], part_path(run.folder, number)
                kept = path.with_name(f".{path.stem}{_KEPT}")
                with keeping(kept):
                    answers = question.benchmark.answer(part, scorer, question.format_of(part), run.arguments.norm)
                if not (isinstance(scorer, BatchScorer) and scorer.is_waiting()):
                    write_part(run, number, question.benchmark, part, answers)
                    kept.unlink(missing_ok=True)


def prepare(
    arguments: RunArguments,
    examples: Examples,
    machine: Machine = DEFAULT_MACHINE,
    handed_over: object = None,
    folder: Path | None = None,
) -> tuple[RunArguments, Path, Scorer, Question]:
    """Load the scorer and prepare its question; the arguments lose options that do not change answers."""
    name = registry.scorer_of(arguments.backend, arguments.model, arguments.revision, handed_over)
    check_scorer(examples.benchmark, name)
    options, model = arguments.scorer_options, arguments.model
    lasting = registry.lasting_options(name, arguments.options)
    arguments = replace(arguments, model=model_name(model), options=lasting)
    folder = folder or default_folder(arguments)
    digest = ""
    if handed_over is None and name not in (registry.BASELINE, registry.FUNCTION, registry.SERVER):
        registry.check_options(registry.load_kind(name), options)  # before the files of a large model are read
        digest = files_digest(model)
    scorer = registry.load_scorer(
        name,
        model,
        seed=arguments.seed,
        revision=arguments.revision,
        dtype=arguments.dtype,
        device=machine.device,
        batch_tokens=machine.batch_tokens,
        scorer_options=options,
        journal=folder / REQUESTS_FILE,
        handed_over=handed_over,
    )
    if digest and digest != files_digest(model):
        raise QabiasError(f"the files of the model {arguments.model!r} changed while it was loaded.", "Run it again.")
    arguments = replace(arguments, options={**arguments.options, **getattr(scorer, "chosen", {})})
    question = replace(make_question(examples, arguments, scorer), model_digest=digest)
    return arguments, folder, scorer, question


def score_run(folder: Path) -> Run:
    """Score the answers of a run folder; writes `scores.json` and `analysis.json`."""
    run_file = read_run(folder)
    question = read_question(run_file, planned=True)
    result = score_and_write(run_file, question)
    if result.n_missing_parts:
        has_scores = (folder / SCORES_FILE).exists()
        former = f"; {SCORES_FILE} is older and stays" if has_scores else ""
        raise QabiasError(
            f"{folder}: {result.n_missing_parts} of {len(question.parts)} parts are missing. Nothing was "
            f"scored{former}.",
            "Finish the run with `qabias run`, which also scores it.",
        )
    return result


def score_and_write(
    run_file: RunFile,
    question: Question,
    note: str = "",
    rule: StoppingRule | None = None,
    outcome: Outcome | None = None,
) -> Run:
    """Score the answers of a run and write its files, if all parts exist."""
    rule = rule or stopping_rule(question, run_file.arguments)
    question, outcome = at_verdict(run_file, question, rule, outcome)
    answers, n_missing = read_answers(run_file, question.benchmark, question.parts)
    if n_missing:
        return Run.from_file(run_file, n_missing_parts=n_missing, note=note)
    for kept in part_path(run_file.folder, 0).parent.glob(f".*{_KEPT}"):
        kept.unlink(missing_ok=True)  # answers of parts that were interrupted
    with collector_paused():
        scored = rule.scored.get(outcome.confidence) if rule and outcome and not outcome.continued else None
        scores, analysis, warned = compute(run_file, question, answers, outcome, scored)
    if outcome is not None:
        write_stored(run_file.folder / VERDICT_FILE, outcome_content(outcome))
    write_scores(run_file, scores)
    write_analysis(analysis, run_file.folder / ANALYSIS_FILE)
    read = {"scores": strict(scores), "analysis": as_read(analysis), "outcome": outcome}
    return Run.from_file(run_file, {**read, "question": question, "answers": answers}, note=note, warned=warned)


def compute(
    run_file: RunFile,
    question: Question,
    answers: pa.Table,
    outcome: Outcome | None = None,
    scored: tuple[dict[str, Any], tuple[str, ...]] | None = None,
) -> tuple[dict[str, Any], Analysis, tuple[str, ...]]:
    """Compute scores (if the verdict has not), tables and warnings from the answers of a run; writes nothing."""
    benchmark, table = question.benchmark, question.table
    rules: Mapping[str, Any] = run_file.arguments.rules
    if outcome is not None and not outcome.continued:
        rules = {**rules, "confidence": outcome.confidence}
    scores, warned = scored or scores_of(benchmark, table, answers, rules)
    analysis = benchmark.analyse(Scored(table, answers, scores, question.prompt_format, rules))
    if question.prompt_format is not None and question.prompt_format.variants:
        scores, analysis = with_wordings(benchmark, table, answers, scores, analysis, question.prompt_format, rules)
    other = read_other_tool(run_file.folder)
    theirs = other_figures(other, scores) if other else None
    notes = [*(verdict_lines(outcome) if outcome else ()), *filter(None, [question.examples.sampled])]
    notes += [*(other.notes if other else ()), *analysis.notes]
    tables = (*analysis.tables, *([theirs] if theirs else []))
    return scores, replace(analysis, tables=tables, notes=tuple(notes)), warned


@contextmanager
def lock_run(folder: Path, shard: tuple[int, int], processes: Processes) -> Iterator[None]:
    """Lock a shard of a run: a second command for it waits for the first."""
    name = ".lock" if shard[1] == 1 else f".lock-{shard[0]}-of-{shard[1]}"
    lock = filelock.FileLock(folder / name, poll_interval=0.2)

    def acquire() -> None:
        try:
            lock.acquire(blocking=False)
        except filelock.Timeout:
            _log.warning("%s: another process computes this run; this one waits until it has ended", folder)
            lock.acquire()
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP):
                raise
            # The file system has no locks.

    processes.on_first(acquire)
    try:
        yield
    finally:
        lock.release()


class RunProgress:
    """Shows the progress of a run: a bar on a terminal, else a line per minute."""

    def __init__(
        self, name: str, total: int, done: int, stream: TextIO | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._name, self._total, self._before = printable(name), total, done
        self._stream, self._clock = stream, clock
        self._finished = self._shown = done
        self._started = self._last_line = clock()
        self._remark = ""
        bar = partial(tqdm, total=total, initial=done, unit="example", desc=printable(name), file=stream)
        self._bar = bar() if stream is not None and stream.isatty() else None

    @contextmanager
    def part(self, n_examples: int) -> Iterator[None]:
        """Show the progress that the scorer reports within these examples."""
        begin = self._finished
        shares = listening(lambda share: self._show(begin + int(share * n_examples)))
        with shares, reading(lambda text: self._show(self._shown, text)):
            yield
        self._finished += n_examples
        self._show(self._finished)

    def close(self) -> None:
        """Close the bar."""
        if self._bar is not None:
            self._bar.close()

    def _show(self, done: int, remark: str = "") -> None:
        """Show the progress, and a remark until the next one."""
        self._shown = max(self._shown, done)  # a batch that did not fit in memory is asked again
        before, self._remark = self._remark, remark
        if self._bar is not None:
            if remark != before:
                self._bar.set_postfix_str(remark)
            self._bar.update(self._shown - self._bar.n)
        elif self._stream is not None and self._clock() - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = self._clock()
            self._stream.write(self._line())
            self._stream.flush()

    def _line(self) -> str:
        rate = (self._shown - self._before) / (self._last_line - self._started)
        left = tqdm.format_interval((self._total - self._shown) / rate) if rate else "unknown"
        parts = (f"{rate:.3g} examples/s", f"time left {left}", *filter(None, [self._remark]))
        return f"{self._name}: {self._shown:,} of {self._total:,} examples, {', '.join(parts)}\n"


_MOST_NAMED = 8


def merge(folders: Sequence[Path], output: Path) -> Run:
    """Merge the parts of several run folders, and score the run."""
    if (output / RUN_FILE).exists():
        folders = [output, *folders]
    else:
        check_free(output)
    runs = [read_run(folder) for folder in folders]
    for other in runs[1:]:
        _check_same(runs[0], other)
    question = read_question(runs[0])
    parts = question.parts
    sources = {number: _find_part(runs, question.benchmark, part, number) for number, part in parts.items()}
    missing = [number for number, source in sources.items() if source is None]
    if missing:
        raise QabiasError(
            f"missing: part {_some(map(str, missing))} of {len(parts)}.",
            f"Compute with the same arguments and {arg('shard')} {_some(shards_of(missing, len(parts)))}.",
        )
    write_new(output / RUN_FILE, (runs[0].folder / RUN_FILE).read_text(encoding="utf-8"))
    merged = read_run(output)
    _check_same(runs[0], merged)  # another process may have begun a run there
    paid = {run.folder.resolve(): run.cost for run in runs if run.cost}
    merged = with_cost(merged, added_costs(list(paid.values())))
    for number, source in sources.items():
        if source is not None:
            _copy(source, part_path(output, number))
    return score_and_write(merged, question)


def shards_of(parts: Sequence[int], n_parts: int) -> list[str]:
    """Return the fewest shards "i/n" that compute exactly these parts."""
    wanted = set(parts)
    for n_shards in range(1, n_parts + 1):
        shards = {number % n_shards for number in wanted}
        if {number for number in range(n_parts) if number % n_shards in shards} == wanted:
            return [f"{shard}/{n_shards}" for shard in sorted(shards)]
    raise ValueError(f"parts {sorted(wanted)} are not all in [0, {n_parts})")


def _check_same(first: RunFile, other: RunFile) -> None:
    """Refuse folders of different runs, and name the fields that differ."""
    ours, theirs = (
        {**asdict(run.arguments), "model_digest": run.model_digest[:8], "units_per_part": run.units_per_part}
        for run in (first, other)
    )
    differences = [f"{name} {ours[name]!r} and {theirs[name]!r}" for name in ours if ours[name] != theirs[name]]
    if not differences:
        fields = itertools.zip_longest(first.signature.split("|"), other.signature.split("|"))
        differences = [f"{our} and {their}" for our, their in fields if our != their]
    served = {Journal(run.folder / REQUESTS_FILE).get(SERVED) for run in (first, other)} - {None}
    if len(served) > 1:
        differences.append(f"answers of {' and '.join(sorted(map(shortened, served)))}")
    if differences:
        raise QabiasError(
            f"{first.folder} and {other.folder} hold different runs ({', '.join(differences)}).",
            "Merge shards of one run.",
        )


def _find_part(runs: Sequence[RunFile], benchmark: Benchmark, part: pa.Table, number: int) -> Path | None:
    """Find the file of a part; all folders that have it must agree. None if it is missing."""
    first: tuple[Path, pa.Table] | None = None
    for run in runs:
        path, answers = part_path(run.folder, number), read_part(run, number)
        if answers is None:
            continue
        if not matches_part(answers, benchmark, part):
            raise QabiasError(f"{path}: holds other examples.", "Remove the file and compute it again.")
        first = first or (path, answers)
        # Equal bytes first: NaN equals itself there.
        if first[0].read_bytes() != path.read_bytes() and not first[1].equals(answers):
            raise QabiasError(f"{first[0]} and {path} differ.", "Remove the one that you do not trust.")
    return first and first[0]


def _copy(source: Path, target: Path) -> None:
    if source == target:
        return
    try:
        write_atomically(target, partial(shutil.copyfile, source), lasting=True)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(target)) from error


def _some(names: Any) -> str:
    names = list(names)
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more
