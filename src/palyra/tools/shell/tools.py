"""`shell.run`, `shell.jobs` and `shell.stop`: commands in the sandbox, in the foreground or as jobs
of a session.
"""

import time
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from palyra.core.argument_roles import uses
from palyra.core.errors import InvalidInput
from palyra.core.labels import join
from palyra.core.ports import CallContext
from palyra.core.tools import Limits, Preview, Scope, Subject, ToolResult, ToolSpec
from palyra.tools.catalogue import Arguments, Placeless, TypedTool, declare
from palyra.tools.paths import PathGuard, WorkspacePath
from palyra.tools.sandbox.command import Caps
from palyra.tools.shell.jobs import Jobs, ShellJob
from palyra.tools.shell.parse import parse
from palyra.tools.shell.read_only_commands import harmless
from palyra.tools.shell.runner import (
    KEPT,
    OutputBuffer,
    OutputProgress,
    Runner,
    ShellCommand,
    ending,
    label,
)

LONGEST_S = 600
_LONGEST_JOB_S = 24 * 3600
_LONGEST_COMMAND = 32 << 10
# The tool ends a command itself and reports what it printed; the flow's own limit is behind that.
_GRACE_MS = 30_000


class RunArguments(Arguments, frozen=True, kw_only=True):
    command: Annotated[str, Meta(min_length=1, max_length=_LONGEST_COMMAND, description="For bash")]
    cwd: str = "."
    timeout_s: Annotated[int, Meta(ge=1, le=LONGEST_S)] = 120
    background: Annotated[bool, Meta(description="Go on after this call; see shell.jobs")] = False
    hosts: Annotated[
        tuple[str, ...],
        Meta(max_length=16, description="Hosts it needs; there is no network without"),
    ] = ()


class JobsArguments(Arguments, frozen=True, kw_only=True):
    id: Annotated[str, Meta(description="One job; all without")] = ""
    tail_bytes: Annotated[int, Meta(ge=0, le=256 << 10)] = 8 << 10


class StopArguments(Arguments, frozen=True, kw_only=True):
    id: str


