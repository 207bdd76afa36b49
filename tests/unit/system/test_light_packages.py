"""Packages that are used in part: the daemon does not load what it never runs, and others get the
package as they know it.
"""

import subprocess
import sys

UNUSED = ("click", "watchfiles", "anyio", "multiprocessing", "uvicorn.main", "uvicorn.supervisors")


def _in_a_fresh_process(script: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_server_is_there_without_its_command_line() -> None:
    script = f"""
import sys
import palyra.api.http_server, palyra.api.websocket_connection, palyra.serve.wiring.daemon
print([name for name in {UNUSED!r} if name in sys.modules])
"""
    assert _in_a_fresh_process(script) == "[]"


def test_who_wants_the_whole_package_gets_it() -> None:
    script = """
import palyra.api.http_server
import uvicorn
from uvicorn import Config, Server, run
import uvicorn.config
print(Config is uvicorn.config.Config, run is uvicorn.run, uvicorn.__version__ != "")
print(hasattr(uvicorn, "nothing"), uvicorn.Server is Server)
"""
    assert _in_a_fresh_process(script).split() == ["True", "True", "True", "False", "True"]


def test_a_package_that_has_run_stays_as_it_is() -> None:
    script = """
import uvicorn
before = uvicorn.run
import palyra.api.http_server
import uvicorn
print(uvicorn.run is before)
"""
    assert _in_a_fresh_process(script) == "True"


def test_a_package_that_is_not_there_is_left_to_whoever_imports_it() -> None:
    script = """
from palyra.system.light_packages import open_lightly
open_lightly("no_such_package", {})
try:
    import no_such_package
except ModuleNotFoundError:
    print("not found")
"""
    assert _in_a_fresh_process(script) == "not found"
