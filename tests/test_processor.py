"""A machine that others use too: threads that wait sleep, and no more of them than the user says."""

import os
import subprocess
import sys

import pytest

from .conftest import ROOT

# What `qabias --version` has set when it ends, and what torch makes of it.
SHOW = """
import os, sys
from qabias import cli
sys.argv = ["qabias", "--version"]
try:
    cli.main()
except SystemExit:
    pass
assert "torch" not in sys.modules
import torch
print(os.environ["OMP_WAIT_POLICY"], torch.get_num_threads())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "found"),
    [({}, "PASSIVE 1"), ({"OMP_WAIT_POLICY": "ACTIVE", "OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}, "ACTIVE 2")],
)
def test_the_command_line_lets_threads_sleep_and_leaves_what_the_user_has_set(given, found):
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"} | given
    shown = subprocess.run(
        [sys.executable, "-c", SHOW], env=environment, cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert shown.stdout.splitlines()[-1] == found
