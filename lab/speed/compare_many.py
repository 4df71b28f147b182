"""Time and memory of `qabias compare` over many runs, and the runs' size on the disk.

The runs' models are functions that answer BBQ's Age at random, each with its own seed, some with a bias. Existing runs
in the folder are reused; pages are not written. `qabias compare` runs in its own process. The table has clock and
processor seconds and the largest memory; the ratio is to `qabias compare` of two runs.

    python -m lab.speed.compare_many --folder runs/compare_many
    python -m lab.speed.compare_many --quick

Exits with 1 if a run is missing in the comparison, or, with 1,000 runs or more, if it takes 60 seconds or 2 GB.
"""

import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from tqdm import tqdm

from lab.options import make_parser, read_options
from lab.speed.processes import Measured, measured
from qabias.runs.arguments import Machine, RunArguments
from qabias.runs.run import run
from qabias.scorers.base import Request

CONFIG = "Age"
MANY, MOST_SECONDS, MOST_MEMORY = 1000, 60.0, 2e9


def answer(rng: np.random.Generator, requests: list[Request]) -> list[list[float]]:
    """Log-likelihoods of the options of every request, at random."""
    return [np.log(rng.dirichlet(np.ones(len(request.options)))).tolist() for request in requests]


def make_runs(folder: Path, n_runs: int, limit: int | None) -> list[Path]:
    """The folders of the runs; existing ones are reused."""
    folders = [folder / f"{'all' if limit is None else limit}-{number:04d}" for number in range(n_runs)]
    for number, target in enumerate(tqdm(folders, unit="run", desc="making runs")):
        name = f"function:seed {number}"
        arguments = RunArguments("bbq", name, CONFIG, limit=limit, backend="function", options={"mode": "score"})
        function = partial(answer, np.random.default_rng(number))
        run(arguments, target, Machine(shows_progress=False), handed_over=function)
    return folders


def compare(runs: list[Path], output: Path) -> Measured:
    """Compare runs in a separate process."""
    return measured("-m", "qabias", "compare", *map(str, runs), "--output", str(output))


def main() -> int:
    """Print the measurements; 1 if one exceeds its bound."""
    parser = make_parser(__doc__, runs=(MANY, 6, ""), limit=(None, 40, "examples of each run"))
    parser.add_argument("--folder", type=Path, help="folder of the runs; by default a temporary one")
    options = read_options(parser)
    with tempfile.TemporaryDirectory() as temporary:
        runs = make_runs(options.folder or Path(temporary), options.runs, options.limit)
        two = compare(runs[:2], Path(temporary) / "two")
        many = compare(runs, Path(temporary) / "many")
        on_disk = sum(path.stat().st_size for path in runs[0].rglob("*") if path.is_file())
        page = (Path(temporary) / "many" / "compare.html").stat().st_size
        tables = (Path(temporary) / "many" / "analysis.json").read_text("utf-8")
    print(f"{'runs':>6}{'seconds':>10}{'busy, s':>10}{'memory, MB':>13}")
    for n, found in ((2, two), (options.runs, many)):
        print(f"{n:>6}{found.seconds:>10.1f}{found.busy:>10.1f}{found.memory / 1e6:>13,.0f}")
    print(f"ratio {many.seconds / two.seconds:.1f}; page {page / 1e6:.2f} MB; a run takes {on_disk / 1e3:,.0f} kB")
    problems = []
    if any(f"seed {number}" not in tables for number in range(options.runs)):
        problems.append("a run is missing in the comparison")
    if options.runs >= MANY and many.seconds >= MOST_SECONDS:
        problems.append("too slow")
    if options.runs >= MANY and many.memory >= MOST_MEMORY:
        problems.append("too much memory")
    for problem in problems:
        print(problem, file=sys.stderr)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
