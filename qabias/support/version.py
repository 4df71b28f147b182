"""The version of this package, importable from every room."""

__version__ = "0.1.0"
