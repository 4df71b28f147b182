"""A run held against limits: a verdict for every score and group.

Many groups are looked at, and of twenty 95 % intervals one misses its score. So all intervals of one call are widened
until they hold together (Bonferroni), as for the sentences about what a run found: see `qabias.benchmarks.findings`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from qabias.benchmarks import ALL, Benchmark, Measure
from qabias.benchmarks.caveats import detectable, imbalance, imbalance_note, possible_range, reasons
from qabias.benchmarks.facts import WORDINGS, Scores
from qabias.benchmarks.findings import adjusted_finding
from qabias.errors import QabiasError
from qabias.runs.scored import ScoredRun
from qabias.support.suggest import did_you_mean, unknown
from qabias.tables.model import estimate
from qabias.testing.verdicts import Limit, Verdict, allowed, check_limit, examples_needed, has_sign, judged, within


def verdicts(run: ScoredRun, limits: Sequence[Limit], by: str | None = None) -> list[Verdict]:
    """Hold the scores of a run against limits.

    Args:
        run: The run.
        limits: The limits; intervals are widened for all scores and groups together.
        by: A breakdown, see `breakdowns`; None for all examples together.

    Returns:
        One verdict for every limit and every group that has its score, in their order.

    Raises:
        QabiasError: If there is no such score or breakdown, the run cannot have the score, a limit is none, or another
            version has made the scores.
    """
    groups = _groups(run, by)
    cells = []
    for limit in limits:
        measure = _measure(run, limit.name, groups, by)
        check_limit(limit, measure)
        cells += [(limit, measure, group, of) for group, of in groups.items() if measure.name in of]
    unreported = [_about_nothing(run, measure, of) for _, measure, _, of in cells]
    looks = unreported.count("")
    return [_verdict(run.benchmark, *cell, looks, why) for cell, why in zip(cells, unreported, strict=True)]


def breakdowns(run: ScoredRun) -> dict[str, Mapping[str, Scores]]:
    """What the scores of a run are broken down by, with the scores of every group.

    These are the groups of `scores["by"]`, the wordings of a set of prompts, and what the benchmark itself calls its
    groups, where nothing else has that name.

    Args:
        run: The run.
    """
    benchmark, scores = run.benchmark, run.scores
    own = {name: of for name, of in benchmark.groups(scores).items() if name != ALL}
    found = {benchmark.facts.row: own, **scores.get("by", {})}
    if WORDINGS in scores:
        found[WORDINGS] = scores[WORDINGS]
    return {name: groups for name, groups in found.items() if groups}


def _groups(run: ScoredRun, by: str | None) -> Mapping[str, Scores]:
    there = breakdowns(run)
    if by is not None:
        if by not in there:
            raise unknown("breakdown", by, there)
        return there[by]
    whole = run.benchmark.groups(run.scores).get(ALL)
    if whole is None:
        raise QabiasError(
            f"{run.benchmark.name} has no scores of all examples together; choose what they are checked by: "
            f"{', '.join(there)} (by=..., --by ...)"
        )
    return {ALL: whole}


def _measure(run: ScoredRun, name: str, groups: Mapping[str, Scores], by: str | None) -> Measure:
    """The score of that name, which one of the groups has at least."""
    benchmark, facts = run.benchmark, run.benchmark.facts
    known = list(dict.fromkeys(measure.name for measure in facts.measures))
    if name not in known:
        raise unknown("score", name, known)
    measure = facts.measure(name)
    about = facts.question_only if run.is_question_only else None
    if about is not None and name not in about.measures:
        raise QabiasError(
            f"{name} means nothing where the model saw no context; choose one of {', '.join(about.measures)}"
            f"{did_you_mean(name, about.measures)}"
        )
    elsewhere = by is not None and measure.breakdowns and by not in measure.breakdowns
    if elsewhere or not any(name in of for of in groups.values()):
        there = breakdowns(run)
        where = measure.breakdowns or [other for other in there if any(name in of for of in there[other].values())]
        what = "of all examples together" if by is None else f"by {by}"
        instead = f"; there is one by {', '.join(where)}" if where else f": {measure.lacks}" if measure.lacks else ""
        raise QabiasError(f"the run has no {name} {what}{instead} ({benchmark.name})")
    return measure


def _about_nothing(run: ScoredRun, measure: Measure, scores: Scores) -> str:
    """Why nothing can be said of a score; "" where something can."""
    value, low, high = estimate(scores, measure.name)
    why = reasons(run.benchmark.facts, scores)
    if value is None:
        return f"undefined: {why[f'/{measure.name}']}"
    if low is None or high is None:
        return why.get(f"/ci/{measure.name}") or "it has no interval"
    if not low < high:
        return "an interval of no width"
    share = imbalance(scores, measure)
    return "" if share is None else imbalance_note([share], measure)


def _verdict(
    benchmark: Benchmark, limit: Limit, measure: Measure, group: str, scores: Scores, looks: int, why: str
) -> Verdict:
    value, possible = estimate(scores, measure.name).value, possible_range(scores, measure)
    n = sum(scores[count] for count in measure.counts or ("n",)) // scores.get("n_runs", 1)
    unreported = Verdict(
        limit.name,
        group,
        value,
        None,
        None,
        limit.value,
        limit.side,
        limit.side == "below" and has_sign(measure),
        "undecided",
        measure.kind,
        n,
        looks,
        why,
        possible,
    )
    if why or value is None:
        return unreported
    seen = adjusted_finding(benchmark.facts, group, scores, measure.name, looks)
    inner = (value, value) if possible is None else (min(value, possible[0]), max(value, possible[1]))
    # Whichever way the missing answers had gone, the interval would be about as wide as it is now.
    reach = inner[0] - (value - seen.low), inner[1] + (seen.high - value)
    (low, high), between = within(reach, measure), allowed(limit, measure)
    state = judged((low, high), between)
    return replace(
        unreported,
        low=low,
        high=high,
        state=state,
        detectable=None if detectable(scores, measure) is None else seen.detectable,
        needed=examples_needed(n, inner, reach, between) if state == "undecided" else None,
    )


__all__ = ["breakdowns", "verdicts"]
