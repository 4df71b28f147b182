"""Pushing to a Hub over HTTP, and loading what came there."""

import io
import json
import shutil
import sys

import evaluate
import pytest
from datasets import get_dataset_config_names, load_dataset
from huggingface_hub import DatasetCard, constants

import qabias
from qabias import cli
from qabias.benchmarks import load_benchmark, locate
from qabias.errors import QabiasError
from qabias.hub import contents
from qabias.hub.results import result_files
from qabias.logs.detect import read_log

from .conftest import ROOT
from .kit.commands import python
from .kit.hub import TOKEN, Hub
from .metrics.helpers import same

NAMES = ("bbq", "unqover", "bbnli")
# What the Hub takes in the head of a card, as far as ours have it.
ALLOWED = {
    "license": {"apache-2.0", "mit", "cc-by-4.0"},
    "size_categories": {"n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M"},
    "annotations_creators": {"no-annotation", "expert-generated", "crowdsourced", "machine-generated", "other"},
    "language_creators": {"expert-generated", "crowdsourced", "machine-generated", "found", "other"},
    "source_datasets": {"original", "extended"},
    "sdk": {"gradio", "docker", "static"},
    "colorFrom": {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"},
}


@pytest.fixture
def hub(monkeypatch):
    hub = Hub(monkeypatch)
    yield hub
    hub.stop()


@pytest.fixture
def push(monkeypatch, capsys):
    """Run `qabias push` through `main`; returns exit code, output and errors, none of which may show the token."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["qabias", "push", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        output, errors = capsys.readouterr()
        assert TOKEN not in output + errors
        return stopped.value.code, output, errors

    return run


@pytest.fixture
def pushed(push):
    """Push what must succeed; returns the output."""

    def run(*arguments):
        code, output, errors = push(*arguments, "--yes")
        assert code == 0, errors
        return output

    return run


@pytest.fixture
def refused(push):
    """Push what must fail; returns the problem and its fix on standard error."""

    def run(*arguments):
        code, _, errors = push(*arguments)
        assert code == cli.EXIT_USER_ERROR
        _, _, problem = errors.rpartition("error: ")  # bars of uploads precede it
        _, *fix = problem.splitlines()
        assert len(fix) <= 1
        assert all(line.startswith("  fix: ") for line in fix)
        return problem.strip()

    return run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A copy of the dataset bbnli that a test may change; it is pushed instead of the committed one."""
    copy = tmp_path / "bbnli_dataset"
    shutil.copytree(ROOT / "bbnli_dataset", copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(locate, "dataset_folder", lambda benchmark: copy)
    return copy


def written(files, folder):
    """The files of a repository in a folder of their own."""
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    head = DatasetCard(files["README.md"].decode()).data
    for name, allowed in ALLOWED.items():
        values = head.get(name) or []
        assert set(values if isinstance(values, list) else [values]) <= allowed, name
    return str(folder)


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", NAMES)
def test_a_dataset_is_pushed_whole_without_code_and_loads_from_there(hub, pushed, tmp_path, benchmark):
    repository_id = f"org/{benchmark}"
    assert "directly, since the repository is new" in pushed("dataset", benchmark, "--to", repository_id)
    repository = hub.repositories["dataset", repository_id]
    own = ROOT / f"{benchmark}_dataset"
    expected = {path.relative_to(own).as_posix(): path.read_bytes() for path in own.rglob("*") if path.is_file()}
    left_out = ("card", "eval", "gates", ".")  # hidden: what a build knows of itself
    expected = {name: text for name, text in expected.items() if not name.startswith(left_out) and ".py" not in name}
    card = expected["README.md"].decode()
    expected |= {"README.md": card.replace(f"./{benchmark}_dataset", repository_id).encode(), ".gitattributes": b""}
    assert repository.files == expected
    assert f'load_dataset("{repository_id}"' in repository.files["README.md"].decode()
    folder = written(repository.files, tmp_path / "there")
    assert get_dataset_config_names(folder) == get_dataset_config_names(str(own))
    config = get_dataset_config_names(folder)[-1]
    there, here = (load_dataset(str(name), config, split="test", cache_dir=tmp_path) for name in (folder, own))
    assert there.features == here.features
    assert there.data.table.equals(here.data.table)

    before = len(repository.commits)
    assert "nothing to do" in pushed("dataset", benchmark, "--to", repository_id)
    assert len(repository.commits) == before


LOADS = """
import json, datasets, evaluate
data = datasets.load_dataset("org/bbq", "Age", split="test")
first = next(iter(datasets.load_dataset("org/bbq", "Age", split="test", streaming=True)))
result = evaluate.load("org/bbq").compute(predictions=data["label"], references=data, confidence=None)
print(json.dumps([data.num_rows, first == data[0], result["accuracy"]]))
"""


@pytest.mark.slow
def test_dataset_and_metric_are_loaded_by_name_from_there(hub, pushed, tmp_path):
    pushed("dataset", "bbq", "--to", "org/bbq")
    pushed("metric", "bbq", "--to", "org/bbq")
    loaded = python("-c", LOADS, cwd=tmp_path, **hub.environment(tmp_path / "home"))
    assert json.loads(loaded.stdout or "[]") == [3680, True, 1.0], loaded.stderr
    assert hub.calls.count("lfs_upload") == len(list((ROOT / "bbq_dataset" / "data").glob("*/*.parquet")))


ASKS = """
import zlib
from inspect_ai._cli.main import main
from inspect_ai.model import ModelAPI, modelapi
from tests.inspect_models import output

@modelapi(name="drawn")
class Drawn(ModelAPI):
    async def generate(self, input, tools, tool_choice, config):
        text = input[-1].text
        number = zlib.crc32(text.encode()) % 3
        return output("ANSWER: " + ("ABC"[number] if "C) " in text else str(number)))

main()  # inspect eval
"""


@pytest.mark.slow
def test_inspect_evaluates_the_task_from_there_and_its_log_has_the_same_accuracy_here(hub, pushed, tmp_path):
    """Of the benchmark with fewer rows; inspect loads all before it asks some."""
    pytest.importorskip("inspect_ai", reason='inspect_ai is not installed: pip install ".[inspect]"')
    pushed("dataset", "bbnli", "--to", "org/bbnli", "--as-benchmark")
    there = hub.repositories["dataset", "org/bbnli"].files["eval.yaml"]
    assert there == (ROOT / "bbnli_dataset" / "eval.yaml").read_bytes()
    words = ["eval", "hf/org/bbnli", "--limit", 240, "--model", "drawn/model"]
    home = {**hub.environment(tmp_path / "home"), "HOME": str(tmp_path)}
    done = python("-c", ASKS, *words, "--log-dir", tmp_path / "logs", "--display", "none", cwd=tmp_path, **home)
    assert done.returncode == 0, done.stdout + done.stderr
    [path] = (tmp_path / "logs").glob("*.eval")
    log = read_log(path)
    scores = qabias.score(path, benchmark="bbnli", output=tmp_path / "run").scores
    accuracy = load_benchmark("bbnli").facts.hub.accuracy
    assert 0 < accuracy(scores) < 1
    assert [accuracy(scores)] == [pytest.approx(value) for name, value in log.figures.items() if "accuracy" in name]
    assert scores["n"] == 240
    with pytest.raises(QabiasError, match="not their benchmark"):
        qabias.score(path)


@pytest.mark.parametrize("benchmark", NAMES)
def test_a_metric_is_pushed_as_a_space_and_loads_from_there_under_any_name(hub, pushed, tmp_path, benchmark):
    own = ROOT / "metrics" / benchmark
    for name in (benchmark, "bias-of-answers"):
        assert "directly, since the repository is new" in pushed("metric", benchmark, "--to", f"org/{name}")
        repository = hub.repositories["space", f"org/{name}"]
        expected = {path.name: path.read_bytes() for path in own.glob("*.*") if path.name != "__init__.py"}
        card = expected["README.md"].decode().replace(f"./metrics/{benchmark}", f"org/{name}")
        card = card.replace(f"./{benchmark}_dataset", f"org/{name}").encode()
        assert b'"./' not in card
        expected |= {"README.md": card, ".gitattributes": b"", f"{name}.py": expected[f"{benchmark}.py"]}
        assert repository.files == expected
        metric = evaluate.load(written(repository.files, tmp_path / name))
        assert same(metric.inputs_description, evaluate.load(str(own)).inputs_description)
    assert "nothing to do" in pushed("metric", benchmark, "--to", f"org/{benchmark}")
    pushed("metric", benchmark, "--to", "org/hidden", "--private", "--dataset", "other/questions")
    assert [repository.visibility for repository in hub.repositories.values()] == [None, None, "private"]
    assert '"other/questions"' in hub.repositories["space", "org/hidden"].files["README.md"].decode()


@pytest.mark.parametrize("kind", ["dataset", "metric"])
def test_a_dry_run_lists_every_file_with_its_size_and_asks_the_hub_nothing(hub, push, kind):
    code, output, _ = push(kind, "bbnli", "--to", "org/bbnli", "--dry-run")
    assert code == 0
    plan = contents.metric_push("bbnli", "org/bbnli")
    if kind == "dataset":
        plan = contents.dataset_push("bbnli", "org/bbnli", ROOT / "unused")
    lines = [line.split() for line in output.splitlines()]
    for path in plan.files:
        assert [path, f"{len(plan.content(path)):,}", "bytes"] in lines
    total = sum(len(plan.content(path)) for path in plan.files)
    assert f"to send: {len(plan.files)} files, {total:,} bytes" in output
    assert "as a pull request (directly if the repository is new)" in output
    assert f"{hub.url}/{plan.kind}s/org/bbnli" in output
    assert "directly to main" in push(kind, "bbnli", "--to", "org/bbnli", "--dry-run", "--no-create-pr")[1]
    assert hub.calls == []


def test_a_change_becomes_one_pull_request_that_is_continued_until_it_is_merged(hub, pushed, folder):
    command = ("dataset", "bbnli", "--to", "org/bbnli")
    pushed(*command)
    repository = hub.repositories["dataset", "org/bbnli"]
    before = dict(repository.files)
    (folder / "TEMPLATES.md").write_text("changed", "utf-8")
    output = pushed(*command)
    assert "as a pull request" in output
    assert "to send: 1 files, 7 bytes" in output
    assert f"pushed: {hub.url}/datasets/org/bbnli/discussions/1" in output
    assert repository.files == before
    assert repository.branches["refs/pr/1"] == {**before, "TEMPLATES.md": b"changed"}

    commits = len(repository.commits)
    assert "discussions/1 holds these" in pushed(*command)
    assert len(repository.commits) == commits

    (folder / "TEMPLATES.md").write_text("changed again", "utf-8")
    assert "into the open pull request #1" in pushed(*command)
    assert repository.branches["refs/pr/1"] == {**before, "TEMPLATES.md": b"changed again"}
    assert len(repository.pull_requests) == 1

    repository.merge(1)
    commits = len(repository.commits)
    assert "nothing to do" in pushed(*command)
    assert len(repository.commits) == commits
    (folder / "TEMPLATES.md").write_text("a third time", "utf-8")
    assert "discussions/2" in pushed(*command)


def test_without_a_pull_request_main_is_changed_and_stale_files_of_own_folders_go(hub, pushed, folder):
    command = ("dataset", "bbnli", "--to", "org/bbnli", "--no-create-pr")
    pushed(*command)
    repository = hub.repositories["dataset", "org/bbnli"]
    expected = dict(repository.files)
    stale = {"data/old/test-00000-of-00001.parquet": b"old", "notes.md": b"by somebody"}
    repository.files.update(stale)
    output = pushed(*command)
    assert "removed: not part of this dataset" in output
    assert repository.files == {**expected, "notes.md": b"by somebody"}
    assert repository.pull_requests == []


@pytest.mark.slow
def test_nobody_else_s_pull_request_is_continued(hub, pushed, folder):
    command = ("dataset", "bbnli", "--to", "org/bbnli")
    pushed(*command)
    repository = hub.repositories["dataset", "org/bbnli"]
    (folder / "TEMPLATES.md").write_text("changed", "utf-8")
    pushed(*command)
    repository.pull_requests[0].author = "somebody"
    assert "discussions/2" in pushed(*command)


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("name", ["create_repo", "create_commit"])
def test_a_push_that_is_cut_off_and_repeated_ends_right(hub, pushed, refused, folder, moment, name):
    command = ("dataset", "bbnli", "--to", "org/bbnli")
    hub.breaks = (moment, name, None)
    assert "rerun the command" in refused(*command, "--yes")
    hub.breaks = None
    assert ("nothing to do" in pushed(*command)) == ((moment, name) == ("after", "create_commit"))
    repository = hub.repositories["dataset", "org/bbnli"]
    assert len(repository.commits) == 1
    assert "TEMPLATES.md" in repository.files

    (folder / "TEMPLATES.md").write_text("changed", "utf-8")
    hub.breaks = (moment, "create_commit", None)
    assert "the connection failed" in refused(*command, "--yes")
    hub.breaks = None
    assert ("nothing to do" in pushed(*command)) == (moment == "after")
    assert [request.num for request in repository.pull_requests] == [1]
    assert repository.branches["refs/pr/1"]["TEMPLATES.md"] == b"changed"


def test_rights_are_missing(hub, refused):
    elsewhere = ("metric", "bbq", "--to", "elsewhere/bbq", "--yes")
    assert "check that elsewhere is you" in refused(*elsewhere)
    hub.create("space", "elsewhere/bbq").files["bbq.py"] = b"theirs"
    assert "may not write there (403" in refused(*elsewhere, "--no-create-pr")
    assert hub.repositories["space", "elsewhere/bbq"].commits == []


@pytest.mark.parametrize(
    ("broken", "fix"),
    [
        ({"HF_TOKEN": "hf_another"}, "correct HF_TOKEN"),
        ({"HF_TOKEN": f"{TOKEN}\u00fc"}, "invalid character"),
        ({"HF_TOKEN": ""}, "hf auth login"),
        (("before", "whoami", (429, "too many requests")), "rerun the command later"),
        (("before", "whoami", (400, "no such file")), "correct this and rerun"),
        (("before", "validate_yaml", (400, f"bad head {TOKEN}")), "bad head [token]"),
        ("HF_HUB_OFFLINE", "unset HF_HUB_OFFLINE"),
    ],
)
def test_each_mistake_is_one_line_with_the_fix(hub, refused, monkeypatch, broken, fix):
    match broken:
        case str():
            monkeypatch.setattr(constants, broken, True)
        case dict():
            monkeypatch.setenv(*next(iter(broken.items())))
        case _:
            hub.breaks = broken
    assert fix in refused("metric", "bbq", "--to", "org/bbq", "--yes").replace("\n", " ")
    assert "create_commit" not in hub.calls


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("dataset", "bbq", "--to", "bbq"), "ORG/NAME"),
        (("dataset", "bbq", "--to", "org/b b q"), "is not a repository name"),
        (("dataset", "bbq_nli", "--to", "org/bbq"), "a part of the dataset bbq\n  fix: choose one of bbq,"),
        (("dataset", "bbq", "--to", "org/bbq", "--source", "nowhere"), "source"),
        (("dataset", "bbq", "--to", "org/bbq", "--seed", "7"), "--seed"),
        (("dataset", "unqover", "--to", "org/unqover", "--as-benchmark"), "unqover has no eval.yaml"),
        (("metric", "bbq", "--to", "org/scores"), "another of its modules"),
        (("metric", "bbq", "--to", "org/bbq.v2"), "cannot be imported"),
    ],
)
def test_wrong_names_are_refused_before_the_hub_is_asked(hub, refused, arguments, word):
    assert word in refused(*arguments, "--yes")
    assert hub.calls == []


