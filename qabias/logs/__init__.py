"""Logs that other evaluation tools write, sample by sample."""

from qabias.logs.model import Log, Sample

__all__ = ["Log", "Sample"]
