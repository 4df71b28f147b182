"""The campaign against everything that may go wrong: no test of it runs where it was not asked for."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark every test of this folder, so that neither fast nor slow tests hold it."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.campaign)
            item.add_marker(pytest.mark.slow)
