"""Print the size and shape of src/palyra: files, lines, tokens, long functions, shared class names,
import cycles.

    python scripts/code_figures.py                     # this checkout, as a table
    python scripts/code_figures.py --json              # the same for programs
    python scripts/code_figures.py --root ../other     # another checkout, at any commit
    python scripts/code_figures.py --list classes      # what a figure counts, one line each

Rules of counting, so that two commits can be compared:

- Generated files do not count: one whose first lines say that the protocol buffer compiler or
  scripts/… made it.
- A token is a name, an operator, a number or a string (an f-string is one token). Docstrings,
  comments, indentation and line ends are none.
- A line of code is a line that a token stands on. "Tokens per line" divides by these; "lines" are
  all lines of a file.
- A function's length is from its `def` to its last line, decorators aside. Its parameters include
  self, * and **.
- A public class is a class at the top of a module whose name has no leading underscore. A shared
  name is one that several modules define.
- An import counts wherever it stands in a module, also inside a function; for cycles those under
  TYPE_CHECKING do not. A module that defines nothing (an empty __init__) is no module with one
  importer, nor is a program's __main__.
"""

import argparse
import ast
import io
import json
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles

PACKAGE = "palyra"
LONG_FUNCTION = 60
MANY_PARAMETERS = 7
_GENERATED = re.compile(
    r"\b(?:generated|written|made) by (?:the .*protocol.* compiler|scripts/)", re.IGNORECASE
)
_HEAD_LINES = 6
_COUNTED = {tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING}
# Since Python 3.12 the tokenizer takes f-strings apart.
_FSTRING_START = getattr(tokenize, "FSTRING_START", -1)
_FSTRING_END = getattr(tokenize, "FSTRING_END", -1)


@dataclass
class Module:
    name: str
    path: str
    source: str
    tree: ast.Module
    tokens: int = 0
    code_lines: int = 0

    @property
    def lines(self) -> int:
        return self.source.count("\n")


@dataclass
class Figures:
    """The numbers, and for some of them what was counted."""

    numbers: dict[str, float] = field(default_factory=dict)
    lists: dict[str, list[str]] = field(default_factory=dict)

    def listed(self, name: str, items: list[str]) -> None:
        self.numbers[name] = len(items)
        self.lists[name] = items


def read(root: Path) -> list[Module]:
    """Return the modules written by hand below root/src/palyra."""
    source_root = root / "src"
    modules = []
    for path in sorted((source_root / PACKAGE).rglob("*.py")):
        source = path.read_text("utf-8")
        if _GENERATED.search("\n".join(source.split("\n")[:_HEAD_LINES])):
            continue
        parts = path.relative_to(source_root).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        module = Module(name, path.relative_to(root).as_posix(), source, ast.parse(source))
        module.tokens, module.code_lines = _tokens(source, module.tree)
        modules.append(module)
    return modules


def _tokens(source: str, tree: ast.Module) -> tuple[int, int]:
    """Return how many tokens there are, and on how many lines."""
    docstrings = _docstring_starts(tree)
    count, depth, began, lines = 0, 0, 0, set[int]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == _FSTRING_START:
            began = token.start[0] if depth == 0 else began
            depth += 1
        elif token.type == _FSTRING_END:
            depth -= 1
            if depth == 0:
                count += 1
                lines.update(range(began, token.end[0] + 1))
        elif depth == 0 and token.type in _COUNTED and token.start not in docstrings:
            count += 1
            lines.update(range(token.start[0], token.end[0] + 1))
    return count, len(lines)


def _docstring_starts(tree: ast.Module) -> set[tuple[int, int]]:
    starts = set()
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and node.body
        ):
            first = node.body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                starts.add((first.lineno, first.col_offset))
    return starts


