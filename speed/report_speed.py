"""How long the combined report of BBQ, UnQover and BBNLI takes, how much memory, and how large the page is.

The runs are whole ones by `baseline:random`, kept in a folder and made where they are not there yet (UnQover has four
questions a row, so this takes minutes; `--limit` measures a sample). The report is written by `qabias report` in a
process of its own, as often as asked for; the table has the seconds on the clock, the largest memory of that process
and the size of the page.

    python -m speed.report_speed --folder runs/report_speed
    python -m speed.report_speed --limit 400

Exits with 1 if the slowest report takes 20 seconds or more, 1 GB or more, or its page has 5 MB or more.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

BENCHMARKS = ("bbq", "unqover", "bbnli")
MOST_SECONDS, MOST_MEMORY, MOST_BYTES = 20.0, 1e9, 5e6


@dataclass(frozen=True)
class Measured:
    """One writing of the report.

    Attributes:
        seconds: On the clock, from the start of the process to its end.
        memory: Largest resident memory of the process, in bytes.
        size: Bytes of the page.
    """

    seconds: float
    memory: int
    size: int


def make_runs(folder: Path, limit: int | None) -> list[Path]:
    """The folders of a run of every benchmark; what is there already is not made again.

    They are made in processes of their own, for a process begins with the largest memory that its parent ever had.

    Raises:
        subprocess.CalledProcessError: If a run fails.
    """
    folders = []
    for benchmark in BENCHMARKS:
        target = folder / (benchmark if limit is None else f"{benchmark}-{limit}")
        if not (target / "report.html").exists():
            command = [sys.executable, "-m", "qabias", "run", benchmark, "--model", "baseline:random"]
            sample = [] if limit is None else ["--limit", str(limit)]
            subprocess.run([*command, *sample, "--output", str(target)], stdout=subprocess.DEVNULL, check=True)
        folders.append(target)
    return folders


def measure(runs: Sequence[Path], page: Path) -> Measured:
    """Write the report of some runs in a process of its own.

    Raises:
        subprocess.CalledProcessError: If it fails.
    """
    command = [sys.executable, "-m", "qabias", "report", *map(str, runs), "--output", str(page)]
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    unit = 1 if sys.platform == "darwin" else 1024  # Linux counts KiB
    return Measured(seconds, usage.ru_maxrss * unit, page.stat().st_size)


def main() -> int:
    """Print the measurements; 1 if one is beyond what is demanded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where the runs are, or are to be kept; by default nowhere")
    parser.add_argument("--limit", type=int, help="examples of each benchmark; by default all")
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        runs = make_runs(options.folder or Path(temporary), options.limit)
        found = [measure(runs, Path(temporary) / "report.html") for _ in range(options.turns)]
    print(f"{'turn':<6}{'seconds':>10}{'memory, MB':>14}{'page, MB':>12}")
    for number, of in enumerate(found, start=1):
        print(f"{number:<6}{of.seconds:>10.1f}{of.memory / 1e6:>14,.0f}{of.size / 1e6:>12.2f}")
    fits = all(of.seconds < MOST_SECONDS and of.memory < MOST_MEMORY and of.size < MOST_BYTES for of in found)
    return 0 if fits else 1


if __name__ == "__main__":
    sys.exit(main())
