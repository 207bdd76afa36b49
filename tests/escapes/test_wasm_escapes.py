"""Modules that mean harm. Each attempt is refused when it is installed, or ends as a result of its
own call; none gets further.

What no test here needs is a special kernel or root; attempts on files are made as root and as an
ordinary user.
"""

import asyncio
import json
import os
import resource
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import wasmtime

from palyra.core.errors import InvalidInput, LimitExceeded, PalyraError
from palyra.core.ports import CallContext
from palyra.features.skills.host import Incoming, SecretRequest, SkillRequest, World
from palyra.features.skills.store import Skills
from palyra.tools.paths import PathGuard
from tests.skills_at_work import (
    ECHO,
    MEMORY,
    answering,
    asking,
    data,
    make,
    module,
    outcome,
    packed,
    run,
    tool,
)
from tests.tools_at_work import context, tree, without_privileges

SECRET = '"SECRET"'
SPIN = "(loop $l (br $l)) (unreachable)"
OK = packed(0, 0)


@pytest.fixture
def ws(own_folder: Path) -> Path:
    ws = own_folder / "ws"
    (ws / "notes").mkdir(parents=True)
    (ws / "notes" / "open.txt").write_text('"open"')
    (ws / "private.txt").write_text(SECRET)
    (own_folder / "outside.txt").write_text(SECRET)
    return ws


Who = Callable[[], AbstractContextManager[None]]


@pytest.fixture(params=["as root", "as an ordinary user"])
def who(request: pytest.FixtureRequest, ws: Path) -> Who:
    """Becomes somebody for the time of a call. Installing came before: an ordinary user may not be
    able to compile here.
    """
    if request.param != "as root":
        return lambda: without_privileges(ws.parent)
    if os.geteuid() != 0:
        pytest.skip("this half needs root")
    return nullcontext


CALLS = {
    "an answer behind the end of memory": (module(packed(131_072, 1)), "outside its memory"),
    "an answer that begins inside and ends outside": (
        module(packed(131_071, 2)),
        "outside its memory",
    ),
    "an answer whose end wraps around": (
        module(f"(i64.const {(0xFFFFFFFF << 32 | 16) - (1 << 64)})"),
        "outside its memory",
    ),
    "an answer of four gigabytes": (module("(i64.const 0xffffffff)"), "limit"),
    "an answer larger than the limit": (module(packed(0, 100_000)), "limit"),
    "a log line at a bad pointer": (
        module(f"(call $log (i32.const -8) (i32.const 16)) {OK}", imports=("log",)),
        "outside its memory",
    ),
    "a log line of two gigabytes": (
        module(f"(call $log (i32.const 0) (i32.const -1)) {OK}", imports=("log",)),
        "limit",
    ),
    "a log line that is not text": (
        module(
            f"(call $log (i32.const 0) (i32.const 2)) {OK}",
            imports=("log",),
            more=data(0, b"\xff\xfe"),
        ),
        "not UTF-8",
    ),
    "a flood of log lines": (
        module(
            "(loop $l (call $log (i32.const 0) (i32.const 4096)) (br $l)) (unreachable)",
            imports=("log",),
        ),
        "logged more",
    ),
    "a flood of empty log lines": (
        module(
            "(loop $l (call $log (i32.const 0) (i32.const 0)) (br $l)) (unreachable)",
            imports=("log",),
        ),
        "more than 256 times",
    ),
    "a loop without end": (module(SPIN), "fuel"),
    "recursion without end": (
        module(f"(call $r) {OK}", more="(func $r (call $r) (call $r))"),
        "stack overflow",
    ),
    "reading behind the end of memory": (
        module(f"(drop (i32.load (i32.const 131069))) {OK}"),
        "memory out of bounds",
    ),
    "writing behind the end of memory": (
        module(f"(i32.store (i32.const -4) (i32.const 1)) {OK}"),
        "memory out of bounds",
    ),
    "an indirect call to nothing": (
        module(
            f"(call_indirect (type $t) (i32.const 1)) {OK}",
            more="(type $t (func)) (table 4 funcref)",
        ),
        "indirect call to null",
    ),
    "an indirect call with another signature": (
        module(
            f"(call_indirect (type $t) (i32.const 1) (i32.const 0)) {OK}",
            more="(type $t (func (param i32))) (table 1 funcref) (elem (i32.const 0) $f) (func $f)",
        ),
        "bad signature",
    ),
    "dividing by zero": (
        module(f"(drop (i32.div_u (i32.const 1) (i32.const 0))) {OK}"),
        "division by zero",
    ),
    "giving up": (module("(unreachable)"), "unreachable"),
    "no answer": (module(OK), "not JSON"),
    "an answer that is not JSON": (answering("{'a': 1}"), "not JSON"),
    "an answer that is not UTF-8": (module(packed(0, 4), more=data(0, b'"\xff\xff"')), "not JSON"),
    "an answer nested too deeply": (
        module(
            packed(65536, 60_000),
            more="(func $f (memory.fill (i32.const 65536) (i32.const 0x5b) (i32.const 60000))) (start $f)",
        ),
        "not JSON",
    ),
    "a start function without end": (module(OK, more=f"(func $s {SPIN}) (start $s)"), "fuel"),
    "a start function that crashes": (
        module(OK, more="(func $s (unreachable)) (start $s)"),
        "unreachable",
    ),
    "a start function that uses the host wrongly": (
        module(
            OK,
            imports=("log",),
            more="(func $s (call $log (i32.const 0) (i32.const 9999))) (start $s)",
        ),
        "limit",
    ),
    "data segments behind the end of memory": (
        module(OK, more=data(131_070, "overflow")),
        "memory out of bounds",
    ),
}


