"""Simulated benchmarks of which the truth is known: do intervals hold it, and are biases found that are there?"""
