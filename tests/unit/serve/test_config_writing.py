"""Changing a setting in the file: the value is the one asked for, every other byte is as it was."""

import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st

from palyra.core.errors import ConfigInvalid, InvalidInput, NotFound
from palyra.serve import config
from palyra.serve.config import edit, reader

FILE = """# my settings
[server]            # how it listens
http_port = 8000    # not 7142
host = "127.0.0.1"

[log]
level = "info"
"""


@pytest.mark.parametrize(
    ("before", "path", "value", "after"),
    [
        ("", "a.b", 1, "[a]\nb = 1\n"),
        ("a = 1", "a", 2, "a = 2"),
        ("a = 1", "b", True, "a = 1\nb = true\n"),
        ("[x]\ny=1\n", "b", 2, "b = 2\n\n[x]\ny=1\n"),
        ("[a]\nb = 1 # why\nc = 2\n", "a.b", 5, "[a]\nb = 5 # why\nc = 2\n"),
        ("[a]\nb = 1 # why\n\n[d]\n", "a.c", 5, "[a]\nb = 1 # why\nc = 5\n\n[d]\n"),
        ("[a] # empty\n# comment\n[d]\n", "a.c", 5, "[a] # empty\n# comment\nc = 5\n[d]\n"),
        ("[a]", "a.c", "x", '[a]\nc = "x"\n'),
        ("[a]\nb = 1", "d.e", 2, "[a]\nb = 1\n[d]\ne = 2\n"),
        ("a.b = 1\n[z]\n", "a.c", 2, "a.b = 1\na.c = 2\n[z]\n"),
        ("[p]\nx.k = 1\n[z]\n", "p.x.l", 2, "[p]\nx.k = 1\nx.l = 2\n[z]\n"),
        ("[p]\nx.k = 1\n", "p.y", 2, "[p]\nx.k = 1\ny = 2\n"),
        ("[p.x]\nk = 1\n", "p.y", 2, "[p]\ny = 2\n\n[p.x]\nk = 1\n"),
        ("[p.x]\nk = 1\n", "p.x.k", 2, "[p.x]\nk = 2\n"),
        ("a = {b = 1, c = {d = 2}} # end", "a.c.d", 3, "a = {b = 1, c = {d = 3}} # end"),
        ("a = {b = 1}", "a.c", 3, "a = {b = 1, c = 3}"),
        ("a = { }", "a.c.d", 3, "a = { c = {d = 3}}"),
        ("[t]\na = {b = {}}", "t.a.b.c", 3, "[t]\na = {b = {c = 3}}"),
        (
            "a = [\n  1, # one\n  '#]',\n]\nb = 1\n",
            "b",
            2,
            "a = [\n  1, # one\n  '#]',\n]\nb = 2\n",
        ),
        (
            'a = """x\n[fake]\nb = 1 \\""" """\nb = 1\n',
            "b",
            2,
            'a = """x\n[fake]\nb = 1 \\""" """\nb = 2\n',
        ),
        ("a = '''x\nb = 1'''''\nb = 1", "b", 2, "a = '''x\nb = 1'''''\nb = 2"),
        ("[a]\r\nb = 1\r\n[c]\r\n", "a.d", 2, "[a]\r\nb = 1\r\nd = 2\r\n[c]\r\n"),
        (
            "[ a . 'b' ]\n\"c\" = 1979-05-27 07:32:00 # t\n",
            "a.b.c",
            2,
            "[ a . 'b' ]\n\"c\" = 2 # t\n",
        ),
        ("[[l]]\nx = 1\n[[l]]\nx = 2\n", "a.x", 3, "[[l]]\nx = 1\n[[l]]\nx = 2\n\n[a]\nx = 3\n"),
        ("l = [{x = 1}, {x = 2}]\n[a]\n", "a.x", 3, "l = [{x = 1}, {x = 2}]\n[a]\nx = 3\n"),
        ("[a]\nb = []\n", "a.b", ("x", "y"), '[a]\nb = ["x", "y"]\n'),
    ],
)
def test_one_value_changes_and_every_other_byte_stays(
    before: str, path: str, value: Any, after: str
) -> None:
    assert edit.assign(before, tuple(path.split(".")), value) == after


