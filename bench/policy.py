"""Time that a verdict takes, through the presets and a large operator's folder, and that it takes
to decide the record again.

No two calls here are about the same path or command. Wall time is what a run waits; the thread's
own time is what remains of it on a machine with nothing else to do.
"""

import asyncio
import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tests import recorded
from tests.journals import opened

from bench.common import Table
from palyra.core.labels import Label
from palyra.core.tools import Scope, Subject, ToolSpec
from palyra.core.verdicts import Question
from palyra.policy.backtest import retest
from palyra.policy.grants import always_policy, append_always
from palyra.policy.policy_set import PolicySet
from palyra.policy.reports import Report
from palyra.policy.store import PolicyStore, load

ROUNDS = 10_000
RECORDED = 100_000
READ = ToolSpec(
    name="fs.read", description="", parameters={}, effect="pure", capabilities=("fs.read",)
)
PATCH = ToolSpec(
    name="fs.patch",
    description="",
    parameters={},
    effect="reversible",
    capabilities=("fs.read", "fs.write"),
)
SHELL = ToolSpec(
    name="shell.run", description="", parameters={}, effect="once", capabilities=("process",)
)
SECRET = ToolSpec(
    name="vault.use", description="", parameters={}, effect="once", capabilities=("secrets",)
)
WORKSPACE = "/home/me/project"


def question(tool: ToolSpec, scope: Scope, number: int) -> Question:
    return Question(
        principal="user:owner",
        session_id=f"01J{number % 50:023d}",
        tool=tool,
        scope=scope,
        origin="interactive",
        now_ms=1_700_000_000_000 + number,
        label=Label(integrity="untrusted", sources=("web:example.org",)) if number % 2 else Label(),
    )


def inside(*names: str) -> Scope:
    return Scope(paths=tuple(f"{WORKSPACE}/src/{name}.py" for name in names), workspace=WORKSPACE)


QUESTIONS: dict[str, Callable[[int], Question]] = {
    "allow": lambda n: question(READ, inside(f"a{n}"), n),
    "ask": lambda n: question(
        SHELL,
        Scope(paths=(WORKSPACE,), workspace=WORKSPACE, program="pytest", command=f"pytest -q {n}"),
        n,
    ),
    "deny": lambda n: question(SECRET, Scope(workspace=WORKSPACE), n),
    "64 paths": lambda n: question(PATCH, inside(*(f"{n}/{i}" for i in range(64))), n),
}


def measure(judge: Callable[[Question], object], questions: list[Question]) -> tuple[str, ...]:
    for each in questions[:200]:
        judge(each)
    wall, own = [], []
    for each in questions:
        start, start_own = time.perf_counter_ns(), time.thread_time_ns()
        judge(each)
        own.append((time.thread_time_ns() - start_own) / 1e6)
        wall.append((time.perf_counter_ns() - start) / 1e6)
    found = (statistics.median(wall), _p99(wall), statistics.median(own), _p99(own))
    return tuple(f"{each:.3f} ms" for each in found)


def _p99(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.99)]


def operators_folder(folder: Path) -> None:
    """A hundred policies, such as a year of "always" leaves, and rules that read every kind of
    fact.
    """
    tools = ("shell.run", "fs.patch", "http.fetch")
    approved = [Subject(tool, "program", f"program{i}") for i in range(15) for tool in tools]
    approved += [Subject(tool, "path_prefix", f"/home/me/{i}") for i in range(15) for tool in tools]
    for number, subject in enumerate(approved):
        append_always(folder, always_policy(subject, "user:owner", f"{number}", 0))
    (folder / "rules.cedar").write_text(
        "\n".join(
            f'@id("never-{i}") forbid (principal, action, resource) when {{'
            f' context.touches.contains("/etc/{i}") ||'
            f' context.domains.contains("evil{i}.example") }};'
            for i in range(10)
        )
    )


def verdicts() -> Table:
    rows: list[tuple[str, ...]] = []
    with TemporaryDirectory() as folder:
        operators_folder(Path(folder))
        for preset, place in (("default", None), ("coding", None), ("default", Path(folder))):
            store = PolicyStore(place, preset)
            name = (
                f"{preset}{' and a folder' if place else ''}, {len(store.current.rules)} policies"
            )
            rows += [
                (name, kind, *measure(store.judge, [make(n) for n in range(ROUNDS)]))
                for kind, make in QUESTIONS.items()
            ]
    return Table(
        "A policy decision", ("policies", "verdict", "p50", "p99", "own p50", "own p99"), rows
    )


def distinct() -> Iterator[Question]:
    for number in itertools.count():
        yield QUESTIONS[("allow", "allow", "ask", "deny")[number % 4]](number)


def again() -> Table:
    with TemporaryDirectory() as folder:
        rows = asyncio.run(_again(Path(folder)))
    return Table(
        f"`policy test` over {RECORDED:,} recorded decisions, all about different paths and"
        " commands",
        ("policies", "took", "own time", "decided as before"),
        rows,
    )


async def _again(folder: Path) -> list[tuple[str, ...]]:
    (folder / "policies").mkdir()
    operators_folder(folder / "policies")
    sets = {
        "default": load(None, "default"),
        "a folder that reads paths, commands and hosts": load(folder / "policies", "default"),
    }
    rows: list[tuple[str, ...]] = []
    async with opened(folder / "journal.db") as db:
        coding = load(None, "coding")
        made = enumerate(itertools.islice(distinct(), RECORDED))
        await recorded.record(
            db,
            (event for number, each in made for event in recorded.decision(coding, number, each)),
        )
        for name, policies in sets.items():

            def timed(policies: PolicySet = policies) -> tuple[float, float, Report]:
                began, own = time.perf_counter(), time.thread_time()
                report = retest(db.read_from_thread, policies, 0, lambda calls: None)
                return time.perf_counter() - began, time.thread_time() - own, report

            took, own, report = await asyncio.to_thread(timed)
            assert report.calls == RECORDED
            rows.append((name, f"{took:.1f} s", f"{own:.1f} s", f"{report.same:,}"))
    return rows


def loading() -> Table:
    with TemporaryDirectory() as folder:
        operators_folder(Path(folder))
        rows: list[tuple[str, ...]] = []
        for name, place in (("the preset alone", None), ("with a folder", Path(folder))):
            start = time.perf_counter()
            found = load(place, "default")
            rows.append(
                (
                    f"{name}, {len(found.rules)} policies",
                    f"{(time.perf_counter() - start) * 1000:.1f} ms",
                )
            )
    return Table("Loading policies", ("what", "took"), rows)


def tables() -> Iterator[Table]:
    yield verdicts()
    yield again()
    yield loading()
