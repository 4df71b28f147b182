"""Where the dataset and metric folders lie, in a checkout and in an installed wheel."""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from qabias.errors import QabiasError

_PACKAGE = Path(__file__).parent.parent


def dataset_folder(benchmark: str) -> Path:
    """The Hub-ready dataset repository of a benchmark, e.g. `toy_dataset`."""
    return _find(f"{benchmark}_dataset", "README.md")


def metric_folder(benchmark: str) -> Path:
    """The `evaluate` module of a benchmark, e.g. `metrics/toy`."""
    return _find(f"metrics/{benchmark}", f"{benchmark}.py")


def _find(name: str, needed: str) -> Path:
    # A wheel carries the folders inside the package, a checkout beside it.
    for folder in (_PACKAGE / "share" / name, _PACKAGE.parent / name):
        if (folder / needed).is_file():
            return folder
    raise QabiasError(f"{name}: not found beside or inside {_PACKAGE}; install qabias again")


def dataset_module(benchmark: str, module: str) -> ModuleType:
    """Import a module of a dataset folder, e.g. `dataset_module("toy", "builder")`."""
    package = f"{benchmark}_dataset"
    folder = _PACKAGE / "share" / package
    if not (folder / "__init__.py").is_file():
        folder = _PACKAGE.parent / package
    return _import(package, folder, module)


def metric_module(benchmark: str, module: str) -> ModuleType:
    """Import a module of a metric folder that needs no `evaluate`, e.g. `metric_module("toy", "scores")`."""
    return _import(f"{benchmark}_metric", metric_folder(benchmark), module)


def _import(package: str, folder: Path, module: str) -> ModuleType:
    loaded = sys.modules.get(package)
    if loaded is None or folder.resolve() not in [Path(entry).resolve() for entry in loaded.__path__]:
        spec = importlib.util.spec_from_file_location(
            package, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        if spec is None or spec.loader is None or not (folder / "__init__.py").is_file():
            raise QabiasError(f"{package}: not found beside or inside {_PACKAGE}; install qabias again")
        loaded = importlib.util.module_from_spec(spec)
        sys.modules[package] = loaded
        spec.loader.exec_module(loaded)
    return importlib.import_module(f"{package}.{module}")
