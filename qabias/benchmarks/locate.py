"""Where the dataset and metric folders lie: beside the links of a checkout, or in an installed wheel."""

from pathlib import Path

from qabias import share
from qabias.errors import QabiasError

_SHARE = Path(share.__file__).parent


def dataset_folder(benchmark: str) -> Path:
    """The Hub-ready dataset repository of a benchmark, e.g. `toy_dataset`."""
    return _find(f"{benchmark}_dataset", "README.md")


def metric_folder(benchmark: str) -> Path:
    """The `evaluate` module of a benchmark, e.g. `metrics/toy`."""
    return _find(f"metrics/{benchmark}", f"{benchmark}.py")


def _find(name: str, needed: str) -> Path:
    folder = (_SHARE / name).resolve()
    if not (folder / needed).is_file():
        raise QabiasError(f"{name}: not found in {_SHARE}; install qabias again (on Windows: clone with core.symlinks)")
    return folder
