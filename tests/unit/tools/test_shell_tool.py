"""`shell.run` as the flow sees it: what a decision is about, what a person sees, what comes
back.
"""

import asyncio
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from palyra.core.errors import Forbidden, InvalidInput, LimitExceeded, NotFound
from palyra.core.ports import CallContext
from palyra.core.tools import Scope, Subject, Tier, ToolResult
from palyra.system.redactor import Redactor
from palyra.tools.catalogue import Arguments, Catalogue, TypedTool
from palyra.tools.paths import PathGuard, PathRefused
from palyra.tools.sandbox.sandbox import Sandbox
from palyra.tools.shell.jobs import AT_ONCE, REMEMBERED, Jobs
from palyra.tools.shell.parse import parse
from palyra.tools.shell.runner import Runner
from palyra.tools.shell.tools import tools


class Shell:
    """The tools as one daemon has them; a second one on the same folder is the daemon after a
    restart.
    """

    def __init__(self, folder: Path, most: Tier = "C") -> None:
        self.work = folder / "work"
        self.work.mkdir(exist_ok=True)
        self.runner = Runner(Sandbox(most=most))
        self.jobs = Jobs(self.runner, folder / "jobs", Redactor(bytes(32)))
        self.catalogue = Catalogue(tools(self.runner, self.jobs, PathGuard([str(folder / "home")])))
        self.told: list[str] = []

    def parsed(self, name: str = "shell.run", **arguments: Any) -> tuple[TypedTool, Arguments]:
        tool, typed, _ = self.catalogue.parse(name, arguments)
        return tool, typed

    def scope(self, **arguments: Any) -> Scope:
        tool, typed = self.parsed(**arguments)
        return tool.scope(typed, str(self.work))

    async def call(
        self, name: str = "shell.run", session: str = "s", **arguments: Any
    ) -> ToolResult:
        tool, typed = self.parsed(name, **arguments)
        context = CallContext(
            principal="user:owner",
            session_id=session,
            run_id="r",
            call_id="c",
            workspace=str(self.work),
            progress=self.told.append,
        )
        async with asyncio.timeout(60):
            return await tool.execute(typed, context)

    def run(self, command: str, **arguments: Any) -> ToolResult:
        return asyncio.run(self.call(command=command, **arguments))


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_the_scope_of_a_simple_command_names_its_program_and_folder(shell: Shell) -> None:
    (shell.work / "src").mkdir()
    scope = shell.scope(command="pytest -x", cwd="src")
    assert scope == Scope(
        paths=(str(shell.work / "src"),),
        workspace=str(shell.work),
        program="pytest",
        command="pytest -x",
    )


def test_a_command_with_operators_has_no_program(shell: Shell) -> None:
    assert shell.scope(command="pytest -x; rm -rf src").program == ""


def test_a_command_that_only_reads_is_known_to_be_harmless(shell: Shell) -> None:
    assert shell.scope(command="grep -rn TODO src | head").harmless
    assert not shell.scope(command="grep -rn TODO src > out").harmless
    assert not shell.scope(command="cat a.txt", hosts=["example.org"]).harmless


def test_hosts_are_a_capability_of_the_call(shell: Shell) -> None:
    scope = shell.scope(command="pip download x", hosts=["Packages.example", "files.example.org"])
    assert scope.hosts == ("files.example.org", "packages.example")
    assert scope.capabilities == ("network",)
    assert shell.scope(command="pip download x").capabilities == ()


def test_an_answer_without_network_never_covers_the_same_command_with_it(shell: Shell) -> None:
    tool, _ = shell.parsed(command="true")
    plain, online = (
        shell.scope(command="npm install"),
        shell.scope(command="npm install", hosts=["example.org"]),
    )
    narrow = [subject for subject in tool.subjects(plain) if subject.kind != "tool"]
    assert narrow
    assert not any(subject.covers("shell.run", online) for subject in narrow)
    assert not any(
        s.covers("shell.run", shell.scope(command="npm install", hosts=["b.example"]))
        for s in tool.subjects(online)[:-1]
    )


