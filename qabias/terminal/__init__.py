"""Scores, tables, templates and comparisons in the terminal."""