class ShellRun:
    argument_type: ClassVar[type[Arguments]] = RunArguments

    def __init__(self, runner: Runner, jobs: Jobs, fence: PathGuard, caps: Caps = Caps()) -> None:  # noqa: B008 - frozen
        self._runner = runner
        self._jobs = jobs
        self._fence = fence
        self._caps = caps
        declared = declare(
            "shell.run",
            "Run a command in a sandbox: the workspace is writable, the system read-only, keys and"
            " .env files are hidden.",
            RunArguments,
            effect="once",
            capabilities=("process",),
            use=uses(command="command", hosts="host"),
            limits=Limits(
                time_ms=LONGEST_S * 1000 + _GRACE_MS,
                input_bytes=64 << 10,
                output_bytes=KEPT + (8 << 10),
            ),
        )
        self.spec: ToolSpec = msgspec.structs.replace(declared, tier=runner.tier)

    def scope(self, arguments: object, workspace: str) -> Scope:
        assert isinstance(arguments, RunArguments)
        place = self._place(arguments, workspace)
        hosts = _hosts(arguments.hosts)
        self._runner.check_hosts(hosts)
        parsed = parse(arguments.command)
        return Scope(
            paths=(place.absolute,),
            workspace=place.root,
            # An answer about a program or a command never covers the same with a way out.
            program=parsed.program if parsed.simple and not hosts else "",
            command=(
                f"{arguments.command} [network: {', '.join(hosts)}]" if hosts else arguments.command
            ),
            hosts=hosts,
            capabilities=("network",) if hosts else (),
            harmless=self._harmless(arguments),
            destructive=parsed.destroys,
        )

    def subjects(self, scope: Scope) -> tuple[Subject, ...]:
        """The command as it is; its program, unless that would start anything it is told to;
        everything.
        """
        found = [Subject(self.spec.name, "command", scope.command)]
        if scope.program and not parse(scope.command).spawns:
            found.append(Subject(self.spec.name, "program", scope.program))
        return (*found, Subject(self.spec.name, "tool"))

    def preview(self, arguments: object, workspace: str) -> Preview:
        assert isinstance(arguments, RunArguments)
        place = self._place(arguments, workspace)
        network = ", ".join(_hosts(arguments.hosts)) or "none"
        how = "in the background" if arguments.background else f"at most {arguments.timeout_s} s"
        about = (
            f"folder: {place.shown}\nsandbox: tier {self._runner.tier}\nnetwork: {network}\ntime:"
            f" {how}"
        )
        return Preview("command", arguments.command, f"{arguments.command}\n\n{about}")

    async def execute(self, arguments: object, context: CallContext) -> ToolResult:
        assert isinstance(arguments, RunArguments)
        place = self._place(arguments, context.workspace)
        wanted = ShellCommand(
            command=arguments.command,
            cwd=place.absolute,
            workspace=place.root,
            hosts=_hosts(arguments.hosts),
            caps=self._limits(arguments),
            reads_only=self._harmless(arguments),
        )
        return await (self._begin if arguments.background else self._run)(wanted, context)

    async def _run(self, wanted: ShellCommand, context: CallContext) -> ToolResult:
        began = time.monotonic()
        kept, progress = OutputBuffer(), OutputProgress(context.progress)
        async with self._runner.started(wanted) as process:
            async for chunk in process.output():
                kept.add(chunk)
                progress.add(chunk)
            ended = await process.wait()
            notes = process.notes()
        progress.flush()
        took = time.monotonic() - began
        text, dropped = kept.text()
        how = f"{ending(ended, wanted.caps)} in {took:.1f} s"
        size = f"{kept.total:,} bytes of output" + (
            f", {dropped:,} of them left out" if dropped else ""
        )
        said = "".join(f"\nnote: {note}" for note in notes)
        return ToolResult(
            outcome=(
                "timeout"
                if ended.timed_out
                else "ok"
                if ended.code == 0 and not ended.killed
                else "error"
            ),
            text=(f"{how}, {size}{said}\n{text}" if kept.total else f"{how}, no output{said}"),
            data={
                "code": ended.code,
                "signal": ended.signal,
                "killed": ended.killed,
                "bytes": kept.total,
                "dropped": dropped,
                "duration_ms": round(took * 1000),
                "cpu_ms": round(ended.cpu_s * 1000),
                "max_rss": ended.max_rss,
                "tier": (await self._runner.sandbox.probe()).tier,
                **({"notes": list(notes)} if notes else {}),
            },
            label=label(wanted.command, wanted.hosts),
        )

    async def _begin(self, wanted: ShellCommand, context: CallContext) -> ToolResult:
        job = await self._jobs.start(context.session_id, wanted)
        text = (
            f"job {job.job_id} runs in the background: read it with shell.jobs, end it with"
            " shell.stop"
        )
        return ToolResult(
            outcome="ok",
            text=text,
            data={"job": job.job_id},
            label=label(wanted.command, wanted.hosts),
        )

    def _harmless(self, arguments: RunArguments) -> bool:
        # In tier B a command could read keys in the workspace, so there no command is known to be
        # harmless.
        return self._runner.tier == "C" and not arguments.hosts and harmless(arguments.command)

    def _limits(self, arguments: RunArguments) -> Caps:
        if arguments.background:
            return msgspec.structs.replace(
                self._caps, time_s=float(_LONGEST_JOB_S), cpu_s=_LONGEST_JOB_S, output_bytes=1 << 40
            )
        return msgspec.structs.replace(self._caps, time_s=float(arguments.timeout_s))

    def _place(self, arguments: RunArguments, workspace: str) -> WorkspacePath:
        if not workspace:
            raise InvalidInput(
                "this session has no workspace folder, so there is nowhere to run a command"
            )
        return self._fence.place(arguments.cwd or ".", workspace)


