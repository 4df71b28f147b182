"""The command line as a user meets it: help, results, and one line for every mistake."""

import errno
import json
import re

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from qabias import __version__, cli
from qabias.benchmarks import load_benchmark
from qabias.benchmarks.registry import benchmark_names
from qabias.cli.commands import COMMANDS
from qabias.cli.options import ADVANCED
from qabias.runs.arguments import RunArguments
from qabias.runs.run import run
from qabias.support import files

from .kit.commands import command, is_two_lines, python, refused

RUN = ["run", "bbq", "--model", "baseline:stereotyped", "--config", "Age"]


def invoke(*arguments):
    """Run the command line in this process."""
    return CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


@pytest.fixture
def fails(monkeypatch, tmp_path):
    """Calls a command that is refused in an empty folder; gives its two lines as one."""
    monkeypatch.chdir(tmp_path)
    return refused


def test_help_names_every_command_and_imports_nothing_heavy(tmp_path):
    """What takes long to import is imported by the command that needs it, so that help answers at once."""
    result = python("-m", "qabias", "--help-all", cwd=tmp_path)
    assert result.returncode == 0
    for name in COMMANDS:
        assert name in result.stdout
    imported = python("-c", "import sys, qabias.cli; print(*sys.modules)").stdout.split()
    assert "qabias.cli" in imported
    heavy = {"torch", "transformers", "datasets", "evaluate", "pyarrow", "numpy", "jinja2", "accelerate"}
    assert not heavy & set(imported)


def test_commands_without_a_local_model_import_no_model_library(tmp_path):
    """`import evaluate` imports transformers, and that torch: four seconds that scores do not need."""
    code = """
import sys
from qabias import cli
for line in sys.stdin:
    sys.argv = ["qabias", *line.split()]
    try:
        cli.main()
    except SystemExit as stopped:
        assert not stopped.code, line
    print("loaded:", line, *sorted({"torch", "transformers", "evaluate"} & set(sys.modules)), file=sys.stderr)
"""
    lines = ["run bbq --model baseline:random --config Age --limit 40 --output run", "score run", "report run"]
    lines += [
        "score run --rule unparsed=wrong --output other",
        "show run",
        "compare run other --allow-mixed",
        "export run",
        "list",
    ]
    result = python("-c", code, cwd=tmp_path, given="\n".join(lines))
    assert result.returncode == 0, result.stderr
    loaded = [line.split() for line in result.stderr.splitlines() if line.startswith("loaded:")]
    assert [" ".join(words[1:]) for words in loaded] == lines


def test_version():
    assert __version__ in invoke("--version").output


@pytest.mark.slow
def test_a_report_is_written_by_run_and_else_on_demand(tmp_path):
    report = tmp_path / "report.html"
    printed = invoke(*RUN, "--output", tmp_path, "--no-report").output
    assert re.search(r"\+100\.0\s%\s+\[\+9\d\.\d, \+100\.0\]", printed)
    assert "bbq|source:bundled@1|config:Age|format:qa@1|" in printed
    scores = (tmp_path / "scores.json").read_bytes()
    (tmp_path / "scores.json").unlink()
    assert invoke("score", tmp_path).exit_code == 0
    assert (tmp_path / "scores.json").read_bytes() == scores
    assert not report.exists()
    assert invoke("score", tmp_path, "--report").exit_code == 0
    page = report.read_bytes()
    report.unlink()
    assert invoke("report", tmp_path).exit_code == 0
    assert report.read_bytes() == page
    report.unlink()
    result = invoke(*RUN, "--output", tmp_path)
    assert str(report) in result.output
    assert report.read_bytes() == page


def test_run_in_shards(tmp_path):
    waiting = invoke(*RUN, "--output", tmp_path / "run", "--shard", "1/2")
    assert "parts are still missing" in waiting.output
    assert "report.html" in invoke(*RUN, "--output", tmp_path / "run", "--shard", "0/2").output


SMOLLM2 = ["run", "bbq", "--model", "smollm2"]
PUSH = ["--to", "org/name", "--dry-run"]
MISTAKES = [
    ([*RUN, "--fixes"], "fixes"),
    *(([*RUN, f"--shard={shard}"], shard) for shard in ("0-4", "4", "a/b", "1/0", "4/4", "-1/4")),
    ([*RUN, "--shard", "\u0663/\u0664"], "INDEX/COUNT"),
    ([*RUN, "--option", "span"], "NAME=VALUE"),
    ([*RUN, "--option", "span=exact"], "span"),
    ([*RUN, "--option", "x" * 1000], "1,002 characters"),
    ([*RUN, "--backend", "nope"], "nope"),
    ([*RUN, "--revision", "r", "--dtype", "d"], "--revision and --dtype"),
    ([*RUN, "--source", "official", "--mirror", "nowhere"], "nowhere"),
    (["run", "unqover", "--model", "baseline:oracle"], "oracle"),
    (["run", "bbq", "--model", "./no-such-folder"], "no-such-folder"),
    (["run", "bbq", "--model", "nobody/no-such-model"], "nobody/no-such-model"),
    ([*SMOLLM2, "--dtype", "float17"], "float17"),
    ([*SMOLLM2, "--device", "cuda:99"], "cuda:99"),
    (["score", "no-such-file.csv"], "no-such-file.csv"),
    (["score", "."], "holds no run"),
    (["push", "metric", "bbq", "--to", "me/x", "--dataset", "x" * 1000, "--dry-run"], "xxx...xxx"),
    (["show", "."], "holds no run"),
    (["show", "bad-\udcff"], "udcff"),
]


