"""The rules of the source tree, and where it breaks them. recorded/violations.json lists what is
still broken: it only shrinks.
"""

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = "palyra"
# Parts of the tree that a rule is about.
CORE = "domain"
STORE = "journal"
FEATURES = "features"
CONFIG = "config"
# Who may read the settings: the process, and what puts it together.
READS_CONFIG = ("serve", "config", "app", "parts", "offline")
IMPURE = {
    "asyncio",
    "os",
    "threading",
    "time",
    "subprocess",
    "socket",
    "selectors",
    "multiprocessing",
    "concurrent",
}
LONGEST_FILE = 500
_GENERATED = re.compile(
    r"\b(?:generated|written|made) by (?:the .*protocol.* compiler|scripts/)", re.IGNORECASE
)
_SQL = re.compile(
    r"\s*(?:SELECT\s.+\sFROM\s|INSERT\s+(?:OR\s+\w+\s+)?INTO\s|UPDATE\s+\w+\s+SET\s|DELETE\s+FROM\s|CREATE\s+(?:TABLE|INDEX|TRIGGER)\s)",
    re.DOTALL,
)


@dataclass(frozen=True)
class Module:
    """`name` is without the package: `journal.tape`."""

    name: str
    source: str
    tree: ast.Module

    @property
    def part(self) -> str:
        return self.name.partition(".")[0]

    def imports(self) -> Iterator[str]:
        """Every module or name that is imported, wherever the import stands; for types only does
        not count.
        """
        yield from _imports(self.tree)


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            yield from _imports(node)


def modules(root: Path = ROOT) -> list[Module]:
    """The modules that are written by hand."""
    base = root / "src" / PACKAGE
    found = []
    for path in sorted(base.rglob("*.py")):
        source = path.read_text("utf-8")
        if not _GENERATED.search("\n".join(source.split("\n")[:6])):
            parts = path.relative_to(base).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found.append(Module(name, source, ast.parse(source)))
    return found


def impure_core(tree: list[Module]) -> Iterator[str]:
    """The core computes: it waits for nothing, starts nothing and knows no clock."""
    for module in tree:
        if module.part == CORE:
            wrong = {name.partition(".")[0] for name in module.imports()} & IMPURE
            yield from (f"{module.name} imports {name}" for name in wrong)


def sql_elsewhere(tree: list[Module]) -> Iterator[str]:
    """SQL stands in the store and in the rows of a feature."""
    for module in tree:
        if module.part == STORE or (module.part == FEATURES and module.name.endswith(".rows")):
            continue
        texts = (
            node.value
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        )
        if any(_SQL.match(text) for text in texts):
            yield module.name


def config_elsewhere(tree: list[Module]) -> Iterator[str]:
    """Only the process reads settings; everybody else is given what they say."""
    for module in tree:
        if module.part not in READS_CONFIG and any(
            f"{name}.".startswith(f"{PACKAGE}.{CONFIG}.") for name in module.imports()
        ):
            yield module.name


def shared_class_names(tree: list[Module]) -> Iterator[str]:
    """A public class has a name of its own."""
    homes: dict[str, list[str]] = defaultdict(list)
    for module in tree:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(module.name)
    yield from (name for name, where in homes.items() if len(where) > 1)


def long_files(tree: list[Module]) -> Iterator[str]:
    yield from (module.name for module in tree if module.source.count("\n") > LONGEST_FILE)


def feature_imports(tree: list[Module]) -> Iterator[str]:
    """Which feature imports which: each pair is a decision."""
    prefix = f"{PACKAGE}.{FEATURES}."
    for module in tree:
        if module.part == FEATURES and "." in module.name:
            own = module.name.split(".")[1]
            others = {
                name.removeprefix(prefix).partition(".")[0]
                for name in module.imports()
                if name.startswith(prefix)
            }
            yield from (f"{own} -> {other}" for other in others - {own})


def unlayered(tree: list[Module], root: Path) -> Iterator[str]:
    """Every part of the tree has its layer in pyproject.toml."""
    contracts = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
    layers = {
        name.strip()
        for line in next(each for each in contracts if each["type"] == "layers")["layers"]
        for name in line.split("|")
    }
    yield from (
        part
        for part in {module.part for module in tree}
        if part and f"{PACKAGE}.{part}" not in layers
    )


RULES = (
    impure_core,
    sql_elsewhere,
    config_elsewhere,
    shared_class_names,
    long_files,
    feature_imports,
)


def violations(root: Path = ROOT) -> dict[str, list[str]]:
    """Return what breaks each rule."""
    tree = modules(root)
    found = {rule.__name__: sorted(set(rule(tree))) for rule in RULES}
    return found | {unlayered.__name__: sorted(unlayered(tree, root))}
