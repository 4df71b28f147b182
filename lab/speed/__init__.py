"""Speed of qabias relative to a named peer on the same machine, with a check that both give the same results.

Every script is a module: `python -m lab.speed.peers`. With `--quick` it takes a small sample and only checks the
results; its times mean nothing.
"""
