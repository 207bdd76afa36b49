"""The source tree as the architecture tests read it: modules, their imports, classes and strings."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "palyra"
GENERATED = ("palyra.v1", "palyra.client")


class Module(NamedTuple):
    name: str
    path: Path
    tree: ast.Module
    text: str

    @property
    def generated(self) -> bool:
        return self.name.startswith("palyra.v1") or "Written by scripts/" in self.text[:200]


@cache
def modules() -> dict[str, Module]:
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text("utf-8")
        found[name] = Module(name, path, ast.parse(text), text)
    return found


def imports(module: Module) -> Iterator[str]:
    """The names of everything that a module imports, of ours and of others."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for each in node.names:
                inner = f"{node.module}.{each.name}"
                yield inner if inner in modules() else node.module


def feature_of(name: str) -> str:
    """The feature that a module belongs to, or nothing."""
    parts = name.split(".")
    return parts[2] if parts[:2] == ["palyra", "features"] and len(parts) > 2 else ""


def strings(module: Module) -> Iterator[tuple[int, str]]:
    """Every text in a module but its docstrings, with its line."""
    docs = {
        id(node.body[0].value)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.lineno, node.value
