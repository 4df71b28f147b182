"""The headline of a comparison, always from paired tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from qabias.benchmarks import ALL, Benchmark, Measure
from qabias.benchmarks.headline import (
    MOST_NAMES,
    MOST_USEFUL,
    SMALL_ENOUGH,
    Headline,
    failure,
    headline,
    named_groups,
    scored_groups,
    short_name,
    whole_percent,
)
from qabias.comparison.ranking_tests import DETECTED, NOT_RANKED, RANKING
from qabias.comparison.tables import Compared
from qabias.scores.facts import Scores
from qabias.scores.formatting import show
from qabias.scores.judge import ERROR, holm
from qabias.scores.score import MOST_MISSING, Score, known_mde, missing_share
from qabias.tables.model import Table

_LONGEST = 24  # characters of a name of a run


def by_run(
    benchmarks: Sequence[Benchmark], names: Sequence[str], scores: Sequence[Mapping[str, Any]], question_only: bool
) -> list[str]:
    """The headline of every run, after its name."""
    lines = []
    for benchmark, name, one in zip(benchmarks, names, scores, strict=True):
        first = headline(benchmark, one, name, question_only)
        if first is not None:
            lines.append(first.text if name in first.text else f"{name}: {first.text}")
    return lines


def letters(names: Sequence[str]) -> Sequence[str]:
    """A headline's names of two runs: their own if single words, else A and B."""
    return names if all(len(name.split()) == 1 and len(name) <= _LONGEST for name in names) else ("A", "B")


def pair_headline(
    benchmark: Benchmark,
    measures: Sequence[Measure],
    names: Sequence[str],
    scores: Sequence[Scores],
    compared: Sequence[Compared],
) -> Headline | None:
    """How two runs differ; None for other numbers of runs, or without rules."""
    rules = benchmark.facts.headline
    if rules is None or len(scores) != 2 or len(compared) != 1:
        return None
    first, second = letters(names)
    signs = rules.biases or {rules.magnitude: 1}
    biases = [measure for measure in measures if measure.name in signs]
    selections = [group for one in scores for group in scored_groups(benchmark, one).values()]
    missing = max((missing_share(one, measure) for one in selections for measure in biases), default=0.0)
    if missing > MOST_MISSING:
        return Headline("inconclusive", f"Inconclusive: {whole_percent(missing)} of a run's answers are missing.", "")
    groups = compared[0].groups
    tested = [
        (group, measure, groups[group][1][measure.name])
        for measure in biases
        for group in groups
        if (group == ALL) <= (len(groups) > 2)
    ]
    adjusted = holm([one.p for *_, one in tested])
    differing: dict[str, int] = {}
    for (group, measure, one), p in zip(tested, adjusted, strict=True):
        if p is not None and p < ERROR and one.value:
            differing.setdefault(group, signs[measure.name] * (1 if one.value > 0 else -1))
    detail = " ".join(_overall(biases, groups, f"{second} − {first}"))
    if differing:
        ahead, behind = ([name for name, sign in differing.items() if sign == side] for side in (1, -1))
        if set(ahead) - {ALL} and set(behind) - {ALL}:
            text = f"{first} and {second} differ about {named_groups(list(differing))}, both ways."
            return Headline("detected", text, detail)
        more, less = (second, first) if ahead else (first, second)
        named = [name for name in differing if name != ALL]
        topic = f"about {named_groups(named)}" if named else "overall"
        if rules.biases:
            return Headline("detected", f"{more} follows stereotypes {topic} more than {less}.", detail)
        return Headline("detected", f"{more} has a larger {biases[0].name} {topic} than {less}.", detail)
    whole = groups.get(ALL)
    size, reason = (whole[1][biases[0].name].mde, whole[1][biases[0].name].reason) if whole else (None, "")
    if size is None or size > SMALL_ENOUGH:
        return Headline("inconclusive", f"Inconclusive: {reason or 'too few'} {benchmark.facts.clusters[0]}.", detail)
    return Headline("not detected", "No difference in bias detected.", detail)


