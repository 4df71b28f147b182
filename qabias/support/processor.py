"""Sharing the processor with other programs."""

import os


def wait_passively() -> None:
    """Let threads of torch that wait for each other sleep, where the user has not said how they wait."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
