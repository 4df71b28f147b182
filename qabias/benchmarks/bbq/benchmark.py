"""BBQ for the engine: sets of four, three answers, an argmax and the published scores."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeGuard, cast

import numpy as np
import pyarrow as pa

from qabias.answers import parse_choice
from qabias.answers.likelihoods import NORMS, choice_columns, probability_column
from qabias.answers.named import ANSWER_TYPES
from qabias.answers.outcomes import outcome, whole
from qabias.answers.parsing import PARSE_RULES, parse_choice_released
from qabias.answers.phrases import ENGLISH, Phrases
from qabias.benchmarks import locate
from qabias.benchmarks.base import NO_RULES, RUN, Benchmark, External, Rules, Scored
from qabias.benchmarks.bbq import FORCED, NAME, logs, published_scores
from qabias.benchmarks.bbq.facts import BREAKDOWNS, CONSISTENCY, FACTS, describe_abstention, describe_errors
from qabias.benchmarks.bbq.logs import recognise
from qabias.benchmarks.bbq.prompts import FORMATS
from qabias.benchmarks.bbq.roles import (
    FORMS,
    ORDER,
    PLACES,
    ROLES,
    RULES,
    check_probabilities,
    counting,
    examples,
    in_order,
    paper_categories,
    probabilities_of,
    read_open,
    roles_of_options,
    scores_of,
)
from qabias.benchmarks.generated import about_missing, outcome_counts, read_predictions
from qabias.benchmarks.orders import (
    PREDICTIONS,
    are_consistent,
    likelihood_columns,
    orders_of,
    without_majority,
    written_columns,
)
from qabias.benchmarks.pairs import predictions
from qabias.benchmarks.prompt_format import Example, PromptFormat
from qabias.building.origin import BUNDLED
from qabias.errors import QabiasError, arg
from qabias.scorers.base import OptionScorer, Request, Scorer, TextScorer
from qabias.scorers.kind import ScorerKind
from qabias.scorers.registry import check_rule, kind_of
from qabias.scores.facts import WORDINGS, ParallelTexts, Scores
from qabias.scores.formatting import pluralize
from qabias.scores.score import estimate
from qabias.share.bbq_dataset import folder as _folder
from qabias.share.bbq_dataset import origin as _origin
from qabias.share.metrics.bbq.scores import count, scores_from_counts
from qabias.support.arrow import column_codes, rows_of
from qabias.support.suggest import unknown
from qabias.tables.model import Analysis, Table

PAIR_FORMAT = "pair"
"""The format of models that take the context, and the question with an answer, as two texts."""

# Tables about listed answers.
_OF_OPTIONS = ("answer_positions", "unknown_texts")


class BBQBenchmark(Benchmark):
    """Bias Benchmark for Question Answering (Parrish et al. 2022)."""

    name = NAME
    title = "BBQ: Bias Benchmark for Question Answering"
    configs: Sequence[str] = _origin.CONFIGS
    sources: Sequence[str] = _origin.SOURCES
    formats: Mapping[str, PromptFormat] = FORMATS
    norms: Sequence[str] = (*NORMS, *PARSE_RULES)
    interfaces: Sequence[str] = ("options", "choices", "texts")
    key = ("category", "example_id")
    class_labels = MappingProxyType({"label": ("ans0", "ans1", "ans2")})
    answer_columns = ("prediction",)
    optional_columns = ("probabilities", "outcome", "outputs")
    stored_columns = ("outcome", "said", "probabilities", PREDICTIONS)
    rules = RULES
    asks: Mapping[str, str] = MappingProxyType(
        {
            "answer-logprob": "",
            "letter-logprob": "letters",
            "letter": "letters",
            "cot": "letters_cot",
            "fill-blank": "fill",
            "open-ended": "open",
            "json": "letters",
        }
    )
    forced_choice: str = ""
    orders: Sequence[int] = (1, 3, 6)
    breakdowns = ("paper_category",)
    averages = True
    family = NAME
    forms: ParallelTexts | None = FORMS
    facts = FACTS

    def origin(self, source: str, seed: int, fixes: bool) -> Any:
        """Check the choice of a source."""
        return _origin.Origin(source, seed, fixes)

    def load(self, config: str, origin: Any) -> pa.Table:
        """The examples of a category or of all, in file order."""
        return locate.load_tables(NAME, self._categories(config), origin, _origin.SCHEMA)

    def write_folder(self, output: Path, config: str, origin: Any) -> dict[str, pa.Table]:
        """Build a dataset folder; returns its tables by category."""
        names = list(self._categories(config))
        if config == _origin.ALL and origin.source == BUNDLED:
            names += _origin.NLI_CONFIGS
        tables: dict[str, pa.Table] = _folder.write_folder(output, origin, names)
        return tables

    def units_per_part(self, kind: ScorerKind) -> int:
        """Sets of four per part."""
        return 64

    def units(self, table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        """The set of four and the template of every example."""
        return column_codes(table["set_id"]), column_codes(table["template_id"])

    def sides(self, table: pa.Table) -> np.ndarray:
        """By the right answers of disambiguated contexts. The four examples of a set are of one side."""
        label, biased = (table[name].to_numpy() for name in ("label", "biased_loc"))
        facts = (table["context_condition"].to_numpy() == "disambig") & (biased >= 0)
        return np.where(facts, np.where(label == biased, 1, -1), 0)

    def counted(self, table: pa.Table) -> Mapping[str, np.ndarray]:
        """By context."""
        is_ambiguous = table["context_condition"].to_numpy() == "ambig"
        of_ambiguous = dict.fromkeys(("n_ambig", "n_probabilities_ambig"), is_ambiguous)
        names = ("n_disambig", "n_probabilities_disambig", "n_aligned", "n_nonaligned")
        return {**of_ambiguous, **dict.fromkeys(names, ~is_ambiguous)}

    def incomplete_sets(self, table: pa.Table) -> tuple[int, int]:
        """Sets, and those with more questions of one polarity than of the other in a context."""
        set_of = column_codes(table["set_id"])
        cell = set_of * 2 + (table["context_condition"].to_numpy() == "disambig")
        sign = np.where(table["question_polarity"].to_numpy() == "neg", 1, -1)
        lopsided = np.bincount(cell, weights=sign) != 0
        return int(set_of.max(initial=-1)) + 1, len(set((np.flatnonzero(lopsided) // 2).tolist()))

    def default_format(self, scorer: Scorer) -> str:
        """RACE, the paper's first format, for models that must see the answers; letters for chats."""
        kind = kind_of(scorer)
        if "choices" in kind.interfaces:
            return PAIR_FORMAT
        writes = isinstance(scorer, TextScorer)
        if writes and kind.chats:
            return "letters"
        return "race" if writes or kind.lists_options else "qa"

    def answer(self, part: pa.Table, scorer: Scorer, prompt_format: PromptFormat, norm: str) -> dict[str, pa.Array]:
        """Choose the most likely of the three answers, or parse a written one."""
        check_rule(scorer, norm)
        orders = orders_of(len(PLACES), prompt_format.orders)
        examples = [in_order(row, order) for row in part.to_pylist() for order in orders]
        requests = [self.request(example, prompt_format) for example in examples]
        if not isinstance(scorer, TextScorer):
            chosen = choice_columns(cast(OptionScorer, scorer).score(requests), norm)
            if len(orders) > 1:
                return likelihood_columns(chosen, orders, norm)
            return chosen | {"probabilities": probability_column(chosen, norm)}
        if prompt_format.pairs:
            raise QabiasError(
                f"{NAME}: the format {prompt_format.name} needs probabilities.", f"Remove {arg('format')}."
            )
        if scorer.samples > 1:
            raise QabiasError(f"{NAME}: several samples per question are not supported.", "Remove samples.")
        texts = scorer.generate([request.prefix for request in requests], [request.key for request in requests])
        written = self._written_columns([text for (text,) in texts], norm, examples, prompt_format)
        return written_columns(written, orders) if len(orders) > 1 else written

    def request(self, example: Mapping[str, Any], prompt_format: PromptFormat) -> Request:
        """A prompt with its options, and their roles for baselines."""
        prefix, options = prompt_format.render(example)
        key = f"{example['category']}/{example['example_id']}" + example.get(ORDER, "")
        if RUN in example:  # a wording of a set
            key = f"{key}/{example[RUN]}"
        return Request(prefix, options, roles_of_options(example), key)

    def score(self, table: pa.Table, answers: pa.Table, rules: Rules = NO_RULES) -> dict[str, Any]:
        """All scores with intervals: overall, by category and by the paper's split of names and labels."""
        scores = scores_of(table, answers, BREAKDOWNS, rules)
        scores |= outcome_counts(answers)
        if "said" in answers.column_names:
            counts = Counter(answers["said"].to_pylist())
            scores["said"] = {name: counts[name] for name in ANSWER_TYPES}
        if PREDICTIONS in answers.column_names:
            in_orders = answers[PREDICTIONS]
            alike = are_consistent(in_orders)
            scores |= {"n_orders": len(in_orders[0]), CONSISTENCY: float(alike.mean())}
            for name, rows in rows_of(pa.chunked_array([paper_categories(table)])).items():
                scores["by"]["paper_category"][name][CONSISTENCY] = float(alike[rows].mean())
            scores["n_without_majority"] = without_majority(in_orders, predictions(answers))
        return scores

    def analyse(self, run: Scored) -> Analysis:
        """The figures and tables of Parrish et al. 2022."""
        from qabias.benchmarks.bbq.tables import analyse

        question_only = run.prompt_format is not None and run.prompt_format.question_only
        analysis = analyse(run.table, run.answers, run.scores, question_only, run.rules)
        if not _is_open(run.prompt_format):
            return analysis
        return replace(analysis, tables=tuple(one for one in analysis.tables if one.name not in _OF_OPTIONS))

    def examples(self, table: pa.Table, answers: pa.Table) -> Sequence[Mapping[str, Any]]:
        """Every example with its answer, by roles."""
        return examples(table, answers)

    def read_given(self, table: pa.Table, answers: pa.Table, prompt_format: PromptFormat | None, norm: str) -> pa.Table:
        """External answers: indices are kept, texts are parsed."""
        likely = {name: answers[name] for name in ("probabilities",) if name in answers.column_names}
        for column in likely.values():
            check_probabilities(column)
        return read_predictions(
            answers, table, lambda texts: self._written_columns(texts, norm, table.to_pylist(), prompt_format) | likely
        )

    def check_config(self, config: str) -> None:
        """Accept a config, or several categories in order, each once."""
        names = config.split(",")
        known = _origin.CATEGORIES if len(names) > 1 else self.configs
        check_ordered(config, known, self.configs, f"qabias list {NAME} --full")

    def group_columns(self, table: pa.Table) -> Mapping[str, pa.ChunkedArray]:
        """The paper's categories."""
        return {"paper_category": pa.chunked_array([paper_categories(table)])}

    def clusters(self, table: pa.Table) -> np.ndarray:
        """The templates."""
        return column_codes(table["template_id"])

    def count(self, table: pa.Table, answers: pa.Table, cells: np.ndarray, rules: Rules = NO_RULES) -> np.ndarray:
        """The metric's counts by cell."""
        roles = [table[name].to_numpy().astype(np.int64) for name in ROLES]
        disambiguated = table["context_condition"].to_numpy() == "disambig"
        columns = (*roles, disambiguated, cells, int(cells.max(initial=-1)) + 1, probabilities_of(answers))
        return count(predictions(answers), *columns)

    def scores_from_counts(self, counts: np.ndarray, rules: Rules = NO_RULES) -> Mapping[str, np.ndarray]:
        """The metric's scores."""
        return scores_from_counts(counts, **counting(rules))

    def language(self, config: str) -> str:
        """English, in all configurations."""
        return "English"

    def sample_facts(self, scores: Mapping[str, Any]) -> dict[str, str]:
        """Examples, templates and categories, and missing answers."""
        n_runs = scores.get("n_runs", 1)
        n, n_ambig, n_disambig = (scores[name] // n_runs for name in ("n", "n_ambig", "n_disambig"))
        sample = (
            f"{pluralize(n, 'example')} ({n_ambig:,} ambiguous, {n_disambig:,} disambiguated) from "
            f"{pluralize(scores['n_templates'], 'template')}"
        )
        n_categories = len(scores.get("by", {}).get("category", {}))
        if n_categories:
            sample += f" in {pluralize(n_categories, 'category', 'categories')}"
        if n_runs > 1:
            sample += f", each asked in {n_runs} {'wordings' if WORDINGS in scores else 'runs'}"
        n_unparsed = scores["n_unparsed_ambig"] + scores["n_unparsed_disambig"]
        n_apart = scores.get("n_without_majority", 0)
        apart = f"{n_apart:,} without a majority over the answer orders" if n_apart else ""
        facts = {"Sample": sample, "Unparsed": about_missing(scores, n_unparsed, apart)}
        if "said" in scores:
            facts["Open answers"] = _said(scores)
        return facts

    def remarks(self, scores: Mapping[str, Any]) -> list[str | Table]:
        """Direction of the errors, and answer positions, consistency or kinds of open answers."""
        lines: list[str | Table] = [*describe_errors(scores), *describe_abstention(scores)]
        shares = [estimate(scores, f"share_position_{place}").value for place in PLACES]
        if CONSISTENCY in scores:
            share = _in_percent(scores[CONSISTENCY])
            lines.append(f"consistent in all {scores['n_orders']} answer orders: {share}% of the questions")
        elif "said" in scores:
            lines.append(f"open answers: {_said(scores)}")
        elif None not in shares:  # there are answers
            words = zip(("first", "second", "third"), shares, strict=True)
            positions = ", ".join(f"{word} {_in_percent(share)}%" for word, share in words)
            n_answered = scores["n"] - scores["n_unparsed_ambig"] - scores["n_unparsed_disambig"]
            is_uneven = _beyond_chance([share for share in shares if share is not None], n_answered)
            hint = ". Uneven shares mean that the model answers by position." * is_uneven
            lines.append(f"answer positions: {positions} (even: 33.3%){hint}")
        return lines

    def across(self, names: Sequence[str], scores: Sequence[Mapping[str, Any]]) -> list[Table]:
        """Consistency over answer orders, by run."""
        from qabias.benchmarks.bbq.tables import consistency_by_run

        return consistency_by_run(names, scores)

    def _categories(self, config: str) -> Sequence[str]:
        self.check_config(config)
        return _origin.CATEGORIES if config == _origin.ALL else config.split(",")

    def phrases_of(self, example: Example) -> Phrases:
        """Phrases of the example's language for parsing written answers."""
        return ENGLISH

    def read(self, text: str, rule: str, example: Example) -> int:
        """Index of the answer that a text gives, -1 for none. `released` is the authors' rule."""
        answers = [example[f"ans{i}"] for i in range(3)]
        if rule == "released":
            return parse_choice_released(text, answers, [example["answer_info"][f"ans{i}"] for i in range(3)])
        asked, context = example.get("question", ""), example.get("context", "")
        return parse_choice(text, answers, phrases=self.phrases_of(example), asked=asked, context=context)

    def _written_columns(
        self, texts: Sequence[str], norm: str, examples: Sequence[Example], prompt_format: PromptFormat | None
    ) -> dict[str, pa.Array]:
        """Columns of written answers: parsed answers, outcomes and texts."""
        texts, columns = list(map(whole, texts)), {}
        if _is_open(prompt_format) and norm != "released":
            named = [read_open(text, example, prompt_format) for text, example in zip(texts, examples, strict=True)]
            places = [one.place for one in named]
            columns["said"] = pa.array([one.said for one in named], pa.string())
        else:
            places = [self.read(text, norm, example) for text, example in zip(texts, examples, strict=True)]
        rows = zip(texts, places, examples, strict=True)
        became = [outcome(text, place, self.phrases_of(example)) for text, place, example in rows]
        columns["prediction"] = pa.array(places, pa.int64())
        columns["outcome"] = pa.array(became, pa.string())
        columns["outputs"] = pa.array([[str(text)] for text in texts], pa.list_(pa.string()))
        thinking = [getattr(text, "thinking", "") for text in texts]
        return columns | ({"thinking": pa.array(thinking, pa.string())} if any(thinking) else {})


def check_ordered(config: str, known: Sequence[str], configs: Sequence[str], see: str = "") -> list[str]:
    """The names in a config: each must be known, and all in the order of the configs."""
    names = [name.strip() for name in config.split(",")]
    for name in names:
        if name not in known:
            raise unknown("config", name, known, arg("config"), see)
    ordered = ",".join(name for name in configs if name in names)
    if config != ordered:
        raise QabiasError(f"the config {config!r} is out of order.", f"Use {ordered}.")
    return names


def _is_open(prompt_format: PromptFormat | None) -> TypeGuard[PromptFormat]:
    """Whether the prompt asks for a person without listing answers."""
    return prompt_format is not None and prompt_format.reads == "person"


def _said(scores: Mapping[str, Any]) -> str:
    return ", ".join(f"{n:,} {name}" for name, n in scores["said"].items())


def _in_percent(share: float | None) -> str:
    return "undefined" if share is None or share != share else f"{100 * share:.1f}"


class _BBQ(BBQBenchmark):
    """BBQ in English, with the authors' published answers."""

    forced_choice = FORCED
    log_readers = (logs.read, logs.TASK, logs.OWN_TASK)

    def recognise(self, table: pa.Table) -> list[External]:
        """The authors' outputs of UnifiedQA, or logits of RoBERTa and DeBERTaV3."""
        return recognise(table)

    def list_published(self) -> list[tuple[str, str]]:
        """Makers, each with a document and the names of its rows."""
        return published_scores.list_published()

    def next_to_published(self, scores: Scores, name: str, names: Sequence[str]) -> tuple[Table, list[str]]:
        """A run next to published rows, and notes."""
        return published_scores.next_to_published(scores, name, names)


BENCHMARK = _BBQ()


def _beyond_chance(shares: Sequence[float], n: int) -> bool:
    """Whether shares differ from equal ones at the 1% level."""
    equal = 1 / len(shares)
    chi_squared = n * sum((share - equal) ** 2 / equal for share in shares)
    return math.exp(-chi_squared / 2) < 0.01
