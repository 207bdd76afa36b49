"""The generated clients: a verb for every route in each of them, and the daemon's own types, field
by field.
"""

import inspect as signatures
import subprocess
import sys
from importlib import import_module
from typing import Any

import pytest
from msgspec import NODEFAULT, Struct, inspect, to_builtins
from scripts import client_javascript, client_python, client_verbs, clients

from palyra.client.async_verbs import AsyncVerbs
from palyra.client.verbs import Verbs
from palyra.serve.routes import ROUTES

TYPES = client_python.Types()
# A WebSocket is not asked for over plain HTTP.
WITHOUT = {"GET /v1/sessions/{session_id}/ws"}


def verbs_of(client: type) -> dict[str, Any]:
    return {
        name: member
        for name, member in vars(client).items()
        if callable(member) and not name.startswith("_")
    }


def test_every_route_has_a_verb_in_every_client() -> None:
    places = {f"{route.method} {route.path}" for route in ROUTES}
    assert {place for place, name in client_verbs.NAMES.items() if not name} == WITHOUT
    assert set(client_verbs.NAMES) == places
    names = [name for name in client_verbs.NAMES.values() if name]
    assert len(set(names)) == len(names) == len(places) - len(WITHOUT)
    assert set(names) <= set(verbs_of(Verbs))
    table = client_javascript.table()
    assert [name for name in names if f"  {client_javascript._camel(name)}: [" not in table] == []


def test_both_python_clients_have_the_same_verbs_and_take_the_same() -> None:
    waiting, awaited = verbs_of(Verbs), verbs_of(AsyncVerbs)
    assert set(waiting) == set(awaited)
    for name, verb in waiting.items():
        assert (
            signatures.signature(verb).parameters == signatures.signature(awaited[name]).parameters
        ), name


def told(cls: type[Struct]) -> list[tuple[str, str, bool, Any]]:
    """What a struct says of its fields. A default that is missing on the wire is None to a
    client.
    """
    info = inspect.type_info(cls)
    assert isinstance(info, inspect.StructType)
    found = []
    for each in info.fields:
        default = each.default if each.default is not NODEFAULT else None
        if each.default_factory is not NODEFAULT:
            default = each.default_factory()
        found.append((each.name, each.encode_name, each.required, to_builtins(default)))
    return found


@pytest.mark.parametrize("cls", TYPES.areas, ids=lambda cls: f"{cls.__module__}.{cls.__name__}")
def test_a_type_of_the_client_is_the_daemons_field_by_field(cls: Any) -> None:
    ours = getattr(import_module(f"palyra.client.types.{TYPES.areas[cls]}"), TYPES.names[cls])
    assert told(ours) == told(cls)
    config, original = ours.__struct_config__, cls.__struct_config__
    assert (config.omit_defaults, config.tag_field, config.tag) == (
        original.omit_defaults,
        original.tag_field,
        original.tag,
    )
    # A daemon that is newer may say more.
    assert ours is cls or not config.forbid_unknown_fields


def test_what_is_generated_is_up_to_date() -> None:
    written = clients.files()
    assert [path.name for path, text in written.items() if path.read_text() != text] == [], (
        "run: python scripts/clients.py"
    )
    assert clients.left_over(written) == []


@pytest.mark.parametrize(
    "module",
    [
        "palyra.client.sync",
        "palyra.cli.follow_run",
        "palyra.cli.chat.command",
        "palyra.client.types.sessions",
    ],
)
def test_nothing_that_starts_fast_loads_the_daemon(module: str) -> None:
    program = f"import sys, {module}; print(*sorted(each for each in sys.modules if each.startswith('palyra.')), sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    light = ("palyra.cli", "palyra.client", "palyra.core", "palyra.serve.config")
    assert [each for each in done.stdout.split() if not each.startswith(light)] == []