def _functions(module: Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    given = function.args
    return (
        sum(map(len, (given.posonlyargs, given.args, given.kwonlyargs)))
        + (given.vararg is not None)
        + (given.kwarg is not None)
    )


def _imports(module: Module, known: set[str], *, types_too: bool) -> set[str]:
    """Return the modules of ours that this one imports: the nearest module for a name, not the
    packages above it.
    """
    package = module.name if module.path.endswith("__init__.py") else module.name.rpartition(".")[0]
    found = set[str]()
    for node in _import_statements(module.tree, types_too=types_too):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        else:
            above = package.rsplit(".", node.level - 1)[0] if node.level else ""
            base = ".".join(part for part in (above, node.module or "") if part)
            found.update(
                inner if (inner := f"{base}.{alias.name}") in known else base
                for alias in node.names
            )
    return {name for name in found if name in known and name != module.name}


def _import_statements(tree: ast.AST, *, types_too: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif types_too or not (
            isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        ):
            yield from _import_statements(node, types_too=types_too)


def _cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that import each other in a circle (Tarjan's algorithm, without
    recursion).
    """
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    on_path: set[str] = set()
    groups: list[list[str]] = []
    for start in graph:
        if start in index:
            continue
        work = [(start, iter(sorted(graph[start])))]
        index[start] = low[start] = len(index)
        path.append(start)
        on_path.add(start)
        while work:
            node, others = work[-1]
            for other in others:
                if other not in index:
                    index[other] = low[other] = len(index)
                    path.append(other)
                    on_path.add(other)
                    work.append((other, iter(sorted(graph[other]))))
                    break
                if other in on_path:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    cut = path.index(node)
                    group, path[cut:] = path[cut:], []
                    on_path.difference_update(group)
                    if len(group) > 1:
                        groups.append(sorted(group))
    return groups


def measure(modules: list[Module]) -> Figures:
    figures = Figures()
    numbers = figures.numbers
    sizes = [module.lines for module in modules]
    numbers["files"] = len(modules)
    numbers["lines"] = sum(sizes)
    numbers["code_lines"] = sum(module.code_lines for module in modules)
    numbers["tokens"] = sum(module.tokens for module in modules)
    numbers["tokens_per_line"] = round(numbers["tokens"] / max(1, numbers["code_lines"]), 2)
    numbers["median_file_lines"] = median(sizes)
    numbers["p90_file_lines"] = round(quantiles(sizes, n=10)[-1])
    numbers["max_file_lines"] = max(sizes)
    functions = [(module, function) for module in modules for function in _functions(module)]
    numbers["functions"] = len(functions)
    figures.listed(
        "functions_over_60_lines",
        [
            f"{module.path}:{function.lineno} {function.name} {length}"
            for module, function in functions
            if (length := (function.end_lineno or 0) - function.lineno + 1) > LONG_FUNCTION
        ],
    )
    figures.listed(
        "functions_over_7_parameters",
        [
            f"{module.path}:{function.lineno} {function.name} {count}"
            for module, function in functions
            if (count := _parameters(function)) > MANY_PARAMETERS
        ],
    )
    _classes(figures, modules)
    _graph(figures, modules)
    return figures


def _classes(figures: Figures, modules: list[Module]) -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for module in modules:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(module.name)
    every = [
        node
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
    ]
    figures.numbers["classes"] = len(every)
    figures.numbers["public_class_names"] = len(homes)
    figures.listed(
        "shared_public_class_names",
        [
            f"{name}: {', '.join(sorted(where))}"
            for name, where in sorted(homes.items())
            if len(where) > 1
        ],
    )


def _graph(figures: Figures, modules: list[Module]) -> None:
    known = {module.name for module in modules}
    importers: dict[str, set[str]] = defaultdict(set)
    for module in modules:
        for name in _imports(module, known, types_too=True):
            importers[name].add(module.name)
    figures.listed(
        "modules_with_one_importer",
        [
            f"{module.name} <- {next(iter(importers[module.name]))}"
            for module in modules
            if len(importers[module.name]) == 1
            and module.code_lines
            and not module.name.endswith("__main__")
        ],
    )
    groups = _cycles({module.name: _imports(module, known, types_too=False) for module in modules})
    figures.listed("import_cycles", [" ".join(group) for group in groups])


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Print the size and shape of src/palyra, generated files aside."
    )
    parser.add_argument(
        "--root",
        type=Path,
        default=Path(__file__).parent.parent,
        help="checkout to look at (default: this one)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--list", default="", metavar="FIGURE", help="print what this figure counts"
    )
    wanted = parser.parse_args()
    modules = read(wanted.root)
    if not modules:
        sys.stderr.write(
            f"error: no Python files in {wanted.root / 'src' / PACKAGE}: name a checkout with"
            " --root\n"
        )
        return 2
    figures = measure(modules)
    if wanted.list:
        chosen = [name for name in figures.lists if wanted.list in name]
        if not chosen:
            sys.stderr.write(
                f"error: no list for {wanted.list!r}: choose from {', '.join(figures.lists)}\n"
            )
            return 2
        for name in chosen:
            sys.stdout.writelines(f"{item}\n" for item in figures.lists[name])
    elif wanted.json:
        sys.stdout.write(json.dumps(figures.numbers, indent=2) + "\n")
    else:
        for name, value in figures.numbers.items():
            sys.stdout.write(f"{name.replace('_', ' '):<28} {value:>10,}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
