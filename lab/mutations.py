"""Which tests notice a mistake: `python -m lab.mutations --n 100` changes one operator, number or condition at a time.

Each mutation is run against the tests that execute its line, until one fails. `--map` lists these tests first
(`pip install pytest-cov`; twice the time of the fast tests). The working tree must have no changes and no other use.
`--like` takes only lines that another checkout has too, so that the tests of both can be compared.
"""

import ast
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lab.options import explained, make_parser, read_options
from qabias.errors import QabiasError

CORE = ("metrics/", "qabias/scorers/", "qabias/scores/", "qabias/runs/")
"""Where six of ten mutations are: formulas, scorers, the judge, sampling and the run folder."""

SOURCES = ("qabias", "metrics", "bbq_dataset", "unqover_dataset", "bbnli_dataset")
SWAPS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "in": "not in", "not in": "in"}
SWAPS |= {"is": "is not", "is not": "is", "+": "-", "-": "+", "*": "/", "/": "*", "and": "or", "or": "and"}
SIGNS: dict[type[ast.AST], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
SIGNS |= {ast.In: "in", ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not", ast.Add: "+", ast.Sub: "-"}
SIGNS |= {ast.Mult: "*", ast.Div: "/", ast.And: "and", ast.Or: "or"}
SECONDS = 300
"""After which a run of tests counts as a failure: a mutation may never end."""


class Mutation(NamedTuple):
    """A change of a file, in bytes."""

    path: Path
    line: int
    begin: int
    end: int
    text: str


def mutations(path: Path) -> Iterator[Mutation]:
    """The changes of one operator, number, condition or result within a function."""
    content = path.read_bytes()
    starts = [0]
    for line in content.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)

    def span(node: ast.expr) -> tuple[int, int]:
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return starts[node.lineno - 1] + node.col_offset, starts[end_line - 1] + end_column

    def change(node: ast.expr | ast.stmt, begin: int, end: int, text: str) -> Mutation:
        return Mutation(path, node.lineno, begin, end, text)

    def swap(left: ast.expr, right: ast.expr, operator: ast.AST) -> Iterator[Mutation]:
        sign, begin, end = SIGNS.get(type(operator), ""), span(left)[1], span(right)[0]
        position = content[begin:end].find(sign.encode()) if sign else -1
        if position >= 0:
            yield change(left, begin + position, begin + position + len(sign), SWAPS[sign])

    functions = [node for node in ast.walk(ast.parse(content)) if isinstance(node, ast.FunctionDef)]
    for node in (inner for function in functions for statement in function.body for inner in ast.walk(statement)):
        match node:
            case ast.Compare(ops=[operator], comparators=[right]):
                yield from swap(node.left, right, operator)
            case ast.BinOp():
                yield from swap(node.left, node.right, node.op)
            case ast.BoolOp():
                yield from swap(node.values[0], node.values[1], node.op)
            case ast.Constant(value=bool(value)):
                yield change(node, *span(node), repr(not value))
            case ast.Constant(value=int(number) | float(number)):
                yield change(node, *span(node), repr(number + 1))
            case ast.If():
                begin, end = span(node.test)
                yield change(node, begin, end, f"not ({content[begin:end].decode()})")
            case ast.Return(value=ast.expr() as result):
                yield change(node, *span(result), "None")


def is_common(mutation: Mutation, other: Path) -> bool:
    """Whether another checkout has the line too, once in each."""
    line = mutation.path.read_text().splitlines()[mutation.line - 1]
    copies = [mutation.path, other / mutation.path]
    return all(copy.is_file() and copy.read_text().splitlines().count(line) == 1 for copy in copies)


def choose(n: int, seed: int, like: Path | None) -> list[Mutation]:
    """Random mutations, 60% of them in `CORE`, no line twice."""
    tracked = subprocess.run(("git", "ls-files", *SOURCES), capture_output=True, text=True, check=True).stdout
    paths = [Path(name) for name in tracked.split() if name.endswith(".py")]
    rng = random.Random(seed)
    chosen: dict[tuple[Path, int], Mutation] = {}
    for is_core, most in ((True, round(0.6 * n)), (False, n)):
        found = [one for path in paths if path.as_posix().startswith(CORE) == is_core for one in mutations(path)]
        for one in rng.sample(found, len(found)):
            if len(chosen) < most and (like is None or is_common(one, like)):
                chosen.setdefault((one.path, one.line), one)
    return list(chosen.values())


def run_tests(*arguments: str) -> int:
    """Exit status of pytest."""
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments)
    try:
        return subprocess.run(command, stdout=subprocess.DEVNULL, timeout=SECONDS, check=False).returncode
    except subprocess.TimeoutExpired:
        return 1


def main() -> int:
    """Print each mutation and whether a test fails, and how many did."""
    parser = make_parser(
        __doc__, "few", n=(100, 3, "mutations"), most=(300, 20, "tests of each"), seed=(2026, 2026, "")
    )
    parser.add_argument("--map", action="store_true", help="first list the tests of every line, in .coverage")
    parser.add_argument("--like", type=Path, help="folder of another checkout")
    options = read_options(parser)
    with explained():
        if options.map:
            sources = [f"--cov={source}" for source in SOURCES]
            subprocess.run((sys.executable, "-m", "pytest", "-q", *sources, "--cov-context=test", "--cov-report="))
        try:
            from coverage import CoverageData
        except ImportError:
            raise QabiasError("lab.mutations needs coverage.", "pip install pytest-cov") from None
        known = CoverageData()
        known.read()
        n_dead = 0
        chosen = choose(options.n, options.seed, options.like)
        for one in chosen:
            lines = known.contexts_by_lineno(str(one.path.resolve()))
            tests = sorted({name.partition("|")[0] for name in lines.get(one.line, ()) if name})
            content = one.path.read_bytes()
            try:
                one.path.write_bytes(content[: one.begin] + one.text.encode() + content[one.end :])
                is_dead = bool(tests) and run_tests("-x", *tests[:: 1 + len(tests) // options.most]) != 0
            finally:
                one.path.write_bytes(content)
            n_dead += is_dead
            old = content[one.begin : one.end].decode()
            print(
                f"{'dead' if is_dead else 'ALIVE':5} {one.path}:{one.line} {old!r} -> {one.text!r} ({len(tests)} tests)"
            )
        print(f"{n_dead} of {len(chosen)} are noticed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
