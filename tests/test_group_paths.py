"""Every benchmark that says where the scores of a group stand says it right."""

import pytest

from .test_benchmark_contract import case, mirror  # noqa: F401

pytestmark = pytest.mark.filterwarnings("ignore:.*no answer:UserWarning")


def test_groups_are_found_by_their_paths(case):  # noqa: F811
    for name, of in case.benchmark.groups(case.scores).items():
        path = case.benchmark.group_path(name)
        if path is not None:
            found = case.scores
            for key in path:
                found = found[key]
            assert found is of, name
