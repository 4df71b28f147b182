"""What is shipped works without the checkout, and with every major version of `datasets`."""

import configparser
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from urllib.parse import urljoin, urlsplit

import pytest
import yaml

from .conftest import ROOT


def _clean_environment(tmp_path):
    kept = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "QABIAS_UPSTREAM")}
    return {**kept, "HF_HOME": str(tmp_path / "hf"), "HF_HUB_OFFLINE": "1"}


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """A folder with the source distribution and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("distributions")
    # From a copy of what git tracks, so that a file that is not committed cannot help.
    source = folder / "source"
    source.mkdir()
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x"], cwd=source, input=archive, check=True)
    subprocess.run([sys.executable, "-m", "build", "--outdir", folder, source], check=True, capture_output=True)
    shutil.rmtree(source)
    return folder


@pytest.fixture(scope="module")
def wheel(distributions):
    [path] = distributions.glob("*.whl")
    return path


@pytest.mark.parametrize("python", ["false", "no-such-python"])
def test_make_names_a_python_without_venv_and_leaves_nothing(tmp_path, python):
    folder = tmp_path / "venv"
    command = ["make", f"VENV={folder}", f"PYTHON={python}", str(folder / ".installed")]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode
    assert ended.stderr.startswith(f"error: {python} is not Python 3.10 or newer with venv.\n  fix: apt install")
    assert not folder.exists()


def test_a_release_links_the_package_index_to_the_repository_that_made_it(tmp_path):
    """README.md is its page there, where relative links are dead."""
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8"))
    [step] = [step for step in workflow["jobs"]["build"]["steps"] if step.get("name", "").startswith("Links")]
    for name in ("setup.cfg", "README.md"):
        shutil.copy(ROOT / name, tmp_path)
    names = {"GITHUB_SERVER_URL": "https://example.org", "GITHUB_REPOSITORY": "some/qabias", "GITHUB_REF_NAME": "v9.8"}
    subprocess.run(["bash", "-e", "-c", step["run"]], cwd=tmp_path, env={**os.environ, **names}, check=True)
    metadata = configparser.ConfigParser()
    metadata.read(tmp_path / "setup.cfg")
    urls = dict(line.split(" = ") for line in metadata["metadata"]["project_urls"].strip().splitlines())
    assert urls["Source"] == "https://example.org/some/qabias"
    assert set(urls) == {"Source", "Changelog", "Issues"}
    before = re.findall(r"\]\(([^)]+)\)", (ROOT / "README.md").read_text("utf-8"))
    after = re.findall(r"\]\(([^)]+)\)", (tmp_path / "README.md").read_text("utf-8"))
    root = "https://example.org/some/qabias/blob/v9.8/"
    plain = [urljoin(path, urlsplit(path).path) for path in after]
    assert plain == [urljoin(root, path) for path in before]
    assert all(path.startswith("https://") for path in after)
    assert [path for path in after if path.endswith(".png?raw=true")] == [root + "docs/images/audit.png?raw=true"]


def test_workflows_only_run_what_the_repository_has():
    """Every target of make and every script exists. Actions are pinned, and only the last job may publish."""
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    ran = set()
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml")):
        workflow = yaml.safe_load(path.read_text("utf-8"))
        assert workflow["permissions"] == {"contents": "read"}
        for name, job in workflow["jobs"].items():
            assert job.get("permissions", {}) == ({"id-token": "write"} if name == "publish" else {})
            matrix = job.get("strategy", {}).get("matrix", {})
            values = [*matrix.get("target", []), *(entry["target"] for entry in matrix.get("include", []))]
            for step in job["steps"]:
                assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", step.get("uses", "x@" + "0" * 40)), step
                for value in values or [""]:
                    words = step.get("run", "").replace("${{ matrix.target }}", value).split()
                    if words[:1] == ["make"]:
                        ran |= {word for word in words[1:] if "=" not in word}
                    elif words[:1] == ["bash"]:
                        assert (ROOT / words[1]).is_file()
    assert ran <= set(targets)
    assert ran >= {"test", "check", "docs", "lowest", "test-all", "compat"}


@pytest.mark.slow
def test_the_package_index_would_take_both_distributions(distributions):
    paths = sorted(distributions.iterdir())
    assert [path.suffix for path in paths] == [".whl", ".gz"]
    result = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *paths], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout
    assert result.stdout.count("PASSED") == 2


@pytest.mark.slow
def test_the_source_distribution_has_all_that_git_has_but_how_it_is_worked_on(distributions):
    [path] = distributions.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    tracked = subprocess.run(["git", "ls-tree", "-r", "--name-only", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    missing = set(tracked.stdout.splitlines()) - packed
    assert {path for path in missing if not path.startswith((".ci/", ".git", ".pre-commit"))} == set()


@pytest.mark.slow
def test_the_wheel_carries_the_package_and_the_folders_of_datasets_and_metrics_and_nothing_else(wheel):
    tracked = subprocess.run(["git", "ls-tree", "-r", "--name-only", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    expected = set()
    for path in tracked.stdout.splitlines():
        folder = path.partition("/")[0]
        if folder == "qabias" and not (ROOT / path).is_symlink():
            expected.add(path)
        elif folder.endswith("_dataset") or folder == "metrics":
            expected.add(f"qabias/share/{path}")
    assert "qabias/benchmarks/bbq/intro.html.j2" in expected
    assert "qabias/share/bbq_dataset/data/Age/test-00000-of-00001.parquet" in expected
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
        shared = archive.read("qabias/share/metrics/bbq/intervals.py")
    assert packed == expected
    assert shared == (ROOT / "metrics" / "shared" / "intervals.py").read_bytes()


@pytest.mark.slow
def test_wheel_runs_in_an_empty_environment_away_from_the_clone(wheel, tmp_path):
    environment = _clean_environment(tmp_path)
    uv = [sys.executable, "-m", "uv", "--quiet"]
    subprocess.run([*uv, "venv", "--python", sys.executable, tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    install = [*uv, "pip", "install", "--python", python, "--constraint", ROOT / "constraints.txt", wheel]
    subprocess.run(install, check=True, cwd=tmp_path, env=environment)
    without = "from importlib.util import find_spec; assert not find_spec('torch') and not find_spec('transformers')"
    subprocess.run([python, "-c", without], check=True, cwd=tmp_path, env=environment)
    qabias = tmp_path / "venv" / "bin" / "qabias"
    subprocess.run(
        [qabias, "run", "bbq", "--config", "Age", "--model", "baseline:stereotyped", "--output", "run"],
        check=True,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
    )
    scores = json.loads((tmp_path / "run" / "scores.json").read_text("utf-8"))["scores"]
    assert (scores["bias_ambig"], scores["bias_disambig"], scores["n"]) == (1, 1, 3680)
    subprocess.run(
        [qabias, "build", "bbq", "--config", "Age", "--output", "built"],
        check=True,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
    )
    built = tmp_path / "built" / "data" / "Age" / "test-00000-of-00001.parquet"
    assert built.read_bytes() == (ROOT / "bbq_dataset" / "data" / "Age" / built.name).read_bytes()


@pytest.mark.slow
def test_every_major_version_of_datasets_loads_the_folders(tmp_path):
    result = subprocess.run(
        ["bash", str(ROOT / "tests" / "datasets_versions.sh")],
        env={**_clean_environment(tmp_path), "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    for version in ("2.14.7", "3.6.0", "4.", "5."):
        assert f"datasets {version}" in result.stdout
