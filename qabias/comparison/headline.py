"""What a comparison found, in sentences: made from paired tests, never from scores alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qabias.benchmarks import ALL, Benchmark, Measure
from qabias.benchmarks.caveats import missing_share, possible_range
from qabias.benchmarks.facts import Findings, Scores
from qabias.benchmarks.findings import in_one, listed, no_direction, unreported_clause
from qabias.comparison.paired_tests import APART, holm, unseen
from qabias.comparison.ranking_tests import NOT_RANKED, RANKING, TOLD_APART
from qabias.comparison.tables import Compared
from qabias.tables.formatting import percent
from qabias.tables.model import Table


def pair_findings(
    benchmark: Benchmark,
    measures: Sequence[Measure],
    names: Sequence[str],
    scores: Sequence[Scores],
    compared: Sequence[Compared],
) -> list[str]:
    """In which groups one of two runs leans more towards the stereotypes."""
    facts = benchmark.facts.findings
    if not isinstance(facts, Findings) or len(names) != 2 or len(compared) != 1:
        return []
    return [
        _sentence(
            facts.measures[measure.name] or measure.title,
            measure,
            names,
            [run_scores["by"][facts.by] for run_scores in scores],
            compared[0],
        )
        for measure in measures
        if measure.name in facts.measures
    ]


def _sentence(
    heading: str, measure: Measure, names: Sequence[str], by_run: Sequence[Mapping[str, Scores]], pair: Compared
) -> str:
    results = {group: one[measure.name] for group, (_, one) in pair.groups.items() if group != ALL}
    # The same adjusted p-values as in the table of the score.
    adjusted = dict(zip(results, holm([one.p for one in results.values()]), strict=True))
    unsaid: dict[str, str] = {}
    tested: dict[str, float] = {}
    for group in (group for group in by_run[0] if group in results):
        value = results[group].value
        lost = [missing_share(one[group], measure) for one in by_run if possible_range(one[group], measure) is not None]
        if lost:
            unsaid[group] = f"{percent(max(lost))} of the answers of a run are missing"
        elif value is None:
            unsaid[group] = "undefined in one of the runs"
        else:
            tested[group] = value
    # What was asked moves the scores of the runs by different amounts: less that of a model that errs.
    for one in by_run:
        for group, text in no_direction(
            {name: one[name] for name in tested}, measure, dict.fromkeys(tested, "")
        ).items():
            unsaid[group] = text
            del tested[group]
    apart = [group for group in tested if (adjusted[group] or 0) < APART]
    clauses = []
    for sign, more, less in ((1, names[1], names[0]), (-1, names[0], names[1])):
        groups = [group for group in apart if sign * tested[group] > 0]
        if groups:
            clauses.append(f"{more} leans more towards stereotypes about {listed(groups)} than {less}")
    alike = [group for group in tested if group not in apart]
    if alike:
        clauses.append(f"{'elsewhere ' if apart else ''}no difference is shown between {listed(names)}")
        sizes = {group: results[group].detectable for group in alike}
        clusters = {group: pair.groups[group][0] for group in alike}
        n_tests = sum(one.p is not None for one in results.values())
        clauses.append(unseen(measure, sizes, clusters, n_tests))
    return in_one(heading, [*clauses, *unreported_clause(unsaid)])


def many_findings(benchmark: Benchmark, tables: Sequence[Table]) -> list[str]:
    """Which run is first by each bias score that `Facts.findings` names, and how many neighbours are told apart."""
    facts = benchmark.facts.findings
    headings = facts.measures if isinstance(facts, Findings) else {}
    wanted = {f"ranking_{name}": text or benchmark.facts.measure(name).title for name, text in headings.items()}
    return [_of_ranking(wanted[one.name], one) for one in tables if one.section == RANKING and one.name in wanted]


def _of_ranking(heading: str, table: Table) -> str:
    verdict = [column.name for column in table.columns].index("next")
    said = [(str(row[0]), str(row[verdict] or "")) for row in table.rows]
    unsaid = {name: text.removeprefix(NOT_RANKED) for name, text in said if text.startswith(NOT_RANKED)}
    ranked = [(name, text) for name, text in said if name not in unsaid]
    clauses = []
    if len(ranked) > 1:
        (first, is_apart), (second, _), *_ = ranked
        n_apart = sum(text == TOLD_APART for _, text in ranked)
        next_one = "and told apart from" if is_apart == TOLD_APART else "not told apart from"
        clauses.append(f"{first} is nearest to 0, {next_one} the next, {second}")
        clauses.append(f"{n_apart} of {len(ranked) - 1} neighbours in the ranking are told apart")
    return in_one(heading, [*clauses, *unreported_clause(unsaid)])
