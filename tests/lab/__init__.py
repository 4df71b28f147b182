"""Tests of `lab/`."""
