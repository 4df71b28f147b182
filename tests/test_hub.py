"""Pushing to the Hub and loading back, against a stand-in on loopback."""

import functools
import io
import json
import os
import shutil
import subprocess
import sys
from importlib import import_module

import pytest
from huggingface_hub import DatasetCard, constants
from huggingface_hub.utils import disable_progress_bars, enable_progress_bars

from qabias import cli
from qabias.benchmarks import load_benchmark, locate
from qabias.errors import QabiasError
from qabias.hub import contents
from qabias.runs.arguments import RunArguments
from qabias.runs.run import run

from .conftest import ROOT
from .stand_in_hub import TOKEN, StandInHub

NAMES = ("bbq", "unqover", "bbnli")


@pytest.fixture
def hub(monkeypatch):
    with StandInHub().serve() as server:
        monkeypatch.setattr(constants, "ENDPOINT", server.url)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda seconds: None)
        disable_progress_bars()
        yield server
        enable_progress_bars()


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
    """Push what must fail; returns the one line on standard error."""

    def run(*arguments):
        code, _, errors = push(*arguments)
        assert code == cli.EXIT_USER_ERROR
        [line] = errors.splitlines()
        return line.removeprefix("qabias: error: ")

    return run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A copy of the dataset bbnli that a test may change; it is pushed in place of the committed one."""
    copy = tmp_path / "bbnli_dataset"
    shutil.copytree(ROOT / "bbnli_dataset", copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(locate, "dataset_folder", lambda benchmark: copy)
    return copy


def dataset_files(benchmark, repository):
    """What must lie in the repository of a dataset: its folder without code, parts of the card and eval.yaml.

    Nor does it need how the texts were checked.
    """
    folder = ROOT / f"{benchmark}_dataset"
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    left_out = ("card", "eval", "gates")
    files = {path: content for path, content in files.items() if not path.startswith(left_out) and ".py" not in path}
    own_card = files["README.md"].decode()
    card = own_card.replace(f"./{benchmark}_dataset", repository)
    # Made when it is pushed, from the card and the Parquet files; tests/test_cards.py reads it.
    described = described_in_croissant(benchmark, own_card)
    return {**files, "README.md": card.encode(), "croissant.json": described, ".gitattributes": b""}


@functools.cache
def described_in_croissant(benchmark, card):
    origin = load_benchmark(benchmark).origin("bundled", 0, False, None)
    return import_module(f"qabias.share.{benchmark}_dataset.folder").croissant(origin, card).encode()


@pytest.mark.parametrize("benchmark", NAMES)
def test_a_dataset_is_pushed_whole_without_code_and_a_second_push_changes_nothing(hub, pushed, benchmark):
    output = pushed("dataset", benchmark, "--to", f"org/{benchmark}")
    assert "directly, since the repository is new" in output
    repository = hub.repositories["dataset", f"org/{benchmark}"]
    assert repository.files == dataset_files(benchmark, f"org/{benchmark}")
    assert not [path for path in repository.files if path.endswith(".py")]
    assert f'load_dataset("org/{benchmark}"' in repository.files["README.md"].decode()
    commits = list(repository.commits)
    assert "nothing to do" in pushed("dataset", benchmark, "--to", f"org/{benchmark}")
    assert repository.commits == commits
    assert repository.pull_requests == []


@pytest.mark.parametrize("benchmark", NAMES)
def test_the_hub_learns_of_a_benchmark_only_if_asked(benchmark, hub, pushed):
    pushed("dataset", benchmark, "--to", f"org/{benchmark}", "--as-benchmark")
    files = hub.repositories["dataset", f"org/{benchmark}"].files
    own = (ROOT / f"{benchmark}_dataset" / "eval.yaml").read_bytes()
    assert files == {**dataset_files(benchmark, f"org/{benchmark}"), "eval.yaml": own}


@pytest.mark.parametrize("benchmark", NAMES)
def test_a_metric_is_pushed_as_a_space_and_a_second_push_changes_nothing(hub, pushed, benchmark):
    assert "directly, since the repository is new" in pushed("metric", benchmark, "--to", f"org/{benchmark}")
    repository = hub.repositories["space", f"org/{benchmark}"]
    local = {path.name: path.read_bytes() for path in (ROOT / "metrics" / benchmark).glob("*.*")}
    card = local["README.md"].decode().replace(f"./metrics/{benchmark}", f"org/{benchmark}")
    card = card.replace(f"./{benchmark}_dataset", f"org/{benchmark}").encode()
    assert b'"./' not in card
    del local["__init__.py"]
    assert repository.files == {**local, "README.md": card, ".gitattributes": b""}
    commits = list(repository.commits)
    assert "nothing to do" in pushed("metric", benchmark, "--to", f"org/{benchmark}")
    assert repository.commits == commits


def test_a_new_repository_is_private_where_that_is_asked_for(hub, pushed):
    pushed("metric", "bbq", "--to", "org/bbq")
    pushed("metric", "bbq", "--to", "org/hidden", "--private")
    assert [repository.is_private for repository in hub.repositories.values()] == [False, True]


@pytest.mark.slow
def test_what_was_pushed_loads_in_an_empty_cache_and_equals_the_local_one(hub, pushed, tmp_path):
    for benchmark in NAMES:
        pushed("dataset", benchmark, "--to", f"org/{benchmark}")
        pushed("metric", benchmark, "--to", f"org/{benchmark}")
    pushed("metric", "bbq", "--to", "org/bias-of-answers")
    switched_off = ("HF_TOKEN", "HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "HF_EVALUATE_OFFLINE", "PYTHONPATH")
    environment = {name: value for name, value in os.environ.items() if name not in switched_off}
    environment |= {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "empty"), "HF_HUB_DISABLE_TELEMETRY": "1"}
    # `evaluate` counts downloads at an address of its own, far from here.
    environment |= {"HF_UPDATE_DOWNLOAD_COUNTS": "0", "HF_HUB_DISABLE_XET": "1"}
    result = subprocess.run(
        [sys.executable, ROOT / "tests" / "load_from_hub.py", ROOT],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert [line.partition(":")[0] for line in result.stdout.splitlines()] == [*NAMES, "bias-of-answers"]
    assert any("/spaces/org/bbq/resolve/main/scores.py" in request for request in hub.log)


@pytest.mark.parametrize("kind", ["dataset", "metric"])
def test_a_dry_run_lists_every_file_with_its_size_and_asks_the_hub_nothing(hub, push, kind, monkeypatch):
    monkeypatch.delenv("HF_TOKEN")
    code, output, _ = push(kind, "bbnli", "--to", "org/bbnli", "--dry-run")
    assert code == 0
    assert hub.log == []
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
    repository.commit("main", "by somebody")
    output = pushed(*command)
    assert "removed: it lies in a folder of this dataset" in output
    assert repository.files == {**expected, "notes.md": b"by somebody"}
    assert repository.pull_requests == []


def test_nobody_else_s_pull_request_is_continued(hub, pushed, folder):
    command = ("dataset", "bbnli", "--to", "org/bbnli")
    pushed(*command)
    repository = hub.repositories["dataset", "org/bbnli"]
    (folder / "TEMPLATES.md").write_text("changed", "utf-8")
    pushed(*command)
    repository.pull_requests[0]["author"]["name"] = "somebody"
    assert "discussions/2" in pushed(*command)


CUTS = {
    "before the repository is made": ("before", "POST /api/repos/create"),
    "after the repository is made": ("after", "POST /api/repos/create"),
    "in the upload of a large file": ("before", "PUT /large/"),
    "before the commit": ("before", "/commit/main"),
    "after the commit": ("after", "/commit/main"),
}


@pytest.mark.parametrize("cut", CUTS)
def test_a_first_push_that_is_cut_off_and_repeated_ends_right(hub, pushed, refused, cut):
    moment, part = CUTS[cut]
    seen = []

    def cuts(now, request):
        if now == moment and part in request:
            seen.append(request)
            # A large file arrives before the connection dies for good.
            return "PUT" not in request or len(seen) > 1
        return False

    command = ("dataset", "bbnli", "--to", "org/bbnli")
    hub.cuts = cuts
    line = refused(*command, "--yes")
    assert "the connection failed" in line
    assert "run the same command again" in line
    assert seen
    hub.cuts = lambda moment, request: False
    uploaded = len(hub.large_files)
    hub.log.clear()
    assert ("nothing to do" in pushed(*command)) == (cut == "after the commit")
    repository = hub.repositories["dataset", "org/bbnli"]
    assert repository.files == dataset_files("bbnli", "org/bbnli")
    assert [title for _, title in repository.commits] == ["initial commit", "Dataset bbnli by qabias"]
    assert repository.pull_requests == []
    n_large = len({path for path in repository.files if path.endswith(".parquet")})
    # What arrived before is not sent again.
    assert len([request for request in hub.log if request.startswith("PUT")]) == n_large - uploaded


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_pull_request_that_is_cut_off_and_repeated_is_opened_once(hub, pushed, refused, folder, moment):
    command = ("dataset", "bbnli", "--to", "org/bbnli")
    pushed(*command)
    (folder / "TEMPLATES.md").write_text("changed", "utf-8")
    hub.cuts = lambda now, request: now == moment and "/commit/main?create_pr" in request
    assert "the connection failed" in refused(*command, "--yes")
    hub.cuts = lambda now, request: False
    output = pushed(*command)
    assert ("nothing to do" in output) == (moment == "after")
    repository = hub.repositories["dataset", "org/bbnli"]
    assert [request["num"] for request in repository.pull_requests] == [1]
    assert repository.branches["refs/pr/1"]["TEMPLATES.md"] == b"changed"


def test_mistakes_are_one_line_with_the_fix(hub, refused, monkeypatch, tmp_path):
    command = ("metric", "bbq", "--to", "org/bbq", "--yes")
    elsewhere = ("metric", "bbq", "--to", "elsewhere/bbq", "--yes")
    assert "elsewhere is your name or an organization of yours" in refused(*elsewhere)
    hub.create("space", "elsewhere/bbq").files["bbq.py"] = b"theirs"
    hub.repositories["space", "elsewhere/bbq"].commit("main", "theirs")
    assert "may not write there (403" in refused(*elsewhere, "--no-create-pr")
    assert [repository.name for repository in hub.repositories.values()] == ["elsewhere/bbq"]

    monkeypatch.setenv("HF_TOKEN", f"{TOKEN[:-1]}X")
    assert "does not accept the token" in refused(*command)
    monkeypatch.setenv("HF_TOKEN", f"{TOKEN}”")
    assert "HF_TOKEN, which is read first" in refused(*command)
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "none"))
    assert "run `hf auth login`" in refused(*command)

    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "unset HF_HUB_OFFLINE" in refused(*command)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:1")
    assert "the connection failed (ConnectError)" in refused(*command)
    assert not [request for request in hub.log if "org/bbq" in request and not request.startswith("GET")]


def test_wrong_names_are_refused_before_the_hub_is_asked(hub, refused):
    assert "write ORG/NAME" in refused("dataset", "bbq", "--to", "bbq", "--yes")
    assert "is not the name of a repository" in refused("dataset", "bbq", "--to", "org/b b q", "--yes")
    assert "bbq_nli is a part of the dataset bbq; choose one of bbq," in refused(
        "dataset", "bbq_nli", "--to", "org/bbq", "--yes"
    )
    assert "another module of it" in refused("metric", "bbq", "--to", "org/scores", "--yes")
    assert "cannot be imported" in refused("metric", "bbq", "--to", "org/bbq.v2", "--yes")
    assert "unknown source" in refused("dataset", "bbq", "--to", "org/bbq", "--source", "nowhere", "--yes")
    assert hub.log == []


def test_nothing_is_sent_without_a_yes(hub, push, refused, monkeypatch):
    command = ("metric", "bbq", "--to", "org/bbq")
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert "add --yes" in refused(*command)
    assert hub.log == []

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    code, output, _ = push(*command)
    assert (code, "nothing sent" in output) == (0, True)
    assert all(request.startswith("GET") for request in hub.log)
    assert hub.repositories == {}
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    assert "pushed:" in push(*command)[1]


def test_the_authors_texts_go_out_with_licence_and_attribution(hub, pushed, upstream):
    pushed("dataset", "bbnli", "--to", "org/bbnli", "--source", "official", "--upstream-dir", upstream)
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
    assert hub.log == []


def test_a_head_that_the_hub_does_not_take_is_refused_and_nothing_is_sent(hub, refused, folder):
    card = folder / "README.md"
    card.write_text(card.read_text("utf-8").replace("- 1K<n<10K", "- some"), "utf-8")
    line = refused("dataset", "bbnli", "--to", "org/bbnli", "--yes")
    assert '"size_categories" must not be some' in line
    assert list(hub.repositories["dataset", "org/bbnli"].files) == [".gitattributes"]


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    """A finished run."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    return run(RunArguments("bbq", "baseline:stereotyped", "Age", limit=40), folder).folder


def test_a_card_of_a_metric_names_the_dataset_that_is_given(hub, pushed):
    pushed("metric", "bbq", "--to", "org/bbq", "--dataset", "other/questions")
    card = hub.repositories["space", "org/bbq"].files["README.md"].decode()
    assert 'load_dataset("other/questions", "Age"' in card
    assert 'load("org/bbq")' in card


def test_a_seed_that_would_change_nothing_is_refused(hub, refused):
    assert "one fixed set" in refused("dataset", "bbq", "--to", "org/bbq", "--seed", "7", "--yes")
    assert hub.log == []


def test_results_come_to_the_model_as_a_pull_request_that_leaves_its_card_alone(hub, pushed, run_folder):
    from qabias.hub.results import result_files

    repository = hub.create("model", "elsewhere/model")
    repository.files["README.md"] = b"its card"
    repository.commit("main", "its card")
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
    assert "a sample of 40 examples" in refused("results", run_folder, *command)
    assert hub.repositories == {}
    unfinished = shutil.copytree(run_folder, tmp_path / "unfinished")
    (unfinished / "scores.json").unlink()
    assert "unfinished" in refused("results", unfinished, *command)
    assert "holds no run" in refused("results", tmp_path, *command)
