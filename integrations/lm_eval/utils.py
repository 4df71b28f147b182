"""What the tasks of this folder do beyond their YAML: prompts, answers and scores, all of them those of qabias.

The scores are ratios over a whole corpus, so nothing is averaged document by document: `*_results` hands on the answer
to a document with the columns that its metric reads, and the aggregation gives all of them to the metric at once.
"""

import functools
import math
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import datasets
import numpy as np
import pyarrow as pa

from qabias.answers.likelihoods import best_option
from qabias.benchmarks import PromptFormat, load_benchmark, locate
from qabias.benchmarks.unqover.questions import ASKED
from qabias.runs.sampling import sample
from qabias.scorers.base import OptionScores

# The scores of the tasks: some of BBQ's, and all of the others'.
BBQ_METRICS = (
    *("accuracy_ambig", "accuracy_disambig", "bias_ambig", "bias_disambig"),
    *("accuracy_aligned", "accuracy_nonaligned", "accuracy_cost"),
    *("share_unknown_ambig", "share_unknown_disambig", "unparsed_share"),
)
BBNLI_METRICS = tuple(measure.name for measure in load_benchmark("bbnli").facts.measures)
UNQOVER_METRICS = tuple(measure.name for measure in load_benchmark("unqover").facts.measures)
# The columns that the metrics read; the first names the set that a document belongs to.
BBQ_COLUMNS = (
    *("set_id", "category", "template_id", "question_polarity", "context_condition"),
    *("example_id", "label", "target_loc", "biased_loc", "unknown_loc"),
)
BBNLI_COLUMNS = ("pair_id", "subtopic", "kind", "stance", "premise_id", "label")
UNQOVER_COLUMNS = (
    *("example_id", "template_id", "subject1", "subject2", "cluster1", "cluster2"),
    *("attribute", "attribute_class"),
)
UNQOVER_ROWS = 2000
"""Rows of a set that are asked, each by four questions; the same as those of `qabias run --limit 2000`."""

Doc = Mapping[str, Any]
# An answer (or the number of the question, and two probabilities), then the values of the columns above.
Item = tuple[Any, ...]


# Prompts. The harness puts the space between prompt and answer itself, or leaves it out in a chat.


def _asking(benchmark: str, name: str) -> tuple[Callable[[Doc], str], Callable[[Doc], list[str]]]:
    """`doc_to_text` and `doc_to_choice` of a format whose options begin with a space."""
    prompt_format: PromptFormat = load_benchmark(benchmark).formats[name]

    def text(doc: Doc) -> str:
        return prompt_format.render(doc)[0]

    def choices(doc: Doc) -> list[str]:
        return [option.removeprefix(" ") for option in prompt_format.render(doc)[1]]

    return text, choices


bbq_text, bbq_choices = _asking("bbq", "qa")
bbq_letters_text, bbq_letters_choices = _asking("bbq", "letters")
bbnli_text, bbnli_choices = _asking("bbnli", "can_we_infer")
bbnli_qa_text, bbnli_qa_choices = _asking("bbnli", "quoref_answer")
unqover_text, unqover_choices = _asking("unqover", "qa")


# Documents


@functools.lru_cache(maxsize=4)
def unqover_docs(dataset: datasets.Dataset) -> datasets.Dataset:
    """A sample of rows over all templates, each as four documents: two orders, question and negated question.

    Args:
        dataset: A whole set of UnQover.

    Returns:
        Documents with `context`, `question` and `number`, the place of the question in `ASKED`.
    """
    table = dataset.with_format("arrow")[:]
    rows = sample(load_benchmark("unqover"), pa.table(table), UNQOVER_ROWS, seed=0).to_pylist()
    return datasets.Dataset.from_list([_question(row, number) for row in rows for number in range(len(ASKED))])


def _question(row: Doc, number: int) -> dict[str, Any]:
    order, _, negated = ASKED[number].partition("_")
    asked = row["negated_question" if negated else "question"]
    kept = {name: row[name] for name in (*UNQOVER_COLUMNS, "answer1", "answer2")}
    return {**kept, "number": number, "context": row[f"context_{order}"], "question": asked}


# What is kept of a document


def bbq_results(doc: Doc, results: Sequence[tuple[float, bool]]) -> dict[str, Item]:
    """The answer to a question of BBQ, for every metric."""
    return dict.fromkeys(BBQ_METRICS, (_answer(results), *(doc[name] for name in BBQ_COLUMNS)))


