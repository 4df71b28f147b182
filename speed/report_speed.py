"""Time and memory of the combined report of BBQ, UnQover and BBNLI, and the page's size.

The runs are whole ones by `baseline:random`; existing ones in the folder are reused. UnQover has four questions per
row, so this takes minutes; `--limit` measures a sample. `qabias report` runs in its own process, `--turns` times. The
table has clock time, largest memory and page size. The ratio is to `qabias report --help`, which only reads the command
line.

    python -m speed.report_speed --folder runs/report_speed
    python -m speed.report_speed --limit 400
    python -m speed.report_speed --quick

Exits with 1 if two reports of the same runs differ, if one needs 1 GB or more, or its page has 5 MB or more. Without
`--quick` it must also take less than 20 seconds.
"""

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from speed.options import make_parser
from speed.processes import measured

BENCHMARKS = ("bbq", "unqover", "bbnli")
REPORT = ("-m", "qabias", "report")
MOST_SECONDS, MOST_MEMORY, MOST_BYTES = 20.0, 1e9, 5e6


def make_runs(folder: Path, limit: int | None) -> list[Path]:
    """The folders of a run of every benchmark; existing ones are reused.

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


def main() -> int:
    """Print the measurements; 1 if one exceeds its bound."""
    parser = make_parser(__doc__)
    parser.add_argument("--folder", type=Path, help="folder of the runs; by default a temporary one")
    parser.add_argument("--limit", type=int, help="examples of each benchmark (default: all; quick: 40)")
    parser.add_argument("--turns", type=int, help="(default: 3; quick: 2)")
    options = parser.parse_args()
    limit, turns = (40, 2) if options.quick else (None, 3)
    with tempfile.TemporaryDirectory() as temporary:
        runs = make_runs(options.folder or Path(temporary), options.limit or limit)
        page = Path(temporary) / "report.html"
        command = [*map(str, runs), "--output", str(page)]
        pairs, pages = [], []
        for _ in range(options.turns or turns):
            pairs.append((measured(*REPORT, "--help"), measured(*REPORT, *command)))
            pages.append(page.read_bytes())
    print(f"{'turn':<6}{'seconds':>10}{'nothing, s':>14}{'ratio':>10}{'memory, MB':>14}{'page, MB':>12}")
    for number, ((nothing, of), written) in enumerate(zip(pairs, pages, strict=True), start=1):
        print(
            f"{number:<6}{of.seconds:>10.1f}{nothing.seconds:>14.1f}{of.seconds / nothing.seconds:>10.1f}"
            f"{of.memory / 1e6:>14,.0f}{len(written) / 1e6:>12.2f}"
        )
    found = [of for _, of in pairs]
    print(f"median ratio {statistics.median(of.seconds / nothing.seconds for nothing, of in pairs):.1f}")
    problems = [
        *(["two reports of the same runs differ"] if len(set(pages)) > 1 else []),
        *(["too much memory"] if any(of.memory >= MOST_MEMORY for of in found) else []),
        *(["too large a page"] if any(len(written) >= MOST_BYTES for written in pages) else []),
        *(["too slow"] if not options.quick and any(of.seconds >= MOST_SECONDS for of in found) else []),
    ]
    for problem in problems:
        print(problem, file=sys.stderr)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
