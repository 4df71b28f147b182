"""Bias measured during training."""

from qabias.support.suggest import need

need("local", "BiasCallback")

from qabias.callbacks.bias_callback import BiasCallback  # noqa: E402 - after the check that names the extra

__all__ = ["BiasCallback"]
