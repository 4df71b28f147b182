"""Time, memory and size of reports: the combined one of BBQ, UnQover and BBNLI, and of single runs of BBQ.

The runs are whole ones by `baseline:random`; existing ones in the folder are reused. UnQover has four questions per
row, so this takes minutes; `--limit` measures a sample. `qabias report` runs in its own process, `--turns` times. The
first table has clock time, largest memory and page size. The ratio is to `qabias report --help`, which only reads the
command line. The second table has the processor time of a report within this process; its ratio is to reading the
examples of all of BBQ. The last column is the clock time in which Chromium opens the page, if it is installed.

    python -m lab.speed.report_speed --folder runs/report_speed
    python -m lab.speed.report_speed --limit 400
    python -m lab.speed.report_speed --quick

Exits with 1 if two reports of the same runs differ, if one needs 1 GB or more, or its page has 5 MB or more. Pages of
single runs have bounds too: 600 KB up to 400 examples, 4 MB for all of BBQ. Without `--quick` the combined report must
also take less than 20 seconds, a single one less than 0.3 (100 examples) and 3 seconds (all), and a page must open in
1.5 seconds. Times need a quiet machine.
"""

import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from lab.options import make_parser, read_options
from lab.speed.processes import measured
from qabias.benchmarks import load_benchmark, make_origin
from qabias.report.writing import write_report_of

BENCHMARKS = ("bbq", "unqover", "bbnli")
REPORT = ("-m", "qabias", "report")
MOST_SECONDS, MOST_MEMORY, MOST_BYTES = 20.0, 1e9, 5e6
SINGLE = {100: (0.3, 6e5), 400: (0.6, 6e5), None: (3.0, 4e6)}
"""Most seconds and bytes of the report of one run of BBQ by its number of examples; None: all."""
MOST_TO_OPEN = 1.5
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Single(NamedTuple):
    """The report of one run: processor seconds, their ratio to reading all examples, bytes, and seconds to open."""

    limit: int | None
    seconds: float
    ratio: float
    size: int
    to_open: float | None

    def problems(self, quick: bool) -> list[str]:
        """What exceeds its bound."""
        most_seconds, most_bytes = SINGLE[self.limit]
        name = f"{self.limit or 'all'} examples"
        slow = not quick and (self.seconds >= most_seconds or (self.to_open or 0) >= MOST_TO_OPEN)
        return [f"{name}: too slow"] * slow + [f"{name}: too large a page"] * (self.size >= most_bytes)


def make_run(folder: Path, benchmark: str, limit: int | None) -> Path:
    """The folder of a run; an existing one is reused."""
    target = folder / (benchmark if limit is None else f"{benchmark}-{limit}")
    if not (target / "report.html").exists():
        command = [sys.executable, "-m", "qabias", "run", benchmark, "--model", "baseline:random"]
        sample = [] if limit is None else ["--limit", str(limit)]
        subprocess.run([*command, *sample, "--output", str(target)], stdout=subprocess.DEVNULL, check=True)
    return target


def measure_single(folder: Path, limit: int | None, turns: int) -> Single:
    """Measure the report of a run of BBQ: the best of some turns after one that imports what is needed."""
    run = make_run(folder, "bbq", limit)
    page = write_report_of(run)
    taken, read = [], []
    for _ in range(turns):
        started = time.process_time()
        write_report_of(run)
        between = time.process_time()
        benchmark = load_benchmark("bbq")
        benchmark.load("all", make_origin(benchmark, "bundled", 0, False, {})).to_pylist()
        taken.append(between - started)
        read.append(time.process_time() - between)
    to_open = [seconds_to_open(page) for _ in range(turns)] if CHROMIUM else [None]
    ratio = statistics.median(own / peer for own, peer in zip(taken, read, strict=True))
    return Single(limit, min(taken), ratio, page.stat().st_size, min(filter(None, to_open), default=None))


def seconds_to_open(page: Path) -> float:
    """Clock time from the start of the navigation to the end of loading, as Chromium sees it."""
    source = re.sub(r"<meta http-equiv=\"Content-Security-Policy\"[^>]*>", "", page.read_text(encoding="utf-8"))
    timer = "addEventListener('load', () => { document.title = performance.now(); });"
    with tempfile.TemporaryDirectory() as temporary:
        timed = Path(temporary) / "timed.html"
        timed.write_text(source.replace("</body>", f"<script>{timer}</script></body>"), encoding="utf-8")
        quiet = ["--no-first-run", "--disable-sync", "--disable-background-networking", "--disable-component-update"]
        command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", *quiet]
        command += [f"--user-data-dir={temporary}/profile", "--dump-dom", timed.as_uri()]
        printed = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True).stdout
    match = re.search(r"<title>([\d.]+)</title>", printed)
    if match is None:
        raise RuntimeError(f"Chromium did not load {page}")
    return float(match[1]) / 1000


def main() -> int:
    """Print the measurements; 1 if one exceeds its bound."""
    parser = make_parser(__doc__, limit=(None, 40, "examples of each benchmark"), turns=(3, 1, ""))
    parser.add_argument("--folder", type=Path, help="folder of the runs; by default a temporary one")
    options = read_options(parser)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        runs = [make_run(folder, benchmark, options.limit) for benchmark in BENCHMARKS]
        page = Path(temporary) / "report.html"
        command = [*map(str, runs), "--output", str(page)]
        pairs, pages = [], []
        for _ in range(options.turns):
            pairs.append((measured(*REPORT, "--help"), measured(*REPORT, *command)))
            pages.append(page.read_bytes())
        sizes = [one for one in SINGLE if one or not options.quick]
        singles = [measure_single(folder, one, options.turns) for one in sizes]
    print(f"{'turn':<6}{'seconds':>10}{'nothing, s':>14}{'ratio':>10}{'memory, MB':>14}{'page, MB':>12}")
    for number, ((nothing, report), written) in enumerate(zip(pairs, pages, strict=True), start=1):
        print(
            f"{number:<6}{report.seconds:>10.1f}{nothing.seconds:>14.1f}{report.seconds / nothing.seconds:>10.1f}"
            f"{report.memory / 1e6:>14,.0f}{len(written) / 1e6:>12.2f}"
        )
    reports = [report for _, report in pairs]
    print(f"median ratio {statistics.median(report.seconds / nothing.seconds for nothing, report in pairs):.1f}\n")
    print(f"{'examples':<10}{'seconds':>10}{'ratio':>10}{'page, KB':>12}{'opens, s':>12}")
    for one in singles:
        opens = "n/a" if one.to_open is None else f"{one.to_open:.2f}"
        print(f"{one.limit or 'all':<10}{one.seconds:>10.2f}{one.ratio:>10.2f}{one.size / 1e3:>12,.0f}{opens:>12}")
    problems = [
        *(["two reports of the same runs differ"] if len(set(pages)) > 1 else []),
        *(["too much memory"] if any(report.memory >= MOST_MEMORY for report in reports) else []),
        *(["too large a page"] if any(len(written) >= MOST_BYTES for written in pages) else []),
        *(["too slow"] if not options.quick and any(report.seconds >= MOST_SECONDS for report in reports) else []),
        *(problem for one in singles for problem in one.problems(options.quick)),
    ]
    for problem in problems:
        print(problem, file=sys.stderr)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
