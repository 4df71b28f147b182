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
from qabias.benchmarks.base import NO_RULES, RUN, External, Rules
from qabias.benchmarks.generated import outcome_counts
from qabias.benchmarks.scoring import scores_of
from qabias.errors import QabiasError, arg, at_place
from qabias.logs import as_written
from qabias.runs.arguments import RunArguments, check_arguments, check_own_options, check_rules, norm_arguments
from qabias.runs.folder import create_or_resume, part_path, read_part, read_run, write_checked, write_part
from qabias.runs.opened import Run
from qabias.runs.question import Question, load_examples, read_question
from qabias.runs.run import score_and_write, score_run
from qabias.runs.scored import OtherTool, read_other_tool, without_reasons, write_other_tool
from qabias.runs.signature import collected_signature, coverage_of, with_rules
from qabias.support.arrow import rows_near
from qabias.support.suggest import did_you_mean, first_line, shortened
from qabias.support.table_files import check_columns

UNITS_PER_PART = 4096

_OTHER_DATA = (
    "Rerun the tool on unchanged data. It used another version, or changed the examples, for instance by shuffling the "
    "choices."
)
_ALLOW_INCOMPLETE = "allow_incomplete"  # benchmark rule that accepts incomplete sets


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


def collect(external: External, rules: Rules = NO_RULES) -> Collected:
    """Match answers with the examples that they answer."""
    log = external.log
    if log is None:
        return _collect(external, rules)
    with as_written(log.called, log.tool):
        collected = _collect(external, rules)
    collected, about_sets = _accept_incomplete_sets(collected)
    coverage = f"{collected.coverage}." if collected.coverage else ""
    notes = (*external.notes, *filter(None, (about_sets, coverage)))
    other = OtherTool(log.tool, log.version, log.task, log.path.name, external.figures, notes)
    return replace(collected, other=without_reasons(other) if rules else other)


def _collect(external: External, rules: Rules) -> Collected:
    benchmark, where, log = load_benchmark(external.benchmark), external.where, external.log
    check_own_options(benchmark, external.options)
    arguments = RunArguments(
        external.benchmark,
        **{name: getattr(external, name) for name in ("model", "config", "source", "seed", "fixes", "options")},
        **norm_arguments(external.norm),
        format=external.format or None,
        rules=rules,
        asked_by=" ".join((log.tool, log.task)).replace("|", " ") if log else "",
    )
    arguments = check_arguments(benchmark, arguments)
    prompt_format = choose_format(benchmark.formats, arguments.format) if arguments.format else None
    if prompt_format is not None and prompt_format.variants:
        names = ", ".join(variant.name for variant in prompt_format.variants)
        raise QabiasError(
            f"{where}: {prompt_format.name} is a set of formats.", f"Use the {arg('format')} asked: {names}."
        )
    examples = load_examples(arguments)
    if external.references is not None:
        words = {"where": where, "fix": _OTHER_DATA} if log else {}
        check_references(benchmark, examples.table, external.references, **words)
    table, answers = join_answers(benchmark, examples.table, external.answers, where, of_log=log is not None)
    with at_place(where):
        read = benchmark.read_given(table, answers, prompt_format, arguments.norm)
    _refuse_unread(answers, read, where)
    digest = hashlib.sha256(str(read.to_pylist()).encode()).hexdigest()[:8]
    covered = f"{Path(where).name}@{digest} {table.num_rows} of {examples.table.num_rows}"
    arguments = replace(arguments, answers=covered.replace("|", " "))
    signature = collected_signature(arguments, examples.origin, prompt_format)
    answered = replace(examples, table=table, sampled="")
    return Collected(arguments, Question(answered, prompt_format, signature, UNITS_PER_PART), read, where)


