"""How long a log of inspect_ai takes to be read, how much memory, and that inspect_ai reads the same answers in it.

The log is written by inspect_ai: some questions are asked of its model `mockllm` as its multiple-choice tasks ask them,
and their samples, with all messages and events, are repeated under new ids until there are as many as BBQ has examples.
Writing takes minutes. Each side then reads the log in a process of its own: qabias up to the table of answers with
outcomes and references, inspect_ai by `read_eval_log_samples`, one sample after the other.

    pip install -e ".[inspect]"
    python -m speed.inspect_logs --log-format json
    python -m speed.inspect_logs --quick

Exits with 1 if the answers differ, or qabias takes 60 seconds or 1 GB or more.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from qabias.benchmarks.bbq.benchmark import BENCHMARK
from qabias.benchmarks.logged import Logged
from qabias.logs import Log
from qabias.logs.recognise import read_log
from qabias.runs.arguments import RunArguments
from qabias.runs.question import load_examples
from speed.options import make_parser, verdict

N_EXAMPLES, N_QUICK, N_ASKED = 58_492, 400, 40
PART = 2_000
MOST_SECONDS, MOST_MEMORY = 60.0, 1e9
LETTERS = "ABC"


@dataclass(frozen=True)
class Measured:
    """One side.

    Attributes:
        seconds: On the clock, from the start of the process to its end.
        memory: Largest resident memory of the process, in bytes.
        answers: How often each answer was read, by its letter; "" for none.
    """

    seconds: float
    memory: int
    answers: dict[str, int]


def write(path: str, n_samples: int) -> None:
    """Write a log; the ending of its name tells the form."""
    from inspect_ai import Task
    from inspect_ai import eval as evaluate
    from inspect_ai.dataset import Sample
    from inspect_ai.log import write_eval_log
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import choice
    from inspect_ai.solver import multiple_choice

    rows = load_examples(RunArguments("bbq", config="Age", limit=N_ASKED)).table.to_pylist()
    samples = [
        Sample(
            input=f"Context: {row['context']}\n\nQuestion: {row['question']}",
            choices=[row[f"ans{place}"] for place in range(3)],
            target=LETTERS[row["label"]],
            metadata={
                name: row[name]
                for name in ("question_index", "question_polarity", "context_condition", "category", "answer_info")
            },
        )
        for row in rows
    ]
    outputs = [ModelOutput.from_content("mockllm", text) for text in ("ANSWER: A", "ANSWER: B", "None of them.")]
    for output in outputs:  # else inspect_ai counts the tokens, for which it downloads a vocabulary
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    model = get_model("mockllm/model", custom_outputs=islice(cycle(outputs), len(rows)))
    task = Task(samples, name="bbq", solver=multiple_choice(), scorer=choice())
    with tempfile.TemporaryDirectory() as folder:
        (log,) = evaluate(task, model=model, log_dir=folder, display="none")
        asked = list(log.samples or [])
    log.samples = [
        sample.model_copy(update={"id": number, "metadata": {**sample.metadata, "source_id": number}})
        for number, sample in zip(range(n_samples), cycle(asked), strict=False)
    ]
    log.eval.dataset.sample_ids = list(range(n_samples))  # by which inspect_ai finds them
    if log.results is not None:
        log.results.total_samples = n_samples
    if path.endswith(".json"):
        write_eval_log(log, path)
    else:
        asyncio.run(record(log, path))


async def record(log: Any, path: str) -> None:
    """Write an `.eval` as an evaluation does, part by part; `write_eval_log` takes the square of the samples."""
    from inspect_ai.log._recorders.eval import EvalRecorder

    recorder = EvalRecorder(str(Path(path).parent))
    await recorder.log_init(log.eval, path, clean=True)
    await recorder.log_start(log.eval, log.plan)
    for number, sample in enumerate(log.samples):
        await recorder.log_sample(log.eval, sample)
        if number % PART == 0:
            await recorder.flush(log.eval)
    await recorder.log_finish(log.eval, log.status, log.stats, log.results, None)


def read_ours(path: str) -> None:
    """Read a log by qabias and print how often each answer is given."""
    log = read_log(Path(path))
    assert isinstance(log, Log), path
    logged = BENCHMARK.logged(log)
    assert isinstance(logged, Logged), path
    counts = Counter(LETTERS[place] if place >= 0 else "" for place in logged.given.answers["prediction"].to_pylist())
    print(json.dumps(counts))


def read_theirs(path: str) -> None:
    """Read a log by inspect_ai and print how often each answer is given."""
    from inspect_ai.log import read_eval_log_samples

    print(json.dumps(Counter(sample.scores["choice"].answer for sample in read_eval_log_samples(path))))


def call(function: str, *arguments: object) -> Measured:
    """Call a function of this script in a process of its own.

    Raises:
        subprocess.CalledProcessError: If it fails.
    """
    code = f"from speed.inspect_logs import {function}; {function}({', '.join(map(repr, arguments))})"
    started = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, function)
    unit = 1 if sys.platform == "darwin" else 1024  # Linux counts KiB
    return Measured(seconds, usage.ru_maxrss * unit, json.loads(printed or "{}"))


def main() -> int:
    """Print the measurements; 1 if the answers differ, or one is beyond what is demanded."""
    parser = make_parser(__doc__)
    parser.add_argument("--samples", type=int, help=f"(default: {N_EXAMPLES}; quick: {N_QUICK})")
    parser.add_argument("--log-format", choices=("eval", "json"), default="eval", help="(default: eval)")
    options = parser.parse_args()
    n_samples = options.samples or (N_QUICK if options.quick else N_EXAMPLES)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"log.{options.log_format}"
        call("write", str(path), n_samples)
        size = path.stat().st_size
        ours, theirs = call("read_ours", str(path)), call("read_theirs", str(path))
    print(f"{n_samples:,} samples, {size / 1e6:,.0f} MB as .{options.log_format}")
    print(f"{'':<12}{'seconds':>10}{'memory, MB':>14}")
    for name, side in (("qabias", ours), ("inspect_ai", theirs)):
        print(f"{name:<12}{side.seconds:>10.1f}{side.memory / 1e6:>14,.0f}")
    print(f"ratio {theirs.seconds / ours.seconds:.1f}")
    too_much = ours.memory >= MOST_MEMORY or ours.seconds >= MOST_SECONDS
    if too_much:
        print("too slow, or too much memory", file=sys.stderr)
    differ = ours.answers != theirs.answers or sum(ours.answers.values()) != n_samples
    return max(verdict(wrong=differ), int(too_much))


if __name__ == "__main__":
    sys.exit(main())
