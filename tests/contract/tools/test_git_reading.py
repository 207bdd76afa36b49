"""Git commands that run without a question show history and nothing of a committed key or
`.env`.
"""

import asyncio
import subprocess
from pathlib import Path

import pytest

from palyra.core.ports import CallContext
from palyra.core.tools import ToolResult
from palyra.system.redactor import Redactor
from palyra.tools.catalogue import Catalogue
from palyra.tools.paths import PathGuard
from palyra.tools.sandbox.sandbox import Sandbox
from palyra.tools.shell.jobs import Jobs
from palyra.tools.shell.read_only_commands import harmless
from palyra.tools.shell.runner import Runner
from palyra.tools.shell.tools import tools

CANARY = "canary-4f21"
SECRETS = (
    ".env",
    "conf/.env.production",
    "keys/id_rsa",
    "server.PEM",
    ".ENV.local",
    "a/.ssh/config",
    ".npmrc",
    ".aws/credentials",
)


class Repository:
    def __init__(self, folder: Path) -> None:
        self.work = folder / "work"
        self.work.mkdir()
        runner = Runner(Sandbox())
        self._catalogue = Catalogue(
            tools(runner, Jobs(runner, folder / "jobs", Redactor(bytes(32))), PathGuard([]))
        )
        self.git("init -q -b main .")
        self.commit("one", {"src/app.py": "print('one')\n", "README.md": "read me\n"})
        self.commit(
            "two",
            {name: f"KEY={CANARY}-{number}\n" for number, name in enumerate(SECRETS)}
            | {"src/app.py": "print('two')\n"},
        )
        self.commit(
            "three", {name: f"KEY={CANARY}-new-{number}\n" for number, name in enumerate(SECRETS)}
        )
        self.git("checkout -q -b side HEAD~1")
        self.commit("side", {"side.txt": "side\n", ".env": f"KEY={CANARY}-side\n"})
        self.git("checkout -q main")
        self.git("merge -q -s ours --no-edit side")
        self.git(f"tag blob {self.git('rev-parse HEAD:.env').strip()}")

    def git(self, words: str) -> str:
        done = subprocess.run(
            f"git -c user.name=a -c user.email=a@b {words}",
            shell=True,
            cwd=self.work,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def commit(self, name: str, files: dict[str, str]) -> None:
        for path, text in files.items():
            (self.work / path).parent.mkdir(parents=True, exist_ok=True)
            (self.work / path).write_text(text)
        self.git("add -f .")
        self.git(f"commit -qm {name}")

    def run(self, command: str) -> ToolResult:
        async def whole() -> ToolResult:
            tool, typed, _ = self._catalogue.parse("shell.run", {"command": command})
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


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return Repository(tmp_path_factory.mktemp("reading"))


# Each with what it must still show.
SHOWN = {
    "git log -p": ["print('two')", "side.txt", "three", "one"],
    "git log -p --all": ["print('two')"],
    "git log -p -a -U99": ["print('two')"],
    "git log -c -p --all --word-diff": ["print("],
    "git log --patch --reverse": ["print('two')"],
    "git log -p src": ["print('two')"],
    "git log -p -- src/app.py README.md": ["read me"],
    "git log -S canary --oneline": [],
    "git log -G KEY -p": [],
    "git log --check": [],
    "git log --stat --oneline": ["app.py", "three"],
    "git show": ["Merge"],
    "git show HEAD~1": ["three"],
    "git show HEAD~2 --stat": ["app.py"],
    "git show side": ["side.txt"],
    "git show HEAD~2": ["print('two')"],
    "git show HEAD:src/app.py": ["print('two')"],
    "git show blob": [],
    "git show HEAD~2 -- src .": ["print('two')"],
    "git diff HEAD~2 HEAD": [],
    "git diff HEAD~3 HEAD": ["print('two')"],
    "git diff HEAD~3 HEAD -- .": ["print('two')"],
    "git diff HEAD~3 HEAD --text src conf": ["print('two')"],
    "git diff side": [],
    "git diff --cached HEAD~3": ["print('two')"],
    "git grep -n KEY": [],
    "git grep print": ["print('two')"],
    "git grep --cached canary": [],
    "git grep print HEAD": ["print('two')"],
    "git grep canary HEAD": [],
    "git grep -e canary -e print HEAD~1 -- .": ["print('two')"],
    "git grep canary HEAD -- conf keys": [],
    "git cat-file -p HEAD:src/app.py": ["print('two')"],
    "git cat-file -t blob": ["blob"],
    "git blame src/app.py": ["print('two')"],
    "git log -p | grep canary": [],
    "git show HEAD~2 | cat": ["print('two')"],
}


@pytest.mark.parametrize("command", SHOWN)
def test_a_command_without_a_question_shows_no_secret(repository: Repository, command: str) -> None:
    command = command.replace("--text ", "")
    assert harmless(command)
    said = repository.run(command)
    assert CANARY not in said.text, said.text
    for wanted in SHOWN.get(command, []):
        assert wanted in said.text, said.text


def test_the_secrets_are_there_to_be_found(repository: Repository) -> None:
    """Otherwise the test above would prove nothing."""
    assert repository.git("log -p --all").count(CANARY) >= len(SECRETS)
    assert CANARY in repository.git("show blob")


def test_every_blob_by_its_digest(repository: Repository) -> None:
    for name in SECRETS:
        digest = repository.git(f"rev-parse HEAD:{name}").strip()
        for command in (
            f"git show {digest}",
            f"git diff {digest} HEAD:README.md",
            f"git diff {digest} {digest[:8]}",
            f"git log -p {digest}",
        ):
            if harmless(command):
                assert CANARY not in repository.run(command).text, command
        assert not harmless(f"git cat-file -p {digest}")


@pytest.mark.parametrize(
    "command",
    [
        "git cat-file -p blob",
        "git cat-file -p HEAD:",
        "git cat-file blob HEAD:.env",
        "git cat-file --batch",
        "git show HEAD:.env",
        "git show HEAD:conf/.env.production",
        "git show :/three",
        "git show HEAD HEAD:README.md",
        "git show :.env",
        "git log -p --follow src/app.py",
        "git log -L1,2:.env",
        "git status -v",
        "git status --verbose",
        "git archive HEAD",
        "git stash show -p",
        "git format-patch -1 --stdout",
        "git diff --no-index .env README.md",
        "git diff-tree -p HEAD",
        "git rev-list --objects HEAD",
        "git grep -O canary",
        "git grep -f pattern.txt",
        "git reflog -p",
        "git whatchanged -p",
        "git range-diff a b c",
        "git --no-pager show HEAD",
        "git -C . log -p",
        "git blame .env",
        "git bundle create - HEAD",
        "git fast-export HEAD",
        "git difftool",
        "git ls-tree -r HEAD --format=x",
        "git unpack-file blob",
        "git merge-file -p a b c",
        "git shortlog",
    ],
)
def test_what_could_show_one_asks(command: str) -> None:
    assert not harmless(command)
