"""Speed of the span scorer on UnQover's gender questions, and its time outside the model.

First table: tokens per second, pads not counted, of the scorer and of

* the same model on one full batch without a pad (the machine's limit);
* a plain loop over batches of 32 in dataset order, each padded to its longest row;
* the same loop in random order, as in a run on sampled rows;
* one question at a time.

The rows are blocks of eight (a batch of 32 questions each), drawn evenly from the whole file. The loop has the same few
pads as there: neighbors share their context, and only their questions differ in length. All ways ask the same questions
and must give the same scores. The model is BERT-shaped with random weights, the tokenizer a WordPiece trained on the
texts. The ways take turns; the table has medians.

Times are processor time, by default of one thread, because clock time depends on other processes. The clock is printed
too.

Second table: seconds for all 1,372,000 rows, four questions each, with everything but the model: reading the columns,
encoding, finding the subjects, laying out every batch, writing the scores. For comparison it has BERT-base's time for
these rows on a GPU, by the arithmetic printed with it. `--quick` takes the first 20,000 rows.

    python -m lab.speed.unqover_score
    python -m lab.speed.unqover_score --width 384
    python -m lab.speed.unqover_score --quick

Exits with 1 if scores differ by 1e-5 or more.
"""

import argparse
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
import transformers

from lab.options import make_parser, read_options, verdict
from lab.speed.clock import take_turns, time_of
from lab.speed.random_models import make_bert, make_tokenizer
from qabias.benchmarks import locate
from qabias.models.loading import LoadedModel
from qabias.scorers.base import SpanQuestions
from qabias.scorers.batches import CPU_TOKEN_BUDGET, ENCODER_GPU_TOKEN_BUDGET, EncoderScorer
from qabias.scorers.extractive_qa import ExtractiveQAScorer, SpanRows
from qabias.scorers.extractive_qa import locate as locate_span

DATA = locate.dataset_folder("unqover") / "data" / "gender" / "test-00000-of-00001.parquet"
ASKED = tuple((context, question) for context in ("context_12", "context_21") for question in ("question", "negated"))
TEXTS = ("context_12", "question", "negated_question")
QUICK_ROWS = 20_000
BLOCK = 8
LOOP_BATCH = 4 * BLOCK
TOLERANCE = 1e-5
CPU_BUDGET, GPU_BUDGET = CPU_TOKEN_BUDGET, ENCODER_GPU_TOKEN_BUDGET
# BERT-base: parameters outside the embeddings; a GPU of this peak in bfloat16, and how much of it a model reaches.
BERT_BASE_PARAMETERS = 85e6
GPU_FLOPS = 400e12
GPU_SHARE = 0.4

T = TypeVar("T")


def main() -> int:
    """Measure and print both tables."""
    arguments = _parse_arguments()
    torch.set_num_threads(arguments.threads)
    table = pq.read_table(arguments.data)
    if arguments.quick:
        table = table.slice(0, QUICK_ROWS)
    items = make_items(sample_blocks(table, arguments.rows))
    texts = [text for name in TEXTS for text in table[name].unique().to_pylist()]
    loaded = make_bert("BertForQuestionAnswering", make_tokenizer(texts), arguments.layers, arguments.width)
    print(
        f"{_processor()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before; torch {torch.__version__}, "
        f"transformers {transformers.__version__}, {arguments.threads} thread(s), float32\n"
    )
    difference = _compare_ways(arguments, loaded, items)
    print()
    _measure_outside(table, loaded)
    return verdict(wrong=not difference < TOLERANCE)


def _parse_arguments() -> argparse.Namespace:
    parser = make_parser(
        __doc__,
        rows=(256, 16, "rows of four questions"),
        layers=(6, 2, ""),
        width=(768, 128, "a multiple of 64"),
        repeats=(5, 1, ""),
        threads=(1, 1, "of torch"),
    )
    parser.add_argument("--data", type=Path, default=DATA, help="Parquet file of the gender questions")
    return read_options(parser)


