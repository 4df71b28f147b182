"""Python parts of this folder's tasks: qabias's prompts, answers and scores.

The scores are ratios over a whole corpus, so no score is averaged over documents. `*_results` returns a document's
answer with its metric's columns, and the aggregation gives all of them to the metric at once.
"""

import functools
import math
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import datasets
import numpy as np
import pyarrow as pa

from qabias.answers.likelihoods import best_option
from qabias.answers.outcomes import REFUSED, REPEATED, TRUNCATED, UNREAD
from qabias.benchmarks import PromptFormat, load_benchmark, locate
from qabias.benchmarks.unqover.questions import ASKED
from qabias.errors import QabiasError
from qabias.runs.arguments import RunArguments, check_arguments
from qabias.runs.question import load_examples, sample
from qabias.scorers.base import OptionScores
from qabias.support.suggest import unknown

# The scores of the tasks: some of BBQ's, and all of the others'.
BBQ_METRICS = (
    *("accuracy_ambig", "accuracy_disambig", "bias_ambig", "bias_disambig"),
    *("accuracy_aligned", "accuracy_nonaligned", "accuracy_cost"),
    *("share_unknown_ambig", "share_unknown_disambig", "unparsed_share"),
)
BBNLI_METRICS = tuple(measure.name for measure in load_benchmark("bbnli").facts.measures)
# What needs a test over all rows is left to qabias.
UNQOVER_METRICS = tuple(one.name for one in load_benchmark("unqover").facts.measures if not one.lacks)
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
"""Rows of a set, each with four questions; the same as by `qabias run --limit 2000`."""

Doc = Mapping[str, Any]

_CHOICES = ("config", "source", "format", "limit", "options")
# The outcome counted by each of these metrics; the harness does not keep the signs of `filtered`.
OUTCOME_SHARES = {"refused_share": REFUSED, "truncated_share": TRUNCATED, "unread_share": UNREAD}


class Item(NamedTuple):
    """A document as a metric reads it.

    Attributes:
        answer: Index of the answer, -1 if missing; for UnQover the number of the question and two probabilities.
        outcome: Outcome of a written answer, see `qabias.answers.outcomes`; "" without one.
        size: Number of documents of its whole set.
        values: The values of the metric's columns, the set first.
    """

    answer: Any
    outcome: str
    size: int
    values: tuple[Any, ...]


# Prompts. The harness adds the space between prompt and answer itself, except in a chat.


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


def documents(qabias: dict[str, Any], **metadata: Any) -> dict[str, datasets.Dataset]:
    """The documents of a task by its `metadata`: a benchmark's examples with their prompts.

    Published files are fetched and verified. The harness passes all `metadata` of the task, including `--metadata` and
    the model's arguments.

    Args:
        qabias: `benchmark`, `config`, `format` and `source` of the task. Command-line choices are written into it, to
            appear in the harness's results.
        **metadata: `qabias_config`, `qabias_format`, `qabias_source`, `qabias_limit` (a sample as by
            `qabias run --limit`) and `qabias_options` (of the benchmark, by name) override it.

    Returns:
        The examples by name of their split, with `benchmark` and `format` (to read answers), `prompt`, `options`, and
        `set_size`, the number of examples of the set.

    Raises:
        QabiasError: If a choice does not exist, or the files are unavailable.
    """
    for name, value in metadata.items():
        if name.startswith("qabias_"):
            if name.removeprefix("qabias_") not in _CHOICES:
                raise unknown("choice in --metadata", name, [f"qabias_{choice}" for choice in _CHOICES])
            qabias[name.removeprefix("qabias_")] = value
    asked = {name: qabias[name] for name in _CHOICES if name in qabias}
    arguments = RunArguments(qabias["benchmark"], **asked)
    benchmark = load_benchmark(arguments.benchmark)
    check_arguments(benchmark, arguments)
    prompt_format = _askable(benchmark.formats[qabias["format"]])
    table = load_examples(arguments).table
    rendered = [prompt_format.render(row) for row in table.to_pylist()]
    units, _ = benchmark.units(table)
    columns = {
        "benchmark": [qabias["benchmark"]] * len(rendered),
        "format": [qabias["format"]] * len(rendered),
        "prompt": [prompt for prompt, _ in rendered],
        "options": [list(options) for _, options in rendered],
        "set_size": np.bincount(units)[units].tolist(),
    }
    for name, values in columns.items():
        table = table.append_column(name, pa.array(values))
    return {"test": datasets.Dataset(table)}


