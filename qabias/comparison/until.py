"""Two runs compared look by look, until a condition on their difference is decided."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from qabias.benchmarks import ALL, Benchmark
from qabias.comparison.comparable import common_benchmark
from qabias.comparison.paired import Answers, common_rows, differences, have_common_examples
from qabias.comparison.sample_size import planned_measure
from qabias.errors import QabiasError, arg
from qabias.runs.conditions import Until, read_until
from qabias.runs.looks import ends_of, information, limits_of, order_by_look, sizes_at
from qabias.runs.opened import Run
from qabias.runs.question import load_examples
from qabias.scores.facts import Measure
from qabias.scores.judge import ERROR, Condition, Verdict, check_condition, judge, parse_condition

DIFFERENCE = "difference"
"""Name of the difference of the benchmark's headline bias score."""


def compare_until(runs: Sequence[Run], conditions: Sequence[str]) -> list[Verdict]:
    """Decide conditions such as "difference<0.02" on the second of two runs minus the first.

    Args:
        runs: Two runs on the same texts. Each has all examples, or those of its first looks.
        conditions: Scores with thresholds; `DIFFERENCE` names the headline bias score.

    Returns:
        A verdict per condition, from the first look that decides it; else from the last that both runs have.

    Raises:
        QabiasError: If there are not two comparable runs, or a score does not exist.
    """
    if len(runs) != 2 or not have_common_examples(*runs):
        raise QabiasError(f"{arg('until')} compares two runs on the same texts.", "Give two runs with the same source.")
    benchmark = common_benchmark(runs)
    wanted = [_condition(benchmark, text) for text in conditions]
    until, base = Until(tuple(condition for condition, _ in wanted)), runs[0].arguments
    for run in runs:
        planned = read_until(benchmark, run.arguments.until) if run.arguments.until else None
        if planned is not None and not planned.is_finite and planned.by is None:
            until, base = planned, run.arguments
    if base.until and read_until(benchmark, base.until).is_finite:
        base = replace(base, limit=None)  # which ends its looks, and draws no sample
    whole = load_examples(replace(base, until="", scores="")).table
    whole = order_by_look(benchmark, whole, until, base.seed)
    ends = ends_of(whole)
    answers = Answers()
    table, (ours, theirs) = answers.examples(runs[0]), map(answers.of_run, runs)
    first, second = common_rows(table, answers.examples(runs[1]), benchmark.key)
    table, ours, theirs = table.take(first), ours.take(first), theirs.take(second)
    rows, places = common_rows(table, whole.append_column("place", pa.array(range(whole.num_rows))), benchmark.key)
    table, ours, theirs = (one.take(rows) for one in (table, ours, theirs))
    at = places.to_numpy()
    n_complete = sum(np.count_nonzero(at < end) == end for end in ends)
    if not n_complete:
        raise QabiasError(
            "The runs have no complete look in common.", f"Run both with {arg('until')} and the same {arg('seed')}."
        )
    bounds = limits_of(information(sizes_at(benchmark, whole)), 2.0 * ERROR / len(wanted))

    def decide(condition: Condition, measure: Measure) -> Verdict:
        farthest = {measure.name: benchmark.facts.measure(measure.name).farthest}
        for look in range(1, n_complete + 1):
            kept = pa.array(at < ends[look - 1])
            part, first_answers, second_answers = (one.filter(kept) for one in (table, ours, theirs))
            pair = benchmark.pair_up(part, first_answers, second_answers, runs[0].arguments.rules)[ALL]
            level = math.erf(bounds[look - 1] / math.sqrt(2.0))
            score = differences(pair, farthest, confidence=level)[measure.name]._replace(measure=measure)
            verdict = judge(score, condition)
            if verdict.state != "undecided":
                break
        return replace(verdict, look=look, n_looks=len(ends), share=ends[look - 1] / ends[-1])

    return [decide(*condition) for condition in wanted]


def _condition(benchmark: Benchmark, text: str) -> tuple[Condition, Measure]:
    """A condition with the facts of the difference that it is about."""
    name = text.partition("<")[0].strip()
    if name == DIFFERENCE:
        text = text.replace(DIFFERENCE, planned_measure(benchmark).name)
    condition = parse_condition(text, benchmark.facts.measures)
    difference = replace(benchmark.facts.measure(condition.name), kind="signed", best=0.0)
    check_condition(condition, difference)
    return condition, difference