@pytest.mark.parametrize(("arguments", "token"), MISTAKES, ids=lambda value: " ".join(value)[-40:])
def test_a_mistake_is_two_lines_and_exit_code_2(fails, arguments, token):
    line = fails(*arguments)
    assert token in line
    assert len(line.rpartition("error: ")[2]) < 1000


@pytest.fixture(scope="module")
def small_run(tmp_path_factory):
    """A finished run of a few examples."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    return run(RunArguments("bbq", "baseline:stereotyped", "Age", limit=100), folder).folder


@pytest.mark.parametrize(
    ("arguments", "typo", "meant"),
    [
        (["run", "bqq"], "bqq", "bbq"),
        (["run", "BBQ"], "BBQ", "bbq"),
        (["build", "bnli", "--output", "x"], "bnli", "bbnli"),
        (["plan", "unqovr", "--detect", "0.1"], "unqovr", "unqover"),
        (["score", "answers.csv", "--benchmark", "bbq-nli"], "bbq-nli", "bbq_nli"),
        ([*RUN, "--config", "Religon"], "Religon", "Religion"),
        ([*RUN, "--source", "offical"], "offical", "official"),
        ([*RUN, "--format", "question-only"], "question-only", "question_only"),
        ([*RUN, "--length-norm", "tokens"], "tokens", "token"),
        ([*SMOLLM2, "--backend", "casual"], "casual", "causal"),
        ([*SMOLLM2, "--option", "mod=generate"], "mod", "mode"),
        (["run", "bbq", "--model", "baseline:stereotype"], "stereotype", "stereotyped"),
        (["show", "RUN", "--table", "bias_by_categry"], "bias_by_categry", "bias_by_category"),
        (["show", "RUN", "--template", "Agee-25"], "Agee-25", "Age-25"),
        (["export", "RUN", "--format", "svvg"], "svvg", "svg"),
        (["push", "metric", "unqovr", *PUSH], "unqovr", "unqover"),
    ],
)
def test_a_typo_is_answered_with_what_was_probably_meant(fails, small_run, arguments, typo, meant):
    line = fails(*(small_run if argument == "RUN" else argument for argument in arguments))
    assert repr(typo) in line
    assert f"Did you mean {meant!r}" in line


BAD_ANSWERS = {
    "bbq": ("Age", {"prediction": 7}, "7"),
    "unqover": ("religion", {"s1_21": 1.5}, "1.5"),
}


@pytest.mark.parametrize("benchmark", BAD_ANSWERS)
def test_what_a_metric_refuses_names_the_row(fails, tmp_path, benchmark):
    """A metric knows `ValueError` only; it reaches the user of the command line as any other mistake does."""
    config, wrong, shown = BAD_ANSWERS[benchmark]
    chosen = load_benchmark(benchmark)
    table = chosen.load(config, chosen.origin("bundled", 0, False)).slice(0, 240)
    rows = [
        {**key, **dict.fromkeys(chosen.answer_columns, 0), **(wrong if number == 1 else {})}
        for number, key in enumerate(table.select(list(chosen.key)).to_pylist())
    ]
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    line = fails("score", path, "--benchmark", benchmark, "--config", config)
    assert "answers.jsonl" in line
    assert "row 1" in line
    assert shown in line


def test_disk_full_is_one_line_and_the_run_continues_later(fails, monkeypatch, tmp_path):
    real = files.Path.replace
    n_written = 0

    def full(self, target):
        nonlocal n_written
        if target.name.startswith("part-"):
            n_written += 1
            if n_written > 1:
                raise OSError(errno.ENOSPC, "No space left on device", str(target))
        return real(self, target)

    monkeypatch.setattr(files.Path, "replace", full)
    command = ("run", "bbq", "--model", "baseline:oracle", "--config", "Age", "--output")
    line = fails(*command, "run")
    assert "No space left on device" in line
    assert "rerun" in line
    monkeypatch.undo()
    folder = tmp_path / "run"
    assert [path.name for path in (folder / "predictions").iterdir()] == ["part-00000.parquet"]
    before = (folder / "predictions" / "part-00000.parquet").read_bytes()
    assert invoke(*command, folder).exit_code == 0
    assert (folder / "predictions" / "part-00000.parquet").read_bytes() == before


def test_a_model_from_a_folder_is_measured(tmp_path, monkeypatch):
    """Any causal model of `transformers`, saved by its user, goes through the same command."""
    from .tiny_models import make_model, make_tokenizer

    folder = tmp_path / "my-model"
    make_model("llama").save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    monkeypatch.chdir(tmp_path)
    result = invoke("run", "bbq", "--model", folder, "--config", "Religion", "--limit", "20")
    assert result.exit_code == 0, result.output
    assert f"|model:{folder}@local/float32|scorer:causal|" in result.output.replace("\n", "")
    assert (tmp_path / "runs").is_dir()


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
