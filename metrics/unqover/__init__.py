"""The UnQover metric as a self-contained `evaluate` module."""