def test_nothing_is_sent_without_a_yes(hub, push, refused, monkeypatch):
    command = ("metric", "bbq", "--to", "org/bbq")
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert "Add --yes" in refused(*command)
    assert hub.calls == []

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    code, output, _ = push(*command)
    assert (code, "nothing sent" in output) == (0, True)
    assert hub.writes == []
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    assert "pushed:" in push(*command)[1]


def test_the_authors_texts_go_out_with_licence_and_attribution(hub, pushed, upstream):
    pushed("dataset", "bbnli", "--to", "org/bbnli", "--source", "official", "--mirror", upstream)
    files = hub.repositories["dataset", "org/bbnli"].files
    card = DatasetCard(files["README.md"].decode())
    assert card.data["license"] == "mit"
    assert "Akyürek et al." in card.text
    assert not [path for path in files if path.startswith(("templates/", "vocabulary/"))]


@pytest.mark.parametrize(
    ("old", "new", "lack"),
    [
        ("license: mit", "license: apache-2.0", "license: mit in the head"),
        ("MIT", "free", "the licence MIT"),
        ("Akyürek", "Somebody", "the authors"),
        ("9f55895", "", "the commit of feyzaakyurek/bbnli"),
    ],
)
def test_the_authors_texts_stay_here_without_licence_or_attribution(old, new, lack):
    card = "---\nlicense: mit\n---\nBBNLI (Akyürek et al., 2022), official@9f55895, licence MIT.\n"
    contents.check_attribution(card, "bbnli")
    with pytest.raises(QabiasError, match=lack):
        contents.check_attribution(card.replace(old, new), "bbnli")


