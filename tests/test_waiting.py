"""Coroutines run on one loop in the background, whatever they raise."""

import asyncio
import traceback

import pytest

from qabias.support.waiting import wait_for


async def _answer():
    await asyncio.sleep(0)
    return 42


def test_a_result_comes_back_also_inside_a_running_loop():
    async def notebook():
        return wait_for(_answer())

    assert wait_for(_answer()) == asyncio.run(notebook()) == 42


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit("no key"), KeyboardInterrupt(), GeneratorExit()])
def test_whatever_is_raised_reaches_the_caller_and_the_loop_lives_on(error):
    async def fails():
        raise error

    with pytest.raises(type(error)) as caught:
        wait_for(fails())
    assert caught.value is error
    assert "fails" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert wait_for(_answer()) == 42
