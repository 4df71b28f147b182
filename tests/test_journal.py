"""The journal of a server's answers: what is torn or damaged is asked again, nothing else is lost."""

import os

import pytest

from qabias.scorers import journal
from qabias.scorers.journal import Journal

ANSWERS = {f"hash{number}" * 8: {"text": f"It is {number}, \n I think", "finish": "stop"} for number in range(4)}


@pytest.fixture
def path(tmp_path):
    kept = Journal(tmp_path / "requests.jsonl")
    for request, answer in ANSWERS.items():
        kept.add(request, answer)
    kept.close()
    return tmp_path / "requests.jsonl"


def found_in(path):
    kept = Journal(path)
    return {request: kept[request] for request in ANSWERS if request in kept}


def test_a_journal_cut_at_any_byte_of_its_last_lines_loses_only_what_is_cut(path):
    content = path.read_bytes()
    ends = [number + 1 for number, byte in enumerate(content) if byte == ord("\n")]
    names = list(ANSWERS)
    for cut in range(ends[1], len(content) + 1):
        path.write_bytes(content[:cut])
        n_whole = sum(cut >= end - 1 for end in ends)  # the end of the line itself may be missing
        assert found_in(path) == {name: ANSWERS[name] for name in names[:n_whole]}, cut
        torn = Journal(path)
        torn.add("again", ["b", 2.5])
        torn.close()
        assert Journal(path)["again"] == ["b", 2.5]
        assert found_in(path) == {name: ANSWERS[name] for name in names[:n_whole]}, cut


def test_a_flipped_bit_anywhere_in_a_journal_never_changes_an_answer(path):
    content = path.read_bytes()
    for place in range(len(content)):
        for bit in range(8):
            damaged = bytearray(content)
            damaged[place] ^= 1 << bit
            path.write_bytes(damaged)
            found = found_in(path)
            assert all(ANSWERS[name] == found[name] for name in found), (place, bit)
            assert len(found) >= len(ANSWERS) - 2, (place, bit)  # two, where the flip joins two lines


@pytest.mark.parametrize("line", ["[" * 100_000, '{"request": "a", "answer": "b"}', "[]", "5", ""])
def test_lines_that_are_none_of_a_journal_are_passed_over(path, line):
    path.write_text(f"{line}\n{path.read_text()}")
    assert found_in(path) == ANSWERS
    assert "a" not in Journal(path)


def test_answers_are_put_on_the_disk_at_most_every_second_and_at_the_end(tmp_path, monkeypatch):
    synced, seconds = [], [100.0]
    monkeypatch.setattr(journal.time, "monotonic", lambda: seconds[0])
    monkeypatch.setattr(os, "fsync", synced.append)
    kept = Journal(tmp_path / "j")
    kept.add("a", "1")
    n_of_folder = len(synced)
    for number in range(10):
        kept.add(f"b{number}", "1")
    assert len(synced) == n_of_folder
    seconds[0] += 1
    kept.add("c", "1")
    kept.add("d", "1")
    assert len(synced) == n_of_folder + 1
    kept.close()
    assert len(synced) == n_of_folder + 2


def test_what_another_command_asked_while_this_one_waited_is_known(path):
    content = path.read_bytes()
    path.unlink()
    waiting = Journal(path)
    path.write_bytes(content)
    assert all(request in waiting for request in ANSWERS)
