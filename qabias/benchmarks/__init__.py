"""The benchmarks: one folder each, and what they have in common."""
