"""What a message suggests works when it is pasted."""

import errno
import re
import shlex

import pytest

from .kit.commands import command, refused

BASELINE = ("--model", "baseline:random", "--no-report")


def suggested(text, before):
    """The words of a command that a message names after some words."""
    return shlex.split(text.partition(before)[2].splitlines()[0].rstrip("."))


@pytest.mark.parametrize(
    ("condition", "better"),
    [
        ("bias<0.2", "bias_ambig<0.2"),
        ("bias>0.2", "bias_ambig<0.1"),
        ("bias_ambig", "bias_ambig<0.1"),
        ("accurcy_disambig>0.6", "accuracy_disambig>0.6"),
        ("accuracy_ambig", "accuracy_ambig>0.8"),
        ("<", "bias_ambig<0.1"),
    ],
)
def test_a_wrong_condition_gets_one_that_a_run_takes(condition, better, tmp_path):
    run = ("run", "bbq", *BASELINE, "--config", "Religion", "--limit", "80", "--output", tmp_path / "run")
    words = suggested(command(*run, "--until", condition).err, "fix: Write ")
    assert words == ["--until", better]
    assert command(*run, *words).code == 0


def test_a_folder_with_blanks_is_quoted_in_the_command_that_follows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = command("run", "bbq", *BASELINE, "--config", "Religion", "--limit", "80", "--output", "ü x/it's one")
    words = suggested(ended.out, "More     qabias ")
    assert words == ["show", "ü x/it's one", "--full"]
    assert command(*words).code == 0
    (tmp_path / "ü x" / "it's one" / "analysis.json").unlink()
    [again] = re.findall("`qabias (.+)`", command("show", "ü x/it's one", "--full").err)
    assert command(*shlex.split(again)).code == 0
    assert command(*words).code == 0


def test_a_check_without_common_scores_names_the_breakdown(compared_runs):
    check = ("check", compared_runs / "unqover-random", "--max", "mu=0.9")
    words = suggested(command(*check).err, "fix: Add ")
    assert words[:2] == ["--by", "set,"]
    ended = command(*check, *(word.rstrip(",") for word in words[:2]))
    assert ended.code in (0, 1, 3)
    assert "religion" in ended.out


@pytest.mark.parametrize(
    ("number", "how"),
    [
        (errno.ENOSPC, "Free space"),
        (errno.EROFS, "Choose a path that you may read and write"),
        (errno.EIO, "Choose another path"),
    ],
)
def test_what_the_system_refuses_has_a_fix_of_its_own(number, how, tmp_path, monkeypatch):
    def refuses(*_, **__):
        raise OSError(number, "refused", str(tmp_path / "run"))

    monkeypatch.setattr("qabias.runs.run.run", refuses)
    monkeypatch.setattr("qabias.runs.folder.write_atomically", refuses)
    text = refused("run", "bbq", *BASELINE, "--config", "Religion", "--limit", "80", "--output", tmp_path / "run")
    assert f"fix: {how}" in text
    assert text.endswith("then rerun the command to resume.")


def test_samples_with_other_seeds_need_complete_runs_to_be_averaged(tmp_path):
    def run(name, *words):
        assert command("run", "bbq", *BASELINE, "--config", "Religion", "--output", tmp_path / name, *words).code == 0
        return tmp_path / name

    samples = [run(f"sample {seed}", "--limit", "80", "--seed", seed) for seed in (0, 1)]
    assert "To average over seeds, use complete runs (no --limit)" in refused("pool", *samples)
    whole = [run(f"whole {seed}", "--seed", seed) for seed in (0, 1)]
    assert command("pool", *whole, "--output", tmp_path / "average").code == 0


def test_a_check_of_a_sample_is_told_its_size_and_no_option_that_was_given(tmp_path):
    run = ("run", "bbq", *BASELINE, "--limit", "800", "--output", tmp_path / "run")
    assert command(*run).code == 0
    plain = command("check", tmp_path / "run", "--max", "bias_ambig=0.001").out
    given = command("check", tmp_path / "run", "--max", "bias_ambig=0.001", "--require-task").out
    assert "sample of at most 800 examples" in plain
    assert "--require-task" in plain
    assert "--require-task" not in given