@pytest.mark.parametrize(
    ("text", "path"),
    [("a = 1", "a.b"), ("[a.b]\nc = 1", "a.b"), ("[[a]]\nb = 1", "a.b"), ("a = {b = 1}", "a")],
)
def test_a_table_never_becomes_a_value_nor_a_value_a_table(text: str, path: str) -> None:
    with pytest.raises(InvalidInput):
        edit.assign(text, tuple(path.split(".")), 1)


@pytest.mark.parametrize(
    ("before", "path", "after"),
    [
        ("a = 1", "a", ""),
        ("[a]\nb = 1 # why\nc = 2\n", "a.b", "[a]\nc = 2\n"),
        ("# top\n[a]\nb = 1\n\n[d]\ne = 1\n", "a.b", "# top\n[a]\n\n[d]\ne = 1\n"),
        ("a.b = 1\na.c = 2\n", "a.b", "a.c = 2\n"),
        ("[a]\nb = [\n  1, # one\n]\nc = 1\n", "a.b", "[a]\nc = 1\n"),
        ("a = {b = 1, c = 2} # end", "a.b", "a = { c = 2} # end"),
        ("a = {b = 1, c = 2} # end", "a.c", "a = {b = 1 } # end"),
        ("a = { b = 1 }", "a.b", "a = {  }"),
        ("[a]\r\nb = 1\r\nc = 2\r\n", "a.b", "[a]\r\nc = 2\r\n"),
        ("[a]\nb = 1\n", "a.c", None),
        ("[a.x]\nb = 1\n# of d\n[d]\n", "a.x", "# of d\n[d]\n"),
        ("[a.x]\nb = 1\n\n# last\n", "a.x", "# last\n"),
        ("[a.x]\r\nb = 1\r\n#one\r\n\r\n  ## two", "a.x", "#one\r\n\r\n  ## two"),
        (
            "[a.x]\n# of b\nb = 1\n# of c\n[a.x.y]\nc = 1\n\n# of d\n[a.z]\nd = 1\n",
            "a.x",
            "# of d\n[a.z]\nd = 1\n",
        ),
        ("a.x.b = 1\na.x.c = 2\na.y.b = 1\n", "a.x", "a.y.b = 1\n"),
        ("[a.x]\nb = 1\n[d]\ne = 1\n[a.x.y]\nc = 1\n", "a.x", "[d]\ne = 1\n"),
    ],
)
def test_one_value_is_taken_out_and_every_other_byte_stays(
    before: str, path: str, after: str | None
) -> None:
    assert edit.remove(before, tuple(path.split("."))) == after


def test_a_setting_that_was_set_and_unset_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(FILE)
    config.set_value(tmp_path, "server.http_port", 9000)
    config.set_value(tmp_path, "log.level", "debug")
    config.unset_value(tmp_path, "log.level")
    config.unset_value(tmp_path, "server.http_port")
    assert tomllib.loads((tmp_path / "config.toml").read_text()) == {
        "server": {"host": "127.0.0.1"},
        "log": {},
    }
    with pytest.raises(NotFound):
        config.unset_value(tmp_path, "server.http_port")
    with pytest.raises(InvalidInput):
        config.unset_value(tmp_path, "server.http_prot")


names = st.sampled_from(["a", "b", "c", "d-1", "two words", "ü", 'q"', "."])
scalars = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), max_size=3),
)
blanks = st.sampled_from(["", "\n", "# a comment = 'x\n", "\n# [table]\n\n"])
tails = st.sampled_from(["", "  # tail = 1", "\t"])


