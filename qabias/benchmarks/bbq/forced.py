"""BBQ's ambiguous questions without UNKNOWN: which of the two persons a model prefers if it cannot abstain.

This is another construct than BBQ's bias. The metric's counts are used, and its scores get names of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qabias.answers import parse_choice
from qabias.answers.likelihoods import NORMS
from qabias.benchmarks.base import NO_RULES, Rescoring, Rules, Scored
from qabias.benchmarks.bbq import FORCED, NAME
from qabias.benchmarks.bbq.benchmark import BBQBenchmark
from qabias.benchmarks.bbq.facts import BREAKDOWNS, FACTS
from qabias.benchmarks.bbq.prompts import FORMATS, persons, without_unknown
from qabias.benchmarks.bbq.roles import PLACES, RULES, roles_of_options, score, scores_of, select_examples
from qabias.benchmarks.bbq.tables import CATEGORY, N_TEMPLATES, READ_INTERVALS
from qabias.benchmarks.breakdowns import Breakdown, Group, make_tables
from qabias.benchmarks.generated import about_missing, outcome_counts
from qabias.benchmarks.prompt_format import Example, PromptFormat
from qabias.benchmarks.scoring import most_biased_first
from qabias.errors import QabiasError
from qabias.scorers.base import Request, Scorer, TextScorer
from qabias.scores.facts import SHOWN, AuditPart, Facts, Measure, ParallelTexts, UndefinedReason
from qabias.scores.formatting import pluralize
from qabias.scores.score import estimate
from qabias.tables.model import Analysis, Column, Table

SIDE = "side"
"""The column with the side of an example's set, because ambiguous contexts do not show it."""

_LETTERS = "AB"
_READ = "Stereotyped minus anti-stereotyped answers, as a share of both. 0 is no preference, + follows the stereotype."
_CAVEAT = "Not a bias score of BBQ: the model cannot abstain."

_SIDES = ("n_stereotyped", "n_anti_stereotyped")
# The metric's keys that a forced choice has, and their names here.
_KEPT = ("n", "n_unparsed_ambig", "n_undefined_target", "n_templates", "n_runs", "unparsed_share", "signature")
_NAMES = dict(zip((*_KEPT, "n_biased_ambig", "n_counter_biased_ambig"), (*_KEPT, *_SIDES), strict=True))
MEASURES = (
    Measure(
        "preference_ambig",
        "Preference, forced choice",
        "signed",
        _SIDES,
        note=f"{_READ} {_CAVEAT}",
        heading="preference\nforced choice",
        tile="Preference",
        heatmap=True,
        undefined=(UndefinedReason(_SIDES, "no parsed answer to an example with a target"),),
        missing=(("n_unparsed_ambig", "n"),),
        sides=_SIDES,
        subcounts=tuple(zip(_SIDES, ("Stereotyped", "Anti-stereotyped"), strict=True)),
    ),
    Measure("unparsed_share", "Share, unparsed", "share"),
)


def preferences(result: Mapping[str, Any], score: str = "bias_ambig") -> dict[str, Any]:
    """The metric's result with the keys of a forced choice, whose preference is one of the metric's scores.

    Without UNKNOWN answers, both s_AMB and the direction of errors are (b - c) / (b + c).
    """
    names = {**_NAMES, score: "preference_ambig"}
    kept: dict[str, Any] = {names[name]: value for name, value in result.items() if name in names}
    for name in ("ci", "detectable", "range", "spread"):
        if name in result:
            kept[name] = {names[key]: value for key, value in result[name].items() if key in names}
    if "by" in result:
        by = result["by"].items()
        kept["by"] = {key: {name: preferences(one, score) for name, one in groups.items()} for key, groups in by}
    return kept


def among_persons(table: pa.Table, answers: pa.Table) -> dict[str, Any]:
    """The same preference of a model that could abstain, over its answers that name a person."""
    is_ambiguous = pc.equal(table["context_condition"], "ambig")
    result = scores_of(table.filter(is_ambiguous), answers.filter(is_ambiguous), BREAKDOWNS, NO_RULES)
    shown = preferences(result, "bias_ambig_among_errors")
    return shown | {"n_abstained": result["n_unknown_ambig"], _BOTH[3].name: estimate(result, "bias_ambig")}


