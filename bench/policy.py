"""How long a verdict takes: both questions, through the shipped presets and through a large operator's folder.

Run: python bench/policy.py
"""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from palyra.domain.labels import Label
from palyra.domain.tools import Scope, Subject, ToolSpec
from palyra.domain.verdicts import Question
from palyra.policy.always import always_policy, append_always
from palyra.policy.store import PolicyStore, load

ROUNDS = 10_000
TARGET_US = 300
READ = ToolSpec(name="fs.read", description="", parameters={}, effect="pure", capabilities=("fs.read",))
PATCH = ToolSpec(name="fs.patch", description="", parameters={}, effect="reversible", capabilities=("fs.read", "fs.write"))
SHELL = ToolSpec(name="shell.run", description="", parameters={}, effect="once", capabilities=("process",))
SECRET = ToolSpec(name="vault.use", description="", parameters={}, effect="once", capabilities=("secrets",))
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
    "ask": lambda n: question(SHELL, Scope(paths=(WORKSPACE,), workspace=WORKSPACE, program="pytest", command=f"pytest -q {n}"), n),
    "deny": lambda n: question(SECRET, Scope(workspace=WORKSPACE), n),
    "64 paths": lambda n: question(PATCH, inside(*(f"{n}/{i}" for i in range(64))), n),
}


def measure(judge: Callable[[Question], object], questions: list[Question]) -> str:
    """Wall time is what a run waits; the thread's own time is what remains of it on a machine with nothing else to do."""
    for each in questions[:200]:
        judge(each)
    wall, own = [], []
    for each in questions:
        start, start_own = time.perf_counter_ns(), time.thread_time_ns()
        judge(each)
        own.append((time.thread_time_ns() - start_own) / 1000)
        wall.append((time.perf_counter_ns() - start) / 1000)
    wall.sort()
    own.sort()
    p50, p99 = (wall[int(len(wall) * share)] for share in (0.5, 0.99))
    own99 = own[int(len(own) * 0.99)]
    mark = "ok" if p99 <= TARGET_US else f"over {TARGET_US}"
    return f"p50 {p50:5.0f} µs   p99 {p99:5.0f} µs   p99 of own time {own99:5.0f} µs   {mark}"


def operators_folder(folder: Path) -> None:
    """A hundred policies, such as a year of "always" leaves, and rules that read every kind of fact."""
    tools = ("shell.run", "fs.patch", "http.fetch")
    approved = [Subject(tool, "program", f"program{i}") for i in range(15) for tool in tools]
    approved += [Subject(tool, "path_prefix", f"/home/me/{i}") for i in range(15) for tool in tools]
    for number, subject in enumerate(approved):
        append_always(folder, always_policy(subject, "user:owner", f"{number}", 0))
    (folder / "rules.cedar").write_text(
        "\n".join(
            f'@id("never-{i}") forbid (principal, action, resource) when {{ context.touches.contains("/etc/{i}") ||'
            f' context.domains.contains("evil{i}.example") }};'
            for i in range(10)
        )
    )


def report(name: str, judge: Callable[[Question], object]) -> None:
    for kind, make in QUESTIONS.items():
        print(f"{name:34} {kind:9} {measure(judge, [make(n) for n in range(ROUNDS)])}")


def main() -> None:
    for preset in ("default", "coding"):
        store = PolicyStore(None, preset)
        report(f"{preset}, {len(store.current.rules)} policies", store.judge)
    with TemporaryDirectory() as folder:
        operators_folder(Path(folder))
        start = time.perf_counter()
        store = PolicyStore(Path(folder), "default")
        taken = (time.perf_counter() - start) * 1000
        report(f"default + folder, {len(store.current.rules)} policies", store.judge)
        print(f"loading that folder: {taken:.0f} ms")
    start = time.perf_counter()
    load(None, "default")
    print(f"loading the preset alone: {(time.perf_counter() - start) * 1000:.1f} ms")
    for module in ("palyra.domain.verdicts", "palyra.policy.grants", "palyra.policy.store", "palyra.policy.watch"):
        code = f"import time; t = time.perf_counter(); import {module}; print((time.perf_counter() - t) * 1000)"
        runs = [float(subprocess.check_output([sys.executable, "-c", code], text=True)) for _ in range(5)]
        print(f"import {module}: {min(runs):.0f} ms")


if __name__ == "__main__":
    main()
