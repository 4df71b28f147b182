"""The house stands: rooms in their order, no way up, no circle, no benchmark's name outside its folder."""

import ast
import re
import sys

import pytest

from docs import packages
from qabias.benchmarks import benchmark_names, registry
from qabias.cli.commands import COMMANDS

from .conftest import ROOT
from .kit.code import nodes_of

LOOSE = {"qabias", "qabias.__main__", "qabias.errors"}
# Holds no code: the dataset and metric folders lie there in a wheel.
SHARE = "qabias.share"
MOST_LINES = 600
# What one person can hold in mind. A change that needs more first asks what can go.
MOST_FILES, MOST_PACKAGES, MOST_FLOORS, MOST_COMMANDS = 190, 23, 14, 16
DATASETS = ("bbq_dataset", "unqover_dataset", "bbnli_dataset")
# Prepositions and participles name nothing: `scores`, `group`, `match` and `rows` do.
NOT_NAMES = {"of", "found", "given", "told", "about"}
# The folders of the package that hold a benchmark, from the modules that are registered.
FOLDERS = {
    name: module.rsplit(".", 2)[1]
    for name, module in ((n, registry.address(n).partition(":")[0]) for n in benchmark_names())
}


def python_files():
    folders = ("qabias", *DATASETS, "metrics", "runners", "lab", "tests", "docs")
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def imported_packages(path):
    """Names of the packages that a file imports, relative ones left out."""
    names = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module)
    return names


def test_every_module_has_a_room():
    code = [module for module in packages.modules() if not module.startswith(SHARE)]
    loose = {module for module in code if not packages.package_of(module) or module.count(".") == 1}
    files = {module for module in loose if packages.modules()[module].name != "__init__.py"} | {"qabias"}
    assert files == LOOSE
    assert {module for module in code if not packages.package_of(module)} <= LOOSE


def test_no_room_imports_from_one_above_it():
    order = list(packages.PACKAGES)
    upward = [
        f"{module} -> {other}"
        for module, imported in packages.graph().items()
        for other in sorted(imported)
        if packages.package_of(module)
        and packages.package_of(other)
        and order.index(packages.package_of(other)) > order.index(packages.package_of(module))
    ]
    assert upward == []


def test_no_module_imports_itself_by_way_of_others():
    graph = packages.graph()
    done, path = set(), []

    def visit(module):
        if module in path:
            raise AssertionError(" -> ".join([*path[path.index(module) :], module]))
        if module not in done:
            path.append(module)
            for other in sorted(graph[module]):
                visit(other)
            path.pop()
            done.add(module)

    for module in graph:
        visit(module)


def test_no_benchmark_is_named_outside_of_its_folder():
    """Neither in code nor in data; comments and docstrings may give examples."""
    names = "|".join(sorted(FOLDERS, key=len, reverse=True))
    word = re.compile(rf"(?<![\w-])({names})(?![\w-])")
    found = []
    for path in sorted((ROOT / "qabias").rglob("*")):
        place = path.relative_to(ROOT / "qabias")
        if path.suffix not in (".py", ".yaml", ".j2", ".json", ".js") or place.as_posix() == "benchmarks/registry.py":
            continue
        texts = _literals(path) if path.suffix == ".py" else [path.read_text(encoding="utf-8")]
        own = place.parts[1] if place.parts[0] == "benchmarks" and len(place.parts) > 2 else None
        found += [
            f"{place}: {match[1]}"
            for text in texts
            for match in word.finditer(text)
            if path.name != "pinned_files.json" and FOLDERS[match[1]] != own
        ]
    assert found == []


def test_no_other_room_imports_the_folder_of_a_benchmark():
    folders = tuple(f"{registry.__package__}.{folder}" for folder in FOLDERS.values())
    found = [
        f"{module} -> {other}"
        for module, imported in packages.graph().items()
        for other in sorted(imported)
        if other.startswith(folders) and packages.package_of(module) != "benchmarks"
    ]
    assert found == []


def _literals(path):
    """The texts in the code of a file, docstrings left out."""
    standing_alone = {id(node.value) for node in nodes_of(path) if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in nodes_of(path)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in standing_alone
    ]


@pytest.mark.parametrize("folder", sorted(path.parent.name for path in (ROOT / "metrics").glob("*/requirements.txt")))
def test_a_metric_imports_only_what_its_space_installs(folder):
    pins = (ROOT / "metrics" / folder / "requirements.txt").read_text("utf-8").splitlines()
    installed = {re.split(r"[=<>\[]", pin)[0].strip() for pin in pins if pin and not pin.startswith("#")}
    # What these bring with them: evaluate needs datasets and NumPy, datasets needs PyArrow and PyYAML.
    allowed = installed | {"numpy", "pyarrow", "datasets", "yaml"} | set(sys.stdlib_module_names)
    for path in (ROOT / "metrics" / folder).glob("*.py"):
        assert {name.partition(".")[0] for name in imported_packages(path)} <= allowed, path.name


@pytest.mark.parametrize("folder", DATASETS)
def test_a_dataset_folder_imports_only_the_rooms_that_build(folder):
    for path in (ROOT / folder).glob("*.py"):
        ours = {name for name in imported_packages(path) if name.partition(".")[0] == "qabias"}
        assert {name.split(".")[1] for name in ours} <= {"building", "errors", "support"}, path.name


def test_no_file_is_longer_than_a_reader_likes():
    long = {path.name: n for path in python_files() if (n := len(path.read_text("utf-8").splitlines())) > MOST_LINES}
    assert long == {}


def test_the_house_does_not_grow_unnoticed():
    stands_on = packages.arrows()

    def floor(room):
        return 1 + max(map(floor, stands_on[room]), default=0)

    files = [module for module in packages.modules() if not module.startswith(SHARE)]
    assert len(files) <= MOST_FILES
    assert len(stands_on) <= MOST_PACKAGES
    assert max(map(floor, stands_on)) <= MOST_FLOORS
    assert len(COMMANDS) <= MOST_COMMANDS


def test_the_wheel_needs_no_laboratory():
    paths = [path for path in (ROOT / "qabias").rglob("*.py") if not path.is_symlink()]
    assert [path.name for path in paths if {name.partition(".")[0] for name in imported_packages(path)} & {"lab"}] == []


def named_in(path):
    """Names that a file gives to its variables, parameters, functions, classes and imports."""
    for node in nodes_of(path):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.alias) and node.asname:
            yield node.asname


@pytest.mark.parametrize("folder", ["qabias", "metrics"])
def test_names_say_what_they_hold(folder):
    paths = [path for path in sorted((ROOT / folder).rglob("*.py")) if not path.is_symlink()]
    assert paths
    unclear = {path.relative_to(ROOT).as_posix() for path in paths if {*named_in(path), path.stem} & NOT_NAMES}
    assert unclear == set()


def test_the_drawing_in_the_documentation_is_that_of_the_code():
    page = packages.PAGE.read_text(encoding="utf-8")
    assert packages.BEGIN in page
    assert page == packages.drawn(page), "python docs/packages.py --write"


def test_the_way_of_a_run_is_told_in_at_most_twenty_files_that_exist():
    page = packages.PAGE.read_text(encoding="utf-8")
    section = page.partition("## From the command to the scores\n")[2].partition("\n## ")[0]
    files = re.findall(r"^\d+\. `((?:qabias|metrics|bbq_dataset)/[\w/]+\.py)`", section, flags=re.MULTILINE)
    assert 10 <= len(files) <= 20
    for name in files:
        assert (ROOT / name).is_file(), name
