"""Time and memory of `qabias score` for a log of inspect_ai, with a check against inspect_ai's own reading.

inspect_ai writes the log: its model `mockllm` answers some questions of bundled BBQ by qabias's task. Their samples,
with all messages and events, are repeated for every example, with its own question and metadata. Writing takes minutes,
and reading by inspect_ai too. Each side has its own process. `qabias score LOG --output RUN` counts from start to end,
with scores, intervals, tables and report. inspect_ai reads the answers by `read_eval_log_samples`, sample by sample.

    pip install -e ".[inspect]"
    python -m lab.speed.inspect_logs --log-format json
    python -m lab.speed.inspect_logs --quick

Exits with 1 if the answers differ, or qabias takes 60 seconds or 1 GB or more.
"""

import asyncio
import json
import sys
import tempfile
from collections import Counter
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from lab.options import make_parser, read_options, verdict
from lab.speed.processes import Measured, measured
from qabias.runs.folder import part_path

N_EXAMPLES, N_QUICK, N_ASKED = 58_492, 400, 40
PART = 2_000
MOST_SECONDS, MOST_MEMORY = 60.0, 1e9
LETTERS, UNREAD = "ABC", "Purple."


def write(path: str, n_samples: int) -> None:
    """Write a log in the form of its ending."""
    from inspect_ai import eval as evaluate
    from inspect_ai.log import write_eval_log
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    from qabias.inspect_tasks.questions import load_questions
    from qabias.inspect_tasks.tasks import make_task

    outputs = [ModelOutput.from_content("mockllm", text) for text in (*LETTERS, UNREAD)]
    for output in outputs:  # else inspect_ai counts the tokens, for which it downloads a vocabulary
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    model = get_model("mockllm/model", custom_outputs=islice(cycle(outputs), N_ASKED))
    task = make_task("bbq", {"source": "bundled", "limit": N_ASKED})
    with tempfile.TemporaryDirectory() as folder:
        (log,) = evaluate(task, model=model, log_dir=folder, display="none")
        answered = list(log.samples or [])
    limit = None if n_samples == N_EXAMPLES else n_samples
    asked = load_questions("bbq", source="bundled", limit=limit)
    log.samples = [
        sample.model_copy(update={"id": of.key, "input": of.prompt, "metadata": asked.metadata(of)})
        for of, sample in zip(asked.questions, cycle(answered), strict=False)
    ]
    log.eval.dataset.sample_ids = [of.key for of in asked.questions]  # inspect_ai finds them by these
    if log.results is not None:
        log.results.total_samples = log.results.completed_samples = n_samples
    if path.endswith(".json"):
        write_eval_log(log, path)
    else:
        asyncio.run(record(log, path))


async def record(log: Any, path: str) -> None:
    """Write an `.eval` part by part, as an evaluation does; `write_eval_log` takes quadratic time."""
    from inspect_ai.log._recorders.eval import EvalRecorder

    recorder = EvalRecorder(str(Path(path).parent))
    await recorder.log_init(log.eval, path, clean=True)
    await recorder.log_start(log.eval, log.plan)
    for number, sample in enumerate(log.samples):
        await recorder.log_sample(log.eval, sample)
        if number % PART == 0:
            await recorder.flush(log.eval)
    await recorder.log_finish(log.eval, log.status, log.stats, log.results, None)


def answers_of(run: Path) -> Counter[str]:
    """Answer counts of a run folder by letter; "" for none."""
    places = pq.read_table(part_path(run, 0).parent, columns=["prediction"])["prediction"].to_pylist()
    return Counter(LETTERS[place] if place >= 0 else "" for place in places)


def read_theirs(path: str) -> None:
    """Read a log by inspect_ai and print counts by letter; "" for anything else."""
    from inspect_ai.log import read_eval_log_samples

    said = (sample.output.completion for sample in read_eval_log_samples(path))
    print(json.dumps(Counter(text if text in tuple(LETTERS) else "" for text in said)))


def call(function: str, *arguments: object) -> Measured:
    """Call a function of this script in a separate process."""
    code = f"from lab.speed.inspect_logs import {function}; {function}({', '.join(map(repr, arguments))})"
    return measured("-c", code)


def main() -> int:
    """Print the measurements; 1 if the answers differ, or one exceeds its bound."""
    parser = make_parser(__doc__, samples=(N_EXAMPLES, N_QUICK, ""))
    parser.add_argument("--log-format", choices=("eval", "json"), default="eval", help="(default: eval)")
    options = read_options(parser)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"log.{options.log_format}"
        call("write", str(path), options.samples)
        size = path.stat().st_size
        run = Path(folder) / "run"
        ours = measured("-m", "qabias", "score", str(path), "--output", str(run))
        theirs = call("read_theirs", str(path))
        answers = answers_of(run)
    print(f"{answers.total():,} samples, {size / 1e6:,.0f} MB as .{options.log_format}")
    print(f"{'':<12}{'seconds':>10}{'of processor':>14}{'memory, MB':>14}")
    for name, side in (("qabias", ours), ("inspect_ai", theirs)):
        print(f"{name:<12}{side.seconds:>10.1f}{side.busy:>14.1f}{side.memory / 1e6:>14,.0f}")
    print(f"ratio {theirs.seconds / ours.seconds:.1f}")
    # A small log does not predict a whole one.
    too_much = not options.quick and (ours.memory >= MOST_MEMORY or ours.seconds >= MOST_SECONDS)
    if too_much:
        print("too slow, or too much memory", file=sys.stderr)
    return max(verdict(wrong=answers != json.loads(theirs.printed)), int(too_much))


if __name__ == "__main__":
    sys.exit(main())