def bbnli_results(doc: Doc, results: Sequence[tuple[float, bool]]) -> dict[str, Item]:
    """The label given to a pair of BBNLI, for every metric."""
    return dict.fromkeys(BBNLI_METRICS, (_answer(results), *(doc[name] for name in BBNLI_COLUMNS)))


def unqover_results(doc: Doc, results: Sequence[tuple[float, bool]]) -> dict[str, Item]:
    """The probabilities of both subjects, for every metric."""
    probabilities = tuple(math.exp(loglikelihood) for loglikelihood, _ in results)
    item = ((doc["number"], *probabilities), *(doc[name] for name in UNQOVER_COLUMNS))
    return dict.fromkeys(UNQOVER_METRICS, item)


def _answer(results: Sequence[tuple[float, bool]]) -> int:
    """Index of the most likely option; -1, no answer, where the best two are equal."""
    loglikelihoods = np.array([loglikelihood for loglikelihood, _ in results])
    sizes = np.ones(len(results), dtype=np.int32)  # read by other norms only
    return best_option(OptionScores(loglikelihoods, sizes, sizes), "none")


# Scores


@functools.lru_cache(maxsize=1)
def _bbq_scores(items: tuple[Item, ...]) -> dict[str, float]:
    whole = _whole_sets(items, 4)
    return _compute("bbq", [answer for answer, *_ in whole], whole, BBQ_COLUMNS, BBQ_METRICS)


@functools.lru_cache(maxsize=1)
def _bbnli_scores(items: tuple[Item, ...]) -> dict[str, float]:
    whole = _whole_sets(items, 2)
    return _compute("bbnli", [answer for answer, *_ in whole], whole, BBNLI_COLUMNS, BBNLI_METRICS)


@functools.lru_cache(maxsize=1)
def _unqover_scores(items: tuple[Item, ...]) -> dict[str, float]:
    rows: dict[int, Item] = {}
    predictions: dict[int, dict[str, float]] = {}
    for item in _whole_sets(items, len(ASKED)):
        (number, first, second), example_id, *_ = item
        rows[example_id] = item
        scores = {f"s1_{ASKED[number]}": first, f"s2_{ASKED[number]}": second}
        predictions.setdefault(example_id, {}).update(scores)
    answers = [predictions[example_id] for example_id in rows]
    return _compute("unqover", answers, list(rows.values()), UNQOVER_COLUMNS, UNQOVER_METRICS)


def _whole_sets(items: Sequence[Item], size: int) -> list[Item]:
    """The items of complete sets: a part of one would make the scores lopsided."""
    sizes = Counter(item[1] for item in items)
    whole = [item for item in items if sizes[item[1]] == size]
    if len(whole) < len(items):
        warnings.warn(
            f"qabias: {len(items) - len(whole)} of {len(items)} documents are left out of the scores because their "
            f"sets of {size} are not complete; give a --limit that {size} divides",
            stacklevel=2,
        )
    return whole


def _compute(
    metric: str, answers: list[Any], items: Sequence[Item], columns: Sequence[str], names: Sequence[str]
) -> dict[str, float]:
    """Some scores of a metric of qabias; NaN where there is no item."""
    if not items:
        return dict.fromkeys(names, math.nan)
    import evaluate  # takes seconds, and only scoring needs it

    references = {name: [item[1 + i] for item in items] for i, name in enumerate(columns)}
    module = evaluate.load(str(locate.metric_folder(metric)))
    scores = module.compute(predictions=answers, references=references, confidence=None)
    return {name: float(scores[name]) for name in names}


def _aggregation(
    scores: Callable[[tuple[Item, ...]], dict[str, float]], name: str
) -> Callable[[Sequence[Item]], float]:
    """The function that makes one score of the items of all documents."""

    def aggregate(items: Sequence[Item]) -> float:
        return scores(tuple(items))[name]

    return aggregate


# The aggregations have the names of the metrics after that of the benchmark, e.g. `bbq_bias_ambig`.
for _benchmark, _scores, _names in (
    ("bbq", _bbq_scores, BBQ_METRICS),
    ("bbnli", _bbnli_scores, BBNLI_METRICS),
    ("unqover", _unqover_scores, UNQOVER_METRICS),
):
    globals().update({f"{_benchmark}_{_name}": _aggregation(_scores, _name) for _name in _names})
