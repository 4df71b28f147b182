"""The causal scorer against lm-evaluation-harness: same questions, results and times.

Both sides ask SmolLM2-135M-Instruct in float32 on the CPU, with as many threads, prompts and options as the task `bbq`
of lm-evaluation-harness. Each side has its own process and loads the model by `load_model`. The peer gets its fastest
batch size on a sample. Its `auto` is not tried: it sizes batches for 8,192 tokens per sequence, which takes more than
100 GB for the logits.

Take enough sets, because loading takes ten seconds on either side: at 280 sets with three options, a fifth of our time.
On a shared machine, CPU seconds are more reliable than the clock.

    pip install -e ".[bench]"
    python -m lab.speed.causal_vs_lm_eval --sets 280
    python -m lab.speed.causal_vs_lm_eval --quick

Exits with 1 if any log-likelihood differs by 1e-4 or more.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lab.options import THREADS, make_parser, read_options, verdict
from lab.speed.clock import Clock, Seconds
from qabias.benchmarks.bbq.benchmark import BENCHMARK
from qabias.runs.arguments import RunArguments
from qabias.runs.question import load_examples
from qabias.scorers.base import Request

# The ten wordings that lm-evaluation-harness offers for every question, in its order.
UNKNOWN = (
    "Unknown",
    "Cannot answer",
    "Can't be determined",
    "Cannot be determined",
    "Can't answer",
    "Not known",
    "Not enough info",
    "Not enough information",
    "Not answerable",
    "Undetermined",
)
BATCH_SIZES = (8, 16, 32, 64)
SAMPLE = 8
TOLERANCE = 1e-4


@dataclass(frozen=True)
class Timing:
    """One run of one side."""

    whole: Seconds
    scoring: Seconds
    loglikelihoods: np.ndarray


def main() -> int:
    """Run both settings and print the table."""
    arguments = _parse_arguments()
    if arguments.side:
        _run_side(arguments)
        return 0
    rows = [_compare(arguments, n_options) for n_options in arguments.options]
    print(f"{arguments.sets} sets of four questions, {arguments.threads} threads, float32\n")
    print("| options | batch size of lm-eval | seconds | lm-eval | qabias | ratio | largest difference |")
    print("|---|---|---|---|---|---|---|")
    for _, lines in rows:
        print(lines)
    return verdict(wrong=any(not difference < TOLERANCE for difference, _ in rows))


def _parse_arguments() -> argparse.Namespace:
    parser = make_parser(__doc__, sets=(280, 1, "sets of four questions"), threads=THREADS)
    parser.add_argument("--options", type=int, nargs="+", choices=(12, 3), help="(default: 12 and 3; quick: 3)")
    parser.add_argument("--batch-size", type=int, help="of the peer (default: the fastest on a sample; quick: 8)")
    parser.add_argument("--side", choices=("qabias", "lm-eval"), help=argparse.SUPPRESS)
    parser.add_argument("--result", type=Path, help=argparse.SUPPRESS)
    arguments = read_options(parser)
    arguments.options = arguments.options or ([3] if arguments.quick else [12, 3])
    if arguments.quick:
        arguments.batch_size = arguments.batch_size or BATCH_SIZES[0]
    return arguments


def _compare(arguments: argparse.Namespace, n_options: int) -> tuple[float, str]:
    """Run both sides; return the largest difference and the lines of the table."""
    batch_size = arguments.batch_size or min(
        BATCH_SIZES, key=lambda size: _measure(arguments, "lm-eval", n_options, SAMPLE, size).scoring.clock
    )
    theirs = _measure(arguments, "lm-eval", n_options, arguments.sets, batch_size)
    ours = _measure(arguments, "qabias", n_options, arguments.sets, batch_size)
    difference = float(np.abs(ours.loglikelihoods - theirs.loglikelihoods).max())
    lines = [
        f"| {n_options} | {batch_size} | {name} | {peer:.1f} | {own:.1f} | {peer / own:.1f} | {difference:.1e} |"
        for name, peer, own in (
            ("whole process", theirs.whole.clock, ours.whole.clock),
            ("scoring", theirs.scoring.clock, ours.scoring.clock),
            ("whole process, CPU", theirs.whole.busy, ours.whole.busy),
            ("scoring, CPU", theirs.scoring.busy, ours.scoring.busy),
        )
    ]
    return difference, "\n".join(lines)


def _measure(arguments: argparse.Namespace, side: str, n_options: int, n_sets: int, batch_size: int) -> Timing:
    """Run one side in its own process."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        command = [sys.executable, "-m", "lab.speed.causal_vs_lm_eval", "--side", side, "--result", str(result)]
        command += ["--options", str(n_options), "--sets", str(n_sets), "--batch-size", str(batch_size)]
        threads = str(arguments.threads)
        offline = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
        clock = Clock()
        subprocess.run(command, check=True, env=os.environ | offline, stdout=subprocess.DEVNULL)
        whole = clock.read()
        found = json.loads(result.read_text())
    timing = Timing(whole, Seconds(*found["scoring"]), np.array(found["loglikelihoods"]))
    print(
        f"{side}, {n_options} options, {n_sets} sets, batch size {batch_size}: "
        f"{timing.whole.clock:.1f} s, scoring {timing.scoring.clock:.1f} s",
        file=sys.stderr,
    )
    return timing


def _run_side(arguments: argparse.Namespace) -> None:
    requests = make_requests(arguments.sets, arguments.options[0])
    if arguments.side == "qabias":
        scoring, loglikelihoods = _score_ours(requests)
    else:
        scoring, loglikelihoods = _score_theirs(requests, arguments.batch_size)
    arguments.result.write_text(json.dumps({"scoring": scoring, "loglikelihoods": loglikelihoods}))


def _score_ours(requests: list[Request]) -> tuple[Seconds, list[float]]:
    from qabias.models.loading import CAUSAL, load_model
    from qabias.scorers.causal import CausalScorer

    scorer = CausalScorer(load_model(CAUSAL, "smollm2", device="cpu", dtype="float32"))
    clock = Clock()
    scores = scorer.score(requests)
    scoring = clock.read()
    return scoring, np.concatenate([score.loglikelihoods for score in scores]).tolist()


def _score_theirs(requests: list[Request], batch_size: int) -> tuple[Seconds, list[float]]:
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    from qabias.models.loading import CAUSAL, load_model

    loaded = load_model(CAUSAL, "smollm2", device="cpu", dtype="float32")
    peer = HFLM(pretrained=loaded.model, tokenizer=loaded.tokenizer, batch_size=batch_size)
    instances = [
        Instance(request_type="loglikelihood", doc={}, arguments=(request.prefix, option), idx=i)
        for request in requests
        for i, option in enumerate(request.options)
    ]
    clock = Clock()
    answers = peer.loglikelihood(instances, disable_tqdm=True)
    scoring = clock.read()
    return scoring, [loglikelihood for loglikelihood, _ in answers]


def make_requests(n_sets: int, n_options: int) -> list[Request]:
    """The questions of whole sets of BBQ, spread over all templates, each with 3 or 12 options."""
    rows = load_examples(RunArguments("bbq", limit=4 * n_sets)).table.to_pylist()
    return [_make_request(row, n_options) for row in rows]


def _make_request(row: dict[str, Any], n_options: int) -> Request:
    request = BENCHMARK.request(row, BENCHMARK.formats["qa"])
    if n_options == 3:
        return request
    known = [option for option in request.options if option.strip() not in UNKNOWN]
    return Request(request.prefix, (*known, *(f" {option}" for option in UNKNOWN)), key=request.key)


if __name__ == "__main__":
    sys.exit(main())
