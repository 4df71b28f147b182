"""An interrupted run: the scores of its finished parts, where every other answer is missing."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from qabias.answers import NO_ANSWER
from qabias.answers.outcomes import ANSWERED
from qabias.benchmarks import load_benchmark
from qabias.benchmarks.scoring import scores_of
from qabias.errors import QabiasError, flag
from qabias.runs.arguments import RunArguments
from qabias.runs.conditions import read_until
from qabias.runs.folder import SCORES_FILE, RunFile, read_answers, read_run
from qabias.runs.question import Question, only_asked, read_question
from qabias.runs.run import answers_to, stopping_rule
from qabias.scorers.registry import SERVER
from qabias.scores.judge import ERROR


class Unfinished(NamedTuple):
    """What an interrupted run has; `n_asked` counts its examples, with `until` those up to the next look."""

    run: RunFile
    question: Question
    scores: Mapping[str, Any]
    n_answered: int
    n_asked: int


def read_unfinished(folder: Path) -> Unfinished:
    """Score the finished parts of a run without writing anything. Raises `QabiasError` if there is none."""
    run = read_run(folder)
    question, rules = read_question(run, planned=True), dict[str, Any](run.arguments.rules)
    if rule := stopping_rule(question, run.arguments):
        outcome, _ = rule.follow(partial(answers_to, run, question))
        rows = rule.rows_at(outcome)
        if outcome is not None:
            rules["confidence"] = outcome.confidence
            rows = outcome.asked(question.table) if rows is None else rows
        assert rows is not None  # there is a first look
        question = replace(question, examples=only_asked(question.examples, rows))
    benchmark, parts = question.benchmark, question.parts
    done = {number: read_answers(run, benchmark, {number: part})[0] for number, part in parts.items()}
    there = [answers for answers in done.values() if answers.num_rows]
    if not there:
        problem = f"{folder}: has no scores yet (no {SCORES_FILE}), and none of its {len(parts)} parts is finished."
        raise QabiasError(problem, f"Finish it: {command_of(run)}")
    whole = pa.concat_tables(there, promote_options="default")
    filled = [done[number] if done[number].num_rows else _missing(whole, part) for number, part in parts.items()]
    answers = pa.concat_tables(filled, promote_options="default")
    has_likelihoods = len(benchmark.answer_columns) > 1 and "outcomes" not in answers.column_names
    if has_likelihoods:  # of UnQover, which has possible ranges if it has outcomes
        answers = answers.append_column("outcomes", pa.array([[ANSWERED] * 4] * answers.num_rows))
    scores, _ = scores_of(benchmark, question.table, answers, rules)
    for group in benchmark.groups(scores).values() if has_likelihoods else ():
        group.get("range", {}).pop("coverage", None)  # holds for texts only
    return Unfinished(run, question, scores, whole.num_rows, answers.num_rows)


def _missing(whole: pa.Table, part: pa.Table) -> pa.Table:
    """Missing answers to a part, in the columns of the answers that exist."""
    known = {name: whole[name].drop_null() for name in whole.column_names}
    fill = {name: _nothing(column[0].as_py()) if len(column) else None for name, column in known.items()}
    columns = {name: pa.array([fill[name]] * part.num_rows, whole[name].type) for name in known}
    return pa.table({name: part[name] if name in part.column_names else columns[name] for name in columns})


def _nothing(value: Any) -> Any:
    """The missing answer in the form of one that exists."""
    if isinstance(value, list):
        return [_nothing(one) for one in value]
    return {str: "", float: math.nan, int: NO_ANSWER}.get(type(value))


def command_of(run: RunFile) -> str:
    """The command that continues a run; the address of a server is not known."""
    named = asdict(run.arguments)
    until = read_until(load_benchmark(named["benchmark"]), named["until"]) if named["until"] else None
    if until is not None and until.error != ERROR:
        return "the command qabias audit"
    named |= {"scores": named["scores"].split(",") if named["scores"] else [], "output": str(run.folder)}
    named |= {"until": list(map(str, until.conditions)), "by": until.by, "subject": until.subject} if until else {}
    return _written(["qabias", "run", named.pop("benchmark")], named)


def audit_command(run: RunFile, **others: object) -> str:
    """The command that audits a run's model; the address of a server is not known."""
    named = asdict(run.arguments)
    kept = {name: named[name] for name in ("model", "revision", "backend", "options", "dtype", "seed")}
    return _written(["qabias", "audit"], {**kept, **others})


def _written(words: list[str], named: Mapping[str, Any]) -> str:
    default = asdict(RunArguments("", model="", config=""))
    named = {**named, **({"base_url": "URL"} if named["backend"] == SERVER else {})}
    for name, value in named.items():
        value = [f"{one}={text}" for one, text in value.items()] if isinstance(value, Mapping) else value
        for one in [] if value in (default.get(name), []) else value if isinstance(value, list) else [value]:
            words += [flag(name.replace("options", "option")), *([] if one is True else [str(one)])]
    return shlex.join(words).replace("\n", " ")
