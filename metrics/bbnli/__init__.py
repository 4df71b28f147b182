"""The BBNLI metric as a self-contained `evaluate` module."""
