"""Benchmarks of other packages: what a name that is taken, or one that cannot be imported, does to the others."""

import importlib.metadata

import pytest
from typer.testing import CliRunner

from qabias.benchmarks import benchmark_names, load_benchmark, loadable_benchmarks, registry
from qabias.cli import app
from qabias.errors import QabiasError
from qabias.hub.contents import load_dataset_owner


@pytest.fixture
def install(monkeypatch):
    """Installs entry points, as name and value."""

    def add(**values):
        entries = [importlib.metadata.EntryPoint(name, value, registry.GROUP) for name, value in values.items()]
        real = importlib.metadata.entry_points
        monkeypatch.setattr(
            importlib.metadata,
            "entry_points",
            lambda **by: entries if by.get("group") == registry.GROUP else real(**by),
        )
        registry.known_addresses.cache_clear()
        registry.load_named.cache_clear()

    yield add
    monkeypatch.undo()
    registry.known_addresses.cache_clear()
    registry.load_named.cache_clear()


def test_a_name_that_is_taken_stops_only_those_who_use_it(install):
    install(bbq="other_package:BENCHMARK")
    with pytest.raises(
        QabiasError, match=r"two benchmarks have the name 'bbq': .* other_package:BENCHMARK(?s:.*)ninstall"
    ):
        load_benchmark("bbq")
    assert load_benchmark("unqover").name == "unqover"


def test_one_that_cannot_be_imported_is_named_and_does_not_stop_the_others(install):
    install(broken="no_such_module:BENCHMARK")
    assert "broken" in benchmark_names()
    with pytest.raises(QabiasError, match=r"the benchmark broken \(no_such_module:BENCHMARK\) cannot be imported"):
        load_benchmark("broken")
    with pytest.warns(UserWarning, match="the benchmark broken"):
        assert set(loadable_benchmarks()) == set(benchmark_names()) - {"broken"}
    with pytest.warns(UserWarning, match="the benchmark broken"):
        assert load_dataset_owner("bbq").name == "bbq"
    with pytest.warns(UserWarning, match="the benchmark broken"):
        result = CliRunner().invoke(app, ["list"])
    assert result.exit_code == 0
    assert "\nunqover " in result.output
