"""The limits that help, lists and errors keep: counts, lengths and forms, not sentences."""

import re

import pytest
from typer.main import get_command

from qabias import cli
from qabias.benchmarks.registry import benchmark_names
from qabias.cli.commands import COMMANDS
from qabias.cli.options import ADVANCED

from .kit.commands import command, is_two_lines, refused

MOST_OPTIONS = MOST_COMMANDS = MOST_WORDS = 12
MOST_LINES = 20
WIDTH = 100
ROOT = get_command(cli.app)


def commands():
    """Every command and every command of a group, by its words."""
    for name in COMMANDS:
        one = ROOT.get_command(None, name)
        within = getattr(one, "commands", None)
        yield from ((f"{name} {inner}", each) for inner, each in within.items()) if within else [(name, one)]


ALL = dict(commands())


def options_in(text):
    return re.findall(r"^  (--[\w-]+)", text, re.MULTILINE)


@pytest.mark.parametrize("name", ALL)
def test_help_is_short(name):
    shown = command(*name.split(), "--help")
    assert shown.code == 0
    assert len(options_in(shown.out)) <= MOST_OPTIONS
    every = command(*name.split(), "--help-all").out
    flags = {param.opts[0] for param in ALL[name].params if param.param_type_name == "option"}
    assert flags <= set(options_in(every))
    hidden = {param.opts[0] for param in ALL[name].params if getattr(param, "rich_help_panel", None) == ADVANCED}
    assert not hidden & set(options_in(shown.out))
    for text in (ALL[name].help.split("\n")[0], *(param.help for param in ALL[name].params)):
        assert 0 < len(text.split()) <= MOST_WORDS, text


@pytest.mark.parametrize("name", ["", *COMMANDS, *(name for name in ALL if " " in name)])
def test_every_command_and_group_shows_all_its_help(name):
    every = command(*name.split(), "--help-all")
    assert every.code == 0
    assert every.out.startswith(f"Usage: qabias {name}".rstrip())


def test_help_of_all_commands_has_few_groups():
    text = command("--help").out
    names = [name for name in COMMANDS if re.search(rf"^  {name} ", text, re.MULTILINE)]
    assert len(names) <= MOST_COMMANDS
    assert len(re.findall(r"^\w+:$", text, re.MULTILINE)) == 4
    every = command("--help-all").out
    assert all(re.search(rf"^  {name} ", every, re.MULTILINE) for name in COMMANDS)


@pytest.mark.parametrize(
    "topic", [(), *((name,) for name in (*benchmark_names(), "languages", "backends", "baselines"))]
)
def test_a_list_fits_a_screen(topic):
    lines = command("list", *topic).out.splitlines()
    assert 1 < len(lines) <= MOST_LINES
    assert not topic or topic[0] not in benchmark_names() or max(map(len, lines)) <= WIDTH
    assert len(command("list", *topic, "--full").out.splitlines()) >= len(lines)


@pytest.mark.parametrize("name", ALL)
def test_a_misspelled_option_is_two_lines(name):
    flag = next(param.opts[0] for param in ALL[name].params if param.param_type_name == "option")
    line = refused(*name.split(), f"{flag}x")
    assert f"Did you mean '{flag}'" in line
    assert line.count("'--") <= 1 + 3


@pytest.mark.parametrize(
    ("arguments", "token"),
    [
        (["rnu"], "'run'"),
        (["run"], "BENCHMARK"),
        (["plan", "bbq"], "--detect"),
        (["run", "bbq", "extra"], "'extra'"),
        (["run", "bbq", "--limit", "x"], "--limit"),
        (["run", "bbq", "--limit"], "--limit"),
        (["run", "bbq", "-model", "x"], "'--model'"),
        (["run", "bbq", "--model", "basline:random"], "'baseline:random'"),
        (["run", "bbq", "--model", "baseline:random", "--dtype", "float32"], "--dtype"),
        (["run", "bbq", "--model", "baseline:random", "--base-url", "http://localhost:1/v1"], "--base-url"),
        (["run", "bbq", "--model", "baseline:random", "--rule", "unparsd=wrong"], "--rule unparsed=VALUE"),
        (["push", "result"], "'results'"),
        (["push"], "results"),
        (["list", "bqb"], "'bbq'"),
        (["compare", "a", "a"], "twice"),
        (["run", "bbq", "--model", "gpt-4o"], "--base-url"),
        (["run", "bbq", "--model", "baseline"], "baseline:KIND"),
        (["run", "bbq", "--model", "smolm2"], "'smollm2'"),
        (["run", "bbq", "--model", "smollm2", "--revision", "main", "--limit", "4"], "--revision"),
    ],
)
def test_what_the_parser_refuses_is_two_lines(arguments, token):
    ended = command(*arguments)
    assert ended.code == cli.EXIT_USER_ERROR
    assert is_two_lines(ended.err)
    assert token in ended.err


def test_a_path_beside_a_run_is_answered_with_the_run(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "run.json").write_text("{}")
    assert str(tmp_path / "one") in refused("show", tmp_path)
    (tmp_path / "one" / "scores.json").write_text("{}")
    assert f"Use its folder: {tmp_path / 'one'}" in refused("show", tmp_path / "one" / "scores.json")


def test_a_shell_completes_commands_and_names(monkeypatch):
    monkeypatch.setenv("_QABIAS_COMPLETE", "complete_bash")
    for words, expected in (("qabias contam", "contamination"), ("qabias run un", "unqover")):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
        assert expected in command().out.split()
