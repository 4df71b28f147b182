"""What several tests need: the mirror of the authors' published files, and quiet, offline libraries."""

import os
from pathlib import Path

import pytest
import torch

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_OFFLINE", "1")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def upstream() -> Path:
    """The local mirror of the published files; a test that needs it is skipped where there is none."""
    folder = Path(os.environ.get("QABIAS_UPSTREAM") or ROOT.parent / "shared" / "upstream")
    if not (folder / "nyu-mll" / "BBQ").is_dir():
        pytest.skip(f"no mirror of the published files at {folder} (set QABIAS_UPSTREAM)")
    return folder


@pytest.fixture(scope="module")
def one_thread():
    """Threads that share a tiny model mostly wait for each other."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)


@pytest.fixture
def filled(tmp_path):
    """A function that fills a run folder with made-up files."""
    from . import report_pages

    return lambda **files: report_pages.fill_folder(tmp_path / "run", **files)


@pytest.fixture
def page(filled):
    """A function that writes the report of a made-up run and reads it."""
    from qabias.report import write_report_of

    from . import report_pages

    return lambda **files: report_pages.read_page(write_report_of(filled(**files)))


@pytest.fixture(scope="session")
def compared_runs(tmp_path_factory):
    """Small runs of every benchmark by name, which no test may change."""
    from .compared_runs import make_runs

    return make_runs(tmp_path_factory.mktemp("compared"))


@pytest.fixture(scope="session")
def checked_runs(tmp_path_factory):
    """Runs that keep limits, break them, or cannot tell, which no test may change."""
    from .compared_runs import make_checked

    return make_checked(tmp_path_factory.mktemp("checked"))
