"""The causal scorer against its bare model, on as many tokens in rectangles of the same shape.

SmolLM2-135M-Instruct in float32 on the CPU answers questions of BBQ with prefix trees. In turns it runs random tokens
in rectangles of the scorer's batch shapes, without a mask: once with logits of every token, and once without its output
layer. The shares are ratios of tokens a second; the scorer computes logits for option tokens only.

    python -m lab.speed.share_of_dense --questions 100
    python -m lab.speed.share_of_dense --quick

Exits with 1 if the median share of the whole model's rate is below 92%. A quick check takes few questions and ignores
the shares.
"""

import statistics
import sys
from collections.abc import Sequence
from typing import Any

import torch

from lab.devices import questions
from lab.devices.cases import CAUSAL, make_scorer, questions_of
from lab.devices.speed import Call, seconds_of, watched
from lab.options import THREADS, make_parser, read_options
from qabias.models import loading

LEAST = 0.92


def run_dense(model: Any, calls: Sequence[Call], vocabulary: int) -> None:
    """Run a model, or a part of one, on random tokens in the given shapes."""
    with torch.inference_mode():
        for call in calls:
            model(input_ids=torch.randint(8, vocabulary, (call.rows, call.length)), use_cache=False)


def main() -> int:
    """Print the shares; 1 if they are too low."""
    options = read_options(make_parser(__doc__, questions=(100, 4, ""), repeats=(5, 1, ""), threads=THREADS))
    torch.set_num_threads(options.threads)
    loaded = loading.load_model(loading.CAUSAL, "smollm2", device="cpu", dtype="float32")
    model = loaded.model
    vocabulary = model.config.vocab_size
    scorer = make_scorer(CAUSAL, loaded)
    asked = questions.take(questions_of(CAUSAL), options.questions)
    with watched(model) as calls:
        scorer.score(asked)
    tokens = sum(call.tokens for call in calls)
    print(f"{len(asked):,} questions, {len(calls)} batches, {tokens:,} tokens with pads; tokens a second and shares")
    print(f"{'scorer':>8}{'whole model':>13}{'share':>8}{'without output layer':>23}{'share':>8}")
    shares = []
    for _ in range(options.repeats):
        ours, whole, body = (
            tokens / seconds_of(run, model.device)
            for run in (
                lambda: scorer.score(asked),
                lambda: run_dense(model, calls, vocabulary),
                lambda: run_dense(model.base_model, calls, vocabulary),
            )
        )
        shares.append((ours / whole, ours / body))
        print(f"{ours:>8,.0f}{whole:>13,.0f}{ours / whole:>8.1%}{body:>23,.0f}{ours / body:>8.1%}")
    of_whole, of_body = (statistics.median(column) for column in zip(*shares, strict=True))
    print(f"median share of the whole model {of_whole:.1%}, without output layer {of_body:.1%}")
    if not options.quick and of_whole < LEAST:
        print(f"below {LEAST:.0%}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
