"""How fast qabias is, as a ratio to a named peer on the same machine, and whether both give the same figures.

Every script is a module: `python -m speed.peers`. With `--quick` it takes a small sample and only checks the figures;
the times that it then prints mean nothing.
"""
