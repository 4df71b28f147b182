"""The BBQ metric as a self-contained `evaluate` module."""