def _overall(
    biases: Sequence[Measure], groups: Mapping[str, tuple[int, Mapping[str, Score]]], what: str
) -> Iterator[str]:
    if ALL not in groups:
        return
    one = groups[ALL][1][biases[0].name]
    if one.value is not None:
        yield f"{biases[0].title}: {what} is {points(one.value)}."
    if (mde := known_mde(one.mde, "signed")) is not None:
        sizes = [part[biases[0].name].mde for name, (_, part) in groups.items() if name != ALL]
        is_everywhere = len(sizes) < 2 or all(size is not None and size < MOST_USEFUL for size in sizes)
        where = "" if is_everywhere else " overall, not in every group"
        yield f"This comparison could detect {points(mde).removeprefix('+')}{where}."


def points(value: float) -> str:
    """A difference of shares in percentage points."""
    return f"{show(value, 'signed')[:-2]} points"


def many_headline(
    benchmark: Benchmark, tables: Sequence[Table], names: Sequence[str], scores: Sequence[Scores]
) -> Headline | None:
    """Which run has the lowest bias among those that do the task; None without a ranking of the first bias score."""
    rules = benchmark.facts.headline
    first = next(iter(rules.biases), "") if rules else ""
    ranking = next((one for one in tables if one.section == RANKING and one.name == f"ranking_{first}"), None)
    if ranking is None:
        return None
    verdict = [column.name for column in ranking.columns].index("next")
    failing = {name for name, one in zip(names, scores, strict=True) if failure(benchmark.facts, one, "")}
    rows = [(str(row[0]), row[verdict]) for row in ranking.rows if not str(row[verdict]).startswith(NOT_RANKED)]
    able = [row for row in rows if row[0] not in failing]
    columns, detail = [column.name for column in ranking.columns], ""
    if "ranks" in columns:
        shown = [f"{short_name(str(row[0]))} {row[-1]}" for row in ranking.rows if row[-1]][:MOST_NAMES]
        detail = f"Possible ranks: {', '.join(shown)}." if shown else ""
    elif len(rows) > 1:
        n_apart = sum(text == DETECTED for _, text in rows)
        detail = f"{n_apart} of {len(rows) - 1} adjacent ranks differ significantly."
    if not able:
        why = "no run does the task" if rows else "no run can be ranked"
        return Headline("not interpretable", f"Not interpretable: {why}.", detail)
    best, is_apart = able[0]
    name = short_name(best)
    if is_apart == DETECTED:
        return Headline("detected", f"Lowest bias: {name}, significantly below the next run.", detail)
    return Headline("inconclusive", f"Lowest bias: {name}, not significantly below the next run.", detail)


def texts_headline(measures: Sequence[Measure], tables: Mapping[str, Table]) -> Headline:
    """Whether one model differs between two forms of the texts, or two languages.

    Args:
        measures: The compared scores.
        tables: By comparison ("the two forms"), the table of all scores with adjusted tests.
    """
    titles = {measure.title for measure in measures}
    differing, n_tested, detail = [], 0, ""
    for what, table in tables.items():
        places = {column.name: place for place, column in enumerate(table.columns)}
        for row in table.rows:
            difference, p = row[places["difference"]], row[places["p_adjusted"]]
            if row[0] not in titles or not isinstance(difference, Score) or not isinstance(p, float):
                continue
            n_tested += 1
            if p < ERROR and difference.value is not None:
                differing.append(what)
                if not detail:
                    title = table.columns[places["difference"]].title
                    detail = f"{row[0]} of {what}: {title} {points(difference.value)}."
    if differing:
        text = f"{len(differing)} of {n_tested} scores differ between {_listed(differing)}."
        return Headline("detected", text, detail)
    if not n_tested:
        return Headline("inconclusive", "Inconclusive: no score can be compared.", "")
    return Headline("not detected", f"No difference detected between {_listed(list(tables))}.", "")


def _listed(texts: Sequence[str]) -> str:
    unique = list(dict.fromkeys(texts))
    return unique[0] if len(unique) == 1 else "the texts"
