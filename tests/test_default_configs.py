"""Every benchmark with texts of its own is run and planned with its default configuration, from the command line."""

import pytest
from typer.testing import CliRunner

from qabias.benchmarks import benchmark_names, load_benchmark
from qabias.cli import app

# The others have their authors' texts alone, which are downloaded.
BUNDLED = [name for name in benchmark_names() if load_benchmark(name).sources[0] == "bundled"]


def invoke(*arguments):
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "250"})
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("name", BUNDLED)
def test_the_default_configuration_is_run_and_scored(name, tmp_path):
    folder = str(tmp_path / "run")
    output = invoke("run", name, "--model", "baseline:random", "--limit", "24", "--output", folder)
    assert f"|config:{load_benchmark(name).configs[-1]}|" in output
    assert f"|config:{load_benchmark(name).configs[-1]}|" in invoke("score", folder)


def test_there_are_bundled_benchmarks():
    assert {"bbq", "bbnli", "bbq_nli", "bbq_qa", "unqover"} <= set(BUNDLED)
