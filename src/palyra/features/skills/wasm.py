"""Runs one WebAssembly module: JSON in, JSON out, and nothing else unless it was granted.

The rule: every call gets a new instance with its own memory, fuel, size and time limits. Whatever
the module does, the caller gets bytes or a reason. A program keeps a few engines, one for each call
at a time, because interrupting goes by engine.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from palyra.core.errors import InvalidInput
from palyra.features.skills.engine import new_engine
from palyra.features.skills.host import FUNCTIONS, Abort, Sight, SkillHost, allowed
from palyra.features.skills.manifest import Bounds, Wants
from palyra.system import cpu_affinity

if TYPE_CHECKING:
    import wasmtime


MOST_AT_ONCE = 4
# Their own, so that modules that spin cannot keep the daemon's other work from its threads. None is
# started before a call.
_THREADS = ThreadPoolExecutor(8, thread_name_prefix="skill", initializer=cpu_affinity.roam)
_MOST_EXPORTS = 64
_TABLE_ELEMENTS = 20_000


class SkillOutput(Struct, frozen=True):
    """Output of a call: `data`, or a `fault` in words."""

    data: bytes = b""
    fault: str = ""
    fuel: int = 0


def check(module: "wasmtime.Module", wants: Wants) -> None:
    """Refuse a module that does not speak our ABI or imports what its tool did not ask for."""
    import wasmtime

    for each in module.imports:
        name = f"{each.module}.{each.name}"
        if each.module != "host" or each.name not in FUNCTIONS:
            raise InvalidInput(
                f"the module imports {name[:80]!r}; there are only"
                f" {', '.join(f'host.{f}' for f in FUNCTIONS)}"
            )
        if (
            not isinstance(each.type, wasmtime.FuncType)
            or _signature(each.type) != FUNCTIONS[each.name]
        ):
            raise InvalidInput(f"the module imports {name} with another signature than it has")
        if each.name not in allowed(wants):
            raise InvalidInput(
                f"the module imports {name}, but its tool asks for nothing that needs it"
            )
    exports = module.exports
    if len(exports) > _MOST_EXPORTS:
        raise InvalidInput(f"the module exports more than {_MOST_EXPORTS} things")
    found = {each.name: each.type for each in exports}
    if not isinstance(found.get("memory"), wasmtime.MemoryType):
        raise InvalidInput("the module must export its memory as 'memory'")
    for name, wanted in {"alloc": (("i32",), ("i32",)), "call": (("i32", "i32"), ("i64",))}.items():
        kind = found.get(name)
        if not isinstance(kind, wasmtime.FuncType) or _signature(kind) != wanted:
            raise InvalidInput(
                f"the module must export a function {name!r} from {wanted[0]} to {wanted[1]}"
            )


def _signature(kind: "wasmtime.FuncType") -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple(map(str, kind.params)), tuple(map(str, kind.results))


class _Slot:
    """An engine with the module in it, for one call at a time."""

    def __init__(
        self, load: Callable[["wasmtime.Engine"], "wasmtime.Module"], wants: Wants
    ) -> None:
        import wasmtime

        self.engine = new_engine()
        module = load(self.engine)
        check(module, wants)
        linker = wasmtime.Linker(self.engine)
        of_name = {"i32": wasmtime.ValType.i32, "i64": wasmtime.ValType.i64}
        for name in allowed(wants):
            parameters, results = ([of_name[kind]() for kind in kinds] for kinds in FUNCTIONS[name])
            linker.define_func(
                "host",
                name,
                wasmtime.FuncType(parameters, results),
                self._entry(name),
                access_caller=True,
            )
        self._prepared = linker.instantiate_pre(module)
        self._host: SkillHost | None = None

    def _entry(self, name: str) -> Callable[..., Any]:
        def enter(caller: "wasmtime.Caller", *arguments: int) -> int | None:
            assert self._host is not None
            return self._host.enter(name, lambda: _sight(caller, caller.get("memory")), arguments)

        return enter

    def run(self, given: bytes, bounds: Bounds, host: SkillHost) -> SkillOutput:
        """Run the module; blocks, on a thread."""
        import wasmtime

        with wasmtime.Store(self.engine) as store:
            store.set_fuel(bounds.fuel)
            store.set_epoch_deadline(1)
            store.set_limits(
                memory_size=bounds.memory_bytes,
                table_elements=_TABLE_ELEMENTS,
                instances=1,
                tables=4,
                memories=1,
            )
            self._host = host
            try:
                with host.guarded():
                    # After the deadline is set: a stop that came before it would be forgotten, one
                    # that comes later is met.
                    if host.stopped:
                        raise Abort("it was stopped")
                data = self._call(store, given, bounds, host)
                return SkillOutput(data=data, fuel=bounds.fuel - store.get_fuel())
            except (wasmtime.Trap, wasmtime.WasmtimeError, Abort) as error:
                # wasmtime keeps the last exception of a host function for the whole process, so
                # with several threads the one that arrives here may be another call's; what went
                # wrong in this call is known to its own host.
                left = store.get_fuel()
                fault = host.fault or _why(error, out_of_fuel=left == 0, stopped=host.stopped)
                return SkillOutput(fault=fault, fuel=bounds.fuel - left)
            finally:
                self._host = None

    def _call(
        self, store: "wasmtime.Store", given: bytes, bounds: Bounds, host: SkillHost
    ) -> bytes:
        exports: Any = self._prepared.instantiate(store).exports(store)
        memory = exports["memory"]
        where = exports["alloc"](store, len(given)) & 0xFFFFFFFF
        with host.guarded():
            _sight(store, memory).write(where, given)
        packed = exports["call"](store, where, len(given)) & 0xFFFFFFFFFFFFFFFF
        where, size = packed >> 32, packed & 0xFFFFFFFF
        with host.guarded():
            if size > bounds.output_bytes:
                raise Abort(f"its output has {size:,} bytes, the limit is {bounds.output_bytes:,}")
            return _sight(store, memory).read(where, size)


def _sight(store: Any, memory: Any) -> Sight:
    import wasmtime

    if not isinstance(memory, wasmtime.Memory):
        raise Abort("it has no memory to look at")
    return Sight(
        memory.data_len(store),
        lambda start, size: bytes(memory.read(store, start, start + size)),
        lambda start, data: memory.write(store, data, start),
    )


def _why(error: Exception, *, out_of_fuel: bool, stopped: bool) -> str:
    import wasmtime

    if stopped:
        return "it was stopped"
    if out_of_fuel:
        return "it used up its fuel"
    if isinstance(error, wasmtime.Trap):
        code = error.trap_code
        return f"it crashed: {code.name.lower().replace('_', ' ')}" if code else "it crashed"
    if isinstance(error, wasmtime.WasmtimeError):
        return f"it could not be started: {str(error).splitlines()[0][:200]}"
    return "it failed"


class Program:
    """One tool's module, ready to be called by several runs at a time."""

    def __init__(
        self, load: Callable[["wasmtime.Engine"], "wasmtime.Module"], wants: Wants, bounds: Bounds
    ) -> None:
        self._load = load
        self._wants = wants
        self._bounds = bounds
        self._idle: list[_Slot] = []
        self._turns = asyncio.Semaphore(MOST_AT_ONCE)

    async def run(
        self,
        given: bytes,
        host: SkillHost,
        *,
        settle: bool,
        first: Callable[[], None] = lambda: None,
    ) -> SkillOutput:
        """Call the module. A cancel and the time limit interrupt it; with `settle` a cancel waits
        until it has ended.

        `first` runs before it on the same thread, and what it raises ends the call: a thread of its
        own would cost as much as the module does.
        """
        await self._turns.acquire()
        work: asyncio.Future[SkillOutput] | None = None
        try:
            slot = (
                self._idle.pop()
                if self._idle
                else await asyncio.to_thread(_Slot, self._load, self._wants)
            )
            timer = _Timer(self._bounds.time_ms / 1000)
            work = asyncio.get_running_loop().run_in_executor(
                _THREADS, self._run, slot, given, host, first, timer
            )
            work.add_done_callback(lambda done: self._give_back(slot, done))
            return await self._watched(work, timer, slot, host, settle=settle)
        finally:
            if work is None:
                self._turns.release()

    def _run(
        self, slot: _Slot, given: bytes, host: SkillHost, first: Callable[[], None], timer: "_Timer"
    ) -> SkillOutput:
        first()
        timer.begin()
        return slot.run(given, self._bounds, host)

    async def _watched(
        self,
        work: "asyncio.Future[SkillOutput]",
        timer: "_Timer",
        slot: _Slot,
        host: SkillHost,
        *,
        settle: bool,
    ) -> SkillOutput:
        def interrupt() -> None:
            # The thread may be in the module or in a host function: both are told.
            host.stop()
            slot.engine.increment_epoch()

        timer.arm(interrupt)
        work.add_done_callback(lambda done: timer.cancel())
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            interrupt()
            if settle:
                await asyncio.wait([work])
            raise

    def _give_back(self, slot: _Slot, done: "asyncio.Future[SkillOutput]") -> None:
        # Only when the thread has ended: an interrupt that comes late must not meet the next call.
        self._turns.release()
        if not done.cancelled() and done.exception() is None:
            self._idle.append(slot)


class _Timer:
    """Timer that says when a module's time is up. Waiting for a thread is not its time; the thread
    notes when it began, and wakes nobody.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._began = 0.0
        self._handle: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        self._began = time.monotonic()

    def arm(self, late: Callable[[], None]) -> None:
        left = self._began + self._seconds - time.monotonic() if self._began else self._seconds
        if left <= 0:
            late()
        else:
            self._handle = asyncio.get_running_loop().call_later(left, self.arm, late)

    def cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
