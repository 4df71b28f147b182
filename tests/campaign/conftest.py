"""The campaign against everything that may go wrong: marked, sized and counted."""

import os
import tempfile
from pathlib import Path

import pytest

from . import counts

HERE = Path(__file__).parent


def pytest_configure(config):
    """The first process makes the folder of the counts; its workers find it in their environment."""
    if not hasattr(config, "workerinput"):
        config.campaign_folder = tempfile.TemporaryDirectory(prefix="qabias-campaign-")
        os.environ[counts.FOLDER] = config.campaign_folder.name


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """No test of the campaign runs where it was not asked for: neither among fast tests nor among slow ones."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.campaign)
            item.add_marker(pytest.mark.slow)


def _asked_for_all(config) -> bool:
    """Whether the whole folder is run, not a file or a test of it."""
    return any(Path(argument).resolve() == HERE for argument in config.args) and not config.option.keyword


def pytest_sessionfinish(session):
    """Too few of a kind are a failure."""
    folder = getattr(session.config, "campaign_folder", None)
    whole = folder and _asked_for_all(session.config) and session.exitstatus == pytest.ExitCode.OK
    if whole and counts.below(counts.gather(Path(folder.name))):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter, config):
    """What was counted beside what the review counted."""
    folder = getattr(config, "campaign_folder", None)
    found = counts.gather(Path(folder.name)) if folder else {}
    whole = _asked_for_all(config)
    if not found and not whole:
        return
    terminalreporter.section(f"campaign, {'full' if counts.FULL else 'quick'}")
    kinds = [*counts.REQUIRED, *(kind for kind in found if kind not in counts.REQUIRED)]
    width = max(map(len, kinds))
    terminalreporter.line(f"{'kind':<{width}} {'done':>8} {'at least':>8} {'review':>8}  outcomes")
    for kind in kinds:
        n, outcomes = found.get(kind, (0, {}))
        said = ", ".join(f"{name} {number:,}" for name, number in sorted(outcomes.items()))
        review = f"{counts.REQUIRED[kind]:,}" if kind in counts.REQUIRED else ""
        terminalreporter.line(f"{kind:<{width}} {n:>8,} {counts.required(kind):>8,} {review:>8}  {said}")
    if counts.CHROMIUM is None:
        terminalreporter.line("no Chromium: pages not opened", yellow=True)
    for kind in counts.below(found) if whole else ():
        n, _ = found.get(kind, (0, {}))
        terminalreporter.line(f"too few {kind}: {n:,} of {counts.required(kind):,}", red=True)
    folder.cleanup()
