"""Every backend against its alternatives: lm-evaluation-harness and plain loops over `transformers`.

Both sides ask the same model, loaded once, the same questions in the same process and number of threads, turn by turn.
A ratio is the peer's seconds divided by ours in the same turn: above 1, qabias is faster. The table has the median,
with the least and the largest in brackets. Busy thread time is more reliable than clock time on a shared machine.
Loading does not count.

The causal model is SmolLM2-135M-Instruct; its peer gets its fastest batch size on a sample. The others have the shapes
of BERT-base and T5-small with random weights, as fast as trained ones, and a WordPiece trained on the texts.

    pip install -e ".[bench]"
    python -m lab.speed.peers
    python -m lab.speed.peers --quick

Exits with 1 if results differ by more than 1e-4 of their size, a bound that twelve layers in float32 keep. A
probability's size is itself, however small. A log-likelihood above -1 has size 1, because its difference is already a
share of the probability.
"""

import argparse
import math
import os
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import torch
import transformers

from lab.options import THREADS, make_parser, read_options, verdict
from lab.speed.causal_vs_lm_eval import BATCH_SIZES
from lab.speed.clock import spread, take_turns, time_of
from lab.speed.random_models import make_bert, make_t5, make_tokenizer
from lab.speed.unqover_score import make_items, run_loop
from qabias.benchmarks.bbq.benchmark import BENCHMARK as BBQ
from qabias.benchmarks.unqover.questions import ask_masks
from qabias.models.loading import CAUSAL, LoadedModel, load_model
from qabias.runs.arguments import RunArguments
from qabias.runs.question import load_examples
from qabias.scorers.base import OptionScores, Request

TOLERANCE = 1e-4
# Minimum size of a value: a probability has its own, a log-likelihood 1 (see `relative_difference`).
PROBABILITY = float(np.finfo(np.float32).tiny)
LOGLIKELIHOOD = 1.0
BATCH = 32
# The model, and its sizes: layers, width of a layer.
BASE, QUICK = (12, 768), (2, 128)
# Context and sentence of the four questions about a row.
MASKED = tuple((context, masked) for context in ("context_12", "context_21") for masked in ("masked", "masked_negated"))


@dataclass(frozen=True)
class Comparison:
    """One backend of qabias and its peers.

    Attributes:
        model: The model's name for people.
        n_questions: Questions of one turn.
        ours: Asks all questions; float array with one value per option.
        peers: The peers' values, in the same order.
        least_size: Kind of the values, `PROBABILITY` or `LOGLIKELIHOOD`.
    """

    model: str
    n_questions: int
    ours: Callable[[], np.ndarray]
    peers: dict[str, Callable[[], np.ndarray]]
    least_size: float


def main() -> int:
    """Measure the chosen backends and print the table."""
    arguments = _parse_arguments()
    torch.set_num_threads(arguments.threads)
    print(
        f"{arguments.threads} thread(s) of {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before; torch "
        f"{torch.__version__}, transformers {transformers.__version__}, float32, {arguments.repeats} turns\n"
    )
    print("| scorer | model | questions | peer | seconds | qabias | ratio | ratio of busy seconds | difference |")
    print("|---|---|---|---|---|---|---|---|---|")
    largest = 0.0
    for name in arguments.scorers:
        comparison = COMPARISONS[name](arguments)
        for row, difference in _measure(name, comparison, arguments.repeats):
            print(row, flush=True)
            largest = max(largest, difference)
    return verdict(wrong=largest > TOLERANCE)


def _parse_arguments() -> argparse.Namespace:
    n_questions = (400, 4, "questions of one turn, 40 or more but for quick")
    parser = make_parser(__doc__, questions=n_questions, repeats=(5, 1, "turns"), threads=THREADS)
    parser.add_argument("--scorers", nargs="+", choices=list(COMPARISONS), default=list(COMPARISONS))
    return read_options(parser)