@pytest.mark.parametrize("attempt", CALLS)
def test_a_module_that_misbehaves_gets_an_error_and_nothing_else(
    tmp_path: Path, attempt: str
) -> None:
    wat, reason = CALLS[attempt]
    result = outcome(tmp_path, wat, limits={"fuel": 2_000_000, "output_bytes": 64_000})
    assert (result.outcome, reason in result.text) == ("error", True), result.text
    assert len(result.text) < 500


@pytest.mark.parametrize("place", [-16, 131_072, 0x7FFFFFFF])
def test_an_allocator_that_points_outside_gets_no_input(tmp_path: Path, place: int) -> None:
    memory = f'(memory (export "memory") 2) (func (export "alloc") (param i32) (result i32) (i32.const {place}))'
    result = outcome(tmp_path, module(OK, memory=memory))
    assert (result.outcome, "outside its memory" in result.text) == ("error", True)


def test_an_input_does_not_fit_where_memory_ends(tmp_path: Path) -> None:
    memory = '(memory (export "memory") 1) (func (export "alloc") (param i32) (result i32) (i32.const 65530))'
    subject = tool(tmp_path, module(OK, memory=memory))
    assert "outside its memory" in run(subject, tmp_path, {"long": "x" * 100}).text


def test_a_loop_that_fuel_would_let_run_for_minutes_ends_at_its_time(tmp_path: Path) -> None:
    began = time.monotonic()
    result = outcome(tmp_path, module(SPIN), limits={"fuel": 20_000_000_000, "time_ms": 200})
    assert (result.outcome, time.monotonic() - began < 20) == ("timeout", True)


def test_a_stop_that_comes_before_the_module_has_begun_is_not_forgotten(tmp_path: Path) -> None:
    """Cancelled before or while their threads begin; a thread that had not noticed would be gone
    for a minute.
    """
    subject = tool(tmp_path, module(SPIN), limits={"fuel": 20_000_000_000, "time_ms": 60_000})

    async def main() -> None:
        for turns in range(60):
            calls = [
                asyncio.ensure_future(subject.execute(subject.parse({})[0], context(tmp_path)))
                for _ in range(4)
            ]
            for _ in range(turns % 15):
                await asyncio.sleep(0)
            for call in calls:
                call.cancel()
            await asyncio.wait(calls, timeout=10)
            assert all(call.cancelled() for call in calls)
        # All slots come back.
        for _ in range(4):
            await asyncio.wait_for(subject._program._turns.acquire(), 10)

    asyncio.run(main())


