"""What commands import, imported once in the process from which they are forked, and parts made small there.

A kill then hits the work of a command and not its imports, and a small run has several parts.
"""

import importlib
import pkgutil

from qabias.benchmarks import load_benchmark
from qabias.scorers.registry import kinds, load_kind

HEAVY = ("datasets", "evaluate", "pyarrow.parquet", "rich.console", "torch", "transformers")
ROOMS = ("benchmarks", "building", "cli", "comparison", "models", "report", "runs", "tables")
UNITS_PER_PART = 6

for _name in HEAVY:
    importlib.import_module(_name)
for _room in ROOMS:
    _package = importlib.import_module(f"qabias.{_room}")
    for _module in pkgutil.walk_packages(_package.__path__, f"{_package.__name__}."):
        importlib.import_module(_module.name)
for _name in kinds():
    load_kind(_name)
for _name in ("bbq", "unqover", "bbnli"):
    load_benchmark(_name).units_per_part = lambda kind: UNITS_PER_PART
