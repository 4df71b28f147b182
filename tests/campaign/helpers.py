"""How much of the campaign is run, commands in this process, and what a folder of results holds."""

import contextlib
import json
import os
import re
import signal
from collections.abc import Sequence
from typing import TypeVar

from qabias.building.folder import MARK
from tests.kit.commands import Ended as Ended
from tests.kit.commands import command as command

SEED = 21
"""Of every random draw of the campaign."""
QUICK_SHARE = 20
"""A quick campaign does one of so many."""
FULL = os.environ.get("QABIAS_CAMPAIGN") == "full"
LOCK = ".lock"
"""How the names of the files begin by which commands wait for each other."""
_TIMES = re.compile(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2} UTC")

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


class TimeLimit:
    """Raises `HangError` in what has not ended after so many seconds. No generator, which could be left half done."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def _end(self, *_: object) -> None:
        raise HangError(f"not ended after {self.seconds:g} seconds")

    def __enter__(self) -> None:
        self.before = signal.signal(signal.SIGALRM, self._end)
        signal.setitimer(signal.ITIMER_REAL, self.seconds)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.before)


def contents(folder):
    """The files of a folder but locks, by their path there: `run.json` and pages without times, else the bytes."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.startswith(LOCK)]
    return {path.relative_to(folder).as_posix(): _content(path) for path in files}


def hidden(folder):
    """The files that a killed command has left; locks, and the mark by which `build` knows its folder, are none."""
    return [path for path in folder.rglob(".*") if path.is_file() and not path.name.startswith((MARK, LOCK))]


def _content(path):
    if path.name == "run.json":
        content = json.loads(path.read_text("utf-8"))
        return {name: value for name, value in content.items() if name not in ("created", "sha256")}
    if path.suffix == ".html":
        return _TIMES.sub("TIME", path.read_text("utf-8"))
    if path.name == "requests.jsonl":
        return answers(path)
    return path.read_bytes()


def answers(journal):
    """The answers of a request log, as JSON, by their request; a torn line holds none."""
    entries = {}
    for line in journal.read_text("utf-8", errors="replace").splitlines():
        with contextlib.suppress(ValueError):
            entry = json.loads(line)
            entries[entry["request"]] = json.dumps(entry["answer"])
    return entries