def _accept_incomplete_sets(collected: Collected) -> tuple[Collected, str]:
    """If sets are incomplete, add the rule that accepts them, and a note."""
    question, rules = collected.question, collected.arguments.rules
    benchmark = question.benchmark
    n_sets, n_lacking = benchmark.incomplete_sets(question.table)
    if not n_lacking or _ALLOW_INCOMPLETE in rules:
        return collected, ""
    arguments = replace(collected.arguments, rules={**rules, _ALLOW_INCOMPLETE: "yes"})
    question = replace(question, signature=with_rules(question.signature, arguments.rules))
    sentence = (
        f"{n_lacking:,} of {n_sets:,} sets are incomplete: they lack balancing questions, and bias scores may differ "
        f"from 0 without a bias (--rule {_ALLOW_INCOMPLETE}=yes)."
    )
    return replace(collected, arguments=arguments, question=question), sentence


def scores_of_collected(collected: Collected) -> Mapping[str, Any]:
    """The scores of collected answers. What the metric refuses is an error with its place."""
    try:
        question = collected.question
        return scores_of(question.benchmark, question.table, collected.answers, collected.arguments.rules)[0]
    except QabiasError as error:
        problem, fix = error.args
        if _ALLOW_INCOMPLETE in str(error):
            fix = f"Add {arg('rules')} {_ALLOW_INCOMPLETE}=yes to score incomplete sets."
        fix = fix or "Correct that row. Rows are counted from 0."
        raise QabiasError(f"{collected.where}: {problem}", fix) from error


def write_collected(collected: Collected, folder: Path) -> Run:
    """Write answers as a run folder, with scores and tables."""
    question = collected.question
    scores_of_collected(collected)  # an error must not leave a folder behind
    run_file = create_or_resume(folder, collected.arguments, question.signature, question.units_per_part)
    if collected.other is not None:
        write_other_tool(folder, collected.other)
    start = 0
    for number, part in question.parts.items():
        answers = collected.answers.slice(start, part.num_rows)
        columns = {name: answers[name] for name in answers.column_names}
        write_part(run_file, number, question.benchmark, part, columns)
        start += part.num_rows
    return score_and_write(run_file, question)


def score_again(folder: Path, rules: Rules = NO_RULES, output: str | Path | None = None) -> Run:
    """Score a run in place, or by other rules as a new run."""
    if (output is None) != (not rules):
        raise QabiasError(
            "Scoring with other rules creates a new run.", f"Give both {arg('rules')} and {arg('output')} runs/NAME."
        )
    if output is None:
        return score_run(folder)
    run, output = read_run(folder), Path(output)
    benchmark = load_benchmark(run.arguments.benchmark)
    arguments = replace(run.arguments, rules=check_rules(benchmark.rules, rules, benchmark.name))
    question = replace(read_question(run, planned=True), signature=with_rules(run.signature, arguments.rules))
    new = create_or_resume(output, arguments, question.signature, run.units_per_part, run.model_digest)
    for number in read_question(run).parts:
        answers = read_part(run, number)
        if answers is None:
            raise QabiasError(f"{folder}: part {number} is missing.", "Finish the run with `qabias run`.")
        write_checked(part_path(output, number), answers, new.digest)
    other = read_other_tool(folder)
    if other is not None:
        write_other_tool(output, without_reasons(other))
    return score_and_write(new, question)


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
    keys = keys_of(benchmark.key, rows)
    near = rows_near(table, benchmark.key, keys, _text)
    number_of = dict(zip(keys_of(benchmark.key, table.take(pa.array(near))), near.tolist(), strict=True))
    for row, key in enumerate(keys):
        if key not in number_of:
            names = {*map(_text, table[benchmark.key[0]].unique().to_pylist())}
            meant = "" if key[0] in names else did_you_mean(key[0], names)
            problem = f"{where}: row {row + 1}: no example has {spelled(benchmark.key, key)}{meant or '.'}"
            raise QabiasError(
                problem, "Write it so in the table." if meant else fix or f"Check {arg('config')} and {arg('source')}."
            )
    return keys, [number_of[key] for key in keys]


def keys_of(names: Sequence[str], rows: pa.Table) -> list[tuple[str, ...]]:
    """The key of every row as texts, in which 7, 7.0 and "7" are the same."""
    columns = (rows[name].to_pylist() for name in names)
    return [tuple(map(_text, key)) for key in zip(*columns, strict=True)]


def _text(value: Any) -> str:
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


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
