"""Proof of a device: every local scorer on it, held against float64, plain loops and what the device can do."""
