"""What type checkers tell users: every public function says what it takes and gives, and typing errors are found."""

import ast
import inspect
import re
import subprocess
import sys

import pytest

import qabias

from .conftest import ROOT

SCRIPT = """\
import numpy as np
import pandas as pd
import qabias

rows = qabias.load("bbq", "Age", limit=40)
result = qabias.run("bbq", model="baseline:random", limit=40)
reveal_type(result)
reveal_type(qabias.read("runs/one"))
reveal_type(qabias.score(np.array([1, 2]), pd.DataFrame(), rules={"unparsed": "wrong"}))
reveal_type(qabias.compare([result, "runs/one"]))
reveal_type(result.table("bias_by_category"))
reveal_type(result.tables)
reveal_type(result.figure("bias_by_category"))
reveal_type(result.push("me/model", "me/bbq", dry_run=True))
reveal_type(result.outcomes)
reveal_type(result.report("page.html"))
wrong: int = qabias.run("bbq")
qabias.run("bbq", limits=3)
result.table("bias_by_category", format="csv")
qabias.compared
"""
RESULT, FRAME = "qabias.api.result.Result", "pandas.core.frame.DataFrame"
REVEALED = [RESULT, RESULT, RESULT, "qabias.api.functions.ComparedResults", FRAME, f"dict[str, {FRAME}]"]
REVEALED += ["qabias.tables.drawing.Drawing", "str", "typing.Mapping[str, int]", "pathlib.Path"]
ERRORS = ["assignment", "call-arg", "call-overload", "attr-defined"]
# An installed package is not checked itself, and nobody's type checker must read the whole of torch for this, nor what
# prints and draws.
SETTINGS = """\
[mypy]
strict = true
[mypy-qabias.*]
follow_imports = silent
[mypy-torch.*,transformers.*,evaluate.*,datasets.*,pyarrow.*,rich.*,matplotlib.*,PIL.*,httpx2.*,jinja2.*]
follow_imports = skip
ignore_missing_imports = true
"""


@pytest.mark.slow
def test_a_users_script_is_understood_by_mypy(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "mypy.ini").write_text(SETTINGS)
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--cache-dir", "cache", "script.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env={"MYPYPATH": str(ROOT)})
    assert done.stderr == ""
    lines = [line for line in done.stdout.splitlines() if line.startswith("script.py")]
    assert [line.split('"')[1] for line in lines if "Revealed type" in line] == REVEALED, done.stdout
    assert [re.search(r"\[([\w-]+)\]$", line)[1] for line in lines if ": error:" in line] == ERRORS, done.stdout


# Scores are what a metric returns: numbers, counts and breakdowns by names that only the benchmark knows; arguments are
# as various. Everything else has a type.
MAY_BE_ANY = {"Result.scores", "Result.arguments"}


def signatures():
    """Every public function, method and property behind `import qabias`, with the annotations of its source."""
    for name in qabias.__all__:
        of = getattr(qabias, name)
        if inspect.isfunction(of):
            yield name, of
        elif not issubclass(of, Exception):
            for part, member in inspect.getmembers(of):
                given = getattr(member, "fget", None) or getattr(member, "func", None) or member
                if not part.startswith("_") and inspect.isfunction(given):
                    yield f"{name}.{part}", given


@pytest.mark.parametrize(("name", "function"), [pytest.param(*pair, id=pair[0]) for pair in signatures()])
def test_no_public_signature_leaves_a_type_out(name, function):
    signature = inspect.signature(function)
    written = {part: parameter.annotation for part, parameter in signature.parameters.items() if part != "self"}
    written["return"] = signature.return_annotation
    assert inspect.Signature.empty not in written.values(), name
    vague = [part for part, text in written.items() if re.search(r"\b(Any|object)\b", str(text))]
    assert vague == (["return"] if name in MAY_BE_ANY else [])


def test_names_of_type_checkers_are_those_of_the_module():
    tree = ast.parse((ROOT / "qabias" / "__init__.py").read_text("utf-8"))
    checked = next(node for node in tree.body if isinstance(node, ast.If) and node.test.id == "TYPE_CHECKING")
    homes = {node.names[0].asname: node.module for node in checked.body}
    assert homes == qabias._HOMES
    assert sorted(homes) == qabias.__all__
    for name, home in homes.items():
        assert getattr(qabias, name) is getattr(sys.modules[home], name)
    with pytest.raises(AttributeError, match="module 'qabias' has no attribute 'compered'"):
        qabias.compered  # noqa: B018