def table(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(names, values, max_size=3)


trees = table(scalars | table(scalars | table(scalars)))


def quoted(name: str) -> str:
    return tomlkit.key(name).as_string()


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A TOML text in a mixture of styles, its tables in any order, with what it means."""
    tree = draw(trees)
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    top, *tables = draw_table(draw, tree, ())
    text = "".join([top, *draw(st.permutations(tables))])
    return text.replace("\n", newline), tree


def draw_table(draw: st.DrawFn, table: dict[str, Any], path: tuple[str, ...]) -> list[str]:
    """Return the lines of a table, and those of each table in it that has a header."""
    lines: list[str] = []
    later: list[tuple[tuple[str, ...], dict[str, Any]]] = []
    for name, value in table.items():
        style = draw(st.sampled_from(["header", "inline", "dotted"]))
        if not isinstance(value, dict):
            lines.append(f"{draw(blanks)}{quoted(name)} = {written(draw, value)}{draw(tails)}\n")
        elif style == "inline":
            lines.append(f"{draw(blanks)}{quoted(name)} = {inline(value)}{draw(tails)}\n")
        elif (
            style == "dotted"
            and value
            and not any(isinstance(each, dict) for each in value.values())
        ):
            lines += [
                f"{quoted(name)} . {quoted(key)} = {written(draw, each)}\n"
                for key, each in value.items()
            ]
        else:
            later.append(((*path, name), value))
    tables: list[str] = []
    for where, value in later:
        header = f"{draw(blanks)}[ {' . '.join(quoted(part) for part in where)} ]{draw(tails)}\n"
        own, *below = draw_table(draw, value, where)
        tables += [header + own, *below]
    return ["".join(lines), *tables]


def written(draw: st.DrawFn, value: Any) -> str:
    plain = (
        isinstance(value, str)
        and not set(value) & set("'\\\"\r\x7f")
        and all(c >= " " or c == "\n" for c in value)
    )
    match draw(st.sampled_from(["basic", "literal", "long", "spread"])):
        case "literal" if plain and "\n" not in value:
            return f"'{value}'"
        case "long" if plain:
            return f"'''\n{value}'''" if draw(st.booleans()) else f'"""\n{value}"""'
        case "spread" if isinstance(value, list):
            return "[ # ]\n" + "".join(f"  {edit.literal(each)}, # , ]\n" for each in value) + "]"
        case _:
            return edit.literal(value)


def inline(table: dict[str, Any]) -> str:
    entries = [
        f"{quoted(key)} = {inline(value) if isinstance(value, dict) else edit.literal(value)}"
        for key, value in table.items()
    ]
    return "{ " + ", ".join(entries) + " }"


def change(tree: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any] | None:
    """What the change must mean, or None where it would turn a table into a value or the other way
    round.
    """
    old = tree.get(path[0])
    if len(path) == 1:
        return None if isinstance(old, dict) else {**tree, path[0]: value}
    if old is not None and not isinstance(old, dict):
        return None
    inner = change(old or {}, path[1:], value)
    return None if inner is None else {**tree, path[0]: inner}


@settings(max_examples=200, deadline=None)
@given(documents(), st.lists(names, min_size=1, max_size=3).map(tuple), scalars)
def test_setting_any_value_in_any_file_changes_that_value_alone(
    document: tuple[str, dict[str, Any]], path: tuple[str, ...], value: Any
) -> None:
    text, tree = document
    # The line ends of long strings change their meaning, so the parser's reading is the reference.
    tree = tomllib.loads(text)
    wanted = change(tree, path, value)
    if wanted is None:
        with pytest.raises(InvalidInput):
            edit.assign(text, path, value)
        return
    after = edit.assign(text, path, value)
    assert tomllib.loads(after) == wanted
    assert comments(after) == comments(text)


@settings(max_examples=200, deadline=None)
@given(documents(), st.lists(names, min_size=1, max_size=3).map(tuple))
def test_removing_anything_from_any_file_removes_that_alone(
    document: tuple[str, dict[str, Any]], path: tuple[str, ...]
) -> None:
    text, tree = document[0], tomllib.loads(document[0])
    wanted = without(tree, path)
    after = edit.remove(text, path)
    if wanted is None:
        assert after is None
        return
    assert after is not None
    assert filled(tomllib.loads(after)) == filled(wanted)


def without(tree: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any] | None:
    if path[0] not in tree:
        return None
    if len(path) == 1:
        return {name: value for name, value in tree.items() if name != path[0]}
    inner = without(tree[path[0]], path[1:]) if isinstance(tree[path[0]], dict) else None
    return None if inner is None else {**tree, path[0]: inner}


def filled(tree: dict[str, Any]) -> dict[str, Any]:
    """Return the tree without tables that hold nothing."""
    inner = {
        name: filled(value) if isinstance(value, dict) else value for name, value in tree.items()
    }
    return {name: value for name, value in inner.items() if value != {}}


def comments(text: str) -> list[str]:
    return [line for line in text.splitlines() if line in ("# a comment = 'x", "# [table]")]


@settings(max_examples=100, deadline=None)
@given(documents())
def test_every_key_is_found_on_a_line_that_mentions_it(
    document: tuple[str, dict[str, Any]],
) -> None:
    text, tree = document
    found, lines = reader.lines(text), text.split("\n")
    for name in tree:
        assert quoted(name) in lines[found[name,] - 1]


def test_a_setting_is_changed_in_place_with_its_comments(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(FILE)
    config.set_value(tmp_path, "server.http_port", "9000")
    assert path.read_text() == FILE.replace("= 8000 ", "= 9000 ")
    config.set_value(tmp_path, "approvals.timeout_ms.api", "never")
    config.set_value(tmp_path, "models.fallbacks", ["demo"])
    loaded = config.load(tmp_path, {}).config
    assert (loaded.server.http_port, loaded.approvals.timeout_ms.api, loaded.models.fallbacks) == (
        9000,
        "never",
        ("demo",),
    )


def test_the_first_setting_makes_a_private_file_in_a_private_folder(tmp_path: Path) -> None:
    home = tmp_path / "deep" / "home"
    config.set_value(home, "log.level", "debug")
    assert (home / "config.toml").read_text() == '[log]\nlevel = "debug"\n'
    assert stat.S_IMODE((home / "config.toml").stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert [each.name for each in home.iterdir()] == ["config.toml"]


@pytest.mark.parametrize(
    ("key", "value", "error"),
    [
        ("server.http_prot", "1", InvalidInput),
        ("server", "1", InvalidInput),
        ("server.http_port", "many", InvalidInput),
        ("server.http_port", 70_000, InvalidInput),
        ("log.level", ["debug"], InvalidInput),
        ("providers.x.models", ["a"], ConfigInvalid),
        ("providers.x.api_key", "sk-secret", ConfigInvalid),
        ("models.default", "nowhere/x", ConfigInvalid),
    ],
)
def test_what_would_not_load_is_not_written(
    tmp_path: Path, key: str, value: Any, error: type[Exception]
) -> None:
    path = tmp_path / "config.toml"
    path.write_text(FILE)
    with pytest.raises(error) as caught:
        config.set_value(tmp_path, key, value)
    assert path.read_text() == FILE
    assert "sk-secret" not in str(caught.value)


def test_values_that_need_each_other_are_set_together(tmp_path: Path) -> None:
    config.set_values(
        tmp_path, {"providers.s.kind": "scripted", "providers.s.script": "/tmp/script.json"}
    )
    assert config.load(tmp_path, {}).config.providers["s"].script == "/tmp/script.json"


def test_a_wrong_value_can_be_put_right_but_not_beside_another_wrong_one(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[server]\nhttp_port = 'x'\n[log]\nlevel = 'y'\n")
    with pytest.raises(ConfigInvalid, match=r"log\.level"):
        config.set_value(tmp_path, "server.http_port", 7000)
    config.set_values(tmp_path, {"server.http_port": 7000, "log.level": "info"})
    assert config.check(tmp_path, {}) == ()


def test_a_file_that_is_not_toml_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[server\n")
    with pytest.raises(ConfigInvalid):
        config.set_value(tmp_path, "server.http_port", 7000)
    assert path.read_text() == "[server\n"


def test_a_file_that_is_a_link_is_changed_where_it_lies(tmp_path: Path) -> None:
    real, link = tmp_path / "real.toml", tmp_path / "config.toml"
    real.write_text(FILE)
    link.symlink_to(real)
    config.set_value(tmp_path, "log.level", "debug")
    assert link.is_symlink()
    assert real.read_text() == FILE.replace('"info"', '"debug"')