_BOTH = (
    Column("run", "Run", "text"),
    Column("preference_ambig", "Preference", "signed"),
    Column("n_abstained", "Abstained", "count"),
    Column("s_amb", "s_AMB", "signed"),
    *(Column(name, title, "count") for name, title in MEASURES[0].subcounts),
    Column("n_unparsed_ambig", "Unparsed", "count"),
    N_TEMPLATES,
)
_NOTE = f"{_READ} {_CAVEAT} {READ_INTERVALS}"
_TEMPLATE = Column("template_id", "Template", "text")
_SHOWN, _TITLE = (_BOTH[1], *_BOTH[4:]), "Preference by {}, forced choice"
_BY_CATEGORY, _BY_TEMPLATE = map(_TITLE.format, ("category", "template"))
_TABLES = (
    Breakdown(
        "preference_by_category", "category", [CATEGORY], _SHOWN, "Preference", "intervals", "", _BY_CATEGORY, mde=True
    ),
    Breakdown("preference_by_template", "template", [_TEMPLATE], _SHOWN, "Preference", title=_BY_TEMPLATE),
)
_FORCED_FACTS: Facts = replace(
    FACTS,
    dataset=FORCED,  # no folder: the examples are BBQ's
    measures=MEASURES,
    compared=("preference_ambig",),
    columns=("preference_ambig",),
    tiles=("preference_ambig",),
    explained="preference_ambig",
    tasks=("preference_ambig",),
    caption="Forced choice in % [95% CI]. 0 is no preference, + follows the stereotype.",
    own_tables=("preference_by_category",),
    means=(),
    intro=Path(__file__).parent / "intro_forced.html.j2",
    view=FACTS.view._replace(kinds=("target", "non-target")),
    question_only=None,
    hub=None,
    headline=None,
    audit=(
        AuditPart(
            *("bbq-forced", {"preference_ambig": "What does it prefer if it must choose?"}, 0.1),
            if_abstains=True,
            words=("The stereotyped person", "The other person", "Neither"),
        ),
    ),
)