def _measure(name: str, comparison: Comparison, repeats: int) -> list[tuple[str, float]]:
    """Take turns; per peer a table row and the largest difference."""
    ways = {"": comparison.ours, **comparison.peers}
    figures = {way: ask() for way, ask in ways.items()}  # also warms everything up
    turns = take_turns(ways, repeats)
    rows = []
    for peer in comparison.peers:
        difference = relative_difference(figures[""], figures[peer], comparison.least_size)
        ours, theirs = (statistics.median(turn[way].clock for turn in turns) for way in ("", peer))
        clock = spread([turn[peer].clock / turn[""].clock for turn in turns])
        busy = spread([turn[peer].busy / turn[""].busy for turn in turns])
        cells = f"{comparison.model} | {comparison.n_questions} | {peer} | {theirs:.2f} | {ours:.2f} | {clock} | {busy}"
        rows.append((f"| {name} | {cells} | {difference:.0e} |", difference))
    return rows


def relative_difference(ours: np.ndarray, theirs: np.ndarray, least_size: float) -> float:
    """Largest difference of two values relative to their size.

    A log-likelihood near 0 has no digits left in float32; but a difference of logarithms is a share of the probability.
    """
    if ours.shape != theirs.shape or not np.isfinite([ours, theirs]).all():
        return math.inf
    return float((np.abs(ours - theirs) / np.maximum(least_size, np.abs(theirs))).max())


# Questions and models


def _examples(benchmark: str, config: str, limit: int) -> pa.Table:
    table = load_examples(RunArguments(benchmark, config=config, limit=limit)).table
    columns = zip(table.column_names, table.columns, strict=True)
    # A sample keeps the dictionaries of the whole table, which would count as texts to be asked.
    return pa.table({name: c.cast(pa.string()) if pa.types.is_dictionary(c.type) else c for name, c in columns})


def _bbq_requests(n_questions: int, prompt_format: str) -> list[Request]:
    rows = _examples("bbq", "all", n_questions).to_pylist()
    return [BBQ.request(row, BBQ.formats[prompt_format]) for row in rows]


def _texts(requests: Sequence[Request]) -> list[str]:
    return [text for request in requests for text in (request.prefix, *request.options)]


def _encoder(head: str, tokenizer: Any, arguments: argparse.Namespace, **options: Any) -> LoadedModel:
    layers, width = QUICK if arguments.quick else BASE
    return make_bert(head, tokenizer, layers, width, **options)


def _loglikelihoods(scores: Sequence[OptionScores]) -> np.ndarray:
    return np.array([score.loglikelihoods for score in scores])


def _in_batches(n_items: int, size: int, ask: Callable[[slice], np.ndarray]) -> np.ndarray:
    """A plain loop: batch by batch, in item order."""
    with torch.inference_mode():
        return np.concatenate([ask(slice(start, start + size)) for start in range(0, n_items, size)])


# Ways of asking