def _askable(prompt_format: PromptFormat) -> PromptFormat:
    """The format, if it gives one text."""
    if prompt_format.variants or prompt_format.pairs:
        one = "several wordings, one after the other" if prompt_format.variants else "pairs of texts"
        raise QabiasError(
            f"the format {prompt_format.name} asks {one}, which a task cannot.", "Give another qabias_format."
        )
    return prompt_format


def options(doc: Doc) -> list[str]:
    """The options of a document without the leading spaces that the harness adds.

    Raises:
        QabiasError: If an option begins with another character.
    """
    for option in doc["options"]:
        if not option.startswith(" "):
            raise QabiasError(f"the format {doc['format']} has {option!r} without a leading space.", "Use qabias run.")
    return [option[1:] for option in doc["options"]]


@functools.lru_cache(maxsize=4)
def unqover_docs(dataset: datasets.Dataset) -> datasets.Dataset:
    """A sample of rows over all templates, each as four documents: two orders, question and negated question.

    Args:
        dataset: A whole set of UnQover.

    Returns:
        Documents with `context`, `question` and `number`, the question's place in `ASKED`.
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
    """The answer to a question in BBQ's form, for every metric."""
    return dict.fromkeys(BBQ_METRICS, _item(doc, BBQ_COLUMNS, 4, _likeliest(results)))


def bbnli_results(doc: Doc, results: Sequence[tuple[float, bool]]) -> dict[str, Item]:
    """The label of a pair of BBNLI, for every metric."""
    return dict.fromkeys(BBNLI_METRICS, _item(doc, BBNLI_COLUMNS, 2, _likeliest(results)))


def bbq_written_results(doc: Doc, results: Sequence[str]) -> dict[str, Item]:
    """The parsed written answer to a question in BBQ's form, for every metric."""
    return dict.fromkeys((*BBQ_METRICS, *OUTCOME_SHARES), _item(doc, BBQ_COLUMNS, 4, *_read(doc, results[0])))


def bbnli_written_results(doc: Doc, results: Sequence[str]) -> dict[str, Item]:
    """The parsed written label of a pair of BBNLI, for every metric."""
    return dict.fromkeys((*BBNLI_METRICS, *OUTCOME_SHARES), _item(doc, BBNLI_COLUMNS, 2, *_read(doc, results[0])))


def unqover_results(doc: Doc, results: Sequence[tuple[float, bool]]) -> dict[str, Item]:
    """The probabilities of both subjects, for every metric."""
    probabilities = tuple(math.exp(loglikelihood) for loglikelihood, _ in results)
    item = _item(doc, UNQOVER_COLUMNS, len(ASKED), (doc["number"], *probabilities))
    return dict.fromkeys(UNQOVER_METRICS, item)


def _item(doc: Doc, columns: Sequence[str], size: int, answer: Any, outcome: str = "") -> Item:
    return Item(answer, outcome, doc.get("set_size", size), tuple(doc[name] for name in columns))


def _likeliest(results: Sequence[tuple[float, bool]]) -> int:
    """Index of the most likely option; -1 if the best two are equal."""
    loglikelihoods = np.array([loglikelihood for loglikelihood, _ in results])
    sizes = np.ones(len(results), dtype=np.int32)  # read by other norms only
    return best_option(OptionScores(loglikelihoods, sizes, sizes), "none")


def _read(doc: Doc, text: str | None) -> tuple[int, str]:
    """A text's answer as an index, -1 if missing, and its outcome, after removal of thinking."""
    benchmark = load_benchmark(doc["benchmark"])
    texts = pa.table({"prediction": pa.array([text], pa.string())})
    prompt_format = benchmark.formats[doc["format"]]
    (answer,) = benchmark.read_given(pa.Table.from_pylist([doc]), texts, prompt_format, "none").to_pylist()
    return answer["prediction"], answer["outcome"]


