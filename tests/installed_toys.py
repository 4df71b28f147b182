"""The packages `tests/toy_benchmark` and `tests/toy_scorer`, installed in a folder, and commands that find them there.

Entry points are read once in a process, so every user of the packages is a process of its own.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from .conftest import ROOT

PACKAGES = ("toy_benchmark", "toy_scorer")
TOYS = ROOT / "tests"

_SERVANT = """
import contextlib, io, json, sys, traceback
from qabias.cli import main

results = []
for command in json.load(sys.stdin):
    sys.argv = ["qabias", *command]
    code, text = 0, io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        except Exception:
            code = 1
            traceback.print_exc()
    results.append([code, text.getvalue()])
json.dump(results, sys.stdout)
"""


class Result(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    output: str


def install(folder: Path) -> Path:
    """Install both packages without a network into a folder for `PYTHONPATH`; returns it."""
    sources = []
    for name in PACKAGES:  # pip builds in the folder that it is given
        sources.append(folder / "source" / name)
        shutil.copytree(TOYS / name, sources[-1], ignore=shutil.ignore_patterns("__pycache__"))
    options = ("--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check")
    target = folder / "site"
    command = [sys.executable, "-m", "pip", "install", *options, "--target", target, *sources]
    subprocess.run(command, check=True, capture_output=True)
    return target


def environment(site: Path) -> dict[str, str]:
    """The environment of a process that finds the packages."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(site)])}


def run_commands(site: Path, commands: Sequence[Sequence[str]], folder: Path) -> list[Result]:
    """What `qabias ARGUMENTS` does for every command, one after the other in one process: imports take most time."""
    done = subprocess.run(
        [sys.executable, "-c", _SERVANT],
        input=json.dumps([list(command) for command in commands]),
        env=environment(site),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [Result(*result) for result in json.loads(done.stdout)]
