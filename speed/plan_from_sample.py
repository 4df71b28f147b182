"""How long a whole run takes, foretold from a run of one example in a hundred: both as whole processes.

An encoder with random weights answers UnQover's gender set, 1,372,000 rows of four questions. The time of a run is a
fixed part, that of a run of 4 rows, and a part by row, measured in the sample; the table has the ratio of the real time
of the whole run to the one foretold. `qabias plan --exact` must foretell the tokens of the sample exactly.

    python -m speed.plan_from_sample
    python -m speed.plan_from_sample --quick

Exits with 1 if tokens differ, or if the time of the whole run is more than 10 % from the one foretold. A quick check
takes a small sample and does not look at the times.
"""

import sys
import tempfile
from pathlib import Path

from qabias.benchmarks import load_benchmark
from qabias.runs.arguments import RunArguments
from qabias.runs.question import load_examples
from speed.options import add_threads, make_parser, threads_of, verdict
from speed.plan_vs_run import predict, run
from speed.processes import Measured, measured
from speed.random_models import make_bert, make_tokenizer

BENCHMARK, CONFIG, ROWS = "unqover", "gender", 1_372_000
FEW, SHARE, BOUND = 4, 0.01, 0.1
SAMPLE, QUICK_ROWS, QUICK_SAMPLE = int(ROWS * SHARE), 400, 80
LAYERS, WIDTH = 2, 64
SCORER = "extractive_qa"


def arguments_of(model: Path, limit: int) -> RunArguments:
    """A run of so many rows."""
    return RunArguments(BENCHMARK, str(model), CONFIG, limit=limit, scorer=SCORER, dtype="float32")


def save_model(folder: Path, threads: int) -> None:
    """Write an encoder with random weights, and a tokenizer trained on a few of the rows."""
    import torch

    torch.set_num_threads(threads)
    examples = load_examples(arguments_of(folder, FEW * 100)).table
    texts = [
        str(text) for name in ("context_12", "question", "negated_question") for text in examples[name].to_pylist()
    ]
    tokenizer = make_tokenizer(texts)
    loaded = make_bert("BertForQuestionAnswering", tokenizer, LAYERS, WIDTH, vocab_size=len(tokenizer))
    loaded.model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def run_whole(model: Path, output: Path, limit: int | None) -> Measured:
    """`qabias run`, from the start of the process to its report."""
    command = ["-m", "qabias", "run", BENCHMARK, "--config", CONFIG, "--model", str(model), "--device", "cpu"]
    command += ["--scorer", SCORER, "--dtype", "float32", "--output", str(output)]
    return measured(*command, *([] if limit is None else ["--limit", str(limit)]))


def main() -> int:
    """Print the measurements; 1 if what was foretold is wrong."""
    parser = make_parser(__doc__)
    add_threads(parser)
    options = parser.parse_args()
    rows, sampled = (QUICK_ROWS, QUICK_SAMPLE) if options.quick else (ROWS, SAMPLE)
    with tempfile.TemporaryDirectory() as temporary:
        model = Path(temporary) / "model"
        save_model(model, threads_of(options))
        sample = arguments_of(model, sampled)
        planned = predict(sample, "cpu", measure=False).tokens
        tokens, _ = run(sample, "cpu")
        few = run_whole(model, Path(temporary) / "few", FEW)
        part = run_whole(model, Path(temporary) / "part", sampled)
        whole = run_whole(model, Path(temporary) / "whole", rows if options.quick else None)
    by_row = (part.seconds - few.seconds) / (sampled - FEW)
    foretold = few.seconds + by_row * (rows - FEW)
    title = load_benchmark(BENCHMARK).title
    print(
        f"{title}, {CONFIG}, BERT {LAYERS} x {WIDTH}: tokens of {sampled:,} rows: {planned:,} planned, {tokens:,} run"
    )
    print(f"{'rows':>12}{'seconds':>10}{'foretold':>10}{'memory, MB':>13}")
    for n, found, expected in ((FEW, few, ""), (sampled, part, ""), (rows, whole, f"{foretold:.1f}")):
        print(f"{n:>12,}{found.seconds:>10.1f}{expected:>10}{found.memory / 1e6:>13,.0f}")
    ratio = whole.seconds / foretold
    print(f"ratio {ratio:.2f}")
    if planned != tokens:
        return verdict(wrong=True)
    if not options.quick and abs(ratio - 1) > BOUND:
        print(f"the time is more than {BOUND:.0%} from the one foretold", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
