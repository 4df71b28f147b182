"""The packages of qabias and their imports, read from the code; writes the list in docs/architecture.md.

    python docs/packages.py            print the list
    python docs/packages.py --write    write it into docs/architecture.md

A package is a folder of `qabias/`. It imports only from packages below it. Every import counts: at the top of a file,
inside a function, or for type checkers only.
"""

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "qabias"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- packages: written by docs/packages.py -->\n", "<!-- end of packages -->\n"

# From the lowest to the highest, each with its content.
PACKAGES = {
    "errors": "the exception for users: what happened, and the fix",
    "support": "writing files, reading tables, Arrow helpers, suggestions for unknown names",
    "building": "published files (pinned, verified), templates, cards, dataset folders",
    "models": "loading models and tokenizers",
    "scores": "a score with what limits it, and the judge that compares it with a condition",
    "tables": "tables and figures as values; drawing, export",
    "answers": "from model output to an answer: likelihoods, parsing",
    "logs": "log files of other evaluation tools",
    "scorers": "backends: how a model is queried, one file each",
    "benchmarks": "one folder per benchmark: prompts, facts, tables",
    "runs": "a run: arguments, questions, folder, signature, scores",
    "comparison": "paired tests between runs",
    "pooling": "averages over prompts, formats or seeds",
    "hub": "datasets, metrics and results for the Hugging Face Hub",
    "evidence": "documents for model cards, audits and result stores; verification of their numbers",
    "report": "reports, terminal and notebook output",
    "inspect_tasks": "the benchmarks as tasks of inspect_ai",
    "studies": "several runs of one model with one result: an audit, a test for contamination",
    "planning": "what a run takes: requests and cost of a server, questions until a verdict",
    "api": "`import qabias`: functions and results",
    "testing": "assertions for tests and release pipelines",
    "callbacks": "bias during training",
    "cli": "the command line, whose commands are imported on call",
}


def modules() -> dict[str, Path]:
    """All modules of the package by their dotted name; a package has the name of its folder."""
    found = {}
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = path
    return found


def imports_of(name: str, path: Path, known: dict[str, Path]) -> Iterator[str]:
    """The modules of the package that a file imports, anywhere in it."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
            if node.level:
                source = ".".join(
                    [*package.split(".")[: len(package.split(".")) + 1 - node.level], *filter(None, [source])]
                )
            for alias in node.names:
                if f"{source}.{alias.name}" in known:
                    yield f"{source}.{alias.name}"
                elif source in known:
                    yield source


@cache
def graph() -> dict[str, set[str]]:
    """For every module the modules of the package that it imports."""
    known = modules()
    return {name: set(imports_of(name, path, known)) - {name} for name, path in known.items()}


def package_of(module: str) -> str:
    """The package of a module; "" for `qabias` itself and `__main__`."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in PACKAGES else ""


def arrows() -> dict[str, set[str]]:
    """For every package the packages that it imports from."""
    found: dict[str, set[str]] = {package: set() for package in PACKAGES}
    for module, imported in graph().items():
        package = package_of(module)
        if package:
            found[package] |= {package_of(other) for other in imported} - {package, ""}
    return found


def picture() -> str:
    """The packages from the highest down, each with its content and its imports."""
    order, imports = list(PACKAGES), arrows()
    width = max(map(len, order))
    rows = []
    for package in reversed(order):
        below = sorted(imports[package], key=order.index, reverse=True)
        rows.append(f"{package:<{width}}  {PACKAGES[package]}")
        rows.append(f"{'':<{width}}  imports: {', '.join(below) or 'nothing'}")
    return "```text\n" + "\n".join(rows) + "\n```\n"


def drawn(page: str) -> str:
    """The page with the list between its marks."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{picture()}\n{END}{tail}"


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PAGE.write_text(drawn(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        sys.stdout.write(picture())
