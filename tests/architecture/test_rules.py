"""The source tree keeps its rules, but for what recorded/violations.json lists; and that list only
shrinks.
"""

from pathlib import Path

import pytest

from tests.architecture import contracts, rules

NAMES = [*(rule.__name__ for rule in rules.RULES), rules.unlayered.__name__]


@pytest.fixture(scope="module")
def found() -> dict[str, list[str]]:
    return rules.violations()


@pytest.fixture(scope="module")
def known() -> dict[str, list[str]]:
    listed: dict[str, list[str]] = contracts.load("violations")
    return listed


@pytest.mark.parametrize("rule", NAMES)
def test_a_rule_is_broken_nowhere_but_where_it_is_known(
    rule: str, found: dict[str, list[str]], known: dict[str, list[str]]
) -> None:
    assert sorted(set(found[rule]) - set(known[rule])) == [], (
        f"these break the rule {rule} of tests/architecture/rules.py"
    )


@pytest.mark.parametrize("rule", NAMES)
def test_what_is_mended_leaves_the_list(
    rule: str, found: dict[str, list[str]], known: dict[str, list[str]]
) -> None:
    mended = sorted(set(known[rule]) - set(found[rule]))
    assert mended == [], (
        "mended, well done: record it with `python scripts/record_contracts.py violations`"
    )


def test_every_rule_sees_what_breaks_it(tmp_path: Path) -> None:
    files = {
        f"{rules.CORE}/__init__.py": "",
        f"{rules.CORE}/clocks.py": "def now():\n    import time\n\n    return time.time()\n",
        f"{rules.STORE}/rows.py": 'QUERY = "SELECT a FROM b"\n',
        "other/__init__.py": "class Twice: ...\n",
        "other/reads.py": f'from {rules.PACKAGE}.{rules.CONFIG} import load\nQUERY = "SELECT a FROM b"\nclass Twice: ...\n',
        "other/words.py": 'TEXT = "Select a row from the list"\n',
        "other/long.py": "x = 1\n" * (rules.LONGEST_FILE + 1),
        "other/made.py": '"""Written by scripts/x.py."""\nclass Twice: ...\n',
        f"{rules.FEATURES}/a/service.py": f"from {rules.PACKAGE}.{rules.FEATURES}.b.rows import find\n",
        f"{rules.FEATURES}/b/rows.py": 'QUERY = "DELETE FROM b"\n',
    }
    for name, text in files.items():
        path = tmp_path / "src" / rules.PACKAGE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "pyproject.toml").write_text(
        f'[[tool.importlinter.contracts]]\ntype = "layers"\nlayers = ["{rules.PACKAGE}.{rules.CORE} | {rules.PACKAGE}.x"]\n'
    )
    assert rules.violations(tmp_path) == {
        "impure_core": [f"{rules.CORE}.clocks imports time"],
        "sql_elsewhere": ["other.reads"],
        "config_elsewhere": ["other.reads"],
        "shared_class_names": ["Twice"],
        "long_files": ["other.long"],
        "feature_imports": ["a -> b"],
        "unlayered": [rules.FEATURES, rules.STORE, "other"],
    }
