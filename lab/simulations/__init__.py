"""Simulated benchmarks with known true scores: coverage of intervals, and power to detect biases."""
