"""The reference pages name everything there is: every endpoint with its scope, every command and
verb, every page.
"""

import re
from pathlib import Path

import click
import pytest

from palyra.api.table import ANY_TOKEN
from palyra.cli.chat.slash_commands import COMMANDS
from palyra.cli.root import root
from palyra.serve.routes import ROUTES

DOCS = Path(__file__).parents[2] / "docs"
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def endpoints() -> dict[tuple[str, str], str]:
    """What http.md lists, with the scope cell of its row. `…` stands for the last path that was
    written out.
    """
    page = (DOCS / "reference" / "http.md").read_text()
    section = page[page.index("## Endpoints") :].split("\n## ")[0]
    found: dict[tuple[str, str], str] = {}
    base = ""
    for row in re.findall(r"^\| (`.*?) \|(.*?)\|", section, re.MULTILINE):
        waiting: list[str] = []
        for span in re.findall(r"`([^`]+)`", row[0]):
            method, _, path = span.partition(" ")
            assert method in METHODS, (
                f"{span!r} in the table of endpoints is not a method with a path"
            )
            waiting.append(method)
            if not path:
                continue
            path = path.partition("?")[0]
            if path.startswith("…"):
                path = base + path.removeprefix("…")
            else:
                base = path
            found |= {(each, path): row[1] for each in waiting}
            waiting = []
        assert not waiting, f"{row[0]!r} ends with a method that has no path"
    return found


def test_every_endpoint_is_on_the_http_page_with_its_scope() -> None:
    told = endpoints()
    routes = {(route.method, route.path): route for route in ROUTES}
    assert sorted(set(routes) - set(told) - WATCHED) == []
    for place, route in routes.items():
        if place in told:
            scope = (
                "–" if route.scope is None else "any" if route.scope == ANY_TOKEN else route.scope
            )
            assert scope in told[place], (
                f"{place} needs {scope}, and the page says {told[place].strip()}"
            )


def test_every_endpoint_on_the_http_page_exists() -> None:
    # The description is not in the table it describes.
    assert (
        sorted(
            set(endpoints())
            - {(route.method, route.path) for route in ROUTES}
            - {("GET", "/openapi.json")}
        )
        == []
    )


# Described under "Watching" and at the top, not in the table.
WATCHED = {
    ("GET", "/"),
    ("GET", "/v1/events"),
    ("GET", "/v1/sessions/{session_id}/events"),
    ("GET", "/v1/sessions/{session_id}/ws"),
}


def test_the_streams_are_described_where_watching_is() -> None:
    page = (DOCS / "reference" / "http.md").read_text().replace("{id}", "{session_id}")
    assert all(f"GET {path}" in page for _, path in WATCHED if path != "/")


def paragraphs(command: str) -> str:
    """Everything that cli.md says about a command."""
    page = (DOCS / "reference" / "cli.md").read_text()
    return "\n".join(
        each for each in page.split("\n\n") if re.search(rf"`palyra {command}\b", each)
    )


def verbs() -> list[tuple[str, str]]:
    context = click.Context(root)
    found = []
    for name in root.list_commands(context):
        command = root.get_command(context, name)
        inner = list(command.commands) if isinstance(command, click.Group) else [""]
        found += [(name, verb) for verb in inner]
    return found


@pytest.mark.parametrize(("command", "verb"), verbs())
def test_every_command_and_verb_is_on_the_page_of_the_command_line(command: str, verb: str) -> None:
    told = paragraphs(command)
    assert told, f"cli.md says nothing about `palyra {command}`"
    if verb and verb != "list":
        assert re.search(rf"`(?:palyra {command} )?{verb}\b", told), (
            f"cli.md does not name `palyra {command} {verb}`"
        )


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_chat_is_on_the_page_of_the_command_line(name: str) -> None:
    assert re.search(rf"`/{name}\b", (DOCS / "reference" / "cli.md").read_text())


def test_every_page_is_listed() -> None:
    listed = (DOCS / "README.md").read_text()
    pages = [
        path.relative_to(DOCS)
        for path in DOCS.rglob("*.md")
        if "decisions" not in path.parts and path.name != "README.md"
    ]
    assert [str(page) for page in pages if f"]({page})" not in listed] == []