def test_a_time_of_one_millisecond_is_kept(tmp_path: Path) -> None:
    subject = tool(tmp_path, module(SPIN), limits={"fuel": 20_000_000_000, "time_ms": 1})
    began = time.monotonic()
    assert {run(subject, tmp_path).outcome for _ in range(50)} == {"timeout"}
    assert time.monotonic() - began < 60


def test_modules_that_spin_leave_the_daemon_its_threads(tmp_path: Path) -> None:
    """As many as may run at once, for a while; other work goes on meanwhile."""
    spinning = []
    for number in range(3):
        (tmp_path / str(number)).mkdir()
        spinning.append(
            tool(
                tmp_path / str(number),
                module(SPIN),
                limits={"fuel": 20_000_000_000, "time_ms": 6_000},
            )
        )

    async def main() -> bool:
        calls = [
            asyncio.ensure_future(each.execute(each.parse({})[0], context(tmp_path)))
            for each in spinning
            for _ in range(4)
        ]
        await asyncio.wait(calls, timeout=0.3)
        for _ in range(20):
            await asyncio.wait_for(asyncio.to_thread(lambda: None), 10)
        still = not any(call.done() for call in calls)
        results = await asyncio.wait_for(asyncio.gather(*calls), 60)
        assert {result.outcome for result in results} == {"timeout"}
        return still

    assert asyncio.run(main())


def test_a_start_function_that_never_ends_ends_at_its_time(tmp_path: Path) -> None:
    wat = module(OK, more=f"(func $s {SPIN}) (start $s)")
    assert (
        outcome(tmp_path, wat, limits={"fuel": 20_000_000_000, "time_ms": 200}).outcome == "timeout"
    )


def test_memory_does_not_grow_beyond_its_limit(tmp_path: Path) -> None:
    # Grows until it is refused, and answers with the number of pages it has.
    grow = """(block $b (loop $l (br_if $b (i32.eq (memory.grow (i32.const 1)) (i32.const -1))) (br $l)))
        (i32.store8 (i32.const 0) (i32.add (i32.const 48) (i32.div_u (memory.size) (i32.const 10))))
        (i32.store8 (i32.const 1) (i32.add (i32.const 48) (i32.rem_u (memory.size) (i32.const 10))))"""
    result = outcome(tmp_path, module(f"{grow} {packed(0, 2)}"), limits={"memory_bytes": 20 << 16})
    assert (result.outcome, result.text) == ("ok", "20")


def test_memory_that_is_too_large_from_the_start_is_not_given(tmp_path: Path) -> None:
    memory = MEMORY.replace('"memory") 2', '"memory") 60000')
    result = outcome(tmp_path, module(OK, memory=memory))
    assert (result.outcome, "could not be started" in result.text) == ("error", True)


def test_tables_do_not_grow_beyond_their_limit(tmp_path: Path) -> None:
    grown = "(table.grow (ref.null func) (i32.const 1000000000))"
    result = outcome(
        tmp_path,
        module(
            f"(if (i32.ne {grown} (i32.const -1)) (then unreachable)) {packed(0, 1)}",
            more="(table 1 funcref)" + data(0, "1"),
        ),
    )
    assert (result.outcome, result.text) == ("ok", "1")