def test_a_program_is_offered_for_a_wider_answer_unless_it_starts_anything(shell: Shell) -> None:
    tool, _ = shell.parsed(command="true")
    assert tool.subjects(shell.scope(command="pytest -x")) == (
        Subject("shell.run", "command", "pytest -x"),
        Subject("shell.run", "program", "pytest"),
        Subject("shell.run", "tool"),
    )
    for command in ("bash x.sh", "env ls", "python3 x.py", "find . -exec rm {} +", "ls; rm x"):
        assert [subject.kind for subject in tool.subjects(shell.scope(command=command))] == [
            "command",
            "tool",
        ]


def test_the_preview_shows_the_exact_command_the_folder_the_tier_and_the_network(
    shell: Shell,
) -> None:
    tool, typed = shell.parsed(command="make test\n# and\techo", hosts=["example.org"])
    preview = tool.preview(typed, str(shell.work))
    assert preview.kind == "command"
    assert (
        preview.body
        == "make test\n# and\techo\n\nfolder: .\nsandbox: tier C\nnetwork: example.org\ntime: at most 120 s"
    )


@pytest.mark.parametrize("cwd", ["..", "/etc", "../work2", ".ssh", ".git"])
def test_a_folder_that_is_closed_to_tools_is_closed_to_commands(shell: Shell, cwd: str) -> None:
    with pytest.raises(PathRefused):
        shell.scope(command="ls", cwd=cwd)


@pytest.mark.parametrize(
    "host", ["http://example.org/", "user@example.org", "exa mple.org", "", "*", "10.0.0.0/8"]
)
def test_what_is_not_a_host_is_refused(shell: Shell, host: str) -> None:
    with pytest.raises((InvalidInput, Forbidden)):
        shell.scope(command="ls", hosts=[host])


