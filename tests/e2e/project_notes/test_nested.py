"""Notes as other agents read them: in folders, imported with `@path`, Copilot's and Cursor's. Each
counts only as it was accepted, and none lies outside the workspace.
"""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from palyra.core.ids import OWNER
from palyra.features.project_notes import files
from palyra.features.project_notes.files import MOST_FOLDERS, MOST_NOTES, find, holds, read
from palyra.models.scripted import ScriptedModel, Turn
from palyra.serve.wiring.daemon import Daemon
from tests import inprocess
from tests.e2e.project_notes.test_acceptance import _part, _shown


def write(folder: Path, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def about(folder: Path) -> dict[str, str]:
    return {each.name: each.problem or each.applies for each in read(str(folder))}


PROJECT = {
    "AGENTS.md": "Top. See @docs/style.md and write to ann@example.org, `@not/this.md`.",
    "docs/style.md": "Style. Also @more.md.",
    "docs/more.md": "More. Back to @../AGENTS.md and @style.md.",
    "not/this.md": "Only named in code.",
    ".github/copilot-instructions.md": "Copilot.",
    ".cursor/rules/always.mdc": "---\nalwaysApply: true\n---\nAlways.",
    ".cursor/rules/deep/ts.mdc": '---\nglobs: ["src/**/*.ts", "*.tsx"]\nalwaysApply: false\n---\nTypes.',
    ".cursor/rules/asked.mdc": "---\ndescription: database changes\n---\nMigrations.",
    ".cursor/rules/hand.mdc": "By hand.",
    "web/AGENTS.md": "Web.",
    "web/app/CLAUDE.md": "App.",
    "node_modules/x/AGENTS.md": "Not ours.",
    ".hidden/AGENTS.md": "Not ours.",
}


def test_notes_are_found_in_the_order_of_the_prompt_with_what_they_are_for(tmp_path: Path) -> None:
    write(tmp_path, PROJECT)
    found = about(tmp_path)
    assert list(found.items()) == [
        ("AGENTS.md", ""),
        ("docs/style.md", "imported by AGENTS.md"),
        ("docs/more.md", "imported by docs/style.md"),
        (".github/copilot-instructions.md", ""),
        (".cursor/rules/always.mdc", ""),
        (".cursor/rules/asked.mdc", "when it is about: database changes"),
        (".cursor/rules/deep/ts.mdc", "files that match src/**/*.ts, *.tsx"),
        (".cursor/rules/hand.mdc", "only when the user names it"),
        ("web/AGENTS.md", "files below web; there it wins over the notes above it"),
        ("web/app/CLAUDE.md", "files below web/app; there it wins over the notes above it"),
    ]


def test_an_import_never_leaves_the_workspace(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    work = tmp_path / "work"
    write(outside, {"secret.md": "secret"})
    write(
        work,
        {
            "AGENTS.md": f"@../outside/secret.md @{outside}/secret.md @~/x.md @link.md @folder/secret.md"
            " @.env @.ssh/key @sub/../../outside/secret.md @absent.md @@twice @sub",
            ".env": "KEY=1",
            ".ssh/key": "key",
            "sub/x.md": "x",
        },
    )
    (work / "link.md").symlink_to(outside / "secret.md")
    (work / "folder").symlink_to(outside)
    found = about(work)
    assert "secret" not in str([each.body for each in read(str(work)) if each.name != "AGENTS.md"])
    assert found.pop("AGENTS.md") == ""
    assert found == {
        "@../outside/secret.md": "it lies outside the workspace",
        f"@{outside}/secret.md"[:100]: "it lies outside the workspace",
        "@~/x.md": "it lies outside the workspace",
        "link.md": "it is a symbolic link; use a regular file",
        "folder/secret.md": "it lies behind a symbolic link; use a regular folder",
        ".env": "hidden files are not imported",
        ".ssh/key": "hidden files are not imported",
        "@sub/../../outside/secret.md": "it lies outside the workspace",
    }
    assert not any(each.digest for each in read(str(work)) if each.name != "AGENTS.md")


def test_imports_and_folders_are_bounded(tmp_path: Path) -> None:
    chain = {f"n{at}.md": f"@n{at + 1}.md" for at in range(20)}
    write(tmp_path, {"AGENTS.md": "@n0.md", **chain})
    assert len(read(str(tmp_path))) == 1 + files.MOST_IMPORTS_DEEP
    many = tmp_path / "many"
    write(many, {f"f{at}/AGENTS.md": "x" for at in range(MOST_FOLDERS + 50)})
    found = find(str(many))
    assert len(found.files) == MOST_NOTES
    assert sum(os.path.isdir(many / line[0]) for line in found.stamp) <= MOST_FOLDERS
    # A name that could say something to the model by itself is passed over.
    write(many, {"a\nDo this./AGENTS.md": "x"})
    assert not any("\n" in each.name for each in read(str(many)))


@pytest.mark.parametrize("change", ["content", "new nested", "import", "rules", "gone"])
def test_every_change_is_seen(tmp_path: Path, change: str) -> None:
    write(tmp_path, PROJECT)
    before = find(str(tmp_path))
    assert holds(str(tmp_path), before.stamp)
    match change:
        case "content":
            write(tmp_path, {"web/AGENTS.md": "Evil"})
        case "new nested":
            write(tmp_path, {"docs/AGENTS.md": "New."})
        case "import":
            write(tmp_path, {"docs/more.md": "Other."})
        case "rules":
            write(tmp_path, {".cursor/rules/new.mdc": "New."})
        case "gone":
            (tmp_path / "web" / "AGENTS.md").unlink()
    assert not holds(str(tmp_path), before.stamp)
    assert find(str(tmp_path)).files != before.files


def test_each_note_counts_as_it_was_accepted(tmp_path: Path) -> None:
    async def work() -> None:
        model = ScriptedModel(lambda request: Turn(text="ok"))
        place = tmp_path / "work"
        async with inprocess.daemon(tmp_path, model) as daemon:
            write(place, PROJECT)
            where = await inprocess.session(daemon)
            shown = await _shown(daemon, where, model)
            assert "Top." not in shown
            assert "AGENTS.md, .github/copilot-instructions.md, 7 in its folders" in shown
            await take(daemon, place, "docs/style.md", "web/AGENTS.md", ".cursor/rules/deep/ts.mdc")
            shown = await _shown(daemon, where, model)
            assert (
                "## web/AGENTS.md (files below web; there it wins over the notes above it)\nWeb."
                in shown
            )
            assert (
                "## .cursor/rules/deep/ts.mdc (files that match src/**/*.ts, *.tsx)\nTypes."
                in shown
            )
            # What imports it is not followed, so it is not either.
            assert "Style." not in shown
            assert (
                "docs/style.md left out: AGENTS.md is not followed"
                in (await _part(daemon, where))["note"]
            )
            await take(daemon, place, "AGENTS.md", ".cursor/rules/hand.mdc")
            shown = await _shown(daemon, where, model)
            assert "## docs/style.md (imported by AGENTS.md)\nStyle." in shown
            assert shown.index("Top.") < shown.index("Style.") < shown.index("Web.")
            assert "By hand." not in shown
            # One of them changes: it is left out alone.
            write(place, {"docs/style.md": "Evil."})
            shown = await _shown(daemon, where, model)
            assert "Top." in shown
            assert "Evil." not in shown
            states = {each.file: each.state for each in await daemon.project_notes.of(str(place))}
            assert (states["docs/style.md"], states["web/AGENTS.md"]) == ("changed", "accepted")
            (place / "web" / "AGENTS.md").unlink()
            states = {each.file: each.state for each in await daemon.project_notes.of(str(place))}
            assert states["web/AGENTS.md"] == "missing"

    async def take(daemon: Daemon, place: Path, *names: str) -> None:
        notes = {each.file: each for each in await daemon.project_notes.of(str(place))}
        for name in names:
            await daemon.project_notes.accept(OWNER, str(place), name, notes[name].sha256)

    asyncio.run(work())


def test_many_notes_are_few_notices(tmp_path: Path) -> None:
    async def work() -> Any:
        model = ScriptedModel(lambda request: Turn(text="ok"))
        async with inprocess.daemon(tmp_path, model) as daemon:
            write(tmp_path / "work", {f"f{at}/AGENTS.md": f"{at}" for at in range(30)})
            where = await inprocess.session(daemon)
            await _shown(daemon, where, model)
            return (await daemon.notices.listing(OWNER)).notices

    found = [each.text for each in asyncio.run(work())]
    assert len(found) == 4
    assert "27 more notes" in "".join(found)
