"""Verification of a device: every local scorer, compared with float64, plain loops and peak speed."""
