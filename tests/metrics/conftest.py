"""The metrics, loaded as a user loads them."""

from typing import Any

import evaluate
import pytest

from .helpers import folder


@pytest.fixture(scope="module")
def bbq() -> Any:
    return evaluate.load(str(folder("bbq")))


@pytest.fixture(scope="module")
def bbnli() -> Any:
    return evaluate.load(str(folder("bbnli")))


@pytest.fixture(scope="module")
def unqover() -> Any:
    return evaluate.load(str(folder("unqover")))
