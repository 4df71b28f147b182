"""What tests of all folders need: the mirror of the authors' published files, and quiet, offline libraries."""

import gc
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_OFFLINE", "1")
# Threads that share a tiny model mostly wait for each other, on a busy machine for minutes. Libraries read this when
# they are imported, which no import above does; processes that tests start inherit it.
os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
os.environ["TOKENIZERS_PARALLELISM"] = "false"


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """What imports make stays: to look for garbage among it takes a quarter of the time of finding the tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


# The same examples in every run, and no time limit: a busy machine is no fault.
settings.register_profile(
    "qabias", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("qabias")

# Commands that tests call read the mirror as the tests do, as in CI.
_MIRROR = Path(__file__).resolve().parent.parent / "shared" / "upstream"
if "QABIAS_UPSTREAM" not in os.environ and _MIRROR.is_dir():
    os.environ["QABIAS_UPSTREAM"] = str(_MIRROR)


@pytest.fixture(scope="session")
def upstream() -> Path:
    """The local mirror of the published files; a test that needs it is skipped where there is none."""
    folder = Path(os.environ.get("QABIAS_UPSTREAM") or _MIRROR)
    if not (folder / "nyu-mll" / "BBQ").is_dir():
        pytest.skip(f"no mirror of the published files at {folder} (set QABIAS_UPSTREAM)")
    return folder


@pytest.fixture(scope="module")
def one_thread():
    """One thread of torch, whatever a test before has set."""
    import torch

    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)
