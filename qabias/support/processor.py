"""Sharing the processor with other programs."""

import os


def wait_passively() -> None:
    """Let threads of torch that wait for each other sleep, where the user has not said how they wait.

    By default they spin. On a machine that others use too, the thread that all wait for may not be running, and those
    that spin take the processor from it: a tiny model then takes minutes in place of seconds. OpenMP reads this when
    torch is imported, which must come later. How many threads there are stays what `OMP_NUM_THREADS` says.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
