"""Answers that others have collected, as a run: scored, with tables and a report, and comparable with other runs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from qabias.benchmarks import Benchmark, choose_format, load_benchmark
from qabias.benchmarks.base import AuthorsAnswers, BalancedSets, ExternalAnswers, check_rules
from qabias.errors import QabiasError
from qabias.runs.arguments import RunArguments, check_arguments, check_own_options
from qabias.runs.checksums import write_checked
from qabias.runs.folder import claim, part_path, read_part, read_run, write_part
from qabias.runs.other_tool import OtherTool, read_other_tool, without_reasons, write_other_tool
from qabias.runs.predictions import check_references, join_answers
from qabias.runs.question import Examples, Question, load_examples, read_question
from qabias.runs.run import RunResult, finish, scores_of
from qabias.runs.signature import collected_signature, coverage_of, with_rules
from qabias.support.suggest import did_you_mean
from qabias.support.table_files import check_columns, read_table

UNITS_PER_PART = 4096

_PARTS = "allow_incomplete"
"""The rule of benchmarks that takes parts of sets."""


@dataclass(frozen=True)
class Collected:
    """Answers that have been read and found to belong to examples."""

    arguments: RunArguments
    question: Question
    answers: pa.Table
    where: str

    @property
    def coverage(self) -> str:
        """How many of the examples are answered, as a sentence; "" where all are."""
        return coverage_of(self.arguments)


def choose_answers(benchmark: Benchmark, path: Path, name: str | None) -> ExternalAnswers:
    """The answers in a file: those of a table in the general form, or one model's in a form of the authors."""
    return choose_from_table(benchmark, read_table(path), name, str(path))


def choose_from_table(benchmark: Benchmark, found: pa.Table, name: str | None, where: str) -> ExternalAnswers:
    """The answers in a table: those of one in the general form, or one model's in a form of the authors."""
    check_columns(found, where)
    is_general = set(benchmark.answer_columns) <= set(found.column_names)
    published = benchmark.recognise(found) if isinstance(benchmark, AuthorsAnswers) and not is_general else ()
    known = {given.name: given for given in published}
    if not known:
        if name is not None:
            raise QabiasError(f"{where}: holds one column of answers; leave --answers out")
        return ExternalAnswers("", "", "", "", found)
    if len(known) == 1 and name is None:
        return next(iter(known.values()))
    if name not in known:
        hint = did_you_mean(name, known) if name else ""
        raise QabiasError(f"{where}: holds the answers of {', '.join(known)}; choose by --answers{hint}")
    return known[name]


def collect(
    given: ExternalAnswers,
    arguments: RunArguments,
    where: str,
    upstream_dir: str | None = None,
    references: pa.Table | None = None,
    *,
    of_log: bool = False,
) -> Collected:
    """Read answers and find the examples that they answer."""
    benchmark = load_benchmark(arguments.benchmark)
    rules = check_rules(benchmark.rules, arguments.rules, benchmark.name)
    if given.source and (arguments.source != given.source or arguments.fixes):
        asked = f"{arguments.source}{' with fixes' if arguments.fixes else ''}"
        raise QabiasError(
            f"{where}: these are answers to the texts of the source {given.source}, not to those of {asked}; leave "
            "--source and --fixes out"
        )
    arguments = replace(arguments, format=arguments.format or given.format or None, rules=rules)
    check_own_options(benchmark, arguments.options)
    check_arguments(benchmark, arguments)
    prompt_format = choose_format(benchmark.formats, arguments.format) if arguments.format else None
    if prompt_format is not None and prompt_format.wordings:
        names = ", ".join(wording.name for wording in prompt_format.wordings)
        raise QabiasError(f"{where}: {prompt_format.name} is a set of formats; name the one that was asked: {names}")
    examples = load_examples(arguments, upstream_dir)
    if references is not None:
        check_references(benchmark, examples.table, references, **(_of_log(where) if of_log else {}))
    table, answers = join_answers(benchmark, examples.table, given.answers, where, of_log=of_log)
    read = benchmark.read_given(table, answers, prompt_format, arguments.norm)
    digest = hashlib.sha256(str(read.to_pylist()).encode()).hexdigest()[:8]
    covered = f"{Path(where).name}@{digest} {table.num_rows} of {examples.table.num_rows}"
    arguments = replace(arguments, answers=covered.replace("|", " "))
    signature = collected_signature(arguments, examples.origin, prompt_format)
    answered = Examples(benchmark, examples.origin, table)
    question = Question(answered, prompt_format, signature, UNITS_PER_PART)
    return Collected(arguments, question, read, where)


def _of_log(where: str) -> dict[str, str]:
    """What the check of references calls those of a log, and what to do."""
    advice = (
        "the tool asked another version of the data, or changed it before asking, as by shuffling the choices; such "
        "answers cannot be scored"
    )
    return {"where": where, "advice": advice}


def parted(found: Collected) -> tuple[Collected, str]:
    """Answers with the rule that takes parts of sets, where sets are not whole, and a sentence that says so."""
    question = found.question
    benchmark = question.benchmark
    n_sets, n_parted = benchmark.incomplete_sets(question.table) if isinstance(benchmark, BalancedSets) else (0, 0)
    if not n_parted or _PARTS in found.arguments.rules:
        return found, ""
    arguments = replace(found.arguments, rules={**found.arguments.rules, _PARTS: "yes"})
    question = replace(question, signature=with_rules(question.signature, arguments.rules))
    about = (
        f"Of {n_sets:,} sets {n_parted:,} are not whole: a kind of question is missing that balances the other, so "
        f"that bias scores may lean without a bias (--score {_PARTS}=yes)."
    )
    return replace(found, arguments=arguments, question=question), about


def refused(where: str | Path, error: QabiasError) -> QabiasError:
    """The error of answers that the metric refuses, with where they come from."""
    return QabiasError(f"{where}: {error}; rows are counted from 0 in the order of the dataset")


def write_collected(found: Collected, folder: Path, other: OtherTool | None = None) -> RunResult:
    """Write answers as a run folder, with scores, tables and report."""
    question = found.question
    # What the metric refuses must not leave a folder behind.
    try:
        scores_of(question, found.answers, found.arguments.rules)
    except QabiasError as error:
        raise refused(found.where, error) from error
    run_file = claim(folder, found.arguments, question.signature, question.units_per_part)
    if other is not None:
        write_other_tool(folder, other)
    start = 0
    for number, part in enumerate(question.parts):
        answers = found.answers.slice(start, part.num_rows)
        columns = {name: answers[name] for name in answers.column_names}
        write_part(run_file, number, question.benchmark, part, columns)
        start += part.num_rows
    return finish(run_file, question)


def score_otherwise(folder: Path, rules: Mapping[str, str], output: Path, upstream_dir: str | None = None) -> RunResult:
    """Score the answers of a run by other rules, as a run of its own."""
    run = read_run(folder)
    benchmark = load_benchmark(run.benchmark)
    arguments = replace(run.arguments, rules=check_rules(benchmark.rules, rules, benchmark.name))
    question = replace(read_question(run, upstream_dir), signature=with_rules(run.signature, arguments.rules))
    new = claim(output, arguments, question.signature, run.units_per_part)
    for number in range(len(question.parts)):
        answers = read_part(run, number)
        if answers is None:
            raise QabiasError(f"{folder}: part {number} is missing; finish the run first, by its `qabias run`")
        write_checked(part_path(output, number), answers, new.digest)
    other = read_other_tool(folder)
    if other is not None:
        write_other_tool(output, without_reasons(other))
    return finish(new, question)