@pytest.mark.parametrize(
    "wrong",
    [
        {"command": ""},
        {"command": "x", "timeout_s": 0},
        {"command": "x", "timeout_s": 601},
        {"cmd": "x"},
    ],
)
def test_wrong_arguments_are_refused(shell: Shell, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        shell.parsed(**wrong)


def test_the_declaration_is_honest(shell: Shell) -> None:
    spec = shell.parsed(command="x")[0].spec
    assert (spec.name, spec.effect, spec.capabilities, spec.tier) == (
        "shell.run",
        "once",
        ("process",),
        "C",
    )
    assert spec.limits.time_ms > 600_000


def test_a_command_works_on_the_workspace_and_is_reported_exactly(shell: Shell) -> None:
    (shell.work / "src").mkdir()
    result = shell.run("echo out; echo err >&2; pwd; echo made > new.txt; exit 3", cwd="src")
    assert result.outcome == "error"
    assert (shell.work / "src" / "new.txt").read_text() == "made\n"
    first, rest = result.text.split("\n", 1)
    assert rest == f"out\nerr\n{shell.work}/src\n"
    assert first.startswith("exit code 3 in ")
    assert first.endswith(f"{len(rest):,} bytes of output")
    assert (
        result.data["code"],
        result.data["signal"],
        result.data["bytes"],
        result.data["dropped"],
    ) == (3, "", len(rest), 0)
    assert result.data["tier"] == "C"


def test_a_command_without_output_says_so(shell: Shell) -> None:
    result = shell.run("true")
    assert result.outcome == "ok"
    assert result.text.endswith("no output")


def test_a_signal_is_named(shell: Shell) -> None:
    assert shell.run("kill -SEGV $$").text.startswith("exit code 139 (SIGSEGV) in ")


def test_much_output_is_cut_in_the_middle_and_counted(shell: Shell) -> None:
    result = shell.run("seq 1 400000")
    assert result.outcome == "ok"
    assert result.data["bytes"] == sum(len(str(number)) + 1 for number in range(1, 400_001))
    assert result.data["dropped"] == result.data["bytes"] - (1 << 20)
    assert f"{result.data['dropped']:,} of them left out" in result.text.splitlines()[0]
    assert "\n1\n2\n3\n" in result.text
    assert result.text.endswith("399999\n400000\n")


def test_output_is_told_while_it_comes_and_not_line_by_line(shell: Shell) -> None:
    (shell.work / "gate").touch()

    async def main() -> ToolResult:
        call = asyncio.ensure_future(
            shell.call(command="seq 1 2000; while [ -e gate ]; do sleep 0.02; done; echo end")
        )
        async with asyncio.timeout(20):
            while not shell.told:
                await asyncio.wait([call], timeout=0.01)
        assert not call.done()
        (shell.work / "gate").unlink()
        return await call

    result = asyncio.run(main())
    assert result.outcome == "ok"
    assert shell.told[-1].endswith("end\n")
    assert len(shell.told) < 20


def test_where_the_tier_is_not_there_nothing_runs(tmp_path: Path) -> None:
    shell = Shell(tmp_path, most="B")
    with pytest.raises(Forbidden, match="tier C"):
        shell.run("touch made")
    assert not (shell.work / "made").exists()


def test_hosts_without_a_proxy_are_refused(shell: Shell) -> None:
    with pytest.raises(Forbidden):
        shell.run("touch made", hosts=["example.org"])
    assert not (shell.work / "made").exists()


def test_honest_work_is_possible(shell: Shell) -> None:
    script = """set -e
git init -q . && git config --global user.email a@b && git config --global user.name a && git config --global init.defaultBranch m
printf 'def f():\\n    return 42\\n' > mod.py
printf 'import mod\\nassert mod.f() == 42\\nprint("tested")\\n' > t.py
python3 t.py
git add . && git commit -qm first && git log --oneline | wc -l
mkfifo pipe && (echo through > pipe &) && cat pipe
tar czf a.tgz mod.py && tar tzf a.tgz
diff <(echo a) <(echo a) && echo same
id -un; hostname; getent passwd agent | cut -d: -f6
"""
    result = shell.run(script)
    assert result.outcome == "ok", result.text
    assert result.text.splitlines()[1] == "note: made a git repository: .git"
    assert result.text.splitlines()[2:] == [
        "tested",
        "1",
        "through",
        "mod.py",
        "same",
        "agent",
        "sandbox",
        "/home/agent",
    ]


async def until(shell: Shell, job: str, state: str, *printed: str) -> ToolResult:
    """The job when it is in this state and has printed these lines; the first line of the result is
    about the job itself.
    """
    async with asyncio.timeout(20):
        while True:
            result = await shell.call("shell.jobs", id=job)
            if result.data["state"] == state and set(printed) <= set(result.text.splitlines()[1:]):
                return result
            await asyncio.sleep(0.01)


def test_a_job_goes_on_and_can_be_read_and_ends(shell: Shell) -> None:
    (shell.work / "gate").touch()

    async def main() -> None:
        began = time.monotonic()
        started = await shell.call(
            command="echo begun; while [ -e gate ]; do sleep 0.02; done; echo over; exit 4",
            background=True,
        )
        assert time.monotonic() - began < 30
        job = started.data["job"]
        running = await until(shell, job, "running", "begun")
        assert running.data["state"] == "running"
        (shell.work / "gate").unlink()
        ended = await until(shell, job, "ended")
        assert ended.data["code"] == 4
        assert ended.text.splitlines()[0].startswith(f"job {job}: exit code 4: echo begun")
        assert ended.text.splitlines()[1:] == ["begun", "over"]
        listed = await shell.call("shell.jobs")
        assert [one["job"] for one in listed.data["jobs"]] == [job]

    asyncio.run(main())


def test_stopping_a_job_twice_is_the_same_as_once(shell: Shell) -> None:
    async def main() -> None:
        job = (await shell.call(command="setsid sleep 300 & sleep 300", background=True)).data[
            "job"
        ]
        first = await shell.call("shell.stop", id=job)
        second = await shell.call("shell.stop", id=job)
        assert first.data["state"] == second.data["state"] == "stopped"
        assert first.data["ended_ms"] == second.data["ended_ms"] > 0

    asyncio.run(main())


def test_a_job_belongs_to_its_session(shell: Shell) -> None:
    async def main() -> None:
        job = (await shell.call(command="sleep 300", background=True)).data["job"]
        for name in ("shell.jobs", "shell.stop"):
            with pytest.raises(NotFound):
                await shell.call(name, session="other", id=job)
        assert (await shell.call("shell.jobs", session="other")).data["jobs"] == []
        await shell.jobs.close()

    asyncio.run(main())


def test_a_session_has_a_few_jobs_at_once(shell: Shell) -> None:
    async def main() -> None:
        for _ in range(AT_ONCE):
            await shell.call(command="sleep 300", background=True)
        with pytest.raises(LimitExceeded, match="stop one first"):
            await shell.call(command="sleep 300", background=True)
        await shell.jobs.close()
        assert {one["state"] for one in (await shell.call("shell.jobs")).data["jobs"]} == {
            "stopped"
        }

    asyncio.run(main())


def test_a_job_that_cannot_start_says_why_and_is_not_running(tmp_path: Path) -> None:
    shell = Shell(tmp_path, most="B")

    async def main() -> None:
        with pytest.raises(Forbidden):
            await shell.call(command="true", background=True)
        assert [one["state"] for one in (await shell.call("shell.jobs")).data["jobs"]] == ["failed"]

    asyncio.run(main())


def test_a_flooding_job_keeps_only_its_end(shell: Shell) -> None:
    async def main() -> None:
        job = (await shell.call(command="seq 1 1000000", background=True)).data["job"]
        ended = await until(shell, job, "ended")
        assert ended.data["bytes"] == sum(len(str(number)) + 1 for number in range(1, 1_000_001))
        assert ended.text.endswith("999999\n1000000\n")
        assert "the last 8,192" in ended.text.splitlines()[0]

    asyncio.run(main())
    assert sum(path.stat().st_size for path in (shell.jobs._folder).iterdir()) < 1.3 * (1 << 20)


def test_a_job_whose_output_cannot_be_kept_has_failed_and_is_not_running_for_ever(
    shell: Shell,
) -> None:
    async def main() -> None:
        waits = "while [ ! -e go ]; do sleep 0.02; done; seq 1 1000000"
        job = (await shell.call(command=waits, background=True)).data["job"]
        shutil.rmtree(shell.jobs._folder)
        (shell.work / "go").touch()
        failed = await until(shell, job, "failed")
        assert "it could not be followed" in failed.text

    asyncio.run(main())


def test_old_jobs_are_forgotten(shell: Shell) -> None:
    async def main() -> None:
        for _ in range(REMEMBERED + 4):
            job = (await shell.call(command="true", background=True)).data["job"]
            await until(shell, job, "ended")
        assert len((await shell.call("shell.jobs")).data["jobs"]) <= REMEMBERED + 1

    asyncio.run(main())


def test_after_a_crash_a_job_is_reported_as_ended_by_it(tmp_path: Path) -> None:
    """The record is taken over as the dead daemon left it; that its processes are dead is tested
    where a real one is killed.
    """
    before = Shell(tmp_path)

    async def main() -> None:
        job = (await before.call(command="echo here; sleep 300", background=True)).data["job"]
        await until(before, job, "running", "here")
        after = Shell(tmp_path)
        lost = await after.call("shell.jobs", id=job)
        assert lost.data["state"] == "lost"
        assert "ended by a crash" in lost.text
        assert lost.text.splitlines()[1:] == ["here"]
        assert (await after.call("shell.stop", id=job)).data["state"] == "lost"
        await before.jobs.close()

    asyncio.run(main())


def test_a_job_that_ended_is_remembered_over_a_restart(tmp_path: Path) -> None:
    before = Shell(tmp_path)

    async def main() -> None:
        job = (await before.call(command="echo over; exit 7", background=True)).data["job"]
        await until(before, job, "ended")
        after = await Shell(tmp_path).call("shell.jobs", id=job)
        assert (after.data["state"], after.data["code"]) == ("ended", 7)
        assert after.text.endswith("over\n")

    asyncio.run(main())


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf .",
        "/bin/rm -r src",
        "cd src && rm -rf *",
        "find . -name '*.py' -delete",
        "find . -exec rm {} +",
        "git clean -fdx",
        "git reset --hard HEAD~3",
        "ls | xargs rm",
        "bash -c 'rm -rf .'",
        "python3 -c \"import os; os.system('rm -rf .')\"",
        "X=rm; $X -rf . # rm",
        "true; dd if=/dev/zero of=data.bin",
        "sed -i s/a/b/ file",
        "shred -u key",
        "echo $(rm -rf .)",
    ],
)
def test_a_command_that_deletes_for_good_is_a_high_risk(command: str) -> None:
    assert parse(command).destroys


@pytest.mark.parametrize(
    "command",
    [
        "ls -la",
        "grep rmdir README.md",
        "git status",
        "git diff",
        "cat a > b",
        "echo form",
        "pytest -q",
        "wc -l",
    ],
)
def test_other_commands_are_not(command: str) -> None:
    assert not parse(command).destroys
