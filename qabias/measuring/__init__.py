"""Measuring a model: the one place that knows benchmarks, scorers, runs and reports."""
