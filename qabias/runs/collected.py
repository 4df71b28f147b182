"""External answers as a run: scored and reported, and comparable with other runs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from qabias.answers.outcomes import ANSWERED, UNREAD
from qabias.benchmarks import Benchmark, choose_format, load_benchmark
from qabias.benchmarks.base import RUN, AuthorsAnswers, BalancedSets, ExternalAnswers
from qabias.benchmarks.generated import outcome_counts
from qabias.errors import QabiasError, arg
from qabias.runs.arguments import RunArguments, check_arguments, check_own_options, check_rules
from qabias.runs.checksums import write_checked
from qabias.runs.folder import claim, part_path, read_part, read_run, write_part
from qabias.runs.question import Question, load_examples, read_question
from qabias.runs.run import RunResult, finish, scores_of
from qabias.runs.scored import OtherTool, read_other_tool, without_reasons, write_other_tool
from qabias.runs.signature import collected_signature, coverage_of, with_rules
from qabias.support.suggest import choose, did_you_mean, first_line, shortened, unknown
from qabias.support.table_files import check_columns

UNITS_PER_PART = 4096

_OTHER_DATA = (
    "Rerun the tool on unchanged data. It used another version, or changed the examples, for instance by shuffling the "
    "choices."
)
_PARTS = "allow_incomplete"  # benchmark rule that accepts incomplete sets


@dataclass(frozen=True)
class Collected:
    """Answers that were matched with examples."""

    arguments: RunArguments
    question: Question
    answers: pa.Table
    where: str
    other: OtherTool | None = None

    @property
    def coverage(self) -> str:
        """Return the share of answered examples as a sentence; "" if all are answered."""
        return coverage_of(self.arguments)


def choose_from_table(benchmark: Benchmark, table: pa.Table, name: str | None, where: str) -> ExternalAnswers:
    """Read one model's answers from a table, or from a file format of the benchmark's authors."""
    check_columns(table, where)
    is_general = set(benchmark.answer_columns) <= set(table.column_names)
    published = benchmark.recognise(table) if isinstance(benchmark, AuthorsAnswers) and not is_general else ()
    known = {answers.name: answers for answers in published}
    if not known:
        if name is not None:
            raise QabiasError(f"{where}: has one column of answers.", f"Remove {arg('answers')}.")
        return ExternalAnswers("", "", "", "", table)
    if len(known) == 1 and name is None:
        return next(iter(known.values()))
    if name not in known:
        if name is None:
            raise QabiasError(
                f"{where} has the answers of {len(known)} models.", choose(list(known), (), arg("answers"))
            )
        raise unknown(f"model in {where}:", name, known, arg("answers"))
    return known[name]


def collect(
    external: ExternalAnswers,
    arguments: RunArguments,
    where: str,
    references: pa.Table | None = None,
    *,
    of_log: bool = False,
) -> Collected:
    """Match answers with the examples that they answer."""
    benchmark = load_benchmark(arguments.benchmark)
    if external.source and (arguments.source != external.source or arguments.fixes):
        asked = f"{arguments.source}{' with fixes' if arguments.fixes else ''}"
        raise QabiasError(
            f"{where} answers source {external.source}, not {asked}.", f"Remove {arg('source')} and {arg('fixes')}."
        )
    check_own_options(benchmark, arguments.options)
    named = replace(arguments, format=arguments.format or external.format or None)
    arguments = check_arguments(benchmark, named)
    prompt_format = choose_format(benchmark.formats, arguments.format) if arguments.format else None
    if prompt_format is not None and prompt_format.wordings:
        names = ", ".join(wording.name for wording in prompt_format.wordings)
        raise QabiasError(
            f"{where}: {prompt_format.name} is a set of formats.", f"Use the {arg('format')} asked: {names}."
        )
    examples = load_examples(arguments)
    if references is not None:
        words = {"where": where, "fix": _OTHER_DATA} if of_log else {}
        check_references(benchmark, examples.table, references, **words)
    table, answers = join_answers(benchmark, examples.table, external.answers, where, of_log=of_log)
    try:
        read = benchmark.read_given(table, answers, prompt_format, arguments.norm)
    except QabiasError as error:
        raise QabiasError(f"{where}: {error.args[0]}", *error.args[1:]) from error
    _refuse_unread(answers, read, where)
    digest = hashlib.sha256(str(read.to_pylist()).encode()).hexdigest()[:8]
    covered = f"{Path(where).name}@{digest} {table.num_rows} of {examples.table.num_rows}"
    arguments = replace(arguments, answers=covered.replace("|", " "))
    signature = collected_signature(arguments, examples.origin, prompt_format)
    answered = replace(examples, table=table, sampled="")
    question = Question(answered, prompt_format, signature, UNITS_PER_PART)
    return Collected(arguments, question, read, where)


def parted(collected: Collected) -> tuple[Collected, str]:
    """If sets are incomplete, add the rule that accepts them, and a note."""
    question = collected.question
    benchmark = question.benchmark
    n_sets, n_parted = benchmark.incomplete_sets(question.table) if isinstance(benchmark, BalancedSets) else (0, 0)
    if not n_parted or _PARTS in collected.arguments.rules:
        return collected, ""
    arguments = replace(collected.arguments, rules={**collected.arguments.rules, _PARTS: "yes"})
    question = replace(question, signature=with_rules(question.signature, arguments.rules))
    sentence = (
        f"{n_parted:,} of {n_sets:,} sets are incomplete: they lack balancing questions, and bias scores may differ "
        f"from 0 without a bias (--rule {_PARTS}=yes)."
    )
    return replace(collected, arguments=arguments, question=question), sentence


def refused(where: str | Path, error: QabiasError) -> QabiasError:
    """Return the error of answers that the metric refuses, with their place."""
    problem, fix = (*error.args, "")[:2]
    if _PARTS in str(error):
        fix = f"Add {arg('rules')} {_PARTS}=yes to score incomplete sets."
    return QabiasError(f"{where}: {problem}", fix or "Correct that row. Rows are counted from 0.")


def write_collected(collected: Collected, folder: Path) -> RunResult:
    """Write answers as a run folder, with scores and tables."""
    question = collected.question
    # What the metric refuses must not leave a folder behind.
    try:
        scores_of(question, collected.answers, collected.arguments.rules)
    except QabiasError as error:
        raise refused(collected.where, error) from error
    run_file = claim(folder, collected.arguments, question.signature, question.units_per_part)
    if collected.other is not None:
        write_other_tool(folder, collected.other)
    start = 0
    for number, part in enumerate(question.parts):
        answers = collected.answers.slice(start, part.num_rows)
        columns = {name: answers[name] for name in answers.column_names}
        write_part(run_file, number, question.benchmark, part, columns)
        start += part.num_rows
    return finish(run_file, question)


def score_otherwise(folder: Path, rules: Mapping[str, str], output: Path) -> RunResult:
    """Score the answers of a run by other rules, as a new run."""
    run = read_run(folder)
    benchmark = load_benchmark(run.benchmark)
    arguments = replace(run.arguments, rules=check_rules(benchmark.rules, rules, benchmark.name))
    question = replace(read_question(run), signature=with_rules(run.signature, arguments.rules))
    new = claim(output, arguments, question.signature, run.units_per_part, run.model_digest)
    for number in range(len(question.parts)):
        answers = read_part(run, number)
        if answers is None:
            raise QabiasError(f"{folder}: part {number} is missing.", "Finish the run with `qabias run`.")
        write_checked(part_path(output, number), answers, new.digest)
    other = read_other_tool(folder)
    if other is not None:
        write_other_tool(output, without_reasons(other))
    return finish(new, question)


def join_answers(
    benchmark: Benchmark, table: pa.Table, predictions: pa.Table, where: str, *, of_log: bool = False
) -> tuple[pa.Table, pa.Table]:
    """Match predictions with examples."""
    predictions = _checked(benchmark, predictions, where, of_log=of_log)
    keys, numbers = _matched(benchmark, table, predictions, where, (*benchmark.key, *benchmark.answer_columns))
    row_of: dict[int, int] = {}
    for row, number in enumerate(numbers):
        if row_of.setdefault(number, row) != row:
            what = spelled(benchmark.key, keys[row])
            raise QabiasError(
                f"{where}: row {row + 1}: {what} is answered twice.",
                f"Keep one answer to each example: of several prompts or runs, one value of the column {RUN}.",
            )
    answered = sorted(row_of)
    columns = [*benchmark.answer_columns, *benchmark.optional_columns]
    answers = predictions.select([name for name in columns if name in predictions.column_names])
    return table.take(pa.array(answered, pa.int64())), answers.take(pa.array(map(row_of.get, answered), pa.int64()))


def _matched(
    benchmark: Benchmark,
    table: pa.Table,
    rows: pa.Table,
    where: str,
    needed: Sequence[str],
    fix: str = "",
) -> tuple[list[tuple[Any, ...]], list[int]]:
    """Key and example number of every row; a key column with one value may be missing."""
    check_columns(rows, where)
    constant = {name: table[name][0].as_py() for name in benchmark.key if len(table[name].unique()) == 1}
    missing = [name for name in needed if name not in rows.column_names and name not in constant]
    if missing:
        raise QabiasError(
            f"{where}: no column {', '.join(missing)}.",
            f"Add what it lacks of {', '.join(needed)}. It has {shortened(rows.column_names)}.",
        )
    for name in benchmark.key:
        if name in rows.column_names and pa.types.is_nested(rows[name].type):
            value = shortened(next((value for value in rows[name].to_pylist() if value is not None), None))
            raise QabiasError(f"{where}: row 1: {name} is {value}.", "Give a number or a text that one example has.")
    for name in constant.keys() - {*rows.column_names}:
        rows = rows.append_column(name, pa.array([constant[name]] * rows.num_rows))
    number_of = {key: number for number, key in enumerate(keys_of(benchmark.key, table))}
    keys = keys_of(benchmark.key, rows)
    for row, key in enumerate(keys):
        if key not in number_of:
            names = {first for first, *_ in number_of}
            near = "" if key[0] in names else did_you_mean(key[0], names)
            problem = f"{where}: row {row + 1}: no example has {spelled(benchmark.key, key)}{near or '.'}"
            raise QabiasError(
                problem, "Write it so in the table." if near else fix or f"Check {arg('config')} and {arg('source')}."
            )
    return keys, [number_of[key] for key in keys]


def keys_of(names: Sequence[str], rows: pa.Table) -> list[tuple[str, ...]]:
    """The key of every row as texts, in which 7, 7.0 and "7" are the same."""
    columns = (rows[name].to_pylist() for name in names)
    return [
        tuple(str(int(one) if isinstance(one, float) and one.is_integer() else one) for one in key)
        for key in zip(*columns, strict=True)
    ]


def spelled(names: Sequence[str], key: Sequence[str]) -> str:
    """A key in a message."""
    values = (value[:200] if value.isdigit() else shortened(value) for value in key)
    return ", ".join(f"{name} {value}" for name, value in zip(names, values, strict=True))


def check_references(
    benchmark: Benchmark,
    table: pa.Table,
    references: pa.Table,
    where: str = "references",
    fix: str = "Add source= (and fixes= and config=) of the rows.",
) -> None:
    """Refuse rows whose reference columns differ from the examples with their keys."""
    keys, numbers = _matched(benchmark, table, references, where, benchmark.key, "Add benchmark=, config= and source=.")
    examples = table.take(pa.array(numbers, pa.int64()))
    for name in examples.column_names:
        if name not in references.column_names:
            continue
        ours, theirs = examples[name].to_pylist(), references[name].to_pylist()
        for row, (our, their) in enumerate(zip(ours, theirs, strict=True)):
            if their is not None and our != their:
                what = f"row {row + 1}, {spelled(benchmark.key, keys[row])}: {name} is {shortened(their)}"
                raise QabiasError(f"{where}: {what}, but in the scored texts it is {shortened(our)}.", fix)


def _refuse_unread(answers: pa.Table, read: pa.Table, where: str) -> None:
    """Refuse answers of which none can be read; texts that refuse or are truncated are read."""
    became, names = outcome_counts(read).get("outcomes"), read.column_names
    if became is None:
        is_unread = "prediction" in names and read["prediction"].null_count == read.num_rows > 0  # -1 is stated
    else:
        is_unread = became[UNREAD] > 0 == became[ANSWERED]
    if is_unread:
        values = (pc.list_flatten(read["outputs"]) if "outputs" in names else answers["prediction"]).to_pylist()
        first = shortened(next(filter(None, values), None))
        raise QabiasError(
            f"{where}: none of the {len(values):,} answers can be read. The first is {first}.",
            "Give the index, the letter or the text of an answer.",
        )


def _checked(benchmark: Benchmark, predictions: pa.Table, where: str, *, of_log: bool) -> pa.Table:
    """Refuse truth values, and make answers of several columns numbers; NaN is refused but in logs (no answer)."""
    for place, name in enumerate(predictions.column_names):
        if name not in benchmark.answer_columns:
            continue
        column = predictions[name]
        if pa.types.is_boolean(column.type) and (row := pc.index(column.is_valid(), True).as_py()) >= 0:
            problem = f"{where}: row {row + 1}: {name} is {column[row].as_py()}."
            raise QabiasError(problem, "Give the number of an answer or its text, or a probability.")
        if len(benchmark.answer_columns) == 1:
            continue
        if not pa.types.is_floating(column.type):
            try:
                column = pc.replace_substring(column.cast(pa.string()), ",", ".").cast(pa.float64())
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:  # the second for lists and objects
                problem = f"{where}: column {name}: {first_line(error)}."
                raise QabiasError(problem, "Give a probability in each row.") from error
            predictions = predictions.set_column(place, name, column)
        if not of_log and (row := pc.index(pc.is_nan(column), True).as_py()) >= 0:
            raise QabiasError(f"{where}: row {row + 1}: {name} is NaN.", "Give a probability, or remove the row.")
    return predictions
