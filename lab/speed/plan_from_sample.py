"""Time of a whole run, predicted from one part in a hundred, all as whole processes.

An encoder with random weights answers UnQover's gender set, 1,372,000 rows of four questions. The predicted time is a
fixed part, measured by 4 rows, and a part per row. The latter is the time of `--shard 0/100` less a smaller shard's:
random rows (`--limit`) share fewer texts, and take longer. The table has the ratio of the real to the predicted time.

    python -m lab.speed.plan_from_sample
    python -m lab.speed.plan_from_sample --quick

Exits with 1 if the real time differs from the predicted one by more than 10%. A quick check takes few rows and ignores
times.
"""

import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq

from lab.options import THREADS, make_parser, read_options
from lab.speed.processes import Measured, measured
from lab.speed.random_models import make_bert, make_tokenizer
from qabias.benchmarks import load_benchmark
from qabias.runs.arguments import RunArguments
from qabias.runs.question import load_examples
from qabias.support.outputs import ANSWERS_FOLDER

BENCHMARK, CONFIG, ROWS = "unqover", "gender", 1_372_000
FEW, QUICK_ROWS = 4, 400
SHARES = (400, 100)
"""Numbers of shards for the smaller and the larger measured one."""
BOUND = 0.1
LAYERS, WIDTH = 2, 64
SCORER = "extractive_qa"


def arguments_of(model: Path, limit: int | None) -> RunArguments:
    """A run of this number of rows; None: all."""
    return RunArguments(BENCHMARK, str(model), CONFIG, limit=limit, backend=SCORER, dtype="float32")


def save_model(folder: Path, threads: int) -> None:
    """Write an encoder with random weights, and a tokenizer trained on some rows."""
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


def run_whole(model: Path, output: Path, limit: int | None, share: int | None = None) -> Measured:
    """`qabias run` of a number of rows or one shard, from start to end of the process."""
    command = ["-m", "qabias", "run", BENCHMARK, "--config", CONFIG, "--model", str(model), "--device", "cpu"]
    command += ["--backend", SCORER, "--dtype", "float32", "--output", str(output)]
    command += [] if limit is None else ["--limit", str(limit)]
    return measured(*command, *([] if share is None else ["--shard", f"0/{share}"]))


def rows_of(folder: Path) -> int:
    """The number of answered rows of a run."""
    return sum(pq.read_metadata(path).num_rows for path in (folder / ANSWERS_FOLDER).glob("*.parquet"))


def main() -> int:
    """Print the measurements; 1 for a wrong prediction."""
    options = read_options(make_parser(__doc__, threads=THREADS))
    limit, rows = (QUICK_ROWS, QUICK_ROWS) if options.quick else (None, ROWS)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        model = folder / "model"
        save_model(model, options.threads)
        few = run_whole(model, folder / "few", FEW)
        shares = [run_whole(model, folder / f"of-{share}", limit, share) for share in SHARES]
        answered = [rows_of(folder / f"of-{share}") for share in SHARES]
        whole = run_whole(model, folder / "whole", limit)
    more = answered[1] - answered[0]
    by_row = (shares[1].seconds - shares[0].seconds) / more if more else 0.0
    predicted = few.seconds + by_row * (rows - FEW)
    title = f"{load_benchmark(BENCHMARK).title}, {CONFIG}, BERT {LAYERS} x {WIDTH}"
    print(title)
    print(f"{'rows':>12}{'seconds':>10}{'predicted':>10}{'memory, MB':>13}")
    for n, found in zip((FEW, *answered), (few, *shares), strict=True):
        print(f"{n:>12,}{found.seconds:>10.1f}{'':>10}{found.memory / 1e6:>13,.0f}")
    print(f"{rows:>12,}{whole.seconds:>10.1f}{predicted:>10.1f}{whole.memory / 1e6:>13,.0f}")
    ratio = whole.seconds / predicted
    print(f"ratio {ratio:.2f}")
    if not options.quick and abs(ratio - 1) > BOUND:
        print(f"the time is more than {BOUND:.0%} from the predicted one", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