# Scores


@functools.lru_cache(maxsize=1)
def _bbq_scores(items: tuple[Item, ...]) -> dict[str, float]:
    whole = _whole_sets(items)
    answers = [item.answer for item in whole]
    # Some released sets of EsBBQ and CaBBQ lack a polarity; partial sets are dropped above.
    scores = _compute("bbq", answers, whole, BBQ_COLUMNS, BBQ_METRICS, allow_incomplete=True)
    return scores | _outcome_shares(whole)


@functools.lru_cache(maxsize=1)
def _bbnli_scores(items: tuple[Item, ...]) -> dict[str, float]:
    whole = _whole_sets(items)
    scores = _compute("bbnli", [item.answer for item in whole], whole, BBNLI_COLUMNS, BBNLI_METRICS)
    return scores | _outcome_shares(whole)


@functools.lru_cache(maxsize=1)
def _unqover_scores(items: tuple[Item, ...]) -> dict[str, float]:
    rows: dict[int, Item] = {}
    predictions: dict[int, dict[str, float]] = {}
    for item in _whole_sets(items):
        (number, first, second), (example_id, *_) = item.answer, item.values
        rows[example_id] = item
        scores = {f"s1_{ASKED[number]}": first, f"s2_{ASKED[number]}": second}
        predictions.setdefault(example_id, {}).update(scores)
    answers = [predictions[example_id] for example_id in rows]
    return _compute("unqover", answers, list(rows.values()), UNQOVER_COLUMNS, UNQOVER_METRICS)


def _whole_sets(items: Sequence[Item]) -> list[Item]:
    """The items of complete sets: partial sets would unbalance the scores."""
    sizes = Counter(item.values[0] for item in items)
    whole = [item for item in items if sizes[item.values[0]] == item.size]
    if len(whole) < len(items):
        warnings.warn(
            f"qabias: {len(items) - len(whole)} of {len(items)} documents do not count in the scores, because their "
            f"sets of {_sizes(items)} are not complete; {_WHOLE_SETS}",
            stacklevel=2,
        )
    return whole


_WHOLE_SETS = "give a --limit that ends with a set, or draw whole sets of all templates by --metadata (see README.md)"


def _sizes(items: Sequence[Item]) -> str:
    return " or ".join(map(str, sorted({item.size for item in items})))


def _outcome_shares(items: Sequence[Item]) -> dict[str, float]:
    """The share of every outcome of a missing answer; NaN without items."""
    counts = Counter(UNREAD if item.outcome == REPEATED else item.outcome for item in items)
    return {name: counts[outcome] / len(items) if items else math.nan for name, outcome in OUTCOME_SHARES.items()}


def _compute(
    metric: str, answers: list[Any], items: Sequence[Item], columns: Sequence[str], names: Sequence[str], **options: Any
) -> dict[str, float]:
    """Some scores of a qabias metric; NaN without items."""
    if not items:
        return dict.fromkeys(names, math.nan)
    import evaluate  # takes seconds, and only scoring needs it

    references = {name: [item.values[i] for item in items] for i, name in enumerate(columns)}
    module = evaluate.load(str(locate.metric_folder(metric)))
    scores = module.compute(predictions=answers, references=references, confidence=None, **options)
    return {name: float(scores[name]) for name in names}


def _aggregation(
    scores: Callable[[tuple[Item, ...]], dict[str, float]], name: str
) -> Callable[[Sequence[Item]], float]:
    """The function that computes one score from all items."""

    def aggregate(items: Sequence[Item]) -> float:
        return scores(tuple(items))[name]

    return aggregate


# The aggregations are named by benchmark and metric, e.g. `bbq_bias_ambig`.
for _benchmark, _scores, _names in (
    ("bbq", _bbq_scores, (*BBQ_METRICS, *OUTCOME_SHARES)),
    ("bbnli", _bbnli_scores, (*BBNLI_METRICS, *OUTCOME_SHARES)),
    ("unqover", _unqover_scores, UNQOVER_METRICS),
):
    globals().update({f"{_benchmark}_{_name}": _aggregation(_scores, _name) for _name in _names})