CALL = '(func (export "call") (param i32 i32) (result i64) (i64.const 0))'
ALLOC = '(func (export "alloc") (param i32) (result i32) (i32.const 0))'
ONE = '(memory (export "memory") 1)'
MANY = "".join(f'(func (export "e{number}"))' for number in range(1000))
MODULES = {
    "an import of WASI": '(import "wasi_snapshot_preview1" "fd_write" (func (param i32 i32 i32 i32) (result i32)))',
    "an import of the environment": '(import "env" "system" (func (param i32) (result i32)))',
    "an import that does not exist": '(import "host" "exec" (func (param i32 i32) (result i32)))',
    "http that was not granted": '(import "host" "http" (func (param i32 i32) (result i32)))',
    "read_file that was not granted": '(import "host" "read_file" (func (param i32 i32) (result i32)))',
    "write_file that was not granted": '(import "host" "write_file" (func (param i32 i32 i32 i32) (result i32)))',
    "secret that was not granted": '(import "host" "secret" (func (param i32 i32) (result i32)))',
    "an import with another signature": '(import "host" "log" (func (param i64) (result i64)))',
    "an imported memory": '(import "host" "memory" (memory 1))',
    "an imported table": '(import "host" "log" (table 1 funcref))',
    "an imported global": '(import "host" "take" (global i32))',
    "no exports": "",
    "no memory": f"{ALLOC} {CALL}",
    "a memory that is a function": f'(func (export "memory")) {ALLOC} {CALL}',
    "a call that is a global": f'{ONE} {ALLOC} (global (export "call") i32 (i32.const 0))',
    "a call that takes floats": f'{ONE} {ALLOC} (func (export "call") (param f64 f64) (result i64) (i64.const 0))',
    "a call that gives references": f'{ONE} {ALLOC} (func (export "call") (param i32 i32) (result externref) (ref.null extern))',
    "an alloc that gives nothing": f'{ONE} {CALL} (func (export "alloc") (param i32))',
    "a memory of 64 bits": f'(memory (export "memory") i64 1) {ALLOC} {CALL}',
    "a shared memory": f'(memory (export "memory") 1 1 shared) {ALLOC} {CALL}',
    "two memories": f"{ONE} (memory 1) {ALLOC} {CALL}",
    "a thousand exports": f"{ONE} {ALLOC} {CALL} {MANY}",
}
# An import needs the exports beside it, so that it alone is what is refused.
WHOLE = {
    name: f"(module {text} {f'{ONE} {ALLOC} {CALL}' if 'import' in text else ''})"
    for name, text in MODULES.items()
}
WHOLE |= {
    "bytes that are no module": "\0asm\1\0\0\0garbage",
    "text that is no module": "(module (func",
    "a component": "(component)",
}


def test_the_modules_below_would_be_installed_without_what_is_wrong_with_them(
    tmp_path: Path,
) -> None:
    assert (
        Skills(tmp_path / "skills")
        .look(make(tmp_path / "source", f"(module {ONE} {ALLOC} {CALL})"))
        .name
        == "subject"
    )


@pytest.mark.parametrize("attempt", WHOLE)
def test_a_module_that_is_not_plain_is_not_installed(tmp_path: Path, attempt: str) -> None:
    skills = Skills(tmp_path / "skills")
    with pytest.raises(InvalidInput):
        skills.look(make(tmp_path / "source", WHOLE[attempt]))
    assert skills.all() == []


def test_a_module_that_is_too_large_is_not_compiled(tmp_path: Path) -> None:
    with pytest.raises(LimitExceeded):
        Skills(tmp_path / "skills").look(
            make(tmp_path / "source", b"\0asm\1\0\0\0" + bytes(5 << 20))
        )