def sample_blocks(table: pa.Table, n_rows: int) -> pa.Table:
    """Draw blocks of consecutive rows evenly from the whole table."""
    n_blocks = max(1, n_rows // BLOCK)
    starts = np.linspace(0, table.num_rows - BLOCK, n_blocks).astype(np.int64)
    return table.take(pa.array((starts[:, None] + np.arange(BLOCK)).ravel()))


def make_items(table: pa.Table) -> SpanQuestions:
    """The four questions of every row, row by row."""
    columns = {"negated": "negated_question"}
    distinct = {
        name: table[columns.get(name, name)].combine_chunks().dictionary_encode()
        for name in ("context_12", "context_21", "question", "negated")
    }
    first, second = (table[name].to_numpy(zero_copy_only=False) for name in ("answer1", "answer2"))
    contexts: list[str] = []
    subjects: list[tuple[str, str]] = []
    questions: list[str] = []
    numbers: dict[str, np.ndarray] = {}
    for name, column in distinct.items():
        values, codes = column.dictionary.to_pylist(), column.indices.to_numpy()
        known = contexts if name.startswith("context") else questions
        numbers[name] = codes + len(known)
        known += values
        if name.startswith("context"):
            _, rows = np.unique(codes, return_index=True)
            subjects += zip(first[rows], second[rows], strict=True)
    return SpanQuestions(
        contexts=contexts,
        questions=questions,
        subjects=subjects,
        context_of=np.stack([numbers[context] for context, _ in ASKED], axis=1).ravel(),
        question_of=np.stack([numbers[question] for _, question in ASKED], axis=1).ravel(),
    )


# Speed


def _compare_ways(arguments: argparse.Namespace, loaded: LoadedModel, items: SpanQuestions) -> float:
    """Print the first table; return the largest difference between scores."""
    scorer = ExtractiveQAScorer(loaded)
    ours = scorer.score(items)
    n_items = len(items.context_of)
    n_tokens = scorer.stats.tokens_run - scorer.stats.pads_run
    padded = scorer.stats.tokens_run
    length = round(n_tokens / n_items)
    some = np.linspace(0, n_items - 1, max(1, n_items // 8)).astype(np.int64)
    anyhow = np.random.default_rng(0).permutation(n_items)
    few, mixed = _choose(items, some), _choose(items, anyhow)
    full = torch.randint(5, 1000, (CPU_BUDGET // length, length))
    in_order, n_in_order = run_loop(loaded, items, LOOP_BATCH)
    in_disorder, n_in_disorder = run_loop(loaded, mixed, LOOP_BATCH)
    single, n_single = run_loop(loaded, few, 1)
    difference = max(
        float(np.abs(one - other).max())
        for one, other in ((ours, in_order), (ours[anyhow], in_disorder), (ours[some], single))
    )
    n_full = max(1, n_tokens // full.numel())
    ways: dict[str, tuple[int, Callable[[], object]]] = {
        "one full batch without pads": (n_full * full.numel(), lambda: _forward(loaded, full, n_full)),
        "qabias": (n_tokens, lambda: scorer.score(items)),
        f"batches of {LOOP_BATCH} in dataset order": (n_tokens, lambda: run_loop(loaded, items, LOOP_BATCH)),
        f"batches of {LOOP_BATCH} in random order": (n_tokens, lambda: run_loop(loaded, mixed, LOOP_BATCH)),
        "one question at a time": (n_single, lambda: run_loop(loaded, few, 1)),
    }
    turns = take_turns({name: run for name, (_, run) in ways.items()}, arguments.repeats)
    speeds = {
        name: (
            n_run / statistics.median(turn[name].busy for turn in turns),
            n_run / statistics.median(turn[name].clock for turn in turns),
        )
        for name, (n_run, _) in ways.items()
    }
    print(
        f"{loaded.name}, {n_items} questions of {n_tokens / n_items:.1f} tokens, median of {arguments.repeats} "
        f"repeats; pads: qabias {padded / n_tokens - 1:.1%}, loop {n_in_order / n_tokens - 1:.1%}, in random order "
        f"{n_in_disorder / n_tokens - 1:.1%}; largest difference of scores {difference:.0e}\n"
    )
    print("| way | tokens a processor second | qabias is | tokens a second on the clock | qabias is |")
    print("|---|---|---|---|---|")
    for name, (busy, clock) in speeds.items():
        ratios = [speeds["qabias"][i] / speeds[name][i] for i in (0, 1)]
        print(f"| {name} | {busy:,.0f} | {ratios[0]:.2f} x | {clock:,.0f} | {ratios[1]:.2f} x |")
    return difference


def _choose(items: SpanQuestions, chosen: np.ndarray) -> SpanQuestions:
    return replace(items, context_of=items.context_of[chosen], question_of=items.question_of[chosen])


def _forward(loaded: LoadedModel, tokens: torch.Tensor, times: int) -> None:
    with torch.inference_mode():
        for _ in range(times):
            loaded.model(input_ids=tokens)


def run_loop(loaded: LoadedModel, items: SpanQuestions, batch_size: int) -> tuple[np.ndarray, int]:
    """Score items batch by batch; returns the scores and the tokens run, pads included."""
    scores = []
    n_tokens = 0
    for start in range(0, len(items.context_of), batch_size):
        numbers = items.context_of[start : start + batch_size]
        contexts = [items.contexts[i] for i in numbers]
        questions = [items.questions[i] for i in items.question_of[start : start + batch_size]]
        inputs = loaded.tokenizer(questions, contexts, padding=True, return_tensors="pt", return_offsets_mapping=True)
        offsets = inputs.pop("offset_mapping").tolist()
        with torch.inference_mode():
            answer = loaded.model(**inputs)
            hidden = inputs["attention_mask"] == 0
            p_start = answer.start_logits.masked_fill(hidden, float("-inf")).softmax(dim=-1)
            p_end = answer.end_logits.masked_fill(hidden, float("-inf")).softmax(dim=-1)
        n_tokens += inputs["input_ids"].numel()
        for i, context in enumerate(contexts):
            pair = items.subjects[numbers[i]]
            owners = inputs.sequence_ids(i)
            row = []
            for subject, other in (pair, pair[::-1]):
                begin, end = locate_span(context, subject, other)
                own = [k for k, (a, b) in enumerate(offsets[i]) if owners[k] == 1 and a < end and b > begin]
                row.append(float((p_start[i, own[0]] * p_end[i, own[-1]]).sqrt()))
            scores.append(row)
    return np.array(scores), n_tokens


# Outside of the model


def _measure_outside(table: pa.Table, loaded: LoadedModel) -> None:
    """Print the second table."""
    seconds: dict[str, float] = {}

    def timed(name: str, run: Callable[[], T]) -> T:
        results: list[T] = []
        seconds[name] = time_of(lambda: results.append(run())).clock
        return results[0]

    items = timed("columns to distinct texts and numbers", lambda: make_items(table))
    scorer = ExtractiveQAScorer(loaded)
    prepared = timed("encoding the texts, finding the subjects", lambda: scorer.prepare(items))
    assert isinstance(prepared, SpanRows)  # a WordPiece encodes texts apart
    rows = prepared.rows

    def answer(chosen: np.ndarray, inputs: dict[str, torch.Tensor]) -> list[Any]:
        return np.full((len(chosen), 2), 1 / inputs["input_ids"].shape[1]).tolist()

    runner = EncoderScorer(loaded, GPU_BUDGET)
    timed("laying out all batches", lambda: runner.run(rows, answer, str))
    noise = np.random.default_rng(0).random((len(rows), 2), dtype=np.float32)
    with tempfile.TemporaryDirectory() as folder:
        timed("writing the scores (Parquet, float32)", lambda: _write(noise, Path(folder) / "scores.parquet"))
    total = sum(seconds.values())
    n_tokens = int(rows.lengths.sum())
    on_gpu = 2 * BERT_BASE_PARAMETERS * n_tokens / (GPU_SHARE * GPU_FLOPS)
    print(f"{table.num_rows:,} rows, {len(rows):,} questions, {n_tokens:,} tokens, on the clock\n")
    print("| step | seconds |")
    print("|---|---|")
    for name, value in seconds.items():
        print(f"| {name} | {value:.2f} |")
    print(f"| all of these | {total:.2f} |")
    print(f"| estimate: BERT-base on a GPU | {on_gpu:.0f} |")
    print(
        f"\nThe estimate is {on_gpu / total:.1f} times the rest: 2 x {BERT_BASE_PARAMETERS / 1e6:.0f} M parameters x "
        f"tokens at {GPU_SHARE:.0%} of {GPU_FLOPS / 1e12:.0f} TFLOP/s (bfloat16). Pads: "
        f"{runner.stats.pads_run / n_tokens:.2%} at {GPU_BUDGET:,} tokens per batch."
    )


def _write(scores: np.ndarray, path: Path) -> None:
    eight = scores.reshape(-1, 8)
    names = [f"s{subject}_{asked}" for asked in ("12", "12_neg", "21", "21_neg") for subject in (1, 2)]
    pq.write_table(pa.table({name: eight[:, i] for i, name in enumerate(names)}), path, compression="zstd")


def _processor() -> str:
    """The processor's name, if the system has one."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor())


if __name__ == "__main__":
    sys.exit(main())