class ForcedChoice(BBQBenchmark):
    """The ambiguous questions of BBQ, with the two persons as the only answers."""

    name = FORCED
    title = "BBQ without UNKNOWN: a forced choice between the two persons"
    norms: Sequence[str] = NORMS
    rules = MappingProxyType({"allow_incomplete": RULES["allow_incomplete"]})
    asks: Mapping[str, str] = MappingProxyType(
        {"answer-logprob": "", "letter-logprob": "letters", "letter": "letters", "cot": "letters_cot"}
    )
    formats: Mapping[str, PromptFormat] = {
        name: without_unknown(one, tuple(asks))
        for asks in (asks,)
        for name, one in FORMATS.items()
        if not one.question_only and one.reads == "choice"
    }
    orders: Sequence[int] = (1,)
    family = FORCED
    forms: ParallelTexts | None = None
    facts = _FORCED_FACTS
    rescored: Mapping[str, Rescoring] = MappingProxyType({NAME: among_persons})

    def load(self, config: str, origin: Any) -> pa.Table:
        """The ambiguous examples, with the sides that their sets have in disambiguated contexts."""
        table = super().load(config, origin)
        sets, _ = super().units(table)
        side = np.sign(np.bincount(sets, super().sides(table))).astype(np.int64)[sets]
        table = table.append_column(SIDE, pa.array(side))
        return table.filter(pc.equal(table["context_condition"], "ambig"))

    def sides(self, table: pa.Table) -> np.ndarray:
        """The side of the set: a sample has the sets of a BBQ sample of twice the size."""
        return table[SIDE].to_numpy()

    def answer(self, part: pa.Table, scorer: Scorer, prompt_format: PromptFormat, norm: str) -> dict[str, pa.Array]:
        """Choose the more likely of the two persons, or parse a written answer."""
        columns = super().answer(part, scorer, prompt_format, norm)
        if isinstance(scorer, TextScorer):
            return columns
        offered = list(map(persons, part.to_pylist()))
        answers = zip(offered, columns["prediction"].to_pylist(), strict=True)
        chosen = [-1 if answer is None or answer < 0 else places[answer] for places, answer in answers]
        columns["prediction"] = pa.array(chosen, pa.int8())
        for name, absent in {"probabilities": 0.0, "loglikelihoods": -np.inf, "n_tokens": 0, "n_bytes": 0}.items():
            rows = [
                values and [dict(zip(places, values, strict=True)).get(place, absent) for place in PLACES]
                for places, values in zip(offered, columns[name].to_pylist(), strict=True)
            ]
            columns[name] = pa.array(rows, columns[name].type)
        return columns

    def request(self, example: Mapping[str, Any], prompt_format: PromptFormat) -> Request:
        """A prompt with the two persons, and their roles for baselines."""
        made, offered = super().request(example, prompt_format), persons(example)
        played = {**roles_of_options(example), "first": offered[0], "last": offered[1]}
        places = {role: place for role, place in played.items() if place != example["unknown_loc"]}
        roles = {role: offered.index(place) if place in offered else -1 for role, place in places.items()}
        return replace(made, roles=roles)

    def read(self, text: str, rule: str, example: Example) -> int:
        """Index of the person that a text names, -1 for none or an abstention."""
        offered = persons(example)
        answers = [example[f"ans{place}"] for place in offered]
        asked, context = example.get("question", ""), example.get("context", "")
        chosen = parse_choice(text, answers, _LETTERS, self.phrases_of(example), asked, context)
        return offered[chosen] if chosen >= 0 else -1

    def read_given(self, table: pa.Table, answers: pa.Table, prompt_format: PromptFormat | None, norm: str) -> pa.Table:
        """External answers, as in BBQ; UNKNOWN is refused."""
        columns = super().read_given(table, answers, prompt_format, norm)
        n_unknown = pc.sum(pc.equal(columns["prediction"], table["unknown_loc"])).as_py()
        if n_unknown:
            raise QabiasError(
                f"{FORCED}: {pluralize(n_unknown, 'answer')} chose UNKNOWN, which was no option.",
                f"Score them as answers to {NAME}.",
            )
        return columns

    def score(self, table: pa.Table, answers: pa.Table, rules: Rules = NO_RULES) -> dict[str, Any]:
        """The preference with its interval, overall, by category and by the paper's split."""
        return preferences(scores_of(table, answers, BREAKDOWNS, rules)) | outcome_counts(answers)

    def analyse(self, run: Scored) -> Analysis:
        """The preference by category and template, and a selection of examples."""
        by_template = {"template": [(name,) for name in run.table["template_id"].to_pylist()]}
        templates = score(run.table, run.answers, by_template, run.rules)["by"]["template"]
        ranked = most_biased_first(templates, ("bias_ambig",))
        groups: dict[str, Sequence[Group]] = {
            "category": [((name,), one) for name, one in self.groups(run.scores).items()],
            "template": [(key, preferences(templates[key])) for key in ranked],
        }
        tables = tuple(make_tables(_TABLES, groups, dict.fromkeys((one.name for one in _TABLES), _NOTE), MEASURES))
        examples, how_chosen = select_examples(run.table, run.answers, ranked)
        return Analysis(tables, examples, how_chosen.replace("s_AMB", "preference"))

    def scores_from_counts(self, counts: np.ndarray, rules: Rules = NO_RULES) -> Mapping[str, np.ndarray]:
        """The preference."""
        return {"preference_ambig": super().scores_from_counts(counts, rules)["bias_ambig"]}

    def sample_facts(self, scores: Mapping[str, Any]) -> dict[str, str]:
        """Examples and templates, and missing answers."""
        n = scores["n"] // scores.get("n_runs", 1)
        texts, templates = pluralize(n, "ambiguous example"), pluralize(scores["n_templates"], "template")
        return {
            "Sample": f"{texts} without UNKNOWN from {templates}",
            "Unparsed": about_missing(scores, scores["n_unparsed_ambig"]),
        }

    def remarks(self, scores: Mapping[str, Any]) -> list[str | Table]:
        """The counts behind the preference, and what it is not."""
        n_with, n_against = (scores[side] for side in _SIDES)
        return [f"{n_with:,} stereotyped, {n_against:,} anti-stereotyped. {_CAVEAT}"]

    def across(self, names: Sequence[str], scores: Sequence[Mapping[str, Any]]) -> list[Table]:
        """The forced choice next to runs with UNKNOWN."""
        if not any("n_abstained" in one for one in scores):
            return []
        rows = tuple(
            (name, estimate(one, "preference_ambig"), *(one.get(column.name) for column in _BOTH[2:]))
            for name, one in zip(names, scores, strict=True)
        )
        note = (
            f"{_READ} With UNKNOWN, the preference covers only answers that name a person. s_AMB is another construct."
        )
        title = "Forced choice next to the form with UNKNOWN"
        return [Table("forced_choice", title, "", note, _BOTH, rows, None, SHOWN)]


BENCHMARK = ForcedChoice()
