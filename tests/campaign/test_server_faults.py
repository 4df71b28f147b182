"""A server that misbehaves in every known way: nothing is lost, nothing asked twice, and no key is told."""

import random
import time
import tracemalloc
from typing import NamedTuple

import pytest

from tests.faulty_server import AGAIN, ANSWER, ENDS, FAULTS, start
from tests.faulty_server import serve_faults as serve_faults
from tests.loopback_server import KEY
from tests.loopback_server import surroundings as surroundings

from .helpers import SEED, answers, chosen, command, contents, hidden, is_one_line

pytestmark = pytest.mark.usefixtures("surroundings")

LIMIT = 48
SLOW = ("6-seconds-away", "slow-loris-body", "slow-loris-headers")
"""Faults that take seconds each: one request meets them, and the times are short."""

LARGE = ("endless-", "gzip-", "length-of-", "content-5-MB")
"""How the names of faults begin whose bodies may be large: memory is watched, which is slow."""

TIMES = {"timeout": 60}
SHORT = {"timeout": 1}

SPOILED = {AGAIN: 16, ANSWER: 4, ENDS: 2}
"""Requests that meet a fault, the first time, or every time."""

LONGEST = 120.0
MOST_MEMORY = 200_000_000
"""Bytes of all objects that are made during a run, at any moment; an endless body has 400 MB."""

KEY_FORMS = (KEY, KEY[:12])


class Undisturbed(NamedTuple):
    """What a run holds whose server has no fault, and the prompts that it sent."""

    contents: dict
    prompts: list


def _healthy(text, attempt):
    return None


def _run(server, folder, times=TIMES):
    named = ("--scorer", "server", "--model", "m", "--config", "Religion", "--limit", LIMIT, "--output", folder)
    options = {"url": server.url, "concurrency": 4, **times}
    return command("run", "bbq", *named, *(f"--option={name}={value}" for name, value in options.items()))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    server = start(_healthy)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_PROXY", "127.0.0.1")
        patch.setenv("QABIAS_API_KEY", KEY)
        ended = _run(server, folder)
    server.shutdown()
    server.server_close()
    assert ended.code == 0, ended
    return Undisturbed(contents(folder), sorted(server.attempts))


@pytest.mark.parametrize("name", chosen(list(FAULTS), quick=8))
def test_a_fault_of_a_server_loses_nothing_asks_nothing_twice_and_tells_no_key(
    name, serve_faults, undisturbed, tmp_path
):
    outcome = FAULTS[name].outcome
    n_spoiled = 1 if name in SLOW else SPOILED[outcome]
    spoiled = set(random.Random(f"{SEED} {name}").sample(undisturbed.prompts, n_spoiled))
    n_attempts = 1 if outcome == AGAIN else 10**9
    server = serve_faults(lambda text, attempt: name if attempt < n_attempts and text in spoiled else None)
    begun = time.monotonic()
    if name.startswith(LARGE):
        tracemalloc.start()
    try:
        ended = _run(server, tmp_path / "run", SHORT if name in SLOW else TIMES)
        _, most_memory = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert time.monotonic() - begun < LONGEST
    assert most_memory < MOST_MEMORY
    all_ended = [ended]
    assert set(server.faults) == {name}
    if outcome == ENDS:
        assert ended.code == 2, ended
        assert is_one_line(ended.err), ended.err
        assert "Traceback" not in ended.err
        assert _n_answers(tmp_path / "run") == len(server.answered.keys() & undisturbed.prompts)
        server.fault = _healthy
        all_ended.append(_run(server, tmp_path / "run"))
    assert all_ended[-1].code == 0, all_ended
    for text in undisturbed.prompts:  # there may be a test request beside them
        assert server.attempts[text] == 1 or text in spoiled
        assert 1 <= server.attempts[text] <= 2 or outcome != AGAIN
    held = contents(tmp_path / "run")
    if outcome == ANSWER:
        # The others have the answers of always.
        common = undisturbed.contents["requests.jsonl"].items() & held["requests.jsonl"].items()
        assert len(common) >= LIMIT - n_spoiled
    else:
        assert held == undisturbed.contents
    assert hidden(tmp_path / "run") == []
    _tells_no_key(all_ended, tmp_path / "run")


def _n_answers(folder):
    journal = folder / "requests.jsonl"
    return len(answers(journal)) if journal.exists() else 0


def _tells_no_key(all_ended, folder):
    """No form of the key stands in what was printed or written, whatever stands between its letters."""
    texts = [ended.out + ended.err for ended in all_ended]
    texts += [path.read_bytes().decode("utf-8", "replace") for path in folder.rglob("*") if path.is_file()]
    for text in texts:
        squeezed = "".join(letter for letter in text if letter.isprintable() and letter not in " \\")
        assert [form for form in KEY_FORMS if form in squeezed] == []