def test_data_that_the_card_does_not_name_is_not_pushed(hub, refused, folder):
    extra = folder / "data" / "more"
    extra.mkdir()
    (extra / "test-00000-of-00001.parquet").write_bytes(b"")
    assert "card and data differ in data/more/" in refused("dataset", "bbnli", "--to", "org/bbnli", "--yes")
    assert hub.calls == []


@pytest.fixture
def run_folder(compared_runs):
    return compared_runs / "bbq-all"


def test_results_come_to_the_model_as_a_pull_request_that_leaves_its_card_alone(hub, pushed, run_folder):
    repository = hub.create("model", "elsewhere/model")
    repository.files["README.md"] = b"its card"
    before = dict(repository.files)
    command = ("results", run_folder, "--to", "elsewhere/model", "--dataset", "org/bbq", "--sample")
    output = pushed(*command)
    assert f"pushed: {hub.url}/elsewhere/model/discussions/1" in output
    assert json.loads((run_folder / "run.json").read_text("utf-8"))["signature"] in output
    expected = result_files(run_folder, "elsewhere/model", "org/bbq", sample=True)
    assert repository.files == before
    assert repository.branches["refs/pr/1"] == {**before, **expected}
    assert "discussions/1 holds these" in pushed(*command)
    repository.merge(1)
    assert "nothing to do" in pushed(*command)


def test_results_need_a_model_that_is_there_and_a_run_that_is_finished(hub, refused, run_folder, tmp_path):
    command = ("--to", "org/model", "--dataset", "org/bbq", "--yes")
    assert "no such model" in refused("results", run_folder, *command, "--sample")
    assert "a sample of 400 examples" in refused("results", run_folder, *command)
    assert hub.repositories == {}
    unfinished = shutil.copytree(run_folder, tmp_path / "unfinished")
    (unfinished / "scores.json").unlink()
    assert "unfinished" in refused("results", unfinished, *command)
    assert "not a run folder" in refused("results", tmp_path, *command)