def test_a_module_that_a_compiler_would_choke_on_costs_the_daemon_nothing(tmp_path: Path) -> None:
    """A megabyte of branches asks for gigabytes; the process that compiles is stopped at its
    limit.
    """
    step = "(local.get 0)(i32.add)(if (result i32) (then (i32.const 1)) (else (local.get 0)))"
    bomb = wasmtime.wat2wasm(
        f"(module (func (param i32) (result i32) (local.get 0) {step * 100_000}))"
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(LimitExceeded):
        Skills(tmp_path / "skills").look(make(tmp_path / "source", bytes(bomb)))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10


def test_nothing_of_one_call_is_left_for_the_next(tmp_path: Path) -> None:
    # Counts in memory and in a global, and answers with both.
    wat = module(
        f"""(global.set $g (i32.add (global.get $g) (i32.const 1)))
        (i32.store8 (i32.const 0) (i32.add (i32.load8_u (i32.const 0)) (i32.const 1)))
        (i32.store8 (i32.const 1) (i32.add (i32.const 48) (global.get $g))) {packed(0, 2)}""",
        more="(global $g (mut i32) (i32.const 0))" + data(0, "0"),
    )
    subject = tool(tmp_path, wat)
    assert [run(subject, tmp_path).text for _ in range(3)] == ["11", "11", "11"]


def test_calls_at_the_same_time_do_not_see_each_other(tmp_path: Path) -> None:
    subject = tool(tmp_path, ECHO)

    async def main() -> list[str]:
        given = [{"mine": str(number) * 1000} for number in range(40)]
        results = await asyncio.gather(
            *(subject.execute(subject.parse(each)[0], context(tmp_path)) for each in given)
        )
        return [result.text for result in results]

    assert asyncio.run(main()) == [f'{{"mine":"{str(number) * 1000}"}}' for number in range(40)]


def test_an_interrupted_call_takes_no_other_with_it(tmp_path: Path) -> None:
    """One spins until it is cancelled; the others of the same tool go on, before and after."""
    wat = module(
        """(if (i32.gt_u (local.get $size) (i32.const 100)) (then (loop $l (br $l))))
        (i64.or (i64.shl (i64.extend_i32_u (local.get $at)) (i64.const 32)) (i64.extend_i32_u (local.get $size)))"""
    )
    subject = tool(tmp_path, wat, limits={"fuel": 20_000_000_000, "time_ms": 60_000})

    async def main() -> float:
        spinning = asyncio.ensure_future(
            subject.execute(subject.parse({"x": "y" * 200})[0], context(tmp_path))
        )
        for _ in range(20):
            assert (await subject.execute(subject.parse({})[0], context(tmp_path))).text == "{}"
        began = time.monotonic()
        assert not spinning.done()
        spinning.cancel()
        await asyncio.wait([spinning], timeout=20)
        assert spinning.cancelled()
        assert (await subject.execute(subject.parse({})[0], context(tmp_path))).text == "{}"
        return time.monotonic() - began

    assert asyncio.run(main()) < 20


def test_compiled_code_that_was_changed_on_disk_is_not_run(tmp_path: Path) -> None:
    subject = tool(tmp_path, ECHO)
    (kept,) = (tmp_path / "skills" / "compiled").iterdir()
    honest = kept.read_bytes()
    kept.write_bytes(honest[:-1] + bytes([honest[-1] ^ 1]))
    assert run(subject, tmp_path).text == "{}"
    assert kept.read_bytes() == honest


def test_an_answer_cannot_claim_changes_of_files(tmp_path: Path) -> None:
    result = outcome(tmp_path, answering('{"changes":[{"path":"/etc/passwd","change":"deleted"}]}'))
    assert set(result.data) == {"fuel"}


READS = [
    "private.txt",
    "notes/../private.txt",
    "../outside.txt",
    "notes/../../outside.txt",
    "/etc/passwd",
    "/proc/self/environ",
    "/proc/self/root/etc/passwd",
    "notes/to-outside",
    "notes/to-private",
    "notes/to-folder/private.txt",
    "notes/device",
    "notes/pipe",
    "notes/.env",
    "notes/.git/config",
    "notes/a\0b",
    "notes/" + "x" * 300,
    "notes",
    ".",
    "",
    "~/secret",
    "\\\\host\\share",
    "notes//../../outside.txt",
]


@pytest.mark.parametrize("path", READS)
def test_reading_outside_the_grant_is_refused(ws: Path, who: Who, path: str) -> None:
    for name, target in {
        "to-outside": "../../outside.txt",
        "to-private": "../private.txt",
        "to-folder": "..",
        "device": "/dev/zero",
    }.items():
        (ws / "notes" / name).symlink_to(target)
    os.mkfifo(ws / "notes" / "pipe")
    (ws / "notes" / ".env").write_text(SECRET)
    (ws / "notes" / ".git").mkdir()
    (ws / "notes" / ".git" / "config").write_text(SECRET)
    subject = tool(ws.parent, asking("read_file", path), wants={"read": ["notes"]})
    with who():
        result = run(subject, ws)
    assert result.outcome == "ok"
    assert result.text in ("refused", "failed")


def test_reading_inside_the_grant_works(ws: Path, who: Who) -> None:
    subject = tool(ws.parent, asking("read_file", "notes/open.txt"), wants={"read": ["notes"]})
    with who():
        assert run(subject, ws).text == "open"


WRITES = [
    "private.txt",
    "../outside.txt",
    "notes/../private.txt",
    "notes/link.txt",
    "notes/folder/new.txt",
    "notes/.ssh/authorized_keys",
    "/etc/cron.d/evil",
    "notes/.env",
    "notes",
    "",
]


@pytest.mark.parametrize("path", WRITES)
def test_writing_outside_the_grant_changes_nothing(ws: Path, who: Who, path: str) -> None:
    (ws / "notes" / "link.txt").symlink_to("../private.txt")
    (ws / "notes" / "folder").symlink_to("..")
    before = tree(ws)
    wat = module(
        f"(i32.store8 (i32.const 4000) (i32.add (i32.const 57) (call $write_file (i32.const 0) (i32.const {len(path.encode())})"
        f" (i32.const 0) (i32.const 2)))) {packed(4000, 1)}",
        imports=("write_file",),
        more=data(0, path),
    )
    subject = tool(ws.parent, wat, wants={"write": ["notes"]}, effect="idempotent")
    with who():
        result = run(subject, ws)
    # 9 would be success; 8 is refused and 7 is failed.
    assert (result.outcome, result.text in ("8", "7")) == ("ok", True), result.text
    assert tree(ws) == before
    assert (ws.parent / "outside.txt").read_text() == SECRET


def test_a_flood_of_writing_stops(ws: Path) -> None:
    loop = "(loop $l (drop (call $write_file (i32.const 0) (i32.const 7) (i32.const 0) (i32.const 100000))) (br $l)) (unreachable)"
    result = outcome(
        ws.parent,
        module(loop, imports=("write_file",), more=data(0, "notes/x")),
        wants={"write": ["notes"]},
        effect="once",
    )
    assert (result.outcome, "wrote more than" in result.text) == ("error", True)


def test_a_file_swapped_for_a_link_between_calls_is_refused(ws: Path) -> None:
    subject = tool(ws.parent, asking("read_file", "notes/open.txt"), wants={"read": ["notes"]})
    assert run(subject, ws).text == "open"
    (ws / "notes" / "open.txt").unlink()
    (ws / "notes" / "open.txt").symlink_to("../../outside.txt")
    assert run(subject, ws).text == "refused"


def test_the_folders_of_the_daemon_stay_closed(ws: Path) -> None:
    world = World(PathGuard([str(ws / "notes")]))
    assert (
        outcome(
            ws.parent, asking("read_file", "notes/open.txt"), world, wants={"read": ["notes"]}
        ).text
        == "refused"
    )


class _Outside:
    """Remembers what reached it."""

    def __init__(self) -> None:
        self.sent: list[SkillRequest] = []
        self.asked: list[SecretRequest] = []

    async def http(
        self, request: SkillRequest, hosts: frozenset[str], context: CallContext
    ) -> Incoming:
        self.sent.append(request)
        return Incoming(200, {}, "ok")

    async def secret(self, asked: SecretRequest, context: CallContext) -> str:
        self.asked.append(asked)
        return '"value of ' + asked.name + '"'

    def world(self) -> World:
        return World(PathGuard(), self.http, self.secret)


REQUESTS: dict[str, dict[str, Any]] = {
    "another host": {"url": "https://evil.example/"},
    "a subdomain": {"url": "https://x.api.example/"},
    "the host as user": {"url": "https://api.example@evil.example/"},
    "the host with another port": {"url": "https://api.example:8443/"},
    "backslashes": {"url": "https://evil.example\\@api.example/"},
    "loopback": {"url": "http://127.0.0.1/"},
    "a file": {"url": "file:///etc/passwd"},
    "a POST by a pure tool": {"url": "https://api.example/", "method": "POST", "body": "x"},
    "a secret that was not granted": {
        "url": "https://api.example/",
        "headers": {"authorization": "Bearer vault:OTHER"},
    },
    "a secret without TLS": {
        "url": "http://api.example/",
        "headers": {"authorization": "Bearer vault:TOKEN"},
    },
}


@pytest.mark.parametrize("attempt", REQUESTS)
def test_a_request_outside_the_grant_is_never_sent(tmp_path: Path, attempt: str) -> None:
    outside = _Outside()
    wat = asking("http", json.dumps(REQUESTS[attempt]))
    result = outcome(
        tmp_path, wat, outside.world(), wants={"hosts": ["api.example"], "secrets": ["TOKEN"]}
    )
    assert (result.outcome, result.text in ("refused", "failed")) == ("ok", True), result.text
    assert (outside.sent, outside.asked) == ([], [])


@pytest.mark.parametrize(
    "request_text",
    [
        "",
        "{}",
        "[]",
        '{"url":1}',
        '{"url":"https://api.example/","method":"DELETE"}',
        '{"url":"x","a":1}',
    ],
)
def test_a_request_that_cannot_be_read_ends_the_call(tmp_path: Path, request_text: str) -> None:
    outside = _Outside()
    assert (
        outcome(
            tmp_path,
            asking("http", request_text),
            outside.world(),
            wants={"hosts": ["api.example"]},
        ).outcome
        == "error"
    )
    assert outside.sent == []


def test_a_flood_of_requests_stops(tmp_path: Path) -> None:
    outside = _Outside()
    request = '{"url":"https://api.example/"}'
    loop = f"(loop $l (drop (call $http (i32.const 0) (i32.const {len(request)}))) (br $l)) (unreachable)"
    result = outcome(
        tmp_path,
        module(loop, imports=("http",), more=data(0, request)),
        outside.world(),
        wants={"hosts": ["api.example"]},
    )
    assert (result.outcome, len(outside.sent)) == ("error", 16)


@pytest.mark.parametrize(
    "name", ["OTHER", "vault:OTHER", "TOKEN2", "", "global/TOKEN", "skill:other/TOKEN"]
)
def test_a_secret_outside_the_grant_is_never_asked_for(tmp_path: Path, name: str) -> None:
    outside = _Outside()
    assert (
        outcome(
            tmp_path, asking("secret", name), outside.world(), wants={"secrets": ["TOKEN"]}
        ).text
        == "refused"
    )
    assert outside.asked == []


def test_a_host_function_that_fails_is_this_calls_error_and_nobody_elses(tmp_path: Path) -> None:
    class Broken(_Outside):
        async def secret(self, asked: SecretRequest, context: CallContext) -> str:
            raise ZeroDivisionError

    result = outcome(
        tmp_path, asking("secret", "TOKEN"), Broken().world(), wants={"secrets": ["TOKEN"]}
    )
    assert (result.outcome, "ZeroDivisionError" in result.text) == ("error", True)


def test_what_a_manifest_cannot_ask_for_is_refused(tmp_path: Path) -> None:
    for wants in (
        {"read": [".."]},
        {"read": ["/etc"]},
        {"write": ["a/../b"]},
        {"hosts": ["*"]},
        {"hosts": ["EVIL.example/x"]},
        {"secrets": ["a/b"]},
    ):
        with pytest.raises(PalyraError):
            Skills(tmp_path / "skills").look(
                make(tmp_path / "source", ECHO, wants=wants, effect="once")
            )