def compare_causal(arguments: argparse.Namespace) -> Comparison:
    """Log-likelihoods of BBQ's three answers, by us and by lm-evaluation-harness."""
    try:
        from lm_eval.api.instance import Instance
        from lm_eval.models.huggingface import HFLM
    except ImportError as error:
        raise SystemExit('lm-evaluation-harness is not installed: pip install -e ".[bench]", or --scorers') from error
    from qabias.scorers.causal import CausalScorer

    loaded = load_model(CAUSAL, "smollm2", device="cpu", dtype="float32")
    requests = _bbq_requests(arguments.questions, "qa")

    def make_harness(batch_size: int) -> Any:
        return HFLM(pretrained=loaded.model, tokenizer=loaded.tokenizer, batch_size=batch_size)

    def ask(harness: Any, asked: Sequence[Request]) -> np.ndarray:
        instances = [
            Instance(request_type="loglikelihood", doc={}, arguments=(request.prefix, option), idx=i)
            for request in asked
            for i, option in enumerate(request.options)
        ]
        answers = harness.loglikelihood(instances, disable_tqdm=True)
        return np.array([loglikelihood for loglikelihood, _ in answers]).reshape(len(asked), -1)

    def seconds(batch_size: int) -> float:
        harness = make_harness(batch_size)
        return time_of(lambda: ask(harness, requests[: arguments.questions // 10])).busy

    best = BATCH_SIZES[0] if arguments.quick else min(BATCH_SIZES, key=seconds)
    harness = make_harness(best)
    scorer = CausalScorer(loaded)
    return Comparison(
        model="SmolLM2-135M",
        n_questions=len(requests),
        ours=lambda: _loglikelihoods(scorer.score(requests)),
        peers={f"lm-evaluation-harness, batches of {best}": lambda: ask(harness, requests)},
        least_size=LOGLIKELIHOOD,
    )


def compare_seq2seq(arguments: argparse.Namespace) -> Comparison:
    """Log-likelihoods of BBQ's three answers, by the training loss of padded batches and of single options."""
    from qabias.scorers.seq2seq import Seq2SeqScorer

    requests = _bbq_requests(arguments.questions, "race")
    tokenizer = make_tokenizer(_texts(requests))
    small = {"d_model": 128, "d_ff": 256, "num_layers": 2, "num_heads": 2} if arguments.quick else {}
    loaded = make_t5(tokenizer, **small)
    model = loaded.model
    pairs = [(request.prefix, option.strip()) for request in requests for option in request.options]

    def one(chosen: slice) -> np.ndarray:
        ((prefix, option),) = pairs[chosen]
        source = tokenizer(prefix, return_tensors="pt", return_token_type_ids=False)
        labels = tokenizer(text_target=option, return_tensors="pt")["input_ids"]
        return np.array([-float(model(**source, labels=labels).loss) * labels.shape[1]])

    def batch(chosen: slice) -> np.ndarray:
        prefixes, options = map(list, zip(*pairs[chosen], strict=True))
        sources = tokenizer(prefixes, padding=True, return_tensors="pt", return_token_type_ids=False)
        targets = tokenizer(text_target=options, padding=True, return_tensors="pt")
        labels = targets["input_ids"].masked_fill(targets["attention_mask"] == 0, -100)
        logits = model(**sources, labels=labels).logits
        losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2), labels, reduction="none")
        return -losses.sum(dim=1).numpy()

    scorer = Seq2SeqScorer(loaded)
    return Comparison(
        model="T5 2 x 128" if arguments.quick else "T5-small",
        n_questions=len(requests),
        ours=lambda: _loglikelihoods(scorer.score(requests)),
        peers={
            f"transformers, batches of {BATCH}": lambda: _in_batches(len(pairs), BATCH, batch).reshape(-1, 3),
            "transformers, one option at a time": lambda: _in_batches(len(pairs), 1, one).reshape(-1, 3),
        },
        least_size=LOGLIKELIHOOD,
    )


def compare_extractive_qa(arguments: argparse.Namespace) -> Comparison:
    """Span probabilities of UnQover's two subjects."""
    from qabias.scorers.extractive_qa import ExtractiveQAScorer

    table = _examples("unqover", "gender", arguments.questions // 4).drop_columns("set")
    items = make_items(table)
    tokenizer = make_tokenizer([*items.contexts, *items.questions])
    loaded = _encoder("BertForQuestionAnswering", tokenizer, arguments)
    scorer = ExtractiveQAScorer(loaded)
    return Comparison(
        model=loaded.name,
        n_questions=len(items.context_of),
        ours=lambda: scorer.score(items),
        peers={
            f"transformers, batches of {BATCH}": lambda: run_loop(loaded, items, BATCH)[0],
            "transformers, one question at a time": lambda: run_loop(loaded, items, 1)[0],
        },
        least_size=PROBABILITY,
    )


def compare_nli(arguments: argparse.Namespace) -> Comparison:
    """Probabilities of the three labels for BBNLI's pairs."""
    from qabias.scorers.nli import LABELS, NLIScorer

    table = _examples("bbnli", "all", arguments.questions)
    pairs = list(zip(table["premise"].to_pylist(), table["hypothesis"].to_pylist(), strict=True))
    tokenizer = make_tokenizer([text for pair in pairs for text in pair])
    names = dict(enumerate(LABELS))
    options = {"num_labels": 3, "id2label": names, "label2id": {name: i for i, name in names.items()}}
    loaded = _encoder("BertForSequenceClassification", tokenizer, arguments, **options)

    def batch(chosen: slice) -> np.ndarray:
        premises, hypotheses = map(list, zip(*pairs[chosen], strict=True))
        inputs = tokenizer(premises, hypotheses, padding=True, return_tensors="pt")
        return loaded.model(**inputs).logits.softmax(dim=-1).numpy()

    scorer = NLIScorer(loaded)
    return Comparison(
        model=loaded.name,
        n_questions=len(pairs),
        ours=lambda: scorer.classify(pairs),
        peers={f"transformers, batches of {BATCH}": lambda: _in_batches(len(pairs), BATCH, batch)},
        least_size=PROBABILITY,
    )


def compare_multiple_choice(arguments: argparse.Namespace) -> Comparison:
    """Log-probabilities of BBQ's three answers from a multiple-choice head, in padded batches and one by one."""
    from qabias.scorers.multiple_choice import MultipleChoiceScorer

    requests = _bbq_requests(arguments.questions, "pair")
    tokenizer = make_tokenizer(_texts(requests))
    loaded = _encoder("BertForMultipleChoice", tokenizer, arguments)

    def batch(chosen: slice) -> np.ndarray:
        asked = requests[chosen]
        contexts = [request.prefix for request in asked for _ in request.options]
        endings = [option.strip() for request in asked for option in request.options]
        inputs = tokenizer(contexts, endings, padding=True, return_tensors="pt")
        by_question = {name: values.unflatten(0, (len(asked), -1)) for name, values in inputs.items()}
        return loaded.model(**by_question).logits.log_softmax(-1).numpy()

    scorer = MultipleChoiceScorer(loaded)
    return Comparison(
        model=loaded.name,
        n_questions=len(requests),
        ours=lambda: _loglikelihoods(scorer.score(requests)),
        peers={
            f"transformers, batches of {BATCH}": lambda: _in_batches(len(requests), BATCH, batch),
            "transformers, one question at a time": lambda: _in_batches(len(requests), 1, batch),
        },
        least_size=LOGLIKELIHOOD,
    )


def compare_masked_lm(arguments: argparse.Namespace) -> Comparison:
    """Mask probabilities of UnQover's two subjects."""
    from qabias.scorers.masked_lm import MaskedLMScorer

    rows = _examples("unqover", "gender_mlm", arguments.questions // 2)
    texts = [f"{row[context]} {row[masked]}" for row in rows.to_pylist() for context, masked in MASKED]
    tokenizer = make_tokenizer(texts)
    loaded = _encoder("BertForMaskedLM", tokenizer, arguments)
    scorer = MaskedLMScorer(loaded)

    def token(subject: str) -> int | None:
        """The token of a subject; None for a subject of several, which has no probability at a mask."""
        tokens = tokenizer(subject, add_special_tokens=False)["input_ids"]
        return tokens[0] if len(tokens) == 1 else None

    both = [token(row["answer1"]) is not None and token(row["answer2"]) is not None for row in rows.to_pylist()]
    kept = rows.filter(pa.array(both)).slice(0, arguments.questions // 4)
    asked = [
        (f"{row[context]} {row[masked]}", token(row["answer1"]), token(row["answer2"]))
        for row in kept.to_pylist()
        for context, masked in MASKED
    ]

    def batch(chosen: slice) -> np.ndarray:
        texts, *subjects = zip(*asked[chosen], strict=True)
        inputs = tokenizer(list(texts), padding=True, return_tensors="pt")
        at_mask = loaded.model(**inputs).logits[inputs["input_ids"] == tokenizer.mask_token_id].softmax(dim=-1)
        return at_mask.gather(1, torch.tensor(subjects).T).numpy()

    return Comparison(
        model=loaded.name,
        n_questions=len(asked),
        ours=lambda: ask_masks(kept, scorer).transpose(0, 2, 1).reshape(-1, 2),
        peers={f"transformers, batches of {BATCH}": lambda: _in_batches(len(asked), BATCH, batch)},
        least_size=PROBABILITY,
    )


COMPARISONS: dict[str, Callable[[argparse.Namespace], Comparison]] = {
    "causal": compare_causal,
    "seq2seq": compare_seq2seq,
    "extractive_qa": compare_extractive_qa,
    "nli": compare_nli,
    "multiple_choice": compare_multiple_choice,
    "masked_lm": compare_masked_lm,
}


if __name__ == "__main__":
    sys.exit(main())
