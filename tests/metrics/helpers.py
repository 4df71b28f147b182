"""What the tests of all metrics need."""

from __future__ import annotations

import importlib
import math
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def folder(name: str) -> Path:
    """The folder of a metric."""
    return ROOT / "metrics" / name


def inner_module(name: str, module: str) -> ModuleType:
    """A module of a metric as the engine imports it."""
    return importlib.import_module(f"qabias.share.metrics.{name}.{module}")


def quiet(metric: Any, **arguments: Any) -> dict[str, Any]:
    """A result without the warnings of the metric."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return metric.compute(**arguments)


def unsigned(result: dict[str, Any]) -> dict[str, Any]:
    """A result without its signature, as the parts of a breakdown have none."""
    return {name: value for name, value in result.items() if name != "signature"}


def same(left: Any, right: Any, tolerance: float = 1e-12) -> bool:
    """Whether two results are equal but for rounding, NaN being equal to itself."""
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key], tolerance) for key in left)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(same(a, b, tolerance) for a, b in zip(left, right, strict=True))
    if isinstance(left, str):
        return left == right
    return math.isclose(left, right, abs_tol=tolerance) or (math.isnan(left) and math.isnan(right))
