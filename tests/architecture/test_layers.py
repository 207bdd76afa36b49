"""The plan of the house, beyond what import-linter checks: purity, SQL, names, sizes."""

import ast
import re
import tomllib
from collections import defaultdict

from tests.architecture.sources import ROOT, feature_of, imports, modules, strings

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
RULES = PROJECT["tool"]["palyra"]["architecture"]
LONGEST = 500
IMPURE = {"asyncio", "os", "threading", "time", "socket", "subprocess", "sqlite3", "apsw"}
LAYERS = {
    "agent", "api", "cli", "client", "core", "features", "models", "policy", "serve", "store",
    "system", "tools", "v1",
}  # fmt: skip
SQL = re.compile(
    r"^\s*(?:SELECT\s.+\sFROM\s|INSERT\s+(?:OR\s+\w+\s+)?INTO\s|UPDATE\s+\w+\s+SET\s"
    r"|DELETE\s+FROM\s|WITH\s+(?:RECURSIVE\s+)?\w+\s*(?:\(|AS\s*\()|PRAGMA\s|CREATE\s+TABLE\s)",
    re.DOTALL,
)


def test_every_module_lies_in_a_layer() -> None:
    tops = {name.split(".")[1] for name in modules() if "." in name}
    assert tops <= LAYERS, tops - LAYERS


def test_core_is_pure() -> None:
    found = [
        f"{name} imports {each}"
        for name, module in modules().items()
        if name.startswith("palyra.core")
        for each in imports(module)
        if each.partition(".")[0] in IMPURE
    ]
    assert found == []


def test_sql_stands_in_the_store_and_in_rows() -> None:
    found = [
        f"{name}:{line}"
        for name, module in modules().items()
        if not name.startswith("palyra.store.") and ".rows" not in name
        for line, text in strings(module)
        if SQL.match(text)
    ]
    assert sorted({each.partition(":")[0] for each in found}) == RULES["sql_elsewhere"], found


def test_a_feature_imports_another_only_where_it_is_listed() -> None:
    listed = {(each["feature"], other) for each in RULES["imports"] for other in each["of"]}
    found = defaultdict(list)
    for name, module in modules().items():
        own = feature_of(name)
        if not own or own == "wiring":
            continue
        for each in imports(module):
            other = feature_of(each)
            if other and other not in (own, "wiring"):
                found[own, other].append(f"{name} -> {each}")
    assert {pair: where for pair, where in found.items() if pair not in listed} == {}
    assert sorted(listed - set(found)) == [], "listed, and not needed any more"


def test_no_public_class_name_exists_twice() -> None:
    places = defaultdict(list)
    for name, module in modules().items():
        if module.generated:
            continue
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(name)
    twice = {name: where for name, where in places.items() if len(where) > 1}
    assert sorted(twice) == RULES["names_twice"], twice


def test_no_file_is_long() -> None:
    found = [
        name
        for name, module in modules().items()
        if not module.generated and module.text.count("\n") > LONGEST
    ]
    assert sorted(found) == RULES["long_files"]


def test_only_serve_reads_the_config() -> None:
    found = [
        name
        for name, module in modules().items()
        if not name.startswith("palyra.serve")
        and any(each.startswith("palyra.serve.config") for each in imports(module))
    ]
    assert sorted(found) == RULES["config_elsewhere"]


def test_tests_lie_in_folders_named_as_the_source() -> None:
    """`project` holds tests of what is no part of the product: locks, scripts."""
    features = {feature_of(name) for name in modules()} - {"", "wiring", None}
    known = LAYERS | features | {"project"}
    found = [
        path.relative_to(ROOT).as_posix()
        for kind in ("unit", "contract", "e2e")
        for path in (ROOT / "tests" / kind).rglob("test_*.py")
        if len(path.relative_to(ROOT).parts) != 4 or path.parent.name not in known
    ]
    assert found == []
