"""Bias measured during training."""

from typing import TYPE_CHECKING, Any

from qabias.support.suggest import need

if TYPE_CHECKING:
    from qabias.callbacks.bias_callback import BiasCallback

__all__ = ["BiasCallback"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    need("local", name)
    from qabias.callbacks.bias_callback import BiasCallback

    return BiasCallback
