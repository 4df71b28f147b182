"""An interrupted run keeps every finished batch, and ends with the bytes of one that was not interrupted."""

import os
import signal
import subprocess
import sys
import time

import pytest

from qabias.runs.arguments import Machine
from qabias.runs.run import run
from qabias.scorers import batches
from tests.campaign.helpers import contents, hidden

from .kit.commands import command
from .saved_models import save
from .test_api_models import HEADS
from .test_checkpoints import asked
from .tiny_models import make_model, make_tokenizer

QUIET = Machine(batch_tokens=600, shows_progress=False)


class StopAfter:
    """Lets so many batches be computed, and raises like Ctrl-C before the next one."""

    def __init__(self, monkeypatch):
        self.left, self.n = None, 0
        compute = batches.TokenBudget.fitting

        def counted(budget, content, ask):
            def one():
                if self.left is not None:
                    if not self.left:
                        raise KeyboardInterrupt
                    self.left -= 1
                self.n += 1
                return ask()

            return compute(budget, content, one)

        monkeypatch.setattr(batches.TokenBudget, "fitting", counted)


@pytest.mark.slow
@pytest.mark.parametrize("head", HEADS)
def test_a_run_that_is_interrupted_again_and_again_ends_with_the_same_bytes(head, tmp_path, monkeypatch):
    folder = save(tmp_path / "model", *HEADS[head][0]())
    arguments, ask = asked(head, folder)
    stop = StopAfter(monkeypatch)
    run(arguments, tmp_path / "whole", QUIET, ask=ask)
    whole, n_batches = contents(tmp_path / "whole"), stop.n
    assert n_batches > 3
    stop.n = n_interrupted = 0
    for stop.left in (1, 2, 3, 5, 8, 13, 21, 34):
        try:
            run(arguments, tmp_path / "run", QUIET, ask=ask)
            break
        except KeyboardInterrupt:
            n_interrupted += 1
    stop.left = None
    assert run(arguments, tmp_path / "run", QUIET, ask=ask).scores
    assert contents(tmp_path / "run") == whole
    assert hidden(tmp_path / "run") == []
    assert n_interrupted >= 2
    # Nothing is computed twice but a probe at each start, and batches of encoder states that have several of options.
    assert stop.n <= n_batches + 2 * n_interrupted + 2


def test_batches_of_another_size_are_computed_again(tmp_path, monkeypatch):
    folder = save(tmp_path / "model", *HEADS["causal"][0]())
    arguments, _ = asked("causal", folder)
    stop = StopAfter(monkeypatch)
    stop.left = 4
    with pytest.raises(KeyboardInterrupt):
        run(arguments, tmp_path / "run", QUIET)
    stop.left, other = None, Machine(batch_tokens=300, shows_progress=False)
    for name in ("run", "whole"):
        run(arguments, tmp_path / name, other)
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff\x00\n" * 9])
def test_kept_batches_that_are_damaged_are_computed_again(damage, tmp_path, monkeypatch):
    folder = save(tmp_path / "model", *HEADS["causal"][0]())
    arguments, _ = asked("causal", folder)
    run(arguments, tmp_path / "whole", QUIET)
    stop = StopAfter(monkeypatch)
    stop.left = 4
    with pytest.raises(KeyboardInterrupt):
        run(arguments, tmp_path / "run", QUIET)
    (kept,) = hidden(tmp_path / "run")
    kept.write_bytes(kept.read_bytes()[:-9] + damage)
    stop.left = None
    run(arguments, tmp_path / "run", QUIET)
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")


def test_what_a_kill_leaves_after_the_part_is_removed_at_the_end(tmp_path):
    folder = save(tmp_path / "model", *HEADS["causal"][0]())
    arguments, _ = asked("causal", folder)
    run(arguments, tmp_path / "run", QUIET)
    (tmp_path / "run" / "predictions" / ".part-00000.batches.jsonl").write_bytes(b"{}\n")
    run(arguments, tmp_path / "run", QUIET)
    assert hidden(tmp_path / "run") == []


@pytest.fixture(scope="module")
def asks(tmp_path_factory):
    """A command for a run of one part, and the folder of one that was not stopped."""
    folder = tmp_path_factory.mktemp("asked")
    model = save(folder / "model", make_model("llama", max_position_embeddings=2048), make_tokenizer())
    words = ["run", "bbq", "--config", "Age", "--limit", "256", "--no-report"]
    words += ["--model", model, "--batch-tokens", "500"]
    assert command(*words, "--output", folder / "whole").code == 0
    return words, folder / "whole"


@pytest.mark.slow
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_a_command_that_is_stopped_within_its_first_part_has_kept_answers(sign, tmp_path, asks):
    words, whole = [*asks[0], "--output", str(tmp_path / "run")], asks[1]
    stopped = subprocess.Popen([sys.executable, "-m", "qabias", *words], stderr=subprocess.PIPE, text=True)
    kept = tmp_path / "run" / "predictions" / ".part-00000.batches.jsonl"
    while stopped.poll() is None and not (kept.exists() and kept.stat().st_size > 2000):
        time.sleep(0.01)
    os.kill(stopped.pid, sign)
    _, said = stopped.communicate()
    assert kept.stat().st_size > 2000
    if sign == signal.SIGINT:
        assert stopped.returncode == 130
        assert "kept" in said
    assert command(*words).code == 0
    assert contents(tmp_path / "run") == contents(whole)
    assert hidden(tmp_path / "run") == []
