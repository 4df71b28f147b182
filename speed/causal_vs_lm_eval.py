"""Compare the causal scorer with lm-evaluation-harness: the same questions, the same figures, the time of each.

Both sides ask SmolLM2-135M-Instruct in float32 on the CPU, with as many threads, through the same prompt and options as
the task `bbq` of lm-evaluation-harness. Each side runs in a process of its own; both load the model by
`load_causal`. The peer is given the batch size at which it is fastest on a sample. Its `auto` is not tried: it sizes
batches for 8,192 tokens per sequence, which takes more than 100 GB for the logits alone.

Take enough sets for loading not to count: it takes ten seconds on either side, which at 280 sets with three options is
a fifth of our time. On a machine that others use too, believe the CPU seconds rather than the clock.

    pip install lm_eval==0.4.13
    python -m speed.causal_vs_lm_eval --sets 280

Exits with 1 if any log-likelihood differs by 1e-4 or more.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from qabias.scorers.base import Request

DATA = Path(__file__).parent.parent / "bbq_dataset" / "data"
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
    """One run of one side.

    Attributes:
        whole: Seconds of the process, with imports and loading.
        scoring: Seconds of scoring alone.
        whole_cpu: Seconds that all threads of the process were busy; steadier where others use the machine.
        scoring_cpu: Seconds that all threads were busy with scoring.
        loglikelihoods: Figures of all options of all questions.
    """

    whole: float
    scoring: float
    whole_cpu: float
    scoring_cpu: float
    loglikelihoods: np.ndarray


class Clock:
    """Measures seconds of time and of busy threads, of this process and of those that it has waited for."""

    def __init__(self) -> None:
        self._started = self._now()

    def read(self) -> tuple[float, float]:
        """Seconds passed and seconds busy since the clock was made."""
        now = self._now()
        return now[0] - self._started[0], now[1] - self._started[1]

    @staticmethod
    def _now() -> tuple[float, float]:
        return time.perf_counter(), sum(os.times()[:4])


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
    for row in rows:
        print(row[1])
    return int(any(difference >= TOLERANCE for difference, _ in rows))


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=280, help="sets of four questions (default: %(default)s)")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of <category>/test-*.parquet")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="(default: %(default)s)")
    parser.add_argument("--options", type=int, nargs="+", choices=(12, 3), default=[12, 3])
    parser.add_argument("--batch-size", type=int, help="of the peer (default: the fastest on a sample)")
    parser.add_argument("--side", choices=("qabias", "lm-eval"), help=argparse.SUPPRESS)
    parser.add_argument("--result", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def _compare(arguments: argparse.Namespace, n_options: int) -> tuple[float, str]:
    """Run both sides; return the largest difference and the lines of the table."""
    batch_size = arguments.batch_size or min(
        BATCH_SIZES, key=lambda size: _measure(arguments, "lm-eval", n_options, SAMPLE, size).scoring
    )
    theirs = _measure(arguments, "lm-eval", n_options, arguments.sets, batch_size)
    ours = _measure(arguments, "qabias", n_options, arguments.sets, batch_size)
    difference = float(np.abs(ours.loglikelihoods - theirs.loglikelihoods).max())
    lines = [
        f"| {n_options} | {batch_size} | {name} | {peer:.1f} | {own:.1f} | {peer / own:.1f} | {difference:.1e} |"
        for name, peer, own in (
            ("whole process", theirs.whole, ours.whole),
            ("scoring", theirs.scoring, ours.scoring),
            ("whole process, CPU", theirs.whole_cpu, ours.whole_cpu),
            ("scoring, CPU", theirs.scoring_cpu, ours.scoring_cpu),
        )
    ]
    return difference, "\n".join(lines)


def _measure(arguments: argparse.Namespace, side: str, n_options: int, n_sets: int, batch_size: int) -> Timing:
    """Run one side in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        command = [sys.executable, __file__, "--side", side, "--result", str(result), "--data", str(arguments.data)]
        command += ["--options", str(n_options), "--sets", str(n_sets), "--batch-size", str(batch_size)]
        threads = str(arguments.threads)
        offline = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
        clock = Clock()
        subprocess.run(command, check=True, env=os.environ | offline, stdout=subprocess.DEVNULL)
        whole = clock.read()
        found = json.loads(result.read_text())
    scoring = found["scoring"]
    timing = Timing(whole[0], scoring[0], whole[1], scoring[1], np.array(found["loglikelihoods"]))
    print(
        f"{side}, {n_options} options, {n_sets} sets, batch size {batch_size}: "
        f"{timing.whole:.1f} s, scoring {timing.scoring:.1f} s",
        file=sys.stderr,
    )
    return timing


def _run_side(arguments: argparse.Namespace) -> None:
    requests = make_requests(arguments.data, arguments.sets, arguments.options[0])
    if arguments.side == "qabias":
        scoring, loglikelihoods = _score_ours(requests)
    else:
        scoring, loglikelihoods = _score_theirs(requests, arguments.batch_size)
    arguments.result.write_text(json.dumps({"scoring": scoring, "loglikelihoods": loglikelihoods}))


def _score_ours(requests: list[Request]) -> tuple[tuple[float, float], list[float]]:
    from qabias.models.loading import load_causal
    from qabias.scorers.causal import CausalScorer

    scorer = CausalScorer(load_causal("smollm2", device="cpu", dtype="float32"))
    clock = Clock()
    scores = scorer.score(requests)
    scoring = clock.read()
    return scoring, np.concatenate([score.loglikelihoods for score in scores]).tolist()


def _score_theirs(requests: list[Request], batch_size: int) -> tuple[tuple[float, float], list[float]]:
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    from qabias.models.loading import load_causal

    loaded = load_causal("smollm2", device="cpu", dtype="float32")
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


def make_requests(data: Path, n_sets: int, n_options: int) -> list[Request]:
    """Make the questions of `n_sets` whole sets, drawn evenly from all categories and over each file."""
    requests: list[Request] = []
    for row in _read_sets(data, n_sets):
        options = [row["ans0"], row["ans1"], row["ans2"]]
        if n_options == 12:
            options = [option for option in options if option not in UNKNOWN] + list(UNKNOWN)
        requests.append(
            Request(
                prefix=f"{row['context']}\n\nQ: {row['question']}\nA:",
                options=tuple(f" {option}" for option in options),
                key=f"{row['set_id']}/{len(requests)}",
            )
        )
    return requests


def _read_sets(data: Path, n_sets: int) -> list[dict]:
    files = sorted(data.glob("*/test-*.parquet"))
    if not files:
        raise SystemExit(f"{data}: no <category>/test-*.parquet; give the folder by --data")
    rows = []
    for i, file in enumerate(files):
        sets = [list(group) for _, group in groupby(pq.read_table(file).to_pylist(), key=lambda row: row["set_id"])]
        n_here = min(len(sets), n_sets // len(files) + (i < n_sets % len(files)))
        rows += [row for k in range(n_here) for row in sets[k * len(sets) // n_here]]
    return rows


if __name__ == "__main__":
    sys.exit(main())
