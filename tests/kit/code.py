"""Python files as syntax trees."""

import ast
from functools import cache
from pathlib import Path


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a file, which many tests walk through."""
    return tuple(ast.walk(ast.parse(path.read_text("utf-8"))))
