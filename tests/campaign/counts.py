"""How much of the campaign is run, and what it counted.

`make campaign` runs everything and fails where a count is below that of the review; `make campaign QUICK=1` runs a
fixed share of every kind. Workers write what they counted line by line into one folder; the first process adds it up.
"""

import json
import os
import shutil
import signal
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

SEED = 21
"""Of every random draw of the campaign."""

PAGES = "pages in Chromium"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
"""The browser that opens pages; None where there is none."""

REQUIRED = {
    "corrupted metric calls": 44_879,
    "command lines": 646,
    "kills": 171,
    "resumes after a kill": 103,
    "server requests": 4_185,
    PAGES: 55,
    "bad downloads": 61,
    "flips of parts": 500,
    "starts of two different runs": 200,
}
"""What the whole campaign counts at least: the counts of the review."""

QUICK_SHARE = 20
"""A quick campaign does one of so many."""

FULL = os.environ.get("QABIAS_CAMPAIGN") == "full"
FOLDER = "QABIAS_CAMPAIGN_COUNTS"
"""Environment variable with the folder of the counts."""

Case = TypeVar("Case")


class HangError(BaseException):
    """Something did not end in its time; no code under test catches it."""


def size(full: int, quick: int | None = None) -> int:
    """How many there are to do: `full` ones, or in a quick campaign `quick` ones, by default the share."""
    if FULL:
        return full
    return max(1, full // QUICK_SHARE) if quick is None else quick


def chosen(cases: Sequence[Case], quick: int | None = None) -> list[Case]:
    """All cases of a table, or in a quick campaign so many of them, evenly over the table."""
    n = min(size(len(cases), quick), len(cases))
    return [cases[i * len(cases) // n] for i in range(n)]


def count(kind: str, n: int = 1, **outcomes: int) -> None:
    """Add `n` of a kind, and how they ended by name, such as `refused=3`."""
    folder = os.environ.get(FOLDER)
    if folder is None:
        return
    with (Path(folder) / f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"kind": kind, "n": n, "outcomes": outcomes}) + "\n")


def gather(folder: Path) -> dict[str, tuple[int, Counter[str]]]:
    """For each kind the number and the numbers of its outcomes, over all processes."""
    numbers: Counter[str] = Counter()
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text("utf-8").splitlines():
            record = json.loads(line)
            numbers[record["kind"]] += record["n"]
            outcomes[record["kind"]].update(record["outcomes"])
    return {kind: (numbers[kind], outcomes[kind]) for kind in numbers}


def required(kind: str) -> int:
    """How many of a kind this campaign counts at least; 0 for a kind that the review did not count.

    Without Chromium no pages are required, because none can be opened.
    """
    if kind == PAGES and CHROMIUM is None:
        return 0
    return size(REQUIRED[kind]) if kind in REQUIRED else 0


def below(found: dict[str, tuple[int, Counter[str]]]) -> list[str]:
    """The kinds of which too few were counted."""
    return [kind for kind in REQUIRED if found.get(kind, (0, Counter()))[0] < required(kind)]


class TimeLimit:
    """Raises `HangError` in what has not ended after so many seconds. No generator, which could be left half done."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.before: object = None

    def _end(self, *_: object) -> None:
        raise HangError(f"not ended after {self.seconds:g} seconds")

    def __enter__(self) -> None:
        self.before = signal.signal(signal.SIGALRM, self._end)
        signal.setitimer(signal.ITIMER_REAL, self.seconds)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.before)


def time_limit(seconds: float) -> TimeLimit:
    """Raise `HangError` in what has not ended after so many seconds."""
    return TimeLimit(seconds)
