"""Bias measured during training."""

from qabias.support.suggest import need

need("local", "BiasCallback")

from qabias.callbacks.bias_callback import BiasCallback  # noqa: E402

__all__ = ["BiasCallback"]
