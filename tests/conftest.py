"""What several tests need: made-up runs and pages of them."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def filled(tmp_path):
    """A function that fills a run folder with made-up files."""
    from .kit import pages

    return lambda **files: pages.fill_folder(tmp_path / "run", **files)


@pytest.fixture
def page(filled):
    """A function that writes the report of a made-up run and reads it."""
    from qabias.report.writing import write_report_of

    from .kit import pages

    return lambda **files: pages.read_page(write_report_of(filled(**files)))


@pytest.fixture(scope="session")
def compared_runs(tmp_path_factory):
    """Small runs of every benchmark by name, which no test may change."""
    from .kit.runs import make_runs

    return make_runs(tmp_path_factory.mktemp("compared"))


@pytest.fixture(scope="session")
def checked_runs(tmp_path_factory):
    """Runs that keep limits, break them, or cannot tell, which no test may change."""
    from .kit.runs import make_checked

    return make_checked(tmp_path_factory.mktemp("checked"))
