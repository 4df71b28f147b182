"""Inference questions put to a scorer and scored: what BBNLI and BBQ as inference have in common.

A row has a premise, a hypothesis and a question that asks the same; the answer is one of the labels contradiction,
neutral and entailment, 0 to 2 in the order of the authors of BBNLI, or -1 for text that is none of them.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
import pyarrow as pa

from qabias.benchmarks import locate
from qabias.answers.likelihoods import NO_ANSWER, check_rule, choice_columns
from qabias.errors import QabiasError
from qabias.answers.parsing import CONTRADICTION, ENTAILMENT, NEUTRAL, Form, parse_inference, parse_inference_released
from qabias.benchmarks.prompt_format import PromptFormat
from qabias.benchmarks.inference.prompts import FORMATS, QA_FORMATS
from qabias.scorers.base import OptionScorer, PairScorer, Request, Scorer, TextScorer

# The format of models that take premise and hypothesis as they are.
PAIR_FORMAT = "pair"
SCORERS = ("causal", "seq2seq", "nli", "server", "baseline")


def default_format(scorer: Scorer) -> str:
    """Sentence pairs for classifiers, the first prompt for everything that reads text."""
    return PAIR_FORMAT if isinstance(scorer, PairScorer) else next(iter(FORMATS))


def roles(aligned: int, gold: int) -> dict[str, int]:
    """Which label plays which part, for baselines.

    Args:
        aligned: The label that agrees with the stereotype; its opposite is the other definite label.
        gold: The right label.
    """
    return {
        "biased": aligned,
        "counter_biased": ENTAILMENT - aligned,
        "unknown": NEUTRAL,
        "gold": gold,
        "first": CONTRADICTION,
        "last": ENTAILMENT,
    }


def ask(
    part: pa.Table,
    scorer: Scorer,
    prompt_format: PromptFormat,
    norm: str,
    keys: Sequence[str],
    parts_played: Sequence[Mapping[str, int]],
) -> dict[str, pa.Array]:
    """Ask about every row in the way that the scorer has.

    Args:
        part: Rows with `premise`, `hypothesis` and `question`.
        scorer: Classifies pairs, writes text, or scores options.
        prompt_format: One of `qabias.benchmarks.inference.prompts.FORMATS`.
        norm: How an option's log-likelihood becomes a score, or a text a label.
        keys: Stable identity of each row.
        parts_played: `roles` of each row.

    Returns:
        The column `prediction`, or `predictions` where several texts were sampled for a row, and what they came from.

    Raises:
        QabiasError: If format and scorer do not fit.
    """
    if isinstance(scorer, PairScorer) != (prompt_format.name == PAIR_FORMAT):
        wanted = f"needs the format {PAIR_FORMAT}" if isinstance(scorer, PairScorer) else "reads prompts"
        raise QabiasError(f"the scorer {scorer.name} {wanted}; leave --format out or choose another")
    check_rule(scorer, norm)
    if isinstance(scorer, PairScorer):
        pairs = list(zip(part["premise"].to_pylist(), part["hypothesis"].to_pylist(), strict=True))
        return _label_columns(scorer.classify(pairs))
    rendered = [prompt_format.render(row) for row in part.to_pylist()]
    if isinstance(scorer, TextScorer):
        texts = scorer.generate([prompt for prompt, _ in rendered], keys)
        form: Form = "qa" if prompt_format.name in QA_FORMATS else "nli"
        read = parse_inference if norm == "none" else partial(parse_inference_released, form=form)
        return _text_columns(texts, [[read(text) for text in answers] for answers in texts], scorer.samples)
    requests = [
        Request(prompt, options, played, key)
        for (prompt, options), played, key in zip(rendered, parts_played, keys, strict=True)
    ]
    return choice_columns(cast(OptionScorer, scorer).score(requests), norm)


def _label_columns(probabilities: np.ndarray) -> dict[str, pa.Array]:
    best = probabilities.argmax(axis=1)
    tied = (probabilities == probabilities.max(axis=1, keepdims=True)).sum(axis=1) > 1
    return {
        "prediction": pa.array(np.where(tied, NO_ANSWER, best).astype(np.int8)),
        "probabilities": pa.array(probabilities.tolist(), pa.list_(pa.float64())),
    }


def _text_columns(
    texts: Sequence[tuple[str, ...]], labels: Sequence[Sequence[int]], samples: int
) -> dict[str, pa.Array]:
    outputs = pa.array([list(answers) for answers in texts], pa.list_(pa.string()))
    if samples == 1:
        return {"prediction": pa.array([answer for (answer,) in labels], pa.int8()), "outputs": outputs}
    return {"predictions": pa.array(labels, pa.list_(pa.int8())), "outputs": outputs}


def score(table: pa.Table, answers: pa.Table, by: Sequence[str]) -> dict[str, Any]:
    """All scores with intervals; several samples of a row count as so many rows."""
    import evaluate  # takes seconds, and only scoring needs it

    metric = evaluate.load(str(locate.metric_folder("bbnli")))
    if "predictions" in answers.column_names:
        lists = answers["predictions"].combine_chunks()
        sizes = lists.value_lengths().to_numpy()
        numbers = np.concatenate([np.arange(size) for size in sizes])
        table = table.take(pa.array(np.repeat(np.arange(table.num_rows), sizes)))
        table = table.append_column("sample", pa.array(numbers))
        predictions = lists.flatten().to_pylist()
    else:
        predictions = answers["prediction"].to_pylist()
    references = {name: table[name].to_pylist() for name in table.column_names}
    scores: dict[str, Any] = metric.compute(predictions=predictions, references=references, by=list(by))
    return scores


def gather(table: pa.Table, codes: np.ndarray) -> pa.Table:
    """Reorder rows so that those with the same code are neighbours, in order of first occurrence."""
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    return table.take(pa.array(np.argsort(first[inverse], kind="stable")))
