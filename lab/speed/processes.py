"""Time and own memory of a whole Python process.

A process begins with its parent's largest memory, so a small process starts it.
"""

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

# Started without site-packages; writes what it measured into the file that its first argument names.
_BETWEEN = """
import json, resource, subprocess, sys, time
started = time.perf_counter()
code = subprocess.run(sys.argv[2:]).returncode
seconds = time.perf_counter() - started
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
unit = 1 if sys.platform == "darwin" else 1024  # Linux counts KiB
found = {"seconds": seconds, "busy": usage.ru_utime + usage.ru_stime, "memory": usage.ru_maxrss * unit}
with open(sys.argv[1], "w") as file:
    json.dump(found, file)
sys.exit(code if code >= 0 else 1)
"""


@dataclass(frozen=True)
class Measured:
    """One process.

    Attributes:
        seconds: Clock time of the process, from start to end.
        busy: Processor time, which depends less on other processes.
        memory: Largest resident memory of the process, in bytes.
        printed: Its output.
    """

    seconds: float
    busy: float
    memory: int
    printed: str


def measured(*arguments: str) -> Measured:
    """Run Python with some arguments."""
    with tempfile.TemporaryDirectory() as folder:
        figures = Path(folder) / "figures.json"
        command = [sys.executable, "-I", "-S", "-c", _BETWEEN, str(figures), sys.executable, *arguments]
        printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        return Measured(**json.loads(figures.read_text()), printed=printed)
