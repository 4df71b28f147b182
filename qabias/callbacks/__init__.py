"""Bias measured while a model is trained."""

from qabias.callbacks.bias_callback import BiasCallback

__all__ = ["BiasCallback"]