class _OfJobs(Placeless):
    """Base of tools that are about the jobs of a session and nothing else."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    def scope(self, arguments: object, workspace: str) -> Scope:
        """The workspace: what a job prints it may have read there."""
        return Scope(paths=(workspace,), workspace=workspace) if workspace else Scope()


class JobsTool(_OfJobs):
    argument_type: ClassVar[type[Arguments]] = JobsArguments
    spec: ClassVar[ToolSpec] = declare(
        "shell.jobs",
        "The background jobs of this session, or one with the end of its output.",
        JobsArguments,
        effect="pure",
        limits=Limits(time_ms=10_000, input_bytes=1 << 10, output_bytes=264 << 10),
    )

    def preview(self, arguments: object, workspace: str) -> Preview:
        assert isinstance(arguments, JobsArguments)
        return Preview(
            "text", f"look at job {arguments.id}" if arguments.id else "list the background jobs"
        )

    async def execute(self, arguments: object, context: CallContext) -> ToolResult:
        assert isinstance(arguments, JobsArguments)
        if not arguments.id:
            jobs = self._jobs.of(context.session_id)
            lines = [_line(job) for job in jobs] or ["there are no jobs in this session"]
            data = {"jobs": [_data(job) for job in jobs]}
            seen = join(label(job.command, job.hosts) for job in jobs)
            return ToolResult(outcome="ok", text="\n".join(lines), data=data, label=seen)
        job = self._jobs.get(context.session_id, arguments.id)
        tail = self._jobs.tail(job, arguments.tail_bytes)
        shown = f", the last {len(tail):,}" if len(tail) < job.output_bytes else ""
        text = (
            f"{_line(job)}; {job.output_bytes:,} bytes of"
            f" output{shown}\n{tail.decode(errors='replace')}"
        )
        return ToolResult(
            outcome="ok", text=text, data=_data(job), label=label(job.command, job.hosts)
        )


class Stop(_OfJobs):
    argument_type: ClassVar[type[Arguments]] = StopArguments
    spec: ClassVar[ToolSpec] = declare(
        "shell.stop",
        "End a background job with all its processes.",
        StopArguments,
        effect="idempotent",
        limits=Limits(time_ms=15_000, input_bytes=1 << 10, output_bytes=8 << 10),
    )

    def preview(self, arguments: object, workspace: str) -> Preview:
        assert isinstance(arguments, StopArguments)
        return Preview("text", f"stop job {arguments.id}")

    async def execute(self, arguments: object, context: CallContext) -> ToolResult:
        assert isinstance(arguments, StopArguments)
        job = await self._jobs.stop(context.session_id, arguments.id)
        return ToolResult(outcome="ok", text=_line(job), data=_data(job))


def tools(runner: Runner, jobs: Jobs, fence: PathGuard, caps: Caps = Caps()) -> list[TypedTool]:  # noqa: B008 - frozen
    return [ShellRun(runner, jobs, fence, caps), JobsTool(jobs), Stop(jobs)]


def _line(job: ShellJob) -> str:
    how = "running" if job.state == "running" else job.ending
    return "".join(
        [
            f"job {job.job_id}: {how}: {job.command[:200]}",
            *(f"\nnote: {note}" for note in job.notes),
        ]
    )


def _data(job: ShellJob) -> dict[str, object]:
    return {
        "job": job.job_id,
        "state": job.state,
        "ending": job.ending,
        "code": job.exit.code if job.exit else None,
        "bytes": job.output_bytes,
        "started_ms": job.started_ms,
        "ended_ms": job.ended_ms,
    }


def _hosts(given: tuple[str, ...]) -> tuple[str, ...]:
    """Spelt as a policy compares them. Raises InvalidInput for what is not a host."""
    if not given:
        return ()
    from palyra.tools.net.egress import AllowedHosts

    AllowedHosts(given)
    return tuple(sorted({host.strip().lower() for host in given}))
