"""How long the combined report of BBQ, UnQover and BBNLI takes, how much memory, and how large the page is.

The runs are whole ones by `baseline:random`, kept in a folder and made where they are not there yet. UnQover has four
questions per row, so this takes minutes; `--limit` measures a sample. The report is written by `qabias report` in a
process of its own, `--turns` times. The table has the seconds on the clock, the largest memory of that process, the
size of the page, and the seconds of `qabias report --help`, which only reads the command line: the ratio to it is what
the report itself costs.

    python -m speed.report_speed --folder runs/report_speed
    python -m speed.report_speed --limit 400
    python -m speed.report_speed --quick

Exits with 1 if two reports of the same runs differ, if one needs 1 GB or more, or its page has 5 MB or more. Without
`--quick` it must take less than 20 seconds too.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from speed.options import make_parser

BENCHMARKS = ("bbq", "unqover", "bbnli")
MOST_SECONDS, MOST_MEMORY, MOST_BYTES = 20.0, 1e9, 5e6


@dataclass(frozen=True)
class Measured:
    """One process.

    Attributes:
        seconds: On the clock, from the start of the process to its end.
        memory: Largest resident memory of the process, in bytes.
        page: The page that it wrote, if any.
    """

    seconds: float
    memory: int
    page: bytes


def make_runs(folder: Path, limit: int | None) -> list[Path]:
    """The folders of a run of every benchmark; what is there already is not made again.

    They are made in processes of their own, because a process begins with the largest memory that its parent ever had.

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


def measure(*arguments: str, page: Path | None = None) -> Measured:
    """Run `qabias report` in a process of its own.

    Raises:
        subprocess.CalledProcessError: If it fails.
    """
    command = [sys.executable, "-m", "qabias", "report", *arguments]
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    unit = 1 if sys.platform == "darwin" else 1024  # Linux counts KiB
    return Measured(seconds, usage.ru_maxrss * unit, page.read_bytes() if page else b"")


def main() -> int:
    """Print the measurements; 1 if one is beyond what is demanded."""
    parser = make_parser(__doc__)
    parser.add_argument("--folder", type=Path, help="where the runs are, or are to be kept; by default nowhere")
    parser.add_argument("--limit", type=int, help="examples of each benchmark (default: all; quick: 40)")
    parser.add_argument("--turns", type=int, help="(default: 3; quick: 2)")
    options = parser.parse_args()
    limit, turns = (40, 2) if options.quick else (None, 3)
    with tempfile.TemporaryDirectory() as temporary:
        runs = make_runs(options.folder or Path(temporary), options.limit or limit)
        page = Path(temporary) / "report.html"
        command = [*map(str, runs), "--output", str(page)]
        pairs = [(measure("--help"), measure(*command, page=page)) for _ in range(options.turns or turns)]
    print(f"{'turn':<6}{'seconds':>10}{'nothing, s':>14}{'ratio':>10}{'memory, MB':>14}{'page, MB':>12}")
    for number, (nothing, of) in enumerate(pairs, start=1):
        print(
            f"{number:<6}{of.seconds:>10.1f}{nothing.seconds:>14.1f}{of.seconds / nothing.seconds:>10.1f}"
            f"{of.memory / 1e6:>14,.0f}{len(of.page) / 1e6:>12.2f}"
        )
    found = [of for _, of in pairs]
    print(f"median ratio {statistics.median(of.seconds / nothing.seconds for nothing, of in pairs):.1f}")
    problems = [
        *(["two reports of the same runs differ"] if len({of.page for of in found}) > 1 else []),
        *(["too much memory"] if any(of.memory >= MOST_MEMORY for of in found) else []),
        *(["too large a page"] if any(len(of.page) >= MOST_BYTES for of in found) else []),
        *(["too slow"] if not options.quick and any(of.seconds >= MOST_SECONDS for of in found) else []),
    ]
    for problem in problems:
        print(problem, file=sys.stderr)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
