"""The causal scorer against its model alone, as a share of the tokens a second that full rectangles give.

SmolLM2-135M-Instruct in float32 on the CPU answers questions of BBQ with prefix trees. The model alone is its body
without output layer and mask, on random tokens in batches of as many tokens and as long a row (`qabias.devices.speed`).

    python -m speed.share_of_dense
    python -m speed.share_of_dense --quick

Exits with 1 if the median share is below 92 %. A quick check takes few questions and does not look at the share.
"""

import statistics
import sys

import torch

from qabias.devices.cases import Case
from qabias.devices.device import Device
from qabias.devices.outcome import MEASURED, MEASURES
from qabias.devices.shapes import SMALL_CAUSAL
from qabias.devices.speed import Speed
from qabias.devices.subjects import CAUSAL, make_scorer
from qabias.models import loading
from speed.options import add_threads, make_parser, threads_of

LEAST = 0.92
SECONDS, QUICK_SECONDS = 20.0, 0.5
REPEATS = 3


def main() -> int:
    """Print the shares; 1 if they are too low."""
    parser = make_parser(__doc__)
    add_threads(parser)
    options = parser.parse_args()
    torch.set_num_threads(threads_of(options))
    loaded = loading.load_model(loading.CAUSAL, "smollm2", device="cpu", dtype="float32")
    case = Case(CAUSAL, SMALL_CAUSAL, "float32", MEASURES)
    speed = Speed(case, loaded, Device("cpu"), make_scorer(CAUSAL, loaded), QUICK_SECONDS if options.quick else SECONDS)
    shares = []
    print(f"{'questions':>10}{'batches':>9}{'tokens':>9}{'tokens/s':>10}{'alone':>9}{'share':>8}{'outside':>9}")
    for _ in range(1 if options.quick else REPEATS):
        outcome = speed.measure(None)
        if outcome.state != MEASURED:
            print(outcome.why, file=sys.stderr)
            return 1
        of = outcome.figures
        shares.append(of["share_of_dense"])
        print(
            f"{of['questions']:>10,}{of['batches']:>9,}{of['tokens']:>9,}{of['tokens_per_second']:>10,.0f}"
            f"{of['dense_tokens_per_second']:>9,.0f}{shares[-1]:>8.1%}{of['share_outside_model']:>9.1%}"
        )
    share = statistics.median(shares)
    print(f"median share {share:.1%}")
    if not options.quick and share < LEAST:
        print(f"below {LEAST:.0%}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
