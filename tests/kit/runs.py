"""Small runs of every benchmark, made once for all tests of comparisons, and what these tests share."""

import shutil

from qabias.runs.arguments import RunArguments
from qabias.runs.run import run
from qabias.tables.model import find, flat

from ..run_parts import edit, edit_run


def make_runs(where):
    """Runs of baselines in folders by name."""

    def make(name, benchmark, model, **arguments):
        run(RunArguments(benchmark=benchmark, model=f"baseline:{model}", **arguments), where / name)

    for model in ("stereotyped", "random", "unknown"):
        make(f"bbq-{model}", "bbq", model, config="Age", limit=200)
    make("bbq-again", "bbq", "random", config="Age", limit=200)
    make("bbq-more", "bbq", "random", config="Age", limit=400)
    make("bbq-all", "bbq", "random", limit=400)
    for model in ("stereotyped", "random"):
        make(f"bbq-blind-{model}", "bbq", model, config="Age", limit=200, format="question_only")
    make("nli", "bbq_nli", "stereotyped", config="Age_nli", limit=240)
    make("nli-random", "bbq_nli", "random", config="Age_nli", limit=240)
    make("bbq-race", "bbq", "random", config="Age", limit=200, format="race")
    make("bbnli-gpt3", "bbnli", "random", config="gender", limit=60, format="gpt3")
    make("nli-one-order", "bbq_nli", "random", config="Gender_identity_nli_context", limit=240)
    for model in ("stereotyped", "random"):
        make(f"bbnli-{model}", "bbnli", model, config="gender", limit=60)
    for model in ("random", "consistent"):
        make(f"unqover-{model}", "unqover", model, config="religion", limit=600)
    return where


def make_checked(where):
    """Runs of BBQ for checks against limits: `kept` has no bias, `broken` has, `small` cannot tell."""
    for name, model, limit in (("kept", "oracle", 4000), ("broken", "stereotyped", 800), ("small", "random", 40)):
        run(RunArguments("bbq", f"baseline:{model}", limit=limit), where / name)
    return where


def differing(analysis, name):
    """The rows of a table of differences by group: difference, p and adjusted p."""
    return {row[0]: row[1:4] for row in find(analysis.tables, f"difference_{name}").rows}


def cells(table, names="title"):
    """The values of a table by row and title or name of the column."""
    table = flat(table)
    titles = [getattr(column, names) for column in table.columns]
    return {row[0]: dict(zip(titles[1:], row[1:], strict=True)) for row in table.rows}


def changed(folder, copy, **changes):
    """A copy of a run with other contents of its files."""
    shutil.copytree(folder, copy)
    for name, change in changes.items():
        if name == "run":
            edit_run(copy, change)
        else:
            edit(copy / f"{name}.json", change)
    return copy
