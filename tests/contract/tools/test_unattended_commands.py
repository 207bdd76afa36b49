"""Commands that run without a question: the shipped presets decide about the whole command, and the
sandbox holds it to that.
"""

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from palyra.core import events
from palyra.core.events import ToolProposed
from palyra.core.labels import Label
from palyra.core.ports import CallContext
from palyra.core.tools import Scope, ToolResult
from palyra.core.verdicts import Allow, Question
from palyra.policy.policy_set import PRESETS
from palyra.policy.store import PolicyStore
from palyra.system.redactor import Redactor
from palyra.tools.catalogue import Catalogue
from palyra.tools.paths import PathGuard
from palyra.tools.sandbox.sandbox import Sandbox
from palyra.tools.shell.jobs import Jobs
from palyra.tools.shell.runner import Runner
from palyra.tools.shell.tools import tools
from tests.material import material
from tests.policy_calls import SHELL, call
from tests.tools_at_work import tree

STORES = {preset: PolicyStore(None, preset) for preset in PRESETS}
READS = ("file-read",)
# What is left of the snippets when they are about a file inside.
PLAIN = {"paste input-file", "od -An -c -w999 input-file", "tac -s 'RANDOM' input-file"}

# Said of each: whether `default` and `coding` let it run without a question.
EVERYDAY = {
    "ls": True,
    "ls -la src": True,
    "cat README.md": True,
    "head -50 src/app.py": True,
    "tail -n 20 log.txt": True,
    "wc -l src/app.py": True,
    "sort names.txt": True,
    "grep -rn TODO src": True,
    "find . -name '*.py' | head": True,
    "sed -n 10,20p src/app.py": True,
    "jq .name package.json": True,
    "diff -u a.txt b.txt": True,
    "git status": True,
    "git diff": True,
    "git diff --stat HEAD~1": True,
    "git log --oneline -5": True,
    "git show HEAD": True,
    "git branch": True,
    "git blame src/app.py": True,
    "python --version": True,
    "python3 --version": True,
    "cat .env": False,
    "cat /etc/hosts": False,
    "ls ..": False,
    "ls *": False,
    "ls 2>/dev/null": False,
    "cd src && ls": False,
    "echo $HOME": False,
    "awk '{print $1}' a.txt": False,
    "git checkout main": False,
    "git commit -m x": False,
    "git push": False,
    "python x.py": False,
    "python -m pytest": False,
    "pytest": False,
    "make": False,
    "npm test": False,
    "pip install x": False,
    "sed -i s/a/b/ a.txt": False,
    "rm a.txt": False,
    "curl https://example.org": False,
}


class Shell:
    def __init__(self, folder: Path) -> None:
        self.work = folder / "work"
        self.work.mkdir()
        runner = Runner(Sandbox())
        self.catalogue = Catalogue(
            tools(runner, Jobs(runner, folder / "jobs", Redactor(bytes(32))), PathGuard([]))
        )

    def scope(self, command: str, **more: Any) -> Scope:
        tool, typed, _ = self.catalogue.parse("shell.run", {"command": command, **more})
        return tool.scope(typed, str(self.work))

    def question(self, command: str, **more: Any) -> Question:
        return call(
            self.catalogue.parse("shell.run", {"command": command})[0].spec,
            self.scope(command),
            **more,
        )

    def unattended(self, preset: str, command: str, **more: Any) -> bool:
        return isinstance(STORES[preset].judge(self.question(command, **more)), Allow)

    def run(self, command: str, **more: Any) -> ToolResult:
        async def whole() -> ToolResult:
            tool, typed, _ = self.catalogue.parse("shell.run", {"command": command, **more})
            context = CallContext(
                principal="user:owner",
                session_id="s",
                run_id="r",
                call_id="c",
                workspace=str(self.work),
            )
            async with asyncio.timeout(60):
                return await tool.execute(typed, context)

        return asyncio.run(whole())


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def snippets() -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads(
        material("injection", "gtfobins_sample_GPL3.json").read_text()
    )
    assert len(found) == 120
    return found


def pieces(snippet: dict[str, str]) -> list[str]:
    """The snippet as it is, each of its lines, and both about files inside: what a model would
    write here.
    """
    whole = [snippet["code"], *snippet["code"].splitlines()]
    return [*whole, *(text.replace("/path/to/", "").replace("/etc/", "") for text in whole)]


@pytest.mark.parametrize("preset", PRESETS)
def test_no_snippet_that_writes_opens_a_shell_or_connects_runs_unattended(
    shell: Shell, preset: str
) -> None:
    acting = [snippet for snippet in snippets() if snippet["function"] not in READS]
    assert len(acting) >= 80
    assert [
        snippet["code"] for snippet in acting if shell.unattended(preset, snippet["code"])
    ] == []


