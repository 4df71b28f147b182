"""What README.md and docs/ show works: Python runs, `<!-- run -->` shell blocks run, all other commands are parsed.

A block with a title shows the file of that name; both must be the same, and tests of the file's own run it.

The blocks of a page run in order, in one namespace and one empty folder from which the checkout's datasets and metrics
can be reached. A shell block that cannot run everywhere (a Hub id, a server, a GPU) has its arguments read by the very
parser that would read them, and files, make targets and other programs that it names must be known;
`test_docs_commands.py` runs it with small models in place.
"""

import argparse
import os
import re
import runpy
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer

from docs import cli as cli_page
from docs import gallery
from qabias.cli import app

from .conftest import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# What is read but not run; no command may hide in it.
DATA_LANGUAGES = ("text", "yaml", "json", "toml", "jinja", "bibtex", "")
SHELL_LANGUAGES = ("bash", "sh")
RUN = "<!-- run -->"
REACHABLE = ("bbq_dataset", "unqover_dataset", "bbnli_dataset", "metrics", "docs", "tests")
# Programs of others, whose options only they know.
FOREIGN = (
    "curl",
    ".",
    "cd",
    "cp",
    "git",
    "hf",
    "llama-server",
    "python -c",
    "python -m llama_cpp.server",
    "python -m pytest",
    "python -m sglang.launch_server",
    "inspect eval",
    "lm_eval",
    "pip",
    "transformers serve",
    "vllm serve",
    "python3 -m venv",
    "python3 -m pip",
    "ray start",
    "source",
    "twine",
    "python -m build",
)
GALLERY = {f"gallery/{name}.html" for name in gallery.PAGES}  # made with the site
LAUNCHERS = ("accelerate", "torchrun")
BLOCK = re.compile(
    r"(?P<mark>^<!-- run -->\n)?"
    r'^```(?P<language>[a-z]*)(?: title="(?P<file>[^"\n]+)")?\n'
    r"(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; `file` is what it shows, if it shows a file."""

    language: str
    text: str
    line: int
    runs: bool
    file: str | None


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text("utf-8")
    return [
        Block(
            found["language"],
            found["text"],
            text[: found.start("text")].count("\n"),
            bool(found["mark"]) or (found["language"] == "python" and found["file"] is None),
            found["file"],
        )
        for found in BLOCK.finditer(text)
    ]


def commands_of(block: Block) -> list[list[str]]:
    """The commands of a shell block: comments and settings of variables dropped, continued lines joined."""
    words = [shlex.split(line, comments=True) for line in block.text.replace("\\\n", " ").splitlines()]
    commands = []
    for command in words:
        while command and (re.fullmatch(r"[A-Z_]+=.*", command[0]) or command[0] == "export"):
            command.pop(0)
        if command:
            commands.append(command)
    return commands


def parse_qabias(arguments: list[str]) -> None:
    """Read arguments as `qabias` does, without doing anything."""
    command = typer.main.get_command(app)
    context, name = None, "qabias"
    while True:
        context = command.make_context(name, list(arguments), parent=context)
        if not hasattr(command, "commands"):
            return
        name, command, arguments = command.resolve_command(context, [*context._protected_args, *context.args])


class ParsedError(Exception):
    """Stops a script as soon as its arguments are read."""


def parse_script(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Read arguments as a script with `argparse` does, and stop there."""
    parse = argparse.ArgumentParser.parse_args

    def parse_and_stop(self, *given):
        parse(self, *given)
        raise ParsedError

    is_module = command[0] == "-m"
    name, arguments = command[is_module], command[1 + is_module :]
    with monkeypatch.context() as patch:
        patch.setattr(argparse.ArgumentParser, "parse_args", parse_and_stop)
        patch.setattr(sys, "argv", [name, *arguments])
        patch.syspath_prepend(str(ROOT))
        with pytest.raises(ParsedError):
            runpy.run_module(name, run_name="__main__") if is_module else runpy.run_path(
                str(ROOT / name), run_name="__main__"
            )


def check(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Check a command that is not run."""
    program, *arguments = command
    if program == "qabias":
        parse_qabias(arguments)
    elif program in LAUNCHERS:
        at = next(i for i, word in enumerate(arguments) if arguments[i - 1] == "-m" and word == "qabias")
        parse_qabias(arguments[at + 1 :])
    elif program == "make":
        targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
        assert [word for word in arguments if "=" not in word and word not in targets] == []
    elif program == "bash":
        assert (ROOT / arguments[0]).is_file(), arguments[0]
    elif any(command[: len(known.split())] == known.split() for known in FOREIGN):
        assert program != "python" or "qabias" not in command[2], "show Python in a block that runs"
    elif program == "python":
        if arguments[0] == "-m" and importable_or_script(arguments[1]) is None:
            pytest.skip(f"{arguments[1]} needs a package that is not installed")
        parse_script(arguments, monkeypatch)
    else:
        raise AssertionError(f"unknown program: {shlex.join(command)}")


def importable_or_script(module: str) -> Path | None:
    place = ROOT / module.replace(".", "/")
    return next((path for path in (place.with_suffix(".py"), place / "__main__.py") if path.is_file()), None)


def run_qabias(command: list[str], monkeypatch: pytest.MonkeyPatch, answering: Sequence[str] = ("audit",)) -> None:
    """Do what `python -m qabias ARGUMENTS` does, in this process: imports take most of the time of a small run.

    The answers of the `answering` commands are their exit status: no, yes, undecided.
    """
    words = command[2:] if command[:2] == ["python", "-m"] else command
    assert words[0] in ("qabias", "lab.raters"), shlex.join(command)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "argv", words)
        patch.syspath_prepend(str(ROOT))
        with pytest.raises(SystemExit) as end:
            runpy.run_module(words[0], run_name="__main__")
    assert not end.value.code or (words[1] in answering and end.value.code in (1, 3)), shlex.join(command)


@pytest.mark.parametrize(
    "page", [PAGES[0], *(pytest.param(page, marks=pytest.mark.slow) for page in PAGES[1:])], ids=lambda page: page.stem
)
def test_blocks_that_run_do(page, tmp_path, monkeypatch):
    blocks = [block for block in blocks_of(page) if block.runs]
    if not blocks:
        pytest.skip("shows nothing that runs")
    for name in REACHABLE:
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks:
        if block.language == "python":
            # Blank lines in front, so that an error names the line of the page.
            exec(compile("\n" * block.line + block.text, str(page), "exec"), namespace)
        else:
            for command in commands_of(block):
                run_qabias(command, monkeypatch)


def test_the_three_lines_of_the_readme_print_what_their_comment_says(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    block = next(block for block in blocks_of(PAGES[0]) if block.language == "python")
    exec(block.text, {})
    said = re.search(r"^print.*# (.*):", block.text, re.MULTILINE)
    assert said
    assert capsys.readouterr().out.splitlines()[-1] == said[1]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_that_do_not_run_are_spelt_right(page, monkeypatch):
    for block in blocks_of(page):
        if block.language in SHELL_LANGUAGES and not block.runs:
            for command in commands_of(block):
                try:
                    check(command, monkeypatch)
                except (SystemExit, Exception) as error:
                    raise AssertionError(f"{page.name}:{block.line}: {shlex.join(command)}: {error}") from error


def test_no_page_writes_into_a_folder_of_another():
    """Whoever follows several pages in one folder would be stopped, or lose a result."""
    writers: dict[str, dict[str, set[str]]] = {}
    for page in PAGES:
        for block in blocks_of(page):
            for command in commands_of(block) if block.language in SHELL_LANGUAGES else ():
                if "--output" in command:
                    pages = writers.setdefault(command[command.index("--output") + 1], {})
                    pages.setdefault(page.name, set()).add(shlex.join(command))
    shared = {folder: pages for folder, pages in writers.items() if len(pages) > 1}
    assert shared, "no folder of two pages: the pages are not read"
    for folder, pages in shared.items():
        commands = list(pages.values())
        assert all(one == commands[0] for one in commands), (folder, pages)


def test_every_picture_is_small_shown_and_described():
    shown = re.findall(r"!\[([^]]*)\]\(\S*?images/([^)]+)\)", "".join(page.read_text("utf-8") for page in PAGES))
    assert {name for _, name in shown} == {path.name for path in (ROOT / "docs" / "images").iterdir()}
    assert all(len(words.split()) > 5 for words, _ in shown)
    assert all(path.stat().st_size < 60_000 for path in (ROOT / "docs" / "images").iterdir())


def test_the_home_page_shows_the_demo_of_the_readme():
    [demo] = [block.text for block in blocks_of(PAGES[0]) if block.text.startswith("Audit of ")]
    [shown] = [block.text for block in blocks_of(ROOT / "docs" / "index.md") if block.language == "text"]
    assert shown == demo


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_block_is_left_out(page):
    text = page.read_text("utf-8")
    blocks = blocks_of(page)
    assert 2 * len(blocks) == len(re.findall(r"^\s*```", text, re.MULTILINE)), "a block that is indented or not closed"
    assert text.count(RUN) == sum(block.runs and block.language != "python" for block in blocks), "a stray mark"
    for block in blocks:
        assert block.language in ("python", *SHELL_LANGUAGES, *DATA_LANGUAGES), f"line {block.line}: {block.language}"
        if block.language in DATA_LANGUAGES:
            hidden = re.search(
                r"^\s*(qabias [a-z]+ |from \w+ import|import \w+|python3? |make [a-z]+$)", block.text, re.MULTILINE
            )
            assert hidden is None, f"line {block.line}: {hidden and hidden[0]}"


@pytest.mark.parametrize(
    ("page", "folder"), [("add-a-benchmark.md", "tests/toy_benchmark"), ("add-a-scorer.md", "tests/toy_scorer")]
)
def test_a_page_names_every_file_of_a_package_and_no_other(page, folder):
    named = set(re.findall(rf"^\| `({folder}/\S+)` \|", (ROOT / "docs" / page).read_text("utf-8"), re.MULTILINE))
    files = [path for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".toml", ".j2")]
    assert named == {path.relative_to(ROOT).as_posix() for path in files}


def test_the_reference_of_the_command_line_is_what_its_script_writes():
    assert cli_page.PAGE.read_text("utf-8") == cli_page.page(), "python -m docs.cli --write"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_named_files_exist(page):
    """Links to files; MkDocs checks those among pages with their anchors."""
    for path in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text("utf-8")):
        if not path.startswith("http"):
            # A badge: the address of a workflow's runs, relative to that of README.md on the code host.
            path = re.sub(r"^\.\./\.\./actions/(workflows/\w+\.yml)(/badge\.svg)?$", r".github/\1", path)
            assert (page.parent / path).exists() or path in GALLERY, path


def test_every_page_is_in_the_navigation():
    listed = set(re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE))
    assert listed == {page.relative_to(ROOT / "docs").as_posix() for page in PAGES if page.parent != ROOT}
    assert os.path.isdir(ROOT / "docs")
