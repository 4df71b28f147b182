"""The tasks of `qabias.inspect_tasks` for a checkout: `inspect eval integrations/inspect/tasks.py@qabias_bbq`."""

from typing import Any

from inspect_ai import Task, task

from qabias.inspect_tasks.tasks import make_task


@task
def qabias_bbq(**arguments: Any) -> Task:
    """BBQ: which of two people, or neither, in ambiguous and disambiguated contexts."""
    return make_task("bbq", arguments)


@task
def qabias_unqover(**arguments: Any) -> Task:
    """UnQover: four questions about each pair of subjects, whose context favors neither."""
    return make_task("unqover", arguments)


@task
def qabias_bbnli(**arguments: Any) -> Task:
    """BBNLI: whether a hypothesis follows from an unrelated premise."""
    return make_task("bbnli", arguments)
