"""How far a run is: told batch by batch, shown as a bar on a terminal and as a line a minute elsewhere."""

import io

import numpy as np
import pyarrow.parquet as pq
import pytest

import qabias
from qabias.runs.run import RunProgress
from qabias.scorers.batches import TokenBudget
from qabias.support.progress import listening, tell, within

from . import tiny_models
from .test_api_models import HEADS


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock():
    return Clock()


def test_elsewhere_there_is_a_line_a_minute_with_rate_and_time_left(clock):
    stream = io.StringIO()
    progress = RunProgress("bbq", 1000, 100, stream, clock)
    with progress.part(300):
        for share in range(1, 11):
            clock.now += 15
            tell(share / 10)
    progress.close()
    # 120 examples in 60 s, 240 in 120 s.
    assert stream.getvalue().splitlines() == [
        "bbq: 220 of 1,000 examples, 2 examples/s, time left 06:30",
        "bbq: 340 of 1,000 examples, 2 examples/s, time left 05:30",
    ]
    stream.truncate(0)
    progress = RunProgress("bbq", 1000, 0, stream, clock)
    with progress.part(10):
        clock.now += 59
        assert stream.getvalue() == ""
        clock.now += 2
        tell(0.01)
    assert "time left unknown" in stream.getvalue()


def test_on_a_terminal_the_bar_moves_within_a_part_and_never_back():
    stream = Terminal()
    progress = RunProgress("bbq", 100, 0, stream)
    stood = []
    with progress.part(100):
        for share in (0.25, 0.5, 0.4, 0.75):
            tell(share)
            stood.append(progress._bar.n)
    assert stood == [25, 50, 50, 75]
    progress.close()
    assert "100/100" in stream.getvalue()
    assert "example/s" in stream.getvalue()


def test_a_part_that_fails_is_not_counted():
    progress = RunProgress("bbq", 100, 0, Terminal())
    with pytest.raises(ValueError, match="broken"), progress.part(100):
        raise ValueError("broken")
    assert progress._bar.n == 0
    tell(0.5)  # nobody listens any more
    assert progress._bar.n == 0


def test_a_step_tells_of_its_share_of_the_task():
    heard = []
    with listening(heard.append):
        with within(0.5, 0.75):
            tell(0)
            tell(0.5)
            with within(0.5, 1):
                tell(1)
        tell(1)
    assert heard == [0.5, 0.625, 0.75, 1]


def test_a_batch_counts_by_its_tokens_and_one_that_does_not_fit_not_at_all():
    loaded = tiny_models.load(tiny_models.make_model("llama"))
    heard, asked = [], []

    def ask(chosen):
        if len(chosen) > 2:
            raise RuntimeError("out of memory")
        asked.append(chosen)
        return chosen.tolist()

    with listening(heard.append):
        results = TokenBudget(loaded, "seq2seq", 40).run([*"abcde"], [1, 10, 4, 5, 10], ask)
    assert results == [0, 1, 2, 3, 4]
    assert [len(chosen) for chosen in asked] == [2, 1, 1, 1]
    assert np.allclose(heard, [20 / 30, 25 / 30, 29 / 30, 1])


@pytest.mark.slow
@pytest.mark.parametrize("head", HEADS)
def test_the_progress_of_a_run_moves_with_the_batches_of_every_scorer(head, monkeypatch):
    stood = set()
    shown = RunProgress._show
    monkeypatch.setattr(RunProgress, "_show", lambda self, done: (stood.add(done), shown(self, done)))
    make, arguments, _ = HEADS[head]
    model, tokenizer = make()
    measured = qabias.run(**arguments, model=model, tokenizer=tokenizer, name="mine", limit=32, batch_tokens=600)
    assert len(stood) > 5
    assert max(stood) == pq.read_table(measured.folder / "predictions").num_rows