@pytest.mark.parametrize("preset", PRESETS)
def test_no_snippet_runs_unattended_as_it_stands_and_about_files_inside_only_plain_reading_does(
    shell: Shell, preset: str
) -> None:
    passing = {
        (snippet["function"], piece)
        for snippet in snippets()
        for piece in pieces(snippet)
        if shell.unattended(preset, piece)
    }
    as_they_stand = {snippet["code"] for snippet in snippets()}
    assert not [piece for _, piece in passing if piece in as_they_stand]
    whole = {
        snippet["code"].replace("/path/to/", "").replace("/etc/", ""): snippet["function"]
        for snippet in snippets()
    }
    plain = {piece for _, piece in passing if piece in whole}
    assert plain == (PLAIN if preset in ("default", "coding") else set())
    assert {whole[piece] for piece in plain} <= set(READS)


@pytest.mark.parametrize(("command", "expected"), EVERYDAY.items())
def test_everyday_commands_run_unattended_if_they_provably_only_read(
    shell: Shell, command: str, expected: bool
) -> None:
    assert [shell.unattended(preset, command) for preset in PRESETS] == [
        False,
        expected,
        expected,
        False,
    ]


def test_after_untrusted_content_harmless_commands_ask_too(shell: Shell) -> None:
    assert not shell.unattended(
        "coding", "ls", label=Label("untrusted", "public", ("https://a.example",))
    )


def test_a_tool_from_elsewhere_cannot_call_itself_harmless(shell: Shell) -> None:
    question = shell.question("ls")
    assert isinstance(STORES["coding"].judge(question), Allow)
    for source in ("mcp:x", "skill:y"):
        foreign = call(type(SHELL)(**{**_fields(SHELL), "source": source}), question.scope)
        assert not isinstance(STORES["coding"].judge(foreign), Allow)


def _fields(spec: Any) -> dict[str, Any]:
    return {name: getattr(spec, name) for name in spec.__struct_fields__}


def test_a_record_from_before_the_fact_existed_is_decided_as_then() -> None:
    stored = (
        b'{"kind":"tool.proposed","call_id":"01JD0000000000000000000009","tool":"shell.run","arguments":{"command":"ls"},'
        b'"effect":"once","scope":{"paths":["/home/me/project"],"workspace":"/home/me/project","program":"ls","command":"ls"}}'
    )
    event = events.decode(stored)
    assert isinstance(event, ToolProposed)
    assert [
        type(STORES[preset].judge(call(SHELL, event.scope))).__name__ for preset in PRESETS
    ] == ["Deny", "Ask", "Ask", "Ask"]


def git(folder: Path, *words: str) -> None:
    settings = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(
        ["git", *settings, *words], cwd=folder, check=True, capture_output=True, timeout=30
    )


def test_a_command_that_is_harmless_cannot_write_in_the_workspace_whatever_it_starts(
    shell: Shell,
) -> None:
    """The repository's own configuration names programs; some git commands run them. Nothing they
    write stays.
    """
    work = shell.work
    git(work, "init", "-q")
    (work / "a.txt").write_text("one\n")
    git(work, "add", ".")
    git(work, "commit", "-qm", "first")
    (work / "a.txt").write_text("two\n")
    (work / ".gitattributes").write_text("*.txt diff=planted filter=planted\n")
    script = work / "planted.sh"
    script.write_text('#!/bin/sh\necho planted >> "$(dirname "$0")/written"\ncat "$@"\n')
    script.chmod(0o755)
    for key in (
        "core.fsmonitor",
        "diff.external",
        "diff.planted.textconv",
        "filter.planted.clean",
        "core.pager",
        "alias.status",
    ):
        git(work, "config", key, str(script))
    before = tree(work)
    for command in (
        "git status",
        "git diff",
        "git log -p",
        "git show HEAD",
        "git blame a.txt",
        "git grep one",
    ):
        assert shell.scope(command).harmless
        shell.run(command)
    assert tree(work) == before
    # The same without being known as harmless: so it is the sandbox that held it back.
    shell.run("git diff; true")
    assert (work / "written").exists()


def test_a_folder_that_only_looks_like_a_repository_runs_nothing(shell: Shell) -> None:
    inner = shell.work / "vendor"
    inner.mkdir()
    git(inner, "init", "-q", "--bare", ".")
    git(inner, "config", "core.bare", "false")
    git(inner, "config", "core.worktree", ".")
    git(inner, "config", "core.fsmonitor", "echo started >&2; false")
    assert "started" in shell.run("git status; true", cwd="vendor").text
    assert "started" not in shell.run("git status", cwd="vendor").text


def test_git_still_answers_when_it_may_only_read(shell: Shell) -> None:
    git(shell.work, "init", "-q", "-b", "trunk")
    (shell.work / "a.txt").write_text("one\n")
    git(shell.work, "add", ".")
    git(shell.work, "commit", "-qm", "first")
    (shell.work / "a.txt").write_text("two\n")
    assert " M a.txt" in shell.run("git status --short").text
    assert "+two" in shell.run("git diff").text
    assert "first" in shell.run("git log --oneline").text
