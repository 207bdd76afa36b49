"""Compiler of one module in a process of its own, from standard input to standard output.

The rule: a hundred kilobytes of WebAssembly can ask a compiler for minutes and gigabytes, so it
never gets the daemon's.
"""

import subprocess
import sys

from palyra.core.errors import InvalidInput, LimitExceeded
from palyra.system import cpu_affinity

_SECONDS = 20
_MEMORY = 1 << 30
_MAGIC = b"\0asm"
_REFUSED = 3
_PR_SET_PDEATHSIG = 1


def compiled(source: bytes) -> bytes:
    """Machine code for a .wasm or .wat file, as `wasmtime.Module.deserialize` takes it."""
    try:
        with cpu_affinity.roaming():
            done = subprocess.run(
                [sys.executable, "-I", "-m", __name__],
                input=source,
                capture_output=True,
                timeout=2 * _SECONDS,
                env={},
                check=False,
            )
    except subprocess.TimeoutExpired:
        raise LimitExceeded("the module takes too long to compile") from None
    if done.returncode == _REFUSED:
        raise InvalidInput(
            f"the module is not valid: {done.stderr.decode('utf-8', 'replace')[:300]}"
        )
    if done.returncode or not done.stdout:
        raise LimitExceeded(
            f"compiling the module takes more than {_SECONDS} s or {_MEMORY >> 30} GiB, or fails"
        )
    return done.stdout


def main() -> int:
    _limit_myself()
    import wasmtime

    from palyra.features.skills.engine import new_engine

    source = sys.stdin.buffer.read()
    try:
        module = wasmtime.Module(
            new_engine(), source if source.startswith(_MAGIC) else bytes(wasmtime.wat2wasm(source))
        )
    except (wasmtime.WasmtimeError, ValueError) as error:
        sys.stderr.write(str(error)[:1000])
        return _REFUSED
    sys.stdout.buffer.write(module.serialize())
    return 0


def _limit_myself() -> None:
    import ctypes
    import resource
    import signal

    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # It ends with the daemon.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
