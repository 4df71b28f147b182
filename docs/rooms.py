"""The rooms of the house and who imports whom, read from the code; draws the picture in docs/architecture.md.

    python docs/rooms.py            print the picture
    python docs/rooms.py --write    put it into docs/architecture.md

A room is a folder of `qabias/`. It imports from rooms below it only, and every import counts: at the top of a file,
inside a function, or for type checkers alone.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "qabias"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- rooms: written by docs/rooms.py -->\n", "<!-- end of rooms -->\n"

# From the ground up, each with what it is.
ROOMS = {
    "errors": "the one exception that a user is meant to read",
    "support": "files written whole, tables read, Arrow helpers, suggestions for a name that is not there",
    "building": "published files (pinned, verified), templates, cards, one writer of dataset folders",
    "models": "models and tokenizers of any head, loaded with one readable error",
    "tables": "tables and figures as values; formatting, drawing, printing, export",
    "answers": "from what a model gave to what it answered: likelihoods, parsing",
    "logs": "files that other evaluation tools write, sample by sample",
    "scorers": "ways of asking a model, one file each with its description",
    "benchmarks": "all that the engine knows of a benchmark, one folder each",
    "runs": "a run: arguments, question, folder, signature; asked, scored, merged, or read from what others collected",
    "comparison": "runs side by side, with paired tests",
    "pooling": "several runs of the same questions as one: means over prompts, formats or seeds",
    "hub": "datasets, metrics and results for the Hugging Face Hub",
    "report": "what people read: pages, cards of notebooks, scores and comparisons in the terminal",
    "inspect_tasks": "the benchmarks as tasks of inspect_ai",
    "suites": "several runs by one command: the experiments of the papers, published and parallel texts",
    "planning": "requests, tokens and cost of a server before it is asked",
    "devices": "proof of a device: scorers held against float64, plain loops and what the device can do",
    "api": "from Python: `import qabias`, results with tables, figures and answers",
    "testing": "assertions about results, for tests and release pipelines",
    "callbacks": "bias measured while a model is trained",
    "cli": "the command line, one file per command",
}


def modules() -> dict[str, Path]:
    """All modules of the package by their dotted name; a package has the name of its folder."""
    found = {}
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = path
    return found


def imports_of(name: str, path: Path, known: dict[str, Path]) -> Iterator[str]:
    """The modules of the package that a file imports, wherever the import stands in it."""
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


def graph() -> dict[str, set[str]]:
    """For every module the modules of the package that it imports."""
    known = modules()
    return {name: set(imports_of(name, path, known)) - {name} for name, path in known.items()}


def room_of(module: str) -> str:
    """The room of a module; "" for the package itself and `__main__`."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in ROOMS else ""


def arrows() -> dict[str, set[str]]:
    """For every room the rooms that it imports from."""
    found: dict[str, set[str]] = {room: set() for room in ROOMS}
    for module, imported in graph().items():
        room = room_of(module)
        if room:
            found[room] |= {room_of(other) for other in imported} - {room, ""}
    return found


def picture() -> str:
    """The rooms from the top of the house down, each with what it is and what it stands on."""
    order, stands_on = list(ROOMS), arrows()
    width = max(map(len, order))
    rows = []
    for room in reversed(order):
        below = sorted(stands_on[room], key=order.index, reverse=True)
        rows.append(f"{room:<{width}}  {ROOMS[room]}")
        rows.append(f"{'':<{width}}  stands on: {', '.join(below) or 'nothing'}")
    return "```text\n" + "\n".join(rows) + "\n```\n"


def drawn(page: str) -> str:
    """The page with the picture between its marks."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{picture()}\n{END}{tail}"


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PAGE.write_text(drawn(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        sys.stdout.write(picture())
