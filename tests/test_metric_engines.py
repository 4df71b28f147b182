"""What the engine takes from a metric's folder: what its module `engine` offers, and nothing else."""

import ast
import importlib
from pathlib import Path

from qabias.benchmarks.locate import metric_module

ROOT = Path(__file__).parents[1]


def uses_of_metrics():
    """Every use of a metric folder in the engine: file, line, benchmark, module and the names that are taken."""
    for path in sorted((ROOT / "qabias").rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        of_function = {id(node): function for function in functions for node in ast.walk(function)}
        parents = {id(child): node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and ast.unparse(call.func).split(".")[-1] == "metric_module":
                benchmark, module = call.args
                place = f"{path.relative_to(ROOT)}:{call.lineno}"
                space = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
                parent = parents[id(call)]
                if isinstance(parent, ast.Attribute):
                    taken = {parent.attr}
                else:
                    assert isinstance(parent, ast.Assign), f"{place}: assign the module to a name"
                    [target] = parent.targets
                    loads = [
                        parents[id(node)]
                        for node in ast.walk(of_function[id(call)])
                        if isinstance(node, ast.Name) and node.id == target.id and isinstance(node.ctx, ast.Load)
                    ]
                    assert all(isinstance(node, ast.Attribute) for node in loads), f"{place}: passed on as a whole"
                    taken = {node.attr for node in loads}
                yield place, getattr(space, benchmark.id), ast.literal_eval(module), taken


def test_the_engine_takes_from_a_metric_what_its_engine_module_offers_and_nothing_else():
    taken: dict[str, set[str]] = {}
    for place, benchmark, module, names in uses_of_metrics():
        assert module == "engine", place
        assert names, place
        taken.setdefault(benchmark, set()).update(names)
    assert taken
    for benchmark, names in taken.items():
        assert names == set(metric_module(benchmark, "engine").__all__), benchmark
