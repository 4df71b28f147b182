"""Bias measured during training."""

from qabias.callbacks.bias_callback import BiasCallback

__all__ = ["BiasCallback"]
